package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memstore"
)

// payments stands for a provider's client.
type payments struct{}

// Create makes a payment under an idempotency key.
func (payments) Create(context.Context, string, []byte) (string, error) { return "pay_1", nil }

// ByKey looks a payment up.
func (payments) ByKey(context.Context, string) (id string, asHeld []byte, err error) {
	return "pay_1", []byte(`{"amount":"250.00"}`), nil
}

// pay is an effect.
type pay struct{ api payments }

// Kind implements pawl.Effect.
func (pay) Kind() pawl.Kind { return "payment.create" }

// Submit implements pawl.Effect.
func (p pay) Submit(ctx context.Context, s pawl.Submission) (pawl.Outcome, error) {
	id, err := p.api.Create(ctx, s.IdempotencyKey, s.Details.JSON()) // details come from the record, not the request
	return pawl.Succeeded(id), err                                   // any error makes the outcome unknown
}

// Find implements pawl.Finder.
func (p pay) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	id, asHeld, err := p.api.ByKey(ctx, l.Reference)
	if err != nil {
		return pawl.Found{}, err // nothing was learnt
	}
	if id == "" {
		return pawl.FoundNothing(), nil // the provider answered, and knows no such key
	}
	details, err := pawl.ParseDetails(asHeld) // as the provider holds them, never as we asked
	return pawl.FoundEffect(details, pawl.Succeeded(id)), err
}

// approve issues a grant for ana in a store of its own.
func approve(ctx context.Context) (*memstore.Store, pawl.GrantKey) {
	store, err := memstore.New(nil)
	if err != nil {
		panic(err)
	}
	details, err := pawl.ParseDetails([]byte(`{"amount":"250.00"}`))
	if err != nil {
		panic(err)
	}
	issued, err := store.Issue(ctx, pawl.Issuance{
		RequestID: "ticket-17", GrantID: "g-41c9", Form: pawl.FormStored, Issuer: "support", Subject: "ana",
		Intent: pawl.Intent{Kind: "payment.create", Details: details}, Lifetime: 15 * time.Minute,
	})
	if err != nil {
		panic(err)
	}
	return store, issued.Grant.Key
}

// A gate is made on a store that keeps its promises; what is wrong is said at
// once and in full.
func ExampleNew() {
	ctx := context.Background()
	store, _ := approve(ctx)
	defer store.Close()

	timings := pawl.DefaultTimings()
	timings.Default.EffectTimeout = time.Minute
	_, err := pawl.New(ctx, store, nil, &pawl.Config{Effects: []pawl.Effect{pay{}}, Timings: &timings})
	fmt.Println(errors.Is(err, pawl.ErrMisconfigured))

	gate, err := pawl.New(ctx, store, nil, &pawl.Config{Effects: []pawl.Effect{pay{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(gate.Close())
	// Output:
	// true
	// <nil>
}

// A grant is admitted for one operation, which runs once. The same operation
// again is answered, not repeated; another is refused.
func ExampleGate_Execute() {
	ctx := context.Background()
	store, grant := approve(ctx)
	defer store.Close()
	gate, err := pawl.New(ctx, store, nil, &pawl.Config{Effects: []pawl.Effect{pay{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	request := pawl.Request{
		Stored: grant, OperationID: pawl.NewOperationID(), Kind: "payment.create",
		Details: []byte(`{"amount": "250.00"}`), Caller: pawl.Caller{Principal: "ana"},
	}
	another := request
	another.OperationID = pawl.NewOperationID()
	for _, r := range []pawl.Request{request, request, another} {
		switch op, err := gate.Execute(ctx, r); {
		case errors.Is(err, pawl.ErrNotConfirmed):
			fmt.Println("nothing ran; retry with the same operation id")
		case err != nil:
			fmt.Println("refused:", pawl.ReasonOf(err).Public(pawl.ErrRefused))
		default:
			fmt.Println(op.Status, string(op.Result))
		}
	}
	// Output:
	// succeeded pay_1
	// succeeded pay_1
	// refused: grant-not-available
}

// Without a grant an idempotency key reserves the operation: whoever repeats it
// joins, and another intent under the key is a mismatch.
func ExampleGate_ExecuteReserved() {
	ctx := context.Background()
	store, _ := approve(ctx)
	defer store.Close()
	gate, err := pawl.New(ctx, store, nil, &pawl.Config{Effects: []pawl.Effect{pay{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	for _, amount := range []string{"250.00", "250.00", "999.00"} {
		op, err := gate.ExecuteReserved(ctx, pawl.ReservedRequest{
			Key: "order-17", Kind: "payment.create", Details: []byte(`{"amount":"` + amount + `"}`),
			Caller: pawl.Caller{Principal: "ana"},
		})
		if errors.Is(err, pawl.ErrMismatch) {
			fmt.Println("the key was used for something else")
			continue
		}
		fmt.Println(op.Status, err)
	}
	// Output:
	// succeeded <nil>
	// succeeded <nil>
	// the key was used for something else
}

// A queue's worker performs the operation itself: it is the owner only where its
// admission was fresh, asks just before its one call, and records what it
// learnt.
func ExampleGate_Admit() {
	ctx := context.Background()
	store, grant := approve(ctx)
	defer store.Close()
	gate, err := pawl.New(ctx, store, nil, nil) // no effects: this process performs nothing by itself
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	asked := time.Now() // the lease counts from before the question
	admitted, err := gate.Admit(ctx, pawl.Request{
		Stored: grant, OperationID: pawl.NewOperationID(), Kind: "payment.create",
		Details: []byte(`{"amount":"250.00"}`), Caller: pawl.Caller{Principal: "ana"},
	})
	if err != nil || !admitted.Fresh {
		return // refused, not confirmed, or somebody else's
	}
	op, owner := admitted.Operation, admitted.Owner
	permit, err := gate.MaySubmit(ctx, op.ID, owner.Token)
	if err != nil || !permit.Granted || time.Since(asked) >= owner.LeaseUntil.Sub(owner.AsOf) {
		return // not the owner any more: nothing is sent
	}
	outcome := pawl.Unknown("no definite answer")
	if id, err := (payments{}).Create(ctx, op.ID.String(), op.Intent.Details.JSON()); err == nil {
		outcome = pawl.Succeeded(id)
	}
	recorded, err := gate.Record(ctx, pawl.Statement{ID: op.ID, Token: owner.Token, Outcome: outcome})
	fmt.Println(recorded.Operation.Status, recorded.Disposition, err)
	// Output: succeeded applied <nil>
}

// Recovery runs beside the requests, until its context ends: what another
// process began and left is looked up and finished.
func ExampleGate_Run() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store, _ := approve(ctx)
	defer store.Close()
	gate, err := pawl.New(ctx, store, nil, &pawl.Config{Effects: []pawl.Effect{pay{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- gate.Run(ctx) }()

	stop() // on a signal, for example
	fmt.Println(<-ended, gate.Close())
	// Output: <nil> <nil>
}

// A person settles what automation may not: here nobody can say what became of a
// call, and somebody looks.
func ExampleGate_Resolve() {
	ctx := context.Background()
	store, _ := approve(ctx)
	defer store.Close()
	gate, err := pawl.New(ctx, store, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	_, err = gate.Resolve(ctx, pawl.Resolution{
		ID: pawl.NewOperationID(), Outcome: pawl.Succeeded("pay_1"), By: "sue", Note: "seen in the provider's console",
	})
	fmt.Println(errors.Is(err, pawl.ErrNotFound))
	// Output: true
}
