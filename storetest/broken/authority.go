package broken

import (
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
)

// revocationOutsideClaim checks for a revocation, and revokes, in other
// transactions than the one that claims [R1].
type revocationOutsideClaim struct{ right }

// Admit looks for a revocation, and then claims whether or not there is one by
// now.
func (s revocationOutsideClaim) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	revoked := false
	_ = s.bench.db.Update(func(tx *memdb.Tx) error {
		c, ok := tx.Claim(a.Grant.Key)
		revoked = ok && c.Operation.IsZero()
		return nil
	})
	gap()
	return s.judged(ctx, a, func(_ *memdb.Tx, f *pawl.Findings) {
		if f.Grant.Claimed && f.Grant.ClaimedBy.IsZero() && !revoked {
			f.Grant.Claimed = false
		}
	})
}

// Revoke looks whether the grant is used, and then revokes it.
func (s revocationOutsideClaim) Revoke(ctx context.Context, r pawl.Revocation) (pawl.RevocationState, error) {
	var before memdb.Claim
	var claimed bool
	_ = s.bench.db.Update(func(tx *memdb.Tx) error {
		before, claimed = tx.Claim(r.Key)
		return nil
	})
	gap()
	if claimed || r.Proof == nil {
		return s.right.Revoke(ctx, r)
	}
	var lost memdb.Claim
	_ = s.bench.db.Update(func(tx *memdb.Tx) error {
		if now, ok := tx.Claim(r.Key); ok && now != before {
			lost = now
			tx.DeleteClaim(r.Key)
		}
		return nil
	})
	state, err := s.right.Revoke(ctx, r)
	if !lost.Operation.IsZero() && state != pawl.Revoked {
		_ = s.bench.db.Update(func(tx *memdb.Tx) error { tx.PutClaim(r.Key, lost); return nil })
	}
	return state, err
}

// revokesWithoutProof takes any id for a grant's [R2].
type revokesWithoutProof struct{ right }

// Revoke asks for no proof.
func (s revokesWithoutProof) Revoke(ctx context.Context, r pawl.Revocation) (pawl.RevocationState, error) {
	r.ProvenElsewhere = true
	return s.right.Revoke(ctx, r)
}

// purgesAtExpiry deletes refusal records when the grant expires, not when no
// admission can succeed any more [P1].
type purgesAtExpiry struct{ right }

// Purge forgets the leeway and the margin.
func (s purgesAtExpiry) Purge(ctx context.Context, b pawl.PurgeBatch) (pawl.PurgeReport, error) {
	n := 0
	err := s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		for k, c := range tx.Claims() {
			if tx.Now.After(c.RetainUntil.Add(-s.bench.timings.Leeways[""])) && n < max(b.Limit, 1) {
				tx.DeleteClaim(k)
				n++
			}
		}
		return nil
	})
	if err != nil {
		return pawl.PurgeReport{}, err
	}
	b.Limit -= n
	if b.Limit <= 0 {
		return pawl.PurgeReport{Refusals: n, More: true}, nil
	}
	r, err := s.right.Purge(ctx, b)
	r.Refusals += n
	return r, err
}

// purgesNothing keeps every refusal record for ever and gives no reason [P2].
type purgesNothing struct{ right }

// Purge does nothing.
func (s purgesNothing) Purge(ctx context.Context, b pawl.PurgeBatch) (pawl.PurgeReport, error) {
	if b.Limit < 0 || b.Limit > 10_000 {
		return s.right.Purge(ctx, b)
	}
	_, err := s.Check(ctx)
	if err != nil {
		return pawl.PurgeReport{}, &pawl.Error{Class: pawl.ErrUnavailable, Reason: pawl.ReasonOf(err)}
	}
	return pawl.PurgeReport{}, nil
}

// retainsFromCreation counts an operation's retention from its creation, and so
// deletes what is still open [P3].
type retainsFromCreation struct{ right }

// Purge deletes old operations, settled or not.
func (s retainsFromCreation) Purge(ctx context.Context, b pawl.PurgeBatch) (pawl.PurgeReport, error) {
	n := 0
	err := s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		for _, op := range tx.Operations() {
			if tx.Now.After(op.CreatedAt.Add(s.bench.timings.RetainOperations)) && n < max(b.Limit, 1) {
				tx.DeleteOperation(op.ID)
				n++
			}
		}
		return nil
	})
	if err != nil {
		return pawl.PurgeReport{}, err
	}
	b.Limit -= n
	if b.Limit <= 0 {
		return pawl.PurgeReport{Operations: n, More: true}, nil
	}
	r, err := s.right.Purge(ctx, b)
	r.Operations += n
	return r, err
}

// freesWithOperation deletes the refusal record of an operation with it [P3].
type freesWithOperation struct{ right }

// Purge takes claims along that are not over.
func (s freesWithOperation) Purge(ctx context.Context, b pawl.PurgeBatch) (pawl.PurgeReport, error) {
	err := s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		for _, op := range tx.Operations() {
			if op.Status.Final() && tx.Now.After(op.SettledAt.Add(s.bench.timings.RetainOperations)) {
				tx.DeleteClaim(op.Grant)
			}
		}
		return nil
	})
	if err != nil {
		return pawl.PurgeReport{}, err
	}
	return s.right.Purge(ctx, b)
}

// clockFollowsBack has no floor under its clock [P1].
type clockFollowsBack struct{ right }

// Admit decides by the clock as it is: what a purge forgot is valid again.
func (s clockFollowsBack) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	return s.judged(ctx, a, func(_ *memdb.Tx, f *pawl.Findings) { f.Now = s.bench.clock() })
}

// statusToOthers answers by operation id alone [S1].
type statusToOthers struct{ right }

// Get shows every operation to everybody.
func (s statusToOthers) Get(ctx context.Context, id pawl.OperationID, _ pawl.Viewer) (pawl.Operation, error) {
	return s.right.Get(ctx, id, pawl.AsOperator())
}

// tellsForeignFromAbsent has another answer for what is not yours than for what
// does not exist [S1].
type tellsForeignFromAbsent struct{ right }

// Get reveals that the id exists.
func (s tellsForeignFromAbsent) Get(ctx context.Context, id pawl.OperationID, as pawl.Viewer) (pawl.Operation, error) {
	op, err := s.right.Get(ctx, id, as)
	if err != nil {
		if _, exists := s.right.Get(ctx, id, pawl.AsOperator()); exists == nil {
			err = pawl.Errorf(pawl.ErrNotFound, pawl.ReasonAbsent, "not yours")
		}
	}
	return op, err
}

// sharesMemory returns the bytes that it keeps [A5].
type sharesMemory struct {
	right
	kept map[pawl.OperationID]pawl.Operation
}

// Get returns the same slices every time.
func (s sharesMemory) Get(ctx context.Context, id pawl.OperationID, as pawl.Viewer) (pawl.Operation, error) {
	op, err := s.right.Get(ctx, id, as)
	if err != nil || len(op.Result) == 0 {
		return op, err
	}
	if old, ok := s.kept[id]; ok {
		op.Result = old.Result
	}
	s.kept[id] = op
	return op, nil
}

// revokesByRow takes a row's expiry for that of every grant under its key [R3].
type revokesByRow struct{ right }

// Revoke answers "expired" once the row is over, whatever the proof says.
func (s revokesByRow) Revoke(ctx context.Context, r pawl.Revocation) (state pawl.RevocationState, err error) {
	over := false
	_ = s.bench.db.Update(func(tx *memdb.Tx) error {
		row, ok := tx.Grant(r.Key)
		over = ok && !row.Grant.ExpiresAt.Add(tx.Meta().Policy.Leeways[row.Grant.LeewayPolicy]).After(tx.Now)
		return nil
	})
	if over {
		return pawl.GrantExpired, nil
	}
	return s.right.Revoke(ctx, r)
}
