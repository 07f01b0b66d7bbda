package memstore

import (
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
)

// Admit implements pawl.Store. The claim and the operation are written under
// one lock, after one judgement under the same lock [A2].
func (s *Store) Admit(ctx context.Context, a pawl.Admission) (got pawl.Admitted, err error) {
	if err := a.Validate(); err != nil {
		return pawl.Admitted{}, err // [A9]
	}
	err = s.update(ctx, pawl.ErrNotConfirmed, func(tx *memdb.Tx) error {
		f := tx.Findings(a)
		already, err := a.Judge(f)
		if err != nil {
			return err // nothing was written [A10]
		}
		if already {
			got = joined(tx, *f.Operation) // [A8]
			return nil
		}
		if tx.Used(a.Grant.Key) {
			return &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonUsed} // [A7]
		}
		grant := a.Grant
		if grant.Form == pawl.FormStored {
			grant = *f.Grant.Row
		}
		op := a.NewOperation(tx.Now)
		tx.PutClaim(grant.Key, memdb.Claim{
			Operation: op.ID, At: tx.Now,
			RetainUntil: f.Policy.RefusalRetention(grant.ExpiresAt, grant.LeewayPolicy, tx.Now), // [P1]
		})
		tx.PutOperation(op)
		got = fresh(tx, op)
		return nil
	})
	return got, err
}

// Reserve implements pawl.Store.
func (s *Store) Reserve(ctx context.Context, r pawl.Reservation) (got pawl.Admitted, err error) {
	if err := r.Validate(); err != nil {
		return pawl.Admitted{}, err
	}
	err = s.update(ctx, pawl.ErrNotConfirmed, func(tx *memdb.Tx) error {
		if op, ok := tx.Operation(r.OperationID()); ok {
			if err := r.Join(op); err != nil {
				return err // [B1]
			}
			got = joined(tx, op)
			return nil
		}
		op := r.NewOperation(tx.Now)
		tx.PutOperation(op)
		got = fresh(tx, op)
		return nil
	})
	return got, err
}

func fresh(tx *memdb.Tx, op pawl.Operation) pawl.Admitted {
	return pawl.Admitted{Fresh: true, Operation: op.Clone(), Owner: op.OwnerOf(tx.Meta().Secret, tx.Now)}
}

// joined carries the token of an attempt that may observe and never own [O1].
func joined(tx *memdb.Tx, op pawl.Operation) pawl.Admitted {
	return pawl.Admitted{Operation: op, Owner: pawl.Owner{Token: tx.Meta().Secret.Mint(op, 0)}}
}
