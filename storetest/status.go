package storetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

func statusCases() []Case {
	return []Case{
		{ID: "C-B15", Title: "another tenant names an operation id", Clauses: clauses("S1"), run: strangersSeeNothing},
		{ID: "C-A27", Title: "tenants, kinds and issuers do not meet", Clauses: clauses("S1 A5 B2"), Needs: []Power{PowerClock}, run: limitsHold},
		{ID: "S1-expired", Title: "the caller reads after the expiry", Clauses: clauses("S1"), Needs: []Power{PowerClock}, run: readAfterExpiry},
		{ID: "S1-list", Title: "lists page through everything once, newest first", Clauses: clauses("S1"), run: listPages},
		{ID: "S2-errors", Title: "no error shows a token, details or a result", Clauses: clauses("S2"), run: errorsHide},
	}
}

// strangersSeeNothing is C-B15: the same answer, to the letter, as for an id
// that never existed [S1].
func strangersSeeNothing(t *Trial) {
	own := t.admitted()
	id := own.Operation.ID
	if _, err := t.a.Record(t.ctx, pawl.Statement{ID: id, Token: own.Owner.Token, Outcome: pawl.Succeeded(marker)}); err != nil {
		t.stop("O1", "an owner's success: %v", err)
	}
	_, never := t.a.Get(t.ctx, pawl.NewOperationID(), pawl.AsCaller(t.caller))
	t.wantClass("S1", "an id that never existed", never, pawl.ErrNotFound)
	for what, change := range map[string]func(*pawl.Caller){
		"another tenant":    func(c *pawl.Caller) { c.Tenant += "2" },
		"no tenant":         func(c *pawl.Caller) { c.Tenant = "" },
		"another principal": func(c *pawl.Caller) { c.Principal += "2" },
		"another authority": func(c *pawl.Caller) { c.Authority = "idp" },
		"nobody":            func(c *pawl.Caller) { *c = pawl.Caller{} },
	} {
		c := t.caller
		change(&c)
		op, err := t.a.Get(t.ctx, id, pawl.AsCaller(c))
		t.wantStranger(what, op, err, never)
		tl, err := t.a.Log(t.ctx, id, pawl.AsCaller(c))
		t.wantStranger(what+" reading the log", tl.Operation, err, never)
		if len(tl.Entries) != 0 {
			t.fail("S1", "%s is shown %d entries of the log", what, len(tl.Entries))
		}
	}
	op, err := t.a.Get(t.ctx, id, pawl.Viewer{})
	t.wantStranger("the zero viewer", op, err, never)
	if op, err := t.open().Get(t.ctx, id, pawl.AsCaller(t.caller)); err != nil || string(op.Result) != marker {
		t.fail("S1", "the caller reads its operation: %d bytes of result, %v, want the result", len(op.Result), err)
	}
	if tl, err := t.a.Log(t.ctx, id, pawl.AsCaller(t.caller)); err != nil || len(tl.Entries) < 2 {
		t.fail("S1", "the caller reads its log: %d entries, %v, want the admission's and the outcome's", len(tl.Entries), err)
	}
}

func (t *Trial) wantStranger(who string, op pawl.Operation, err, never error) {
	if !errors.Is(err, pawl.ErrNotFound) || err.Error() != never.Error() || pawl.ReasonOf(err) != pawl.ReasonOf(never) {
		t.fail("S1", "%s asks for an operation: %v, want the answer for an id that never existed: %v", who, err, never)
	}
	if diff := differ(pawl.Operation{}, op); diff != "" {
		t.fail("S1", "%s is shown:\n%s", who, diff)
	}
}

// limitsHold is C-A27 as far as a store goes: grants [A5], keys [B2], lists and
// takeovers.
func limitsHold(t *Trial) {
	victim := t.grant()
	thief := t.admission(victim)
	thief.Caller.Tenant += "2"
	t.wantRefused("A5", t.a, thief, pawl.ReasonSubject)
	t.absent("A5", thief.OperationID)
	mine := t.mustAdmit(t.a, t.admission(victim)).Operation

	r := t.reservation()
	own, err := t.reserve(t.a, r)
	if err != nil {
		t.stop("B1", "a fresh key: %v", err)
	}
	r.Caller.Tenant += "2"
	theirs, err := t.reserve(t.a, r)
	if err != nil || !theirs.Fresh || theirs.Operation.ID == own.Operation.ID {
		t.fail("B2", "another tenant's key of the same name: fresh %v, error %v, want an operation of its own", theirs.Fresh, err)
	}
	t.wantListed(pawl.Filter{Kinds: []pawl.Kind{t.kind}, Tenants: []string{t.caller.Tenant}}, mine.ID, own.Operation.ID)
	t.wantListed(pawl.Filter{Kinds: []pawl.Kind{t.kind}, Tenants: []string{"nobody"}})
	t.wantListed(pawl.Filter{Kinds: []pawl.Kind{"other.kind"}, Tenants: []string{t.caller.Tenant}})
	t.wantListed(pawl.Filter{Issuers: []string{t.issuer}}, mine.ID)
	t.wantListed(pawl.Filter{Kinds: []pawl.Kind{t.kind}, Principal: r.Caller}, theirs.Operation.ID)
	t.wantListed(pawl.Filter{Kinds: []pawl.Kind{t.kind}, Statuses: []pawl.Status{pawl.StatusUnknown}})

	t.advance(lease + time.Second)
	base := pawl.TakeOver{OtherKinds: longLease, Limit: 100, By: "recovery"}
	for _, l := range []struct {
		what   string
		limit  func(*pawl.TakeOver)
		expect []pawl.OperationID
	}{
		{"another kind", func(o *pawl.TakeOver) {
			o.Leases, o.OtherKinds = map[pawl.Kind]time.Duration{"other.kind": longLease}, 0
		}, nil},
		{"another tenant", func(o *pawl.TakeOver) { o.Tenants = []string{"nobody"} }, nil},
		{"another issuer", func(o *pawl.TakeOver) { o.Issuers = []string{"nobody"} }, nil},
		{"the issuer", func(o *pawl.TakeOver) { o.Issuers = []string{t.issuer} }, []pawl.OperationID{mine.ID}},
		{"the tenant", func(o *pawl.TakeOver) { o.Tenants = []string{t.caller.Tenant} }, []pawl.OperationID{own.Operation.ID}},
		{"the kind", func(o *pawl.TakeOver) { o.Leases, o.OtherKinds = map[pawl.Kind]time.Duration{t.kind: longLease}, 0 }, []pawl.OperationID{theirs.Operation.ID}},
	} {
		o := base
		l.limit(&o)
		taken, err := t.a.TakeOver(t.ctx, o)
		var got []pawl.OperationID
		for _, k := range taken {
			got = append(got, k.Operation.ID)
		}
		if err != nil || !slices.Equal(got, l.expect) {
			t.fail("S1", "a takeover limited to %s took %v (%v), want %v", l.what, got, err, l.expect)
		}
	}
}

func (t *Trial) wantListed(f pawl.Filter, want ...pawl.OperationID) {
	page, err := t.a.List(t.ctx, f)
	if err != nil {
		t.fail("S1", "listing %+v: %v", f, err)
		return
	}
	got := map[pawl.OperationID]bool{}
	for _, op := range page.Operations {
		got[op.ID] = true
	}
	ok := len(page.Operations) == len(want) && page.Next == ""
	for _, id := range want {
		ok = ok && got[id]
	}
	if !ok {
		t.fail("S1", "listing %+v: %d operations (more: %v), want exactly %v", f, len(page.Operations), page.Next != "", want)
	}
}

func readAfterExpiry(t *Trial) {
	a := t.admission(t.grant())
	t.mustAdmit(t.a, a)
	t.advance(2 * life)
	if _, err := t.open().Get(t.ctx, a.OperationID, pawl.AsCaller(t.caller)); err != nil {
		t.fail("S1", "the caller's status after the grant expired: %v, want the record", err)
	}
}

func listPages(t *Trial) {
	const n = 5
	want := map[pawl.OperationID]bool{}
	for range n {
		want[t.admitted().Operation.ID] = true
	}
	f := pawl.Filter{Kinds: []pawl.Kind{t.kind}, Limit: 2}
	var all []pawl.Operation
	for range n {
		page, err := t.a.List(t.ctx, f)
		if err != nil {
			t.stop("S1", "listing: %v", err)
		}
		if len(page.Operations) > 2 {
			t.fail("S1", "a page of 2 has %d operations", len(page.Operations))
		}
		all = append(all, page.Operations...)
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
		t.admitted() // what is new does not disturb the pages that follow
	}
	for i, op := range all {
		if !want[op.ID] {
			t.fail("S1", "operation %s is listed twice, or was not there at the start", op.ID)
		}
		delete(want, op.ID)
		if i > 0 && op.CreatedAt.After(all[i-1].CreatedAt) {
			t.fail("S1", "the list is not newest first")
		}
	}
	if len(want) != 0 {
		t.fail("S1", "%d operations are on no page", len(want))
	}
}

// errorsHide provokes every kind of error with a marked request [S2]; clean
// looks for the marker, here for the token too.
func errorsHide(t *Trial) {
	own := t.admitted()
	id, token := own.Operation.ID, own.Owner.Token
	var errs []error
	keep := func(err error) { errs = append(errs, err) }
	_, err := t.a.Record(t.ctx, pawl.Statement{ID: id, Token: token, Outcome: pawl.Succeeded(marker)})
	keep(err)
	_, err = t.a.Record(t.ctx, pawl.Statement{ID: id, Token: token, Outcome: pawl.Failed(marker)})
	keep(err)
	_, err = t.a.MaySubmit(t.ctx, id, token)
	keep(err)
	_, err = t.a.MaySubmit(t.ctx, pawl.NewOperationID(), token)
	keep(err)
	_, err = t.a.Renew(t.ctx, pawl.Renewal{ID: id, Token: token, Lease: lease})
	keep(err)
	_, err = t.a.Settle(t.ctx, pawl.Evidence{ID: id, Token: token + "x", Lock: own.Operation.Lock, Outcome: pawl.Succeeded(marker)})
	keep(err)
	_, err = t.a.Settle(t.ctx, pawl.Evidence{
		ID: id, Lock: own.Operation.Lock, Outcome: pawl.Failed(marker), Trusted: true, Resolution: true, Note: marker,
	})
	keep(err)
	r := t.reservation()
	_, err = t.reserve(t.a, r)
	keep(err)
	r.Intent.Details = details("1.00")
	_, err = t.reserve(t.a, r)
	keep(err)
	for _, err := range errs {
		t.clean(err)
		if err != nil && strings.Contains(err.Error(), string(token)) {
			t.fail("S2", "an error shows the owner token: %v", err)
		}
	}
}
