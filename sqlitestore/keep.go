package sqlitestore

import (
	"context"

	"github.com/pawl-go/pawl"
)

// RaiseEpoch implements pawl.Keeper: to be called after the file was restored
// from a backup, before anything is admitted [A12].
func (s *Store) RaiseEpoch(ctx context.Context) (pawl.Epoch, error) {
	return write(ctx, s, pawl.ErrUnavailable, func(t *txn) (e pawl.Epoch, err error) {
		var notBefore int64
		t.wrote = true
		found, err := t.one("raise_epoch", []any{&e.Number, &notBefore})
		if err == nil && !found {
			err = errChanged
		}
		e.IssuedNotBefore = timeOf(notBefore)
		return e, err
	})
}

// Erase implements pawl.Keeper. What is to be erased is looked for without the
// write lock, which may take long in a large store, and judged again under it.
func (s *Store) Erase(ctx context.Context, e pawl.Erasure) (pawl.ErasureReport, error) {
	if err := e.Validate(); err != nil {
		return pawl.ErasureReport{}, err
	}
	limit := e.Limit
	if limit == 0 {
		limit = pawl.MaxPage
	}
	caller := []any{
		named("principal", e.Caller.Principal), named("tenant", e.Caller.Tenant), named("authority", e.Caller.Authority),
	}
	var unsettled int
	due, err := read(ctx, s, func(a asker) ([]pawl.OperationID, error) {
		if _, err := a.one("count_unsettled", []any{&unsettled}, caller...); err != nil {
			return nil, err
		}
		return ids(a, "list_erasable", append(caller, named("limit", int64(limit)+1))...)
	})
	if err != nil {
		return pawl.ErasureReport{}, err
	}
	return write(ctx, s, pawl.ErrUnavailable, func(t *txn) (pawl.ErasureReport, error) {
		r := pawl.ErasureReport{Unsettled: unsettled, More: len(due) > limit}
		for _, id := range due[:min(limit, len(due))] {
			erased, err := t.erase(id, e)
			if err != nil {
				return r, err
			}
			if erased {
				r.Erased++
			}
		}
		return r, nil
	})
}

// erase removes details and result of one settled operation. The lock remains,
// and so does the digest of the result, so that refusal and settlement stay
// what they were.
func (t *txn) erase(id pawl.OperationID, e pawl.Erasure) (bool, error) {
	r, err := t.operation(id)
	if err != nil || r == nil || r.op.Erased || !r.op.Status.Final() || !r.op.Caller.Same(e.Caller) {
		return false, err
	}
	next := r.op.Clone()
	next.Intent.Details, next.Erased = pawl.StoredDetails("{}"), true
	if next.Result != nil {
		next.Result = []byte{}
	}
	next.Entries++
	if err := t.apply(r.op, pawl.Change{Next: next, Write: true}); err != nil {
		return false, err
	}
	if _, err := t.write("erase_grant", keyArgs(next.Grant)...); err != nil {
		return false, err
	}
	return true, t.note(id, int64(next.Entries), pawl.Entry{
		Type: pawl.EntryErasure, Source: e.By, Disposition: pawl.Applied, Reason: e.Reason,
	})
}
