package storetest

import (
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

func revocationCases() []Case {
	return []Case{
		{ID: "R1-states", Title: "revoked, again, admitted, expired", Clauses: clauses("R1"), Needs: []Power{PowerClock}, run: revocationStates},
		{ID: "C-C1", Title: "revoke and admit at once", Clauses: clauses("R1 A2"), run: revokeAndAdmit},
		{ID: "C-C2", Title: "revoke between the claim and the effect", Clauses: clauses("R1"), run: revokeAfterClaim},
		{ID: "C-C3", Title: "no proof of issue", Clauses: clauses("R2"), run: revokeWithoutProof},
		{ID: "C-C4", Title: "used and revoked, then every instance anew", Clauses: clauses("R1 A1"), run: refusalsAfterReopening},
		{ID: "A3-restart", Title: "used and revoked, then everything restarted", Clauses: clauses("A3 R1"), Needs: []Power{PowerRestart}, run: refusalsAfterRestart},
		{ID: "R3-two-expiries", Title: "one key as a short row and as a long token", Clauses: clauses("R1 R3 P1"), Needs: []Power{PowerClock}, run: revokeTwoExpiries},
		{ID: "R3-unknown", Title: "a revocation whose expiry nobody knows", Clauses: clauses("R3 P1 P2"), Needs: []Power{PowerClock}, run: retainedFromTheWrite},
	}
}

func (t *Trial) revoke(s pawl.Store, g pawl.Grant) pawl.RevocationState {
	state, err := s.Revoke(t.ctx, pawl.Revocation{Key: g.Key, Proof: &g, By: "auditor", Reason: "test"})
	if err != nil {
		t.clean(err)
		t.fail("R1", "a revocation with proof: %v", err)
	}
	return state
}

// revokeTwoExpiries: a row that is over does not keep a revocation from the token
// that lives under the same key, nor end its refusal early [R3].
func revokeTwoExpiries(t *Trial) {
	short := t.issuance(pawl.FormStored)
	short.Lifetime = time.Minute
	for _, late := range []bool{false, true} {
		short.RequestID, short.GrantID = pawl.NewOperationID().String(), pawl.NewOperationID().String()
		row := t.issue(short)
		token := t.grantUntil(t.now().Add(10 * time.Minute).Truncate(time.Second))
		token.Key = row.Key
		if late {
			t.advance(time.Minute + t.leeway() + time.Second)
		}
		t.wantState(t.a, token, pawl.Revoked)
		if !late {
			t.advance(time.Minute + t.leeway() + t.timings.PurgeMargin + time.Minute)
			t.purgeAll(100)
		}
		t.wantRefused("R1", t.a, t.admission(token), pawl.ReasonRevoked)
	}
}

func (t *Trial) wantState(s pawl.Store, g pawl.Grant, want pawl.RevocationState) {
	if state := t.revoke(s, g); state != want {
		t.fail("R1", "revoking answers %q, want %q", state, want)
	}
}

// revocationStates: the four answers; the first revocation's who and why stay.
func revocationStates(t *Trial) {
	unused, used := t.grant(), t.grant()
	op := t.mustAdmit(t.a, t.admission(used)).Operation
	t.wantState(t.a, unused, pawl.Revoked)
	t.wantState(t.open(), unused, pawl.AlreadyRevoked)
	t.wantState(t.a, used, pawl.AlreadyAdmitted)
	t.same("R1", "revoking after admission", op)
	a := t.admission(unused)
	t.wantRefused("R1", t.a, a, pawl.ReasonRevoked)
	t.absent("R1", a.OperationID)
	stored := t.issue(t.issuance(pawl.FormStored))
	if state, err := t.a.Revoke(t.ctx, pawl.Revocation{Key: stored.Key, By: "auditor"}); err != nil || state != pawl.Revoked {
		t.fail("R2", "revoking a stored grant without a token: %q, %v, want revoked", state, err)
	}
	t.wantRefused("R1", t.a, t.admission(stored), pawl.ReasonRevoked)
	late := t.grant()
	t.advance(life + t.leeway() + time.Second)
	t.wantState(t.a, late, pawl.GrantExpired)
	t.wantState(t.a, late, pawl.GrantExpired)
	t.wantRefused("A4", t.a, t.admission(late), pawl.ReasonExpired)
}

// revokeAndAdmit is C-C1: whichever commits first wins [R1]. A third of the
// rounds start together, the others with one or the other ahead, so that both
// win at times however long each takes.
func revokeAndAdmit(t *Trial) {
	b := t.open()
	var revoked, admitted int
	for round := range max(t.sizes.Rounds, 6) {
		g := t.grant()
		a := t.admission(g)
		var state pawl.RevocationState
		var got pawl.Admitted
		var err error
		both := []func(){
			func() { state = t.revoke(b, g) },
			func() { got, err = t.admit(t.a, a) },
		}
		switch round % 3 {
		case 0:
			race(2, func(i int) { both[i]() })
		default:
			first, second := both[round%3-1], both[2-round%3]
			var done sync.WaitGroup
			ahead := make(chan struct{})
			done.Go(func() {
				if round%2 == 0 {
					close(ahead) // started
					first()
					return
				}
				first()
				close(ahead) // finished
			})
			<-ahead
			second()
			done.Wait()
		}
		switch {
		case err == nil && got.Fresh && state == pawl.AlreadyAdmitted:
			admitted++
		case err != nil && state == pawl.Revoked:
			t.wantClass("R1", "the admission of a revoked grant", err, pawl.ErrRefused, pawl.ReasonRevoked)
			t.absent("R1", a.OperationID)
			revoked++
		default:
			t.fail("R1", "revoking at once with admitting answers %q, admitting fresh %v, error %v; want exactly one to win", state, got.Fresh, err)
		}
		again := t.admission(g)
		t.wantRefused("R1", t.a, again, pawl.ReasonRevoked, pawl.ReasonUsed)
	}
	if revoked == 0 || admitted == 0 {
		t.fail("R1", "revocation won %d rounds and admission %d: want both at times", revoked, admitted)
	}
}

// revokeAfterClaim is C-C2: the operation goes on.
func revokeAfterClaim(t *Trial) {
	g := t.grant()
	own := t.mustAdmit(t.a, t.admission(g))
	t.wantState(t.open(), g, pawl.AlreadyAdmitted)
	if p, err := t.a.MaySubmit(t.ctx, own.Operation.ID, own.Owner.Token); err != nil || !p.Granted {
		t.fail("R1", "the owner asks to create after a revocation: granted %v, %v, want granted", p.Granted, err)
	}
	op, err := t.a.Record(t.ctx, pawl.Statement{ID: own.Operation.ID, Token: own.Owner.Token, Outcome: pawl.Succeeded(marker)})
	if err != nil || op.Status != pawl.StatusSucceeded {
		t.fail("R1", "the owner's success after a revocation: %v, %v, want succeeded", op.Status, err)
	}
}

// revokeWithoutProof is C-C3: nothing is written [R2].
func revokeWithoutProof(t *Trial) {
	g := t.grant()
	_, err := t.a.Revoke(t.ctx, pawl.Revocation{Key: g.Key, By: "auditor"})
	t.wantClass("R2", "a revocation without proof", err, pawl.ErrRefused, pawl.ReasonNotProven)
	other := t.grant()
	other.Key = pawl.GrantKey{Issuer: t.issuer + "-two", ID: g.Key.ID}
	_, err = t.a.Revoke(t.ctx, pawl.Revocation{Key: g.Key, Proof: &other, By: "auditor"})
	t.wantClass("R2", "a revocation with another issuer's token", err, pawl.ErrInvalid)
	if got, err := t.admit(t.a, t.admission(g)); err != nil || !got.Fresh {
		t.fail("R2", "after refused revocations the grant: fresh %v, error %v, want admitted", got.Fresh, err)
	}
	_, err = t.a.Revoke(t.ctx, pawl.Revocation{Key: g.Key, By: "auditor"})
	t.wantClass("R2", "a revocation without proof of a used grant", err, pawl.ErrRefused, pawl.ReasonNotProven)
}

func refusalsAfterReopening(t *Trial) {
	t.refusalsOutlive(func() { t.reopen() })
}

// refusalsAfterRestart is C-C4: an acknowledged write survives what the store
// says it survives [A3].
func refusalsAfterRestart(t *Trial) {
	t.refusalsOutlive(func() {
		for _, s := range t.opened {
			t.must(s.Close())
		}
		t.opened = nil
		t.must(t.d.Restart(t.ctx))
		t.a = t.open()
	})
}

func (t *Trial) refusalsOutlive(renew func()) {
	used, revoked, stored := t.grant(), t.grant(), t.issue(t.issuance(pawl.FormStored))
	own := t.mustAdmit(t.a, t.admission(used))
	t.mustAdmit(t.a, t.admission(stored))
	t.wantState(t.a, revoked, pawl.Revoked)
	renew()
	t.wantRefused("A1", t.a, t.admission(used), pawl.ReasonUsed)
	t.wantRefused("A1", t.a, t.admission(stored), pawl.ReasonUsed)
	t.wantRefused("R1", t.a, t.admission(revoked), pawl.ReasonRevoked)
	t.same("A1", "a restart", own.Operation)
	f, err := t.a.Check(t.ctx)
	t.must(err)
	if f.StoreID != t.facts.StoreID || f.Realm != t.facts.Realm {
		t.fail("A1", "after a restart the store is %s of %s, want %s of %s", f.StoreID, f.Realm, t.facts.StoreID, t.facts.Realm)
	}
	if p, err := t.a.MaySubmit(t.ctx, own.Operation.ID, own.Owner.Token); err != nil || !p.Granted {
		t.fail("O1", "the owner's token after a restart: granted %v, %v, want granted", p.Granted, err)
	}
}

// retainedFromTheWrite: without a trusted expiry the refusal is kept from its
// write for as long as any grant may live, and is then deleted [R3, P1, P2].
func retainedFromTheWrite(t *Trial) {
	p := t.timings
	g := t.grant()
	state, err := t.a.Revoke(t.ctx, pawl.Revocation{Key: g.Key, ProvenElsewhere: true, By: "auditor"})
	if err != nil || state != pawl.Revoked {
		t.stop("R2", "a revocation proven elsewhere: %q, %v, want revoked", state, err)
	}
	t.advance(p.MaxGrantLifetime + p.IssueSkew + t.leeway() + p.PurgeMargin - time.Minute)
	t.purgeAll(100)
	longest := t.grantUntil(t.now().Add(life))
	longest.Key = g.Key
	t.wantRefused("R3", t.a, t.admission(longest), pawl.ReasonRevoked)
	t.advance(2 * time.Minute)
	if f, err := t.a.Check(t.ctx); err != nil || f.PurgeHeld != "" {
		return // and says so [P2]
	}
	if r := t.purgeAll(100); r.Refusals != 1 {
		t.fail("P2", "past its retention %d refusal records were deleted, want 1", r.Refusals)
	}
}
