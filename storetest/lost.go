package storetest

import (
	"context"
	"runtime"
	"time"

	"github.com/pawl-go/pawl"
)

func lostAnswerCases() []Case {
	return []Case{
		{ID: "C-A8", Title: "the admission's answer is lost", Clauses: clauses("A6 A8"), Needs: []Power{PowerLossy}, run: lostAdmission},
		{
			ID: "A8-expired", Title: "lost, and asked again after the expiry", Clauses: clauses("A4 S1"),
			Needs: []Power{PowerLossy, PowerClock}, run: lostThenExpired,
		},
		{ID: "C-A9", Title: "the caller cancels at every point", Clauses: clauses("A3 A6"), run: cancelEverywhere},
		{ID: "A9-reserve", Title: "the caller cancels a reservation at every point", Clauses: clauses("A6 B1"), run: cancelReservation},
		{ID: "C-A25", Title: "the answer of an issue is lost", Clauses: clauses("A6"), Needs: []Power{PowerLossy}, run: lostIssue},
		{ID: "A6-lost", Title: "the answers of other calls are lost", Clauses: clauses("A6 M4"), Needs: []Power{PowerLossy}, run: otherAnswersLost},
		{ID: "A6-partition", Title: "an instance cannot reach the store", Clauses: clauses("A6"), Needs: []Power{PowerPartition}, run: partitioned},
	}
}

// lossy opens an instance that can lose its next answer.
func (t *Trial) lossy() (pawl.Store, func()) {
	s, lose, err := t.d.OpenLossy(t.ctx)
	t.must(err)
	t.opened = append(t.opened, s)
	return s, lose
}

// lostAdmission is C-A8: not confirmed and nothing runs [A6]; the same id tells,
// another is refused [A8].
func lostAdmission(t *Trial) {
	s, lose := t.lossy()
	g := t.grant()
	a := t.admission(g)
	lose()
	got, err := t.admit(s, a)
	t.wantClass("A6", "an admission whose answer was lost", err, pawl.ErrNotConfirmed)
	if got.Fresh || got.Owner.Token != "" {
		t.fail("A6", "a lost answer made an owner")
	}
	if _, err := t.a.MaySubmit(t.ctx, a.OperationID, got.Owner.Token); err == nil {
		t.fail("A6", "something may run after a lost answer")
	}
	t.wantRefused("A8", s, t.admission(g), pawl.ReasonUsed)
	t.wantJoined("A8", s, a)
	t.wantJoined("A8", t.open(), a)
}

// lostThenExpired is the rest of C-A8: refused by the deadline [A4], while the
// caller still reads the operation [S1].
func lostThenExpired(t *Trial) {
	s, lose := t.lossy()
	a := t.admission(t.grant())
	lose()
	_, err := t.admit(s, a)
	t.wantClass("A6", "an admission whose answer was lost", err, pawl.ErrNotConfirmed)
	t.advance(2 * life)
	t.wantRefused("A4", s, a, pawl.ReasonExpired)
	if _, err := s.Get(t.ctx, a.OperationID, pawl.AsCaller(a.Caller)); err != nil {
		t.fail("S1", "the caller's status after the expiry: %v, want the record", err)
	}
}

// cancelEverywhere is C-A9. Whatever was answered, the same call again tells
// the truth: a confirmed admission is joined, and an unconfirmed one is admitted
// once, now or before [A3, A6].
func cancelEverywhere(t *Trial) {
	g := t.grant
	s := t.open()
	t.cancelled(func(ctx context.Context) (func() (pawl.Admitted, error), pawl.Admitted, error) {
		a := t.admission(g())
		got, err := s.Admit(ctx, a)
		t.checkAdmitted(got, err, a.NewOperation(got.Operation.CreatedAt), a.Lease)
		return func() (pawl.Admitted, error) { return t.admit(s, a) }, got, err
	})
}

// cancelReservation is the same for a reservation [B1].
func cancelReservation(t *Trial) {
	s := t.open()
	t.cancelled(func(ctx context.Context) (func() (pawl.Admitted, error), pawl.Admitted, error) {
		r := t.reservation()
		got, err := s.Reserve(ctx, r)
		t.checkAdmitted(got, err, r.NewOperation(got.Operation.CreatedAt), r.Lease)
		return func() (pawl.Admitted, error) { return t.reserve(s, r) }, got, err
	})
}

// cancelled makes one call under contexts that end in every way: before it, at
// its n-th look at the context, past a deadline, and from another goroutine.
func (t *Trial) cancelled(call func(context.Context) (again func() (pawl.Admitted, error), got pawl.Admitted, err error)) {
	check := func(how string, ctx context.Context) {
		again, got, err := call(ctx)
		if err != nil {
			t.wantClass("A6", "cancelled "+how, err, pawl.ErrNotConfirmed)
		}
		second, errAgain := again()
		switch {
		case errAgain != nil:
			t.fail("A6", "cancelled %s (%v) and asked again: %v, want admitted or already admitted", how, err, errAgain)
		case got.Fresh && second.Fresh:
			t.fail("A6", "cancelled %s: confirmed, and admitted once more when asked again", how)
		}
		third, errThird := again()
		if errThird != nil || third.Fresh {
			t.fail("A6", "cancelled %s and asked a third time: fresh %v, error %v, want already admitted", how, third.Fresh, errThird)
		}
	}
	for looks := range 12 {
		check("at a look", newFuse(t.ctx, looks))
	}
	past, stop := context.WithDeadline(t.ctx, time.Unix(1, 0))
	check("by a deadline that was over", past)
	stop()
	for i := range min(t.sizes.Rounds, 100) {
		ctx, cancel := context.WithCancel(t.ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range i * 4 {
				runtime.Gosched()
			}
			cancel()
		}()
		check("from another goroutine", ctx)
		<-done
	}
}

// lostIssue is C-A25: one grant.
func lostIssue(t *Trial) {
	s, lose := t.lossy()
	i := t.issuance(pawl.FormStored)
	lose()
	_, err := s.Issue(t.ctx, i)
	t.wantClass("A6", "an issue whose answer was lost", err, pawl.ErrUnavailable)
	again := i
	again.GrantID = pawl.NewOperationID().String()
	first, err := s.Issue(t.ctx, again)
	if err != nil || first.Grant.Key.ID != i.GrantID || !first.Again {
		t.fail("A6", "the issue again: grant %s, again %v, error %v; want the first one, %s",
			first.Grant.Key.ID, first.Again, err, i.GrantID)
	}
}

// otherAnswersLost: each of these calls may be repeated, and the record tells [M4].
func otherAnswersLost(t *Trial) {
	s, lose := t.lossy()
	owner := t.admitted()
	id := owner.Operation.ID
	st := pawl.Statement{ID: id, Token: owner.Owner.Token, Outcome: pawl.Succeeded(marker)}
	lose()
	_, err := s.Record(t.ctx, st)
	t.wantClass("A6", "an outcome whose answer was lost", err, pawl.ErrUnavailable)
	if op := t.get(id); op.Status != pawl.StatusSucceeded {
		t.fail("M4", "after a lost answer the record is %v, want succeeded", op.Status)
	}
	_, err = s.Record(t.ctx, st)
	t.wantClass("O1", "the outcome again", err, pawl.ErrFenced)
	ev := pawl.Evidence{ID: id, Lock: owner.Operation.Lock, Outcome: pawl.Succeeded(marker), Token: owner.Owner.Token}
	lose()
	_, err = s.Settle(t.ctx, ev)
	t.wantClass("A6", "evidence whose answer was lost", err, pawl.ErrUnavailable)
	if got := t.settle(s, ev); got.Disposition != pawl.Duplicate {
		t.fail("M4", "the evidence again: %s, want duplicate", got.Disposition)
	}
	r := pawl.Revocation{Key: t.grant().Key, ProvenElsewhere: true, By: "auditor", Reason: "test"}
	lose()
	_, err = s.Revoke(t.ctx, r)
	t.wantClass("A6", "a revocation whose answer was lost", err, pawl.ErrUnavailable)
	if state, err := s.Revoke(t.ctx, r); err != nil || state != pawl.AlreadyRevoked {
		t.fail("R1", "the revocation again: %q, %v, want already revoked", state, err)
	}
}

// partitioned: nothing is admitted and nothing is called used while the store
// cannot be asked [A6]; the same call works when it can.
func partitioned(t *Trial) {
	s := t.open()
	g := t.grant()
	a := t.admission(g)
	heal, err := t.d.Partition(t.ctx, s)
	t.must(err)
	ctx, cancel := context.WithTimeout(t.ctx, 5*time.Second)
	got, err := s.Admit(ctx, a)
	cancel()
	t.checkAdmitted(got, err, a.NewOperation(got.Operation.CreatedAt), a.Lease)
	t.wantClass("A6", "an admission without the store", err, pawl.ErrNotConfirmed)
	ctx, cancel = context.WithTimeout(t.ctx, 5*time.Second)
	_, err = s.Get(ctx, a.OperationID, pawl.AsOperator())
	cancel()
	t.wantClass("A6", "a status without the store", err, pawl.ErrUnavailable)
	t.must(heal())
	if got, err := t.admit(s, a); err != nil || !got.Fresh && t.get(a.OperationID).ID != a.OperationID {
		t.fail("A6", "the admission once the store is back: %v, want admitted", err)
	}
	t.wantRefused("A2", t.a, t.admission(g), pawl.ReasonUsed)
}
