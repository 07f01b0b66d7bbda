package sqlitestore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sqlitestore"
)

// TestCase_CC8_PurgeUnderLoad deletes very many expired refusal records, batch
// by batch, while admissions go on; it tells what that costs them [P4]. All that
// is due goes and nothing else [P1, P2]. PAWL_ROWS sets how many; a million is
// the full form.
func TestCase_CC8_PurgeUnderLoad(t *testing.T) {
	rows := 10_000
	if n, err := strconv.Atoi(os.Getenv("PAWL_ROWS")); err == nil {
		rows = n
	}
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	execute(t, s.Path(), fmt.Sprintf(`
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO pawl_claims (issuer, namespace, grant_id, operation_id, claimed_at, retain_until)
		SELECT 'old', '', printf('%%032x', i), randomblob(16), 1, 1000000 + i FROM n`, rows))
	without := admitFor(t, s, func() bool { return false })
	var total pawl.PurgeReport
	with := admitFor(t, s, func() bool {
		r, err := s.Purge(t.Context(), pawl.PurgeBatch{Limit: 500})
		if err != nil {
			t.Error(err)
			return false
		}
		total = total.Add(r)
		return r.More
	})
	if total.Refusals != rows || total.Overdue != 0 || total.Held != "" || total.Operations != 0 {
		t.Errorf("%+v, want %d refusal records deleted and none overdue", total, rows)
	}
	inspect(t, s.Path(), len(without)+len(with))
	t.Logf("%d rows: admissions took %v at the median and %v at p99 without purge, %v and %v with it", rows,
		at(without, 50), at(without, 99), at(with, 50), at(with, 99))
}

// admitFor admits with some callers until there is no more of something else to
// do, and at least a thousand times, and returns how long each took, sorted.
func admitFor(t *testing.T, s *sqlitestore.Store, more func() bool) (took []time.Duration) {
	t.Helper()
	done := make(chan struct{})
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					if n >= 125 {
						return
					}
				default:
				}
				began := time.Now()
				if _, err := s.Admit(t.Context(), admission(s, "credit.create", time.Hour)); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	for more() {
	}
	close(done)
	callers.Wait()
	slices.Sort(took)
	return took
}

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[len(sorted)*percent/100].Round(time.Microsecond)
}
