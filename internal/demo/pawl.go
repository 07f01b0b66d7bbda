package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// pawlRecord is the support service on Pawl, as any program would use it: an
// effect, a gate, Execute for each request and Run beside them.
type pawlRecord struct {
	store   pawl.Store
	gate    *pawl.Gate
	stop    context.CancelFunc
	running chan error
}

func newPawlRecord(ctx context.Context, s pawl.Store, v pawl.Verifier, api *billing.Client, name string, tell func(event)) (*pawlRecord, error) {
	gate, err := pawl.New(ctx, s, v, &pawl.Config{
		Effects:  []pawl.Effect{credit{api: api, tell: tell}},
		Timings:  demoTimings(),
		Name:     name,
		Grace:    stopGrace,
		Observer: observer(tell),
	})
	if err != nil {
		return nil, err
	}
	r := &pawlRecord{store: s, gate: gate, running: make(chan error, 1)}
	ctx, r.stop = context.WithCancel(ctx)
	go func() { r.running <- gate.Run(ctx) }()
	return r, nil
}

// apply hands the request over; nothing in it is trusted before the gate has
// verified the grant.
func (r *pawlRecord) apply(ctx context.Context, agent string, a application) answer {
	id, err := pawl.ParseOperationID(a.OperationID)
	if err != nil {
		return answerTo(pawl.Operation{}, err)
	}
	return answerTo(r.gate.Execute(ctx, pawl.Request{
		Token: a.Grant, OperationID: id, Kind: creditKind, Details: a.Credit, Caller: pawl.Caller{Principal: agent},
	}))
}

// status answers the operation's own caller [S1].
func (r *pawlRecord) status(ctx context.Context, agent, operation string) answer {
	id, err := pawl.ParseOperationID(operation)
	if err != nil {
		return answerTo(pawl.Operation{}, err)
	}
	return answerTo(r.gate.Status(ctx, id, pawl.AsCaller(pawl.Caller{Principal: agent}), 0))
}

func (r *pawlRecord) close() error {
	r.stop()
	return errors.Join(<-r.running, r.gate.Close(), r.store.Close())
}

// answerTo is what a caller may know: the status of its operation, or a reason
// from the small set [S2].
func answerTo(op pawl.Operation, err error) answer {
	if err != nil {
		row, _ := pawl.Row(err)
		return answer{Code: row.HTTP, Error: pawl.ReasonOf(err).Public(row.Class)}
	}
	got := answer{Code: http.StatusOK, Operation: op.ID.String(), Status: op.Status.String(), Credit: string(op.Result)}
	if !op.Status.Final() {
		got.Code = http.StatusAccepted
	}
	return got
}

// credit is the effect. It sees the operation's record and never a request.
type credit struct {
	api  *billing.Client
	tell func(event)
}

var (
	_ pawl.Effect = credit{}
	_ pawl.Finder = credit{}
)

// Kind implements pawl.Effect.
func (credit) Kind() pawl.Kind { return creditKind }

// Submit implements pawl.Effect. The idempotency key is the operation id: the
// same in every attempt [E1].
func (c credit) Submit(ctx context.Context, s pawl.Submission) (pawl.Outcome, error) {
	d, err := readDetails(s.Details)
	if err != nil {
		return pawl.Outcome{}, err
	}
	c.tell(event{Type: evSending, Key: s.IdempotencyKey, Text: ", the operation id"})
	id, err := c.api.Create(ctx, s.IdempotencyKey, d.Account, d.Amount, d.Currency)
	if errors.Is(err, billing.ErrDeclined) {
		return pawl.Failed("billing declined"), nil
	}
	return pawl.Succeeded(id), err
}

// Find implements pawl.Finder. The details are those that the provider holds [E2].
func (c credit) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	got, found, err := c.api.Find(ctx, l.Reference)
	if err != nil {
		return pawl.Found{}, err
	}
	if !found {
		return pawl.FoundNothing(), nil
	}
	details, err := creditDetails{Account: got.Account, Amount: got.Amount, Currency: got.Currency}.details()
	if err != nil {
		return pawl.Found{}, fmt.Errorf("the provider's details: %w", err)
	}
	return pawl.FoundEffect(details, pawl.Succeeded(got.ID)), nil
}

// observer hears what the gate did.
type observer func(event)

// Observe implements pawl.Observer.
func (o observer) Observe(_ context.Context, e pawl.Event) {
	if v, ok := heard(e); ok {
		o(v)
	}
}

// demoTimings are short, so that recovery can be watched: a dead owner's lease is
// over after six seconds. They are valid together [T1], and state the provider's
// contract as its package documents it.
func demoTimings() *pawl.Timings {
	t := pawl.DefaultTimings()
	t.StoreCallTimeout = 1500 * time.Millisecond
	t.LeaseMargin = 500 * time.Millisecond
	t.RecoveryInterval = 250 * time.Millisecond
	t.ReplicationWaitBound = 0
	k := t.Default
	k.EffectTimeout = callTimeout
	k.FindTimeout = callTimeout
	k.ExecutionLease = 6 * time.Second
	k.RecoveryLease = 9 * time.Second
	k.SubmissionWindow = time.Minute
	k.Provider = pawl.ProviderContract{
		AtomicKeys: true, SameParameters: true, KeyRetention: billing.DefaultRetention, ClockDifference: time.Second,
	}
	t.Kinds = map[pawl.Kind]pawl.KindTimings{creditKind: k}
	return &t
}
