package storetest

import (
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

func reservationCases() []Case {
	return []Case{
		{ID: "B1-join", Title: "the same lock joins, another is a conflict", Clauses: clauses("B1 O1"), run: joinReservation},
		{ID: "C-E8", Title: "another fingerprint while in flight", Clauses: clauses("B1"), run: mismatchInFlight},
		{ID: "B1-final", Title: "a settled reservation is joined with its result", Clauses: clauses("B1 B3"), run: joinSettled},
		{
			ID: "B3-lifetime", Title: "a key is kept for its lifetime, counted from settlement", Clauses: clauses("B3 P3"),
			Needs: []Power{PowerClock}, timings: dayOfRetention, run: keyLifetime,
		},
	}
}

// joinReservation: the lock never changes [B1], and who joins never owns [O1].
func joinReservation(t *Trial) {
	r := t.reservation()
	first, err := t.reserve(t.a, r)
	if err != nil || !first.Fresh {
		t.stop("B1", "a fresh key: fresh %v, error %v, want reserved", first.Fresh, err)
	}
	if first.Operation.ID != r.OperationID() || !first.Operation.Grant.IsZero() {
		t.fail("B2", "the operation is %s of grant %v, want %s of none", first.Operation.ID, first.Operation.Grant, r.OperationID())
	}
	before := t.get(first.Operation.ID)
	b := t.open()
	again, err := t.reserve(b, r)
	if err != nil || again.Fresh {
		t.stop("B1", "the same lock again: fresh %v, error %v, want joined", again.Fresh, err)
	}
	if diff := differ(before, again.Operation); diff != "" {
		t.fail("B1", "who joins is told another record (-kept +told):\n%s", diff)
	}
	if _, err := b.MaySubmit(t.ctx, before.ID, again.Owner.Token); !errors.Is(err, pawl.ErrNotFound) {
		t.fail("O1", "a joined attempt asks to create: %v, want not found", err)
	}
	t.same("B1", "joining", before)
}

// mismatchInFlight is C-E8: the mismatch wins over "in progress", and shows
// nothing of the record.
func mismatchInFlight(t *Trial) {
	r := t.reservation()
	own, err := t.reserve(t.a, r)
	if err != nil {
		t.stop("B1", "a fresh key: %v", err)
	}
	before := t.get(own.Operation.ID)
	for what, change := range map[string]func(*pawl.Reservation){
		"other details":    func(r *pawl.Reservation) { r.Intent.Details = details("1.00") },
		"another kind":     func(r *pawl.Reservation) { r.Intent.Kind = "other.kind" },
		"other scopes":     func(r *pawl.Reservation) { r.Caller.Scopes = nil },
		"a new generation": func(r *pawl.Reservation) { r.Caller.Generation = "2" },
	} {
		other := r
		change(&other)
		_, err := t.reserve(t.open(), other)
		t.wantClass("B1", what+" under the same key", err, pawl.ErrMismatch)
		t.same("B1", what+" under the same key", before)
	}
}

// joinSettled is the replay of a finished request [B1].
func joinSettled(t *Trial) {
	r := t.reservation()
	own, err := t.reserve(t.a, r)
	if err != nil {
		t.stop("B1", "a fresh key: %v", err)
	}
	result := "{\"order\": [1, 2]}\x00" + marker
	if _, err := t.a.Record(t.ctx, pawl.Statement{ID: own.Operation.ID, Token: own.Owner.Token, Outcome: pawl.Succeeded(result)}); err != nil {
		t.stop("O1", "an owner's success: %v", err)
	}
	again, err := t.reserve(t.reopen(), r)
	if err != nil || again.Fresh || again.Operation.Status != pawl.StatusSucceeded || string(again.Operation.Result) != result {
		t.fail("B1", "joining a settled key: fresh %v, %v with %d bytes, error %v; want joined, succeeded with %d bytes",
			again.Fresh, again.Operation.Status, len(again.Operation.Result), err, len(result))
	}
}

// dayOfRetention shortens every retention to a day, the key's lifetime.
func dayOfRetention(ts *pawl.Timings) {
	const day = 24 * time.Hour
	ts.RetainOperations, ts.RetainAttempts, ts.RetainResults, ts.KeyLifetime = day, day, day, day
}

// keyLifetime: a reservation is its own refusal record [B3].
func keyLifetime(t *Trial) {
	r := t.reservation()
	own, err := t.reserve(t.a, r)
	if err != nil {
		t.stop("B1", "a fresh key: %v", err)
	}
	t.advance(23 * time.Hour)
	if _, err := t.a.Record(t.ctx, pawl.Statement{ID: own.Operation.ID, Token: own.Owner.Token, Outcome: pawl.Succeeded(marker)}); err != nil {
		t.stop("O1", "an owner's success: %v", err)
	}
	t.advance(23 * time.Hour)
	t.purgeAll(100)
	again, err := t.reserve(t.a, r)
	if err != nil || again.Fresh {
		t.fail("B3", "within the key's lifetime from settlement: fresh %v, error %v, want joined", again.Fresh, err)
	}
	t.advance(2 * time.Hour)
	if got := t.purgeAll(100); got.Operations == 0 {
		t.fail("P3", "past every retention nothing was deleted")
	}
	t.absent("P3", own.Operation.ID)
}
