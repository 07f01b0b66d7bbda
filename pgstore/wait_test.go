package pgstore

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// waiting is a store on a clock that the test moves, and a transaction that makes
// it wait.
type waiting struct {
	tables *tables
	s      *Store
	tx     pgx.Tx
}

func startWaiting(t *testing.T, dsn string) *waiting {
	t.Helper()
	now := time.Now().Truncate(time.Microsecond)
	tb, err := newTables(t.Context(), dsn, &now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.drop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w := &waiting{tables: tb, s: tb.mustOpen(t, Options{})}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if w.tx, err = conn.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// hold runs a statement in the transaction that the store will wait for.
func (w *waiting) hold(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := w.tx.Exec(t.Context(), w.tables.named(sql), args...); err != nil {
		t.Fatal(err)
	}
}

// during runs f, lets ten seconds pass while it waits, rolls the transaction back
// and returns the store's time of after the wait.
func (w *waiting) during(t *testing.T, f func()) time.Time {
	t.Helper()
	var wait sync.WaitGroup
	wait.Go(f)
	for w.tables.count(t, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'pawl' AND wait_event_type = 'Lock'`) == 0 {
	}
	if err := w.tables.advance(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := w.tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	facts, err := w.s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return facts.Now
}

// A held grant key: the row that a competitor is about to commit or roll back.
const heldClaim = `INSERT INTO @@.claims (issuer, namespace, grant_id, claimed_at, retain_until, revoked_by)
	VALUES ($1, '', $2, now(), now(), 'somebody')`

// TestCase_CC11_FallbackRetention: a revocation without a known expiry, written
// after ten seconds of waiting for the key, is retained from its write [R3].
func TestCase_CC11_FallbackRetention(t *testing.T) {
	eachVersion(t, func(t *testing.T, _ pgtest.Version, dsn string) {
		w := startWaiting(t, dsn)
		key := someGrant("").Key
		w.hold(t, heldClaim, key.Issuer, key.ID)
		now := w.during(t, func() {
			state, err := w.s.Revoke(t.Context(), pawl.Revocation{Key: key, ProvenElsewhere: true, By: "auditor"})
			if err != nil || state != pawl.Revoked {
				t.Errorf("a revocation that waited: %q, %v", state, err)
			}
		})
		want := w.s.policy.RefusalRetention(time.Time{}, "", now)
		if n := w.tables.count(t, "SELECT count(*) FROM @@.claims WHERE retain_until = $1 AND claimed_at = $2", want, now); n != 1 {
			t.Error("it is not retained from the write")
		}
	})
}

// TestCase_CA13_WinnerRollsBack: the loser that waited is admitted, and its lease
// runs from after the wait [A11, O4].
func TestCase_CA13_WinnerRollsBack(t *testing.T) {
	eachVersion(t, func(t *testing.T, _ pgtest.Version, dsn string) {
		w := startWaiting(t, dsn)
		a := admissionOf(someGrant(w.s.realm))
		w.hold(t, heldClaim, a.Grant.Key.Issuer, a.Grant.Key.ID)
		var got pawl.Admitted
		now := w.during(t, func() { got = mustAdmit(t, w.s, a) })
		if !got.Operation.CreatedAt.Equal(now) || !got.Owner.LeaseUntil.Equal(now.Add(a.Lease)) {
			t.Errorf("created %v with a lease until %v; want %v and %v later", got.Operation.CreatedAt, got.Owner.LeaseUntil, now, a.Lease)
		}
	})
}

// TestDeadlinePassesInTheWait: the deadline is that of the statement's beginning;
// the row is retained all the same [A4].
func TestDeadlinePassesInTheWait(t *testing.T) {
	w := startWaiting(t, pgtest.Shared(t, pgtest.Newest(t)).Database(t))
	facts, err := w.s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := admissionOf(someGrant(w.s.realm))
	a.Grant.ExpiresAt = facts.Now.Add(time.Second)
	w.hold(t, heldClaim, a.Grant.Key.Issuer, a.Grant.Key.ID)
	w.during(t, func() { mustAdmit(t, w.s, a) })
	_, err = w.s.Admit(t.Context(), admissionOf(a.Grant))
	wantErr(t, "ten seconds later", err, pawl.ErrRefused, pawl.ReasonExpired)
}

// TestCase_CD16_TakeoverWaits: a takeover that waited ten seconds has all of its
// five seconds [O2]; so have a renewal [O3] and the check before a create call [O5].
func TestCase_CD16_TakeoverWaits(t *testing.T) {
	eachVersion(t, func(t *testing.T, _ pgtest.Version, dsn string) {
		w := startWaiting(t, dsn)
		own := mustAdmit(t, w.s, admissionOf(someGrant(w.s.realm)))
		if err := w.tables.advance(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		w.hold(t, "LOCK TABLE @@.operations IN EXCLUSIVE MODE")
		var taken []pawl.TakenOver
		now := w.during(t, func() {
			var err error
			taken, err = w.s.TakeOver(t.Context(), pawl.TakeOver{OtherKinds: 5 * time.Second, Limit: 1, By: "recovery"})
			if err != nil {
				t.Errorf("a takeover that waited: %v", err)
			}
		})
		if len(taken) != 1 || !taken[0].Owner.LeaseUntil.Equal(now.Add(5*time.Second)) || !taken[0].Owner.AsOf.Equal(now) {
			t.Fatalf("taken over: %+v; want one with a lease of five seconds from %v", taken, now)
		}
		renewed := startWaiting(t, dsn)
		own = mustAdmit(t, renewed.s, admissionOf(someGrant(renewed.s.realm)))
		renewed.hold(t, "SELECT FROM @@.operations WHERE id = $1 FOR UPDATE", own.Operation.ID.String())
		var lease pawl.Owner
		now = renewed.during(t, func() {
			var err error
			lease, err = renewed.s.Renew(t.Context(), pawl.Renewal{ID: own.Operation.ID, Token: own.Owner.Token, Lease: time.Minute})
			if err != nil {
				t.Errorf("a renewal that waited: %v", err)
			}
		})
		if !lease.LeaseUntil.Equal(now.Add(time.Minute)) {
			t.Errorf("renewed until %v, want a minute from %v", lease.LeaseUntil, now)
		}
	})
}

// TestLeaseEndsInTheWait: the check before a create call looks at the time of
// after the wait [O5].
func TestLeaseEndsInTheWait(t *testing.T) {
	w := startWaiting(t, pgtest.Shared(t, pgtest.Newest(t)).Database(t))
	a := admissionOf(someGrant(w.s.realm))
	a.Lease = 5 * time.Second
	own := mustAdmit(t, w.s, a)
	w.hold(t, "SELECT FROM @@.operations WHERE id = $1 FOR UPDATE", own.Operation.ID.String())
	w.during(t, func() {
		p, err := w.s.MaySubmit(t.Context(), own.Operation.ID, own.Owner.Token)
		wantErr(t, "a check whose lease ended while it waited", err, pawl.ErrFenced, pawl.ReasonLeaseOver)
		if p.Granted {
			t.Error("it was granted")
		}
	})
}
