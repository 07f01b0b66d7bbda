package pgstore

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// gateSQL holds an admission's claim between the check of the deadline and the
// check of the key, for as long as somebody holds the advisory lock. A lock on the
// table would hold it before both.
const gateSQL = `
CREATE FUNCTION @@.wait_here() RETURNS trigger LANGUAGE plpgsql AS
	$$BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END$$;
CREATE TRIGGER wait_here BEFORE INSERT ON @@.claims FOR EACH ROW EXECUTE FUNCTION @@.wait_here();
`

// withoutBound cuts the predicate of the bound out of an admission's statement.
func withoutBound(_ *tables, texts statements) {
	for _, name := range []statement{stmtAdmitToken, stmtAdmitStored, stmtReserve} {
		head, rest, _ := strings.Cut(texts[name], "AND CASE WHEN current_setting('server_version_num')")
		_, tail, _ := strings.Cut(rest, "AND m.admission_bound")
		texts[name] = head + tail
	}
}

// TestCase_CC6_DelayedAdmission holds an admission between the check of its
// deadline and the check of its key, while everything that could tell of the first
// admission is purged and archived [P1, P2].
//
// With the bound, the delayed one is aborted long before, and nothing is written.
// Without it, the admission is refused by itself and the purge keeps the record.
// Only with both guards taken out does the replay appear: then, and so, the test
// proves something.
func TestCase_CC6_DelayedAdmission(t *testing.T) {
	eachVersion(t, func(t *testing.T, _ pgtest.Version, dsn string) {
		t.Run("bound on: aborted, nothing written", func(t *testing.T) {
			d := startDelayed(t, dsn, nil)
			got, err := d.admitDelayed(t, func() { d.awaitAbort(t) }, func() pawl.PurgeReport { return d.purge(t) })
			wantErr(t, "the delayed admission", err, pawl.ErrNotConfirmed, pawl.ReasonUnreachable)
			if got.Fresh || d.report.Refusals != 1 {
				t.Errorf("fresh %t, %d refusal records purged; want false, 1", got.Fresh, d.report.Refusals)
			}
			d.wantNothing(t)
		})
		t.Run("bound off: refused by itself, and the purge is held", func(t *testing.T) {
			d := startDelayed(t, dsn, nil)
			d.unbind(t)
			_, err := d.s.Admit(t.Context(), admissionOf(d.grant))
			wantErr(t, "an admission without a bound", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
			d.pastRetention(t)
			if r := d.purge(t); r.Refusals != 0 || r.Held == "" || r.Overdue <= 0 {
				t.Errorf("%d refusal records purged, held %q, %v overdue; want 0, a reason, more than none", r.Refusals, r.Held, r.Overdue)
			}
		})
		t.Run("the admission's guard removed: the purge's still holds", func(t *testing.T) {
			d := startDelayed(t, dsn, withoutBound)
			d.unbind(t)
			got, err := d.admitDelayed(t, func() {}, func() pawl.PurgeReport { return d.purge(t) })
			if d.report.Refusals != 0 || d.report.Held == "" {
				t.Errorf("%d refusal records purged, held %q", d.report.Refusals, d.report.Held)
			}
			if err == nil || got.Fresh {
				t.Error("the delayed admission got through")
			}
		})
		t.Run("both guards removed: the replay appears", func(t *testing.T) {
			d := startDelayed(t, dsn, withoutBound)
			d.unbind(t)
			got, err := d.admitDelayed(t, func() {}, func() pawl.PurgeReport {
				r, err := d.s.purge(t.Context(), 100, "")
				if err != nil {
					t.Error(err)
				}
				return r
			})
			if err != nil || !got.Fresh {
				t.Errorf("without any guard: fresh %t, %v; want the grant admitted again, or this test proves nothing", got.Fresh, err)
			}
		})
	})
}

// delayed is a grant that was admitted once, on a clock that the test moves, and a
// second admission that will be held.
type delayed struct {
	tables *tables
	s      *Store
	grant  pawl.Grant
	report pawl.PurgeReport
}

func startDelayed(t *testing.T, dsn string, edit func(*tables, statements)) *delayed {
	t.Helper()
	now := time.Now()
	tb, err := newTables(t.Context(), dsn, &now)
	if err != nil {
		t.Fatal(err)
	}
	tb.mustExec(t, gateSQL)
	ts := pawl.DefaultTimings()
	ts.AdmissionBound = 300 * time.Millisecond
	s, err := tb.openWith(t.Context(), Options{Timings: &ts, AdmissionConns: 2, Conns: 1}, nil, edit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := tb.drop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	d := &delayed{tables: tb, s: s, grant: someGrant(s.realm)}
	mustAdmit(t, s, admissionOf(d.grant))
	return d
}

// unbind takes the bound off the admissions' sessions, as another client of a
// pooler might.
func (d *delayed) unbind(t *testing.T) {
	t.Helper()
	onEach(t, d.s.admissions, "SET statement_timeout = 0")
	if d.s.server.hasTransactionTimeout() {
		onEach(t, d.s.admissions, "SET transaction_timeout = 0")
	}
}

func (d *delayed) pastRetention(t *testing.T) {
	t.Helper()
	policy := d.s.timings
	if err := d.tables.advance(t.Context(), time.Hour+policy.Leeways[""]+policy.PurgeMargin+time.Minute); err != nil {
		t.Fatal(err)
	}
}

func (d *delayed) purge(t *testing.T) pawl.PurgeReport {
	t.Helper()
	r, err := d.s.Purge(t.Context(), pawl.PurgeBatch{})
	if err != nil {
		t.Error(err)
	}
	return r
}

// admitDelayed begins the second admission in time, holds it, waits for what must
// come before the purge, purges and archives past the retention, and lets it go.
func (d *delayed) admitDelayed(t *testing.T, before func(), purge func() pawl.PurgeReport) (got pawl.Admitted, err error) {
	t.Helper()
	holder, e := pgx.Connect(t.Context(), d.tables.dsn)
	if e != nil {
		t.Fatal(e)
	}
	defer holder.Close(context.Background())
	if _, e := holder.Exec(t.Context(), "SELECT pg_advisory_lock(4711)"); e != nil {
		t.Fatal(e)
	}
	var wait sync.WaitGroup
	wait.Go(func() { got, err = d.s.Admit(t.Context(), admissionOf(d.grant)) })
	d.awaitHeld(t)
	before()
	d.pastRetention(t)
	d.report = purge()
	d.tables.mustExec(t, "DELETE FROM @@.operations") // archived
	holder.Close(context.Background())
	wait.Wait()
	return got, err
}

const advisoryWaits = `SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
	WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()`

// awaitHeld returns when the admission waits in the trigger, its deadline checked
// and its key not.
func (d *delayed) awaitHeld(t *testing.T) {
	t.Helper()
	for d.tables.count(t, advisoryWaits) == 0 {
	}
}

// awaitAbort returns when the server has ended the admission.
func (d *delayed) awaitAbort(t *testing.T) {
	t.Helper()
	for d.tables.count(t, advisoryWaits) > 0 {
	}
}

func (d *delayed) wantNothing(t *testing.T) {
	t.Helper()
	if n := d.tables.count(t, "SELECT (SELECT count(*) FROM @@.claims) + (SELECT count(*) FROM @@.operations)"); n != 0 {
		t.Errorf("%d rows were written by an aborted admission", n)
	}
}

// TestCase_CC7_NoBound: where the bound was reset behind Pawl's back, refusal
// records stay and the report and the check say why; all other retention goes on
// [P2, P3].
func TestCase_CC7_NoBound(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		d := startDelayed(t, dsn, nil)
		issued := mustIssue(t, d.s)
		if err := d.tables.advance(t.Context(), 100*24*time.Hour); err != nil {
			t.Fatal(err)
		}
		d.unbind(t)
		r := d.purge(t)
		if r.Refusals != 0 || !strings.Contains(r.Held, "timeout") || r.More {
			t.Errorf("%d refusal records purged, held %q, more %t; want 0, a reason, no", r.Refusals, r.Held, r.More)
		}
		if r.Grants != 1 {
			t.Errorf("%d rows of grants purged, want 1: %v", r.Grants, issued.Grant.Key)
		}
		f, err := d.s.Check(t.Context())
		if err != nil || f.PurgeHeld == "" || f.Err() == nil {
			t.Errorf("check: held %q, %v; want a reason, and unsafe", f.PurgeHeld, err)
		}
		d.s.admissions.Reset() // new connections are pinned again
		if r := d.purge(t); r.Refusals != 1 || r.Held != "" {
			t.Errorf("with the bound back %d refusal records were purged, held %q; want 1", r.Refusals, r.Held)
		}
	})
}

// TestArchivedOperation: an operation may be deleted long before its grant is
// over. Its claim stays, and refuses alone, without the second barrier that the
// record was [P3]. With the claim gone, or with one that a loser may overwrite,
// the grant is admitted again: the test can fail.
func TestArchivedOperation(t *testing.T) {
	dsn := pgtest.Shared(t, pgtest.Newest(t)).Database(t)
	const conflict = "ON CONFLICT (issuer, namespace, grant_id) DO NOTHING"
	for name, wrong := range map[string]*variant{
		"as it is": nil,
		"the claim goes too": {
			name: "freed", statement: stmtDeleteOperations, cut: "DELETE FROM pawl.operations AS o",
			put: "WITH freed AS (DELETE FROM pawl.claims AS c WHERE c.operation_id = ANY ($1::uuid[])) DELETE FROM pawl.operations AS o",
		},
		"a loser overwrites": {
			name: "overwritten", statement: stmtAdmitToken, cut: conflict,
			put: strings.Replace(conflict, "NOTHING", "UPDATE SET operation_id = excluded.operation_id", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			tb, err := newTables(t.Context(), dsn, &now)
			if err != nil {
				t.Fatal(err)
			}
			ts := pawl.DefaultTimings()
			ts.KeyLifetime, ts.RetainOperations = time.Minute, time.Minute
			s, err := tb.openWith(t.Context(), Options{Timings: &ts}, nil, func(tb *tables, texts statements) {
				if wrong != nil {
					wrong.apply(t, tb, texts)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			a := admissionOf(someGrant(s.realm))
			own := mustAdmit(t, s, a)
			if _, err := s.Record(t.Context(), pawl.Statement{ID: a.OperationID, Token: own.Owner.Token, Outcome: pawl.Succeeded("done")}); err != nil {
				t.Fatal(err)
			}
			if err := tb.advance(t.Context(), 10*time.Minute); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Purge(t.Context(), pawl.PurgeBatch{}); err != nil || r.Operations != 1 || r.Refusals != 0 {
				t.Fatalf("a purge: %d operations, %d refusal records, %v; want 1, 0", r.Operations, r.Refusals, err)
			}
			got, err := s.Admit(t.Context(), admissionOf(a.Grant))
			if again := err == nil && got.Fresh; again != (wrong != nil) {
				t.Errorf("after its operation was deleted the grant is admitted: %t (%v)", again, err)
			}
		})
	}
}

// TestPurgePassesLockedRows: what somebody else holds is passed over, and is no
// reason to call for another batch at once: a purge that made no progress ends,
// still tells of what is stale, and goes on when the lock is gone [P4].
func TestPurgePassesLockedRows(t *testing.T) {
	now := time.Now()
	tb, err := newTables(t.Context(), pgtest.Shared(t, pgtest.Newest(t)).Database(t), &now)
	if err != nil {
		t.Fatal(err)
	}
	s := tb.mustOpen(t, Options{})
	a := admissionOf(someGrant(s.realm))
	own := mustAdmit(t, s, a)
	if _, err := s.Record(t.Context(), pawl.Statement{ID: a.OperationID, Token: own.Owner.Token, Outcome: pawl.Succeeded("done")}); err != nil {
		t.Fatal(err)
	}
	mustAdmit(t, s, admissionOf(someGrant(s.realm))) // never settled
	if err := tb.advance(t.Context(), 400*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), tb.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), tb.named("BEGIN; SELECT FROM @@.operations FOR KEY SHARE")); err != nil {
		t.Fatal(err)
	}
	var r pawl.PurgeReport
	for batch := 0; batch == 0 || r.More; batch++ {
		if r, err = s.Purge(t.Context(), pawl.PurgeBatch{}); err != nil || batch > 5 {
			t.Fatalf("batch %d: %+v, %v", batch, r, err)
		}
	}
	if r.Operations != 0 || r.Stale != 1 {
		t.Errorf("beside the lock %d operations were deleted and %d are stale, want 0 and 1", r.Operations, r.Stale)
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Purge(t.Context(), pawl.PurgeBatch{}); err != nil || r.Operations != 1 {
		t.Errorf("after the lock: %+v, %v, want 1 operation deleted", r, err)
	}
}
