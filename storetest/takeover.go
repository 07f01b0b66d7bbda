package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

func takeoverCases() []Case {
	return []Case{
		{ID: "C-D2", Title: "recovery while the owner's lease is live", Clauses: clauses("O2"), run: liveLease},
		{ID: "C-D3", Title: "the owner completes before recovery takes over", Clauses: clauses("O2"), Needs: []Power{PowerClock}, run: completedMeanwhile},
		{ID: "C-D4", Title: "many workers at many stalled operations", Clauses: clauses("O2"), Needs: []Power{PowerClock}, run: manyWorkers},
		{ID: "O2-race", Title: "a takeover against the owner's own outcome", Clauses: clauses("O1 O2"), Needs: []Power{PowerClock}, run: takeoverAgainstOwner},
		{ID: "O2-fence", Title: "each takeover moves fence, token and lease", Clauses: clauses("O1 O2 M9"), Needs: []Power{PowerClock}, run: fencesGrow},
		{ID: "O2-open", Title: "only admitted and unknown operations are taken over", Clauses: clauses("O2"), Needs: []Power{PowerClock}, run: onlyOpen},
		{ID: "O2-lost", Title: "the answer of a takeover is lost", Clauses: clauses("O2 A6"), Needs: []Power{PowerClock, PowerLossy}, run: lostTakeover},
		{ID: "C-D16", Title: "a takeover waits longer than its lease", Clauses: clauses("O2"), Needs: []Power{PowerClock, PowerBlock}, run: takeoverWaits},
	}
}

func liveLease(t *Trial) {
	own := t.admitted()
	if n := len(t.takeOver(t.open(), 10)); n != 0 {
		t.fail("O2", "%d operations were taken over while the lease was live, want 0", n)
	}
	t.same("O2", "a takeover that took nothing", own.Operation)
}

func completedMeanwhile(t *Trial) {
	own := t.admitted()
	t.advance(lease + time.Second)
	op, err := t.a.Record(t.ctx, pawl.Statement{ID: own.Operation.ID, Token: own.Owner.Token, Outcome: pawl.Succeeded(marker)})
	if err != nil {
		t.stop("O1", "an owner's success, its lease over and nobody else the owner: %v", err)
	}
	if n := len(t.takeOver(t.open(), 10)); n != 0 {
		t.fail("O2", "%d settled operations were taken over, want 0", n)
	}
	t.same("O2", "a takeover that took nothing", op)
}

// manyWorkers is C-D4: each exactly once.
func manyWorkers(t *Trial) {
	want := map[pawl.OperationID]bool{}
	for range t.sizes.Stalled {
		want[t.admitted().Operation.ID] = true
	}
	t.advance(lease + time.Second)
	instances := []pawl.Store{t.a, t.open()}
	var mu sync.Mutex
	times := map[pawl.OperationID]int{}
	race(t.sizes.Workers, func(i int) {
		for rounds, empty := 0, 0; empty < 3 && rounds < 2*t.sizes.Stalled; rounds++ {
			taken := t.takeOver(instances[i%2], 7)
			if len(taken) == 0 {
				empty++ // a store may skip what another worker holds just now
			}
			if len(taken) > 7 {
				t.fail("O2", "a takeover of at most 7 took %d", len(taken))
			}
			mu.Lock()
			for _, k := range taken {
				times[k.Operation.ID]++
				if k.Owner.Fence != pawl.FirstFence+1 {
					t.fail("O2", "the first takeover made fence %d", k.Owner.Fence)
				}
			}
			mu.Unlock()
		}
	})
	for range t.sizes.Stalled { // what was skipped because it was held
		for _, k := range t.takeOver(t.a, 7) {
			times[k.Operation.ID]++
		}
	}
	for id := range want {
		if times[id] != 1 {
			t.fail("O2", "operation %s was taken over %d times, want once", id, times[id])
		}
	}
	if len(times) != len(want) {
		t.fail("O2", "%d operations were taken over, want %d", len(times), len(want))
	}
}

// takeoverAgainstOwner: one of the two happens, never both and never neither.
func takeoverAgainstOwner(t *Trial) {
	b := t.open()
	for range t.sizes.Rounds {
		own := t.admitted()
		t.advance(lease + time.Second)
		var taken []pawl.TakenOver
		var err error
		race(2, func(i int) {
			if i == 0 {
				taken = t.takeOver(b, 1)
				return
			}
			_, err = t.a.Record(t.ctx, pawl.Statement{ID: own.Operation.ID, Token: own.Owner.Token, Outcome: pawl.Succeeded(marker)})
		})
		op := t.get(own.Operation.ID)
		switch {
		case err == nil && op.Status == pawl.StatusSucceeded && op.Fence == pawl.FirstFence && len(taken) == 0:
		case err != nil && op.Status == pawl.StatusAdmitted && op.Fence == pawl.FirstFence+1 && len(taken) == 1:
			t.wantClass("O1", "a superseded owner's success", err, pawl.ErrFenced)
			t.settle(t.a, pawl.Evidence{ID: op.ID, Lock: op.Lock, Outcome: pawl.Succeeded(marker), Token: own.Owner.Token})
		default:
			t.fail("O1", "an owner's success (%v) against a takeover of %d: the record is %v at fence %d", err, len(taken), op.Status, op.Fence)
		}
	}
}

func fencesGrow(t *Trial) {
	own := t.admitted()
	id := own.Operation.ID
	seen := map[pawl.OwnerToken]bool{own.Owner.Token: true}
	for n := 1; n <= 3; n++ {
		t.advance(2 * longLease)
		before := t.now()
		taken := t.takeOver(t.a, 10)
		if len(taken) != 1 {
			t.stop("O2", "takeover %d took %d operations, want 1", n, len(taken))
		}
		k := taken[0]
		if k.Owner.Fence != pawl.FirstFence+uint64(n) || k.Operation.Takeovers != n || seen[k.Owner.Token] {
			t.fail("O2", "takeover %d: fence %d, counted %d, token new %v; want %d, %d, new",
				n, k.Owner.Fence, k.Operation.Takeovers, !seen[k.Owner.Token], pawl.FirstFence+n, n)
		}
		seen[k.Owner.Token] = true
		if k.Owner.LeaseUntil.Before(before.Add(longLease)) || !k.Operation.SubmitBy.Equal(own.Owner.SubmitBy) {
			t.fail("O2", "takeover %d: lease until %v, submission by %v; want a lease of %v from %v, the deadline unmoved",
				n, k.Owner.LeaseUntil, k.Operation.SubmitBy, longLease, before)
		}
		t.same("O2", "reading after a takeover", k.Operation)
	}
	entries, n := t.log(id).Entries, 0
	for _, e := range entries {
		if e.Type == pawl.EntryTakeover && e.Source == "recovery" {
			n++
		}
	}
	if n != 3 {
		t.fail("M9", "the log tells of %d takeovers by recovery, want 3", n)
	}
}

func onlyOpen(t *Trial) {
	waiting := t.inStatus(pawl.StatusNeedsReconciliation)
	conflict := t.inStatus(pawl.StatusConflict)
	failed := t.inStatus(pawl.StatusFailed)
	unknown := t.inStatus(pawl.StatusUnknown)
	t.advance(2 * longLease)
	taken := t.takeOver(t.a, 10)
	if len(taken) != 1 || taken[0].Operation.ID != unknown.Operation.ID {
		t.fail("O2", "%d operations were taken over, want the unknown one alone", len(taken))
	}
	for _, k := range []pawl.TakenOver{waiting, conflict, failed} {
		t.same("O2", "a takeover of another", k.Operation)
	}
}

// inStatus brings an operation that was taken over once into a status, through
// the store's own calls.
func (t *Trial) inStatus(s pawl.Status) pawl.TakenOver {
	own := t.admitted()
	t.advance(lease + time.Second)
	taken := t.takeOver(t.a, 1)
	if len(taken) != 1 || taken[0].Operation.ID != own.Operation.ID {
		t.stop("O2", "%d operations were taken over, want this one", len(taken))
	}
	t.bring(&taken[0], s)
	return taken[0]
}

// bring makes the owner of an admitted operation, or a provider, say what leads
// to a status.
func (t *Trial) bring(k *pawl.TakenOver, s pawl.Status) {
	outcomes := map[pawl.Status]pawl.Outcome{
		pawl.StatusUnknown:             pawl.Unknown("timeout"),
		pawl.StatusNeedsReconciliation: pawl.NeedsReconciliation("nobody knows"),
		pawl.StatusFailed:              pawl.Failed("declined"),
		pawl.StatusSucceeded:           pawl.Succeeded(marker),
	}
	if s == pawl.StatusConflict {
		t.settle(t.a, pawl.Evidence{ID: k.Operation.ID, Outcome: pawl.Succeeded("other"), Trusted: true, Source: "provider"})
	} else if o, ok := outcomes[s]; ok {
		if _, err := t.a.Record(t.ctx, pawl.Statement{ID: k.Operation.ID, Token: k.Owner.Token, Outcome: o}); err != nil {
			t.stop("O1", "an owner's %v: %v", o, err)
		}
	}
	k.Operation = t.get(k.Operation.ID)
	if k.Operation.Status != s {
		t.stop("M1", "the record is %v, want %v", k.Operation.Status, s)
	}
}

// lostTakeover: the operations are free again when the leases end.
func lostTakeover(t *Trial) {
	s, lose := t.lossy()
	t.admitted()
	t.advance(lease + time.Second)
	lose()
	_, err := s.TakeOver(t.ctx, pawl.TakeOver{Leases: map[pawl.Kind]time.Duration{t.kind: lease}, Limit: 10, By: "recovery"})
	t.wantClass("A6", "a takeover whose answer was lost", err, pawl.ErrUnavailable)
	if n := len(t.takeOver(s, 10)); n != 0 {
		t.fail("O2", "within the lost lease %d operations were taken over, want 0", n)
	}
	t.advance(lease + time.Second)
	if n := len(t.takeOver(s, 10)); n != 1 {
		t.fail("O2", "after the lost lease %d operations were taken over, want 1", n)
	}
}

// takeoverWaits is C-D16: the lease runs from after the wait. A store that skips
// what is held takes nothing, which is as good.
func takeoverWaits(t *Trial) {
	own := t.admitted()
	t.advance(lease + time.Second)
	release, err := t.d.Block(t.ctx, own.Operation.ID)
	t.must(err)
	var taken []pawl.TakenOver
	var done sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.ctx, time.Minute)
	defer cancel()
	asked := make(chan struct{})
	done.Go(func() {
		close(asked)
		taken, err = t.a.TakeOver(ctx, pawl.TakeOver{
			Leases: map[pawl.Kind]time.Duration{t.kind: 5 * time.Second}, Limit: 1, By: "recovery",
		})
	})
	<-asked
	t.advance(10 * time.Second)
	release()
	done.Wait()
	if err != nil {
		t.stop("O2", "a takeover that waited: %v", err)
	}
	now := t.now()
	for _, k := range taken {
		if !k.Owner.LeaseUntil.After(now) {
			t.fail("O2", "a takeover that waited has a lease until %v, over at %v", k.Owner.LeaseUntil, now)
		}
	}
}
