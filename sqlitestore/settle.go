package sqlitestore

import (
	"context"

	"github.com/pawl-go/pawl"
)

// Settle implements pawl.Store.
func (s *Store) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	if err := e.Validate(); err != nil {
		return pawl.Settlement{}, err
	}
	return write(ctx, s, pawl.ErrUnavailable, func(t *txn) (pawl.Settlement, error) { return t.settle(e) })
}

// settle merges a statement into the record, in one write with its log entry
// [M1].
func (t *txn) settle(e pawl.Evidence) (pawl.Settlement, error) {
	op, fence, proven, err := t.spokenFor(e.ID, e.Token)
	if err != nil {
		return pawl.Settlement{}, err
	}
	c, answer, err := pawl.SettleEvidence(op, e, fence, proven, t.now)
	if err != nil {
		return pawl.Settlement{}, err
	}
	answer.Operation = wholeMicroseconds(answer.Operation)
	return answer, t.apply(op, c)
}
