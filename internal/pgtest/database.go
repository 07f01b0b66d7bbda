package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// DSN is the connection string of a role for a database. Neither need exist.
func (s *Server) DSN(role, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(role),
		Host:     s.Addr(),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Superuser is the connection string of the superuser for the database postgres.
func (s *Server) Superuser() string { return s.DSN(superuser, "postgres") }

// Via is the connection string with another host and port: a proxy's or a pooler's.
func Via(tb testing.TB, dsn, addr string) string {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	u.Host = addr
	return u.String()
}

// connect opens a session of the superuser. It never waits for a standby, so that the rig cannot hang where a test
// made one unreachable.
func (s *Server) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(s.DSN(superuser, database))
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = 10 * time.Second
	config.RuntimeParams["application_name"] = "pgtest"
	config.RuntimeParams["synchronous_commit"] = "local"
	return pgx.ConnectConfig(ctx, config)
}

// Exec runs statements as the superuser in the database postgres, without waiting for any standby. Several statements
// need no arguments.
func (s *Server) Exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if err := s.exec(tb.Context(), "postgres", sql, args...); err != nil {
		tb.Fatal(err)
	}
}

// ExecIn is Exec in another database.
func (s *Server) ExecIn(tb testing.TB, database, sql string, args ...any) {
	tb.Helper()
	if err := s.exec(tb.Context(), database, sql, args...); err != nil {
		tb.Fatal(err)
	}
}

func (s *Server) exec(ctx context.Context, database, sql string, args ...any) error {
	conn, err := s.connect(ctx, database)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql, args...)
	return errors.Join(err, conn.Close(ctx))
}

// Text runs a query as the superuser in the database postgres and returns its one value, which must be text.
func (s *Server) Text(tb testing.TB, sql string, args ...any) string {
	tb.Helper()
	var text string
	if err := s.scan(tb.Context(), &text, sql, args...); err != nil {
		tb.Fatal(err)
	}
	return text
}

// Await runs a query, as Text does, until its one value is true.
func (s *Server) Await(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if err := s.await(tb.Context(), sql, args...); err != nil {
		tb.Fatal(err)
	}
}

// await opens a new session for every try, so that the answer holds for sessions to come.
func (s *Server) await(ctx context.Context, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := poll(ctx, func() (done bool, err error) {
		err = s.scan(ctx, &done, sql, args...)
		return done, err
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, sql)
	}
	return nil
}

func (s *Server) scan(ctx context.Context, value any, sql string, args ...any) error {
	conn, err := s.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	err = conn.QueryRow(ctx, sql, args...).Scan(value)
	return errors.Join(err, conn.Close(ctx))
}

// Reload changes settings with ALTER SYSTEM, which lasts over restarts, and returns when every new session has them.
func (s *Server) Reload(tb testing.TB, settings map[string]string) {
	tb.Helper()
	s.mustBeOwn(tb, "reconfigured")
	if err := s.reload(tb.Context(), settings); err != nil {
		tb.Fatal(err)
	}
}

func (s *Server) reload(ctx context.Context, settings map[string]string) error {
	for name, value := range settings {
		sql := fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", pgx.Identifier{name}.Sanitize(), strings.ReplaceAll(value, "'", "''"))
		if err := s.exec(ctx, "postgres", sql); err != nil {
			return err
		}
	}
	var before time.Time
	if err := s.scan(ctx, &before, "SELECT pg_conf_load_time() FROM pg_reload_conf()"); err != nil {
		return err
	}
	return s.await(ctx, "SELECT pg_conf_load_time() > $1", before)
}

// Database makes a database of its own for a test, with the words of CREATE DATABASE that are given, and returns the
// superuser's connection string for it. It takes a fifth of a second, and goes with the test.
func (s *Server) Database(tb testing.TB, words ...string) string {
	tb.Helper()
	name := unique()
	sql := "CREATE DATABASE " + name + " TEMPLATE template0 " + strings.Join(words, " ")
	if err := s.exec(tb.Context(), "postgres", sql); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		s.cleanUp(tb, func(ctx context.Context) error {
			return s.exec(ctx, "postgres", "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		})
	})
	return s.DSN(superuser, name)
}

// Role makes a role that may log in, with the words of CREATE ROLE that are given, and returns its name. It goes with
// the test, and all that it owns goes with it.
func (s *Server) Role(tb testing.TB, words ...string) string {
	tb.Helper()
	name := unique()
	if err := s.exec(tb.Context(), "postgres", "CREATE ROLE "+name+" LOGIN "+strings.Join(words, " ")); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		s.cleanUp(tb, func(ctx context.Context) error { return s.dropRole(ctx, name) })
	})
	return name
}

// dropRole drops what the role owns or may do in each database that knows it, then the role.
func (s *Server) dropRole(ctx context.Context, name string) error {
	const where = `
SELECT coalesce(array_agg(DISTINCT d.datname::text), '{}')
  FROM pg_shdepend AS s
  JOIN pg_database AS d ON d.oid = s.dbid OR (s.dbid = 0 AND d.datname = 'postgres')
 WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = $1::text::regrole`
	var databases []string
	if err := s.scan(ctx, &databases, where, name); err != nil {
		return err
	}
	for _, database := range databases {
		if err := s.exec(ctx, database, "DROP OWNED BY "+name+" CASCADE"); err != nil {
			return err
		}
	}
	return s.exec(ctx, "postgres", "DROP ROLE "+name)
}

// cleanUp runs a piece of tidying after the test. A server of the test's own that is down takes everything with it.
func (s *Server) cleanUp(tb testing.TB, tidy func(context.Context) error) {
	tb.Helper()
	if !s.shared && (s.process == nil || !s.process.running()) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := tidy(ctx); err != nil {
		tb.Error(err)
	}
}

// unique is a name that needs no quotes and that no other test has.
func unique() string { return "pawl_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:16] }
