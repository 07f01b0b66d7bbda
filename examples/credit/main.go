// Command credit is the program in the README: one approval, one credit.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sqlitestore"
)

// credit performs one kind of operation. A real one calls a provider here.
type credit struct{}

func (credit) Kind() pawl.Kind { return "credit.create" }

func (credit) Submit(_ context.Context, s pawl.Submission) (pawl.Outcome, error) {
	fmt.Printf("one create call, details %s\n", s.Details.JSON())
	return pawl.Succeeded("cr_8812"), nil // an error instead would make the outcome unknown
}

func main() {
	ctx := context.Background()
	store, err := sqlitestore.Open(ctx, "pawl.db", nil) // shared by every process of this host
	check(err)
	gate, err := pawl.New(ctx, store, nil, &pawl.Config{Effects: []pawl.Effect{credit{}}})
	check(err)

	// A supervisor approves one action: a grant, to be used once, within 15 minutes.
	details, err := pawl.ParseDetails([]byte(`{"account":"A-1187","amount":"250.00"}`))
	check(err)
	approved, err := gate.Issue(ctx, pawl.Issuance{
		RequestID: pawl.NewOperationID().String(), GrantID: pawl.NewOperationID().String(), Form: pawl.FormStored,
		Issuer: "support", Subject: "alice", Intent: pawl.Intent{Kind: "credit.create", Details: details},
		Lifetime: 15 * time.Minute,
	})
	check(err)

	// Alice presents it, for one operation.
	request := pawl.Request{
		Stored: approved.Grant.Key, OperationID: pawl.NewOperationID(),
		Kind: "credit.create", Details: details.JSON(), Caller: pawl.Caller{Principal: "alice"},
	}
	op, err := gate.Execute(ctx, request)
	check(err)
	fmt.Printf("first:  %s %s\n", op.Status, op.Result)

	op, err = gate.Execute(ctx, request) // a retry reports, and runs nothing
	check(err)
	fmt.Printf("retry:  %s %s\n", op.Status, op.Result)

	request.OperationID = pawl.NewOperationID() // the same grant for another operation
	_, err = gate.Execute(ctx, request)
	fmt.Printf("replay: refused %v\n", errors.Is(err, pawl.ErrRefused))
	check(errors.Join(gate.Close(), store.Close()))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
