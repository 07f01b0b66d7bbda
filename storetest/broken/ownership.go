package broken

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
)

// doorOpen lets whoever owned once act as owner for ever: fence and lease are
// not in its conditions [O1, O5].
type doorOpen struct{ right }

// present is the token of the present owner for whoever proved some fence from
// lowest on.
func (r right) present(id pawl.OperationID, token pawl.OwnerToken, lowest uint64) pawl.OwnerToken {
	_ = r.bench.db.Update(func(tx *memdb.Tx) error {
		if op, fence, proven, err := spokenFor(tx, id, token); err == nil && proven && fence >= lowest {
			token = tx.Meta().Secret.Mint(op, op.Fence)
		}
		return nil
	})
	return token
}

// MaySubmit asks who was owner once.
func (s doorOpen) MaySubmit(ctx context.Context, id pawl.OperationID, token pawl.OwnerToken) (pawl.Permit, error) {
	return s.right.MaySubmit(ctx, id, s.present(id, token, pawl.FirstFence))
}

// Renew asks who was owner once.
func (s doorOpen) Renew(ctx context.Context, r pawl.Renewal) (pawl.Owner, error) {
	r.Token = s.present(r.ID, r.Token, pawl.FirstFence)
	return s.right.Renew(ctx, r)
}

// Record asks who was owner once.
func (s doorOpen) Record(ctx context.Context, st pawl.Statement) (pawl.Operation, error) {
	st.Token = s.present(st.ID, st.Token, pawl.FirstFence)
	return s.right.Record(ctx, st)
}

// joinedOwns takes the token of a joined attempt for an owner's [O1].
type joinedOwns struct{ right }

// MaySubmit lets a retry create.
func (s joinedOwns) MaySubmit(ctx context.Context, id pawl.OperationID, token pawl.OwnerToken) (pawl.Permit, error) {
	return s.right.MaySubmit(ctx, id, s.presentIfJoined(id, token))
}

// Record lets a retry speak as the owner.
func (s joinedOwns) Record(ctx context.Context, st pawl.Statement) (pawl.Operation, error) {
	st.Token = s.presentIfJoined(st.ID, st.Token)
	return s.right.Record(ctx, st)
}

func (s joinedOwns) presentIfJoined(id pawl.OperationID, token pawl.OwnerToken) pawl.OwnerToken {
	joined := false
	_ = s.bench.db.Update(func(tx *memdb.Tx) error {
		_, fence, proven, err := spokenFor(tx, id, token)
		joined = err == nil && proven && fence == 0
		return nil
	})
	if joined {
		return s.present(id, token, 0)
	}
	return token
}

// leaseNotAsked checks who asks to create, not until when [O5].
type leaseNotAsked struct{ right }

// MaySubmit permits past lease and deadline.
func (s leaseNotAsked) MaySubmit(ctx context.Context, id pawl.OperationID, token pawl.OwnerToken) (p pawl.Permit, err error) {
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		op, fence, proven, err := spokenFor(tx, id, token)
		if err != nil {
			return err
		}
		c, err := pawl.PermitSubmit(op, fence, proven, op.OwnedSince)
		if err != nil {
			return err
		}
		tx.Apply(c)
		p = pawl.Permit{Granted: true, Fence: fence, LeaseUntil: op.LeaseUntil, SubmitBy: op.SubmitBy, AsOf: tx.Now}
		return nil
	})
	return p, err
}

// renewsForEver has no last moment for a lease [O3].
type renewsForEver struct{ right }

// Renew moves the end as often as it is asked.
func (s renewsForEver) Renew(ctx context.Context, r pawl.Renewal) (pawl.Owner, error) {
	r.Beyond = 1000 * time.Hour
	return s.right.Renew(ctx, r)
}

// keepsFence makes a new owner under the old one's fence [O1, O2].
type keepsFence struct{ right }

// TakeOver gives the same token once more.
func (s keepsFence) TakeOver(ctx context.Context, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	since := map[pawl.OperationID]time.Time{}
	_ = s.bench.db.Update(func(tx *memdb.Tx) error {
		for _, op := range tx.Operations() {
			since[op.ID] = op.OwnedSince
		}
		return nil
	})
	taken, err := s.right.TakeOver(ctx, t)
	_ = s.bench.db.Update(func(tx *memdb.Tx) error {
		for i := range taken {
			op := &taken[i].Operation
			op.Fence--
			op.OwnedSince = since[op.ID] // else the old token is told by its time
			tx.PutOperation(*op)
			taken[i].Owner = op.OwnerOf(tx.Meta().Secret, tx.Now)
		}
		return nil
	})
	return taken, err
}

// takesLive takes over what it finds, its lease over or not [O2].
type takesLive struct{ right }

// TakeOver asks for the status alone.
func (s takesLive) TakeOver(ctx context.Context, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	_ = s.bench.db.Update(func(tx *memdb.Tx) error {
		for _, op := range tx.Operations() {
			if _, wanted := t.Lease(op.Intent.Kind); wanted && op.Status.Open() {
				next := op.Clone()
				next.LeaseUntil, next.ResumeAt = tx.Now, tx.Now
				tx.PutOperation(next)
			}
		}
		return nil
	})
	return s.right.TakeOver(ctx, t)
}

// findsThenTakes takes over in another transaction than it found, without
// asking again [O2].
type findsThenTakes struct{ right }

// TakeOver can take what another took, or its owner settled, meanwhile.
func (s findsThenTakes) TakeOver(ctx context.Context, t pawl.TakeOver) (taken []pawl.TakenOver, err error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	var found []pawl.Operation
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		for _, op := range tx.Operations() {
			_, kind := t.Lease(op.Intent.Kind)
			limited := len(t.Tenants) > 0 && t.Tenants[0] != op.Caller.Tenant || len(t.Issuers) > 0 && t.Issuers[0] != op.Grant.Issuer
			if kind && !limited && op.CanTakeOver(tx.Now) && len(found) < t.Limit {
				found = append(found, op.Clone())
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	gap()
	err = s.bench.db.Update(func(tx *memdb.Tx) error {
		for _, op := range found {
			lease, _ := t.Lease(op.Intent.Kind)
			c, _ := pawl.TakeOverOperation(op, lease, t.By, tx.Now)
			tx.Apply(c)
			taken = append(taken, pawl.TakenOver{
				Operation: c.Next.Clone(), Owner: c.Next.OwnerOf(tx.Meta().Secret, tx.Now),
			})
		}
		return nil
	})
	return taken, err
}

// leaseFromBeforeWait reads the clock, waits for the lock and gives a lease from
// what it read [O2].
type leaseFromBeforeWait struct{ right }

// TakeOver gives away a lease that may be over.
func (s leaseFromBeforeWait) TakeOver(ctx context.Context, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	asked := s.bench.clock()
	taken, err := s.right.TakeOver(ctx, t)
	_ = s.bench.db.Update(func(tx *memdb.Tx) error {
		for i := range taken {
			op := &taken[i].Operation
			op.LeaseUntil = op.LeaseUntil.Add(asked.Sub(op.OwnedSince)).Truncate(time.Microsecond)
			tx.PutOperation(*op)
			taken[i].Owner = op.OwnerOf(tx.Meta().Secret, tx.Now)
		}
		return nil
	})
	return taken, err
}
