//go:build unix

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// deafAccount is the account whose create call heeds no context and never returns.
const deafAccount = "acc_deaf"

// credit is the effect of every worker.
type credit struct {
	api     *billing.Client
	holds   *holds
	mistake mistake
}

var (
	_ pawl.Effect = credit{}
	_ pawl.Finder = credit{}
)

// Kind implements pawl.Effect.
func (credit) Kind() pawl.Kind { return creditKind }

// Submit implements pawl.Effect. The idempotency key is the operation id; only the provider's own refusal is a failure
// [E1].
func (c credit) Submit(ctx context.Context, s pawl.Submission) (pawl.Outcome, error) {
	var d creditDetails
	if err := json.Unmarshal(s.Details.JSON(), &d); err != nil {
		return pawl.Outcome{}, err
	}
	if d.Account == deafAccount && s.Attempt == 1 {
		select {}
	}
	c.holds.pass(submitBefore, s.OperationID)
	id, err := c.api.Create(ctx, s.IdempotencyKey, d.Account, d.Amount, d.Currency)
	c.holds.pass(submitAfter, s.OperationID)
	if errors.Is(err, billing.ErrDeclined) || err != nil && c.mistake == errorIsFailure {
		return pawl.Failed("billing declined"), nil
	}
	return pawl.Succeeded(id), err
}

// Find implements pawl.Finder. The details are the provider's [E2].
func (c credit) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	got, found, err := c.api.Find(ctx, l.Reference)
	if err != nil {
		return pawl.Found{}, err
	}
	if !found {
		return pawl.FoundNothing(), nil
	}
	details, err := creditDetails{got.Account, got.Amount, got.Currency}.details()
	if err != nil {
		return pawl.Found{}, fmt.Errorf("the provider's details: %w", err)
	}
	return pawl.FoundEffect(details, pawl.Succeeded(got.ID)), nil
}

// creditDetails are the details of a credit.
type creditDetails struct {
	Account  string `json:"account"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

func (c creditDetails) details() (pawl.Details, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return pawl.Details{}, err
	}
	return pawl.ParseDetails(raw)
}
