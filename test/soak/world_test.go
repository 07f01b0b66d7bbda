//go:build unix

package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
	"github.com/pawl-go/pawl/jwtgrant"
)

// patience is how long a test waits for what must come. Nothing is asserted about how long it takes.
const patience = 90 * time.Second

// world is what all workers of one test share, and the test's own hands: a handle on the store, the issuer's key and the
// customer's client.
type world struct {
	place    place
	terms    terms
	store    pawl.Store
	provider *billing.Provider
	billing  string // the provider's address
	stop     func() error
	issuer   *jwtgrant.Issuer
	keys     json.RawMessage
	web      *http.Client
}

// newWorld founds the store and starts the provider; both end with the test.
func newWorld(t *testing.T, p place, s terms, set billing.Settings) *world {
	t.Helper()
	w := &world{place: p, terms: s, web: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	store, err := p.found(t.Context(), s.timings())
	if err != nil {
		t.Fatal(err)
	}
	w.store = store
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if w.provider, err = billing.New(&billing.Options{Now: time.Now, Settings: set, Grace: patience}); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.billing = "http://" + listener.Addr().String()
	serving, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.provider.Serve(serving, listener) }()
	w.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = w.provider.Close(); _ = w.stop() }) // what is still held there is dropped
	w.makeIssuer(t)
	return w
}

func (w *world) makeIssuer(t *testing.T) {
	t.Helper()
	key, err := jwtgrant.GenerateKey(jwtgrant.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	if w.issuer, err = jwtgrant.NewIssuer(issuerName, key, nil); err != nil {
		t.Fatal(err)
	}
	set, err := jwtgrant.NewKeySet(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	if w.keys, err = json.Marshal(set); err != nil {
		t.Fatal(err)
	}
}

// assign is an assignment for a right worker.
func (w *world) assign(name string) assignment {
	return assignment{Name: name, Place: w.place, Terms: w.terms, Billing: w.billing, Keys: w.keys}
}

// mustStart starts a worker that ends with the test.
func (w *world) mustStart(t *testing.T, a assignment, more ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := start(ctx, a, more...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// grant is one grant with what it is for.
type grant struct {
	token  string
	stored string
	credit creditDetails
}

// issue approves one credit, as a signed token or as a row in the store.
func (w *world) issue(ctx context.Context, form pawl.Form, account, amount string) (grant, error) {
	g := grant{credit: creditDetails{account, amount, currency}}
	details, err := g.credit.details()
	if err != nil {
		return g, err
	}
	id := pawl.NewOperationID().String()
	i := pawl.Issuance{
		RequestID: id, Form: form, Issuer: issuerName, Subject: customer,
		Intent: pawl.Intent{Kind: creditKind, Details: details}, Lifetime: 12 * time.Hour, GrantID: id,
	}
	if form == pawl.FormToken {
		g.token, _, err = w.issuer.Issue(realm, time.Now(), i)
		return g, err
	}
	for { // the same request again is the same grant
		issued, err := w.store.Issue(ctx, i)
		if err == nil {
			g.stored = issued.Grant.Key.ID
			return g, nil
		}
		if err := pauseFor(ctx, 100*time.Millisecond); err != nil {
			return g, fmt.Errorf("issuing a grant: %w", err)
		}
	}
}

// mustIssue issues a token of 250.00.
func (w *world) mustIssue(t *testing.T, account string) grant {
	t.Helper()
	g, err := w.issue(t.Context(), pawl.FormToken, account, "250.00")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// order presents a grant for an operation.
func (g grant) order(id pawl.OperationID) order {
	return order{
		Token: g.token, Grant: g.stored, Operation: id.String(), Account: g.credit.Account, Amount: g.credit.Amount,
	}
}

// ask sends one order to the worker at url. An error is an answer that was lost, or never given.
func (w *world) ask(ctx context.Context, url string, o order) (reply, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	res, err := w.web.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	var got reply
	if err := json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&got); err != nil {
		return reply{}, err
	}
	return got, nil
}

// pauseFor waits, or says why not.
func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look is how long a wait for a condition rests between two looks.
const look = 50 * time.Millisecond

// until waits for a condition, or says that it did not come.
func until(ctx context.Context, what string, holds func() bool) error {
	for !holds() {
		if err := pauseFor(ctx, look); err != nil {
			return fmt.Errorf("waited in vain for %s: %w", what, err)
		}
	}
	return nil
}

// get reads a record; the zero operation where it could not be read now.
func (w *world) get(ctx context.Context, id pawl.OperationID) pawl.Operation {
	op, err := w.store.Get(ctx, id, pawl.AsOperator())
	if err != nil {
		return pawl.Operation{}
	}
	return op
}

// awaitStatus waits until an operation is final.
func (w *world) awaitFinal(t *testing.T, id pawl.OperationID) pawl.Operation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var op pawl.Operation
	err := until(ctx, "operation "+id.String()+" to be settled", func() bool {
		op = w.get(ctx, id)
		return op.Status.Final()
	})
	if err != nil {
		t.Fatalf("%v: it is %v (%s)", err, op.Status, op.Reason)
	}
	return op
}

// expectOne checks that an operation succeeded with exactly one credit, and that the record names it.
func (w *world) expectOne(t *testing.T, id pawl.OperationID) pawl.Operation {
	t.Helper()
	op := w.awaitFinal(t, id)
	var made []string
	for _, c := range w.provider.Books().Credits {
		if c.Reference == id.String() {
			made = append(made, c.ID)
		}
	}
	if len(made) != 1 || op.Status != pawl.StatusSucceeded || string(op.Result) != made[0] {
		t.Errorf("operation %v is %v with result %q; the books show %q", id, op.Status, op.Result, made)
	}
	if op.MismatchSeen || op.ContradictionSeen || op.DivergenceSeen {
		t.Errorf("operation %v is flagged: %t %t %t", id, op.MismatchSeen, op.ContradictionSeen, op.DivergenceSeen)
	}
	return op
}

// requests is how many create calls came under an operation.
func (w *world) requests(id pawl.OperationID) int {
	return w.provider.Books().Reference(id.String()).Requests
}
