package pawl_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
	"github.com/pawl-go/pawl/memstore"
)

const credit pawl.Kind = "credit.create"

// world is one shared store, one provider, and what a test may make wrong about
// them. Findings are collected, so that a test of the tests can ask for them.
type world struct {
	t       *testing.T
	db      *memdb.DB
	bank    *bank
	timings pawl.Timings
	tokens  map[string]pawl.Grant
	details string // of every grant and request

	store  func(*handle) pawl.Store          // nil: the store as it is
	effect func(pawl.Effect) pawl.Effect     // nil: the effect as it is
	config func(*pawl.Config)                // nil: the gate as it is
	events func(context.Context, pawl.Event) // nil: nobody listens

	mu    sync.Mutex
	wrong []string
	gates []*pawl.Gate
}

func newWorld(t *testing.T, clock func() time.Time) *world {
	timings := pawl.DefaultTimings()
	return &world{
		t: t, db: memdb.New("books", timings.Policy(), clock), timings: timings, tokens: map[string]pawl.Grant{},
		details: `{"amount":"250.00"}`,
		bank:    &bank{sent: map[pawl.OperationID]int{}, books: map[pawl.OperationID][]string{}},
	}
}

// wrongf notes that something is not as it must be.
func (w *world) wrongf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// state makes the provider's contract a stated one [E3].
func (w *world) state() { w.timings.Default.Provider = statedContract() }

func statedContract() pawl.ProviderContract {
	return pawl.ProviderContract{AtomicKeys: true, SameParameters: true, KeyRetention: 24 * time.Hour, ClockDifference: time.Second}
}

// instance is one process: a gate on a handle of its own.
type instance struct {
	*pawl.Gate
	handle *handle
}

// instance starts another process on the shared store.
func (w *world) instance(change ...func(*pawl.Config)) instance {
	w.t.Helper()
	h := w.handle()
	var store pawl.Store = h
	if w.store != nil {
		store = w.store(h)
	}
	cfg := &pawl.Config{Effects: []pawl.Effect{w.bank}, Timings: &w.timings, Jitter: func() float64 { return 0 }, Observer: w}
	for _, f := range change {
		f(cfg)
	}
	if w.config != nil {
		w.config(cfg)
	}
	if w.effect != nil {
		for i, e := range cfg.Effects {
			cfg.Effects[i] = w.effect(e)
		}
	}
	g, err := pawl.New(w.t.Context(), store, w, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.gates = append(w.gates, g)
	return instance{g, h}
}

// handle opens the shared store once more.
func (w *world) handle() *handle {
	w.t.Helper()
	s, err := memstore.Over(w.db, &memstore.Options{Timings: &w.timings})
	if err != nil {
		w.t.Fatal(err)
	}
	return &handle{Store: s, GrantBook: s}
}

// close ends every process.
func (w *world) close() {
	for _, g := range w.gates {
		if err := g.Close(); err != nil {
			w.wrongf("close: %v", err)
		}
	}
}

// Observe implements pawl.Observer.
func (w *world) Observe(ctx context.Context, e pawl.Event) {
	if w.events != nil {
		w.events(ctx, e)
	}
}

// Verify implements pawl.Verifier over the tokens that were signed here.
func (w *world) Verify(_ context.Context, token string) (pawl.Grant, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g, ok := w.tokens[token]; ok {
		return g, nil
	}
	return pawl.Grant{}, &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonSignature}
}

// issue writes a stored grant for ana.
func (w *world) issue() pawl.Grant {
	w.t.Helper()
	id := pawl.NewOperationID().String()
	got, err := w.handle().Issue(w.t.Context(), pawl.Issuance{
		RequestID: id, Form: pawl.FormStored, Issuer: "support", Subject: "ana", Tenant: "acme",
		Intent:   pawl.Intent{Kind: credit, Details: details(w.t, w.details)},
		Lifetime: 15 * time.Minute, GrantID: id,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Grant
}

// sign makes a token of a fresh grant for ana.
func (w *world) sign() (token string, g pawl.Grant) {
	w.t.Helper()
	g = w.issue() // for the store's times
	g.Form, g.Key.ID = pawl.FormToken, pawl.NewOperationID().String()
	token = "signed " + g.Key.ID
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens[token] = g
	return token, g
}

// request presents a fresh stored grant.
func (w *world) request() pawl.Request {
	w.t.Helper()
	return pawl.Request{
		Stored: w.issue().Key, OperationID: pawl.NewOperationID(), Kind: credit, Details: []byte(w.details), Caller: ana(),
	}
}

// op reads a record past every switch.
func (w *world) op(id pawl.OperationID) pawl.Operation {
	w.t.Helper()
	o, err := w.handle().Get(context.WithoutCancel(w.t.Context()), id, pawl.AsOperator())
	if err != nil {
		w.wrongf("operation %v: %v", id, err)
	}
	return o
}

// expect notes a record that is not in one of the statuses.
func (w *world) expect(id pawl.OperationID, want ...pawl.Status) pawl.Operation {
	w.t.Helper()
	o := w.op(id)
	if !slices.Contains(want, o.Status) {
		w.wrongf("operation %v is %v (%s), want %v", id, o.Status, o.Reason, want)
	}
	return o
}

// expectEffects notes a number of effects under one operation that is wrong.
func (w *world) expectEffects(id pawl.OperationID, want int) {
	w.t.Helper()
	if got := w.bank.effects(id); got != want {
		w.wrongf("the provider's books show %d effects, want %d", got, want)
	}
}

// admitted reports how many operations the store holds.
func (w *world) operations() int {
	page, err := w.handle().List(w.t.Context(), pawl.Filter{Limit: pawl.MaxPage})
	if err != nil {
		w.wrongf("list: %v", err)
	}
	return len(page.Operations)
}

// handle is one handle on the shared store, with switches on every call: before
// may stop it on the way there, after may lose its answer.
type handle struct {
	pawl.Store
	pawl.GrantBook
	before func(ctx context.Context, call string) error
	after  func(ctx context.Context, call string) error
}

func through[T any](ctx context.Context, h *handle, call string, f func() (T, error)) (none T, _ error) {
	if h.before != nil {
		if err := h.before(ctx, call); err != nil {
			return none, err
		}
	}
	v, err := f()
	if h.after != nil {
		if lost := h.after(ctx, call); lost != nil {
			return none, lost
		}
	}
	return v, err
}

func (h *handle) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	return through(ctx, h, "Admit", func() (pawl.Admitted, error) { return h.Store.Admit(ctx, a) })
}

func (h *handle) Reserve(ctx context.Context, r pawl.Reservation) (pawl.Admitted, error) {
	return through(ctx, h, "Reserve", func() (pawl.Admitted, error) { return h.Store.Reserve(ctx, r) })
}

func (h *handle) Get(ctx context.Context, id pawl.OperationID, as pawl.Viewer) (pawl.Operation, error) {
	return through(ctx, h, "Get", func() (pawl.Operation, error) { return h.Store.Get(ctx, id, as) })
}

func (h *handle) MaySubmit(ctx context.Context, id pawl.OperationID, t pawl.OwnerToken) (pawl.Permit, error) {
	return through(ctx, h, "MaySubmit", func() (pawl.Permit, error) { return h.Store.MaySubmit(ctx, id, t) })
}

func (h *handle) Renew(ctx context.Context, r pawl.Renewal) (pawl.Owner, error) {
	return through(ctx, h, "Renew", func() (pawl.Owner, error) { return h.Store.Renew(ctx, r) })
}

func (h *handle) Record(ctx context.Context, s pawl.Statement) (pawl.Operation, error) {
	return through(ctx, h, "Record", func() (pawl.Operation, error) { return h.Store.Record(ctx, s) })
}

func (h *handle) Settle(ctx context.Context, e pawl.Evidence) (pawl.Settlement, error) {
	return through(ctx, h, "Settle", func() (pawl.Settlement, error) { return h.Store.Settle(ctx, e) })
}

func (h *handle) TakeOver(ctx context.Context, t pawl.TakeOver) ([]pawl.TakenOver, error) {
	return through(ctx, h, "TakeOver", func() ([]pawl.TakenOver, error) { return h.Store.TakeOver(ctx, t) })
}

func (h *handle) Purge(ctx context.Context, b pawl.PurgeBatch) (pawl.PurgeReport, error) {
	return through(ctx, h, "Purge", func() (pawl.PurgeReport, error) { return h.Store.Purge(ctx, b) })
}

// on makes a switch for one call.
func on(name string, f func(ctx context.Context) error) func(context.Context, string) error {
	return func(ctx context.Context, call string) error {
		if call != name {
			return nil
		}
		return f(ctx)
	}
}

// away is a store that cannot be reached.
func away(class pawl.Class) error { return &pawl.Error{Class: class, Reason: pawl.ReasonUnreachable} }

// dead is a process that was killed: whatever it still asks is answered by
// nobody.
func dead(_ context.Context, call string) error {
	if call == "Admit" || call == "Reserve" {
		return away(pawl.ErrNotConfirmed)
	}
	return away(pawl.ErrUnavailable)
}

// bank is the provider. Unless it is atomic every call makes another effect, so
// that a call too many shows in the books.
type bank struct {
	mu     sync.Mutex
	atomic bool
	sent   map[pawl.OperationID]int      // create calls that arrived
	books  map[pawl.OperationID][]string // details of the effects made

	before func(ctx context.Context, s pawl.Submission) error                            // on the way in; an error stops the call
	after  func(ctx context.Context, s pawl.Submission, id string) (pawl.Outcome, error) // on the way back
	find   func(ctx context.Context, l pawl.Lookup) (pawl.Found, error)                  // nil: the books
}

// Kind implements pawl.Effect.
func (b *bank) Kind() pawl.Kind { return credit }

// Submit implements pawl.Effect.
func (b *bank) Submit(ctx context.Context, s pawl.Submission) (pawl.Outcome, error) {
	b.mu.Lock()
	b.sent[s.OperationID]++
	before, after := b.before, b.after
	b.mu.Unlock()
	if before != nil {
		if err := before(ctx, s); err != nil {
			return pawl.Outcome{}, err
		}
	}
	id := b.make(s)
	if after != nil {
		return after(ctx, s, id)
	}
	return pawl.Succeeded(id), nil
}

func (b *bank) make(s pawl.Submission) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.atomic || len(b.books[s.OperationID]) == 0 {
		b.books[s.OperationID] = append(b.books[s.OperationID], string(s.Details.JSON()))
	}
	return fmt.Sprintf("cr_%s_%d", s.IdempotencyKey, len(b.books[s.OperationID]))
}

// Find implements pawl.Finder.
func (b *bank) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	b.mu.Lock()
	find := b.find
	b.mu.Unlock()
	if find != nil {
		return find(ctx, l)
	}
	return b.look(l)
}

// look answers from the books.
func (b *bank) look(l pawl.Lookup) (pawl.Found, error) {
	b.mu.Lock()
	made := b.books[l.OperationID]
	b.mu.Unlock()
	if len(made) == 0 {
		return pawl.FoundNothing(), nil
	}
	d, err := pawl.ParseDetails([]byte(made[0]))
	return pawl.FoundEffect(d, pawl.Succeeded(fmt.Sprintf("cr_%s_1", l.Reference))), err
}

// plant makes an effect that nobody here asked for.
func (b *bank) plant(id pawl.OperationID, details string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.books[id] = append(b.books[id], details)
}

func (b *bank) effects(id pawl.OperationID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.books[id])
}

func (b *bank) calls(id pawl.OperationID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent[id]
}

// blind is an effect whose provider cannot be asked.
type blind struct{ pawl.Effect }

// bubble plays a scenario in a bubble of its own, where the process's clock,
// which is the store's, moves only when everything waits. It returns what was
// wrong; change may make something wrong beforehand.
func bubble(t *testing.T, change, play func(*world)) (wrong []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, time.Now)
		if change != nil {
			change(w)
		}
		play(w)
		w.close()
		wrong = w.wrong
	})
	return wrong
}

// play fails the test for everything that a scenario finds wrong.
func play(t *testing.T, scenario func(*world)) {
	t.Helper()
	for _, text := range bubble(t, nil, scenario) {
		t.Error(text)
	}
}

var (
	_ pawl.Finder   = (*bank)(nil)
	_ pawl.Observer = (*world)(nil)
	_ pawl.Verifier = (*world)(nil)
)
