package pawl

import (
	"context"
	"errors"
	"time"
)

// Execute admits a grant for one operation and performs it, in this order:
// shape, grant, caller and intent, the effect's own check, the one atomic
// admission, the submission check, the create call, the record.
//
// The answer is the operation as it stands: succeeded, failed, or not yet final,
// which means "ask again", never "done". A repeated request reports and never
// performs anything [A8]; what stalled is recovery's [E4]. Once admission is
// confirmed the work no longer depends on ctx: a caller that hangs up changes
// nothing, and gets the operation as it was admitted.
//
// Errors: ErrInvalid and ErrRefused, nothing ran and nothing was written [A9];
// ErrNotConfirmed, nothing ran, repeat it with the same operation id [A6].
func (g *Gate) Execute(ctx context.Context, r Request) (Operation, error) {
	e, err := g.effect(r.Kind)
	if err != nil {
		return g.refuse(ctx, r.Kind, err)
	}
	a, err := g.admission(ctx, r)
	if err != nil {
		return g.refuse(ctx, r.Kind, err)
	}
	if err := g.precheckAdmission(ctx, a); err != nil {
		return g.refuse(ctx, r.Kind, err)
	}
	return g.execute(ctx, e, func(ctx context.Context) (Admitted, error) { return g.admit(ctx, a) })
}

// ExecuteReserved is Execute under an idempotency key, without a grant: the same
// key with the same lock joins and reports, another lock is ErrMismatch and runs
// nothing [B1]. Errors: ErrInvalid, ErrRefused, ErrMismatch, ErrNotConfirmed.
func (g *Gate) ExecuteReserved(ctx context.Context, r ReservedRequest) (Operation, error) {
	e, err := g.effect(r.Kind)
	if err != nil {
		return g.refuse(ctx, r.Kind, err)
	}
	v, err := g.reservation(r)
	if err != nil {
		return g.refuse(ctx, r.Kind, err)
	}
	if err := g.precheckReservation(ctx, v); err != nil {
		return g.refuse(ctx, r.Kind, err)
	}
	return g.execute(ctx, e, func(ctx context.Context) (Admitted, error) { return g.reserve(ctx, v) })
}

// effect returns what performs a kind. A kind that nothing here performs is
// refused before anything is written [A9].
func (g *Gate) effect(k Kind) (Effect, error) {
	if err := k.Validate(); err != nil {
		return nil, err
	}
	e := g.effects[k]
	if e == nil {
		return nil, refused(ReasonKindUnknown)
	}
	return e, nil
}

// refuse tells of a request that never came to the store.
func (g *Gate) refuse(ctx context.Context, k Kind, err error) (Operation, error) {
	g.tellAdmission(ctx, k, Admitted{}, err)
	return Operation{}, err
}

// execute claims and, where this call is the one that claimed, performs.
func (g *Gate) execute(ctx context.Context, e Effect, claim func(context.Context) (Admitted, error)) (Operation, error) {
	work, j, ok := g.crew.join(ctx)
	if !ok {
		return g.refuse(ctx, e.Kind(), closedFor(ErrNotConfirmed))
	}
	watch := startStopwatch() // before the question, so that no wait for its answer is forgotten [O5]
	admitted, err := claim(ctx)
	if err != nil || !admitted.Fresh {
		g.crew.leave(j)
		return admitted.Operation, err
	}
	answer := make(chan Operation, 1)
	go func() {
		defer g.crew.leave(j)
		defer close(answer)
		op, t := admitted.Operation, newTenure(admitted.Owner, watch)
		if out, left := g.perform(work, e, op, t, answer); left {
			g.crew.standBy(j)
			g.insist(work, op, t, out)
		}
	}()
	select {
	case op, ok := <-answer:
		if ok {
			return op, nil
		}
	case <-ctx.Done():
	}
	return admitted.Operation.Clone(), nil // the work goes on with its own
}

// perform is the work of the owner that an admission made. It answers once, as
// soon as there is an answer for the caller; left says that the store is still to
// be told of a definite outcome.
func (g *Gate) perform(ctx context.Context, e Effect, op Operation, t tenure, answer chan<- Operation) (out Outcome, left bool) {
	if err := g.confirm(ctx, op, t); err != nil {
		g.tell(ctx, Event{
			Type: EventSubmit, Operation: op.ID, Kind: op.Intent.Kind, Fence: t.owner.Fence, Reason: ReasonOf(err), Err: err,
		})
		answer <- op // nothing was sent; recovery takes it when the lease is over
		return Outcome{}, false
	}
	out = g.submit(ctx, e, op, t)
	after, err := g.conclude(ctx, op, t.token, out, 0)
	answer <- after
	return out, err != nil && again(err) && out.Verdict().Definite()
}

// recordTries is how often an outcome is taken to the store before its caller is
// told that it is pending.
const recordTries = 3

// conclude takes an outcome to the record on a context of its own [E7], a few
// times while the store is away. The operation returned is as it was where the
// outcome could not be recorded.
func (g *Gate) conclude(ctx context.Context, op Operation, token OwnerToken, out Outcome, pause time.Duration) (Operation, error) {
	ctx = context.WithoutCancel(ctx)
	s := Statement{ID: op.ID, Token: token, Outcome: out, Pause: pause}
	wait := g.timings.StoreCallTimeout / 20
	for try := 1; ; try++ {
		after, err := g.deliver(ctx, op.Lock, s)
		if after.Disposition != "" {
			return after.Operation, nil
		}
		if !again(err) || try == recordTries {
			return op, err
		}
		pauseFor(ctx, wait)
		wait *= 2
	}
}

// insistCap is the longest pause between two deliveries of an outcome that is
// known here and nowhere else.
const insistCap = 30 * time.Second

// insist delivers a definite outcome that the store could not be told, until it
// is, or no attempt can be under way any more: a known success is not left to a
// look-up that a provider may not even offer [M3]. A stop gets one last try.
func (g *Gate) insist(ctx context.Context, op Operation, t tenure, out Outcome) {
	s := Statement{ID: op.ID, Token: t.token, Outcome: out}
	wait := g.timings.StoreCallTimeout
	for waited := true; waited && t.submitLeft() > 0; wait = min(2*wait, insistCap) {
		waited = pauseFor(ctx, wait)
		after, err := g.deliver(context.WithoutCancel(ctx), op.Lock, s)
		if after.Disposition != "" || !again(err) {
			return
		}
	}
}

// pauseFor waits on the monotonic clock and reports whether ctx let it.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// precheckAdmission asks the effect before anything is spent [E4]. A refusal does
// not hide an operation that was admitted before: its retry is answered by the
// store [A8].
func (g *Gate) precheckAdmission(ctx context.Context, a Admission) error {
	err := g.precheck(ctx, Proposal{OperationID: a.OperationID, Kind: a.Intent.Kind, Details: a.Intent.Details, Caller: a.Caller})
	if err != nil && g.isThere(ctx, a.OperationID, a.Caller, a.Lock(), a.Grant.Key) {
		return nil
	}
	return err
}

func (g *Gate) precheckReservation(ctx context.Context, r Reservation) error {
	id := r.OperationID()
	err := g.precheck(ctx, Proposal{OperationID: id, Kind: r.Intent.Kind, Details: r.Intent.Details, Caller: r.Caller})
	if err != nil && g.isThere(ctx, id, r.Caller, r.Lock(), GrantKey{}) {
		return nil
	}
	return err
}

// precheck makes every refusal of an effect's own check one of ours.
func (g *Gate) precheck(ctx context.Context, p Proposal) error {
	checker, ok := g.effects[p.Kind].(Prechecker)
	if !ok {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, g.timings.For(p.Kind).FindTimeout)
	defer cancel()
	err := checker.Precheck(asking, p)
	switch {
	case err == nil:
		return nil
	case again(err):
		return notConfirmed(err)
	}
	return &Error{Class: ErrRefused, Reason: ReasonPrecheck, Cause: plain(err)}
}

// isThere reports whether this very operation was admitted before. The admission
// does not rest on it: under an id that exists nothing can be admitted afresh [A7].
func (g *Gate) isThere(ctx context.Context, id OperationID, c Caller, l Lock, key GrantKey) bool {
	op, err := g.get(ctx, id, AsCaller(c))
	return err == nil && op.Lock == l && op.Grant == key
}

// errNoAnswer is a store that neither admitted nor said no. Nothing runs [A6].
func errNoAnswer() error {
	return errors.New("pawl: the store's answer to an admission is about no operation, or another")
}
