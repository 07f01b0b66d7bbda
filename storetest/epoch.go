package storetest

import (
	"time"

	"github.com/pawl-go/pawl"
)

func epochCases() []Case {
	return group([]Power{PowerKeeper}, true,
		Case{ID: "C-A23", Title: "the epoch is raised before ten grants are presented", Clauses: clauses("A12"), Needs: []Power{PowerClock}, run: raiseEpoch},
		Case{ID: "A12-record", Title: "the epoch touches no record", Clauses: clauses("A12"), run: epochKeepsRecords},
		Case{ID: "P3-erase", Title: "details and results are removed on request", Clauses: clauses("P3 M9"), run: erase},
	)
}

// raiseEpoch is C-A23 from the restore on: every grant issued before that
// moment is refused, by an issuer whose clock is ahead too [A12].
func raiseEpoch(t *Trial) {
	var old []pawl.Grant
	for i := range 10 {
		g := t.grant()
		g.IssuedAt = t.now().Add(-time.Duration(i) * time.Second)
		if i == 1 {
			g.IssuedAt = t.now().Add(t.timings.IssueSkew - 2*time.Second)
		}
		old = append(old, g)
	}
	stored := t.issue(t.issuance(pawl.FormStored))
	old = append(old, stored)
	b := t.open()
	before := t.facts.Epoch
	e, err := t.a.(pawl.Keeper).RaiseEpoch(t.ctx)
	if err != nil || e.Number != before.Number+1 || !e.IssuedNotBefore.After(before.IssuedNotBefore) {
		t.stop("A12", "raising the epoch %d: %+v, %v, want the next", before.Number, e, err)
	}
	for _, s := range []pawl.Store{t.a, b, t.open()} {
		for _, g := range old {
			a := t.admission(g)
			t.wantRefused("A12", s, a, pawl.ReasonBeforeEpoch)
			t.absent("A12", a.OperationID)
		}
	}
	f, err := b.Check(t.ctx)
	if err != nil || f.Epoch.Number != e.Number || !f.Epoch.IssuedNotBefore.Equal(e.IssuedNotBefore) {
		t.fail("A12", "another instance reports the epoch %+v (%v), want %+v", f.Epoch, err, e)
	}
	t.advance(t.timings.IssueSkew + 2*time.Second)
	fresh := t.grant()
	fresh.IssuedAt = t.now()
	if got, err := t.admit(t.a, t.admission(fresh)); err != nil || !got.Fresh {
		t.fail("A12", "a grant of the new epoch: fresh %v, error %v, want admitted", got.Fresh, err)
	}
	newer := t.issue(t.issuance(pawl.FormStored))
	if got, err := t.admit(t.a, t.admission(newer)); err != nil || !got.Fresh {
		t.fail("A12", "a stored grant of the new epoch: fresh %v, error %v, want admitted", got.Fresh, err)
	}
}

func epochKeepsRecords(t *Trial) {
	own := t.admitted()
	if _, err := t.a.(pawl.Keeper).RaiseEpoch(t.ctx); err != nil {
		t.stop("A12", "raising the epoch: %v", err)
	}
	t.same("A12", "raising the epoch", own.Operation)
	if p, err := t.a.MaySubmit(t.ctx, own.Operation.ID, own.Owner.Token); err != nil || !p.Granted {
		t.fail("A12", "an owner of before asks to create: granted %v, %v, want granted", p.Granted, err)
	}
}

// erase: the lock remains, so that refusal and settlement still work, and what
// is not settled is left alone [P3].
func erase(t *Trial) {
	a := t.admission(t.grant())
	own := t.mustAdmit(t.a, a)
	id := own.Operation.ID
	if _, err := t.a.Record(t.ctx, pawl.Statement{ID: id, Token: own.Owner.Token, Outcome: pawl.Succeeded(marker)}); err != nil {
		t.stop("O1", "an owner's success: %v", err)
	}
	open := t.admitted()
	keeper := t.a.(pawl.Keeper)
	_, err := keeper.Erase(t.ctx, pawl.Erasure{Caller: t.caller})
	t.wantClass("A9", "an erasure by nobody", err, pawl.ErrInvalid)
	e := pawl.Erasure{Caller: t.caller, By: "auditor", Reason: "request 9"}
	r, err := keeper.Erase(t.ctx, e)
	if err != nil || r.Erased != 1 || r.Unsettled != 1 {
		t.stop("P3", "erasing one settled and one open operation: %+v, %v", r, err)
	}
	op := t.get(id)
	if !op.Erased || len(op.Result) != 0 || string(op.Intent.Details.JSON()) == string(t.intent.Details.JSON()) {
		t.fail("P3", "after the erasure: erased %v, result of %d bytes, %v", op.Erased, len(op.Result), op.Intent.Details)
	}
	if op.Status != pawl.StatusSucceeded || op.Lock != own.Operation.Lock || op.ResultDigest != pawl.Succeeded(marker).Digest() {
		t.fail("P3", "the erasure changed status, lock or digest: %v", op.Status)
	}
	t.same("P3", "an erasure of settled operations", open.Operation)
	entries := t.log(id).Entries
	if last := entries[len(entries)-1]; last.Type != pawl.EntryErasure || last.Source != "auditor" || last.Reason != "request 9" {
		t.fail("M9", "the last entry is %s by %q because %q, want the erasure, who and why", last.Type, last.Source, last.Reason)
	}
	t.wantRefused("A2", t.a, t.admission(a.Grant), pawl.ReasonUsed)
	t.wantJoined("A8", t.a, a)
	ev := pawl.Evidence{ID: id, Lock: own.Operation.Lock, Outcome: pawl.Succeeded(marker), Trusted: true}
	if got := t.settle(t.a, ev); got.Disposition != pawl.Duplicate {
		t.fail("M1", "the same success after the erasure: %s, want duplicate", got.Disposition)
	}
	if r, err := keeper.Erase(t.ctx, e); err != nil || r.Erased != 0 {
		t.fail("P3", "erasing again: %+v, %v, want nothing left to erase", r, err)
	}
}
