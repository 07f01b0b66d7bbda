package sqlitestore

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/pawl-go/pawl"
)

// TakeOver implements pawl.Store: those whose lease ended first come first. One
// transaction holds the write lock from the finding to the new owner, so the
// lease runs from after any wait and each operation has one winner [O2].
func (s *Store) TakeOver(ctx context.Context, over pawl.TakeOver) ([]pawl.TakenOver, error) {
	if err := over.Validate(); err != nil {
		return nil, err
	}
	kinds := slices.Collect(maps.Keys(over.Leases))
	return write(ctx, s, pawl.ErrUnavailable, func(t *txn) ([]pawl.TakenOver, error) {
		stalled, err := t.records("find_stalled",
			named("now", micros(t.now)), named("other_kinds", over.OtherKinds > 0), named("kinds", jsonList(kinds)),
			named("tenants", choice(over.Tenants)), named("issuers", choice(over.Issuers)),
			named("limit", int64(over.Limit)),
		)
		if err != nil {
			return nil, err
		}
		var taken []pawl.TakenOver
		for _, r := range stalled {
			lease, wanted := over.Lease(r.op.Intent.Kind)
			c, ok := pawl.TakeOverOperation(r.op, lease, over.By, t.now)
			if !wanted || !ok {
				continue
			}
			if err := t.apply(r.op, c); err != nil {
				return nil, err
			}
			next := wholeMicroseconds(c.Next)
			taken = append(taken, pawl.TakenOver{Operation: next, Owner: next.OwnerOf(t.store.secret, t.now)})
		}
		return taken, nil
	})
}

// choice is a list of a filter or of a credential's limits, as JSON; NULL where
// it is empty and everything is wanted. Nothing in the store equals what is no
// identifier, so that is left out.
func choice[T ~string](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return jsonList(slices.DeleteFunc(slices.Clone(list), func(v T) bool {
		return v != "" && pawl.CheckID("choice", string(v)) != nil
	}))
}

func jsonList[T any](list []T) string {
	if list == nil {
		return "[]"
	}
	b, err := json.Marshal(list)
	if err != nil {
		return "[]" // texts and numbers always marshal; this would choose nothing
	}
	return string(b)
}
