//go:build unix

package soak

import (
	"context"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memstore"
)

// mistake is what a deliberately wrong worker gets wrong. The zero value is a right worker.
type mistake string

const (
	// ownMap keeps the record in the process, as the systems do that this project exists for.
	ownMap mistake = "own map"
	// forgottenClaim admits every operation as if its grant had never been seen.
	forgottenClaim mistake = "forgotten claim"
	// errorIsFailure takes whatever is not a success for a refusal.
	errorIsFailure mistake = "an error is a failure"
)

// store opens the store of a worker that makes this mistake.
func (m mistake) store(ctx context.Context, a assignment) (pawl.Store, error) {
	timings := a.Terms.timings()
	if m == ownMap {
		return memstore.New(&memstore.Options{Realm: realm, Timings: timings})
	}
	shared, err := a.Place.join(ctx, timings)
	if err == nil && m == forgottenClaim {
		return forgetful{shared}, nil
	}
	return shared, err
}

// forgetful claims a key that nobody else claims.
type forgetful struct{ pawl.Store }

// Admit implements pawl.Store.
func (f forgetful) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	a.Grant.Key.ID = a.OperationID.String()
	return f.Store.Admit(ctx, a)
}
