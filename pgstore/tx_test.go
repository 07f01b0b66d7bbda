package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// callersTx is a transaction of a caller's own, in one of the two forms.
type callersTx struct {
	admit    func(pawl.Admission) (pawl.Admitted, error)
	reserve  func(pawl.Reservation) (pawl.Admitted, error)
	settle   func(pawl.Evidence) (pawl.Settlement, error)
	exec     func(sql string) error
	commit   func() error
	rollback func() error
}

// txForms begins transactions on pgx and on database/sql, with an isolation level
// or "" for the default.
func txForms(t *testing.T, tb *tables, s *Store) map[string]func(isolation string) callersTx {
	t.Helper()
	db, err := sql.Open("pgx", tb.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := pgx.Connect(t.Context(), tb.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	ctx := t.Context()
	return map[string]func(string) callersTx{
		"pgx": func(isolation string) callersTx {
			tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.TxIsoLevel(isolation)})
			if err != nil {
				t.Fatal(err)
			}
			return callersTx{
				admit:    func(a pawl.Admission) (pawl.Admitted, error) { return s.AdmitTx(ctx, tx, a) },
				reserve:  func(r pawl.Reservation) (pawl.Admitted, error) { return s.ReserveTx(ctx, tx, r) },
				settle:   func(e pawl.Evidence) (pawl.Settlement, error) { return s.SettleTx(ctx, tx, e) },
				exec:     func(sql string) error { _, err := tx.Exec(ctx, tb.named(sql)); return err },
				commit:   func() error { return tx.Commit(ctx) },
				rollback: func() error { return tx.Rollback(ctx) },
			}
		},
		"database/sql": func(isolation string) callersTx {
			levels := map[string]sql.IsolationLevel{"serializable": sql.LevelSerializable, "repeatable read": sql.LevelRepeatableRead}
			tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: levels[isolation]})
			if err != nil {
				t.Fatal(err)
			}
			return callersTx{
				admit:    func(a pawl.Admission) (pawl.Admitted, error) { return s.AdmitSQLTx(ctx, tx, a) },
				reserve:  func(r pawl.Reservation) (pawl.Admitted, error) { return s.ReserveSQLTx(ctx, tx, r) },
				settle:   func(e pawl.Evidence) (pawl.Settlement, error) { return s.SettleSQLTx(ctx, tx, e) },
				exec:     func(sql string) error { _, err := tx.ExecContext(ctx, tb.named(sql)); return err },
				commit:   tx.Commit,
				rollback: tx.Rollback,
			}
		},
	}
}

// bind bounds a caller's transaction, as the store demands.
func (c callersTx) bind(t *testing.T, v pgtest.Version) callersTx {
	t.Helper()
	setting := "transaction_timeout"
	if v.Major < 17 {
		setting = "statement_timeout"
	}
	if err := c.exec("SET LOCAL " + setting + " = '5s'"); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSameTransaction: admission, the business's write and the outcome are one
// commit, in both forms; and none of them is without it [A2].
func TestSameTransaction(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		tb := mustTables(t, dsn)
		tb.mustExec(t, "CREATE TABLE @@.credits (operation uuid PRIMARY KEY, amount text NOT NULL)")
		s := tb.mustOpen(t, Options{})
		for form, begin := range txForms(t, tb, s) {
			t.Run(form, func(t *testing.T) {
				for _, ending := range []string{"rollback", "commit"} {
					a := admissionOf(someGrant(s.realm))
					a.Caller.Scopes = []string{"b", "a"}
					tx := begin("").bind(t, v)
					own, err := tx.admit(a)
					if err != nil || !own.Fresh || own.Owner.Token == "" {
						t.Fatalf("an admission: fresh %t, %v", own.Fresh, err)
					}
					if err := tx.exec(fmt.Sprintf("INSERT INTO @@.credits VALUES ('%s', '250.00')", a.OperationID)); err != nil {
						t.Fatal(err)
					}
					got, err := tx.settle(pawl.Evidence{ID: a.OperationID, Lock: own.Operation.Lock, Outcome: pawl.Succeeded("cr_1"), Token: own.Owner.Token})
					if err != nil || got.Disposition != pawl.Applied || got.Operation.Status != pawl.StatusSucceeded {
						t.Fatalf("the outcome: %s %v, %v", got.Disposition, got.Operation.Status, err)
					}
					if again, err := tx.admit(a); err != nil || again.Fresh || len(again.Operation.Caller.Scopes) != 2 {
						t.Errorf("the admission again in the same transaction: fresh %t, %v", again.Fresh, err)
					}
					if _, err := s.Get(t.Context(), a.OperationID, pawl.AsOperator()); !errors.Is(err, pawl.ErrNotFound) {
						t.Errorf("before the commit: %v, want not found", err)
					}
					want := 0
					if ending == "commit" {
						want, err = 1, tx.commit()
					} else {
						err = tx.rollback()
					}
					if err != nil {
						t.Fatal(err)
					}
					n := tb.count(t, `SELECT count(*) FROM @@.operations AS o JOIN @@.claims AS c ON c.operation_id = o.id
						JOIN @@.credits AS b ON b.operation = o.id JOIN @@.entries AS e ON e.operation_id = o.id WHERE o.id = $1`, a.OperationID.String())
					if n != want {
						t.Errorf("after the %s there are %d of claim, operation, credit and entry, want %d", ending, n, want)
					}
					if own, err := s.Admit(t.Context(), a); err != nil || own.Fresh != (ending == "rollback") {
						t.Errorf("after the %s the admission: fresh %t, %v", ending, own.Fresh, err)
					}
				}
			})
		}
	})
}

// TestRefusalInTransaction: after every refusal the caller's transaction is usable
// and holds what it held before [A10].
func TestRefusalInTransaction(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		tb := mustTables(t, dsn)
		tb.mustExec(t, "CREATE TABLE @@.credits (note text)")
		s := tb.mustOpen(t, Options{})
		used := admissionOf(someGrant(s.realm))
		mustAdmit(t, s, used)
		taken := admissionOf(someGrant(s.realm))
		taken.OperationID = used.OperationID // breaks a rule of uniqueness inside the transaction [A7]
		elsewhere := admissionOf(someGrant("another realm"))
		held := someReservation()
		if _, err := s.Reserve(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		held.Caller.Generation = "2"
		for form, begin := range txForms(t, tb, s) {
			tx := begin("").bind(t, v)
			if err := tx.exec("INSERT INTO @@.credits VALUES ('before')"); err != nil {
				t.Fatal(err)
			}
			_, err := tx.admit(admissionOf(used.Grant))
			wantErr(t, form+": a used grant", err, pawl.ErrRefused, pawl.ReasonUsed)
			_, err = tx.admit(taken)
			wantErr(t, form+": a taken operation id", err, pawl.ErrRefused, pawl.ReasonOperationTaken)
			_, err = tx.admit(elsewhere)
			wantErr(t, form+": another realm", err, pawl.ErrRefused, pawl.ReasonRealm)
			_, err = tx.admit(pawl.Admission{})
			wantErr(t, form+": nothing", err, pawl.ErrInvalid, "")
			_, err = tx.reserve(held)
			wantErr(t, form+": another lock", err, pawl.ErrMismatch, pawl.ReasonLock)
			_, err = tx.settle(pawl.Evidence{ID: pawl.NewOperationID(), Trusted: true})
			wantErr(t, form+": no operation", err, pawl.ErrNotFound, pawl.ReasonAbsent)
			_, err = tx.settle(pawl.Evidence{ID: used.OperationID, Outcome: pawl.Failed("no")})
			wantErr(t, form+": a stranger's evidence", err, pawl.ErrNotFound, pawl.ReasonAbsent)
			own, err := tx.reserve(someReservation())
			if err != nil || !own.Fresh {
				t.Errorf("%s: after refusals a reservation: fresh %t, %v", form, own.Fresh, err)
			}
			if err := tx.commit(); err != nil {
				t.Fatalf("%s: after refusals the transaction does not commit: %v", form, err)
			}
		}
		if n := tb.count(t, "SELECT count(*) FROM @@.credits"); n != 2 {
			t.Errorf("%d of the callers' writes were committed, want 2", n)
		}
	})
}

// TestUnsafeTransaction: a caller's transaction that is not Read Committed, not
// bounded or not durable admits nothing and stays usable [A11, P1].
func TestUnsafeTransaction(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		tb := mustTables(t, dsn)
		s := tb.mustOpen(t, Options{})
		for form, begin := range txForms(t, tb, s) {
			for name, tx := range map[string]func() callersTx{
				"no bound":        func() callersTx { return begin("") },
				"repeatable read": func() callersTx { return begin("repeatable read").bind(t, v) },
				"serializable":    func() callersTx { return begin("serializable").bind(t, v) },
				"asynchronous": func() callersTx {
					tx := begin("").bind(t, v)
					if err := tx.exec("SET LOCAL synchronous_commit = off"); err != nil {
						t.Fatal(err)
					}
					return tx
				},
				"no warnings": func() callersTx {
					tx := begin("").bind(t, v)
					if err := tx.exec("SET LOCAL client_min_messages = error"); err != nil {
						t.Fatal(err)
					}
					return tx
				},
			} {
				tx := tx()
				a := admissionOf(someGrant(s.realm))
				_, err := tx.admit(a)
				wantErr(t, form+", "+name, err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
				_, err = tx.reserve(someReservation())
				wantErr(t, form+", "+name+", a reservation", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
				if err := tx.exec("SELECT 1"); err != nil {
					t.Errorf("%s, %s: the transaction is not usable: %v", form, name, err)
				}
				if err := tx.commit(); err != nil {
					t.Errorf("%s, %s: %v", form, name, err)
				}
				mustAdmit(t, s, a)
			}
		}
	})
}

// TestTransactionElsewhere: a transaction in a database that holds another store,
// or none, admits nothing [A1].
func TestTransactionElsewhere(t *testing.T) {
	v := pgtest.Newest(t)
	server := pgtest.Shared(t, v)
	here, there := mustTables(t, server.Database(t)), mustTables(t, server.Database(t))
	there.mustExec(t, "ALTER SCHEMA @@ RENAME TO "+here.schema)
	there.schema = here.schema
	s := here.mustOpen(t, Options{})
	there.mustOpen(t, Options{})
	for form, begin := range txForms(t, there, s) {
		tx := begin("").bind(t, v)
		_, err := tx.admit(admissionOf(someGrant(s.realm)))
		wantErr(t, form+": another store", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
		if err := tx.rollback(); err != nil {
			t.Error(err)
		}
	}
	nowhere := &tables{dsn: server.Database(t), schema: here.schema, side: &side{}}
	for form, begin := range txForms(t, nowhere, s) {
		tx := begin("").bind(t, v)
		if _, err := tx.admit(admissionOf(someGrant(s.realm))); err == nil {
			t.Errorf("%s: admitted in a database without tables", form)
		}
		if err := tx.exec("SELECT 1"); err != nil {
			t.Errorf("%s: the transaction is not usable: %v", form, err)
		}
		if err := tx.rollback(); err != nil {
			t.Error(err)
		}
	}
	s2 := here.mustOpen(t, Options{})
	if err := s2.Close(); err != nil {
		t.Fatal(err)
	}
	for form, begin := range txForms(t, here, s2) {
		tx := begin("").bind(t, v)
		_, err := tx.admit(admissionOf(someGrant(s.realm)))
		wantErr(t, form+": a closed store", err, pawl.ErrNotConfirmed, pawl.ReasonClosed)
		_ = tx.rollback()
	}
}
