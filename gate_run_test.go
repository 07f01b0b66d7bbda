package pawl_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
)

// run starts a gate's Run and returns how to stop it.
func (w *world) run(g instance) (stop func() error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// No goroutine outlives Run and Close [E7], here on the real clock.
func TestRunLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	w := newWorld(t, time.Now)
	w.timings.RecoveryInterval = time.Millisecond
	g := w.instance(func(c *pawl.Config) { c.PurgeInterval = time.Millisecond })
	passes, purges := make(chan struct{}, 1000), make(chan struct{}, 1000)
	g.handle.before = func(_ context.Context, call string) error {
		for name, seen := range map[string]chan struct{}{"TakeOver": passes, "Purge": purges} {
			if call == name {
				select {
				case seen <- struct{}{}:
				default:
				}
			}
		}
		return nil
	}
	stop := w.run(g)
	for range 3 {
		<-passes
		<-purges
		if _, err := g.Execute(t.Context(), w.request()); err != nil {
			t.Error(err)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("the stop: %v", err)
	}
	goleak.VerifyNone(t, before)
	if _, err := g.Execute(t.Context(), w.request()); err != nil {
		t.Errorf("after Run: %v", err) // only Close ends requests
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}

// Run finishes what stalled, goes on asking a store that is away, and finishes
// the rest when it is back.
func TestRunSurvivesItsStore(t *testing.T) {
	play(t, func(w *world) {
		w.state()
		g := w.instance()
		var gone atomic.Bool
		g.handle.before = func(ctx context.Context, call string) error {
			if gone.Load() {
				return dead(ctx, call)
			}
			return nil
		}
		failures := 0
		w.events = func(_ context.Context, e pawl.Event) {
			if e.Type == pawl.EventRecovery && errors.Is(e.Err, pawl.ErrUnavailable) {
				failures++
			}
		}
		stop := w.run(g)
		first := w.strand()
		time.Sleep(32 * time.Second) // the lease and one interval
		w.expect(first, pawl.StatusSucceeded)
		gone.Store(true)
		second := w.strand()
		time.Sleep(time.Minute)
		w.expect(second, pawl.StatusAdmitted)
		gone.Store(false)
		time.Sleep(2 * time.Second)
		w.expect(second, pawl.StatusSucceeded)
		if err := stop(); err != nil {
			w.wrongf("the stop: %v", err)
		}
		if failures < 50 || failures > 70 {
			w.wrongf("%d failed passes told in a minute at an interval of a second", failures)
		}
		w.expectEffects(first, 1)
		w.expectEffects(second, 1)
	})
}

// A slow provider holds up one worker and not the next sweep [E6].
func TestSlowRecoveryHoldsUpNobody(t *testing.T) {
	play(t, func(w *world) {
		w.state()
		slow := w.strand()
		w.bank.before = func(_ context.Context, s pawl.Submission) error {
			if s.OperationID == slow {
				time.Sleep(9 * time.Second)
			}
			return nil
		}
		time.Sleep(time.Second)
		quick := w.strand()
		stop := w.run(w.instance())
		time.Sleep(29500 * time.Millisecond)
		w.expect(slow, pawl.StatusAdmitted)
		time.Sleep(2 * time.Second)
		w.expect(slow, pawl.StatusAdmitted)
		w.expect(quick, pawl.StatusSucceeded)
		time.Sleep(9 * time.Second)
		w.expect(slow, pawl.StatusSucceeded)
		if err := stop(); err != nil {
			w.wrongf("%v", err)
		}
	})
}

// Run's stop waits for what it recovers and for requests in flight; what needs
// longer than the grace is cancelled and recorded as unknown [E7].
func TestRunStops(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		want  pawl.Status
	}{"within the grace": {4 * time.Second, pawl.StatusSucceeded}, "beyond the grace": {9 * time.Second, pawl.StatusUnknown}} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.state()
				recovered := w.strand()
				w.bank.before = func(ctx context.Context, s pawl.Submission) error {
					if s.OperationID != recovered {
						time.Sleep(4 * time.Second)
						return nil
					}
					select {
					case <-time.After(c.takes):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				g := w.instance(func(c *pawl.Config) { c.Grace = 5 * time.Second })
				stop := w.run(g)
				r := w.request()
				time.Sleep(30 * time.Second)
				go func() { _, _ = g.Execute(w.t.Context(), r) }()
				synctest.Wait()
				time.Sleep(time.Second) // recovery has begun its call
				began := time.Now()
				if err := stop(); err != nil || time.Since(began) > 5*time.Second {
					w.wrongf("the stop: %v after %v", err, time.Since(began))
				}
				w.expect(recovered, c.want)
				w.expect(r.OperationID, pawl.StatusSucceeded)
			})
		})
	}
}

// Close ends Run, and a closed gate neither runs nor recovers.
func TestCloseEndsRun(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance()
		ended := make(chan error, 1)
		go func() { ended <- g.Run(w.t.Context()) }()
		time.Sleep(10 * time.Second)
		if err := g.Close(); err != nil {
			w.wrongf("close: %v", err)
		}
		if err := <-ended; err != nil {
			w.wrongf("Run: %v", err)
		}
		w.refusedWith("Run again", g.Run(w.t.Context()), pawl.ErrUnavailable, pawl.ReasonClosed)
		w.strand()
		time.Sleep(time.Minute)
		got, err := g.RecoverOnce(w.t.Context())
		w.refusedWith("recovery", err, pawl.ErrUnavailable, pawl.ReasonClosed)
		if got != (pawl.RecoveryReport{}) {
			w.wrongf("a closed gate recovered: %+v", got)
		}
		_, err = g.Admit(w.t.Context(), w.request())
		w.refusedWith("Admit", err, pawl.ErrNotConfirmed, pawl.ReasonClosed)
		_, err = g.Reserve(w.t.Context(), pawl.ReservedRequest{Key: "k", Kind: credit, Details: []byte(`{}`), Caller: ana()})
		w.refusedWith("Reserve", err, pawl.ErrNotConfirmed, pawl.ReasonClosed)
		if err := g.Close(); err != nil {
			w.wrongf("close again: %v", err)
		}
	})
}

// Purging goes batch by batch, one at a time, with a pause after each, and waits
// an interval when nothing more is left [P4].
func TestRunPurges(t *testing.T) {
	play(t, func(w *world) {
		var mu sync.Mutex
		var starts []time.Duration
		began, batches := time.Now(), 3
		w.store = func(h *handle) pawl.Store {
			return purging{h, func() (pawl.PurgeReport, error) {
				mu.Lock()
				defer mu.Unlock()
				starts = append(starts, time.Since(began))
				batches--
				if batches == 0 {
					return pawl.PurgeReport{}, away(pawl.ErrUnavailable)
				}
				return pawl.PurgeReport{Refusals: 10, More: batches > 0}, nil
			}}
		}
		deleted := 0
		w.events = func(_ context.Context, e pawl.Event) {
			if e.Type == pawl.EventPurge {
				deleted += e.Count
			}
		}
		stop := w.run(w.instance(func(c *pawl.Config) { c.PurgeInterval = time.Hour }))
		time.Sleep(90 * time.Minute)
		if err := stop(); err != nil {
			w.wrongf("%v", err)
		}
		ms := time.Millisecond
		want := []time.Duration{0, 100 * ms, 200 * ms, time.Hour + 200*ms}
		if len(starts) != len(want) || deleted != 30 {
			w.t.Fatalf("batches began at %v, %d rows; want %v, 30 rows", starts, deleted, want)
		}
		for i := range want {
			if starts[i] != want[i] {
				w.wrongf("batches began at %v, want %v", starts, want)
			}
		}
	})
}

// purging is a store that has something to purge.
type purging struct {
	*handle
	purge func() (pawl.PurgeReport, error)
}

func (p purging) Purge(context.Context, pawl.PurgeBatch) (pawl.PurgeReport, error) { return p.purge() }
