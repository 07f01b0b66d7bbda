package pawl

import (
	"context"
	"errors"
	"time"
)

// Admit admits a grant for an operation that its caller will perform itself, a
// queue's worker for example; most callers want Execute. Where the answer is
// Fresh its caller is the owner: it asks [Gate.MaySubmit] just before its create
// call, measures its own time from before this call [O5], and takes what it
// learns to [Gate.Record]. Errors as Execute.
func (g *Gate) Admit(ctx context.Context, r Request) (Admitted, error) {
	if g.crew.isClosed() {
		return Admitted{}, closedFor(ErrNotConfirmed)
	}
	a, err := g.admission(ctx, r)
	if err == nil {
		err = g.precheckAdmission(ctx, a)
	}
	if err != nil {
		g.tellAdmission(ctx, r.Kind, Admitted{}, err)
		return Admitted{}, err
	}
	return g.admit(ctx, a)
}

// Reserve is Admit under an idempotency key, without a grant. Errors as
// ExecuteReserved.
func (g *Gate) Reserve(ctx context.Context, r ReservedRequest) (Admitted, error) {
	if g.crew.isClosed() {
		return Admitted{}, closedFor(ErrNotConfirmed)
	}
	v, err := g.reservation(r)
	if err == nil {
		err = g.precheckReservation(ctx, v)
	}
	if err != nil {
		g.tellAdmission(ctx, r.Kind, Admitted{}, err)
		return Admitted{}, err
	}
	return g.reserve(ctx, v)
}

// admit is the one write [A2].
func (g *Gate) admit(ctx context.Context, a Admission) (Admitted, error) {
	asking, cancel := g.committing(ctx)
	defer cancel()
	got, err := g.store.Admit(asking, a)
	return g.admitted(ctx, got, err, a.OperationID, a.Intent, a.Lock())
}

func (g *Gate) reserve(ctx context.Context, r Reservation) (Admitted, error) {
	asking, cancel := g.committing(ctx)
	defer cancel()
	got, err := g.store.Reserve(asking, r)
	return g.admitted(ctx, got, err, r.OperationID(), r.Intent, r.Lock())
}

// admitted takes a store's answer for what it says and for nothing else: an
// error admits nothing, whatever stands beside it, and so does an answer that is
// about no operation, about another one, or without its owner [A6].
func (g *Gate) admitted(ctx context.Context, got Admitted, err error, id OperationID, i Intent, l Lock) (Admitted, error) {
	switch {
	case err != nil && stopped(err):
		err = notConfirmed(err)
	case err != nil:
	case got.Operation.ID != id, got.Operation.Lock != l, got.Operation.Intent.Kind != i.Kind,
		got.Fresh && (got.Owner.Token == "" || got.Owner.Fence == 0 || got.Operation.Status != StatusAdmitted):
		err = errNoAnswer()
	}
	if err != nil {
		got = Admitted{}
	}
	g.tellAdmission(ctx, i.Kind, got, err)
	return got, err
}

// MaySubmit confirms that an owner may send one create call now [O5]. An owner by
// takeover is held to E5: without a provider contract that is stated in full
// nobody but the first owner may create. Errors: ErrNotFound for a stranger,
// ErrFenced for everything else that speaks against it, ErrUnavailable; on any
// error nothing may be sent.
func (g *Gate) MaySubmit(ctx context.Context, id OperationID, token OwnerToken) (Permit, error) {
	op, err := g.get(ctx, id, AsOperator())
	if err != nil {
		return Permit{}, err
	}
	contract := g.timings.For(op.Intent.Kind).Provider.Stated()
	if op.Fence > FirstFence && !contract {
		return Permit{}, g.refuseWithoutContract(ctx, op, token)
	}
	asking, cancel := g.asking(ctx)
	defer cancel()
	permit, err := g.store.MaySubmit(asking, id, token)
	if err != nil {
		return Permit{}, err
	}
	if permit.Fence > FirstFence && !contract {
		return Permit{}, errNoContract()
	}
	return permit, nil
}

func errNoContract() error { return &Error{Class: ErrFenced, Reason: ReasonContract} }

// refuseWithoutContract says no to an owner, and to a stranger what a stranger
// hears. A renewal asks who it is: unlike a submission check it leaves no trace
// of a call that is not going to be sent [M9].
func (g *Gate) refuseWithoutContract(ctx context.Context, op Operation, token OwnerToken) error {
	if _, err := g.renew(ctx, op, token); err != nil {
		return err
	}
	return errNoContract()
}

// Renew makes an owner's lease a whole one again, as its kind's timings say; it
// never reaches past submission deadline + effect timeout + margin [O3]. Errors:
// ErrNotFound, ErrFenced, ErrUnavailable; on a lost answer assume the old lease.
func (g *Gate) Renew(ctx context.Context, id OperationID, token OwnerToken) (Owner, error) {
	op, err := g.get(ctx, id, AsOperator())
	if err != nil {
		return Owner{}, err
	}
	return g.renew(ctx, op, token)
}

func (g *Gate) renew(ctx context.Context, op Operation, token OwnerToken) (Owner, error) {
	kt := g.timings.For(op.Intent.Kind)
	lease := kt.ExecutionLease
	if op.Takeovers > 0 {
		lease = kt.RecoveryLease
	}
	asking, cancel := g.asking(ctx)
	defer cancel()
	return g.store.Renew(asking, Renewal{
		ID: op.ID, Token: token, Lease: lease, Beyond: kt.EffectTimeout + g.timings.LeaseMargin,
	})
}

// Recorded is what became of an outcome. Disposition is empty where it was not
// recorded at all.
type Recorded struct {
	Operation   Operation
	Disposition Disposition
}

// Record takes an outcome to the owner's door. Where that refuses an owner that
// holds a definite outcome, the outcome goes to the evidence door, so that no
// success is lost: the error is then ErrFenced and Recorded tells what became of
// it [M3]. Errors: ErrInvalid, ErrNotFound, ErrFenced, ErrUnavailable.
func (g *Gate) Record(ctx context.Context, s Statement) (Recorded, error) {
	after, err := g.record(ctx, s)
	if err == nil {
		return Recorded{Operation: after, Disposition: Applied}, nil
	}
	if !mayTestify(s, err) {
		return Recorded{}, err
	}
	op, getErr := g.get(ctx, s.ID, AsOperator())
	if getErr != nil {
		return Recorded{}, err
	}
	return g.testify(ctx, op.Lock, s, err)
}

// deliver is Record for an owner that knows the lock of its operation.
func (g *Gate) deliver(ctx context.Context, l Lock, s Statement) (Recorded, error) {
	after, err := g.record(ctx, s)
	switch {
	case err == nil:
		return Recorded{Operation: after, Disposition: Applied}, nil
	case mayTestify(s, err):
		return g.testify(ctx, l, s, err)
	}
	return Recorded{}, err
}

// mayTestify reports whether a statement that the owner's door did not take is
// one for the evidence door: definite, refused for whatever reason, and not
// merely unheard or a stranger's [M3].
func mayTestify(s Statement, refusal error) bool {
	return s.Outcome.Verdict().Definite() && !again(refusal) &&
		!errors.Is(refusal, ErrInvalid) && !errors.Is(refusal, ErrNotFound)
}

// testify takes a refused statement to the evidence door. The lock is the
// record's own: an owner speaks of what it was given.
func (g *Gate) testify(ctx context.Context, l Lock, s Statement, refusal error) (Recorded, error) {
	settled, err := g.Settle(ctx, Evidence{ID: s.ID, Lock: l, Outcome: s.Outcome, Token: s.Token, Source: "owner"})
	switch {
	case err == nil:
		return Recorded{Operation: settled.Operation, Disposition: settled.Disposition}, refusal
	case again(err):
		return Recorded{}, err // the record may still hear of it
	}
	return Recorded{}, refusal
}

func (g *Gate) record(ctx context.Context, s Statement) (Operation, error) {
	asking, cancel := g.asking(ctx)
	defer cancel()
	after, err := g.store.Record(asking, s)
	g.tell(ctx, Event{
		Type: EventRecord, Operation: s.ID, Kind: after.Intent.Kind, Verdict: s.Outcome.Verdict(), Status: after.Status,
		Reason: ReasonOf(err), Err: err,
	})
	return after, err
}

// TakeOverRequest asks for stalled operations to perform elsewhere.
type TakeOverRequest struct {
	Kinds   []Kind   // empty: all
	Tenants []string // limits of a credential; empty: all
	Issuers []string // limits of a credential; empty: all
	Limit   int      // 1 to MaxPage
	By      string   // who takes over; empty: the gate's name
}

// TakeOver makes its caller the owner of operations whose lease is over [O2], with
// the recovery leases of their kinds. Whoever takes over reads a deferred failure
// first, looks the effect up, and creates only where MaySubmit permits it [E5].
// Errors: ErrInvalid, ErrUnavailable.
func (g *Gate) TakeOver(ctx context.Context, r TakeOverRequest) ([]TakenOver, error) {
	t := TakeOver{Leases: map[Kind]time.Duration{}, Tenants: r.Tenants, Issuers: r.Issuers, Limit: r.Limit, By: r.By}
	for _, k := range r.Kinds {
		t.Leases[k] = g.timings.For(k).RecoveryLease
	}
	if len(r.Kinds) == 0 {
		for k, kt := range g.timings.Kinds {
			t.Leases[k] = kt.RecoveryLease
		}
		t.OtherKinds = g.timings.Default.RecoveryLease
	}
	if t.By == "" {
		t.By = g.name
	}
	return g.takeOver(ctx, t)
}

func (g *Gate) takeOver(ctx context.Context, t TakeOver) ([]TakenOver, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if g.crew.isClosed() {
		return nil, closedFor(ErrUnavailable)
	}
	asking, cancel := g.committing(ctx)
	defer cancel()
	taken, err := g.store.TakeOver(asking, t)
	for _, x := range taken {
		g.tell(ctx, Event{
			Type: EventTakeover, Operation: x.Operation.ID, Kind: x.Operation.Intent.Kind, Fence: x.Owner.Fence,
			Status: x.Operation.Status, Count: x.Operation.Takeovers,
		})
	}
	return taken, err
}
