package pawl_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
	"github.com/pawl-go/pawl/internal/memdb"
)

// broken is a wrong store, effect or configuration around a right gate, and the
// scenario that must find it: a suite that cannot fail proves nothing.
type broken struct {
	change   func(*world)
	scenario func(*world)
}

// brokens lists what must be found, each under what is wrong with it.
func brokens() map[string]broken {
	store := func(wrong func(*handle, *world) pawl.Store) func(*world) {
		return func(w *world) { w.store = func(h *handle) pawl.Store { return wrong(h, w) } }
	}
	effect := func(wrong func(*bank) pawl.Effect) func(*world) {
		return func(w *world) { w.effect = func(e pawl.Effect) pawl.Effect { return wrong(w.bank) } }
	}
	return map[string]broken{
		"O5: the check permits everything and owners are told endless leases": {
			store(func(h *handle, _ *world) pawl.Store { return permissive{endless{h}} }), pausedBeforeTheCheck,
		},
		"O5: owners are told endless leases": {store(func(h *handle, _ *world) pawl.Store { return endless{h} }), pausedAfterTheCheck},
		"O2: takeover does not mind a lease": {store(func(h *handle, w *world) pawl.Store { return eager{h, w} }), liveLeaseIsLeftAlone},
		"O2: takeover without a new fence":   {store(func(h *handle, w *world) pawl.Store { return fenceless{h, w} }), manyRecoveries},
		"O2: takeover that only looks":       {store(func(h *handle, w *world) pawl.Store { return peeking{h, w} }), manyRecoveries},
		"A8: a repeated admission is fresh":  {store(func(h *handle, w *world) pawl.Store { return forgetful{h, w} }), lostReply},
		"A6: a lost reply is a refusal":      {store(func(h *handle, _ *world) pawl.Store { return hasty{h} }), lostReply},
		"O1: a refused record is no error":   {store(func(h *handle, _ *world) pawl.Store { return silent{h} }), successDuringLookUp},
		"M3: the evidence door is deaf":      {store(func(h *handle, _ *world) pawl.Store { return deaf{h} }), lateOwnersWord},
		"M1: the lock is not compared":       {store(func(h *handle, w *world) pawl.Store { return lockless{h, w} }), foundAnotherIntent},
		"M2: evidence does not fence":        {store(func(h *handle, w *world) pawl.Store { return unfencing{h, w} }), successDuringLookUp},
		"E6: a pause is forgotten":           {store(func(h *handle, _ *world) pawl.Store { return restless{h} }), pacing},
		"E2: Find repeats what it was asked": {effect(func(b *bank) pawl.Effect { return echoing{b} }), foundAnotherIntent},
		"E2: Find takes an error for an answer": {
			effect(func(b *bank) pawl.Effect { return confident{b} }), failedLookUp,
		},
		"E2: nothing found is said to be a failure": {
			effect(func(b *bank) pawl.Effect { return gloomy{b} }), pastTheDeadline,
		},
		"E1: every error is said to be a failure": {
			effect(func(b *bank) pawl.Effect { return pessimist{b} }), unknownCreate,
		},
		"E1: an effect that sends twice": {effect(func(b *bank) pawl.Effect { return eagerSender{b} }), pausedBeforeTheEffect},
		"E5: the gate believes in a contract": {
			func(w *world) { w.timings.Kinds = map[pawl.Kind]pawl.KindTimings{credit: believing(w)} }, executorWithoutContract,
		},
		"E7: the grace is endless": {func(w *world) { w.config = func(c *pawl.Config) { c.Grace = time.Hour } }, stop},
	}
}

// Each wrong thing is found by the scenario named, and the right one passes it.
func TestBrokenThingsAreFound(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(brokens())) {
		t.Run(name, func(t *testing.T) {
			b := brokens()[name]
			if wrong := bubble(t, nil, b.scenario); len(wrong) > 0 {
				t.Errorf("without it: %q", wrong)
			}
			if wrong := bubble(t, b.change, b.scenario); len(wrong) == 0 {
				t.Error("not found")
			}
		})
	}
}

// The same over HTTP, for what is wrong between an effect and its provider.
func TestBrokenThingsAreFoundOverHTTP(t *testing.T) {
	for name, b := range map[string]struct {
		change   func(*town)
		scenario func(*town)
	}{
		"E3: a contract is stated that nobody keeps":    {func(v *town) { v.state() }, nothingWhileInFlight},
		"E1: the client sends again after an error":     {sends(func(b billed) pawl.Effect { return resending{b} }), connectionDrops},
		"E2: Find fills in what the provider left out":  {sends(func(b billed) pawl.Effect { return filling{b} }), omits},
		"E2: Find does not read the provider's details": {sends(func(b billed) pawl.Effect { return echoingBilled{b} }), anotherIntentAtTheProvider},
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := overHTTP(t, nil, b.scenario); len(wrong) > 0 {
				t.Errorf("without it: %q", wrong)
			}
			if wrong := overHTTP(t, b.change, b.scenario); len(wrong) == 0 {
				t.Error("not found")
			}
		})
	}
}

// Either of the two guards of a create call holds alone: the store's check where
// the owner's own time says nothing, and the owner's where the store's says yes.
func TestEitherGuardOfACallHoldsAlone(t *testing.T) {
	for name, change := range map[string]func(*handle) pawl.Store{
		"without the owner's time":  func(h *handle) pawl.Store { return endless{h} },
		"without the store's check": func(h *handle) pawl.Store { return permissive{h} },
	} {
		if wrong := bubble(t, func(w *world) { w.store = change }, pausedBeforeTheCheck); len(wrong) > 0 {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}

func omits(v *town) { cannotSay(v, billing.Lookup{Omit: []string{"amount"}}) }

func sends(wrong func(billed) pawl.Effect) func(*town) {
	return func(v *town) {
		v.config = func(c *pawl.Config) { c.Effects = []pawl.Effect{wrong(billed{v.client})} }
	}
}

func believing(w *world) pawl.KindTimings {
	k := w.timings.Default
	k.Provider = statedContract()
	return k
}

// within runs f in one transaction of the shared tables.
func within(w *world, f func(*memdb.Tx)) {
	if err := w.db.Update(func(tx *memdb.Tx) error { f(tx); return nil }); err != nil {
		w.wrongf("%v", err)
	}
}

type endless struct{ pawl.Store }

func (s endless) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	got, err := s.Store.Admit(ctx, a)
	got.Owner.LeaseUntil, got.Owner.SubmitBy = got.Owner.AsOf.Add(time.Hour), got.Owner.AsOf.Add(time.Hour)
	return got, err
}

type permissive struct{ pawl.Store }

func (s permissive) MaySubmit(ctx context.Context, id pawl.OperationID, t pawl.OwnerToken) (pawl.Permit, error) {
	permit, err := s.Store.MaySubmit(ctx, id, t)
	if err != nil {
		permit = pawl.Permit{Granted: true, Fence: pawl.FirstFence}
	}
	return permit, nil
}

type eager struct {
	*handle
	w *world
}

func (s eager) TakeOver(ctx context.Context, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	within(s.w, func(tx *memdb.Tx) {
		for _, op := range tx.Operations() {
			op.LeaseUntil = tx.Now
		}
	})
	return s.handle.TakeOver(ctx, t)
}

type fenceless struct {
	*handle
	w *world
}

func (s fenceless) TakeOver(ctx context.Context, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	taken, err := s.handle.TakeOver(ctx, t)
	within(s.w, func(tx *memdb.Tx) {
		for i := range taken {
			op := &taken[i].Operation
			op.Fence--
			tx.PutOperation(*op)
			taken[i].Owner = op.OwnerOf(tx.Meta().Secret, tx.Now)
		}
	})
	return taken, err
}

type peeking struct {
	*handle
	w *world
}

func (s peeking) TakeOver(_ context.Context, t pawl.TakeOver) (taken []pawl.TakenOver, _ error) {
	within(s.w, func(tx *memdb.Tx) {
		for _, op := range tx.Operations() {
			c, ok := pawl.TakeOverOperation(*op, t.Leases[credit], t.By, tx.Now)
			if ok && len(taken) < t.Limit {
				taken = append(taken, pawl.TakenOver{Operation: c.Next, Owner: c.Next.OwnerOf(tx.Meta().Secret, tx.Now)})
			}
		}
	})
	if len(taken) > 0 { // another look would find the same again, for ever
		taken = taken[:min(len(taken), t.Limit-1)]
	}
	return taken, nil
}

type forgetful struct {
	*handle
	w *world
}

func (s forgetful) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	got, err := s.handle.Admit(ctx, a)
	if err == nil && !got.Fresh {
		within(s.w, func(tx *memdb.Tx) { got.Fresh, got.Owner = true, got.Operation.OwnerOf(tx.Meta().Secret, tx.Now) })
	}
	return got, err
}

type hasty struct{ *handle }

func (s hasty) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	got, err := s.handle.Admit(ctx, a)
	if errors.Is(err, pawl.ErrNotConfirmed) {
		err = &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonUsed}
	}
	return got, err
}

type silent struct{ *handle }

func (s silent) Record(ctx context.Context, st pawl.Statement) (pawl.Operation, error) {
	op, err := s.handle.Record(ctx, st)
	if errors.Is(err, pawl.ErrFenced) {
		return s.Get(ctx, st.ID, pawl.AsOperator())
	}
	return op, err
}

type deaf struct{ *handle }

func (s deaf) Settle(context.Context, pawl.Evidence) (pawl.Settlement, error) {
	return pawl.Settlement{}, pawl.NotFound()
}

type lockless struct {
	*handle
	w *world
}

func (s lockless) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	e.Lock = s.w.op(e.ID).Lock
	return s.handle.Settle(ctx, e)
}

// unfencing leaves fence and lease as they are, and the status open for a
// moment longer than the answer.
type unfencing struct {
	*handle
	w *world
}

func (s unfencing) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	before := s.w.op(e.ID)
	got, err := s.handle.Settle(ctx, e)
	within(s.w, func(tx *memdb.Tx) { tx.PutOperation(before) })
	return got, err
}

type restless struct{ *handle }

func (s restless) Record(ctx context.Context, st pawl.Statement) (pawl.Operation, error) {
	if st.Pause > 0 {
		st.Pause = time.Microsecond
	}
	return s.handle.Record(ctx, st)
}

type echoing struct{ *bank }

func (b echoing) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	if found, err := b.bank.Find(ctx, l); err != nil || found.String() == "nothing found" {
		return found, err
	}
	return pawl.FoundEffect(l.Details, pawl.Succeeded("cr_x")), nil
}

type confident struct{ *bank }

func (b confident) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	if found, err := b.bank.Find(ctx, l); err == nil {
		return found, nil
	}
	return pawl.FoundNothing(), nil
}

type gloomy struct{ *bank }

func (b gloomy) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	found, err := b.bank.Find(ctx, l)
	if found.String() == "nothing found" {
		return pawl.FoundEffect(l.Details, pawl.Failed("not found")), nil
	}
	return found, err
}

type pessimist struct{ *bank }

func (b pessimist) Submit(ctx context.Context, s pawl.Submission) (pawl.Outcome, error) {
	out, err := b.bank.Submit(ctx, s)
	if err != nil {
		return pawl.Failed("error"), nil
	}
	return out, nil
}

type eagerSender struct{ *bank }

func (b eagerSender) Submit(ctx context.Context, s pawl.Submission) (pawl.Outcome, error) {
	if out, err := b.bank.Submit(ctx, s); err != nil {
		return out, err
	}
	return b.bank.Submit(ctx, s)
}

type resending struct{ billed }

func (b resending) Submit(ctx context.Context, s pawl.Submission) (pawl.Outcome, error) {
	out, err := b.billed.Submit(ctx, s)
	if err != nil {
		return b.billed.Submit(ctx, s)
	}
	return out, nil
}

type filling struct{ billed }

func (b filling) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	found, err := b.billed.Find(ctx, l)
	if err != nil { // "there is one, and it can only be ours"
		return pawl.FoundEffect(l.Details, pawl.Succeeded("cr_x")), nil
	}
	return found, nil
}

type echoingBilled struct{ billed }

func (b echoingBilled) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	got, found, err := b.api.Find(ctx, l.Reference)
	if err != nil || !found {
		return pawl.FoundNothing(), err
	}
	return pawl.FoundEffect(l.Details, pawl.Succeeded(got.ID)), nil
}
