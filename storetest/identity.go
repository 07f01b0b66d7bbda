package storetest

import (
	"math/rand/v2"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
)

func identityCases() []Case {
	return []Case{
		{ID: "C-B1", Title: "keys that differ in any byte are distinct", Clauses: clauses("A5"), run: distinctKeys},
		{ID: "C-B2", Title: "the same grant id from two issuers and in two namespaces", Clauses: clauses("A5"), run: sameIDTwoIssuers},
		{ID: "B2-keys", Title: "idempotency keys that differ in any byte are distinct", Clauses: clauses("B2"), run: distinctReservations},
		{ID: "C-B11", Title: "details spelt differently are one intent", Clauses: clauses("A8"), run: detailsSpeltDifferently},
		{ID: "C-B12", Title: "a string amount is kept exactly", Clauses: clauses("A5"), run: detailsKeptExactly},
	}
}

func limitCases() []Case {
	return []Case{
		{ID: "C-B5", Title: "malformed ids never reach the engine", Clauses: clauses("A9 S2"), run: malformedIDs},
		{ID: "C-B6", Title: "ids at the limit and past it", Clauses: clauses("A9 A5"), run: idSizes},
		{ID: "A9-calls", Title: "malformed calls other than admissions", Clauses: clauses("A9"), run: malformedCalls},
	}
}

// lookalikes are ids that a join, a fold, a trim or a collation would take for
// one another. In each pair the first two joined parts are equal.
func lookalikes() [][2]string {
	return [][2]string{
		{"ab", "c"},
		{"a", "bc"},
		{"a/b", "c"},
		{"a", "b/c"},
		{"a:b", "c"},
		{"a", "b:c"},
		{"a|b", "c"},
		{"a", "b|c"},
		{"a b", "c"},
		{"a", "b c"},
		{"ABC", "x"},
		{"abc", "x"},
		{"Abc", "x"},
		{"abc", "x "},
		{"abc", " x"},
		{"abc ", "x"},
		{"stra\u00dfe", "x"},
		{"strasse", "x"},
		{"\u00e9", "x"},
		{"e\u0301", "x"}, // one letter, composed or not: no normalisation
		{"\u0130", "x"},
		{"i", "x"},
		{"I", "x"},
		{"\u0131", "x"},
		{"%", "x"},
		{"_", "x"},
		{"\\", "x"},
		{"'", "x"},
		{"\"", "x"},
		{";--", "x"},
		{"0", "x"},
		{"00", "x"},
		{"0.0", "x"},
	}
}

// distinctKeys is C-B1 [A5].
func distinctKeys(t *Trial) {
	for _, pair := range lookalikes() {
		g := t.grant()
		g.Key.Issuer, g.Key.ID = t.issuer+pair[0], pair[1]
		if got, err := t.admit(t.a, t.admission(g)); err != nil || !got.Fresh {
			t.fail("A5", "issuer …%q with id %q: fresh %v, error %v, want admitted as a grant of its own", pair[0], pair[1], got.Fresh, err)
		}
		t.wantRefused("A2", t.a, t.admission(g), pawl.ReasonUsed)
	}
}

// sameIDTwoIssuers is C-B2, and the same for namespaces.
func sameIDTwoIssuers(t *Trial) {
	first := t.grant()
	second, third := first, first
	second.Key.Issuer += "-two"
	third.Key.Namespace = third.Tenant
	for _, g := range []pawl.Grant{first, second, third} {
		if got, err := t.admit(t.a, t.admission(g)); err != nil || !got.Fresh {
			t.fail("A5", "the key %v: fresh %v, error %v, want admitted", g.Key, got.Fresh, err)
		}
	}
	for _, g := range []pawl.Grant{first, second, third} {
		t.wantRefused("A5", t.a, t.admission(g), pawl.ReasonUsed)
	}
}

// distinctReservations: tenants never meet, nor principals, nor authorities,
// nor scopes of a key [B2].
func distinctReservations(t *Trial) {
	seen := map[pawl.OperationID]string{}
	try := func(what string, r pawl.Reservation) {
		got, err := t.reserve(t.a, r)
		if err != nil || !got.Fresh {
			t.fail("B2", "%s: fresh %v, error %v, want reserved", what, got.Fresh, err)
			return
		}
		if other, ok := seen[got.Operation.ID]; ok {
			t.fail("B2", "%s and %s are one operation", what, other)
		}
		if got.Operation.ID.Version() != 8 {
			t.fail("B2", "%s: the operation id has version %d, want 8", what, got.Operation.ID.Version())
		}
		seen[got.Operation.ID] = what
	}
	base := t.reservation()
	try("a key", base)
	for what, change := range map[string]func(*pawl.Reservation){
		"another tenant":            func(r *pawl.Reservation) { r.Caller.Tenant += "2" },
		"no tenant":                 func(r *pawl.Reservation) { r.Caller.Tenant = "" },
		"another principal":         func(r *pawl.Reservation) { r.Caller.Principal += "2" },
		"another authority":         func(r *pawl.Reservation) { r.Caller.Authority = "idp" },
		"the tenant's key":          func(r *pawl.Reservation) { r.Scope = pawl.ScopeTenant },
		"another tenant's key":      func(r *pawl.Reservation) { r.Scope, r.Caller.Tenant = pawl.ScopeTenant, r.Caller.Tenant+"2" },
		"letters of the other case": func(r *pawl.Reservation) { r.Key = strings.ToUpper(r.Key) },
		"a trailing blank":          func(r *pawl.Reservation) { r.Key += " " },
		"a letter of the key moved": func(r *pawl.Reservation) { r.Caller.Principal += r.Key[:1]; r.Key = r.Key[1:] },
		"a letter of the tenant too": func(r *pawl.Reservation) {
			n := len(r.Caller.Tenant) - 1
			r.Caller.Principal = r.Caller.Tenant[n:] + r.Caller.Principal
			r.Caller.Tenant = r.Caller.Tenant[:n]
		},
	} {
		r := base
		change(&r)
		try(what, r)
	}
	shared := base
	shared.Scope = pawl.ScopeTenant
	got, err := t.reserve(t.a, shared)
	if err != nil || got.Fresh {
		t.fail("B2", "the tenant's key again: fresh %v, error %v, want joined", got.Fresh, err)
	}
	shared.Caller.Principal += "2"
	_, err = t.reserve(t.a, shared)
	t.wantClass("B1", "the tenant's key by another principal", err, pawl.ErrMismatch)
}

// detailsSpeltDifferently is C-B11: the fingerprint is over the canonical form.
func detailsSpeltDifferently(t *Trial) {
	spellings := []string{
		`{"amount":1,"who":"\u00e9","note":"x"}`,
		` { "note" : "x", "who":"é" ,"amount": 1.0 } `,
		"{\"who\":\"\\u00E9\",\n\"amount\":1e0,\"note\":\"\\u0078\"}",
	}
	g := t.grant()
	var a pawl.Admission
	for i, raw := range spellings {
		d, err := pawl.ParseDetails([]byte(raw))
		t.must(err)
		if i == 0 {
			g.Intent.Details = d
			a = t.admission(g)
			t.mustAdmit(t.a, a)
			continue
		}
		a.Intent.Details = d
		t.wantJoined("A8", t.a, a)
	}
}

// detailsKeptExactly is C-B12 as far as a store goes.
func detailsKeptExactly(t *Trial) {
	raw := `{"amount":"9007199254740993","big":"1e400","nul":"\\u0000","text":"\u2028 \ud83d\ude00 <&> é e` + "\u0301" + `"}`
	d, err := pawl.ParseDetails([]byte(raw))
	t.must(err)
	g := t.grant()
	g.Intent.Details = d
	id := t.mustAdmit(t.a, t.admission(g)).Operation.ID
	got := t.reopen()
	op, err := got.Get(t.ctx, id, pawl.AsOperator())
	if err != nil {
		t.stop("S1", "reading an operation: %v", err)
	}
	if diff := cmp.Diff(string(d.JSON()), string(op.Intent.Details.JSON())); diff != "" {
		t.fail("A5", "details changed in the store (-sent +kept):\n%s", diff)
	}
	if op.Lock != pawl.LockOf(op.Intent, op.Caller) {
		t.fail("B1", "the lock is not that of the intent and caller in the record")
	}
}

// malformedIDs is C-B5 for every field that is an id.
func malformedIDs(t *Trial) {
	bad := []string{"nul\x00", "line\nfeed", "del\x7f", "c1\u0085", "\xff\xfe", "half\xed\xa0\x80surrogate", strings.Repeat("x", pawl.MaxID+1)}
	fields := map[string]func(*pawl.Admission, string){
		"issuer":     func(a *pawl.Admission, s string) { a.Grant.Key.Issuer = s },
		"grant id":   func(a *pawl.Admission, s string) { a.Grant.Key.ID = s },
		"namespace":  func(a *pawl.Admission, s string) { a.Grant.Key.Namespace, a.Grant.Tenant, a.Caller.Tenant = s, s, s },
		"principal":  func(a *pawl.Admission, s string) { a.Grant.Subject, a.Caller.Principal = s, s },
		"tenant":     func(a *pawl.Admission, s string) { a.Grant.Tenant, a.Caller.Tenant = s, s },
		"authority":  func(a *pawl.Admission, s string) { a.Caller.Authority = s },
		"generation": func(a *pawl.Admission, s string) { a.Caller.Generation = s },
		"scope":      func(a *pawl.Admission, s string) { a.Caller.Scopes = []string{s} },
	}
	for field, set := range fields {
		values := bad
		if field == "issuer" || field == "grant id" || field == "principal" || field == "scope" {
			values = append([]string{""}, bad...)
		}
		for _, value := range values {
			a := t.admission(t.grant())
			set(&a, value)
			_, err := t.admit(t.a, a)
			t.wantClass("A9", field+" malformed", err, pawl.ErrInvalid)
			t.absent("A9", a.OperationID)
		}
	}
}

// idSizes is C-B6: by the limit, whatever the entropy, in every field at once.
func idSizes(t *Trial) {
	r := rand.New(rand.NewPCG(1, 2))
	noisy := make([]byte, 16<<10)
	for i := range noisy {
		noisy[i] = byte('!' + r.IntN('~'-'!'))
	}
	noise := func(n int) string { return strings.Repeat(string(noisy), n/len(noisy)+1)[:n] }
	for _, size := range []int{pawl.MaxID, pawl.MaxID + 1, 2700, 8000, 1 << 20} {
		for what, text := range map[string]string{"noise": noise(size), "one letter": strings.Repeat("x", size)} {
			g := t.grant()
			g.Key = pawl.GrantKey{Issuer: text, Namespace: text, ID: text}
			g.Subject, g.Tenant, g.Authority = text, text, text
			a := t.admission(g)
			a.Caller.Generation, a.Caller.Scopes = text, []string{text}
			got, err := t.admit(t.a, a)
			if size > pawl.MaxID {
				t.wantClass("A9", what, err, pawl.ErrInvalid)
				t.absent("A9", a.OperationID)
				continue
			}
			// On shared data the same key may be used by an earlier run of this case.
			if err == nil && got.Fresh {
				t.wantRefused("A5", t.a, t.admission(g), pawl.ReasonUsed)
			} else {
				t.wantClass("A5", "ids at the limit, of "+what, err, pawl.ErrRefused, pawl.ReasonUsed)
			}
		}
	}
}

// malformedCalls: every call validates before it asks the engine.
func malformedCalls(t *Trial) {
	own := t.admitted()
	id, token := own.Operation.ID, own.Owner.Token
	before := t.get(id)
	long := strings.Repeat("x", pawl.MaxReason+1)
	key := t.grant().Key
	calls := map[string]func() error{
		"reserve without key": func() error { r := t.reservation(); r.Key = ""; _, err := t.a.Reserve(t.ctx, r); return err },
		"reserve in no scope": func() error { r := t.reservation(); r.Scope = 9; _, err := t.a.Reserve(t.ctx, r); return err },
		"issue for no time": func() error {
			i := t.issuance(pawl.FormStored)
			i.Lifetime = 0
			_, err := t.a.Issue(t.ctx, i)
			return err
		},
		"issue for half seconds": func() error {
			i := t.issuance(pawl.FormStored)
			i.Lifetime += 1
			_, err := t.a.Issue(t.ctx, i)
			return err
		},
		"issue for too long": func() error {
			i := t.issuance(pawl.FormStored)
			i.Lifetime = 2 * t.timings.MaxGrantLifetime
			_, err := t.a.Issue(t.ctx, i)
			return err
		},
		"revoke by nobody": func() error {
			_, err := t.a.Revoke(t.ctx, pawl.Revocation{Key: key, ProvenElsewhere: true})
			return err
		},
		"revoke at length": func() error {
			_, err := t.a.Revoke(t.ctx, pawl.Revocation{Key: key, ProvenElsewhere: true, By: "auditor", Reason: long})
			return err
		},
		"renew for no time": func() error { _, err := t.a.Renew(t.ctx, pawl.Renewal{ID: id, Token: token}); return err },
		"record and pause a success": func() error {
			_, err := t.a.Record(t.ctx, pawl.Statement{ID: id, Token: token, Outcome: pawl.Succeeded("x"), Pause: 1})
			return err
		},
		"settle to reconciliation": func() error {
			_, err := t.a.Settle(t.ctx, pawl.Evidence{ID: id, Token: token, Outcome: pawl.NeedsReconciliation("x")})
			return err
		},
		"settle with a long note": func() error {
			_, err := t.a.Settle(t.ctx, pawl.Evidence{ID: id, Token: token, Note: long})
			return err
		},
		"take over without limit": func() error {
			_, err := t.a.TakeOver(t.ctx, pawl.TakeOver{OtherKinds: longLease, By: "recovery"})
			return err
		},
		"take over no kinds": func() error { _, err := t.a.TakeOver(t.ctx, pawl.TakeOver{Limit: 1, By: "recovery"}); return err },
		"list too many":      func() error { _, err := t.a.List(t.ctx, pawl.Filter{Limit: pawl.MaxPage + 1}); return err },
		"list from nowhere":  func() error { _, err := t.a.List(t.ctx, pawl.Filter{Cursor: "?"}); return err },
		"purge too many":     func() error { _, err := t.a.Purge(t.ctx, pawl.PurgeBatch{Limit: 10_001}); return err },
	}
	for what, call := range calls {
		t.wantClass("A9", what, call(), pawl.ErrInvalid)
	}
	t.same("A9", "malformed calls", before)
	r := pawl.Revocation{Key: key, ProvenElsewhere: true, By: "auditor"}
	if state, err := t.a.Revoke(t.ctx, r); err != nil || state != pawl.Revoked {
		t.fail("A9", "a revocation after malformed ones: %q, %v, want revoked", state, err)
	}
}
