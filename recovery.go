package pawl

import (
	"context"
	"fmt"
	"time"
)

// RecoveryReport tells what a recovery pass did. Every operation taken over is
// counted once more under what became of it.
type RecoveryReport struct {
	TakenOver  int // operations recovery became the owner of
	Created    int // create calls sent, whatever became of them
	Settled    int // made final
	Paced      int // nothing learnt; left alone for a while [E6]
	HandedOver int // wait for a person now
	Conflicts  int // the provider holds the effect of another intent under the reference
	Lost       int // another owner or evidence was faster, or the store was away: the lease's end frees it
}

// ending is what became of one operation taken over.
type ending uint8

const (
	lost ending = iota // the zero value claims nothing
	settled
	paced
	handedOver
	conflicted
)

func (r *RecoveryReport) count(e ending) {
	switch e {
	case settled:
		r.Settled++
	case paced:
		r.Paced++
	case handedOver:
		r.HandedOver++
	case conflicted:
		r.Conflicts++
	default:
		r.Lost++
	}
}

// rescue is recovery's ownership of one operation.
type rescue struct {
	g       *Gate
	effect  Effect
	kt      KindTimings
	op      Operation
	tenure  tenure
	created bool
}

func (g *Gate) newRescue(t TakenOver, w stopwatch) *rescue {
	k := t.Operation.Intent.Kind
	return &rescue{g: g, effect: g.effects[k], kt: g.timings.For(k), op: t.Operation, tenure: newTenure(t.Owner, w)}
}

// run finishes an operation as far as that is safe [E5]. The deferred failure is
// read first, and decides only where the provider does not know of an effect.
func (r *rescue) run(ctx context.Context) ending {
	if r.effect == nil {
		return lost // a store that gave what was not asked for
	}
	finder, ok := r.effect.(Finder)
	if !ok {
		if d := r.op.Deferred; d != nil {
			return r.conclude(ctx, Failed(d.Reason))
		}
		return r.handOver(ctx, "the provider cannot be asked what became of it")
	}
	if !r.renew(ctx) {
		return lost
	}
	found := r.find(ctx, finder)
	switch {
	case found.answer == lookupEffect:
		return r.settle(ctx, found)
	case found.answer == lookupNothing && r.op.Deferred != nil:
		return r.conclude(ctx, Failed(r.op.Deferred.Reason))
	case found.answer == lookupNothing:
		return r.createAgain(ctx)
	}
	return r.pace(ctx, "the provider did not tell what became of it", 0)
}

// renew makes the lease a whole one before a step [E6]. The time to the next
// renewal counts from before this one was asked for; one that does not answer
// ends before the lease does.
func (r *rescue) renew(ctx context.Context) bool {
	watch := startStopwatch()
	asking, cancel := r.tenure.during(ctx, r.g.timings.StoreCallTimeout, r.g.timings.LeaseMargin)
	defer cancel()
	owner, err := r.g.renew(asking, r.op, r.tenure.token)
	if err != nil || owner.Fence != r.tenure.owner.Fence {
		return false
	}
	r.tenure.owner, r.tenure.watch = owner, watch
	return true
}

// find asks the provider [E2].
func (r *rescue) find(ctx context.Context, finder Finder) Found {
	asking, cancel := r.tenure.during(ctx, r.kt.FindTimeout, r.g.timings.LeaseMargin)
	defer cancel()
	watch := startStopwatch()
	found, note := findWith(asking, finder, Lookup{
		OperationID: r.op.ID, Reference: r.op.ID.String(), Kind: r.op.Intent.Kind,
		Caller: r.op.Caller.Normalised(), Details: r.op.Intent.Details,
	})
	if note == "" {
		note = found.String()
	}
	r.g.tell(ctx, Event{
		Type: EventFind, Operation: r.op.ID, Kind: r.op.Intent.Kind, Fence: r.tenure.owner.Fence,
		Elapsed: watch.elapsed(), Note: note,
	})
	return found
}

// settle takes what the provider holds to the evidence door. The fingerprint is
// that of the provider's answer; the binding is inherited, because the reference
// is this operation's id [E2]. Under another intent a success makes a conflict,
// and whatever it says, the key is not free to create with.
func (r *rescue) settle(ctx context.Context, found Found) ending {
	theirs := Intent{Kind: r.op.Intent.Kind, Details: found.details}
	e := Evidence{
		ID: r.op.ID, Lock: Lock{Fingerprint: theirs.Fingerprint(), Binding: r.op.Lock.Binding},
		Outcome: found.outcome, Token: r.tenure.token, Trusted: true, Source: "look-up",
	}
	got, err := r.g.settleSurely(ctx, e)
	switch {
	case err != nil:
		return lost
	case got.Disposition == Mismatched && found.outcome.Verdict() == VerdictSucceeded:
		return conflicted
	case got.Disposition == Mismatched:
		return r.handOver(ctx, "the provider knows the reference for another intent")
	case got.Disposition == Deferred:
		return lost
	}
	return settled
}

// createAgain sends another create call only where the provider answered that it
// knows nothing, states its contract in full, the submission deadline is ahead,
// and the owner still is one just before the call [E5, O5]. Otherwise a person
// decides: that nothing was found is never a failure.
func (r *rescue) createAgain(ctx context.Context) ending {
	switch {
	case !r.kt.Provider.Stated():
		return r.handOver(ctx, "nothing was found, and no stated contract allows another call")
	case r.op.Takeovers > r.kt.MaxTakeovers:
		return r.handOver(ctx, "nothing was found, and all attempts are used up")
	case !r.renew(ctx):
		return lost
	}
	switch err := r.g.confirm(ctx, r.op, r.tenure); {
	case ReasonOf(err) == ReasonDeadlineOver:
		return r.handOver(ctx, "nothing was found, and the submission deadline is over")
	case err != nil:
		return lost
	}
	r.created = true
	out := r.g.submit(ctx, r.effect, r.op, r.tenure)
	if out.Verdict().Definite() {
		return r.conclude(ctx, out)
	}
	return r.pace(ctx, out.Reason(), r.tenure.leaseLeft())
}

// conclude records a definite outcome.
func (r *rescue) conclude(ctx context.Context, out Outcome) ending {
	after, err := r.g.conclude(ctx, r.op, r.tenure.token, out, 0)
	if err != nil || !after.Status.Final() {
		return lost
	}
	return settled
}

// pace leaves the operation alone for a while, or to a person when it has been
// tried often enough. inFlight is how long the lease still guards a call that may
// be under way: where that is pause enough the lease stays, for without it another
// attempt's refusal would be taken for the end of the matter [E6].
func (r *rescue) pace(ctx context.Context, why string, inFlight time.Duration) ending {
	if r.kt.exhausted(r.op) {
		return r.handOver(ctx, fmt.Sprintf("%s, after %d attempts", why, r.op.Takeovers))
	}
	pause := r.kt.pace(r.op.Takeovers, r.g.jitter())
	if pause <= inFlight {
		pause = 0
	}
	if _, err := r.g.conclude(ctx, r.op, r.tenure.token, Unknown(why), pause); err != nil {
		return lost
	}
	return paced
}

// handOver leaves the operation to a person.
func (r *rescue) handOver(ctx context.Context, why string) ending {
	after, err := r.g.conclude(ctx, r.op, r.tenure.token, NeedsReconciliation(why), 0)
	if err != nil {
		return lost
	}
	r.g.tell(ctx, Event{
		Type: EventHandOver, Operation: r.op.ID, Kind: r.op.Intent.Kind, Fence: r.tenure.owner.Fence,
		Status: after.Status, Count: r.op.Takeovers, // why is for the record: it may be a provider's words [S2]
	})
	return handedOver
}

// settleSurely is Settle on a context of its own, a few times while the store is
// away [E7].
func (g *Gate) settleSurely(ctx context.Context, e Evidence) (got Settlement, err error) {
	ctx = context.WithoutCancel(ctx)
	wait := g.timings.StoreCallTimeout / 20
	for try := 1; ; try++ {
		got, err = g.Settle(ctx, e)
		if err == nil || !again(err) || try == recordTries {
			return got, err
		}
		pauseFor(ctx, wait)
		wait *= 2
	}
}
