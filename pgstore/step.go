package pgstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// scanner reads the columns of one row, as in database/sql.
type scanner func(dest ...any) error

// step is one statement with what to do with its answer.
type step struct {
	sql  string
	args []any
	// each is called for every row; nil ignores rows.
	each func(scan scanner) error
	// tag, where not nil, receives the command tag of a step without rows.
	tag *string
}

// session runs steps in order on one connection. Where the driver can, all of
// them travel in one round trip; a step that fails keeps the later ones from
// running.
type session interface {
	run(ctx context.Context, steps ...step) error
}

// pgxQuerier is what *pgx.Conn and pgx.Tx have in common.
type pgxQuerier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// pgxSession is a session on pgx.
type pgxSession struct{ q pgxQuerier }

func (s pgxSession) run(ctx context.Context, steps ...step) error {
	if len(steps) == 1 {
		rows, err := s.q.Query(ctx, steps[0].sql, steps[0].args...)
		if err != nil {
			return err
		}
		return steps[0].read(rows)
	}
	batch := &pgx.Batch{}
	for _, st := range steps {
		batch.Queue(st.sql, st.args...)
	}
	results := s.q.SendBatch(ctx, batch)
	for _, st := range steps {
		rows, err := results.Query()
		if err == nil {
			err = st.read(rows)
		}
		if err != nil {
			return errors.Join(err, ignoreRepeated(results.Close(), err))
		}
	}
	return results.Close()
}

// read hands the rows on and keeps the tag.
func (st step) read(rows pgx.Rows) error {
	defer rows.Close()
	for rows.Next() {
		if st.each == nil {
			continue
		}
		if err := st.each(rows.Scan); err != nil {
			return err
		}
	}
	rows.Close()
	if st.tag != nil {
		*st.tag = rows.CommandTag().String()
	}
	return rows.Err()
}

// ignoreRepeated drops the error of closing a batch that only says again what
// its failed step said.
func ignoreRepeated(closing, failed error) error {
	if closing == nil || errors.Is(closing, failed) || closing.Error() == failed.Error() {
		return nil
	}
	return closing
}

// sqlSession is a session on database/sql with pgx's driver.
type sqlSession struct{ tx *sql.Tx }

func (s sqlSession) run(ctx context.Context, steps ...step) error {
	for _, st := range steps {
		if err := s.one(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

func (s sqlSession) one(ctx context.Context, st step) error {
	if st.each == nil {
		_, err := s.tx.ExecContext(ctx, st.sql, st.args...)
		return err
	}
	rows, err := s.tx.QueryContext(ctx, st.sql, st.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	types := pgtype.NewMap()
	for rows.Next() {
		if err := st.each(func(dest ...any) error { return rows.Scan(wrapped(types, dest)...) }); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// wrapped lets database/sql read what it has no words for.
func wrapped(types *pgtype.Map, dest []any) []any {
	out := make([]any, len(dest))
	for i, d := range dest {
		switch d.(type) {
		case *[16]byte, **[16]byte:
			out[i] = types.SQLScanner(d)
		default:
			out[i] = d
		}
	}
	return out
}
