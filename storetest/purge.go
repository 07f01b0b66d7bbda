package storetest

import (
	"time"

	"github.com/pawl-go/pawl"
)

func purgeCases() []Case {
	return group([]Power{PowerClock}, true,
		Case{ID: "C-C5", Title: "purged within the leeway and presented again", Clauses: clauses("P1 A4"), timings: longLeeway, run: purgeWithinLeeway},
		Case{ID: "P2-deletes", Title: "past margin and retention the refusal goes", Clauses: clauses("P1 P2 P3"), run: purgeDeletes},
		Case{ID: "C-C9", Title: "an operation of two days under one day of retention", Clauses: clauses("P3 P4"), timings: dayOfRetention, run: retentionFromSettlement},
		Case{ID: "C-C10", Title: "a non-terminal operation older than everything", Clauses: clauses("P3"), timings: dayOfRetention, run: nonTerminalStays},
		Case{ID: "P4-batches", Title: "batches are bounded and resumable", Clauses: clauses("P4"), run: boundedBatches},
		Case{ID: "P3-log", Title: "logs and results have retentions of their own", Clauses: clauses("P3 M9"), timings: layeredRetention, run: logsAndResults},
		Case{ID: "P3-archived", Title: "an operation is gone long before its grant is over", Clauses: clauses("P3"), timings: minuteOfRetention, run: archivedOperation},
		Case{ID: "O1-second-life", Title: "a key that is reserved anew after retention", Clauses: clauses("O1 B3 P3"), timings: dayOfRetention, run: secondLife},
		Case{ID: "C-C12", Title: "the store's clock steps back past a purge", Clauses: clauses("P1"), run: clockStepsBack},
	)
}

// purgeAll purges in batches until there is no more work.
func (t *Trial) purgeAll(limit int) (sum pawl.PurgeReport) {
	for range 10_000 {
		r, err := t.a.Purge(t.ctx, pawl.PurgeBatch{Limit: limit})
		if err != nil {
			t.stop("P4", "a purge: %v", err)
		}
		if n := r.Deleted(); n > limit {
			t.fail("P4", "a batch of at most %d deleted %d rows", limit, n)
		}
		sum = sum.Add(r)
		if !r.More {
			return sum
		}
	}
	t.stop("P4", "a purge never ends")
	return sum
}

// held reports whether the store says that it may not delete refusal records [P2].
func (t *Trial) held() bool {
	f, err := t.a.Check(t.ctx)
	t.must(err)
	return f.PurgeHeld != ""
}

// purgeWithinLeeway is C-C5: 20 s after the expiry with 30 s leeway.
func purgeWithinLeeway(t *Trial) {
	g := t.grant()
	g.LeewayPolicy = "long"
	revoked := t.grant()
	revoked.LeewayPolicy = "long"
	t.mustAdmit(t.a, t.admission(g))
	t.wantState(t.a, revoked, pawl.Revoked)
	t.advance(life + 20*time.Second)
	if r := t.purgeAll(100); r.Refusals != 0 {
		t.fail("P1", "%d refusal records were deleted within the leeway", r.Refusals)
	}
	t.wantRefused("P1", t.a, t.admission(g), pawl.ReasonUsed)
	t.wantRefused("P1", t.a, t.admission(revoked), pawl.ReasonRevoked)
	t.advance(10*time.Second + t.timings.PurgeMargin - time.Second)
	if r := t.purgeAll(100); r.Refusals != 0 {
		t.fail("P1", "%d refusal records were deleted within the margin", r.Refusals)
	}
	t.wantRefused("A4", t.a, t.admission(g), pawl.ReasonExpired)
}

// purgeDeletes: never deleting is no answer where the bound holds [P2], and the
// operation stays when its refusal record goes [P3].
func purgeDeletes(t *Trial) {
	g := t.grant()
	op := t.mustAdmit(t.a, t.admission(g)).Operation
	stored := t.issue(t.issuance(pawl.FormStored))
	t.mustAdmit(t.a, t.admission(stored))
	unused := t.issue(t.issuance(pawl.FormStored))
	t.advance(life + t.leeway() + t.timings.PurgeMargin + time.Minute)
	r := t.purgeAll(100)
	if t.held() {
		if r.Refusals != 0 {
			t.fail("P2", "the purge is held and %d refusal records were deleted", r.Refusals)
		}
	} else if r.Refusals != 2 || r.Overdue > 0 {
		t.fail("P2", "past margin and retention %d refusal records were deleted, %v overdue; want 2, none", r.Refusals, r.Overdue)
	}
	if r.Operations != 0 {
		t.fail("P3", "deleting refusal records deleted %d operations", r.Operations)
	}
	t.same("P3", "deleting its refusal record", op)
	for _, old := range []pawl.Grant{g, stored, unused} {
		got, err := t.admit(t.a, t.admission(old))
		if err == nil {
			t.fail("P1", "after the purge an old grant was admitted (fresh %v)", got.Fresh)
		}
	}
}

// retentionFromSettlement is C-C9: a purge that stops anywhere may only refuse
// more.
func retentionFromSettlement(t *Trial) {
	const day = 24 * time.Hour
	g := t.grant()
	own := t.mustAdmit(t.a, t.admission(g))
	id := own.Operation.ID
	t.advance(2 * day)
	t.purgeAll(1)
	t.get(id)
	if _, err := t.a.Record(t.ctx, pawl.Statement{ID: id, Token: own.Owner.Token, Outcome: pawl.Succeeded(marker)}); err != nil {
		t.stop("O1", "an owner's success: %v", err)
	}
	t.advance(day - time.Minute)
	if r := t.purgeAll(1); r.Operations != 0 {
		t.fail("P3", "an operation was deleted before a day after its settlement")
	}
	if op := t.get(id); string(op.Result) != marker {
		t.fail("P3", "the result was cleared before a day after the settlement")
	}
	t.advance(2 * time.Minute)
	for range 20 {
		r, err := t.a.Purge(t.ctx, pawl.PurgeBatch{Limit: 1})
		if err != nil {
			t.stop("P4", "a purge: %v", err)
		}
		if got, err := t.admit(t.a, t.admission(g)); err == nil {
			t.fail("P3", "a purge in pieces freed the grant (fresh %v)", got.Fresh)
		}
		if !r.More {
			break
		}
	}
	t.absent("P3", id)
}

// secondLife: what took part in the first life of a key is a stranger to the
// second, whatever it once held [O1].
func secondLife(t *Trial) {
	r := t.reservation()
	first, err := t.a.Reserve(t.ctx, r)
	t.must(err)
	old := pawl.Statement{ID: first.Operation.ID, Token: first.Owner.Token, Outcome: pawl.Failed("declined")}
	if _, err := t.a.Record(t.ctx, old); err != nil {
		t.stop("O1", "an owner's failure: %v", err)
	}
	t.advance(400 * 24 * time.Hour)
	t.purgeAll(100)
	second, err := t.a.Reserve(t.ctx, r)
	if err != nil || !second.Fresh {
		t.stop("P3", "reserving a key whose record is gone: fresh %v, %v", second.Fresh, err)
	}
	_, err = t.a.MaySubmit(t.ctx, old.ID, old.Token)
	t.wantClass("O1", "a submission check with the first life's token", err, pawl.ErrNotFound)
	old.Outcome = pawl.Succeeded(marker)
	_, err = t.a.Record(t.ctx, old)
	t.wantClass("O1", "an outcome with the first life's token", err, pawl.ErrNotFound)
	_, err = t.a.Settle(t.ctx, pawl.Evidence{ID: old.ID, Lock: r.Lock(), Outcome: old.Outcome, Token: old.Token})
	t.wantClass("M1", "evidence with the first life's token", err, pawl.ErrNotFound)
	t.same("O1", "a first life's statements", second.Operation)
}

// nonTerminalStays is C-C10: alarmed, never deleted [P3].
func nonTerminalStays(t *Trial) {
	open := t.admitted()
	waiting := t.admitted()
	mismatched := pawl.Evidence{
		ID: waiting.Operation.ID, Lock: pawl.Lock{}, Outcome: pawl.Succeeded("other"), Trusted: true, Source: "provider",
	}
	if got := t.settle(t.a, mismatched); got.Disposition != pawl.Mismatched {
		t.fail("M1", "a mismatched success: %s, want mismatch", got.Disposition)
	}
	t.advance(400 * 24 * time.Hour)
	r := t.purgeAll(100)
	if r.Operations != 0 || r.Attempts != 0 || r.Stale != 2 {
		t.fail("P3", "with two old non-terminal operations a purge deleted %d and %d log entries and counted %d stale; want 0, 0, 2",
			r.Operations, r.Attempts, r.Stale)
	}
	t.same("P3", "a purge", open.Operation)
	if op := t.get(waiting.Operation.ID); op.Status != pawl.StatusConflict {
		t.fail("P3", "the operation that waits for a person is %v, want conflict", op.Status)
	}
}

// boundedBatches: each batch deletes at most its limit and says that there is
// more [P4].
func boundedBatches(t *Trial) {
	const n = 7
	for range n {
		t.wantState(t.a, t.grant(), pawl.Revoked)
	}
	t.advance(t.timings.MaxGrantLifetime + t.timings.IssueSkew + t.leeway() + t.timings.PurgeMargin + time.Minute)
	if t.held() {
		return
	}
	left := n
	for left > 0 {
		r, err := t.a.Purge(t.ctx, pawl.PurgeBatch{Limit: 3})
		if err != nil {
			t.stop("P4", "a purge: %v", err)
		}
		if want := min(left, 3); r.Refusals != want || left > 3 != r.More {
			t.stop("P4", "a batch of 3 with %d left deleted %d and says more %v", left, r.Refusals, r.More)
		}
		if left > 3 && r.Overdue < 30*time.Second {
			t.fail("P4", "with work left the oldest is said to be %v overdue, want a minute", r.Overdue)
		}
		left -= r.Refusals
	}
}

// minuteOfRetention keeps settled operations for less than the life of a grant.
func minuteOfRetention(ts *pawl.Timings) {
	ts.RetainOperations, ts.RetainAttempts, ts.RetainResults, ts.KeyLifetime = time.Minute, time.Minute, time.Minute, time.Minute
}

// archivedOperation: the refusal record stands alone, without the second barrier
// that the operation was, and refuses whoever comes, the first admission's own
// retry included [P3].
func archivedOperation(t *Trial) {
	g := t.grant()
	first := t.admission(g)
	own := t.mustAdmit(t.a, first)
	if _, err := t.a.Record(t.ctx, pawl.Statement{ID: first.OperationID, Token: own.Owner.Token, Outcome: pawl.Succeeded(marker)}); err != nil {
		t.stop("O1", "an owner's success: %v", err)
	}
	t.advance(10 * time.Minute)
	if r := t.purgeAll(100); r.Operations != 1 || r.Refusals != 0 {
		t.fail("P3", "ten minutes after a settlement kept for one, a purge deleted %d operations and %d refusal records; want 1, 0",
			r.Operations, r.Refusals)
	}
	t.wantRefused("P3", t.a, t.admission(g), pawl.ReasonUsed)
	t.wantRefused("P3", t.a, first, pawl.ReasonUsed)
}

// layeredRetention keeps log entries a day, results two and operations four.
func layeredRetention(ts *pawl.Timings) {
	const day = 24 * time.Hour
	ts.KeyLifetime, ts.RetainAttempts, ts.RetainResults, ts.RetainOperations = day, day, 2*day, 4*day
}

// logsAndResults: what retention deletes leaves a typed entry [M9], and the
// record itself stays [P3].
func logsAndResults(t *Trial) {
	const day = 24 * time.Hour
	own := t.admitted()
	id, evidence := own.Operation.ID, pawl.Evidence{ID: own.Operation.ID, Lock: own.Operation.Lock, Trusted: true, Source: "provider"}
	t.settle(t.a, evidence)
	evidence.Outcome = pawl.Succeeded(marker)
	t.settle(t.a, evidence)
	before := len(t.log(id).Entries)
	t.advance(day + time.Minute)
	r := t.purgeAll(100)
	if r.Attempts != 2 || r.Results != 0 || r.Operations != 0 {
		t.fail("P3", "a day after settlement %d log entries, %d results, %d operations went; want 2, 0, 0", r.Attempts, r.Results, r.Operations)
	}
	t.wantPurgeNote(id, before)
	t.advance(day)
	if r = t.purgeAll(100); r.Results != 1 || r.Attempts != 0 {
		t.fail("P3", "two days after settlement %d results and %d log entries went; want 1, 0", r.Results, r.Attempts)
	}
	op := t.get(id)
	if len(op.Result) != 0 || op.Result == nil || op.Status != pawl.StatusSucceeded {
		t.fail("P3", "the record is %v with a result of %d bytes (nil: %v); want succeeded, empty, not nil", op.Status, len(op.Result), op.Result == nil)
	}
	if r = t.purgeAll(100); r.Attempts+r.Results+r.Operations != 0 {
		t.fail("P4", "a purge right after a purge deleted again: %+v", r)
	}
	if got := t.settle(t.a, evidence); got.Disposition != pawl.Duplicate {
		t.fail("M1", "the same success after its result went: %s, want duplicate", got.Disposition)
	}
	t.advance(2 * day)
	t.purgeAll(100)
	t.absent("P3", id)
}

func (t *Trial) wantPurgeNote(id pawl.OperationID, before int) {
	entries := t.log(id).Entries
	notes := 0
	for _, e := range entries {
		if e.Type == pawl.EntryPurge {
			notes++
		}
	}
	if notes != 1 || len(entries) >= before {
		t.fail("M9", "after a purge the log has %d entries (%d before), %d of them a purge's; want fewer, one", len(entries), before, notes)
	}
}

// clockStepsBack is C-C12: whatever was purged stays refused [P1].
func clockStepsBack(t *Trial) {
	used, revoked := t.grant(), t.grant()
	t.mustAdmit(t.a, t.admission(used))
	t.wantState(t.a, revoked, pawl.Revoked)
	t.advance(life + t.leeway() + t.timings.PurgeMargin + time.Second)
	t.purgeAll(100)
	back := t.timings.ClockStepBound
	if t.h.AnyStepBack {
		back = life
	}
	t.advance(-back)
	b := t.reopen()
	for _, g := range []pawl.Grant{used, revoked} {
		got, err := t.admit(b, t.admission(g))
		if err == nil {
			t.fail("P1", "a clock set back by %v after a purge: admitted (fresh %v), want refused", back, got.Fresh)
		}
	}
}
