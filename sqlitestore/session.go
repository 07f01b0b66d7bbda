package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// session is one connection that writes, with its prepared statements. It is
// used by one goroutine at a time.
type session struct {
	asker
	db       *sql.DB // of this one connection
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
	set      settings
}

// settings are what a connection says of itself, read back from it [A11].
type settings struct {
	version     string
	journal     string
	synchronous int
	foreignKeys int
}

// openSession connects to an existing file and reads back what it was set to.
// Waiting for the write lock is the writer's affair afterwards: the engine's own
// way of waiting sleeps ever longer and lets others pass.
func openSession(ctx context.Context, e engine, path string, patience time.Duration) (*session, error) {
	db, err := sql.Open(e.driver, e.dsn(path, pragmas(patience, false)))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &session{db: db, conn: conn, prepared: map[string]*sql.Stmt{}}
	// A statement that may commit never carries a caller's cancellation [A3].
	s.asker = asker{ctx: context.Background(), prepare: s.statement}
	if s.set, err = readSettings(ctx, conn); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func readSettings(ctx context.Context, c *sql.Conn) (s settings, err error) {
	for query, dest := range map[string]any{
		"SELECT sqlite_version()": &s.version, "PRAGMA journal_mode": &s.journal,
		"PRAGMA synchronous": &s.synchronous, "PRAGMA foreign_keys": &s.foreignKeys,
	} {
		if err := c.QueryRowContext(ctx, query).Scan(dest); err != nil {
			return settings{}, fmt.Errorf("reading settings: %w", err)
		}
	}
	return s, nil
}

// unsafe says what a connection must not be used for admissions with [A11].
func (s settings) unsafe() error {
	var wrong []string
	if !safeVersion(s.version) {
		wrong = append(wrong, "SQLite "+s.version+" can lose committed data; 3.51.3, 3.50.7 or 3.44.6 are needed")
	}
	if s.journal != "wal" {
		wrong = append(wrong, "the journal mode is "+s.journal+", not wal")
	}
	if s.synchronous < 2 {
		wrong = append(wrong, fmt.Sprintf("synchronous is %d, below FULL", s.synchronous))
	}
	if s.foreignKeys != 1 {
		wrong = append(wrong, "foreign keys are off")
	}
	if wrong == nil {
		return nil
	}
	return misconfigured("%s", strings.Join(wrong, "; "))
}

// safeVersion reports whether an engine has the correction of the defect by
// which a checkpoint racing a writer that restarts the log loses commits:
// 3.51.3, with 3.50.7 and 3.44.6 on their branches.
func safeVersion(version string) bool {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil || major != 3 {
		return false
	}
	switch {
	case minor >= 53:
		return true
	case minor == 52:
		return false // withdrawn
	case minor == 51:
		return patch >= 3
	case minor == 50:
		return patch >= 7
	case minor == 44:
		return patch >= 6
	}
	return false
}

func (s *session) statement(name string) (*sql.Stmt, error) {
	if stmt := s.prepared[name]; stmt != nil {
		return stmt, nil
	}
	text, ok := control(name)
	if !ok {
		var err error
		if text, err = statementText(name); err != nil {
			return nil, err
		}
	}
	stmt, err := s.conn.PrepareContext(s.ctx, text)
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", name, err)
	}
	s.prepared[name] = stmt
	return stmt, nil
}

// Statements that begin and end things. A job is what one caller asked for; the
// lent savepoint stands for a transaction that a caller holds.
const (
	begin       = "begin"
	commit      = "commit"
	rollback    = "rollback"
	jobSave     = "job-save"
	jobKeep     = "job-keep"
	jobUndo     = "job-undo"
	lentSave    = "lent-save"
	lentRelease = "lent-release"
)

func control(name string) (text string, ok bool) {
	switch name {
	case begin:
		return "BEGIN IMMEDIATE", true
	case commit:
		return "COMMIT", true
	case rollback:
		return "ROLLBACK", true
	case jobSave:
		return "SAVEPOINT pawl_job", true
	case jobKeep:
		return "RELEASE pawl_job", true
	case jobUndo:
		return "ROLLBACK TO pawl_job", true
	case lentSave:
		return "SAVEPOINT pawl_lent", true
	case lentRelease:
		return "RELEASE pawl_lent", true
	}
	return "", false
}

// do runs a statement that begins or ends something.
func (s *session) do(names ...string) error {
	for _, name := range names {
		if _, err := s.exec(name); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) close() error {
	var errs []error
	for _, stmt := range s.prepared {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, s.conn.Close(), s.db.Close())...)
}

// sameFile reports whether the path still names the file that was opened: what
// is committed into a deleted or replaced file is acknowledged and lost.
func sameFile(path string, opened os.FileInfo) error {
	now, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	if !os.SameFile(opened, now) {
		return errMoved
	}
	return nil
}
