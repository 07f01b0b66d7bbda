package broken

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
)

// mapPerHandle keeps what is used in a map of its own, as a service does that
// was never meant to have two instances [A1].
type mapPerHandle struct {
	right
	mu   *sync.Mutex
	used map[pawl.GrantKey]pawl.OperationID
}

// Admit asks the map of this instance only.
func (s mapPerHandle) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got, err := s.judged(ctx, a, func(_ *memdb.Tx, f *pawl.Findings) {
		if !f.Grant.Claimed || !f.Grant.ClaimedBy.IsZero() {
			f.Grant.ClaimedBy, f.Grant.Claimed = s.used[a.Grant.Key], !s.used[a.Grant.Key].IsZero()
		}
	})
	if got.Fresh {
		s.used[a.Grant.Key] = a.OperationID
	}
	return got, err
}

// readThenWrite looks whether the grant is used in one transaction and uses it
// in another [A2].
type readThenWrite struct{ right }

// Admit writes on what it read a moment ago.
func (s readThenWrite) Admit(ctx context.Context, a pawl.Admission) (got pawl.Admitted, err error) {
	if err := a.Validate(); err != nil {
		return pawl.Admitted{}, err
	}
	var f pawl.Findings
	var already bool
	err = s.update(ctx, pawl.ErrNotConfirmed, func(tx *memdb.Tx) (err error) {
		f = tx.Findings(a)
		already, err = a.Judge(f)
		return err
	})
	if err != nil {
		return pawl.Admitted{}, err
	}
	gap()
	err = s.bench.db.Update(func(tx *memdb.Tx) error {
		if already {
			got = joined(tx, *f.Operation)
			return nil
		}
		got = fresh(tx, a, f)
		return nil
	})
	return got, err
}

// twoCommits claims the grant in one transaction and records the operation in
// the next, under the caller's context [A2, A3].
type twoCommits struct{ right }

// Admit can end between its two transactions.
func (s twoCommits) Admit(ctx context.Context, a pawl.Admission) (got pawl.Admitted, err error) {
	if err := a.Validate(); err != nil {
		return pawl.Admitted{}, err
	}
	var claim memdb.Claim
	err = s.update(ctx, pawl.ErrNotConfirmed, func(tx *memdb.Tx) error {
		f := tx.Findings(a)
		already, err := a.Judge(f)
		if err != nil {
			return err
		}
		if already {
			got = joined(tx, *f.Operation)
			return nil
		}
		g := a.Grant
		if f.Grant.Row != nil {
			g = *f.Grant.Row
		}
		claim = memdb.Claim{
			Operation: a.OperationID, At: tx.Now, RetainUntil: f.Policy.RefusalRetention(g.ExpiresAt, g.LeewayPolicy, tx.Now),
		}
		tx.PutClaim(a.Grant.Key, claim)
		return nil
	})
	if err != nil || claim.Operation.IsZero() {
		return got, err
	}
	gap()
	err = s.update(ctx, pawl.ErrNotConfirmed, func(tx *memdb.Tx) error {
		op := a.NewOperation(tx.Now)
		tx.PutOperation(op)
		got = owned(tx, op)
		return nil
	})
	return got, err
}

// deadlineOnProcessClock decides about expiry by the process's clock [A4].
type deadlineOnProcessClock struct{ right }

// Admit judges with the wrong time.
func (s deadlineOnProcessClock) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	return s.judged(ctx, a, func(_ *memdb.Tx, f *pawl.Findings) { f.Now = s.bench.process })
}

// deadlineInclusive still admits at the deadline itself [A4].
type deadlineInclusive struct{ right }

// Admit is a moment late.
func (s deadlineInclusive) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	return s.judged(ctx, a, func(_ *memdb.Tx, f *pawl.Findings) { f.Now = f.Now.Add(-time.Microsecond) })
}

// upsertOnConflict writes over the operation that has the id already [A7, A10].
type upsertOnConflict struct{ right }

// Admit lets the second admission under an id win it.
func (s upsertOnConflict) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	return s.judged(ctx, a, func(_ *memdb.Tx, f *pawl.Findings) {
		if f.Grant.Claimed && f.Grant.ClaimedBy == a.OperationID {
			return
		}
		f.Operation = nil
	})
}

// extendOnRepeat gives a repeated admission a new lease [A10].
type extendOnRepeat struct{ right }

// Admit touches the row that it only should have read.
func (s extendOnRepeat) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	got, err := s.right.Admit(ctx, a)
	if err == nil && !got.Fresh {
		_ = s.bench.db.Update(func(tx *memdb.Tx) error {
			got.Operation.LeaseUntil = tx.Now.Add(a.Lease)
			tx.PutOperation(got.Operation)
			return nil
		})
	}
	return got, err
}

// zeroRowsAsSuccess does not look how many rows its claim touched [A2].
type zeroRowsAsSuccess struct{ right }

// Admit takes a statement without an error for a claim.
func (s zeroRowsAsSuccess) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	got, err := s.right.Admit(ctx, a)
	if pawl.ReasonOf(err) == pawl.ReasonUsed {
		err = s.bench.db.Update(func(tx *memdb.Tx) error {
			got = owned(tx, a.NewOperation(tx.Now))
			return nil
		})
	}
	return got, err
}

// alreadyAsFresh answers a repeated admission like the first: a retry runs the
// effect again [A8].
type alreadyAsFresh struct{ right }

// Admit makes every repeat an owner.
func (s alreadyAsFresh) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	got, err := s.right.Admit(ctx, a)
	if err == nil && !got.Fresh {
		_ = s.bench.db.Update(func(tx *memdb.Tx) error {
			got = owned(tx, got.Operation)
			return nil
		})
	}
	return got, err
}

// anyRealm does not compare the audience [A1].
type anyRealm struct{ right }

// Admit takes every grant for its own.
func (s anyRealm) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	return s.judged(ctx, a, func(_ *memdb.Tx, f *pawl.Findings) { f.Realm = a.Grant.Realm })
}

// anyEpoch forgets that the store was restored [A12].
type anyEpoch struct{ right }

// Admit does not ask when a grant was issued.
func (s anyEpoch) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	return s.judged(ctx, a, func(_ *memdb.Tx, f *pawl.Findings) { f.IssuedNotBefore = time.Time{} })
}

// joinedKey makes one string of issuer and grant id [A5].
type joinedKey struct{ right }

// Admit claims the joined string.
func (s joinedKey) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	return s.judged(ctx, a, func(tx *memdb.Tx, f *pawl.Findings) {
		for k, c := range tx.Claims() {
			if k.Issuer+k.ID == a.Grant.Key.Issuer+a.Grant.Key.ID {
				f.Grant.Claimed, f.Grant.ClaimedBy = true, c.Operation
			}
		}
	})
}

// noMissingRow admits a stored grant of which it has no row, on the request's
// word [A2, A5].
type noMissingRow struct{ right }

// Admit believes the request.
func (s noMissingRow) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	return s.judged(ctx, a, func(_ *memdb.Tx, f *pawl.Findings) {
		if a.Grant.Form == pawl.FormStored && f.Grant.Row == nil {
			f.Grant.Row = &a.Grant
		}
	})
}

// timeoutAsUnused hears that an answer was lost and concludes that nothing
// happened [A6].
type timeoutAsUnused struct {
	right
	wire pawl.Store
}

// Admit goes on alone.
func (s timeoutAsUnused) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	got, err := s.wire.Admit(ctx, a)
	if pawl.ReasonOf(err) == pawl.ReasonUnreachable {
		err = s.bench.db.Update(func(tx *memdb.Tx) error {
			got = owned(tx, a.NewOperation(tx.Now))
			return nil
		})
	}
	return got, err
}

// Issue goes over the wire.
func (s timeoutAsUnused) Issue(ctx context.Context, i pawl.Issuance) (pawl.Issued, error) {
	return s.wire.Issue(ctx, i)
}

// Record goes over the wire.
func (s timeoutAsUnused) Record(ctx context.Context, st pawl.Statement) (pawl.Operation, error) {
	return s.wire.Record(ctx, st)
}

// Settle goes over the wire.
func (s timeoutAsUnused) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return s.wire.Settle(ctx, e)
}

// Revoke goes over the wire.
func (s timeoutAsUnused) Revoke(ctx context.Context, r pawl.Revocation) (pawl.RevocationState, error) {
	return s.wire.Revoke(ctx, r)
}

// TakeOver goes over the wire.
func (s timeoutAsUnused) TakeOver(ctx context.Context, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	return s.wire.TakeOver(ctx, t)
}

// cancelledAsRefused tells a caller that stopped waiting that the grant is not
// available [A6].
type cancelledAsRefused struct{ right }

// Admit turns doubt into a definite no.
func (s cancelledAsRefused) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	got, err := s.right.Admit(ctx, a)
	if pawl.ReasonOf(err) == pawl.ReasonCancelled {
		err = &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonUsed}
	}
	return got, err
}

// writesBeforeItChecks records who asked before it looks whether the request is
// one [A9].
type writesBeforeItChecks struct{ right }

// Admit spends the grant on a wrong request.
func (s writesBeforeItChecks) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	if err := a.Validate(); pawl.ReasonOf(err) == pawl.ReasonIntent || pawl.ReasonOf(err) == pawl.ReasonSubject {
		_ = s.bench.db.Update(func(tx *memdb.Tx) error {
			if _, ok := tx.Claim(a.Grant.Key); !ok {
				tx.PutClaim(a.Grant.Key, memdb.Claim{Operation: a.OperationID, At: tx.Now, RetainUntil: a.Grant.ExpiresAt})
			}
			return nil
		})
		return pawl.Admitted{}, err
	}
	return s.right.Admit(ctx, a)
}

// anyLockJoins lets every request under a key join, whatever it asks for [B1].
type anyLockJoins struct{ right }

// Reserve compares no lock.
func (s anyLockJoins) Reserve(ctx context.Context, r pawl.Reservation) (got pawl.Admitted, err error) {
	got, err = s.right.Reserve(ctx, r)
	if pawl.ReasonOf(err) == pawl.ReasonLock {
		err = s.bench.db.Update(func(tx *memdb.Tx) error {
			op, _ := tx.Operation(r.OperationID())
			got = joined(tx, op)
			return nil
		})
	}
	return got, err
}

// issuesAgain makes another grant when an issue is repeated [A6].
type issuesAgain struct{ right }

// Issue makes every request a new one.
func (s issuesAgain) Issue(ctx context.Context, i pawl.Issuance) (pawl.Issued, error) {
	if i.GrantID != "" {
		i.RequestID = i.GrantID
	}
	return s.right.Issue(ctx, i)
}
