package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// chaos draws what goes wrong. Every choice comes from one seed; in which order
// goroutines ask for them does not, so a run is a sample and what is claimed
// holds for all of them.
type chaos struct {
	mu       sync.Mutex
	rng      *rand.Rand
	healed   bool
	declined map[pawl.OperationID]bool // by the provider, which remembers it
}

func (c *chaos) chance(percent int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.healed && c.rng.IntN(100) < percent
}

func (c *chaos) below(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

// nap lasts up to two minutes, past every lease.
func (c *chaos) nap() { time.Sleep(time.Duration(c.below(120_000)) * time.Millisecond) }

// call is what may happen to a store call, on the way there or back.
func (c *chaos) call(_ context.Context, call string) error {
	if c.chance(3) {
		c.nap()
	}
	if !c.chance(12) {
		return nil
	}
	if call == "Admit" || call == "Reserve" {
		return away(pawl.ErrNotConfirmed)
	}
	return away(pawl.ErrUnavailable)
}

// provider makes the bank as unreliable as banks are: it is slow, does not heed
// who hangs up, refuses some and remembers that, and loses replies.
func (c *chaos) provider(w *world) {
	w.bank.before = func(_ context.Context, s pawl.Submission) error {
		switch {
		case c.chance(10):
			return errors.New("no connection")
		case c.chance(15):
			c.nap()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.declined[s.OperationID] || !c.healed && w.bank.effects(s.OperationID) == 0 && c.rng.IntN(100) < 8 {
			c.declined[s.OperationID] = true
			return errDeclined{}
		}
		return nil
	}
	w.bank.after = func(_ context.Context, _ pawl.Submission, id string) (pawl.Outcome, error) {
		if c.chance(5) {
			c.nap()
		}
		if c.chance(20) {
			return pawl.Outcome{}, errors.New("reply lost")
		}
		return pawl.Succeeded(id), nil
	}
	w.bank.find = func(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
		if c.chance(15) {
			return pawl.Found{}, errors.New("down")
		}
		return w.bank.look(l)
	}
	w.effect = func(e pawl.Effect) pawl.Effect { return declining{w.bank} }
}

// errDeclined is the bank's word that it made nothing and will not.
type errDeclined struct{}

// Error implements error.
func (errDeclined) Error() string { return "declined" }

// declining reads the bank's refusals.
type declining struct{ *bank }

// Submit implements pawl.Effect.
func (d declining) Submit(ctx context.Context, s pawl.Submission) (pawl.Outcome, error) {
	out, err := d.bank.Submit(ctx, s)
	if errors.Is(err, errDeclined{}) {
		return pawl.Failed("declined"), nil
	}
	return out, err
}

// unreliable plays twelve operations on three instances that are killed and
// replaced, with clients that retry anywhere, until everything is well again.
func unreliable(w *world, seed uint64) {
	c := &chaos{rng: rand.New(rand.NewPCG(seed, 0)), declined: map[pawl.OperationID]bool{}}
	if seed%2 == 0 { // a provider that states a contract and keeps it; the other states none
		w.state()
		w.bank.atomic = true
	}
	c.provider(w)
	start := func() instance {
		g := w.instance(func(cfg *pawl.Config) { cfg.Grace = time.Minute })
		g.handle.before, g.handle.after = c.call, c.call
		return g
	}
	instances := []instance{start(), start(), start()}
	var work sync.WaitGroup
	var requests []pawl.Request
	for range 12 {
		r := w.request()
		requests = append(requests, r)
		for _, g := range instances {
			delay, attempts := time.Duration(c.below(60_000))*time.Millisecond, 1+c.below(3)
			work.Go(func() {
				time.Sleep(delay)
				for range attempts {
					if _, err := g.Execute(w.t.Context(), r); err != nil && !errors.Is(err, pawl.ErrNotConfirmed) {
						w.wrongf("a client hears %v", err)
					}
				}
			})
		}
	}
	for _, g := range instances {
		work.Go(func() {
			for range 10 {
				time.Sleep(20 * time.Second)
				_, _ = g.RecoverOnce(w.t.Context()) // whatever goes wrong with it
			}
		})
	}
	work.Wait()
	c.mu.Lock()
	c.healed = true
	c.mu.Unlock()
	healthy := w.instance()
	for range 40 {
		time.Sleep(10 * time.Minute)
		if _, err := healthy.RecoverOnce(w.t.Context()); err != nil {
			w.wrongf("recovery of a healthy instance: %v", err)
		}
	}
	for i, r := range requests {
		w.agrees(fmt.Sprintf("seed %d, operation %d", seed, i), healthy, r, c.declined[r.OperationID])
	}
}

// agrees notes an operation that ended with two effects, not at all, or in
// disagreement with the provider's books.
func (w *world) agrees(what string, g instance, r pawl.Request, declined bool) {
	made := w.bank.effects(r.OperationID)
	op, err := g.Status(w.t.Context(), r.OperationID, pawl.AsCaller(ana()), 0)
	if errors.Is(err, pawl.ErrNotFound) {
		if made != 0 {
			w.wrongf("%s: %d effects without an admission", what, made)
		}
		return
	}
	ok := err == nil && made <= 1 && !op.DivergenceSeen && !op.MismatchSeen
	switch op.Status {
	case pawl.StatusSucceeded:
		ok = ok && made == 1
	case pawl.StatusFailed:
		ok = ok && made == 0 && declined
	case pawl.StatusNeedsReconciliation:
	default:
		ok = false
	}
	if !ok {
		w.wrongf("%s: %v, %d effects, declined %v, flags %v %v %v, %v", what, op.Status, made, declined,
			op.MismatchSeen, op.ContradictionSeen, op.DivergenceSeen, err)
	}
}

// Whatever goes wrong between clients, instances, store and provider: at most one
// effect for each operation, and in the end a record that agrees with the books
// or waits for a person [E1, E5, M3, O5].
func TestUnreliableWorld(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		for _, text := range bubble(t, nil, func(w *world) { unreliable(w, seed) }) {
			t.Error(text)
		}
	}
}
