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

// dueRows writes so many rows of which the retention is over, with ids like
// those that the library makes: operations' in the order of time, grants' in none.
var dueRows = map[string]func(t *testing.T, path string, rows int){
	"refusal records": func(t *testing.T, path string, rows int) {
		execute(t, path, fmt.Sprintf(`
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO pawl_claims (issuer, namespace, grant_id, operation_id, claimed_at, retain_until)
			SELECT 'issuer', '', lower(hex(randomblob(16))), randomblob(16), 1, 1000000 + i FROM n`, rows))
	},
	"operations with logs": func(t *testing.T, path string, rows int) {
		execute(t, path, fmt.Sprintf(`
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO pawl_operations (operation_id, issuer, namespace, grant_id, kind, details,
				authority, principal, tenant, scopes, generation, fingerprint, binding, created_at, submit_by,
				status, fence, owned_since, lease_until, settled_at, entries, result, result_digest)
			SELECT unhex(printf('%%012x', i) || '70' || hex(randomblob(9))), 'issuer', '', lower(hex(randomblob(16))),
				'credit.create', '{"account":"A-1187","amount":"250.00"}', '', 'ana', '', '', '', randomblob(32), randomblob(32),
				i, i + 10, 60, 1, i, i + 20, i + 30, 3, x'', randomblob(32) FROM n`, rows))
		execute(t, path, `
			INSERT INTO pawl_entries (operation_id, seq, key, type, at, last_at, count, fence, source, verdict,
				disposition, contradiction, mismatch_of, reason)
			SELECT o.operation_id, s.value, 'k' || s.value, 'evidence', o.created_at, o.created_at, 1, 1, 'owner', 'success',
				'applied', 0, '', '' FROM pawl_operations AS o, json_each('[1,2,3]') AS s`)
	},
}

// TestCase_CC8_PurgeUnderLoad deletes very many rows that are due while
// admissions go on, which are measured with a purge and without in turns, on the
// same tables. All that is due goes and nothing else [P1, P2, P4]. PAWL_ROWS sets
// how many; a million is the full form and takes half an hour (-timeout 1h).
func TestCase_CC8_PurgeUnderLoad(t *testing.T) {
	rows := 2000
	if n, err := strconv.Atoi(os.Getenv("PAWL_ROWS")); err == nil {
		rows = n
	}
	for name, write := range dueRows {
		t.Run(name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
			write(t, s.Path(), rows)
			var total pawl.PurgeReport
			var without, with []time.Duration
			for total.More = true; total.More; {
				without = append(without, admitWhile(t, s, 250, func() bool { return false })...)
				with = append(with, admitWhile(t, s, 1000, func() bool {
					r, err := s.Purge(t.Context(), pawl.PurgeBatch{Limit: 50})
					if err != nil {
						t.Error(err)
					}
					total = total.Add(r)
					return r.More
				})...)
			}
			if got := total.Refusals + total.Operations; got != rows || total.Overdue != 0 || total.Held != "" {
				t.Errorf("%+v, want %d rows deleted and none overdue", total, rows)
			}
			inspect(t, s.Path(), len(without)+len(with))
			slices.Sort(without)
			slices.Sort(with)
			t.Logf("%d rows: %d admissions took %v at the median and %v at p99 without purge, %d took %v and %v with it: p99 %.2f times", rows,
				len(without), at(without, 50), at(without, 99), len(with), at(with, 50), at(with, 99),
				float64(at(with, 99))/float64(at(without, 99)))
		})
	}
}

// admitWhile admits with eight callers, each every five milliseconds, at least so
// many grants, and meanwhile does something else as long as there is more of it.
// It returns how long each admission took.
func admitWhile(t *testing.T, s *sqlitestore.Store, atLeast int, more func() bool) (took []time.Duration) {
	t.Helper()
	const callers = 8
	enough := make(chan struct{})
	var others, all sync.WaitGroup
	others.Go(func() {
		for more() {
			select {
			case <-enough:
				return
			default:
			}
		}
	})
	var mu sync.Mutex
	for range callers {
		all.Go(func() {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for range atLeast / callers {
				<-tick.C
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
	all.Wait()
	close(enough)
	others.Wait()
	return took
}

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[len(sorted)*percent/100].Round(time.Microsecond)
}

// TestCase_CC8_PurgeKilled: a process that purges is killed, again and again;
// what it had told to be gone is gone, nothing that is not due is, and another
// one deletes the rest [P4].
func TestCase_CC8_PurgeKilled(t *testing.T) {
	const kept = 10
	for name, write := range dueRows {
		t.Run(name, func(t *testing.T) {
			const rows = 5000
			s, issued := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil), justNow()
			for n := range kept {
				if _, err := s.Admit(t.Context(), presented(s, fmt.Sprint("g-", n), pawl.NewOperationID(), issued)); err != nil {
					t.Fatal(err)
				}
			}
			write(t, s.Path(), rows)
			told := 0
			for range 3 {
				p := begin(t, task{Do: "purge", Path: s.Path()})
				for range 5 {
					told += p.hears().Deleted
				}
				p.kill()
			}
			rest := 0
			for more := true; more; {
				r, err := s.Purge(t.Context(), pawl.PurgeBatch{})
				if err != nil {
					t.Fatal(err)
				}
				rest, more = rest+r.Refusals+r.Operations, r.More
			}
			t.Logf("%d rows: %d told to be deleted before a kill, %d deleted after the last", rows, told, rest)
			if told == 0 || told+rest > rows {
				t.Errorf("%d and %d rows deleted, of %d", told, rest, rows)
			}
			inspect(t, s.Path(), kept)
		})
	}
}

// A long log that retention deletes leaves a word of it, not one for every few of
// its entries [M9].
func TestLongLogLeavesOneEntry(t *testing.T) {
	now := time.Now()
	ts := pawl.DefaultTimings()
	ts.RetainAttempts = 24 * time.Hour
	s, err := sqlitestore.OpenHooked(t.Context(), filepath.Join(t.TempDir(), "pawl.db"), &sqlitestore.Options{Timings: &ts}, func() any { return now.UnixMicro() }, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := pawl.NewOperationID()
	own, err := s.Admit(t.Context(), presented(s, "g", id, justNow()))
	if err == nil {
		_, err = s.Record(t.Context(), pawl.Statement{ID: id, Token: own.Owner.Token, Outcome: pawl.Succeeded("done")})
	}
	if err != nil {
		t.Fatal(err)
	}
	execute(t, s.Path(), `
		WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 299)
		INSERT INTO pawl_entries (operation_id, seq, key, type, at, last_at, count, fence, source, verdict,
			disposition, contradiction, mismatch_of, reason)
		SELECT operation_id, i, 'k' || i, 'evidence', created_at, created_at, 1, 1, 'person', 'success', 'duplicate', 0, '', ''
		FROM pawl_operations, n`)
	execute(t, s.Path(), "UPDATE pawl_operations SET entries = 299, log_kept = 1, settled_at = created_at")
	now = now.Add(ts.RetainAttempts + time.Hour)
	var total pawl.PurgeReport
	for total.More = true; total.More; {
		r, err := s.Purge(t.Context(), pawl.PurgeBatch{})
		if err != nil {
			t.Fatal(err)
		}
		total = total.Add(r)
	}
	log, err := s.Log(t.Context(), id, pawl.AsOperator())
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, e := range log.Entries {
		if e.Type == pawl.EntryPurge {
			left++
		}
	}
	if total.Attempts < 200 || left != 1 {
		t.Errorf("%d log entries were deleted and %d tell of it, want 200 or more and 1", total.Attempts, left)
	}
}
