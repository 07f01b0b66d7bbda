package sqlitestore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"strings"
)

// statements holds the SQL, one statement a file. They are read by name and
// prepared once per connection.
//
//go:embed sql/*.sql
var statements embed.FS

// statementText returns the text of a statement without its comments: the
// engine keeps prepared only what ends with its last word.
func statementText(name string) (string, error) {
	raw, err := statements.ReadFile("sql/" + name + ".sql")
	if err != nil {
		return "", fmt.Errorf("sqlitestore: no statement %s: %w", name, err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(raw)) {
		code, _, _ := strings.Cut(line, "--")
		if code = strings.TrimRight(code, " \t\n"); code != "" {
			b.WriteString(code)
			b.WriteByte('\n')
		}
	}
	return strings.TrimSpace(b.String()), nil
}

// asker runs statements by name on one connection or pool.
type asker struct {
	ctx     context.Context
	prepare func(name string) (*sql.Stmt, error)
}

// exec runs a statement that returns no rows and tells how many it changed.
func (a asker) exec(name string, args ...any) (int64, error) {
	stmt, err := a.prepare(name)
	if err != nil {
		return 0, err
	}
	r, err := stmt.ExecContext(a.ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return r.RowsAffected()
}

// each runs a statement and scans every row it returns. It always reads to the
// end: a statement that writes is complete only then.
func (a asker) each(name string, scan func(*sql.Rows) error, args ...any) error {
	stmt, err := a.prepare(name)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(a.ctx, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// one runs a statement of at most one row and scans that into dest.
func (a asker) one(name string, dest []any, args ...any) (found bool, err error) {
	err = a.each(name, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(dest...)
	}, args...)
	return found, err
}

// named is sql.Named, short, for lists of arguments.
func named(name string, value any) sql.NamedArg { return sql.NamedArg{Name: name, Value: value} }
