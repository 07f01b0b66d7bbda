package pawl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
)

// wants notes a recovery pass that did something else.
func (w *world) wants(g instance, want pawl.RecoveryReport) {
	w.t.Helper()
	got, err := g.RecoverOnce(w.t.Context())
	if err != nil {
		w.wrongf("recovery: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.wrongf("the recovery pass (-want +got):\n%s", diff)
	}
}

// strand leaves an operation admitted and unowned: its instance was killed after
// the admission.
func (w *world) strand() pawl.OperationID {
	w.t.Helper()
	a := w.instance()
	r := w.request()
	a.handle.after = on("Admit", func(context.Context) error {
		a.handle.before = dead
		return nil
	})
	if _, err := a.Execute(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
	w.expect(r.OperationID, pawl.StatusAdmitted)
	return r.OperationID
}

// pauseOf lets an owner sleep at one of its store calls, once.
func pauseOf(h *handle, call string, after bool, d time.Duration) (woke chan struct{}) {
	woke = make(chan struct{})
	var once sync.Once
	sleep := on(call, func(context.Context) error {
		once.Do(func() {
			time.Sleep(d)
			close(woke)
		})
		return nil
	})
	if after {
		h.after = sleep
	} else {
		h.before = sleep
	}
	return woke
}

// pausedOwner lets the first owner sleep past its lease before or after its
// submission check, while recovery performs the operation.
func pausedOwner(w *world, after bool) {
	w.state()
	a, b := w.instance(), w.instance()
	r := w.request()
	woke := pauseOf(a.handle, "MaySubmit", after, time.Minute)
	answer := make(chan pawl.Operation, 1)
	go func() {
		op, err := a.Execute(w.t.Context(), r)
		if err != nil {
			w.wrongf("the paused owner's caller: %v", err)
		}
		answer <- op
	}()
	time.Sleep(31 * time.Second)
	w.wants(b, pawl.RecoveryReport{TakenOver: 1, Created: 1, Settled: 1})
	<-woke
	if op := <-answer; op.Status != pawl.StatusAdmitted {
		w.wrongf("the paused owner answers %v, want the operation as it was admitted", op.Status)
	}
	w.expectEffects(r.OperationID, 1)
	w.expect(r.OperationID, pawl.StatusSucceeded)
}

// The owner sleeps past its lease, recovery takes over, the owner wakes and asks
// to submit: the store says no [O5].
func pausedBeforeTheCheck(w *world) { pausedOwner(w, false) }

func TestCase_CD1_PausedBeforeTheCheck(t *testing.T) { play(t, pausedBeforeTheCheck) }

// The same where the pause falls between the check's answer and the call: the
// owner's own time says no [O5].
func pausedAfterTheCheck(w *world) { pausedOwner(w, true) }

func TestCase_CD1_PausedAfterTheCheck(t *testing.T) { play(t, pausedAfterTheCheck) }

// Recovery leaves an operation alone while its owner's lease is live, also when
// recovery itself restarts [O2].
func liveLeaseIsLeftAlone(w *world) {
	id := w.strand()
	for range 3 {
		w.wants(w.instance(), pawl.RecoveryReport{})
		time.Sleep(9 * time.Second)
	}
	time.Sleep(3*time.Second - time.Microsecond)
	w.wants(w.instance(), pawl.RecoveryReport{})
	time.Sleep(time.Microsecond)
	w.wants(w.instance(), pawl.RecoveryReport{TakenOver: 1, HandedOver: 1})
	w.expectEffects(id, 0)
}

func TestCase_CD2_LiveLeaseIsLeftAlone(t *testing.T) { play(t, liveLeaseIsLeftAlone) }

// The owner completes while recovery is on its way to take over: nothing is
// taken and the result is intact [O2].
func ownerCompletesDuringTakeover(w *world) {
	a, b := w.instance(), w.instance()
	r := w.request()
	arrived, done := make(chan struct{}), make(chan struct{})
	w.bank.before = func(context.Context, pawl.Submission) error { <-arrived; return nil }
	b.handle.before = on("TakeOver", func(context.Context) error {
		close(arrived)
		<-done
		return nil
	})
	go func() {
		defer close(done)
		if op, err := a.Execute(w.t.Context(), r); err != nil || op.Status != pawl.StatusSucceeded {
			w.wrongf("the owner: %v, %v", op.Status, err)
		}
	}()
	synctest.Wait()
	w.wants(b, pawl.RecoveryReport{})
	w.expectEffects(r.OperationID, 1)
	if op := w.expect(r.OperationID, pawl.StatusSucceeded); op.Fence != pawl.FirstFence || len(op.Result) == 0 {
		w.wrongf("fence %d, result %q; want the first owner's", op.Fence, op.Result)
	}
}

func TestCase_CD3_OwnerCompletesDuringTakeover(t *testing.T) { play(t, ownerCompletesDuringTakeover) }

// Twenty recoveries on a hundred stalled operations: each is taken exactly once
// and performed exactly once.
func manyRecoveries(w *world) {
	w.state()
	var ids []pawl.OperationID
	for range 100 {
		ids = append(ids, w.strand())
	}
	time.Sleep(time.Minute)
	var total pawl.RecoveryReport
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range 20 {
		g := w.instance(func(c *pawl.Config) { c.Workers = 3 })
		workers.Go(func() {
			got, err := g.RecoverOnce(w.t.Context())
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				w.wrongf("recovery: %v", err)
			}
			total.TakenOver += got.TakenOver
			total.Settled += got.Settled
			total.Created += got.Created
		})
	}
	workers.Wait()
	if want := (pawl.RecoveryReport{TakenOver: 100, Settled: 100, Created: 100}); total != want {
		w.wrongf("together they did %+v, want %+v", total, want)
	}
	for _, id := range ids {
		w.expectEffects(id, 1)
		if op := w.expect(id, pawl.StatusSucceeded); op.Fence != 2 {
			w.wrongf("fence %d, want 2", op.Fence)
		}
	}
}

func TestCase_CD4_ManyRecoveries(t *testing.T) { play(t, manyRecoveries) }

// A renewal that never answers ends before the lease does, and what follows it
// does not happen; an owner's call ends before its lease does [O3, O4].
func blockedRenewal(w *world) {
	w.state()
	id := w.strand()
	time.Sleep(time.Minute)
	b := w.instance()
	began := time.Now()
	b.handle.before = on("Renew", func(ctx context.Context) error {
		<-ctx.Done()
		if blocked := time.Since(began); blocked >= 45*time.Second {
			w.wrongf("the renewal was given up after %v, the lease is 45 s", blocked)
		}
		return away(pawl.ErrUnavailable)
	})
	w.wants(b, pawl.RecoveryReport{TakenOver: 1, Lost: 1})
	w.expectEffects(id, 0)
	b.handle.before = nil
	time.Sleep(time.Minute)
	w.wants(b, pawl.RecoveryReport{TakenOver: 1, Created: 1, Settled: 1})
	w.expectEffects(id, 1)
}

func TestCase_CD5_BlockedRenewal(t *testing.T) { play(t, blockedRenewal) }

// An owner that loses time before its call loses it from its call: the context
// of the call ends before the lease does [O4].
func TestCase_CD5_CallEndsBeforeTheLease(t *testing.T) {
	play(t, func(w *world) {
		w.timings.StoreCallTimeout = 2 * time.Second
		a := w.instance()
		r := w.request()
		began := time.Now()
		a.handle.after = on("MaySubmit", func(context.Context) error {
			time.Sleep(22 * time.Second) // an answer that comes late
			return nil
		})
		w.bank.before = func(ctx context.Context, _ pawl.Submission) error {
			<-ctx.Done()
			if took := time.Since(began); took != 28*time.Second {
				w.wrongf("the call ended after %v; the lease of 30 s less the margin of 2 s is 28 s", took)
			}
			return ctx.Err()
		}
		op, err := a.Execute(w.t.Context(), r)
		if err != nil || op.Status != pawl.StatusUnknown {
			w.wrongf("%v, %v; want unknown", op.Status, err)
		}
	})
}

// The provider's success arrives from the superseded owner while recovery is in
// the middle of its look-up: succeeded, and recovery's next write does nothing [M2].
func successDuringLookUp(w *world) {
	w.state()
	a, b := w.instance(), w.instance()
	r := w.request()
	release, looking := make(chan struct{}), make(chan struct{})
	w.bank.after = func(_ context.Context, _ pawl.Submission, id string) (pawl.Outcome, error) {
		<-release // the owner is paused with its success in hand
		return pawl.Succeeded(id), nil
	}
	w.bank.find = func(context.Context, pawl.Lookup) (pawl.Found, error) {
		close(looking)
		<-release
		time.Sleep(time.Second) // the owner is faster
		return pawl.FoundNothing(), nil
	}
	answer := make(chan pawl.Operation, 1)
	go func() {
		op, err := a.Execute(w.t.Context(), r)
		if err != nil {
			w.wrongf("the owner: %v", err)
		}
		answer <- op
	}()
	time.Sleep(31 * time.Second)
	go func() { <-looking; close(release) }()
	w.wants(b, pawl.RecoveryReport{TakenOver: 1, Lost: 1})
	if op := <-answer; op.Status != pawl.StatusSucceeded || len(op.Result) == 0 {
		w.wrongf("the superseded owner's caller sees %v %q, want its success", op.Status, op.Result)
	}
	w.expectEffects(r.OperationID, 1)
	w.expect(r.OperationID, pawl.StatusSucceeded)
}

func TestCase_CE7_SuccessDuringLookUp(t *testing.T) { play(t, successDuringLookUp) }

// A look-up that finds the effect of another intent under the key makes a
// conflict, never a success, and no call follows [E2, M8].
func foundAnotherIntent(w *world) {
	w.state()
	id := w.strand()
	w.bank.plant(id, `{"amount":"999.00"}`)
	time.Sleep(time.Minute)
	b := w.instance()
	w.wants(b, pawl.RecoveryReport{TakenOver: 1, Conflicts: 1})
	op := w.expect(id, pawl.StatusConflict)
	if op.Result != nil || !op.MismatchSeen {
		w.wrongf("result %q, mismatch seen %v; want none and true", op.Result, op.MismatchSeen)
	}
	time.Sleep(time.Hour)
	w.wants(b, pawl.RecoveryReport{})
	w.expectEffects(id, 1)
}

func TestCase_CD9_FoundAnotherIntent(t *testing.T) { play(t, foundAnotherIntent) }

// A failure of another intent under the key proves nothing of ours, and the key
// is not free to create with.
func TestFoundAnotherIntentsFailure(t *testing.T) {
	play(t, func(w *world) {
		w.state()
		id := w.strand()
		w.bank.find = func(context.Context, pawl.Lookup) (pawl.Found, error) {
			return pawl.FoundEffect(details(w.t, `{"amount":"999.00"}`), pawl.Failed("declined")), nil
		}
		time.Sleep(time.Minute)
		w.wants(w.instance(), pawl.RecoveryReport{TakenOver: 1, HandedOver: 1})
		w.expect(id, pawl.StatusNeedsReconciliation)
		w.expectEffects(id, 0)
	})
}

// A provider that knows the reference and refused it settles the operation as
// failed: recovery is the owner, so its look-up waits for nobody's lease.
func foundARefusal(w *world) {
	w.state()
	id := w.strand()
	w.bank.find = func(context.Context, pawl.Lookup) (pawl.Found, error) {
		return pawl.FoundEffect(details(w.t, `{"amount":"250.00"}`), pawl.Failed("declined")), nil
	}
	time.Sleep(time.Minute)
	w.wants(w.instance(), pawl.RecoveryReport{TakenOver: 1, Settled: 1})
	if op := w.expect(id, pawl.StatusFailed); op.Reason != "declined" {
		w.wrongf("failed because of %q", op.Reason)
	}
	w.expectEffects(id, 0)
}

func TestFoundARefusal(t *testing.T) { play(t, foundARefusal) }

// After the submission deadline recovery still looks up, and sends nothing: what
// it finds is settled, and what it cannot find waits for a person [E5].
func pastTheDeadline(w *world) {
	w.state()
	found, missing := w.strand(), w.strand()
	time.Sleep(10 * time.Minute)
	w.bank.plant(found, `{"amount":"250.00"}`)
	w.wants(w.instance(), pawl.RecoveryReport{TakenOver: 2, Settled: 1, HandedOver: 1})
	w.expect(found, pawl.StatusSucceeded)
	w.expect(missing, pawl.StatusNeedsReconciliation)
	w.expectEffects(missing, 0)
}

func TestCase_CD10_PastTheDeadline(t *testing.T) { play(t, pastTheDeadline) }

// A look-up that fails has learnt nothing: the operation stays, paced, and
// nothing is created [E5].
func failedLookUp(w *world) {
	w.state()
	id := w.strand()
	findsOr(errors.New("down"))(w)
	time.Sleep(time.Minute)
	w.wants(w.instance(), pawl.RecoveryReport{TakenOver: 1, Paced: 1})
	w.expect(id, pawl.StatusUnknown)
	w.expectEffects(id, 0)
}

// The submission deadline falls into a pause between the check's answer and the
// call, while the lease goes on: the owner's own time says no [O5].
func deadlineInAPause(w *world) {
	w.state()
	id := w.strand()
	time.Sleep(590 * time.Second)
	b := w.instance()
	pauseOf(b.handle, "MaySubmit", true, 15*time.Second)
	w.wants(b, handedOver())
	w.expect(id, pawl.StatusNeedsReconciliation)
	if n := w.bank.calls(id); n != 0 {
		w.wrongf("%d create calls past the deadline", n)
	}
}

func TestDeadlineInAPause(t *testing.T) { play(t, deadlineInAPause) }

// Recovery creates again only where everything allows it [E5]. Each row takes
// one thing away; that nothing was found is never a failure.
func TestRecoveryCreatesOnlyWhere(t *testing.T) {
	unstate := func(change func(*pawl.ProviderContract)) func(*world) {
		return func(w *world) { change(&w.timings.Default.Provider) }
	}
	for name, c := range map[string]struct {
		change func(*world)
		want   pawl.RecoveryReport
		status pawl.Status
	}{
		"everything allows it": {func(*world) {}, pawl.RecoveryReport{TakenOver: 1, Created: 1, Settled: 1}, pawl.StatusSucceeded},
		"no contract":          {unstate(func(p *pawl.ProviderContract) { *p = pawl.ProviderContract{} }), handedOver(), pawl.StatusNeedsReconciliation},
		"keys not atomic":      {unstate(func(p *pawl.ProviderContract) { p.AtomicKeys = false }), handedOver(), pawl.StatusNeedsReconciliation},
		"parameters not held":  {unstate(func(p *pawl.ProviderContract) { p.SameParameters = false }), handedOver(), pawl.StatusNeedsReconciliation},
		"retention not stated": {unstate(func(p *pawl.ProviderContract) { p.KeyRetention = 0 }), handedOver(), pawl.StatusNeedsReconciliation},
		"clock not stated":     {unstate(func(p *pawl.ProviderContract) { p.ClockDifference = 0 }), handedOver(), pawl.StatusNeedsReconciliation},
		"no look-up": {
			func(w *world) { w.effect = func(e pawl.Effect) pawl.Effect { return blind{e} } }, handedOver(), pawl.StatusNeedsReconciliation,
		},
		"look-up says nothing": {findsOr(nil), pawl.RecoveryReport{TakenOver: 1, Paced: 1}, pawl.StatusUnknown},
		"look-up panics":       {panics, pawl.RecoveryReport{TakenOver: 1, Paced: 1}, pawl.StatusUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.state()
				c.change(w)
				id := w.strand()
				time.Sleep(time.Minute)
				w.wants(w.instance(), c.want)
				w.expect(id, c.status)
				w.expectEffects(id, c.want.Created)
			})
		})
	}
}

// A look-up that does not answer ends with its timeout, and has learnt nothing [E2].
func TestLookUpTimesOut(t *testing.T) {
	play(t, func(w *world) {
		w.timings.Default.FindTimeout = 3 * time.Second
		id := w.strand()
		w.bank.find = func(ctx context.Context, _ pawl.Lookup) (pawl.Found, error) {
			select {
			case <-ctx.Done():
				return pawl.Found{}, ctx.Err()
			case <-time.After(time.Hour):
				return pawl.FoundNothing(), nil
			}
		}
		time.Sleep(time.Minute)
		began := time.Now()
		w.wants(w.instance(), pawl.RecoveryReport{TakenOver: 1, Paced: 1})
		if took := time.Since(began); took != 3*time.Second {
			w.wrongf("the look-up ended after %v, want 3 s", took)
		}
		w.expect(id, pawl.StatusUnknown)
	})
}

func TestFailedLookUp(t *testing.T) { play(t, failedLookUp) }

func handedOver() pawl.RecoveryReport { return pawl.RecoveryReport{TakenOver: 1, HandedOver: 1} }

// findsOr makes the look-up end without an answer.
func findsOr(err error) func(*world) {
	return func(w *world) {
		w.bank.find = func(context.Context, pawl.Lookup) (pawl.Found, error) { return pawl.Found{}, err }
	}
}

func panics(w *world) {
	w.bank.find = func(context.Context, pawl.Lookup) (pawl.Found, error) { panic("look-up") }
}

// A deferred failure is read first [E5]: a success that the provider holds wins
// over it, an answer of nothing confirms it, and without an answer it waits.
func TestDeferredFailure(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world, pawl.OperationID)
		want   pawl.RecoveryReport
		status pawl.Status
	}{
		"the provider holds the effect": {
			func(w *world, id pawl.OperationID) { w.bank.plant(id, `{"amount":"250.00"}`) },
			pawl.RecoveryReport{TakenOver: 1, Settled: 1},
			pawl.StatusSucceeded,
		},
		"the provider knows nothing": {
			func(*world, pawl.OperationID) {}, pawl.RecoveryReport{TakenOver: 1, Settled: 1}, pawl.StatusFailed,
		},
		"the provider does not answer": {
			func(w *world, _ pawl.OperationID) { findsOr(errors.New("down"))(w) },
			pawl.RecoveryReport{TakenOver: 1, Paced: 1},
			pawl.StatusUnknown,
		},
		"the provider cannot be asked": {
			func(w *world, _ pawl.OperationID) { w.effect = func(e pawl.Effect) pawl.Effect { return blind{e} } },
			pawl.RecoveryReport{TakenOver: 1, Settled: 1},
			pawl.StatusFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.state()
				id := w.strand()
				b := w.instance()
				got, err := b.Settle(w.t.Context(), pawl.Evidence{ID: id, Lock: w.op(id).Lock, Outcome: pawl.Failed("declined"), Trusted: true})
				if err != nil || got.Disposition != pawl.Deferred {
					w.wrongf("the failure under a live lease: %q, %v; want deferred", got.Disposition, err)
				}
				time.Sleep(time.Minute)
				c.change(w, id)
				w.wants(w.instance(), c.want)
				if op := w.expect(id, c.status); c.status == pawl.StatusFailed && op.Reason != "declined" {
					w.wrongf("failed because of %q, want what was deferred", op.Reason)
				}
				if n := w.bank.calls(id); n != 0 {
					w.wrongf("%d create calls, want none", n)
				}
			})
		})
	}
}
