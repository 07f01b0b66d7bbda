package sim

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
)

// travel takes one call over the wire. The answer may never come; what was sent
// takes effect all the same. A call that its owner has no time for is not sent.
func travel[T any](ctx context.Context, th *theatre, host int, c call, lost error, serve func(fate) (T, error)) (none T, _ error) {
	if ctx.Value(direct{}) != nil {
		return serve(fate{})
	}
	th.mu.Lock()
	if th.dead[host] || ctx.Err() != nil {
		th.mu.Unlock()
		return none, lost
	}
	k := sort{host, c}
	th.calls[k]++
	f := th.fateOf(host, c, th.calls[k])
	th.mu.Unlock()
	type reply struct {
		v   T
		err error
	}
	last, _ := ctx.Deadline()
	back := make(chan reply, 1)
	th.wires.Go(func() {
		time.Sleep(f.there)
		late := (c.toProvider() || c == callAdmit) && time.Now().After(last.Add(slack))
		switch {
		case late || f.how == requestLost:
			return
		case f.how == requestReset:
			back <- reply{err: lost}
			return
		}
		v, err := serve(f)
		time.Sleep(f.back)
		switch f.how {
		case answerLost:
		case answerReset:
			back <- reply{err: lost}
		default:
			back <- reply{v, err}
		}
	})
	select {
	case r := <-back:
		return r.v, r.err
	case <-ctx.Done():
		return none, lost
	}
}

// handle is one host's way to the store.
type handle struct {
	pawl.Store
	th   *theatre
	host int
}

func ask[T any](ctx context.Context, h handle, c call, lost error, serve func(context.Context) (T, error)) (T, error) {
	return travel(ctx, h.th, h.host, c, lost, func(fate) (T, error) { return serve(context.WithoutCancel(ctx)) })
}

// Admit implements pawl.Store.
func (h handle) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	return ask(ctx, h, callAdmit, notConfirmed(), func(ctx context.Context) (pawl.Admitted, error) { return h.Store.Admit(ctx, a) })
}

// Reserve implements pawl.Store.
func (h handle) Reserve(ctx context.Context, r pawl.Reservation) (pawl.Admitted, error) {
	return ask(ctx, h, callAdmit, notConfirmed(), func(ctx context.Context) (pawl.Admitted, error) { return h.Store.Reserve(ctx, r) })
}

// MaySubmit implements pawl.Store.
func (h handle) MaySubmit(ctx context.Context, id pawl.OperationID, t pawl.OwnerToken) (pawl.Permit, error) {
	return ask(ctx, h, callMaySubmit, unavailable(), func(ctx context.Context) (pawl.Permit, error) { return h.Store.MaySubmit(ctx, id, t) })
}

// Renew implements pawl.Store.
func (h handle) Renew(ctx context.Context, r pawl.Renewal) (pawl.Owner, error) {
	return ask(ctx, h, callRenew, unavailable(), func(ctx context.Context) (pawl.Owner, error) { return h.Store.Renew(ctx, r) })
}

// Record implements pawl.Store.
func (h handle) Record(ctx context.Context, s pawl.Statement) (pawl.Operation, error) {
	return ask(ctx, h, callRecord, unavailable(), func(ctx context.Context) (pawl.Operation, error) { return h.Store.Record(ctx, s) })
}

// Settle implements pawl.Store.
func (h handle) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return ask(ctx, h, callSettle, unavailable(), func(ctx context.Context) (pawl.Settlement, error) { return h.Store.Settle(ctx, e) })
}

// TakeOver implements pawl.Store.
func (h handle) TakeOver(ctx context.Context, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	return ask(ctx, h, callTakeOver, unavailable(), func(ctx context.Context) ([]pawl.TakenOver, error) { return h.Store.TakeOver(ctx, t) })
}

// bank is one host's way to the provider, whose books are a world's.
type bank struct {
	th   *theatre
	host int
}

// Kind implements pawl.Effect.
func (b bank) Kind() pawl.Kind { return kind }

// Submit implements pawl.Effect.
func (b bank) Submit(ctx context.Context, s pawl.Submission) (pawl.Outcome, error) {
	return travel(ctx, b.th, b.host, callCreate, error(errProvider("no answer")), func(f fate) (pawl.Outcome, error) {
		got := b.open(s.OperationID, func(w *World, m *message) answer { return w.perform(m, f.how == contrary) })
		return got.out, got.err
	})
}

// open lets the provider act at the present time.
func (b bank) open(id pawl.OperationID, act func(*World, *message) answer) answer {
	b.th.mu.Lock()
	defer b.th.mu.Unlock()
	w := b.th.books
	w.now = b.th.now()
	return act(w, &message{target: int8(w.targetOf(id))})
}

// findingBank is a bank that can be asked.
type findingBank struct{ bank }

// Find implements pawl.Finder.
func (b findingBank) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	return travel(ctx, b.th, b.host, callFind, error(errProvider("no answer")), func(f fate) (pawl.Found, error) {
		got := b.open(l.OperationID, func(w *World, m *message) answer { return w.lookUp(m, f.how == contrary) })
		switch got.found {
		case foundEffect, foundRefusal:
			return pawl.FoundEffect(l.Details, got.out), nil
		case foundNothing:
			return pawl.FoundNothing(), nil
		default:
			return pawl.Found{}, nil
		}
	})
}

var (
	_ pawl.Finder   = findingBank{}
	_ pawl.Verifier = (*theatre)(nil)
)
