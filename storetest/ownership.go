package storetest

import (
	"time"

	"github.com/pawl-go/pawl"
)

// stranger's ways to call as an owner, with the class each deserves [O1].
type impostor struct {
	what  string
	token pawl.OwnerToken
	class pawl.Class
}

func ownershipCases() []Case {
	return []Case{
		{ID: "C-A21", Title: "owner calls with every wrong token", Clauses: clauses("O1"), Needs: []Power{PowerClock}, run: wrongTokens},
		{ID: "C-D1", Title: "an owner sleeps past its lease and wakes", Clauses: clauses("O1 O2 O5"), Needs: []Power{PowerClock}, run: sleepingOwner},
		{ID: "O5-check", Title: "before lease and deadline, and while open", Clauses: clauses("O5"), Needs: []Power{PowerClock}, run: submissionChecks},
		{ID: "O5-exact", Title: "exactly at the end of lease and deadline", Clauses: clauses("O5 O3"), Needs: []Power{PowerFrozen}, run: exactLease},
		{ID: "O3-renewal", Title: "a renewal runs from now and never shortens", Clauses: clauses("O3 M9"), Needs: []Power{PowerClock}, run: renewals},
		{ID: "C-D21", Title: "endless renewal", Clauses: clauses("O3"), Needs: []Power{PowerClock}, run: endlessRenewal},
		{ID: "O1-record", Title: "the owner's door opens once", Clauses: clauses("O1"), run: ownersDoor},
		{ID: "E6-pause", Title: "an unknown outcome with a pause", Clauses: clauses("O2"), Needs: []Power{PowerClock}, run: pausedTakeover},
		{ID: "C-D11", Title: "evidence of failure under a live lease", Clauses: clauses("M1 M4"), Needs: []Power{PowerClock}, run: deferredFailure},
	}
}

// wrongTokens is C-A21: not found, fenced, not found, not found; and nothing is
// written, but for the log's note of a superseded owner's statement.
func wrongTokens(t *Trial) {
	a := t.admission(t.grant())
	first := t.mustAdmit(t.a, a)
	joined, err := t.admit(t.a, a)
	if err != nil {
		t.stop("A8", "the same admission again: %v", err)
	}
	t.advance(lease + time.Second)
	if n := len(t.takeOver(t.a, 1)); n != 1 {
		t.stop("O2", "%d operations taken over, want 1", n)
	}
	other := t.admitted()
	id := a.OperationID
	before := t.get(id)
	for _, w := range []impostor{
		{"another operation's token", other.Owner.Token, pawl.ErrNotFound},
		{"a superseded token", first.Owner.Token, pawl.ErrFenced},
		{"a joined attempt's token", joined.Owner.Token, pawl.ErrNotFound},
		{"no token", "", pawl.ErrNotFound},
		{"a forged token", first.Owner.Token[:11] + first.Owner.Token[12:] + "A", pawl.ErrNotFound},
	} {
		_, err := t.a.MaySubmit(t.ctx, id, w.token)
		t.wantClass("O1", "a submission check with "+w.what, err, w.class)
		_, err = t.a.Renew(t.ctx, pawl.Renewal{ID: id, Token: w.token, Lease: lease})
		t.wantClass("O1", "a renewal with "+w.what, err, w.class)
		t.same("O1", "a check and a renewal with "+w.what, before)
		_, err = t.a.Record(t.ctx, pawl.Statement{ID: id, Token: w.token, Outcome: pawl.Succeeded(marker)})
		t.wantClass("O1", "an outcome with "+w.what, err, w.class)
		if w.class == pawl.ErrFenced {
			t.wantLogged(id, before, pawl.Refused)
			before = t.get(id)
		}
		t.same("O1", "an outcome with "+w.what, before)
	}
	_, err = t.a.MaySubmit(t.ctx, pawl.NewOperationID(), first.Owner.Token)
	t.wantClass("O1", "a submission check of an operation that never was", err, pawl.ErrNotFound)
}

// wantLogged: a statement that changed nothing was counted and logged.
func (t *Trial) wantLogged(id pawl.OperationID, before pawl.Operation, d pawl.Disposition) {
	after := t.get(id)
	if after.Status != before.Status || after.Fence != before.Fence || string(after.Result) != string(before.Result) {
		t.fail("O1", "a refused statement moved the record from %v to %v", before.Status, after.Status)
	}
	entries := t.log(id).Entries
	if last := entries[len(entries)-1]; last.Disposition != d || after.Observations != before.Observations+1 {
		t.fail("M1", "the last entry is %s/%s and %d statements were counted, want %s and %d",
			last.Type, last.Disposition, after.Observations, d, before.Observations+1)
	}
}

// sleepingOwner is C-D1: who wakes may not create [O5].
func sleepingOwner(t *Trial) {
	first := t.admitted()
	id := first.Operation.ID
	t.advance(lease + time.Second)
	_, err := t.a.MaySubmit(t.ctx, id, first.Owner.Token)
	t.wantClass("O5", "an owner past its lease asks to create", err, pawl.ErrFenced, pawl.ReasonLeaseOver)
	_, err = t.a.Renew(t.ctx, pawl.Renewal{ID: id, Token: first.Owner.Token, Lease: lease})
	t.wantClass("O3", "an owner past its lease renews", err, pawl.ErrFenced, pawl.ReasonLeaseOver)
	taken := t.takeOver(t.open(), 1)
	if len(taken) != 1 || taken[0].Operation.ID != id || taken[0].Owner.Fence != first.Owner.Fence+1 {
		t.stop("O2", "recovery took %d operations, want this one with the next fence", len(taken))
	}
	if taken[0].Owner.Token == first.Owner.Token {
		t.fail("O1", "the new owner has the old one's token")
	}
	_, err = t.a.MaySubmit(t.ctx, id, first.Owner.Token)
	t.wantClass("O5", "a superseded owner asks to create", err, pawl.ErrFenced, pawl.ReasonSuperseded)
	if p, err := t.a.MaySubmit(t.ctx, id, taken[0].Owner.Token); err != nil || !p.Granted {
		t.fail("O5", "the new owner asks to create: granted %v, %v, want granted", p.Granted, err)
	}
}

func submissionChecks(t *Trial) {
	a := t.admission(t.grant())
	a.SubmissionWindow = 2 * lease
	own := t.mustAdmit(t.a, a)
	id, token := a.OperationID, own.Owner.Token
	p, err := t.a.MaySubmit(t.ctx, id, token)
	if err != nil || !p.Granted || p.Fence != own.Owner.Fence || !p.LeaseUntil.Equal(own.Owner.LeaseUntil) || !p.SubmitBy.Equal(own.Owner.SubmitBy) {
		t.fail("O5", "a fresh owner asks to create: %+v, %v, want granted with its own times", p, err)
	}
	if _, err := t.a.Record(t.ctx, pawl.Statement{ID: id, Token: token, Outcome: pawl.Unknown("timeout")}); err != nil {
		t.stop("O1", "an owner's unknown: %v", err)
	}
	if p, err := t.a.MaySubmit(t.ctx, id, token); err != nil || !p.Granted {
		t.fail("O5", "an owner of an unknown operation asks to create: granted %v, %v, want granted", p.Granted, err)
	}
	for range 2 {
		t.advance(lease - time.Second)
		if _, err := t.a.Renew(t.ctx, pawl.Renewal{ID: id, Token: token, Lease: lease, Beyond: lease}); err != nil {
			t.stop("O3", "a renewal within the lease: %v", err)
		}
	}
	t.advance(3 * time.Second)
	_, err = t.a.MaySubmit(t.ctx, id, token)
	t.wantClass("O5", "past the submission deadline", err, pawl.ErrFenced, pawl.ReasonDeadlineOver)

	done := t.admitted()
	if _, err := t.a.Record(t.ctx, pawl.Statement{ID: done.Operation.ID, Token: done.Owner.Token, Outcome: pawl.Failed("declined")}); err != nil {
		t.stop("O1", "an owner's failure: %v", err)
	}
	_, err = t.a.MaySubmit(t.ctx, done.Operation.ID, done.Owner.Token)
	t.wantClass("O5", "after a final outcome", err, pawl.ErrFenced)
	clash := t.admitted()
	t.settle(t.a, pawl.Evidence{ID: clash.Operation.ID, Outcome: pawl.Succeeded("other"), Trusted: true, Source: "provider"})
	_, err = t.a.MaySubmit(t.ctx, clash.Operation.ID, clash.Owner.Token)
	t.wantClass("M8", "in conflict", err, pawl.ErrFenced, pawl.ReasonNotOpen)
}

// exactLease: a lease and a deadline are over at their last moment, not after.
func exactLease(t *Trial) {
	own := t.admitted()
	a := t.admission(t.grant())
	a.SubmissionWindow = lease - 1*time.Microsecond
	short := t.mustAdmit(t.a, a)
	t.advance(lease - time.Microsecond)
	if p, err := t.a.MaySubmit(t.ctx, own.Operation.ID, own.Owner.Token); err != nil || !p.Granted {
		t.fail("O5", "a tick before the lease ends: granted %v, %v, want granted", p.Granted, err)
	}
	_, err := t.a.MaySubmit(t.ctx, short.Operation.ID, short.Owner.Token)
	t.wantClass("O5", "exactly at the submission deadline", err, pawl.ErrFenced, pawl.ReasonDeadlineOver)
	if n := len(t.takeOver(t.a, 10)); n != 0 {
		t.fail("O2", "a tick before the lease ends %d operations were taken over, want 0", n)
	}
	t.advance(time.Microsecond)
	_, err = t.a.MaySubmit(t.ctx, own.Operation.ID, own.Owner.Token)
	t.wantClass("O5", "exactly at the end of the lease", err, pawl.ErrFenced, pawl.ReasonLeaseOver)
	_, err = t.a.Renew(t.ctx, pawl.Renewal{ID: own.Operation.ID, Token: own.Owner.Token, Lease: lease})
	t.wantClass("O3", "a renewal exactly at the end of the lease", err, pawl.ErrFenced, pawl.ReasonLeaseOver)
	if n := len(t.takeOver(t.a, 10)); n != 2 {
		t.fail("O2", "exactly at the end of the leases %d operations were taken over, want 2", n)
	}
}

// renewals: from the store's time at the write; a renewal past a second lease
// is logged [M9].
func renewals(t *Trial) {
	own := t.admitted()
	id, token := own.Operation.ID, own.Owner.Token
	o, err := t.a.Renew(t.ctx, pawl.Renewal{ID: id, Token: token, Lease: lease - 10*time.Second})
	if err != nil || o.LeaseUntil.Before(own.Owner.LeaseUntil) {
		t.fail("O3", "a shorter renewal ends at %v (%v), want not before %v", o.LeaseUntil, err, own.Owner.LeaseUntil)
	}
	t.advance(lease / 2)
	before := t.now()
	o, err = t.a.Renew(t.ctx, pawl.Renewal{ID: id, Token: token, Lease: lease})
	if err != nil || o.LeaseUntil.Before(before.Add(lease)) || o.LeaseUntil.After(t.now().Add(lease)) {
		t.fail("O3", "a renewal at %v ends at %v (%v), want %v later", before, o.LeaseUntil, err, lease)
	}
	if o.Fence != own.Owner.Fence || o.Token != token {
		t.fail("O3", "a renewal changed fence or token")
	}
	if op := t.get(id); !op.LeaseUntil.Equal(o.LeaseUntil) {
		t.fail("O3", "the record's lease ends at %v, the renewed owner's at %v", op.LeaseUntil, o.LeaseUntil)
	}
	count := func() (n int) {
		for _, e := range t.log(id).Entries {
			if e.Type == pawl.EntryRenewal {
				n++
			}
		}
		return n
	}
	if n := count(); n != 0 {
		t.fail("M9", "%d renewals are in the log before a second lease was passed, want 0", n)
	}
	for range 3 {
		t.advance(lease - time.Second)
		if _, err := t.a.Renew(t.ctx, pawl.Renewal{ID: id, Token: token, Lease: lease}); err != nil {
			t.stop("O3", "a renewal within the lease: %v", err)
		}
	}
	if count() == 0 {
		t.fail("M9", "no renewal is in the log although a second lease was passed")
	}
}

// endlessRenewal is C-D21: it ends at the submission deadline + what the caller
// says is effect timeout + margin.
func endlessRenewal(t *Trial) {
	const beyond = 12 * time.Second
	own := t.admitted()
	last := own.Owner.SubmitBy.Add(beyond)
	for range 100 {
		o, err := t.a.Renew(t.ctx, pawl.Renewal{ID: own.Operation.ID, Token: own.Owner.Token, Lease: lease, Beyond: beyond})
		if err != nil {
			t.wantClass("O3", "a renewal without end", err, pawl.ErrFenced, pawl.ReasonLeaseOver)
			if t.now().Before(last) {
				t.fail("O3", "renewals ended at %v, want %v", t.now(), last)
			}
			return
		}
		if o.LeaseUntil.After(last) {
			t.stop("O3", "a renewed lease ends at %v, past %v", o.LeaseUntil, last)
		}
		t.advance(lease / 2)
	}
	t.fail("O3", "after %v renewals go on", 100*lease/2)
}

// ownersDoor: a final status is never touched through it, and only an owner by
// takeover hands over to a person.
func ownersDoor(t *Trial) {
	for _, final := range []pawl.Outcome{pawl.Succeeded(marker), pawl.Failed("declined")} {
		own := t.admitted()
		id := own.Operation.ID
		say := func(o pawl.Outcome) error {
			_, err := t.a.Record(t.ctx, pawl.Statement{ID: id, Token: own.Owner.Token, Outcome: o})
			return err
		}
		t.wantClass("O1", "the first owner hands over to a person", say(pawl.NeedsReconciliation("?")), pawl.ErrInvalid)
		if err := say(pawl.Unknown("timeout")); err != nil {
			t.fail("O1", "an owner's unknown: %v", err)
		}
		if err := say(final); err != nil {
			t.fail("O1", "an owner's %v: %v", final, err)
		}
		before := t.get(id)
		if before.Status.String() != final.Verdict().String() || before.SettledAt.IsZero() || string(before.Result) != string(final.Result()) {
			t.fail("O1", "after %v the record is %v, settled at %v, %d bytes", final, before.Status, before.SettledAt, len(before.Result))
		}
		for _, later := range []pawl.Outcome{pawl.Unknown("late"), pawl.Failed("late"), pawl.Succeeded("late"), final} {
			t.wantClass("O1", "an owner's second word", say(later), pawl.ErrFenced)
			t.wantLogged(id, before, pawl.Refused)
			before = t.get(id)
		}
	}
}

// pausedTakeover: no takeover before the pause is over, also without a lease.
func pausedTakeover(t *Trial) {
	own := t.admitted()
	st := pawl.Statement{ID: own.Operation.ID, Token: own.Owner.Token, Outcome: pawl.Unknown("timeout"), Pause: time.Minute}
	if _, err := t.a.Record(t.ctx, st); err != nil {
		t.stop("O1", "an unknown with a pause: %v", err)
	}
	t.advance(time.Minute - time.Second)
	if n := len(t.takeOver(t.a, 1)); n != 0 {
		t.fail("O2", "within the pause %d operations were taken over, want 0", n)
	}
	t.advance(2 * time.Second)
	if n := len(t.takeOver(t.a, 1)); n != 1 {
		t.fail("O2", "after the pause %d operations were taken over, want 1", n)
	}
}

// deferredFailure is C-D11: nothing changes until the lease is over; the next
// owner is told, and the first evidence after the lease applies it [M4].
func deferredFailure(t *Trial) {
	fail := func(own pawl.Admitted) pawl.Evidence {
		return pawl.Evidence{ID: own.Operation.ID, Lock: own.Operation.Lock, Outcome: pawl.Failed("declined"), Trusted: true, Source: "provider"}
	}
	told, spoke, alone := t.admitted(), t.admitted(), t.admitted()
	for _, own := range []pawl.Admitted{told, spoke, alone} {
		got := t.settle(t.a, fail(own))
		if got.Disposition != pawl.Deferred || got.Operation.Status != pawl.StatusAdmitted || got.Operation.Fence != own.Owner.Fence {
			t.fail("M1", "failure under another's live lease: %s, %v, want deferred, admitted", got.Disposition, got.Operation.Status)
		}
		if p, err := t.a.MaySubmit(t.ctx, own.Operation.ID, own.Owner.Token); err != nil || !p.Granted {
			t.fail("M1", "the owner after a deferred failure may create: %v, %v, want granted: only the owner decides", p.Granted, err)
		}
	}
	op, err := t.a.Record(t.ctx, pawl.Statement{ID: spoke.Operation.ID, Token: spoke.Owner.Token, Outcome: pawl.Succeeded(marker)})
	if err != nil || op.Status != pawl.StatusSucceeded || op.Deferred != nil {
		t.fail("M4", "the owner's success after a deferred failure: %v, %v, want succeeded", op.Status, err)
	}
	t.advance(lease + time.Second)
	late := fail(alone)
	late.Outcome = pawl.Unknown("?")
	t.settle(t.a, late)
	if op := t.get(alone.Operation.ID); op.Status != pawl.StatusFailed || op.Deferred != nil {
		t.fail("M4", "after the lease the first evidence left the record %v, want failed", op.Status)
	}
	taken := t.takeOver(t.a, 10)
	if len(taken) != 1 || taken[0].Operation.ID != told.Operation.ID || taken[0].Operation.Deferred == nil || taken[0].Operation.Deferred.Reason != "declined" {
		t.fail("M1", "recovery took %d operations; want the one with its deferred failure to read first", len(taken))
	}
}
