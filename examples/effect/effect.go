// Package effect is the effect of docs/guides/write-an-effect.md: a credit at a
// billing provider over HTTP that can be found again by its reference.
package effect

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// Credit creates credits. It is registered by kind, so that another process can
// finish what this one began.
type Credit struct{ API *billing.Client }

// details are what a credit needs; money is a string, for a number cannot hold it.
type details struct {
	Account  string `json:"account"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

// Kind implements pawl.Effect.
func (Credit) Kind() pawl.Kind { return "credit.create" }

// Submit sends one create call under the operation id. Only the provider's own
// definite refusal is a failure; every other error leaves the outcome unknown.
func (c Credit) Submit(ctx context.Context, s pawl.Submission) (pawl.Outcome, error) {
	var d details
	if err := json.Unmarshal(s.Details.JSON(), &d); err != nil {
		return pawl.Failed("details are not a credit"), nil // nothing was sent
	}
	id, err := c.API.Create(ctx, s.IdempotencyKey, d.Account, d.Amount, d.Currency)
	if errors.Is(err, billing.ErrDeclined) {
		return pawl.Failed("declined"), nil
	}
	if err != nil {
		return pawl.Outcome{}, err
	}
	return pawl.Succeeded(id), nil
}

// Find looks the credit up by the operation id. What was found is told from the
// provider's answer, never from what we asked for: another intent's credit under
// this reference must not pass for ours.
func (c Credit) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	credit, found, err := c.API.Find(ctx, l.Reference)
	if err != nil {
		return pawl.Found{}, err
	}
	if !found {
		return pawl.FoundNothing(), nil
	}
	raw, err := json.Marshal(details{credit.Account, credit.Amount, credit.Currency})
	if err != nil {
		return pawl.Found{}, err
	}
	theirs, err := pawl.ParseDetails(raw)
	if err != nil {
		return pawl.Found{}, err
	}
	return pawl.FoundEffect(theirs, pawl.Succeeded(credit.ID)), nil
}

// Timings state what the provider documents of its keys. Without all of it,
// recovery looks up and never creates again.
func Timings() *pawl.Timings {
	t := pawl.DefaultTimings()
	k := t.Default
	k.SubmissionWindow = 12 * time.Hour
	k.Provider = pawl.ProviderContract{
		AtomicKeys: true, SameParameters: true, KeyRetention: 24 * time.Hour, ClockDifference: time.Minute,
	}
	t.Kinds = map[pawl.Kind]pawl.KindTimings{"credit.create": k}
	return &t
}
