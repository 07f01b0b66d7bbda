//go:build unix && !failpoints

package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// plan is everything that the seed decides: what is presented and how, what the provider does to each call, and when the
// workers are struck.
type plan struct {
	seed    uint64
	trials  []trial
	strikes []strike
	lookups []billing.Fault
}

// trial is one grant and what the customer does with it. It has an account of its own, so that its effects can be told
// whatever operation they came under.
type trial struct {
	n        int
	form     pawl.Form
	account  string
	amount   string
	declined bool          // the provider refuses, for certain and for ever
	fault    billing.Fault // what happens to the first create call
	lossy    bool          // the effect takes place and its answer does not arrive
	held     bool          // the first call stays in flight until recovery has acted

	both    bool // two presentations at once, one to each worker
	rivals  bool // two at once, under two operation ids
	hangUp  bool // the first caller hangs up before it is answered
	again   bool // the same operation once more, when it was answered
	other   bool // another operation with the spent grant
	first   int  // the worker it is presented to first
	hurried time.Duration
}

// strike hits one worker when the trial begins.
type strike struct {
	trial  int
	worker int
	pause  bool   // past the lease; else it is killed and started anew
	gate   string // of the provider: first a call must be held there; empty: at once
}

// measure says how much of everything a plan has.
type measure struct {
	grants int
	tokens bool // no stored grants
	spent  bool // every grant is presented again under another id
	early  bool // every strike comes while a call is held before its effect
}

// strikes: one kill in so many grants, one pause in so many; every other one while a call is held at the provider.
const (
	grantsPerKill  = 12
	grantsPerPause = 40
)

func newPlan(seed uint64, m measure) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := plan{seed: seed, lookups: lookupFaults()}
	for n := range m.grants {
		p.trials = append(p.trials, newTrial(r, n, m))
	}
	kills, pauses := max(2, m.grants/grantsPerKill), max(2, m.grants/grantsPerPause)
	// Among the first trials nothing is under way yet that a strike could hit.
	at := r.Perm(m.grants - 2)[:min(kills+pauses, m.grants-2)]
	for i, n := range at {
		s := strike{trial: n + 2, worker: r.IntN(2), pause: i >= kills}
		if early := r.IntN(2) == 0; i%2 == 0 || m.early {
			s.gate = p.trials[s.trial].hold(s.worker, early || m.early)
		}
		p.strikes = append(p.strikes, s)
	}
	slices.SortFunc(p.strikes, func(a, b strike) int { return a.trial - b.trial })
	return p
}

func newTrial(r *rand.Rand, n int, m measure) trial {
	chance := func(percent int) bool { return r.IntN(100) < percent }
	x := trial{
		n: n, form: pawl.FormToken, account: fmt.Sprintf("acc_%05d", n), amount: fmt.Sprintf("%d.%02d", 1+r.IntN(500), r.IntN(100)),
		declined: chance(6), hangUp: chance(10), again: chance(30), other: chance(50) || m.spent,
		first: r.IntN(2), hurried: time.Duration(r.IntN(60)) * time.Millisecond,
	}
	if chance(40) && !m.tokens {
		x.form = pawl.FormStored
	}
	switch {
	case chance(20):
		x.both = true
	case chance(15):
		x.rivals = true
	}
	if x.declined {
		x.fault = billing.Fault{Account: x.account, Do: billing.Decline, Code: "account_closed", DelayBefore: x.hurried}
		return x
	}
	x.fault, x.lossy = createFault(r, x.account)
	return x
}

// createFault is what happens to the first create call of an account.
func createFault(r *rand.Rand, account string) (f billing.Fault, lossy bool) {
	f = billing.Fault{Account: account, Times: 1, DelayBefore: time.Duration(r.IntN(200)) * time.Millisecond}
	switch n := r.IntN(100); {
	case n < 36:
		lost := []billing.Fault{
			{Do: billing.LostAfter},
			{Do: billing.LostAfter, Reset: true},
			{Do: billing.FailAfter},
			{Do: billing.FailAfter, Stored: true},
			{Do: billing.GarbageAfter},
			{Do: billing.HalfAfter},
			{Do: billing.CutBefore},
			{DelayAfter: 2 * callTimeout},
		}[r.IntN(8)]
		lost.Account, lost.Times, lost.DelayBefore = f.Account, f.Times, f.DelayBefore
		return lost, true
	case n < 42:
		f.Do = billing.DropBefore
	case n < 48:
		f.Do = billing.FailBefore
	case n < 52:
		f.DelayBefore = 2 * callTimeout // the effect comes when nobody waits for it any more
	}
	return f, false
}

// lookupFaults make every fifth look-up learn nothing, or late.
func lookupFaults() []billing.Fault {
	return []billing.Fault{
		{On: billing.CallLookup, Probability: 0.08, Do: billing.FailBefore},
		{On: billing.CallLookup, Probability: 0.08, Do: billing.LostAfter},
		{On: billing.CallLookup, Probability: 0.05, DelayBefore: 2 * callTimeout},
	}
}

// hold makes the trial's first call stay at the provider, before its effect or after it, and returns the gate. The call is
// that of the worker that will be struck.
func (x *trial) hold(worker int, early bool) (gate string) {
	gate = "gate of " + x.account
	x.held, x.declined, x.hangUp, x.both, x.rivals, x.first = true, false, false, false, false, worker
	x.lossy = !early
	x.fault = billing.Fault{Account: x.account, Times: 1, HoldBefore: gate}
	if x.lossy {
		x.fault = billing.Fault{Account: x.account, Times: 1, HoldAfter: gate, Do: billing.LostAfter}
	}
	return gate
}

// faults are the provider's rules, one a trial.
func (p plan) faults() (all []billing.Fault) {
	for _, x := range p.trials {
		all = append(all, x.fault)
	}
	return append(all, p.lookups...)
}
