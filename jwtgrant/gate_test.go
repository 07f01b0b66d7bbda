package jwtgrant_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
	"github.com/pawl-go/pawl/memstore"
)

// boundary is a gate on a store whose clock stands still, with the verifier under
// test in front.
type boundary struct {
	gate  *pawl.Gate
	store *memstore.Store
}

// newBoundary starts at now, from which a store's clock never goes back.
func newBoundary(t testing.TB, v pawl.Verifier, sealed pawl.IDSealer, now time.Time) boundary {
	t.Helper()
	store, err := memstore.New(&memstore.Options{Realm: realm, Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := pawl.New(t.Context(), store, v, &pawl.Config{SealedIDs: sealed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(gate.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return boundary{gate: gate, store: store}
}

// request is the one that credit permits.
func request(token string) pawl.Request {
	return pawl.Request{
		Token: token, OperationID: pawl.NewOperationID(), Kind: "credit.create",
		Details: []byte(`{"amount":"250.00","account":"c-17"}`),
		Caller:  pawl.Caller{Authority: "https://login.example", Principal: "alice", Tenant: "acme", Generation: "1"},
	}
}

func (b boundary) operations(t *testing.T) int {
	t.Helper()
	page, err := b.store.List(t.Context(), pawl.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Operations)
}

func (b boundary) wantAdmitted(t *testing.T, r pawl.Request) {
	t.Helper()
	got, err := b.gate.Admit(t.Context(), r)
	if err != nil || !got.Fresh {
		t.Errorf("got fresh %v, error %v, want admitted", got.Fresh, err)
	}
}

// wantNothing fails unless the request is refused and nothing is written [A9].
func (b boundary) wantNothing(t *testing.T, r pawl.Request, class pawl.Class, reason pawl.Reason) {
	t.Helper()
	before := b.operations(t)
	got, err := b.gate.Admit(t.Context(), r)
	if !errors.Is(err, class) || pawl.ReasonOf(err) != reason || got.Fresh {
		t.Errorf("got fresh %v, error %v, want class %v with reason %s", got.Fresh, err, class, reason)
	}
	if after := b.operations(t); after != before {
		t.Errorf("a refused request wrote %d operations", after-before)
	}
}

// signedCredit is the credit with changes, signed by a key that the boundary's
// verifier trusts.
func signedCredit(t *testing.T, k jwtgrant.SigningKey, change func(*pawl.Grant)) string {
	t.Helper()
	g := credit(t)
	g.LeewayPolicy, g.NotBefore = "", time.Time{} // the defaults of the store
	if change != nil {
		change(&g)
	}
	token, err := newIssuer(t, k, nil).Sign(g)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestCase_CB3_ForgedInAVictimsName(t *testing.T) {
	k := newKey(t, jwtgrant.EdDSA)
	b := newBoundary(t, trusting(t, k.Public()), nil, noon())
	victim := signedCredit(t, k, nil)
	thief, err := jwtgrant.NewSigningKey(k.ID(), edKey(66), jwtgrant.EdDSA) // a key of its own under the id of the issuer's
	if err != nil {
		t.Fatal(err)
	}
	b.wantNothing(t, request(signedCredit(t, thief, nil)), refused, pawl.ReasonSignature)
	b.wantAdmitted(t, request(victim))
}

func TestCase_CB4_WrongThenRight(t *testing.T) {
	k := newKey(t, jwtgrant.EdDSA)
	b := newBoundary(t, trusting(t, k.Public()), nil, noon())
	right := request(signedCredit(t, k, nil))
	wrong := func(change func(*pawl.Request)) pawl.Request {
		r := right
		change(&r)
		return r
	}
	b.wantNothing(t, wrong(func(r *pawl.Request) { r.Details = []byte(`{"amount":"251.00","account":"c-17"}`) }), refused, pawl.ReasonIntent)
	b.wantNothing(t, wrong(func(r *pawl.Request) { r.Details = []byte(`{"amount":"250.00","account":"c-18"}`) }), refused, pawl.ReasonIntent)
	b.wantNothing(t, wrong(func(r *pawl.Request) { r.Details = []byte(`{"amount":250.00,"account":"c-17"}`) }), refused, pawl.ReasonIntent)
	b.wantNothing(t, wrong(func(r *pawl.Request) { r.Kind = "credit.delete" }), refused, pawl.ReasonIntent)
	b.wantNothing(t, wrong(func(r *pawl.Request) { r.Caller.Principal = "mallory" }), refused, pawl.ReasonSubject)
	b.wantNothing(t, wrong(func(r *pawl.Request) { r.Caller.Tenant = "" }), refused, pawl.ReasonSubject)
	b.wantNothing(t, wrong(func(r *pawl.Request) { r.Caller.Tenant = "globex" }), refused, pawl.ReasonSubject)
	b.wantNothing(t, wrong(func(r *pawl.Request) { r.Caller.Authority = "https://evil.example" }), refused, pawl.ReasonSubject)
	b.wantNothing(t, wrong(func(r *pawl.Request) { r.Details = []byte(`[]`) }), invalid, pawl.ReasonDetails)
	b.wantAdmitted(t, right)
	b.wantNothing(t, wrong(func(r *pawl.Request) { r.OperationID = pawl.NewOperationID() }), refused, pawl.ReasonUsed)
}

// TestCase_CB8_TheStoreDecides has tokens at the edges of their time. The filter
// accepts them all; the store's clock decides [A4].
func TestCase_CB8_TheStoreDecides(t *testing.T) {
	k := newKey(t, jwtgrant.EdDSA)
	v := trusting(t, k.Public())
	const leeway, skew = 5 * time.Second, 5 * time.Second
	expiry, issued := credit(t).ExpiresAt, credit(t).IssuedAt
	for name, row := range map[string]struct {
		now    time.Time
		reason pawl.Reason // empty: admitted
	}{
		"C-B8 expired 4 s ago":             {expiry.Add(4 * time.Second), ""},
		"C-B8 a microsecond left":          {expiry.Add(leeway - time.Microsecond), ""},
		"C-B8 exactly at the boundary":     {expiry.Add(leeway), pawl.ReasonExpired},
		"C-B8 expired 6 s ago":             {expiry.Add(6 * time.Second), pawl.ReasonExpired},
		"C-B7 issued 4 s from now":         {issued.Add(-4 * time.Second), ""},
		"C-B7 issued beyond the skew":      {issued.Add(-skew - time.Second), pawl.ReasonNotYetValid},
		"a process clock a year off":       {noon(), ""},
		"issued a day ago, long after all": {expiry.Add(24 * time.Hour), pawl.ReasonExpired},
	} {
		t.Run(name, func(t *testing.T) {
			token := signedCredit(t, k, nil)
			if _, err := v.Verify(t.Context(), token); err != nil {
				t.Errorf("the filter is stricter than the store: %v", err)
			}
			b := newBoundary(t, v, nil, row.now)
			if row.reason != "" {
				b.wantNothing(t, request(token), refused, row.reason)
				return
			}
			b.wantAdmitted(t, request(token))
			b.wantNothing(t, request(token), refused, pawl.ReasonUsed)
		})
	}
}

func TestCase_CB14_AnotherGeneration(t *testing.T) {
	k := newKey(t, jwtgrant.EdDSA)
	b := newBoundary(t, trusting(t, k.Public()), nil, noon())
	first := request(signedCredit(t, k, nil))
	b.wantAdmitted(t, first)
	again := first
	again.Caller.Generation = "2"
	b.wantNothing(t, again, refused, pawl.ReasonOperationTaken)
	if op, err := b.gate.Status(t.Context(), first.OperationID, pawl.AsCaller(again.Caller), 0); err != nil || op.ID != first.OperationID {
		t.Errorf("the status after another login: %v, error %v", op.ID, err)
	}
}

// TestCase_CB16_NobodyCanTell has the key set away and nothing known of the key:
// nothing runs, the grant is unspent, and the answer is to try again [A6].
func TestCase_CB16_NobodyCanTell(t *testing.T) {
	k, c := newKey(t, jwtgrant.EdDSA), &handClock{}
	e := newEndpoint(t, publicKey(t, 1))
	keys := urlKeys(t, e, c)
	v, err := jwtgrant.NewVerifier(realm, []jwtgrant.TrustedIssuer{{Name: issuerName, Keys: keys}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := newBoundary(t, v, nil, noon())
	r := request(signedCredit(t, k, nil))
	e.answer(http.StatusServiceUnavailable, nil)
	b.wantNothing(t, r, pawl.ErrNotConfirmed, pawl.ReasonUnreachable)
	e.publish(t, k.Public())
	c.advance(time.Minute)
	b.wantAdmitted(t, r)
}

// TestCase_CA25_RepeatedIssue has the answer of an issue lost: what is issued
// again is the same grant, whatever the bytes of the token.
func TestCase_CA25_RepeatedIssue(t *testing.T) {
	k := newKey(t, jwtgrant.ES256) // whose signatures differ each time
	b := newBoundary(t, trusting(t, k.Public()), nil, noon())
	i := newIssuer(t, k, nil)
	tokens := make([]string, 2)
	for n := range tokens {
		issued, err := b.gate.Issue(t.Context(), pawl.Issuance{
			RequestID: "ticket-17", Form: pawl.FormToken, Issuer: i.Name(), Namespace: i.Namespace("acme"), Subject: "alice",
			Tenant: "acme", Intent: credit(t).Intent, Lifetime: time.Hour, GrantID: pawl.NewOperationID().String(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if tokens[n], err = i.Sign(issued.Grant); err != nil {
			t.Fatal(err)
		}
	}
	b.wantAdmitted(t, request(tokens[0]))
	b.wantNothing(t, request(tokens[1]), refused, pawl.ReasonUsed)
}

// TestCase_CC3_RevokingWithoutProof has tokens that prove no issue here [R2].
func TestCase_CC3_RevokingWithoutProof(t *testing.T) {
	k := newKey(t, jwtgrant.EdDSA)
	b := newBoundary(t, trusting(t, k.Public()), nil, noon())
	victim := signedCredit(t, k, nil)
	stranger := signedCredit(t, newKey(t, jwtgrant.EdDSA), nil)
	for name, r := range map[string]pawl.RevokeRequest{
		"a token of another issuer": {Token: stranger, By: "operator", Reason: "test"},
		"a key without any proof":   {Key: credit(t).Key, By: "operator", Reason: "test"},
	} {
		if state, _, err := b.gate.Revoke(t.Context(), r); !errors.Is(err, pawl.ErrRefused) {
			t.Errorf("%s: got %q, error %v, want refused", name, state, err)
		}
	}
	b.wantAdmitted(t, request(victim))
	state, key, err := b.gate.Revoke(t.Context(), pawl.RevokeRequest{Token: victim, By: "operator", Reason: "test"})
	if err != nil || state != pawl.AlreadyAdmitted || key != credit(t).Key {
		t.Errorf("with proof, after admission: got %q of %v, error %v", state, key, err)
	}
}
