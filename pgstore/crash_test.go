package pgstore

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// ledger is what a process would know of its admissions: which were confirmed.
type ledger struct {
	progress  chan struct{} // takes one for each confirmed admission
	mu        sync.Mutex
	confirmed map[pawl.OperationID]pawl.Admission // answered "admitted"
	open      []pawl.Admission                    // not confirmed
}

// TestKilledServer kills the server like a power cut under load, again and again:
// nothing that was acknowledged is lost, no grant is admitted twice, and every
// unconfirmed admission can be asked about [A3, A6, A8].
func TestKilledServer(t *testing.T) {
	server := pgtest.Start(t, pgtest.Newest(t), nil)
	tb := mustTables(t, server.Superuser())
	s := tb.mustOpen(t, Options{AdmissionConns: 4, Conns: 2})
	l := &ledger{progress: make(chan struct{}), confirmed: map[pawl.OperationID]pawl.Admission{}}
	for range sized(t, "PAWL_KILLS", 4) {
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for range 8 {
			load.Go(func() { l.admitUntil(ctx, t, s) })
		}
		for range 20 { // the blow falls in the middle of the work
			<-l.progress
		}
		server.Kill(t)
		stop()
		load.Wait()
		server.Restart(t)
		awaitReachable(t, s)
	}
	for id, a := range l.confirmed {
		got, err := ask(t, s, a)
		if err != nil || got.Fresh || got.Operation.ID != id {
			t.Fatalf("what was confirmed before a crash: fresh %t, %v; want already admitted", got.Fresh, err)
		}
	}
	admitted := 0
	for _, a := range l.open {
		got, err := ask(t, s, a)
		if err != nil {
			t.Fatalf("what was not confirmed, asked again: %v", err)
		}
		if got.Fresh {
			admitted++
		}
		_, err = s.Admit(t.Context(), admissionOf(a.Grant))
		wantErr(t, "the same grant under another id", err, pawl.ErrRefused, pawl.ReasonUsed)
	}
	t.Logf("%d confirmed and kept; %d not confirmed, of which %d had not happened", len(l.confirmed), len(l.open), admitted)
	doubled := tb.count(t, "SELECT count(*) - count(DISTINCT (issuer, namespace, grant_id)) FROM @@.operations")
	halves := tb.count(t, `SELECT count(*) FROM @@.operations AS o FULL JOIN @@.claims AS c ON c.operation_id = o.id
		WHERE o.id IS NULL OR c.operation_id IS NULL`)
	if doubled != 0 || halves != 0 {
		t.Errorf("%d grants have two operations, %d claims or operations are alone; want none", doubled, halves)
	}
}

// ask repeats a call for as long as it is not confirmed.
func ask(t *testing.T, s *Store, a pawl.Admission) (got pawl.Admitted, err error) {
	t.Helper()
	for {
		if got, err = s.Admit(t.Context(), a); !errors.Is(err, pawl.ErrNotConfirmed) {
			return got, err
		}
	}
}

func (l *ledger) admitUntil(ctx context.Context, t *testing.T, s *Store) {
	for ctx.Err() == nil {
		a := admissionOf(someGrant(s.realm))
		got, err := s.Admit(context.WithoutCancel(ctx), a)
		l.mu.Lock()
		switch {
		case err == nil && got.Fresh:
			l.confirmed[a.OperationID] = a
		case errors.Is(err, pawl.ErrNotConfirmed):
			l.open = append(l.open, a)
		default:
			t.Errorf("under load: fresh %t, %v; want admitted or not confirmed", got.Fresh, err)
		}
		l.mu.Unlock()
		if err == nil {
			select {
			case l.progress <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}
}
