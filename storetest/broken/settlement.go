package broken

import (
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
)

// settle is the evidence door with a mistake between the statement and what is
// made of it.
func (r right) settle(ctx context.Context, e pawl.Evidence, decide func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error)) (got pawl.Settlement, err error) {
	if err := e.Validate(); err != nil {
		return pawl.Settlement{}, err
	}
	err = r.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		op, fence, proven, err := spokenFor(tx, e.ID, e.Token)
		if err != nil {
			return err
		}
		c, answer, err := decide(tx, op, fence, proven)
		if err != nil {
			return err
		}
		tx.Apply(c)
		got = answer
		return nil
	})
	return got, err
}

// writesStatus writes what the owner says, whatever the record says and whoever
// is the owner by now [O1].
type writesStatus struct{ right }

// Record has no condition on status or fence.
func (s writesStatus) Record(ctx context.Context, st pawl.Statement) (op pawl.Operation, err error) {
	if err := st.Validate(); err != nil {
		return pawl.Operation{}, err
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		before, fence, proven, err := spokenFor(tx, st.ID, st.Token)
		if err != nil {
			return err
		}
		as := before.Clone()
		if proven && fence > 0 {
			as.Fence = fence
			if !as.Status.Open() {
				as.Status = pawl.StatusUnknown
			}
		}
		c, err := pawl.RecordOutcome(as, fence, proven, st.Outcome, st.Pause, tx.Now)
		c.Next.Fence = before.Fence
		tx.Apply(c)
		if err == nil {
			op = c.Next.Clone()
		}
		return err
	})
	return op, err
}

// anyFingerprint counts a success whatever intent it is about [M1].
type anyFingerprint struct{ right }

// Settle compares the binding only.
func (s anyFingerprint) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settle(ctx, e, func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error) {
		e.Lock.Fingerprint = op.Lock.Fingerprint
		return pawl.SettleEvidence(op, e, fence, proven, tx.Now)
	})
}

// anyGeneration counts a statement under whatever authority it was made [M5].
type anyGeneration struct{ right }

// Settle compares the fingerprint only.
func (s anyGeneration) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settle(ctx, e, func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error) {
		e.Lock.Binding = op.Lock.Binding
		return pawl.SettleEvidence(op, e, fence, proven, tx.Now)
	})
}

// releasesOnUnknown gives the grant back when its operation timed out [A2].
type releasesOnUnknown struct{ right }

// Record deletes the claim of what may have happened.
func (s releasesOnUnknown) Record(ctx context.Context, st pawl.Statement) (pawl.Operation, error) {
	op, err := s.right.Record(ctx, st)
	if err == nil && op.Status == pawl.StatusUnknown {
		_ = s.bench.db.Update(func(tx *memdb.Tx) error {
			tx.DeleteClaim(op.Grant)
			tx.Forget(op.Grant)
			return nil
		})
	}
	return op, err
}

// failsUnderAnothersLease applies a failure while another owner may be creating
// just now [M1].
type failsUnderAnothersLease struct{ right }

// Settle takes everybody's failure for the owner's.
func (s failsUnderAnothersLease) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settle(ctx, e, func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error) {
		if e.Outcome.Verdict() == pawl.VerdictFailed && (proven || e.Trusted) {
			fence, proven = op.Fence, true
		}
		return pawl.SettleEvidence(op, e, fence, proven, tx.Now)
	})
}

// forgetsDeferred drops a failure that it put off [M4].
type forgetsDeferred struct{ right }

// Settle never reads what waits.
func (s forgetsDeferred) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settle(ctx, e, func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error) {
		op.Deferred = nil
		return pawl.SettleEvidence(op, e, fence, proven, tx.Now)
	})
}

// lastWordWins clears the result with a weaker statement [M1].
type lastWordWins struct{ right }

// Settle overwrites the result with that of the last statement.
func (s lastWordWins) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settle(ctx, e, func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error) {
		c, got, err := pawl.SettleEvidence(op, e, fence, proven, tx.Now)
		if got.Disposition == pawl.Weaker {
			c.Next.Result = e.Outcome.Result()
			got.Operation.Result = nil
		}
		return c, got, err
	})
}

// keepsFenceAtEnd settles without moving the fence: a live owner goes on [M2].
type keepsFenceAtEnd struct{ right }

// Settle leaves the fence where it was.
func (s keepsFenceAtEnd) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settle(ctx, e, func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error) {
		c, got, err := pawl.SettleEvidence(op, e, fence, proven, tx.Now)
		if got.Operation.Fence > op.Fence {
			c.Next.Fence, got.Operation.Fence = op.Fence, op.Fence
		}
		return c, got, err
	})
}

// withoutProof listens to everybody [M1].
type withoutProof struct{ right }

// Settle trusts whoever speaks.
func (s withoutProof) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settle(ctx, e, func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error) {
		e.Trusted = true
		return pawl.SettleEvidence(op, e, fence, proven, tx.Now)
	})
}

// showsMismatch answers a mismatch with the record [M1].
type showsMismatch struct{ right }

// Settle reveals what the statement was compared with.
func (s showsMismatch) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settle(ctx, e, func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error) {
		c, got, err := pawl.SettleEvidence(op, e, fence, proven, tx.Now)
		if got.Disposition == pawl.Mismatched {
			got.Operation = c.Next.Clone()
		}
		return c, got, err
	})
}

// clearsFlags forgets a second effect once a statement agrees again [M7].
type clearsFlags struct{ right }

// Settle resets what should never clear.
func (s clearsFlags) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settle(ctx, e, func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error) {
		c, got, err := pawl.SettleEvidence(op, e, fence, proven, tx.Now)
		if got.Disposition == pawl.Duplicate || got.Disposition == pawl.Applied {
			c.Next.DivergenceSeen, c.Next.MismatchSeen = false, false
			got.Operation = c.Next.Clone()
		}
		return c, got, err
	})
}

// fullLog stops writing to a log of a thousand entries, whatever comes [M6].
type fullLog struct{ right }

// Settle drops what came too late.
func (s fullLog) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settle(ctx, e, func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error) {
		c, got, err := pawl.SettleEvidence(op, e, fence, proven, tx.Now)
		if len(tx.Entries(op.ID)) >= pawl.MaxWeak {
			c.Entries = nil
		}
		return c, got, err
	})
}

// endlessLog keeps every statement for ever [M6].
type endlessLog struct{ right }

// Settle writes an entry for each.
func (s endlessLog) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.settle(ctx, e, func(tx *memdb.Tx, op pawl.Operation, fence uint64, proven bool) (pawl.Change, pawl.Settlement, error) {
		weak := op.WeakEntries
		op.WeakEntries = 0
		c, got, err := pawl.SettleEvidence(op, e, fence, proven, tx.Now)
		c.Next.WeakEntries += weak
		if err == nil && got.Operation.ID == op.ID {
			got.Operation.WeakEntries = c.Next.WeakEntries
		}
		return c, got, err
	})
}

// silentAtOwnersDoor refuses a statement and does not log it [M1].
type silentAtOwnersDoor struct{ right }

// Record forgets what it refused.
func (s silentAtOwnersDoor) Record(ctx context.Context, st pawl.Statement) (op pawl.Operation, err error) {
	if err := st.Validate(); err != nil {
		return pawl.Operation{}, err
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		before, fence, proven, err := spokenFor(tx, st.ID, st.Token)
		if err != nil {
			return err
		}
		c, err := pawl.RecordOutcome(before, fence, proven, st.Outcome, st.Pause, tx.Now)
		if err != nil {
			return err
		}
		tx.Apply(c)
		op = c.Next.Clone()
		return nil
	})
	return op, err
}
