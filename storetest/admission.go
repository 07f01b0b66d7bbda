package storetest

import (
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

// longLease is a recovery lease that no case outlives by accident.
const longLease = time.Hour

func admissionCases() []Case {
	return []Case{
		{
			ID: "C-A5", Title: "a used grant again, later and with a later expiry", Clauses: clauses("A2 A10"),
			Needs: []Power{PowerClock}, run: usedGrantAgain,
		},
		{ID: "C-A6", Title: "the admitting instance dies", Clauses: clauses("A1 A6"), run: admitThenDie},
		{ID: "C-A10", Title: "an operation id that another grant has", Clauses: clauses("A7 A8"), run: takenOperationID},
		{ID: "C-A19", Title: "two identical submits", Clauses: clauses("A8 O1"), run: identicalSubmits},
		{ID: "A8-other", Title: "the same id with another grant, caller or lock", Clauses: clauses("A8"), run: sameIDOtherwise},
		{ID: "A9-shape", Title: "malformed admissions write nothing", Clauses: clauses("A9 B2"), run: malformedAdmissions},
		{ID: "C-B4", Title: "the wrong request first, then the right one", Clauses: clauses("A9"), run: wrongThenRight},
		{ID: "C-B13", Title: "the caller changes what it passed and what it got", Clauses: clauses("A5"), run: callerMutates},
		{ID: "C-B14", Title: "the generation moves on", Clauses: clauses("A8 S1 B1"), run: generationMovesOn},
		{ID: "A2-claim", Title: "claim and operation are one", Clauses: clauses("A2"), Needs: []Power{PowerGrantBook}, run: claimTellsOperation},
	}
}

// usedGrantAgain is C-A5: [A10] the row stays byte for byte what it was.
func usedGrantAgain(t *Trial) {
	g := t.grant()
	first := t.mustAdmit(t.a, t.admission(g)).Operation
	before, log := t.get(first.ID), t.log(first.ID)
	t.advance(10 * time.Second)
	t.wantRefused("A2", t.open(), t.admission(g), pawl.ReasonUsed)
	later := g
	later.ExpiresAt = g.ExpiresAt.Add(30 * time.Second)
	again := t.admission(later)
	t.wantRefused("A2", t.a, again, pawl.ReasonUsed)
	t.absent("A2", again.OperationID)
	t.same("A10", "a losing admission", before)
	t.wantJoined("A8", t.a, sameOperation(t.admission(g), first.ID))
	t.same("A10", "a repeated admission", before)
	if diff := differ(log, t.log(first.ID)); diff != "" {
		t.fail("A10", "losing and repeated admissions changed the log (-before +after):\n%s", diff)
	}
}

func sameOperation(a pawl.Admission, id pawl.OperationID) pawl.Admission {
	a.OperationID = id
	return a
}

// admitThenDie is C-A6 with what the harness has: killed, or only not asked any
// more; then every instance anew [A1].
func admitThenDie(t *Trial) {
	dying, kill := t.doomed()
	g := t.grant()
	first := t.mustAdmit(dying, t.admission(g)).Operation
	kill()
	t.wantRefused("A1", t.open(), t.admission(g), pawl.ReasonUsed)
	t.wantRefused("A1", t.reopen(), t.admission(g), pawl.ReasonUsed)
	t.wantJoined("A1", t.a, sameOperation(t.admission(g), first.ID))
	if op := t.get(first.ID); op.Status != pawl.StatusAdmitted {
		t.fail("A6", "the dead instance's operation is %v, want admitted", op.Status)
	}
}

// takenOperationID is C-A10: the second grant is unspent [A7].
func takenOperationID(t *Trial) {
	victim := t.admitted().Operation
	other := t.grant()
	other.Subject = "ben-" + t.caller.Principal
	other.Intent.Details = details("9.99")
	taken := sameOperation(t.admission(other), victim.ID)
	_, err := t.admit(t.a, taken)
	t.wantClass("A7", "an operation id that exists already", err, pawl.ErrRefused, pawl.ReasonOperationTaken)
	if err != nil && (strings.Contains(err.Error(), t.caller.Principal) || strings.Contains(err.Error(), victim.Grant.ID)) {
		t.fail("A8", "the refusal tells of the other operation: %v", err)
	}
	t.same("A10", "an admission under its id", victim)
	if got, err := t.admit(t.a, t.admission(other)); err != nil || !got.Fresh {
		t.fail("A7", "the second grant under a fresh id: fresh %v, error %v, want admitted: it was spent", got.Fresh, err)
	}
}

// identicalSubmits is C-A19: the second sees the same operation, pending [A8].
func identicalSubmits(t *Trial) {
	a := t.admission(t.grant())
	b := t.open()
	owner := t.mustAdmit(t.a, a)
	got, err := t.admit(b, a)
	if err != nil || got.Fresh {
		t.stop("A8", "the same submit again: fresh %v, error %v, want already admitted", got.Fresh, err)
	}
	if diff := differ(owner.Operation, got.Operation); diff != "" {
		t.fail("A8", "the record told differs (-admitted +told):\n%s", diff)
	}
	if _, err := b.MaySubmit(t.ctx, a.OperationID, got.Owner.Token); err == nil {
		t.fail("O1", "the second submit may create: want that a retry never runs anything")
	}
}

// sameIDOtherwise varies one thing at a time [A8].
func sameIDOtherwise(t *Trial) {
	g := t.grant()
	a := t.admission(g)
	t.mustAdmit(t.a, a)
	before := t.get(a.OperationID)
	otherGrant := sameOperation(t.admission(t.grant()), a.OperationID)
	t.wantRefused("A8", t.a, otherGrant, pawl.ReasonOperationTaken)
	otherScopes := a
	otherScopes.Caller.Scopes = []string{"write"}
	t.wantRefused("A8", t.a, otherScopes, pawl.ReasonOperationTaken)
	otherIntent := a
	otherIntent.Intent.Details = details("1.00")
	otherIntent.Grant.Intent = otherIntent.Intent
	t.wantRefused("A8", t.a, otherIntent, pawl.ReasonOperationTaken)
	otherCaller := a
	otherCaller.Caller.Principal = "ben-" + t.caller.Principal
	t.wantRefused("A8", t.a, otherCaller, pawl.ReasonSubject)
	t.same("A10", "another admission under its id", before)
	t.wantJoined("A8", t.a, a)
}

// malformedAdmissions are refused as malformed before anything is written, and
// the right request still succeeds [A9]; version-8 ids are for reservations [B2].
func malformedAdmissions(t *Trial) {
	g := t.grant()
	right := t.admission(g)
	wrong := map[string]func(*pawl.Admission){
		"nil operation id":  func(a *pawl.Admission) { a.OperationID = pawl.OperationID{} },
		"version-8 id":      func(a *pawl.Admission) { a.OperationID = t.reservation().OperationID() },
		"no kind":           func(a *pawl.Admission) { a.Intent.Kind = "" },
		"malformed kind":    func(a *pawl.Admission) { a.Intent.Kind = "Credit Create" },
		"no details":        func(a *pawl.Admission) { a.Intent.Details = pawl.Details{} },
		"no principal":      func(a *pawl.Admission) { a.Caller.Principal = "" },
		"no lease":          func(a *pawl.Admission) { a.Lease = 0 },
		"no window":         func(a *pawl.Admission) { a.SubmissionWindow = 0 },
		"no form":           func(a *pawl.Admission) { a.Grant.Form = 0 },
		"no expiry":         func(a *pawl.Admission) { a.Grant.ExpiresAt = time.Time{} },
		"no issue time":     func(a *pawl.Admission) { a.Grant.IssuedAt = time.Time{} },
		"negative lifetime": func(a *pawl.Admission) { a.Grant.ExpiresAt = a.Grant.IssuedAt.Add(-time.Second) },
		"expiry in 2^50 s":  func(a *pawl.Admission) { a.Grant.ExpiresAt = time.Unix(1<<50, 0) },
		"65 scopes":         func(a *pawl.Admission) { a.Caller.Scopes = make([]string, pawl.MaxScopes+1) },
	}
	for what, spoil := range wrong {
		a := right
		spoil(&a)
		_, err := t.admit(t.a, a)
		t.wantClass("A9", what, err, pawl.ErrInvalid)
		if !a.OperationID.IsZero() {
			t.absent("A9", a.OperationID)
		}
	}
	if got, err := t.admit(t.a, right); err != nil || !got.Fresh {
		t.fail("A9", "the right request after malformed ones: fresh %v, error %v, want admitted", got.Fresh, err)
	}
}

// wrongThenRight is C-B4 for both forms: refused, unspent, then admitted [A9].
func wrongThenRight(t *Trial) {
	issued, err := t.a.Issue(t.ctx, t.issuance(pawl.FormStored))
	if err != nil {
		t.stop("A2", "issuing a stored grant: %v", err)
	}
	for _, g := range []pawl.Grant{t.grant(), issued.Grant} {
		form := g.Form.String()
		amount := t.admission(g)
		amount.Intent.Details = details("9999.00")
		t.wantRefused("A9", t.a, amount, pawl.ReasonIntent)
		kind := t.admission(g)
		kind.Intent.Kind = "other.kind"
		t.wantRefused("A9", t.a, kind, pawl.ReasonIntent)
		for _, spoil := range []func(*pawl.Caller){
			func(c *pawl.Caller) { c.Principal = "ben-" + c.Principal },
			func(c *pawl.Caller) { c.Tenant = "other" },
			func(c *pawl.Caller) { c.Tenant = "" },
		} {
			caller := t.admission(g)
			spoil(&caller.Caller)
			t.wantRefused("A9", t.a, caller, pawl.ReasonSubject)
			t.absent("A9", caller.OperationID)
		}
		t.absent("A9", amount.OperationID)
		t.absent("A9", kind.OperationID)
		if got, err := t.admit(t.a, t.admission(g)); err != nil || !got.Fresh {
			t.fail("A9", "the right request for a %s grant after wrong ones: fresh %v, error %v, want admitted", form, got.Fresh, err)
		}
	}
}

// callerMutates is C-B13: neither what was passed nor what was returned shares
// memory with the store [A5].
func callerMutates(t *Trial) {
	a := t.admission(t.grant())
	a.Caller.Scopes = []string{"alpha", "beta"}
	got := t.mustAdmit(t.a, a)
	before := t.get(a.OperationID)
	a.Caller.Scopes[0], a.Caller.Scopes[1] = "admin", "admin"
	got.Operation.Caller.Scopes[0] = "admin"
	t.same("A5", "changing the scopes passed and returned", before)
	done, err := t.a.Record(t.ctx, pawl.Statement{ID: a.OperationID, Token: got.Owner.Token, Outcome: pawl.Succeeded(marker)})
	if err != nil {
		t.stop("O1", "an owner's success: %v", err)
	}
	copy(done.Result, "----")
	first := t.get(a.OperationID)
	copy(first.Result, "YYYY")
	if r := t.get(a.OperationID).Result; string(r) != marker {
		t.fail("A5", "changing a returned result changed the record to %q", r)
	}
}

// generationMovesOn is C-B14: the status call still works [S1].
func generationMovesOn(t *Trial) {
	a := t.admission(t.grant())
	t.mustAdmit(t.a, a)
	before := t.get(a.OperationID)
	next := a
	next.Caller.Generation = "2"
	t.wantRefused("A8", t.a, next, pawl.ReasonOperationTaken)
	t.same("A10", "an admission by the next generation", before)
	if _, err := t.a.Get(t.ctx, a.OperationID, pawl.AsCaller(next.Caller)); err != nil {
		t.fail("S1", "the next generation reads its operation: %v, want the record", err)
	}
	r := t.reservation()
	if _, err := t.reserve(t.a, r); err != nil {
		t.stop("B1", "a reservation: %v", err)
	}
	r.Caller.Generation = "2"
	_, err := t.reserve(t.a, r)
	t.wantClass("B1", "the next generation joins a key", err, pawl.ErrMismatch)
}

// claimTellsOperation looks at one admission from the grant's side: whoever
// finds the grant used finds the operation [A2].
func claimTellsOperation(t *Trial) {
	issued, err := t.a.Issue(t.ctx, t.issuance(pawl.FormStored))
	if err != nil {
		t.stop("A2", "issuing a stored grant: %v", err)
	}
	op := t.mustAdmit(t.a, t.admission(issued.Grant)).Operation
	rec, err := t.open().(pawl.GrantBook).Grant(t.ctx, issued.Grant.Key)
	if err != nil || rec.State != pawl.GrantStateUsed || rec.Operation != op.ID {
		t.fail("A2", "the grant's record is %q of operation %s (%v), want used by %s", rec.State, rec.Operation, err, op.ID)
	}
}
