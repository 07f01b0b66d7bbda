package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memstore"
)

// One grant, two operations: the first is admitted, the second is refused,
// whichever handle it comes through.
func Example() {
	ctx := context.Background()
	store, err := memstore.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	second, err := store.Handle(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Close()

	details, _ := pawl.ParseDetails([]byte(`{"amount":"250.00"}`))
	credit := pawl.Intent{Kind: "credit.create", Details: details}
	issued, err := store.Issue(ctx, pawl.Issuance{
		RequestID: "ticket-17", Form: pawl.FormStored, Issuer: "support", Subject: "ana", Intent: credit,
		Lifetime: time.Hour, GrantID: pawl.NewOperationID().String(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range []pawl.Store{store, second} {
		got, err := s.Admit(ctx, pawl.Admission{
			Grant: issued.Grant, OperationID: pawl.NewOperationID(), Intent: credit, Caller: pawl.Caller{Principal: "ana"},
			Lease: 30 * time.Second, SubmissionWindow: 10 * time.Minute,
		})
		fmt.Println(got.Fresh, errors.Is(err, pawl.ErrRefused))
	}
	// Output:
	// true false
	// false true
}
