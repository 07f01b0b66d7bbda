package storetest

import (
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// admit asks and holds the answer to what is true of every answer: an error
// comes with nothing and is of a class [A6, A7]; an answer is about the operation
// and the lock that were asked for [A8]; only a fresh one makes an owner [O1].
func (t *Trial) admit(s pawl.Store, a pawl.Admission) (pawl.Admitted, error) {
	got, err := s.Admit(t.ctx, a)
	t.checkAdmitted(got, err, a.NewOperation(got.Operation.CreatedAt), a.Lease)
	return got, err
}

// reserve is admit for a reservation.
func (t *Trial) reserve(s pawl.Store, r pawl.Reservation) (pawl.Admitted, error) {
	got, err := s.Reserve(t.ctx, r)
	t.checkAdmitted(got, err, r.NewOperation(got.Operation.CreatedAt), r.Lease)
	return got, err
}

func (t *Trial) checkAdmitted(got pawl.Admitted, err error, want pawl.Operation, lease time.Duration) {
	t.clean(err)
	if err != nil {
		if diff := differ(pawl.Admitted{}, got); diff != "" {
			t.fail("A6", "an error (%v) came with an answer:\n%s", err, diff)
		}
		if !ofClass(err, pawl.ErrInvalid, pawl.ErrRefused, pawl.ErrNotConfirmed, pawl.ErrMismatch) {
			t.fail("A7", "an admission ended in %v, want malformed, refused, mismatch or not confirmed", err)
		}
		return
	}
	op := got.Operation
	if op.ID != want.ID || op.Lock != want.Lock || op.Grant != want.Grant {
		t.fail("A8", "the answer is about operation %s of grant %v, want %s of %v with the lock asked for",
			op.ID, op.Grant, want.ID, want.Grant)
	}
	if !got.Fresh {
		if got.Owner.Token == "" || got.Owner.Fence != 0 {
			t.fail("O1", "a joined attempt got fence %d (a token: %v), want fence 0 and a token of its own",
				got.Owner.Fence, got.Owner.Token != "")
		}
		return
	}
	o := got.Owner
	// A store may read its clock once more after a wait: the times are checked apart.
	want.OwnedSince, want.LeaseUntil, want.SubmitBy = op.OwnedSince, op.LeaseUntil, op.SubmitBy
	if diff := differ(want, op); diff != "" {
		t.fail("A2", "the new operation differs from what was asked for (-want +got):\n%s", diff)
	}
	if o.Token == "" || o.Fence != pawl.FirstFence || !o.LeaseUntil.Equal(op.LeaseUntil) || !o.SubmitBy.Equal(op.SubmitBy) {
		t.fail("O1", "the new owner has fence %d, lease until %v, submission by %v; the record says %d, %v, %v",
			o.Fence, o.LeaseUntil, o.SubmitBy, op.Fence, op.LeaseUntil, op.SubmitBy)
	}
	if d := o.LeaseUntil.Sub(o.AsOf); d <= 0 || d > lease {
		t.fail("O1", "a lease of %v was asked for and %v given", lease, d)
	}
}

func ofClass(err error, classes ...pawl.Class) bool {
	for _, c := range classes {
		if errors.Is(err, c) {
			return true
		}
	}
	return false
}

// wantRefused reports a violation of clause where an admission was not refused
// for one of the reasons, or left something behind [A4].
func (t *Trial) wantRefused(clause string, s pawl.Store, a pawl.Admission, reasons ...pawl.Reason) {
	got, err := t.admit(s, a)
	if err == nil {
		t.fail(clause, "admitted (fresh %v), want refused %v", got.Fresh, reasons)
		return
	}
	t.wantClass(clause, "an admission", err, pawl.ErrRefused, reasons...)
}

// wantJoined reports a violation where an admission is not answered with the
// record of the same operation, without ownership [A8].
func (t *Trial) wantJoined(clause string, s pawl.Store, a pawl.Admission) {
	got, err := t.admit(s, a)
	if err != nil || got.Fresh {
		t.fail(clause, "the same admission again: fresh %v, error %v, want already admitted", got.Fresh, err)
	}
}

// settle speaks at the evidence door and requires an answer.
func (t *Trial) settle(s pawl.Store, e pawl.Evidence) pawl.Settlement {
	got, err := s.Settle(t.ctx, e)
	if err != nil {
		t.clean(err)
		t.fail("M1", "evidence (%v): %v, want a disposition", e.Outcome, err)
	}
	return got
}

// takeOver takes over the trial's kind and requires an answer.
func (t *Trial) takeOver(s pawl.Store, limit int) []pawl.TakenOver {
	taken, err := s.TakeOver(t.ctx, pawl.TakeOver{
		Leases: map[pawl.Kind]time.Duration{t.kind: longLease}, Limit: limit, By: "recovery",
	})
	if err != nil {
		t.clean(err)
		t.fail("O2", "a takeover: %v", err)
	}
	for _, k := range taken {
		if k.Owner.Fence != k.Operation.Fence || k.Owner.Token == "" || !k.Owner.LeaseUntil.Equal(k.Operation.LeaseUntil) {
			t.fail("O2", "a new owner has fence %d and a lease until %v, its record %d and %v",
				k.Owner.Fence, k.Owner.LeaseUntil, k.Operation.Fence, k.Operation.LeaseUntil)
		}
	}
	return taken
}
