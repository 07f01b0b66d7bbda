package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/pawl-go/pawl"
)

// Tx is a transaction that a caller shares with the store: its own writes and an
// admission, or a success, become one commit. It holds the write lock of the
// file from [Store.BeginTx] to [Tx.Commit] or [Tx.Rollback], so everybody else
// waits for it, the store's other calls in the same goroutine included: keep it
// short, call nothing slow in it, and end it before anything but AdmitTx,
// ReserveTx and SettleTx is asked of the store.
//
// Nothing that was done in it counts before Commit has returned nil: an
// operation that AdmitTx reports is not confirmed until then, and its owner may
// not act outside the transaction [A6]. Statements that begin or end
// transactions or savepoints named pawl_ must not be run in it; where the
// transaction was ended behind its back, every later call fails.
//
// A Tx is used by one goroutine at a time.
type Tx struct {
	store *Store
	ctx   context.Context // the caller's, with the longest time that the lock may be held
	stop  context.CancelFunc
	begun chan error    // the writer's answer; unbuffered, so that it knows whether the caller is there
	ended chan struct{} // closed at the end

	mu    sync.Mutex // held by whoever uses the transaction
	txn   *txn
	over  bool
	class pawl.Class // of an unconfirmed commit
	cause error      // why it can only be rolled back
	rows  []*sql.Rows
}

// BeginTx begins a transaction, immediate, with the write lock. When ctx ends,
// or Options.TxTimeout is over, it is rolled back. Errors: ErrUnavailable.
func (s *Store) BeginTx(ctx context.Context) (*Tx, error) {
	if err := s.enter(pawl.ErrUnavailable); err != nil {
		return nil, err
	}
	tx := &Tx{
		store: s, begun: make(chan error), ended: make(chan struct{}), class: pawl.ErrUnavailable,
	}
	j := &job{ctx: ctx, class: pawl.ErrUnavailable, done: make(chan error, 1), lent: tx}
	err := s.letIn(j)
	if err == nil {
		select {
		case err = <-tx.begun:
		case <-ctx.Done():
			err = cancelled(pawl.ErrUnavailable, ctx.Err())
		}
	}
	if err != nil {
		s.leave()
		return nil, err
	}
	return tx, nil
}

// lend gives the transaction to a caller and waits for its end.
func (w *writer) lend(j *job) {
	tx := j.lent
	t, err := w.begin()
	if err == nil {
		if err = w.session.do(lentSave); err != nil {
			w.giveUp()
		}
	}
	if err != nil {
		w.hand(j, w.engine.unbegun(err, j.class))
		return
	}
	tx.txn = t
	tx.ctx, tx.stop = context.WithTimeout(j.ctx, tx.store.opts.TxTimeout)
	defer tx.stop()
	if !w.hand(j, nil) {
		if w.session.do(rollback) != nil {
			w.giveUp()
		}
		return
	}
	select {
	case <-tx.ended:
	case <-tx.ctx.Done():
		tx.expire()
	}
	if tx.cause != nil {
		w.giveUp() // whatever a caller left behind is undone with the connection
	}
	tx.store.leave()
}

// hand gives the answer to a caller that is still there.
func (w *writer) hand(j *job, err error) bool {
	select {
	case j.lent.begun <- err:
		return true
	case <-j.ctx.Done():
		return false
	}
}

// expire ends a transaction whose time is over. It waits for the statement under
// way, which the end of the context interrupts.
func (tx *Tx) expire() {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if !tx.over {
		tx.spoil(tx.ctx.Err())
		tx.closeRows()
		tx.finish()
	}
}

// spoil says why the transaction can only be rolled back.
func (tx *Tx) spoil(cause error) {
	if tx.cause == nil {
		tx.cause = cause
	}
}

// finish gives the lock back.
func (tx *Tx) finish() {
	tx.over = true
	close(tx.ended)
}

// closeRows closes what the caller left open: it would keep a snapshot, and the
// next transaction of this connection could not go on from there.
func (tx *Tx) closeRows() {
	for _, rows := range tx.rows {
		_ = rows.Close() // they only read
	}
}

// use runs f in the transaction, if that is still the one which was begun: a
// statement that failed badly, or a caller's own COMMIT, may have ended it, and
// what follows would each be committed by itself.
func (tx *Tx) use(class pawl.Class, f func() error) error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.over || tx.cause != nil {
		return &pawl.Error{Class: class, Reason: pawl.ReasonClosed, Note: "the transaction is over", Cause: tx.cause}
	}
	if err := tx.ctx.Err(); err != nil {
		tx.spoil(err)
		return cancelled(class, err)
	}
	if err := tx.store.writer.session.do(lentRelease, lentSave); err != nil {
		tx.spoil(errors.Join(errNoTransaction, err))
		return tx.store.opts.engine.unanswered(tx.cause, class)
	}
	return f()
}

// bounded is a caller's context that also ends with the transaction.
func (tx *Tx) bounded(ctx context.Context) context.Context {
	bounded, cancel := context.WithCancelCause(ctx)
	context.AfterFunc(tx.ctx, func() { cancel(tx.ctx.Err()) })
	return bounded
}

// ExecContext runs a statement of the caller's own.
func (tx *Tx) ExecContext(ctx context.Context, query string, args ...any) (r sql.Result, err error) {
	err = tx.use(pawl.ErrUnavailable, func() (err error) {
		r, err = tx.store.writer.session.conn.ExecContext(tx.bounded(ctx), query, args...)
		return err
	})
	return r, err
}

// QueryContext runs a query of the caller's own. Rows that are open at the end
// of the transaction are closed with it.
func (tx *Tx) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	err = tx.use(pawl.ErrUnavailable, func() (err error) {
		rows, err = tx.store.writer.session.conn.QueryContext(tx.bounded(ctx), query, args...)
		if err == nil {
			tx.rows = append(tx.rows, rows)
		}
		return err
	})
	return rows, err
}

// inTx runs one of the store's calls in a caller's transaction. A refusal undoes
// that call only and leaves the transaction usable.
func inTx[T any](tx *Tx, class pawl.Class, f func(*txn) (T, error)) (T, error) {
	var none, got T
	err := tx.use(class, func() error {
		w := tx.store.writer
		b, err := raiseFloor(w.session.asker, w.hooks.time()) // the time of this call, not of the beginning [P1]
		if err == nil {
			tx.txn.now, tx.txn.epoch = b.now, b.epoch
			var answer error
			answer, err = w.runJob(tx.txn, func(t *txn) (err error) {
				got, err = f(t)
				return err
			})
			if err == nil {
				return w.engine.explain(answer, class)
			}
		}
		tx.spoil(err)
		return w.engine.unbegun(err, class)
	})
	if err != nil {
		return none, err
	}
	return got, nil
}

// AdmitTx is Admit in a caller's transaction: the claim, the record and the
// caller's own writes are one commit, or nothing. Errors as Admit; after
// ErrRefused or ErrInvalid the transaction goes on. The owner's lease runs from
// this call.
func (s *Store) AdmitTx(ctx context.Context, tx *Tx, a pawl.Admission) (pawl.Admitted, error) {
	if err := errors.Join(a.Validate(), tx.of(s)); err != nil {
		return pawl.Admitted{}, err
	}
	if err := ctx.Err(); err != nil {
		return pawl.Admitted{}, cancelled(pawl.ErrNotConfirmed, err)
	}
	tx.confirms()
	return inTx(tx, pawl.ErrNotConfirmed, func(t *txn) (pawl.Admitted, error) { return t.admit(a) })
}

// ReserveTx is Reserve in a caller's transaction; see AdmitTx.
func (s *Store) ReserveTx(ctx context.Context, tx *Tx, r pawl.Reservation) (pawl.Admitted, error) {
	if err := errors.Join(r.Validate(), tx.of(s)); err != nil {
		return pawl.Admitted{}, err
	}
	if err := ctx.Err(); err != nil {
		return pawl.Admitted{}, cancelled(pawl.ErrNotConfirmed, err)
	}
	tx.confirms()
	return inTx(tx, pawl.ErrNotConfirmed, func(t *txn) (pawl.Admitted, error) { return t.reserve(r) })
}

// SettleTx is Settle in a caller's transaction: a success and the business write
// that it speaks of are one commit. Errors as Settle.
func (s *Store) SettleTx(ctx context.Context, tx *Tx, e pawl.Evidence) (pawl.Settlement, error) {
	if err := errors.Join(e.Validate(), tx.of(s)); err != nil {
		return pawl.Settlement{}, err
	}
	if err := ctx.Err(); err != nil {
		return pawl.Settlement{}, cancelled(pawl.ErrUnavailable, err)
	}
	return inTx(tx, pawl.ErrUnavailable, func(t *txn) (pawl.Settlement, error) { return t.settle(e) })
}

// of refuses a transaction of another store: its write lock is another file's.
func (tx *Tx) of(s *Store) error {
	if tx == nil || tx.store != s {
		return malformed("the transaction is of another store")
	}
	return nil
}

// confirms notes that an admission rests on the commit.
func (tx *Tx) confirms() {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.class = pawl.ErrNotConfirmed
}

// Commit makes everything in the transaction durable at once. Only nil confirms:
// after ErrNotConfirmed (ErrUnavailable where nothing was admitted) it may or
// may not have been committed, and the same calls in a new transaction tell
// which [A3, A6]. It runs to its end whatever the context does.
func (tx *Tx) Commit() error {
	tx.mu.Lock()
	class := tx.class
	tx.mu.Unlock()
	return tx.use(class, func() error {
		defer tx.finish()
		tx.closeRows()
		tx.txn.wrote = true // the caller's own statements
		w := tx.store.writer
		if err := w.end(tx.txn); err != nil {
			tx.spoil(err)
			return w.engine.unanswered(err, class)
		}
		return nil
	})
}

// Rollback undoes everything in the transaction; after Commit it does nothing,
// so it may be deferred.
func (tx *Tx) Rollback() error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.over {
		return nil
	}
	defer tx.finish()
	tx.closeRows()
	if err := tx.store.writer.session.do(rollback); err != nil {
		tx.spoil(err)
	}
	return nil
}
