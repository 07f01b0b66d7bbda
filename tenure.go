package pawl

import (
	"context"
	"time"
)

// tenure is an ownership as its owner measures it: on its own monotonic clock,
// from before it asked [O5]. It can only end too early. The zero value is over.
type tenure struct {
	owner Owner
	token OwnerToken // of the write that made the owner; renewals do not repeat it
	watch stopwatch
}

// newTenure takes an owner's answer. The watch was started before the question.
func newTenure(o Owner, w stopwatch) tenure { return tenure{owner: o, token: o.Token, watch: w} }

// leaseLeft is how much of the lease is left.
func (t tenure) leaseLeft() time.Duration { return t.left(t.owner.LeaseUntil) }

// submitLeft is how long a create call may still be sent.
func (t tenure) submitLeft() time.Duration { return t.left(t.owner.SubmitBy) }

func (t tenure) left(until time.Time) time.Duration { return t.span(until) - t.watch.elapsed() }

// span is how long after the question something ends; 0 for no owner.
func (t tenure) span(until time.Time) time.Duration {
	if t.owner.AsOf.IsZero() || until.IsZero() {
		return 0
	}
	return until.Sub(t.owner.AsOf)
}

// during bounds a step of an owner by its own time and by its lease, less the
// margin: the owner has stopped before somebody else may begin [O4].
func (t tenure) during(ctx context.Context, step, margin time.Duration) (context.Context, context.CancelFunc) {
	return t.before(ctx, step, t.span(t.owner.LeaseUntil)-margin)
}

// calling bounds a create call by what a call may take that is sent at the
// submission deadline: the provider's key must outlast that, and a pause since
// the check does not get more [O5].
func (t tenure) calling(ctx context.Context, step, margin time.Duration) (context.Context, context.CancelFunc) {
	return t.before(ctx, step, min(t.span(t.owner.LeaseUntil)-margin, t.span(t.owner.SubmitBy)+step))
}

// before bounds a step by its own time and by an end that counts from the question.
func (t tenure) before(ctx context.Context, step, end time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(ctx, t.watch.at(end))
	stepping, stop := context.WithTimeout(ctx, step)
	return stepping, func() { stop(); cancel() }
}

// confirm asks whether one create call may be sent now [O5]: the store, and then
// the owner's own clock, so that a pause between the two is seen as far as it
// can be. On any error nothing is sent.
func (g *Gate) confirm(ctx context.Context, op Operation, t tenure) error {
	asking, cancel := g.asking(ctx)
	defer cancel()
	permit, err := g.store.MaySubmit(asking, op.ID, t.token)
	switch {
	case err != nil:
		return err
	case !permit.Granted || permit.Fence != t.owner.Fence:
		return &Error{Class: ErrFenced, Reason: ReasonSuperseded}
	case ctx.Err() != nil:
		return &Error{Class: ErrUnavailable, Reason: ReasonClosed}
	case t.submitLeft() <= 0:
		return &Error{Class: ErrFenced, Reason: ReasonDeadlineOver}
	case t.leaseLeft() <= g.timings.LeaseMargin:
		return &Error{Class: ErrFenced, Reason: ReasonLeaseOver}
	}
	return nil
}

// submit sends one create call under its own timeout, which the lease covers.
func (g *Gate) submit(ctx context.Context, e Effect, op Operation, t tenure) Outcome {
	calling, cancel := t.calling(ctx, g.timings.For(op.Intent.Kind).EffectTimeout, g.timings.LeaseMargin)
	defer cancel()
	watch := startStopwatch()
	out, note := submitTo(calling, e, op.submission(t.owner.Fence))
	g.tell(ctx, Event{
		Type: EventSubmit, Operation: op.ID, Kind: op.Intent.Kind, Fence: t.owner.Fence, Verdict: out.Verdict(),
		Elapsed: watch.elapsed(), Note: note,
	})
	return out
}
