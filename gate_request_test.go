package pawl_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memstore"
)

// tokenRequest presents a fresh token.
func (w *world) tokenRequest() pawl.Request {
	w.t.Helper()
	token, _ := w.sign()
	r := w.request()
	r.Stored, r.Token = pawl.GrantKey{}, token
	return r
}

// What is wrong with a request is said before the store is asked, writes nothing
// and spends nothing: the right request succeeds afterwards [A9].
func TestCase_CB4_WrongRequestsSpendNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*pawl.Request)
		class  pawl.Class
		reason pawl.Reason
	}{
		"no grant":         {func(r *pawl.Request) { r.Token = "" }, pawl.ErrInvalid, pawl.ReasonMissing},
		"two grants":       {func(r *pawl.Request) { r.Stored = pawl.GrantKey{Issuer: "i", ID: "g"} }, pawl.ErrInvalid, pawl.ReasonMalformed},
		"forged token":     {func(r *pawl.Request) { r.Token += "x" }, pawl.ErrRefused, pawl.ReasonSignature},
		"nil operation id": {func(r *pawl.Request) { r.OperationID = pawl.OperationID{} }, pawl.ErrInvalid, pawl.ReasonReservedID},
		"a reservation's id [B2]": {
			func(r *pawl.Request) { r.OperationID = pawl.ReservationID(pawl.ScopePrincipal, ana(), "k") }, pawl.ErrInvalid, pawl.ReasonReservedID,
		},
		"a sealed id nobody opens": {func(r *pawl.Request) { r.SealedOperationID = "x" }, pawl.ErrInvalid, pawl.ReasonMalformed},
		"unknown kind":             {func(r *pawl.Request) { r.Kind = "credit.void" }, pawl.ErrRefused, pawl.ReasonKindUnknown},
		"malformed kind":           {func(r *pawl.Request) { r.Kind = "Credit" }, pawl.ErrInvalid, pawl.ReasonMalformed},
		"no kind":                  {func(r *pawl.Request) { r.Kind = "" }, pawl.ErrInvalid, pawl.ReasonMissing},
		"no details":               {func(r *pawl.Request) { r.Details = nil }, pawl.ErrInvalid, pawl.ReasonDetails},
		"details twice":            {func(r *pawl.Request) { r.Details = []byte(`{"amount":"1","amount":"250.00"}`) }, pawl.ErrInvalid, pawl.ReasonDetails},
		"other amount":             {func(r *pawl.Request) { r.Details = []byte(`{"amount":"999.00"}`) }, pawl.ErrRefused, pawl.ReasonIntent},
		"other principal":          {func(r *pawl.Request) { r.Caller.Principal = "bob" }, pawl.ErrRefused, pawl.ReasonSubject},
		"other tenant":             {func(r *pawl.Request) { r.Caller.Tenant = "globex" }, pawl.ErrRefused, pawl.ReasonSubject},
		"no principal":             {func(r *pawl.Request) { r.Caller.Principal = "" }, pawl.ErrInvalid, pawl.ReasonMissing},
		"control character":        {func(r *pawl.Request) { r.Caller.Principal = "a\nb" }, pawl.ErrInvalid, pawl.ReasonMalformed},
		"no generation":            {func(r *pawl.Request) { r.Caller.Generation = "" }, pawl.ErrInvalid, pawl.ReasonGenerationEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				g := w.instance(func(c *pawl.Config) { c.RequireGeneration = true })
				asked := false
				g.handle.before = on("Admit", func(context.Context) error { asked = true; return nil })
				right := w.tokenRequest()
				wrong := right
				c.change(&wrong)
				op, err := g.Execute(w.t.Context(), wrong)
				w.refusedWith("Execute", err, c.class, c.reason)
				if op.ID != (pawl.OperationID{}) || asked || w.operations() != 0 {
					w.wrongf("the answer holds %v, the store was asked: %v, it holds %d operations", op.ID, asked, w.operations())
				}
				if _, err := g.Admit(w.t.Context(), wrong); err == nil {
					w.wrongf("Admit admits it")
				}
				if op, err := g.Execute(w.t.Context(), right); err != nil || op.Status != pawl.StatusSucceeded {
					w.wrongf("the right request: %v, %v", op.Status, err)
				}
			})
		})
	}
}

// Another caller's and another intent's request for a stored grant is refused in
// the store's own statement, and spends nothing either [A2, A9].
func TestStoredGrantForAnother(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance()
		right := w.request()
		for name, change := range map[string]func(*pawl.Request){
			"principal": func(r *pawl.Request) { r.Caller.Principal = "bob" },
			"amount":    func(r *pawl.Request) { r.Details = []byte(`{"amount":"999.00"}`) },
			"grant id":  func(r *pawl.Request) { r.Stored.ID += "x" },
			"namespace": func(r *pawl.Request) { r.Stored.Namespace = "globex" },
		} {
			wrong := right
			change(&wrong)
			if _, err := g.Execute(w.t.Context(), wrong); !errors.Is(err, pawl.ErrRefused) {
				w.wrongf("another %s: %v, want refused", name, err)
			}
		}
		if op, err := g.Execute(w.t.Context(), right); err != nil || op.Status != pawl.StatusSucceeded {
			w.wrongf("the right request: %v, %v", op.Status, err)
		}
	})
}

// The caller mutates its slices after the call began: fingerprint and stored
// details are those at the call.
func TestCase_CB13_CallerMutatesTheRequest(t *testing.T) {
	play(t, func(w *world) {
		r := w.request()
		g := w.instance(func(c *pawl.Config) {
			c.Effects = []pawl.Effect{checked{w.bank, func(context.Context, pawl.Proposal) error {
				copy(r.Details, `{"amount":"999.00"}`) // after the call began, before the admission
				r.Caller.Scopes[0] = "admin"
				return nil
			}}}
		})
		op, err := g.Execute(w.t.Context(), r)
		if err != nil || string(op.Intent.Details.JSON()) != `{"amount":"250.00"}` || op.Caller.Scopes[0] != "credit" {
			w.wrongf("%v, %s for %v", err, op.Intent.Details.JSON(), op.Caller.Scopes)
		}
		if got := w.bank.books[r.OperationID]; len(got) != 1 || got[0] != `{"amount":"250.00"}` {
			w.wrongf("what ran is %v", got)
		}
	})
}

// Logging in again moves the generation on: the same operation id is refused for
// the new one, and the status still answers [M5].
func TestCase_CB14_GenerationMovesOn(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance()
		r := w.request()
		if _, err := g.Execute(w.t.Context(), r); err != nil {
			w.wrongf("%v", err)
		}
		r.Caller.Generation = "8"
		_, err := g.Execute(w.t.Context(), r)
		w.refusedWith("the new generation", err, pawl.ErrRefused, pawl.ReasonOperationTaken)
		if op, err := g.Status(w.t.Context(), r.OperationID, pawl.AsCaller(r.Caller), 0); err != nil || op.Status != pawl.StatusSucceeded {
			w.wrongf("the status: %v, %v", op.Status, err)
		}
		w.expectEffects(r.OperationID, 1)
	})
}

// With a matcher what was granted runs, never what was asked, for both forms of
// a grant; without one nothing but the same runs.
func TestMatcher(t *testing.T) {
	upTo := func(granted, asked pawl.Details) bool { return string(asked.JSON()) <= string(granted.JSON()) }
	for _, form := range []string{"token", "stored"} {
		t.Run(form, func(t *testing.T) {
			play(t, func(w *world) {
				g := w.instance(func(c *pawl.Config) { c.Matchers = map[pawl.Kind]pawl.Matcher{credit: upTo} })
				r := w.request()
				if form == "token" {
					r = w.tokenRequest()
				}
				r.Details = []byte(`{"amount":"300.00"}`)
				_, err := g.Execute(w.t.Context(), r)
				w.refusedWith("more than granted", err, pawl.ErrRefused, pawl.ReasonIntent)
				stranger := r
				stranger.Caller.Principal, stranger.Details = "bob", []byte(`{"amount":"200.00"}`)
				_, err = g.Execute(w.t.Context(), stranger)
				w.refusedWith("for another", err, pawl.ErrRefused, pawl.ReasonSubject)
				r.Details = []byte(`{"amount":"200.00"}`)
				op, err := g.Execute(w.t.Context(), r)
				if err != nil || op.Status != pawl.StatusSucceeded || string(op.Intent.Details.JSON()) != `{"amount":"250.00"}` {
					w.wrongf("less than granted: %v, %s, %v; want the granted intent performed", op.Status, op.Intent.Details.JSON(), err)
				}
				if got := w.bank.books[r.OperationID]; len(got) != 1 || got[0] != `{"amount":"250.00"}` {
					w.wrongf("what ran is %v, want what was granted", got)
				}
				r.Details = []byte(`{"amount":"100.00"}`)
				if again, err := g.Execute(w.t.Context(), r); err != nil || again.ID != op.ID {
					w.wrongf("again, asking for less: %v, %v; want the operation", again.ID, err)
				}
				unknown := r
				unknown.Token, unknown.Stored = "", pawl.GrantKey{Issuer: "support", ID: "none"}
				_, err = g.Execute(w.t.Context(), unknown)
				w.refusedWith("no such grant", err, pawl.ErrRefused, pawl.ReasonGrantUnknown)
			})
		})
	}
}

// sealer opens ids that end in the grant's id.
type sealer struct{}

// Open implements pawl.IDSealer.
func (sealer) Open(sealed string, key pawl.GrantKey) (pawl.OperationID, error) {
	id, grant, _ := strings.Cut(sealed, "|")
	if grant != key.ID {
		return pawl.OperationID{}, errors.New("not sealed for this grant")
	}
	return pawl.ParseOperationID(id)
}

// Where ids are sealed, an id that the issuer did not seal for this very grant is
// refused before admission.
func TestSealedIDs(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance(func(c *pawl.Config) { c.SealedIDs = sealer{} })
		r := w.request()
		id := r.OperationID
		for name, c := range map[string]struct {
			sealed string
			id     pawl.OperationID
			class  pawl.Class
			reason pawl.Reason
		}{
			"made up":         {"", id, pawl.ErrInvalid, pawl.ReasonMissing},
			"of another":      {id.String() + "|g-2", pawl.OperationID{}, pawl.ErrRefused, pawl.ReasonSealedID},
			"garbage":         {"x|" + r.Stored.ID, pawl.OperationID{}, pawl.ErrRefused, pawl.ReasonSealedID},
			"beside another":  {id.String() + "|" + r.Stored.ID, pawl.NewOperationID(), pawl.ErrRefused, pawl.ReasonSealedID},
			"the nil UUID":    {"00000000-0000-0000-0000-000000000000|" + r.Stored.ID, pawl.OperationID{}, pawl.ErrRefused, pawl.ReasonSealedID},
			"of a version 8 ": {pawl.ReservationID(0, ana(), "k").String() + "|" + r.Stored.ID, pawl.OperationID{}, pawl.ErrInvalid, pawl.ReasonReservedID},
		} {
			wrong := r
			wrong.SealedOperationID, wrong.OperationID = c.sealed, c.id
			_, err := g.Execute(w.t.Context(), wrong)
			w.refusedWith(name, err, c.class, c.reason)
		}
		r.SealedOperationID, r.OperationID = id.String()+"|"+r.Stored.ID, pawl.OperationID{}
		if op, err := g.Execute(w.t.Context(), r); err != nil || op.ID != id || op.Status != pawl.StatusSucceeded {
			w.wrongf("the issuer's id: %v %v, %v", op.ID, op.Status, err)
		}
		if w.operations() != 1 {
			w.wrongf("%d operations, want 1", w.operations())
		}
	})
}

// A predictable refusal spends nothing; a check that cannot be made admits
// nothing; neither hides an operation that was admitted before [E4, A8].
func TestPrecheck(t *testing.T) {
	closed := errors.New("account closed")
	var says error
	play(t, func(w *world) {
		g := w.instance(func(c *pawl.Config) {
			c.Effects = []pawl.Effect{checked{w.bank, func(_ context.Context, p pawl.Proposal) error {
				if p.Kind != credit || string(p.Details.JSON()) != `{"amount":"250.00"}` || p.Caller.Principal != "ana" {
					w.wrongf("asked about %v for %v", p.Kind, p.Caller)
				}
				return says
			}}}
		})
		r := w.request()
		says = closed
		_, err := g.Execute(w.t.Context(), r)
		w.refusedWith("refused", err, pawl.ErrRefused, pawl.ReasonPrecheck)
		if !errors.Is(err, closed) || strings.Contains(err.Error(), "account") {
			w.wrongf("%v: want the effect's error as the cause, and not in the text", err)
		}
		for name, cannot := range map[string]error{"unavailable": away(pawl.ErrUnavailable), "timeout": context.DeadlineExceeded} {
			says = cannot
			_, err = g.Execute(w.t.Context(), r)
			if !errors.Is(err, pawl.ErrNotConfirmed) {
				w.wrongf("%s: %v, want not confirmed", name, err)
			}
		}
		if _, err := g.Admit(w.t.Context(), r); !errors.Is(err, pawl.ErrNotConfirmed) || w.operations() != 0 {
			w.wrongf("Admit: %v, %d operations", err, w.operations())
		}
		says = nil
		if op, err := g.Execute(w.t.Context(), r); err != nil || op.Status != pawl.StatusSucceeded {
			w.wrongf("permitted: %v, %v", op.Status, err)
		}
		says = closed
		if op, err := g.Execute(w.t.Context(), r); err != nil || op.Status != pawl.StatusSucceeded {
			w.wrongf("the retry after it: %v, %v; want the operation", op.Status, err)
		}
		key := pawl.ReservedRequest{Key: "k", Kind: credit, Details: r.Details, Caller: ana()}
		_, err = g.ExecuteReserved(w.t.Context(), key)
		w.refusedWith("a reservation", err, pawl.ErrRefused, pawl.ReasonPrecheck)
		w.expectEffects(r.OperationID, 1)
	})
}

// A store's answer admits only what it says in full: an answer about nothing,
// about another operation, or without an owner is a defect and runs nothing [A6].
func TestStoresAnswerIsNotBelievedBlindly(t *testing.T) {
	for name, change := range map[string]func(*pawl.Admitted){
		"nothing":        func(a *pawl.Admitted) { *a = pawl.Admitted{} },
		"fresh nothing":  func(a *pawl.Admitted) { *a = pawl.Admitted{Fresh: true} },
		"another id":     func(a *pawl.Admitted) { a.Operation.ID = pawl.NewOperationID() },
		"another lock":   func(a *pawl.Admitted) { a.Operation.Lock.Binding[0]++ },
		"no token":       func(a *pawl.Admitted) { a.Owner.Token = "" },
		"no fence":       func(a *pawl.Admitted) { a.Owner.Fence = 0 },
		"settled before": func(a *pawl.Admitted) { a.Operation.Status = pawl.StatusSucceeded },
	} {
		play(t, func(w *world) {
			w.store = func(h *handle) pawl.Store { return lying{h, change} }
			alarms := 0
			w.events = func(_ context.Context, e pawl.Event) {
				if e.Type == pawl.EventDefect {
					alarms++
				}
			}
			g := w.instance()
			r := w.request()
			op, err := g.Execute(w.t.Context(), r)
			if _, classed := pawl.Row(err); err == nil || classed || op.ID != (pawl.OperationID{}) || alarms != 1 {
				w.wrongf("%s: %v, %v, %d alarms; want a defect and one alarm", name, op.ID, err, alarms)
			}
			w.expectEffects(r.OperationID, 0)
		})
	}
}

// A permit that grants nothing, or another owner something, permits nothing [O5].
func TestPermitIsNotBelievedBlindly(t *testing.T) {
	for name, permit := range map[string]pawl.Permit{
		"zero": {}, "without a fence": {Granted: true}, "another owner's": {Granted: true, Fence: 2}, "refused": {Fence: 1},
	} {
		play(t, func(w *world) {
			w.store = func(h *handle) pawl.Store { return permitting{h, permit} }
			r := w.request()
			if op, err := w.instance().Execute(w.t.Context(), r); err != nil || op.Status != pawl.StatusAdmitted {
				w.wrongf("%s: %v, %v; want pending", name, op.Status, err)
			}
			if n := w.bank.calls(r.OperationID); n != 0 {
				w.wrongf("%s: %d create calls", name, n)
			}
		})
	}
}

// An owner that was not told its times, or whose time was over when it was told,
// has none: nothing is sent [O5].
func TestOwnerWithoutTimesSendsNothing(t *testing.T) {
	for name, change := range map[string]func(*pawl.Admitted){
		"no time of the answer": func(a *pawl.Admitted) { a.Owner.AsOf = time.Time{} },
		"no lease":              func(a *pawl.Admitted) { a.Owner.LeaseUntil = time.Time{} },
		"no deadline":           func(a *pawl.Admitted) { a.Owner.SubmitBy = time.Time{} },
		"not the owner":         func(a *pawl.Admitted) { a.Fresh = false }, // reported, whatever else it says [A8]
		"lease over":            func(a *pawl.Admitted) { a.Owner.LeaseUntil = a.Owner.AsOf },
		"deadline over":         func(a *pawl.Admitted) { a.Owner.SubmitBy = a.Owner.AsOf },
	} {
		play(t, func(w *world) {
			w.store = func(h *handle) pawl.Store { return lying{h, change} }
			r := w.request()
			if op, err := w.instance().Execute(w.t.Context(), r); err != nil || op.Status != pawl.StatusAdmitted {
				w.wrongf("%s: %v, %v; want pending", name, op.Status, err)
			}
			if n := w.bank.calls(r.OperationID); n != 0 {
				w.wrongf("%s: %d create calls", name, n)
			}
		})
	}
}

// permitting is a store with one answer to every submission check.
type permitting struct {
	*handle
	permit pawl.Permit
}

func (p permitting) MaySubmit(context.Context, pawl.OperationID, pawl.OwnerToken) (pawl.Permit, error) {
	return p.permit, nil
}

// lying is a store whose answers to an admission are changed.
type lying struct {
	*handle
	change func(*pawl.Admitted)
}

func (l lying) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	got, err := l.handle.Admit(ctx, a)
	l.change(&got)
	return got, err
}

// A gate refuses to start on what is unsafe, and names everything at once [T1, A11].
func TestCase_CD17_RefusesToStart(t *testing.T) {
	store, err := memstore.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	e := &bank{}
	timings, policy, leeway := pawl.DefaultTimings(), pawl.DefaultTimings(), pawl.DefaultTimings()
	timings.Default.EffectTimeout, timings.Default.RecoveryLease = time.Hour, time.Second
	policy.PurgeMargin, policy.IssueSkew = time.Hour, 0
	leeway.Leeways["v2"] = time.Minute
	for name, c := range map[string]struct {
		cfg  pawl.Config
		want []string
	}{
		"several timings": {pawl.Config{Timings: &timings}, []string{
			"EffectTimeout < ExecutionLease - LeaseMargin: 1h0m0s < 28s", "ExecutionLease >= ", "RecoveryLease >= ", ": 1s >= ",
		}},
		"the store's policy": {pawl.Config{Timings: &policy}, []string{
			"PurgeMargin is 30s in the store and 1h0m0s here", "IssueSkew is 5s in the store and 0s here",
		}},
		"a leeway version":    {pawl.Config{Timings: &leeway}, []string{"leeway policy v2 is not in the store"}},
		"two effects":         {pawl.Config{Effects: []pawl.Effect{e, e}}, []string{"two effects are of kind credit.create"}},
		"no effect":           {pawl.Config{Effects: []pawl.Effect{nil}}, []string{"an effect is nil"}},
		"no kind":             {pawl.Config{Effects: []pawl.Effect{kindless{e}}}, []string{"an effect's kind is malformed"}},
		"a nil matcher":       {pawl.Config{Matchers: map[pawl.Kind]pawl.Matcher{credit: nil}}, []string{"a matcher is nil"}},
		"workers":             {pawl.Config{Workers: -1}, []string{"Workers is not"}},
		"durations":           {pawl.Config{Grace: -1}, []string{"Grace is negative"}},
		"a name":              {pawl.Config{Name: "a\x00"}, []string{"Name is no identifier"}},
		"everything together": {pawl.Config{Timings: &timings, Workers: -1, Effects: []pawl.Effect{nil}}, []string{"1h0m0s < 28s", "Workers", "effect is nil"}},
	} {
		g, err := pawl.New(t.Context(), store, nil, &c.cfg)
		if g != nil || !errors.Is(err, pawl.ErrMisconfigured) {
			t.Errorf("%s: %v, want misconfigured", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error does not say %q: %v", name, want, err)
			}
		}
	}
	if _, err := pawl.New(t.Context(), nil, nil, nil); !errors.Is(err, pawl.ErrMisconfigured) {
		t.Errorf("no store: %v, want misconfigured", err)
	}
}

// kindless is an effect of no kind.
type kindless struct{ pawl.Effect }

// Kind implements pawl.Effect.
func (kindless) Kind() pawl.Kind { return "" }

// A store that cannot be asked, is unsafe or says nothing of itself has no gate:
// there is no fallback [A6, A1].
func TestCase_CA7_NoGateWithoutItsStore(t *testing.T) {
	for name, c := range map[string]struct {
		facts pawl.Facts
		err   error
		want  pawl.Class
	}{
		"unreachable": {pawl.Facts{}, away(pawl.ErrUnavailable), pawl.ErrUnavailable},
		"no scope":    {pawl.Facts{Policy: pawl.DefaultTimings().Policy()}, nil, pawl.ErrMisconfigured},
		"unsafe": {pawl.Facts{
			Scope: pawl.ScopeHost, Policy: pawl.DefaultTimings().Policy(),
			Checks: []pawl.Fact{{Name: "fsync", Value: "off", Unsafe: true, Fix: "turn it on"}},
		}, nil, pawl.ErrMisconfigured},
		"no policy": {pawl.Facts{Scope: pawl.ScopeHost}, nil, pawl.ErrMisconfigured},
	} {
		if g, err := pawl.New(t.Context(), factual{facts: c.facts, err: c.err}, nil, nil); g != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// factual is a store of which only the facts are known.
type factual struct {
	pawl.Store
	facts pawl.Facts
	err   error
}

func (f factual) Check(context.Context) (pawl.Facts, error) { return f.facts, f.err }

// Matchers need the granted intent of a stored grant.
func TestMatchersNeedAGrantBook(t *testing.T) {
	facts := pawl.Facts{Scope: pawl.ScopeHost, Policy: pawl.DefaultTimings().Policy()}
	all := func(pawl.Details, pawl.Details) bool { return true }
	_, err := pawl.New(t.Context(), factual{facts: facts}, nil, &pawl.Config{Matchers: map[pawl.Kind]pawl.Matcher{credit: all}})
	if !errors.Is(err, pawl.ErrMisconfigured) || !strings.Contains(err.Error(), "GrantBook") {
		t.Errorf("%v, want misconfigured for want of a GrantBook", err)
	}
}

// A verifier that cannot tell is no refusal, and one that tells half is none
// either [A6, A9].
func TestVerifiersTrouble(t *testing.T) {
	play(t, func(w *world) {
		var grant pawl.Grant
		var says error
		v := verifier(func() (pawl.Grant, error) { return grant, says })
		g, err := pawl.New(w.t.Context(), w.handle(), v, &pawl.Config{Effects: []pawl.Effect{w.bank}})
		if err != nil {
			w.t.Fatal(err)
		}
		r := w.request()
		r.Stored, r.Token = pawl.GrantKey{}, "x"
		says = away(pawl.ErrUnavailable)
		_, err = g.Execute(w.t.Context(), r)
		w.refusedWith("a key set that is away", err, pawl.ErrNotConfirmed, pawl.ReasonUnreachable)
		if errors.Is(err, pawl.ErrUnavailable) {
			w.wrongf("one error is of two classes: %v", err)
		}
		says = nil
		if _, err = g.Execute(w.t.Context(), r); err == nil {
			w.wrongf("the zero grant was admitted")
		}
		grant = w.issue()
		grant.ExpiresAt, grant.Form = time.Time{}, pawl.FormToken
		_, err = g.Execute(w.t.Context(), r)
		w.refusedWith("a grant without expiry", err, pawl.ErrInvalid, pawl.ReasonMissing)
		none, err := pawl.New(w.t.Context(), w.handle(), nil, &pawl.Config{Effects: []pawl.Effect{w.bank}})
		if err != nil {
			w.t.Fatal(err)
		}
		_, err = none.Execute(w.t.Context(), r)
		w.refusedWith("no verifier", err, pawl.ErrRefused, pawl.ReasonIssuerUnknown)
		if w.operations() != 0 {
			w.wrongf("%d operations", w.operations())
		}
	})
}

type verifier func() (pawl.Grant, error)

// Verify implements pawl.Verifier.
func (v verifier) Verify(context.Context, string) (pawl.Grant, error) { return v() }

// Nothing secret is logged by a gate, whatever happens to it [S2].
func TestGateLogsNothingSecret(t *testing.T) {
	play(t, func(w *world) {
		var log strings.Builder
		const secret = "s3cret"
		logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		g := w.instance(func(c *pawl.Config) { c.Logger = logger })
		for _, answer := range []func(context.Context, pawl.Submission, string) (pawl.Outcome, error){
			func(context.Context, pawl.Submission, string) (pawl.Outcome, error) {
				return pawl.Succeeded(secret), nil
			},
			func(context.Context, pawl.Submission, string) (pawl.Outcome, error) { return pawl.Failed(secret), nil },
			func(context.Context, pawl.Submission, string) (pawl.Outcome, error) {
				return pawl.Outcome{}, errors.New(secret)
			},
			func(context.Context, pawl.Submission, string) (pawl.Outcome, error) { panic(secret) },
		} {
			w.bank.after = answer
			r := w.tokenRequest()
			w.mu.Lock()
			w.tokens[secret] = w.tokens[r.Token]
			w.mu.Unlock()
			r.Token = secret
			if _, err := g.Execute(w.t.Context(), r); err != nil {
				w.wrongf("%v", err)
			}
		}
		g.handle.before = on("Admit", func(context.Context) error { return errors.New(secret) }) // a defect
		if _, err := g.Execute(w.t.Context(), w.request()); err == nil {
			w.wrongf("a defect was swallowed")
		}
		text := log.String()
		if strings.Contains(text, secret) || strings.Contains(text, "250.00") || !strings.Contains(text, `"level":"ERROR","msg":"pawl: defect"`) {
			w.wrongf("the log says:\n%s", text)
		}
	})
}
