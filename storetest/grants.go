package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
)

func grantCases() []Case {
	return []Case{
		{ID: "A2-stored", Title: "a stored grant is admitted by its row alone", Clauses: clauses("A2 A5"), run: storedForm},
		{ID: "C-A26", Title: "one key as a stored grant and as a token", Clauses: clauses("A2"), run: bothForms},
		{ID: "A6-issue", Title: "the same request issues once", Clauses: clauses("A6"), run: issueAgain},
		{ID: "A6-issue-race", Title: "one request sent many times at once", Clauses: clauses("A6"), run: issueAtOnce},
		{
			ID: "R4-book", Title: "the book tells what became of each grant", Clauses: clauses("R4 A2"),
			Needs: []Power{PowerGrantBook, PowerClock}, run: grantBook,
		},
		{ID: "R1-intent", Title: "every unused grant of an intent is withdrawn", Clauses: clauses("R1"), Needs: []Power{PowerGrantBook}, run: revokeIntent},
	}
}

func (t *Trial) issue(i pawl.Issuance) pawl.Grant {
	got, err := t.a.Issue(t.ctx, i)
	if err != nil || got.Again {
		t.stop("A2", "issuing a grant: again %v, error %v, want a new one", got.Again, err)
	}
	return got.Grant
}

// storedForm: without the row nothing is admitted, and the row is all that
// counts [A2, A5].
func storedForm(t *Trial) {
	i := t.issuance(pawl.FormStored)
	unknown := i.Grant(t.facts.Realm, t.about())
	a := t.admission(unknown)
	t.wantRefused("A2", t.a, a, pawl.ReasonGrantUnknown)
	t.absent("A2", a.OperationID)

	g := t.issue(i)
	want := i.Grant(t.facts.Realm, g.IssuedAt)
	if diff := differ(want, g); diff != "" {
		t.fail("A2", "the issued grant (-want +got):\n%s", diff)
	}
	bare := t.admission(g)
	bare.Grant = pawl.Grant{Form: pawl.FormStored, Key: g.Key}
	t.mustAdmit(t.open(), bare)
	t.wantJoined("A8", t.a, bare)
	t.wantRefused("A2", t.a, t.admission(g), pawl.ReasonUsed)

	logged := t.issue(t.issuance(pawl.FormToken))
	asStored := t.admission(logged)
	asStored.Grant.Form = pawl.FormStored
	t.wantRefused("A2", t.a, asStored, pawl.ReasonGrantUnknown)
	t.mustAdmit(t.a, t.admission(logged))
}

// bothForms is C-A26, in both orders and at once.
func bothForms(t *Trial) {
	for _, first := range []pawl.Form{pawl.FormStored, pawl.FormToken} {
		g := t.issue(t.issuance(pawl.FormStored))
		second := g
		g.Form = first
		second.Form = pawl.FormStored + pawl.FormToken - first
		t.mustAdmit(t.a, t.admission(g))
		t.wantRefused("A2", t.a, t.admission(second), pawl.ReasonUsed)
	}
	b := t.open()
	for range t.sizes.Rounds {
		stored := t.issue(t.issuance(pawl.FormStored))
		token := stored
		token.Form = pawl.FormToken
		asked := []pawl.Admission{t.admission(stored), t.admission(token)}
		fresh, errs := make([]bool, 2), make([]error, 2)
		race(2, func(i int) {
			got, err := t.admit([]pawl.Store{t.a, b}[i], asked[i])
			fresh[i], errs[i] = got.Fresh, err
		})
		if fresh[0] == fresh[1] {
			t.fail("A2", "one key in both forms at once: fresh %v, errors %v, want exactly one admitted", fresh, errs)
		}
	}
}

// issueAgain: idempotent by request id within the issuer [A6].
func issueAgain(t *Trial) {
	i := t.issuance(pawl.FormStored)
	first := t.issue(i)
	again := i
	again.GrantID = pawl.NewOperationID().String()
	got, err := t.open().Issue(t.ctx, again)
	if err != nil || !got.Again {
		t.fail("A6", "the same request: again %v, error %v, want the first grant", got.Again, err)
	}
	if diff := differ(first, got.Grant); diff != "" {
		t.fail("A6", "the same request made another grant (-first +again):\n%s", diff)
	}
	for what, change := range map[string]func(*pawl.Issuance){
		"details":  func(i *pawl.Issuance) { i.Intent.Details = details("1.00") },
		"subject":  func(i *pawl.Issuance) { i.Subject += "2" },
		"lifetime": func(i *pawl.Issuance) { i.Lifetime += time.Second },
		"form":     func(i *pawl.Issuance) { i.Form = pawl.FormToken },
	} {
		other := again
		change(&other)
		_, err := t.a.Issue(t.ctx, other)
		t.wantClass("A6", "the request id with other "+what, err, pawl.ErrMismatch, pawl.ReasonRequestMismatch)
	}
	elsewhere := again
	elsewhere.Issuer += "-two"
	if got, err := t.a.Issue(t.ctx, elsewhere); err != nil || got.Again {
		t.fail("A6", "the request id at another issuer: again %v, error %v, want a new grant", got.Again, err)
	}
}

func issueAtOnce(t *Trial) {
	instances := []pawl.Store{t.a, t.open()}
	for range t.sizes.Rounds {
		i := t.issuance(pawl.FormStored)
		ids, again := make([]string, 4), make([]bool, 4)
		race(4, func(n int) {
			mine := i
			mine.GrantID = pawl.NewOperationID().String()
			got, err := instances[n%2].Issue(t.ctx, mine)
			if err != nil {
				t.fail("A6", "one request sent at once: %v, want the grant", err)
			}
			ids[n], again[n] = got.Grant.Key.ID, got.Again
		})
		fresh := 0
		for _, a := range again {
			if !a {
				fresh++
			}
		}
		if len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 1 || fresh != 1 {
			t.fail("A6", "one request sent at once made grants %v, again %v; want one, made once", ids, again)
		}
	}
}

// grantBook: who, when and why of a revocation are kept [R4].
func grantBook(t *Trial) {
	book := t.a.(pawl.GrantBook)
	issued, used, revoked := t.issue(t.issuance(pawl.FormStored)), t.issue(t.issuance(pawl.FormStored)), t.issue(t.issuance(pawl.FormToken))
	op := t.mustAdmit(t.a, t.admission(used)).Operation
	at := t.now()
	if _, err := t.a.Revoke(t.ctx, pawl.Revocation{Key: revoked.Key, By: "auditor", Reason: "lost\nlaptop"}); err != nil {
		t.stop("R2", "revoking a grant in the issuance log: %v", err)
	}
	t.wantRecord(book, issued, pawl.GrantStateIssued)
	if rec := t.wantRecord(book, used, pawl.GrantStateUsed); rec.Operation != op.ID {
		t.fail("A2", "a used grant names operation %s, want %s", rec.Operation, op.ID)
	}
	rec := t.wantRecord(book, revoked, pawl.GrantStateRevoked)
	if rec.RevokedBy != "auditor" || rec.Reason != "lost\nlaptop" || rec.RevokedAt.Sub(at).Abs() > time.Minute {
		t.fail("R4", "revoked by %q at %v because %q; want auditor, %v, the reason given", rec.RevokedBy, rec.RevokedAt, rec.Reason, at)
	}
	t.pages(book, 3)
	_, err := book.Grant(t.ctx, t.grant().Key)
	t.wantClass("A2", "the record of a grant that was never issued", err, pawl.ErrNotFound)
	t.advance(life + t.leeway())
	t.wantRecord(book, issued, pawl.GrantStateExpired)
	t.wantRecord(book, used, pawl.GrantStateUsed)
	t.wantRecord(book, revoked, pawl.GrantStateRevoked)
}

func (t *Trial) wantRecord(book pawl.GrantBook, g pawl.Grant, state pawl.GrantRecordState) pawl.GrantRecord {
	rec, err := book.Grant(t.ctx, g.Key)
	if err != nil {
		t.stop("A2", "reading a grant's record: %v", err)
	}
	if rec.State != state {
		t.fail("A2", "the grant's record is %q, want %q", rec.State, state)
	}
	if diff := differ(g, rec.Grant); diff != "" {
		t.fail("A2", "the grant's record differs from the answer of its issue (-issued +kept):\n%s", diff)
	}
	page, err := book.Grants(t.ctx, pawl.GrantFilter{Issuers: []string{t.issuer}, State: state})
	if err != nil || !slices.ContainsFunc(page.Grants, func(r pawl.GrantRecord) bool { return r.Grant.Key == g.Key }) {
		t.fail("A2", "the list of %q grants does not have it (%v)", state, err)
	}
	return rec
}

// pages reads the trial's grants one at a time: each once, newest first.
func (t *Trial) pages(book pawl.GrantBook, want int) {
	var got []string
	f := pawl.GrantFilter{Issuers: []string{t.issuer}, Tenants: []string{t.caller.Tenant}, Kinds: []pawl.Kind{t.kind}, Limit: 1}
	var last time.Time
	for range want + 1 {
		page, err := book.Grants(t.ctx, f)
		if err != nil {
			t.stop("A2", "listing grants: %v", err)
		}
		for _, rec := range page.Grants {
			if !last.IsZero() && rec.Grant.IssuedAt.After(last) {
				t.fail("A2", "the list of grants is not newest first")
			}
			last = rec.Grant.IssuedAt
			got = append(got, fmt.Sprint(rec.Grant.Key))
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(got)))); n != want || len(got) != want {
		t.fail("A2", "read page by page there are %d grants, %d different; want %d", len(got), n, want)
	}
	f = pawl.GrantFilter{Issuers: []string{t.issuer}, Subject: "nobody"}
	if page, err := book.Grants(t.ctx, f); err != nil || len(page.Grants) != 0 {
		t.fail("A2", "nobody has %d grants (%v)", len(page.Grants), err)
	}
}

// revokeIntent: used ones, other intents and other subjects are left alone [R1].
func revokeIntent(t *Trial) {
	mine := []pawl.Grant{t.issue(t.issuance(pawl.FormStored)), t.issue(t.issuance(pawl.FormStored))}
	used := t.issue(t.issuance(pawl.FormStored))
	t.mustAdmit(t.a, t.admission(used))
	i := t.issuance(pawl.FormStored)
	i.Intent.Details = details("1.00")
	otherIntent := t.issue(i)
	i = t.issuance(pawl.FormStored)
	i.Subject += "2"
	otherSubject := t.issue(i)
	r := pawl.IntentRevocation{
		Issuer: t.issuer, Subject: t.caller.Principal, Tenant: t.caller.Tenant, Intent: t.intent, By: "auditor", Reason: "recalled",
	}
	for round, want := range []int{len(mine), 0} {
		n, err := t.a.(pawl.GrantBook).RevokeIntent(t.ctx, r)
		if err != nil || n != want {
			t.fail("R1", "round %d withdrew %d grants (%v), want %d", round, n, err, want)
		}
	}
	for _, g := range mine {
		t.wantRefused("R1", t.a, t.admission(g), pawl.ReasonRevoked)
	}
	t.mustAdmit(t.a, t.admission(otherIntent))
	t.mustAdmit(t.a, t.admission(otherSubject))
}
