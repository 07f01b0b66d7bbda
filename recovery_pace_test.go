package pawl_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
)

// Recovery paces itself per operation: doubling pauses up to the cap, and after
// the last attempt a person [E6]. What is measured is the store's own record.
func pacing(w *world) {
	w.timings.Default.MaxTakeovers = 7
	w.timings.Default.BackoffBase, w.timings.Default.BackoffCap = 10*time.Second, 80*time.Second
	findsOr(errors.New("down"))(w)
	id := w.strand()
	b := w.instance()
	var pauses []time.Duration
	for range 7 {
		time.Sleep(max(time.Until(w.op(id).LeaseUntil), time.Until(w.op(id).ResumeAt)))
		want := pawl.RecoveryReport{TakenOver: 1, Paced: 1}
		if len(pauses) == 6 {
			want = handedOver()
		}
		w.wants(b, want)
		pauses = append(pauses, time.Until(w.op(id).ResumeAt))
		w.wants(b, pawl.RecoveryReport{}) // not before its time
	}
	s := time.Second
	if diff := cmp.Diff([]time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 80 * s, 80 * s}, pauses[:6]); diff != "" {
		w.wrongf("pauses (-want +got):\n%s", diff)
	}
	op := w.expect(id, pawl.StatusNeedsReconciliation)
	if op.Takeovers != 7 || op.Reason != "the provider did not tell what became of it, after 7 attempts" {
		w.wrongf("%d takeovers, reason %q", op.Takeovers, op.Reason)
	}
	time.Sleep(24 * time.Hour)
	w.wants(b, pawl.RecoveryReport{})
	w.expectEffects(id, 0)
}

func TestRecoveryPacesItself(t *testing.T) { play(t, pacing) }

// Jitter shortens a pause by up to a half, so that what stalled together does not
// come back together; a broken source of it does no harm [E6].
func TestPauseIsJittered(t *testing.T) {
	for _, c := range []struct{ jitter, want float64 }{{0, 10}, {0.5, 7.5}, {0.999, 5.005}, {1, 10}, {-3, 10}, {1e9, 10}} {
		play(t, func(w *world) {
			w.timings.Default.BackoffBase = 10 * time.Second
			findsOr(nil)(w)
			id := w.strand()
			time.Sleep(time.Minute)
			w.wants(w.instance(func(g *pawl.Config) { g.Jitter = func() float64 { return c.jitter } }), pawl.RecoveryReport{TakenOver: 1, Paced: 1})
			if got := time.Until(w.op(id).ResumeAt).Seconds(); got != c.want {
				w.wrongf("jitter %v: a pause of %v s, want %v s", c.jitter, got, c.want)
			}
		})
	}
}

// Attempts that leave no word count too: an operation whose recoverers die one
// after the other is looked up once more when they are used up, is not created,
// and waits for a person [E6].
func TestDyingRecoverersAreBounded(t *testing.T) {
	play(t, func(w *world) {
		w.state()
		w.timings.Default.MaxTakeovers = 3
		id := w.strand()
		for range 3 {
			time.Sleep(time.Minute)
			dying := w.instance()
			dying.handle.before = func(ctx context.Context, call string) error {
				if call == "TakeOver" {
					return nil
				}
				return dead(ctx, call)
			}
			w.wants(dying, pawl.RecoveryReport{TakenOver: 1, Lost: 1})
		}
		time.Sleep(time.Minute)
		w.wants(w.instance(), handedOver())
		w.expect(id, pawl.StatusNeedsReconciliation)
		w.expectEffects(id, 0)
	})
}

// An unknown outcome of recovery's own call leaves the lease where that is pause
// enough: under it another attempt's refusal waits, and does not end the matter
// while the call may still succeed.
func unknownCreate(w *world) {
	w.state()
	first := w.instance()
	r := w.request()
	w.bank.before = func(context.Context, pawl.Submission) error { return errors.New("timeout") }
	if op, err := first.Execute(w.t.Context(), r); err != nil || op.Status != pawl.StatusUnknown {
		w.wrongf("%v, %v; want unknown", op.Status, err)
	}
	time.Sleep(time.Minute)
	b := w.instance()
	w.wants(b, pawl.RecoveryReport{TakenOver: 1, Created: 1, Paced: 1})
	op := w.op(r.OperationID)
	if left := time.Until(op.LeaseUntil); left <= 0 || !op.ResumeAt.IsZero() {
		w.wrongf("lease for %v, resume at %v; want the lease kept", left, op.ResumeAt)
	}
	got, err := first.Settle(w.t.Context(), pawl.Evidence{ID: r.OperationID, Lock: op.Lock, Outcome: pawl.Failed("declined"), Trusted: true})
	if err != nil || got.Disposition != pawl.Deferred {
		w.wrongf("a late refusal: %q, %v; want deferred", got.Disposition, err)
	}
	w.bank.plant(r.OperationID, `{"amount":"250.00"}`) // the call succeeded after all
	time.Sleep(time.Minute)
	w.wants(b, pawl.RecoveryReport{TakenOver: 1, Settled: 1})
	w.expect(r.OperationID, pawl.StatusSucceeded)
}

func TestCase_CD19_LateRefusalDuringRecoverysCall(t *testing.T) { play(t, unknownCreate) }

// Recovery takes only kinds that it has an effect for: others wait for an
// executor's takeover.
func TestRecoveryTakesItsKindsOnly(t *testing.T) {
	play(t, func(w *world) {
		id := w.strand()
		time.Sleep(time.Minute)
		for name, effects := range map[string][]pawl.Effect{"no effect": nil, "another kind": {other{w.bank}}} {
			g := w.instance(func(c *pawl.Config) { c.Effects = effects })
			if got, err := g.RecoverOnce(w.t.Context()); err != nil || got != (pawl.RecoveryReport{}) {
				w.wrongf("%s: %+v, %v; want nothing taken", name, got, err)
			}
		}
		if op := w.op(id); op.Takeovers != 0 {
			w.wrongf("taken over %d times", op.Takeovers)
		}
	})
}

// other is an effect of another kind.
type other struct{ pawl.Effect }

// Kind implements pawl.Effect.
func (other) Kind() pawl.Kind { return "credit.void" }

// A recovery pass that cannot ask the store says so and does nothing; the next one
// does [A6].
func TestRecoveryWithoutItsStore(t *testing.T) {
	play(t, func(w *world) {
		w.state()
		id := w.strand()
		time.Sleep(time.Minute)
		b := w.instance()
		b.handle.before = dead
		if got, err := b.RecoverOnce(w.t.Context()); !errors.Is(err, pawl.ErrUnavailable) || got != (pawl.RecoveryReport{}) {
			w.wrongf("%+v, %v; want unavailable and nothing done", got, err)
		}
		b.handle.before = nil
		w.wants(b, pawl.RecoveryReport{TakenOver: 1, Created: 1, Settled: 1})
		w.expectEffects(id, 1)
	})
}

// The store goes away at every call of a recovery, before it or after it was
// committed: never a second effect, and in the end a settled record that agrees
// with the books.
func TestStoreGoesAwayDuringRecovery(t *testing.T) {
	for _, call := range []string{"TakeOver", "Renew", "MaySubmit", "Record", "Settle"} {
		for _, when := range []string{"before", "after"} {
			t.Run(call+" "+when, func(t *testing.T) {
				play(t, func(w *world) {
					w.state()
					w.bank.atomic = true
					id := w.strand()
					time.Sleep(time.Minute)
					a := w.instance()
					gone := on(call, func(context.Context) error { return away(pawl.ErrUnavailable) })
					if when == "before" {
						a.handle.before = gone
					} else {
						a.handle.after = gone
					}
					if _, err := a.RecoverOnce(w.t.Context()); err != nil && !errors.Is(err, pawl.ErrUnavailable) {
						w.wrongf("recovery: %v", err)
					}
					if n := w.bank.calls(id); n != 0 && call != "Record" && call != "Settle" {
						w.wrongf("%d create calls without a confirmed check", n)
					}
					time.Sleep(10 * time.Minute)
					if _, err := w.instance().RecoverOnce(w.t.Context()); err != nil {
						w.wrongf("recovery: %v", err)
					}
					op := w.expect(id, pawl.StatusSucceeded, pawl.StatusNeedsReconciliation)
					if made := w.bank.effects(id); made > 1 || (op.Status == pawl.StatusSucceeded) != (made == 1) {
						w.wrongf("%d effects, and the record says %v", made, op.Status)
					}
				})
			})
		}
	}
}

// The flow needs one connection at a time and never one while it holds another:
// a full flow with recovery finishes on a pool of one.
func TestCase_CA14_PoolOfOne(t *testing.T) {
	play(t, func(w *world) {
		w.state()
		w.bank.atomic = true
		pool := make(chan struct{}, 1)
		w.store = func(h *handle) pawl.Store { return pooled{h, pool} }
		ids := []pawl.OperationID{w.strand(), w.strand(), w.strand()}
		g := w.instance()
		for range 5 {
			r := w.request()
			ids = append(ids, r.OperationID)
			if op, err := g.Execute(w.t.Context(), r); err != nil || op.Status != pawl.StatusSucceeded {
				w.wrongf("%v, %v", op.Status, err)
			}
			if op, err := g.Execute(w.t.Context(), r); err != nil || op.Status != pawl.StatusSucceeded {
				w.wrongf("again: %v, %v", op.Status, err)
			}
		}
		time.Sleep(time.Minute)
		w.wants(g, pawl.RecoveryReport{TakenOver: 3, Created: 3, Settled: 3})
		for _, id := range ids {
			w.expectEffects(id, 1)
			w.expect(id, pawl.StatusSucceeded)
		}
	})
}

// pooled has one connection for all of its calls.
type pooled struct {
	*handle
	pool chan struct{}
}

func (p pooled) acquire() (release func()) {
	p.pool <- struct{}{}
	return func() { <-p.pool }
}

func (p pooled) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	defer p.acquire()()
	return p.handle.Admit(ctx, a)
}

func (p pooled) Get(ctx context.Context, id pawl.OperationID, as pawl.Viewer) (pawl.Operation, error) {
	defer p.acquire()()
	return p.handle.Get(ctx, id, as)
}

func (p pooled) MaySubmit(ctx context.Context, id pawl.OperationID, t pawl.OwnerToken) (pawl.Permit, error) {
	defer p.acquire()()
	return p.handle.MaySubmit(ctx, id, t)
}

func (p pooled) Renew(ctx context.Context, r pawl.Renewal) (pawl.Owner, error) {
	defer p.acquire()()
	return p.handle.Renew(ctx, r)
}

func (p pooled) Record(ctx context.Context, s pawl.Statement) (pawl.Operation, error) {
	defer p.acquire()()
	return p.handle.Record(ctx, s)
}

func (p pooled) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	defer p.acquire()()
	return p.handle.Settle(ctx, e)
}

func (p pooled) TakeOver(ctx context.Context, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	defer p.acquire()()
	return p.handle.TakeOver(ctx, t)
}

// The log tells a recovered operation's whole story in order [M9].
func TestTimelineOfARecovery(t *testing.T) {
	play(t, func(w *world) {
		w.state()
		id := w.strand()
		time.Sleep(time.Minute)
		b := w.instance(func(c *pawl.Config) { c.Name = "worker-3" })
		w.wants(b, pawl.RecoveryReport{TakenOver: 1, Created: 1, Settled: 1})
		tl, err := b.Log(w.t.Context(), id, pawl.AsOperator())
		if err != nil {
			w.wrongf("log: %v", err)
		}
		var story []string
		for _, e := range tl.Entries {
			story = append(story, string(e.Type)+" "+e.Source)
		}
		if want := []string{"admission ana", "takeover worker-3", "check owner", "outcome owner"}; !slices.Equal(story, want) {
			w.wrongf("the log tells %q, want %q", story, want)
		}
	})
}

// The steps of an execution and of a recovery come in one order: a check just
// before each call, and a renewal before each step of recovery [E4, E6, O5].
func TestStepsInOrder(t *testing.T) {
	play(t, func(w *world) {
		w.state()
		var steps []string
		step := func(name string) { steps = append(steps, name) }
		w.bank.before = func(context.Context, pawl.Submission) error { step("Submit"); return nil }
		w.bank.find = func(_ context.Context, l pawl.Lookup) (pawl.Found, error) { step("Find"); return w.bank.look(l) }
		id := w.strand()
		g := w.instance(func(c *pawl.Config) {
			c.Effects = []pawl.Effect{checkedFinder{w.bank, func() { step("Precheck") }}}
		})
		g.handle.before = func(_ context.Context, call string) error { step(call); return nil }
		if _, err := g.Execute(w.t.Context(), w.request()); err != nil {
			w.wrongf("%v", err)
		}
		if want := []string{"Precheck", "Admit", "MaySubmit", "Submit", "Record"}; !slices.Equal(steps, want) {
			w.wrongf("an execution does %q, want %q", steps, want)
		}
		steps = nil
		time.Sleep(time.Minute)
		w.wants(g, pawl.RecoveryReport{TakenOver: 1, Created: 1, Settled: 1})
		want := []string{"TakeOver", "Renew", "Find", "Renew", "MaySubmit", "Submit", "Record"}
		if !slices.Equal(steps, want) {
			w.wrongf("a recovery does %q, want %q", steps, want)
		}
		w.expectEffects(id, 1)
	})
}

// checkedFinder is an effect with a check, and a look-up.
type checkedFinder struct {
	*bank
	check func()
}

// Precheck implements pawl.Prechecker.
func (c checkedFinder) Precheck(context.Context, pawl.Proposal) error { c.check(); return nil }
