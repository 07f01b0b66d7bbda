package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
)

// Get implements pawl.Store.
func (s *Store) Get(ctx context.Context, id pawl.OperationID, as pawl.Viewer) (op pawl.Operation, err error) {
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		op, err = visible(tx, id, as)
		return err
	})
	return op, err
}

// Log implements pawl.Store.
func (s *Store) Log(ctx context.Context, id pawl.OperationID, as pawl.Viewer) (tl pawl.Timeline, err error) {
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		op, err := visible(tx, id, as)
		if err != nil {
			return err
		}
		tl = pawl.Timeline{Operation: op, Entries: append([]pawl.Entry{pawl.AdmissionEntry(op)}, tx.Entries(id)...)}
		if op.WeakEntries > pawl.MaxWeak {
			tl.NotKept = op.WeakEntries - pawl.MaxWeak // [M6]
		}
		return nil
	})
	return tl, err
}

// visible answers the same for what is absent and for what is another's [S1].
func visible(tx *memdb.Tx, id pawl.OperationID, as pawl.Viewer) (pawl.Operation, error) {
	op, ok := tx.Operation(id)
	if !ok || !as.Sees(op) {
		return pawl.Operation{}, pawl.NotFound()
	}
	return op, nil
}

// MaySubmit implements pawl.Store.
func (s *Store) MaySubmit(ctx context.Context, id pawl.OperationID, token pawl.OwnerToken) (p pawl.Permit, err error) {
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		op, fence, proven, err := spokenFor(tx, id, token)
		if err != nil {
			return err
		}
		c, err := pawl.PermitSubmit(op, fence, proven, tx.Now)
		if err != nil {
			return err
		}
		tx.Apply(c)
		p = pawl.Permit{Granted: true, Fence: fence, LeaseUntil: op.LeaseUntil, SubmitBy: op.SubmitBy, AsOf: tx.Now}
		return nil
	})
	return p, err
}

// Renew implements pawl.Store.
func (s *Store) Renew(ctx context.Context, r pawl.Renewal) (o pawl.Owner, err error) {
	if err := r.Validate(); err != nil {
		return pawl.Owner{}, err
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		op, fence, proven, err := spokenFor(tx, r.ID, r.Token)
		if err != nil {
			return err
		}
		c, err := pawl.RenewLease(op, fence, proven, r.Lease, r.Beyond, tx.Now)
		if err != nil {
			return err
		}
		tx.Apply(c)
		o = c.Next.OwnerOf(tx.Meta().Secret, tx.Now)
		return nil
	})
	return o, err
}

// Record implements pawl.Store. A refused statement is logged too [M1].
func (s *Store) Record(ctx context.Context, st pawl.Statement) (op pawl.Operation, err error) {
	if err := st.Validate(); err != nil {
		return pawl.Operation{}, err
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		before, fence, proven, err := spokenFor(tx, st.ID, st.Token)
		if err != nil {
			return err
		}
		c, err := pawl.RecordOutcome(before, fence, proven, st.Outcome, st.Pause, tx.Now)
		tx.Apply(c)
		if err == nil {
			op = c.Next.Clone()
		}
		return err
	})
	return op, err
}

// Settle implements pawl.Store.
func (s *Store) Settle(ctx context.Context, e pawl.Evidence) (got pawl.Settlement, err error) {
	if err := e.Validate(); err != nil {
		return pawl.Settlement{}, err
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		op, fence, proven, err := spokenFor(tx, e.ID, e.Token)
		if err != nil {
			return err
		}
		c, answer, err := pawl.SettleEvidence(op, e, fence, proven, tx.Now)
		if err != nil {
			return err
		}
		tx.Apply(c)
		got = answer
		return nil
	})
	return got, err
}

// spokenFor reads the record that a token speaks for, and what it proves.
func spokenFor(tx *memdb.Tx, id pawl.OperationID, token pawl.OwnerToken) (op pawl.Operation, fence uint64, proven bool, err error) {
	op, ok := tx.Operation(id)
	if !ok {
		return op, 0, false, pawl.NotFound()
	}
	fence, proven = tx.Meta().Secret.Fence(op, token)
	return op, fence, proven, nil
}

// TakeOver implements pawl.Store: those whose lease ended first come first.
func (s *Store) TakeOver(ctx context.Context, t pawl.TakeOver) (taken []pawl.TakenOver, err error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		var stalled []pawl.Operation
		for _, op := range tx.Operations() {
			if op.CanTakeOver(tx.Now) && wanted(t, op) {
				stalled = append(stalled, op.Clone())
			}
		}
		slices.SortStableFunc(stalled, func(a, b pawl.Operation) int { return a.LeaseUntil.Compare(b.LeaseUntil) })
		for _, op := range stalled[:min(len(stalled), t.Limit)] {
			lease, _ := t.Lease(op.Intent.Kind)
			c, ok := pawl.TakeOverOperation(op, lease, t.By, tx.Now)
			if !ok {
				continue
			}
			tx.Apply(c)
			taken = append(taken, pawl.TakenOver{
				Operation: c.Next.Clone(), Owner: c.Next.OwnerOf(tx.Meta().Secret, tx.Now),
			})
		}
		return nil
	})
	return taken, err
}

// wanted holds a takeover to its kinds and its credential's limits.
func wanted(t pawl.TakeOver, op *pawl.Operation) bool {
	_, kind := t.Lease(op.Intent.Kind)
	return kind && among(t.Tenants, op.Caller.Tenant) && (len(t.Issuers) == 0 || !op.Grant.IsZero()) && among(t.Issuers, op.Grant.Issuer)
}

// among reports whether v is wanted; an empty list wants everything.
func among[T cmp.Ordered](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }
