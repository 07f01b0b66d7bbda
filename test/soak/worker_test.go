//go:build unix

package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
	"github.com/pawl-go/pawl/jwtgrant"
)

const (
	currency   = "USD"
	customer   = "ana"
	issuerName = "support"
)

// creditKind is the kind of every grant.
const creditKind pawl.Kind = "credit.create"

// assignment is what a worker process is told, in its environment.
type assignment struct {
	Name    string
	Place   place
	Terms   terms
	Billing string          // the provider's address
	Keys    json.RawMessage // the issuer's key set
	Idle    bool            // no recovery, no purge: it performs what it is asked, and no more
	Mistake mistake         // what it gets wrong; empty in a right worker
	Hold    []hold          // where it stops and waits to be told to go on
}

// order is what the customer asks of a worker.
type order struct {
	Token     string // of a signed grant
	Grant     string // id of a stored one
	Operation string
	Account   string
	Amount    string
}

// reply is what a worker answers.
type reply struct {
	Code      int // 200 final, 202 not yet; else that of the error's class
	Operation string
	Status    string
	Result    string
	Reason    pawl.Reason
}

// work is the life of a worker: it ends well on SIGTERM, and at once when the test is gone.
func work(raw string) (err error) {
	var a assignment
	if err := json.Unmarshal([]byte(raw), &a); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGINT) // a terminal sends it to all; the test decides
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	tell := &teller{out: os.Stdout}
	holds := newHolds(a.Hold, tell)
	go obey(os.Stdin, holds)
	ctx := context.Background()
	w, err := newWorker(ctx, a, holds, tell)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: w, ReadHeaderTimeout: 10 * time.Second}
	var jobs sync.WaitGroup
	jobs.Go(func() { _ = server.Serve(listener) }) // ends with server.Close
	if !a.Idle {
		jobs.Go(func() { _ = w.gate.Run(ctx) }) // ends with gate.Close, which tells what is left
	}
	tell.say(said{Type: saidReady, Text: "http://" + listener.Addr().String()})
	<-stop
	// The door stays open meanwhile, so that whoever knocks is told that nothing ran.
	closed := said{Type: saidClosed}
	if err := w.gate.Close(); err != nil {
		closed.Text = err.Error()
	}
	leaving, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = server.Shutdown(leaving) // a call that does not end keeps its customer waiting; the process ends all the same
	err = server.Close()
	jobs.Wait()
	err = errors.Join(err, w.store.Close())
	tell.say(closed)
	return err
}

// obey lets go what is held, by name, line by line. The end of the input is the end of the test.
func obey(in io.Reader, holds *holds) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		holds.release(lines.Text())
	}
	os.Exit(2)
}

// worker is a gate behind an HTTP API.
type worker struct {
	store pawl.Store
	gate  *pawl.Gate
}

func newWorker(ctx context.Context, a assignment, holds *holds, tell *teller) (*worker, error) {
	keys, err := jwtgrant.ParseKeySet(a.Keys)
	if err != nil {
		return nil, err
	}
	verifier, err := jwtgrant.NewVerifier(realm, []jwtgrant.TrustedIssuer{{Name: issuerName, Keys: keys}}, nil)
	if err != nil {
		return nil, err
	}
	store, err := a.Mistake.store(ctx, a)
	if err != nil {
		return nil, err
	}
	// Connections are kept alive, so that a create call may meet one that the provider has dropped [E1].
	api := &billing.Client{BaseURL: a.Billing, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	gate, err := pawl.New(ctx, heldStore{store, holds}, verifier, &pawl.Config{
		Effects:  []pawl.Effect{credit{api: api, holds: holds, mistake: a.Mistake}},
		Timings:  a.Terms.timings(),
		Name:     a.Name,
		Grace:    a.Terms.Grace,
		Observer: tell,
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &worker{store: store, gate: gate}, nil
}

// ServeHTTP performs one order.
func (w *worker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&o); err != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	got := w.execute(r.Context(), o)
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(got.Code)
	_ = json.NewEncoder(rw).Encode(got) // the customer may have left
}

func (w *worker) execute(ctx context.Context, o order) reply {
	id, err := pawl.ParseOperationID(o.Operation)
	if err != nil {
		return replyTo(pawl.Operation{}, err)
	}
	details, err := creditDetails{o.Account, o.Amount, currency}.details()
	if err != nil {
		return replyTo(pawl.Operation{}, err)
	}
	q := pawl.Request{
		Token: o.Token, OperationID: id, Kind: creditKind, Details: details.JSON(), Caller: pawl.Caller{Principal: customer},
	}
	if o.Grant != "" {
		q.Stored = pawl.GrantKey{Issuer: issuerName, ID: o.Grant}
	}
	return replyTo(w.gate.Execute(ctx, q))
}

func replyTo(op pawl.Operation, err error) reply {
	if err != nil {
		row, _ := pawl.Row(err)
		return reply{Code: row.HTTP, Reason: pawl.ReasonOf(err)}
	}
	got := reply{Code: http.StatusOK, Operation: op.ID.String(), Status: op.Status.String(), Result: string(op.Result)}
	if !op.Status.Final() {
		got.Code = http.StatusAccepted
	}
	return got
}

// What a worker says on its standard output, one JSON object a line. What the gate observes goes by its own names.
const (
	saidReady    = "ready"
	saidClosed   = "closed"
	saidHeld     = "held"
	saidNonsense = "nonsense" // what the test makes of a line that is no event
)

type said struct {
	Type      string
	Operation string // empty where it is about none
	Fence     uint64
	Verdict   string
	Status    string
	Reason    pawl.Reason
	Text      string
}

// teller tells the test what happens. A worker that is killed has told all that came before.
type teller struct {
	mu  sync.Mutex
	out io.Writer
}

func (t *teller) say(s said) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = json.NewEncoder(t.out).Encode(s) // without a test there is nobody to tell
}

// Observe implements pawl.Observer.
func (t *teller) Observe(_ context.Context, e pawl.Event) {
	if e.Type == pawl.EventPurge && e.Err == nil {
		return
	}
	s := said{Type: string(e.Type), Operation: e.Operation.String(), Fence: e.Fence, Verdict: e.Verdict.String(), Reason: e.Reason, Text: e.Note}
	if e.Status != 0 {
		s.Status = e.Status.String()
	}
	if e.Type == pawl.EventDefect {
		s.Text = fmt.Sprintf("%s %T: %v", e.Note, e.Err, e.Err)
	}
	t.say(s)
}
