package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sqlitestore"
)

// shop is a store with a table of the caller's own in the same file.
func shop(t *testing.T, o *sqlitestore.Options) *sqlitestore.Store {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), o)
	execute(t, s.Path(), "CREATE TABLE credits (id INTEGER PRIMARY KEY, account TEXT NOT NULL UNIQUE, cents INTEGER NOT NULL) STRICT")
	return s
}

// credits counts what is committed, seen from another connection.
func credits(t *testing.T, s *sqlitestore.Store) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", s.Path()+"?_pragma=busy_timeout(2000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM credits").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func credit(ctx context.Context, tx *sqlitestore.Tx, account string) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO credits (account, cents) VALUES (?, 25000)", account)
	return err
}

// Admission, the business write and the success are one commit [A2]; until then
// nobody sees any of it, and nothing is confirmed.
func TestTxIsOneCommit(t *testing.T) {
	ctx, s := t.Context(), shop(t, nil)
	a := presented(s, "g", pawl.NewOperationID(), justNow())
	tx, err := s.BeginTx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	got, err := s.AdmitTx(ctx, tx, a)
	if err != nil || !got.Fresh {
		t.Fatalf("fresh %v, %v", got.Fresh, err)
	}
	if err := credit(ctx, tx, "A-1187"); err != nil {
		t.Fatal(err)
	}
	settled, err := s.SettleTx(ctx, tx, pawl.Evidence{
		ID: a.OperationID, Lock: a.Lock(), Outcome: pawl.Succeeded("A-1187"), Token: got.Owner.Token, Source: "shop",
	})
	if err != nil || settled.Disposition != pawl.Applied {
		t.Fatalf("%v, %v", settled.Disposition, err)
	}
	if _, err := s.Get(ctx, a.OperationID, pawl.AsOperator()); !errors.Is(err, pawl.ErrNotFound) || credits(t, s) != 0 {
		t.Errorf("before the commit others see %v and %d credits", err, credits(t, s))
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	op, err := s.Get(ctx, a.OperationID, pawl.AsOperator())
	if err != nil || op.Status != pawl.StatusSucceeded || string(op.Result) != "A-1187" || credits(t, s) != 1 {
		t.Errorf("after the commit: %v %q, %d credits, %v", op.Status, op.Result, credits(t, s), err)
	}
	if err := tx.Rollback(); err != nil {
		t.Errorf("a late rollback: %v", err)
	}
	if err := credit(ctx, tx, "A-2"); err == nil || credits(t, s) != 1 {
		t.Errorf("a statement after the end: %v, %d credits", err, credits(t, s))
	}
}

// A rolled-back transaction leaves nothing: the grant is unspent.
func TestTxRollback(t *testing.T) {
	ctx, s := t.Context(), shop(t, nil)
	a := presented(s, "g", pawl.NewOperationID(), justNow())
	tx, err := s.BeginTx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AdmitTx(ctx, tx, a); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(credit(ctx, tx, "A-1187"), tx.Rollback()); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err == nil {
		t.Error("a commit after the rollback")
	}
	if got, err := s.Admit(ctx, a); err != nil || !got.Fresh || credits(t, s) != 0 {
		t.Errorf("fresh %v, %v, %d credits", got.Fresh, err, credits(t, s))
	}
}

// A refusal, and a statement of the caller's own that fails, undo themselves
// only: the transaction goes on.
func TestTxGoesOnAfterARefusal(t *testing.T) {
	ctx, s := t.Context(), shop(t, nil)
	used := presented(s, "used", pawl.NewOperationID(), justNow())
	if _, err := s.Admit(ctx, used); err != nil {
		t.Fatal(err)
	}
	tx, err := s.BeginTx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := credit(ctx, tx, "A-1"); err != nil {
		t.Fatal(err)
	}
	refused := presented(s, "used", pawl.NewOperationID(), justNow())
	if _, err := s.AdmitTx(ctx, tx, refused); !errors.Is(err, pawl.ErrRefused) || pawl.ReasonOf(err) != pawl.ReasonUsed {
		t.Errorf("a used grant: %v", err)
	}
	taken := presented(s, "fresh", used.OperationID, justNow())
	if _, err := s.AdmitTx(ctx, tx, taken); pawl.ReasonOf(err) != pawl.ReasonOperationTaken {
		t.Errorf("another's operation id: %v", err)
	}
	if err := credit(ctx, tx, "A-1"); err == nil {
		t.Error("one account twice")
	}
	reserved, err := s.ReserveTx(ctx, tx, pawl.Reservation{
		Key: "k", Intent: used.Intent, Caller: used.Caller, Lease: time.Minute, SubmissionWindow: time.Hour,
	})
	if err != nil || !reserved.Fresh {
		t.Errorf("a reservation: fresh %v, %v", reserved.Fresh, err)
	}
	if got, err := s.AdmitTx(ctx, tx, presented(s, "fresh", pawl.NewOperationID(), justNow())); err != nil || !got.Fresh {
		t.Errorf("the grant of the refused operation id: fresh %v, %v", got.Fresh, err)
	}
	rows, err := tx.QueryContext(ctx, "SELECT account FROM credits")
	if err != nil || !rows.Next() || rows.Err() != nil {
		t.Errorf("reading one's own write: %v", err)
	}
	if err := tx.Commit(); err != nil { // the rows are still open
		t.Fatal(err)
	}
	inspectClaims(t, s.Path(), "fresh", 1)
	if n := credits(t, s); n != 1 {
		t.Errorf("%d credits, want 1", n)
	}
	if _, err := s.Admit(ctx, presented(s, "next", pawl.NewOperationID(), justNow())); err != nil {
		t.Errorf("the next admission: %v", err)
	}
}

// A transaction that was ended behind its back confirms nothing and runs nothing
// more: each statement would be a commit of its own.
func TestTxEndedBehindItsBack(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, tx *sqlitestore.Tx) error{
		"the caller's own COMMIT": func(ctx context.Context, tx *sqlitestore.Tx) error {
			_, err := tx.ExecContext(ctx, "COMMIT")
			return err
		},
		"the caller's own ROLLBACK": func(ctx context.Context, tx *sqlitestore.Tx) error {
			_, err := tx.ExecContext(ctx, "ROLLBACK")
			return err
		},
		"a conflict clause": func(ctx context.Context, tx *sqlitestore.Tx) error {
			if err := credit(ctx, tx, "twice"); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "INSERT OR ROLLBACK INTO credits (account, cents) VALUES ('twice', 1)")
			if err == nil {
				return errors.New("one account twice")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), shop(t, nil)
			tx, err := s.BeginTx(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			if err := end(ctx, tx); err != nil {
				t.Fatal(err)
			}
			before := credits(t, s)
			if err := credit(ctx, tx, "late"); !errors.Is(err, pawl.ErrUnavailable) {
				t.Errorf("a statement: %v", err)
			}
			if _, err := s.AdmitTx(ctx, tx, presented(s, "g", pawl.NewOperationID(), justNow())); !errors.Is(err, pawl.ErrNotConfirmed) {
				t.Errorf("an admission: %v, want ErrNotConfirmed", err)
			}
			if err := tx.Commit(); !errors.Is(err, pawl.ErrNotConfirmed) {
				t.Errorf("the commit: %v, want ErrNotConfirmed", err)
			}
			tx.Rollback()
			inspectClaims(t, s.Path(), "g", 0)
			if after := credits(t, s); after != before {
				t.Errorf("%d credits, before %d", after, before)
			}
			if _, err := s.Admit(ctx, presented(s, "next", pawl.NewOperationID(), justNow())); err != nil {
				t.Errorf("the next admission: %v", err)
			}
		})
	}
}

// A transaction that is not ended in time is rolled back, and gives the write
// lock back to those who wait.
func TestTxTimesOut(t *testing.T) {
	for name, o := range map[string]*sqlitestore.Options{
		"its own time": {TxTimeout: 20 * time.Millisecond}, "the caller's": {TxTimeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(t, o)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tx, err := s.BeginTx(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if o.TxTimeout == time.Minute {
				defer cancel()
				if err := credit(t.Context(), tx, "A-1187"); err != nil {
					t.Fatal(err)
				}
				cancel()
			}
			// This one waits until the transaction is over.
			if _, err := s.Admit(t.Context(), presented(s, "next", pawl.NewOperationID(), justNow())); err != nil {
				t.Errorf("who waited: %v", err)
			}
			if _, err := s.AdmitTx(t.Context(), tx, presented(s, "g", pawl.NewOperationID(), justNow())); !errors.Is(err, pawl.ErrNotConfirmed) {
				t.Errorf("an admission: %v, want ErrNotConfirmed", err)
			}
			if err := tx.Commit(); err == nil {
				t.Error("it was committed")
			}
			if n := credits(t, s); n != 0 {
				t.Errorf("%d credits", n)
			}
		})
	}
}

// A statement under way is interrupted at the end of the transaction's time.
func TestTxInterruptsItsStatements(t *testing.T) {
	s := shop(t, &sqlitestore.Options{TxTimeout: 50 * time.Millisecond})
	tx, err := s.BeginTx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.ExecContext(t.Context(), `WITH RECURSIVE endless(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM endless)
		INSERT INTO credits (account, cents) SELECT 'endless', n FROM endless WHERE n < 0`)
	if err == nil {
		t.Error("an endless statement ended")
	}
	if err := tx.Commit(); err == nil {
		t.Error("it was committed")
	}
	if _, err := s.Admit(t.Context(), presented(s, "next", pawl.NewOperationID(), justNow())); err != nil {
		t.Errorf("the next admission: %v", err)
	}
}

// A commit that is not acknowledged is not confirmed, and the same call tells
// what became of it [A3, A6].
func TestTxCommitIsLost(t *testing.T) {
	lost := errors.New("the answer was lost")
	s, err := sqlitestore.OpenHooked(t.Context(), filepath.Join(t.TempDir(), "pawl.db"), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := presented(s, "g", pawl.NewOperationID(), justNow())
	tx, err := s.BeginTx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AdmitTx(t.Context(), tx, a); err != nil {
		t.Fatal(err)
	}
	s.LoseNextEnd(lost)
	if err := tx.Commit(); !errors.Is(err, pawl.ErrNotConfirmed) || !errors.Is(err, lost) {
		t.Errorf("%v, want ErrNotConfirmed", err)
	}
	if got, err := s.Admit(t.Context(), a); err != nil || got.Fresh {
		t.Errorf("the same again: fresh %v, %v", got.Fresh, err)
	}
}

// Who waits for a transaction and goes leaves no lock behind; a transaction of
// another store is refused; Close waits for one that is open.
func TestTxAndOthers(t *testing.T) {
	s, other := shop(t, nil), shop(t, nil)
	tx, err := s.BeginTx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		_, err := s.BeginTx(ctx)
		waiting <- err
	}()
	s.AwaitWaiting(t, 1)
	cancel()
	if err := <-waiting; pawl.ReasonOf(err) != pawl.ReasonCancelled {
		t.Errorf("who went: %v", err)
	}
	if _, err := other.AdmitTx(t.Context(), tx, presented(other, "g", pawl.NewOperationID(), justNow())); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("a transaction of another store: %v", err)
	}
	closing := make(chan error, 1)
	go func() { closing <- s.Close() }()
	if err := credit(t.Context(), tx, "A-1187"); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if err := <-closing; err != nil {
		t.Error(err)
	}
	if _, err := s.BeginTx(t.Context()); pawl.ReasonOf(err) != pawl.ReasonClosed {
		t.Errorf("after Close: %v", err)
	}
	if n := credits(t, s); n != 1 {
		t.Errorf("%d credits", n)
	}
}

// ExampleStore_BeginTx applies a credit and admits the grant for it in one
// commit: there is no state in which one of the two is true.
func ExampleStore_BeginTx() {
	ctx := context.Background()
	dir, cleanUp := exampleFolder()
	defer cleanUp()
	store, err := sqlitestore.Open(ctx, filepath.Join(dir, "shop.db"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	apply := func(a pawl.Admission) error {
		tx, err := store.BeginTx(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after Commit
		admitted, err := store.AdmitTx(ctx, tx, a)
		if err != nil {
			return err // refused: nothing is written
		}
		if !admitted.Fresh {
			return nil // applied by an earlier attempt
		}
		if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS credits (cents INTEGER)"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO credits VALUES (25000)"); err != nil {
			return err
		}
		_, err = store.SettleTx(ctx, tx, pawl.Evidence{
			ID: a.OperationID, Lock: a.Lock(), Outcome: pawl.Succeeded("applied"), Token: admitted.Owner.Token,
		})
		if err != nil {
			return err
		}
		return tx.Commit() // only now is anything true
	}

	a := presented(store, "g-41c9", pawl.NewOperationID(), justNow())
	fmt.Println(apply(a))
	fmt.Println(apply(a)) // a retry
	a.OperationID = pawl.NewOperationID()
	fmt.Println(errors.Is(apply(a), pawl.ErrRefused)) // another operation under the same grant
	// Output:
	// <nil>
	// <nil>
	// true
}
