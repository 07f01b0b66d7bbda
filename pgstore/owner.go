package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// MaySubmit implements pawl.Store: an acknowledged write, because a read may show
// what a fail-over will undo [O5, A3].
func (s *Store) MaySubmit(ctx context.Context, id pawl.OperationID, token pawl.OwnerToken) (pawl.Permit, error) {
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (p pawl.Permit, err error) {
		err = s.change(ctx, on, id, func(l locked) (pawl.Change, error) {
			fence, proven := s.secret.Fence(l.op, token)
			c, err := pawl.PermitSubmit(l.op, fence, proven, l.now)
			p = pawl.Permit{Granted: true, Fence: fence, LeaseUntil: l.op.LeaseUntil, SubmitBy: l.op.SubmitBy, AsOf: l.now}
			return c, err
		})
		return p, err
	})
}

// Renew implements pawl.Store.
func (s *Store) Renew(ctx context.Context, r pawl.Renewal) (pawl.Owner, error) {
	if err := r.Validate(); err != nil {
		return pawl.Owner{}, err
	}
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (o pawl.Owner, err error) {
		err = s.change(ctx, on, r.ID, func(l locked) (pawl.Change, error) {
			fence, proven := s.secret.Fence(l.op, r.Token)
			c, err := pawl.RenewLease(l.op, fence, proven, inMicros(r.Lease), inMicros(r.Beyond), l.now) // [O3]
			if err == nil {
				o = c.Next.OwnerOf(s.secret, l.now)
			}
			return c, err
		})
		return o, err
	})
}

// Record implements pawl.Store. A refused statement is logged too [M1].
func (s *Store) Record(ctx context.Context, st pawl.Statement) (pawl.Operation, error) {
	if err := st.Validate(); err != nil {
		return pawl.Operation{}, err
	}
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (op pawl.Operation, err error) {
		err = s.change(ctx, on, st.ID, func(l locked) (pawl.Change, error) {
			fence, proven := s.secret.Fence(l.op, st.Token)
			c, err := pawl.RecordOutcome(l.op, fence, proven, st.Outcome, inMicros(st.Pause), l.now) // [O1]
			op = c.Next.Clone()
			return c, err
		})
		return op, err
	})
}

// Settle implements pawl.Store.
func (s *Store) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	if err := e.Validate(); err != nil {
		return pawl.Settlement{}, err
	}
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (got pawl.Settlement, err error) {
		err = s.change(ctx, on, e.ID, s.settlement(e, &got))
		return got, err
	})
}

// settlement is the evidence door's decision [M1].
func (s *Store) settlement(e pawl.Evidence, got *pawl.Settlement) decision {
	return func(l locked) (c pawl.Change, err error) {
		fence, proven := s.secret.Fence(l.op, e.Token)
		c, *got, err = pawl.SettleEvidence(l.op, e, fence, proven, l.now)
		return c, err
	}
}

// TakeOver implements pawl.Store: those whose lease ended first come first, one
// winner each, in two round trips however many there are [O2].
func (s *Store) TakeOver(ctx context.Context, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) ([]pawl.TakenOver, error) {
		return s.takeOver(ctx, on, t)
	})
}

func (s *Store) takeOver(ctx context.Context, on session, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	var kinds []string
	if t.OtherKinds <= 0 {
		for k := range t.Leases {
			kinds = append(kinds, string(k))
		}
	}
	var found []locked
	err := on.run(ctx, step{sql: beginSQL}, step{
		sql: s.sql[stmtTakeOver], args: []any{kinds, listed(t.Tenants, itself), listed(t.Issuers, itself), t.Limit},
		each: func(scan scanner) error {
			l, err := s.scanLocked(scan)
			if d, ok := errors.AsType[*defect](err); ok { // one damaged record must not keep recovery from the others
				s.log.ErrorContext(ctx, "takeover passes over a record", "error", d)
				return nil
			}
			found = append(found, l)
			return err
		},
	})
	if err != nil {
		rollBack(ctx, on)
		return nil, err
	}
	steps, taken, written := s.takeovers(t, found)
	if len(steps) == 0 {
		rollBack(ctx, on)
		return nil, nil
	}
	if err := transaction(ctx, on, steps); err != nil {
		return nil, err
	}
	for i, n := range written {
		if n != 1 {
			return nil, unwritten(taken[i].Operation.ID)
		}
	}
	return taken, nil
}

// takeovers decides on each locked record, once more and by the one rule [O2].
func (s *Store) takeovers(t pawl.TakeOver, found []locked) (steps []step, taken []pawl.TakenOver, written []int64) {
	written = make([]int64, len(found))
	for _, l := range found {
		lease, wanted := t.Lease(l.op.Intent.Kind)
		c, ok := pawl.TakeOverOperation(l.op, inMicros(lease), t.By, l.now)
		if !wanted || !ok {
			continue
		}
		steps = append(steps, s.writeStep(l.op, c, &written[len(taken)]))
		taken = append(taken, pawl.TakenOver{Operation: c.Next.Clone(), Owner: c.Next.OwnerOf(s.secret, l.now)})
	}
	return steps, taken, written[:len(taken)]
}

// inMicros rounds a duration down to the server's unit, so that what is answered
// is what is written.
func inMicros(d time.Duration) time.Duration { return d.Truncate(time.Microsecond) }
