package storetest

import (
	"context"
	"sync/atomic"

	"github.com/pawl-go/pawl"
)

// Lossy wraps an instance of a store that has no wire to cut: the call after
// lose runs to its end, and its answer is replaced by what a store says when it
// got none, ErrNotConfirmed for an admission or reservation, else
// ErrUnavailable. It fits Deployment.OpenLossy.
func Lossy(s pawl.Store) (lossy pawl.Store, lose func()) {
	l := &lossyStore{Store: s}
	return l, func() { l.armed.Store(true) }
}

type lossyStore struct {
	pawl.Store
	armed atomic.Bool
}

// answer replaces an answer by the loss of it, once.
func answer[T any](l *lossyStore, c pawl.Class, v T, err error) (T, error) {
	if !l.armed.CompareAndSwap(true, false) {
		return v, err
	}
	var none T
	return none, &pawl.Error{Class: c, Reason: pawl.ReasonUnreachable, Note: "the answer was lost"}
}

func (l *lossyStore) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	got, err := l.Store.Admit(ctx, a)
	return answer(l, pawl.ErrNotConfirmed, got, err)
}

func (l *lossyStore) Reserve(ctx context.Context, r pawl.Reservation) (pawl.Admitted, error) {
	got, err := l.Store.Reserve(ctx, r)
	return answer(l, pawl.ErrNotConfirmed, got, err)
}

func (l *lossyStore) Issue(ctx context.Context, i pawl.Issuance) (pawl.Issued, error) {
	got, err := l.Store.Issue(ctx, i)
	return answer(l, pawl.ErrUnavailable, got, err)
}

func (l *lossyStore) Revoke(ctx context.Context, r pawl.Revocation) (pawl.RevocationState, error) {
	got, err := l.Store.Revoke(ctx, r)
	return answer(l, pawl.ErrUnavailable, got, err)
}

func (l *lossyStore) MaySubmit(ctx context.Context, id pawl.OperationID, token pawl.OwnerToken) (pawl.Permit, error) {
	got, err := l.Store.MaySubmit(ctx, id, token)
	return answer(l, pawl.ErrUnavailable, got, err)
}

func (l *lossyStore) Renew(ctx context.Context, r pawl.Renewal) (pawl.Owner, error) {
	got, err := l.Store.Renew(ctx, r)
	return answer(l, pawl.ErrUnavailable, got, err)
}

func (l *lossyStore) Record(ctx context.Context, s pawl.Statement) (pawl.Operation, error) {
	got, err := l.Store.Record(ctx, s)
	return answer(l, pawl.ErrUnavailable, got, err)
}

func (l *lossyStore) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	got, err := l.Store.Settle(ctx, e)
	return answer(l, pawl.ErrUnavailable, got, err)
}

func (l *lossyStore) TakeOver(ctx context.Context, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	got, err := l.Store.TakeOver(ctx, t)
	return answer(l, pawl.ErrUnavailable, got, err)
}
