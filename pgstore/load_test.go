package pgstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// TestCase_CC8_PurgeUnderLoad purges very many expired refusal records while
// admissions go on, which are measured alone and under the purge in turns, on the
// same tables. Purging stops in the middle, as if its process had been killed, and
// another instance resumes it; everything due goes, nothing else does, and no
// admission fails [P4]. The log tells how much slower admissions were.
func TestCase_CC8_PurgeUnderLoad(t *testing.T) {
	rows := sized(t, "PAWL_ROWS", 5000)
	tb := mustTables(t, pgtest.Shared(t, pgtest.Newest(t)).Database(t))
	s, purger := tb.mustOpen(t, Options{}), tb.mustOpen(t, Options{})
	tb.mustExec(t, fmt.Sprintf(`INSERT INTO @@.claims (issuer, namespace, grant_id, operation_id, claimed_at, retain_until)
		SELECT 'old', '', n::text, gen_random_uuid(), now() - interval '2 days', now() - interval '1 day' FROM generate_series(1, %d) AS n`, rows))
	tb.mustExec(t, "ANALYZE @@.claims")
	const turns = 10
	purged := 0
	var alone, under []time.Duration
	for turn := range turns {
		enough := make(chan struct{})
		alone = append(alone, admitDuring(t, s, func(n int) {
			if n == max(50, rows/250) {
				close(enough)
			}
		}, func() { <-enough })...)
		by := purger
		if turn >= turns/2 {
			by = s // the one before is as good as killed
		}
		under = append(under, admitDuring(t, s, func(int) {}, func() {
			purged = purgeUntil(t, by, purged, rows*(turn+1)/turns)
		})...)
	}
	if purged != rows {
		t.Errorf("%d of %d due refusal records were purged", purged, rows)
	}
	if n := tb.count(t, "SELECT count(*) FROM @@.claims"); n != len(alone)+len(under) {
		t.Errorf("%d refusal records are left of %d fresh admissions", n, len(alone)+len(under))
	}
	t.Logf("%d rows: p50 %v and p99 %v alone (%d), p50 %v and p99 %v under purge (%d): p99 %.2f times", rows,
		quantile(alone, 50), quantile(alone, 99), len(alone), quantile(under, 50), quantile(under, 99), len(under),
		float64(quantile(under, 99))/float64(quantile(alone, 99)))
}

// purgeUntil purges in batches until so many rows are gone or nothing is due.
func purgeUntil(t *testing.T, s *Store, purged, until int) int {
	t.Helper()
	for purged < until {
		r, err := s.Purge(t.Context(), pawl.PurgeBatch{})
		if err != nil || r.Held != "" {
			t.Errorf("a purge: %v, held %q", err, r.Held)
			return purged
		}
		purged += r.Refusals
		if !r.More {
			break
		}
	}
	return purged
}

// admitDuring admits fresh grants as fast as four callers can while f runs, tells
// count of each, and returns how long they took.
func admitDuring(t *testing.T, s *Store, count func(n int), f func()) (took []time.Duration) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				begun := time.Now()
				got, err := s.Admit(t.Context(), admissionOf(someGrant(s.realm)))
				if err != nil || !got.Fresh {
					t.Errorf("under load: fresh %t, %v", got.Fresh, err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(begun))
				count(len(took))
				mu.Unlock()
			}
		})
	}
	f()
	stop()
	callers.Wait()
	return took
}

func quantile(took []time.Duration, percent int) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*percent/100]
}

// TestNothingOutlivesClose: every goroutine has an owner that waits for it, also
// one whose caller left.
func TestNothingOutlivesClose(t *testing.T) {
	dsn := pgtest.Shared(t, pgtest.Newest(t)).Database(t)
	tb := mustTables(t, dsn)
	before := goleak.IgnoreCurrent()
	s, err := tb.openWith(t.Context(), Options{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
			defer cancel()
			_, _ = s.Admit(ctx, admissionOf(someGrant(s.realm))) // what it says is another test's affair
		})
	}
	callers.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}
