package sqlitestore

import (
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/failpoint"
)

// Reserve implements pawl.Store.
func (s *Store) Reserve(ctx context.Context, r pawl.Reservation) (pawl.Admitted, error) {
	if err := r.Validate(); err != nil {
		return pawl.Admitted{}, err // [A9]
	}
	return write(ctx, s, pawl.ErrNotConfirmed, func(t *txn) (pawl.Admitted, error) { return t.reserve(r) })
}

// reserve records an operation under its key, or joins the one that has it and
// the same lock [B1]. The write lock lies over both.
func (t *txn) reserve(r pawl.Reservation) (pawl.Admitted, error) {
	if err := failpoint.Hit(failpoint.AdmitBegun); err != nil {
		return pawl.Admitted{}, err
	}
	there, err := t.operation(r.OperationID())
	if err != nil {
		return pawl.Admitted{}, err
	}
	if there != nil {
		if err := r.Join(there.op); err != nil {
			return pawl.Admitted{}, err
		}
		return t.joined(there.op), nil
	}
	op := wholeMicroseconds(r.NewOperation(t.now))
	if err := t.insert(op); err != nil {
		return pawl.Admitted{}, err
	}
	return t.fresh(op), failpoint.Hit(failpoint.AdmitRecorded)
}
