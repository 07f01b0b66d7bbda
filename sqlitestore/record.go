package sqlitestore

import (
	"context"

	"github.com/pawl-go/pawl"
)

// The owner's calls. Each reads the record under the write lock, lets the root
// package decide, and writes the change over what it read [O1].

// MaySubmit implements pawl.Store.
func (s *Store) MaySubmit(ctx context.Context, id pawl.OperationID, token pawl.OwnerToken) (pawl.Permit, error) {
	return write(ctx, s, pawl.ErrUnavailable, func(t *txn) (pawl.Permit, error) {
		op, fence, proven, err := t.spokenFor(id, token)
		if err != nil {
			return pawl.Permit{}, err
		}
		c, err := pawl.PermitSubmit(op, fence, proven, t.now) // [O5]
		if err != nil {
			return pawl.Permit{}, err
		}
		return pawl.Permit{
			Granted: true, Fence: fence, LeaseUntil: op.LeaseUntil, SubmitBy: op.SubmitBy, AsOf: t.now,
		}, t.apply(op, c)
	})
}

// Renew implements pawl.Store.
func (s *Store) Renew(ctx context.Context, r pawl.Renewal) (pawl.Owner, error) {
	if err := r.Validate(); err != nil {
		return pawl.Owner{}, err
	}
	return write(ctx, s, pawl.ErrUnavailable, func(t *txn) (pawl.Owner, error) {
		op, fence, proven, err := t.spokenFor(r.ID, r.Token)
		if err != nil {
			return pawl.Owner{}, err
		}
		c, err := pawl.RenewLease(op, fence, proven, r.Lease, r.Beyond, t.now) // [O3]
		if err != nil {
			return pawl.Owner{}, err
		}
		return wholeMicroseconds(c.Next).OwnerOf(t.store.secret, t.now), t.apply(op, c)
	})
}

// Record implements pawl.Store. A refused statement is logged too [M1].
func (s *Store) Record(ctx context.Context, st pawl.Statement) (pawl.Operation, error) {
	if err := st.Validate(); err != nil {
		return pawl.Operation{}, err
	}
	return write(ctx, s, pawl.ErrUnavailable, func(t *txn) (pawl.Operation, error) {
		op, fence, proven, err := t.spokenFor(st.ID, st.Token)
		if err != nil {
			return pawl.Operation{}, err
		}
		c, refusal := pawl.RecordOutcome(op, fence, proven, st.Outcome, st.Pause, t.now)
		if err := t.apply(op, c); err != nil {
			return pawl.Operation{}, err
		}
		if refusal != nil {
			return pawl.Operation{}, &kept{refusal}
		}
		return wholeMicroseconds(c.Next), nil
	})
}
