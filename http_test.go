package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// hand is a clock that goes on when it is told to.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hand) read() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// town is a world whose provider is a real one, behind a socket.
type town struct {
	*world
	clock    *hand
	provider *billing.Provider
	client   *billing.Client
}

// billed is the effect as a program would write it.
type billed struct{ api *billing.Client }

type billedDetails struct {
	Account  string `json:"account"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

// Kind implements pawl.Effect.
func (billed) Kind() pawl.Kind { return credit }

// Submit implements pawl.Effect.
func (b billed) Submit(ctx context.Context, s pawl.Submission) (pawl.Outcome, error) {
	var d billedDetails
	if err := json.Unmarshal(s.Details.JSON(), &d); err != nil {
		return pawl.Outcome{}, err
	}
	id, err := b.api.Create(ctx, s.IdempotencyKey, d.Account, d.Amount, d.Currency)
	if declined, ok := errors.AsType[*billing.DeclinedError](err); ok {
		return pawl.Failed(declined.Code), nil
	}
	return pawl.Succeeded(id), err
}

// Find implements pawl.Finder.
func (b billed) Find(ctx context.Context, l pawl.Lookup) (pawl.Found, error) {
	got, found, err := b.api.Find(ctx, l.Reference)
	if err != nil || !found {
		return pawl.FoundNothing(), err
	}
	raw, err := json.Marshal(billedDetails{got.Account, got.Amount, got.Currency})
	if err != nil {
		return pawl.Found{}, err
	}
	d, err := pawl.ParseDetails(raw)
	return pawl.FoundEffect(d, pawl.Succeeded(got.ID)), err
}

// overHTTP plays a scenario with a provider behind a real socket, and returns
// what was wrong.
func overHTTP(t *testing.T, change func(*town), play func(*town)) []string {
	t.Helper()
	clock := &hand{now: time.Unix(1_800_000_000, 0)}
	provider, err := billing.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(provider)
	transport := &http.Transport{} // keeps connections alive, as a client does
	v := &town{
		world: newWorld(t, clock.read), clock: clock, provider: provider,
		client: &billing.Client{BaseURL: server.URL, HTTP: &http.Client{Transport: transport}},
	}
	v.details = `{"account":"A-1187","amount":"250.00","currency":"USD"}`
	v.config = func(c *pawl.Config) { c.Effects = []pawl.Effect{billed{v.client}} }
	if change != nil {
		change(v)
	}
	play(v)
	v.close()
	transport.CloseIdleConnections()
	if err := provider.Close(); err != nil {
		t.Error(err)
	}
	server.Close()
	return v.wrong
}

func playHTTP(t *testing.T, scenario func(*town)) {
	t.Helper()
	for _, text := range overHTTP(t, nil, scenario) {
		t.Error(text)
	}
}

// inject changes how the provider behaves.
func (v *town) inject(faults ...billing.Fault) {
	v.t.Helper()
	if err := v.provider.Apply(v.t.Context(), billing.Control{ClearFaults: true, Faults: faults}); err != nil {
		v.t.Fatal(err)
	}
}

func (v *town) settings(s billing.Settings) {
	v.t.Helper()
	if err := v.provider.Apply(v.t.Context(), billing.Control{Settings: &s}); err != nil {
		v.t.Fatal(err)
	}
}

// books notes books that show another number of create calls or credits.
func (v *town) wantBooks(id pawl.OperationID, requests, credits int) {
	v.t.Helper()
	got := v.provider.Books().Reference(id.String())
	if got.Requests != requests || got.Credits != credits {
		v.wrongf("the books show %d create calls and %d credits, want %d and %d", got.Requests, got.Credits, requests, credits)
	}
}

// recoverNow lets every lease end and recovers on an instance of its own.
func (v *town) recoverNow(want pawl.RecoveryReport) {
	v.t.Helper()
	v.clock.advance(time.Minute)
	v.wants(v.instance(), want)
}

// An instance is killed at each point of an operation: recovery settles it with
// one effect, and the record agrees with the books.
func TestCase_CD6_KilledEverywhere(t *testing.T) {
	for name, c := range map[string]struct {
		call   string
		after  bool
		faults []billing.Fault
		want   pawl.RecoveryReport
		calls  int
	}{
		"after admission":              {"Admit", true, nil, pawl.RecoveryReport{TakenOver: 1, Created: 1, Settled: 1}, 1},
		"after the submission check":   {"MaySubmit", true, nil, pawl.RecoveryReport{TakenOver: 1, Settled: 1}, 1},
		"after submit, reply lost":     {"MaySubmit", true, []billing.Fault{{Do: billing.LostAfter, Times: 1}}, pawl.RecoveryReport{TakenOver: 1, Settled: 1}, 1},
		"after submit, never arrived":  {"MaySubmit", true, []billing.Fault{{Do: billing.DropBefore, Times: 1}}, pawl.RecoveryReport{TakenOver: 1, Created: 1, Settled: 1}, 2},
		"after success, not recorded":  {"Record", false, nil, pawl.RecoveryReport{TakenOver: 1, Settled: 1}, 1},
		"after success, answer lost":   {"Record", true, nil, pawl.RecoveryReport{}, 1},
		"before the submission check ": {"MaySubmit", false, nil, pawl.RecoveryReport{TakenOver: 1, Created: 1, Settled: 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			playHTTP(t, func(v *town) {
				v.state()
				v.inject(c.faults...)
				a := v.instance()
				killed := false
				kill := on(c.call, func(ctx context.Context) error { killed = true; return nil })
				if c.after {
					a.handle.after = kill
				}
				a.handle.before = func(ctx context.Context, call string) error {
					if !c.after {
						_ = kill(ctx, call)
					}
					if killed {
						return dead(ctx, call)
					}
					return nil
				}
				r := v.request()
				if _, err := a.Execute(v.t.Context(), r); err != nil {
					v.wrongf("%v", err)
				}
				v.recoverNow(c.want)
				v.expect(r.OperationID, pawl.StatusSucceeded)
				v.wantBooks(r.OperationID, c.calls, 1)
			})
		})
	}
}

// The look-up finds nothing while the first call is in flight, at a provider
// without atomic keys: no create call, never failed; the first call's word still
// counts [E2, E3].
func nothingWhileInFlight(v *town) {
	v.settings(billing.Settings{Concurrency: billing.ConcurrencyRacy})
	v.inject(billing.Fault{HoldBefore: "door", Times: 1})
	a := v.instance()
	r := v.request()
	answer := make(chan pawl.Operation, 1)
	go func() {
		op, err := a.Execute(v.t.Context(), r)
		if err != nil {
			v.wrongf("%v", err)
		}
		answer <- op
	}()
	if err := v.provider.Await(v.t.Context(), "door", 1); err != nil {
		v.t.Fatal(err)
	}
	v.recoverNow(handedOver())
	v.expect(r.OperationID, pawl.StatusNeedsReconciliation)
	v.wantBooks(r.OperationID, 1, 0)
	v.provider.Release("door")
	if op := <-answer; op.Status != pawl.StatusSucceeded {
		v.wrongf("the first call's caller sees %v", op.Status)
	}
	v.expect(r.OperationID, pawl.StatusSucceeded)
	v.wantBooks(r.OperationID, 1, 1)
}

func TestCase_CD8_NothingWhileInFlight(t *testing.T) { playHTTP(t, nothingWhileInFlight) }

// The look-up finds the effect of another intent under the same key: conflict,
// never succeeded, and the caller never sees its result.
func anotherIntentAtTheProvider(v *town) {
	v.state()
	a := v.instance()
	r := v.request()
	a.handle.before = on("MaySubmit", func(context.Context) error { return away(pawl.ErrUnavailable) })
	if _, err := a.Execute(v.t.Context(), r); err != nil {
		v.wrongf("%v", err)
	}
	if _, err := v.client.Create(v.t.Context(), r.OperationID.String(), "A-1187", "999.00", "USD"); err != nil {
		v.t.Fatal(err)
	}
	v.recoverNow(pawl.RecoveryReport{TakenOver: 1, Conflicts: 1})
	if op := v.expect(r.OperationID, pawl.StatusConflict); op.Result != nil || !op.MismatchSeen {
		v.wrongf("result %q, mismatch seen %v", op.Result, op.MismatchSeen)
	}
	v.wantBooks(r.OperationID, 1, 1)
}

func TestCase_CD9_AnotherIntentAtTheProvider(t *testing.T) { playHTTP(t, anotherIntentAtTheProvider) }

// A provider that does not tell a defining field has told nothing [E2]; one whose
// look-up is broken, absent or unsupported neither. Past the submission deadline
// and all attempts the operation waits for a person, and nothing is created.
func TestCase_CD10_ProviderCannotSay(t *testing.T) {
	for name, look := range map[string]billing.Lookup{
		"a field is missing": {Omit: []string{"amount"}}, "broken": {Mode: billing.LookupBroken},
		"absent": {Mode: billing.LookupAbsent}, "unsupported": {Mode: billing.LookupUnsupported},
	} {
		t.Run(name, func(t *testing.T) { playHTTP(t, func(v *town) { cannotSay(v, look) }) })
	}
}

func cannotSay(v *town, look billing.Lookup) {
	v.state()
	v.timings.Default.MaxTakeovers = 2
	v.inject(billing.Fault{Do: billing.LostAfter, Times: 1})
	a := v.instance()
	r := v.request()
	if op, err := a.Execute(v.t.Context(), r); err != nil || op.Status != pawl.StatusUnknown {
		v.wrongf("%v, %v; want unknown", op.Status, err)
	}
	v.settings(billing.Settings{Lookup: look})
	v.recoverNow(pawl.RecoveryReport{TakenOver: 1, Paced: 1})
	v.clock.advance(time.Hour)
	v.recoverNow(handedOver())
	v.expect(r.OperationID, pawl.StatusNeedsReconciliation)
	v.wantBooks(r.OperationID, 1, 1)
}

// A credit that its provider shows late is not there yet and not failed: with
// everything stated another call is replayed, with one credit in the books.
func TestLookUpLagsBehind(t *testing.T) {
	playHTTP(t, func(v *town) {
		v.state()
		v.settings(billing.Settings{Lookup: billing.Lookup{Lag: time.Hour}})
		v.inject(billing.Fault{Do: billing.LostAfter, Reset: true, Times: 1})
		r := v.request()
		if op, err := v.instance().Execute(v.t.Context(), r); err != nil || op.Status != pawl.StatusUnknown {
			v.wrongf("%v, %v; want unknown", op.Status, err)
		}
		v.recoverNow(pawl.RecoveryReport{TakenOver: 1, Created: 1, Settled: 1})
		v.expect(r.OperationID, pawl.StatusSucceeded)
		v.wantBooks(r.OperationID, 2, 1)
	})
}

// A definite refusal by the provider: failed with its code, no credit, and no
// recovery after it [E1].
func TestCase_CD15_Declined(t *testing.T) {
	playHTTP(t, func(v *town) {
		v.state()
		v.inject(billing.Fault{Do: billing.Decline, Code: "account_closed"})
		g := v.instance()
		r := v.request()
		op, err := g.Execute(v.t.Context(), r)
		if err != nil || op.Status != pawl.StatusFailed || op.Reason != "account_closed" {
			v.wrongf("%v %q, %v", op.Status, op.Reason, err)
		}
		v.recoverNow(pawl.RecoveryReport{})
		v.wantBooks(r.OperationID, 1, 0)
	})
}

// The provider's connection drops after the request was written, under a client
// that keeps connections alive: one create call [E1].
func connectionDrops(v *town) {
	g := v.instance()
	if op, err := g.Execute(v.t.Context(), v.request()); err != nil || op.Status != pawl.StatusSucceeded {
		v.wrongf("the warm-up: %v, %v", op.Status, err) // now a connection is kept alive
	}
	for _, reset := range []bool{false, true} {
		v.inject(billing.Fault{Do: billing.LostAfter, Reset: reset, Times: 1})
		r := v.request()
		op, err := g.Execute(v.t.Context(), r)
		if err != nil || op.Status != pawl.StatusUnknown {
			v.wrongf("reset %v: %v, %v; want unknown", reset, op.Status, err)
		}
		v.wantBooks(r.OperationID, 1, 1)
		if op, err := g.Execute(v.t.Context(), v.request()); err != nil || op.Status != pawl.StatusSucceeded {
			v.wrongf("the next: %v, %v", op.Status, err)
		}
	}
}

func TestCase_CD18_ConnectionDrops(t *testing.T) { playHTTP(t, connectionDrops) }

// A late refusal arrives from the superseded owner while recovery's create call
// is in flight: deferred, and never failed while the other may succeed.
func lateRefusal(v *town) {
	v.state()
	v.settings(billing.Settings{Concurrency: billing.ConcurrencyRacy}) // it states more than it keeps
	v.inject(
		billing.Fault{Do: billing.Decline, Code: "limit", HoldAfter: "first", Times: 1},
		billing.Fault{HoldBefore: "second", Times: 1},
	)
	a, b := v.instance(), v.instance()
	r := v.request()
	first := make(chan pawl.Operation, 1)
	go func() {
		op, err := a.Execute(v.t.Context(), r)
		if err != nil {
			v.wrongf("%v", err)
		}
		first <- op
	}()
	if err := v.provider.Await(v.t.Context(), "first", 1); err != nil {
		v.t.Fatal(err)
	}
	if err := v.provider.Advance(48 * time.Hour); err != nil { // the key and its refusal are pruned
		v.t.Fatal(err)
	}
	v.clock.advance(time.Minute)
	recovered := make(chan struct{})
	go func() {
		defer close(recovered)
		v.wants(b, pawl.RecoveryReport{TakenOver: 1, Created: 1, Settled: 1})
	}()
	if err := v.provider.Await(v.t.Context(), "second", 1); err != nil {
		v.t.Fatal(err)
	}
	v.provider.Release("first")
	if op := <-first; op.Status == pawl.StatusFailed {
		v.wrongf("the superseded owner's caller hears failed while the other call may succeed")
	}
	if op := v.expect(r.OperationID, pawl.StatusAdmitted); op.Deferred == nil || op.Deferred.Reason != "limit" {
		v.wrongf("deferred: %+v", op.Deferred)
	}
	v.provider.Release("second")
	<-recovered
	v.expect(r.OperationID, pawl.StatusSucceeded)
	v.wantBooks(r.OperationID, 2, 1)
}

func TestCase_CD19_LateRefusal(t *testing.T) { playHTTP(t, lateRefusal) }
