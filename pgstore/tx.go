package pgstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
)

// This file is the same-transaction form: admission, a business write in the
// same database, and the outcome are one commit.
//
// The transaction is the caller's, and so is its session: Read Committed, with
// synchronous_commit and client_min_messages as the store demands, and bounded,
// which SET LOCAL transaction_timeout (statement_timeout before PostgreSQL 17)
// does. Each statement reads all of that and admits nothing where it does not
// hold: ErrMisconfigured [A11]. A savepoint keeps the transaction usable after
// every refusal.
//
// Nothing that these calls answer is confirmed before the caller's commit is
// acknowledged: whoever acts on an admission outside of this database must wait
// for that, and must watch the connection for the notice of a cancelled wait for
// a standby [A3, A6]. The caller's context is the caller's, here as in the rest
// of its transaction: when it ends, the transaction has failed.

// AdmitTx is Admit in the caller's transaction. Errors as Admit; ErrNotConfirmed
// means that the transaction has failed.
func (s *Store) AdmitTx(ctx context.Context, tx pgx.Tx, a pawl.Admission) (pawl.Admitted, error) {
	return s.admitIn(ctx, pgxSession{tx}, a)
}

// AdmitSQLTx is AdmitTx on database/sql with pgx's driver.
func (s *Store) AdmitSQLTx(ctx context.Context, tx *sql.Tx, a pawl.Admission) (pawl.Admitted, error) {
	return s.admitIn(ctx, sqlSession{tx}, a)
}

func (s *Store) admitIn(ctx context.Context, on session, a pawl.Admission) (pawl.Admitted, error) {
	if err := a.Validate(); err != nil {
		return pawl.Admitted{}, err // [A9]
	}
	return within(s, pawl.ErrNotConfirmed, func() (pawl.Admitted, error) { return s.admit(ctx, guarded{on}, a) })
}

// ReserveTx is Reserve in the caller's transaction. Errors as Reserve.
func (s *Store) ReserveTx(ctx context.Context, tx pgx.Tx, r pawl.Reservation) (pawl.Admitted, error) {
	return s.reserveIn(ctx, pgxSession{tx}, r)
}

// ReserveSQLTx is ReserveTx on database/sql with pgx's driver.
func (s *Store) ReserveSQLTx(ctx context.Context, tx *sql.Tx, r pawl.Reservation) (pawl.Admitted, error) {
	return s.reserveIn(ctx, sqlSession{tx}, r)
}

func (s *Store) reserveIn(ctx context.Context, on session, r pawl.Reservation) (pawl.Admitted, error) {
	if err := r.Validate(); err != nil {
		return pawl.Admitted{}, err
	}
	return within(s, pawl.ErrNotConfirmed, func() (pawl.Admitted, error) { return s.reserve(ctx, guarded{on}, r) })
}

// SettleTx is Settle in the caller's transaction: the outcome of a same-database
// effect, in the commit of the effect itself. Errors as Settle.
func (s *Store) SettleTx(ctx context.Context, tx pgx.Tx, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settleIn(ctx, pgxSession{tx}, e)
}

// SettleSQLTx is SettleTx on database/sql with pgx's driver.
func (s *Store) SettleSQLTx(ctx context.Context, tx *sql.Tx, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settleIn(ctx, sqlSession{tx}, e)
}

func (s *Store) settleIn(ctx context.Context, on session, e pawl.Evidence) (pawl.Settlement, error) {
	if err := e.Validate(); err != nil {
		return pawl.Settlement{}, err
	}
	return within(s, pawl.ErrUnavailable, func() (got pawl.Settlement, err error) {
		on := guarded{on}
		var l locked
		if err := on.run(ctx, s.lockStep(e.ID, &l)); err != nil {
			return pawl.Settlement{}, err
		}
		if l.op.ID.IsZero() {
			return pawl.Settlement{}, pawl.NotFound()
		}
		c, err := s.settlement(e, &got)(l)
		if err != nil || !c.Write {
			return got, err
		}
		var written int64
		if err := on.run(ctx, s.writeStep(l.op, c, &written)); err != nil {
			return pawl.Settlement{}, err
		}
		if written != 1 {
			return pawl.Settlement{}, unwritten(e.ID)
		}
		return got, nil
	})
}

// within counts a call on the caller's connection among those in flight.
func within[T any](s *Store, lost pawl.Class, f func() (T, error)) (T, error) {
	var zero T
	if !s.enter() {
		return zero, &pawl.Error{Class: lost, Reason: pawl.ReasonClosed}
	}
	defer s.leave()
	got, err := f()
	if err != nil {
		return zero, answer(err, lost)
	}
	return got, nil
}

// guarded runs every statement under a savepoint, so that one that fails leaves
// the caller's transaction as it was.
type guarded struct{ session }

func (g guarded) run(ctx context.Context, steps ...step) error {
	var own error // what reading a row says, which is no failure of the statement
	all := make([]step, 0, len(steps)+1)
	for _, st := range steps {
		if each := st.each; each != nil {
			st.each = func(scan scanner) error {
				own = errors.Join(own, each(scan))
				return nil
			}
		}
		all = append(all, st)
	}
	all = append(all, step{sql: "RELEASE SAVEPOINT pawl"})
	// On its own, because what follows is prepared before any of it runs, and may fail there.
	if err := g.session.run(ctx, step{sql: "SAVEPOINT pawl"}); err != nil {
		return err
	}
	err := g.session.run(ctx, all...)
	if err == nil {
		return own
	}
	// One after the other: in a failed transaction nothing but the first may even be prepared.
	for _, sql := range []string{"ROLLBACK TO SAVEPOINT pawl", "RELEASE SAVEPOINT pawl"} {
		if failed := g.session.run(ctx, step{sql: sql}); failed != nil {
			return errors.Join(err, failed)
		}
	}
	return err
}
