package pawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// takenOver returns two operations that an executor took over through the API.
func (w *world) takenOver(g instance) (x, y pawl.TakenOver) {
	w.t.Helper()
	w.strand()
	w.strand()
	time.Sleep(time.Minute)
	got, err := g.TakeOver(w.t.Context(), pawl.TakeOverRequest{Kinds: []pawl.Kind{credit}, Limit: 10, By: "worker-1"})
	if err != nil || len(got) != 2 {
		w.t.Fatalf("taken over %d, %v; want the two stalled operations", len(got), err)
	}
	return got[0], got[1]
}

// An executor that takes over through the API asks to create without a stated
// contract: it may not, and no call is logged that will not be sent; a stranger
// hears what a stranger always hears [E5, O5].
func executorWithoutContract(w *world) {
	g := w.instance()
	x, y := w.takenOver(g)
	id := x.Operation.ID
	permit, err := g.MaySubmit(w.t.Context(), id, x.Owner.Token)
	w.refusedWith("the owner", err, pawl.ErrFenced, pawl.ReasonContract)
	if permit.Granted {
		w.wrongf("permitted all the same")
	}
	for name, token := range map[string]pawl.OwnerToken{"a stranger": "x", "nobody": "", "another's owner": y.Owner.Token} {
		_, err := g.MaySubmit(w.t.Context(), id, token)
		w.refusedWith(name, err, pawl.ErrNotFound, pawl.ReasonAbsent)
	}
	_, err = g.MaySubmit(w.t.Context(), pawl.NewOperationID(), x.Owner.Token)
	w.refusedWith("no such operation", err, pawl.ErrNotFound, pawl.ReasonAbsent)
	tl, err := g.Log(w.t.Context(), id, pawl.AsOperator())
	if err != nil {
		w.wrongf("%v", err)
	}
	for _, e := range tl.Entries {
		if e.Type == pawl.EntryCheck {
			w.wrongf("the log tells of a call that was not permitted: %+v", e)
		}
	}
}

func TestCase_CD20_ExecutorWithoutContract(t *testing.T) { play(t, executorWithoutContract) }

// With a contract that is stated in full an executor by takeover may create; the
// first owner may without one.
func TestCase_CD20_ExecutorWithContract(t *testing.T) {
	play(t, func(w *world) {
		first := w.instance()
		got, err := first.Admit(w.t.Context(), w.request())
		if err != nil || !got.Fresh {
			w.t.Fatal(got.Fresh, err)
		}
		if p, err := first.MaySubmit(w.t.Context(), got.Operation.ID, got.Owner.Token); err != nil || !p.Granted {
			w.wrongf("the first owner: %v, %v", p.Granted, err)
		}
		w.state()
		g := w.instance()
		time.Sleep(time.Minute)
		taken, err := g.TakeOver(w.t.Context(), pawl.TakeOverRequest{Limit: 1})
		if err != nil || len(taken) != 1 {
			w.t.Fatal(taken, err)
		}
		if p, err := g.MaySubmit(w.t.Context(), got.Operation.ID, taken[0].Owner.Token); err != nil || !p.Granted || p.Fence != 2 {
			w.wrongf("the owner by takeover: %+v, %v", p, err)
		}
		_, err = g.MaySubmit(w.t.Context(), got.Operation.ID, got.Owner.Token)
		w.refusedWith("the superseded owner", err, pawl.ErrFenced, pawl.ReasonSuperseded)
	})
}

// An owner that holds a definite outcome and is refused at its own door has its
// word taken as evidence: the answer is fenced and says what became of it [M3].
func lateOwnersWord(w *world) {
	for name, c := range map[string]struct {
		out    pawl.Outcome
		want   pawl.Disposition
		status pawl.Status
	}{
		"success": {pawl.Succeeded("cr_1"), pawl.Applied, pawl.StatusSucceeded},
		"failure": {pawl.Failed("declined"), pawl.Deferred, pawl.StatusAdmitted},
		"unknown": {pawl.Unknown("timeout"), "", pawl.StatusAdmitted},
	} {
		g := w.instance()
		got, err := g.Admit(w.t.Context(), w.request())
		if err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := g.TakeOver(w.t.Context(), pawl.TakeOverRequest{Limit: 1}); err != nil {
			w.t.Fatal(err)
		}
		said, err := g.Record(w.t.Context(), pawl.Statement{ID: got.Operation.ID, Token: got.Owner.Token, Outcome: c.out})
		w.refusedWith("the late "+name, err, pawl.ErrFenced, pawl.ReasonSuperseded)
		if said.Disposition != c.want {
			w.wrongf("the late %s: disposition %q, want %q", name, said.Disposition, c.want)
		}
		w.expect(got.Operation.ID, c.status)
		joined := pawl.Statement{ID: got.Operation.ID, Token: "x", Outcome: c.out}
		said, err = g.Record(w.t.Context(), joined)
		w.refusedWith("a stranger's "+name, err, pawl.ErrNotFound, pawl.ReasonAbsent)
		if said.Disposition != "" {
			w.wrongf("a stranger's %s: disposition %q", name, said.Disposition)
		}
		time.Sleep(time.Hour) // out of the next one's way
		if _, err := g.Settle(w.t.Context(), pawl.Evidence{ID: got.Operation.ID, Lock: got.Operation.Lock, Outcome: pawl.Failed("x"), Trusted: true}); err != nil {
			w.wrongf("%v", err)
		}
	}
}

func TestLateOwnersWord(t *testing.T) { play(t, lateOwnersWord) }

// An endless renewal ends at submission deadline + effect timeout + margin, by
// the timings of the kind [O3].
func TestCase_CD21_EndlessRenewalThroughTheGate(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance()
		got, err := g.Admit(w.t.Context(), w.request())
		if err != nil {
			w.t.Fatal(err)
		}
		admittedAt, last := time.Now(), got.Owner
		for range 100 {
			time.Sleep(20 * time.Second)
			next, err := g.Renew(w.t.Context(), got.Operation.ID, got.Owner.Token)
			if err != nil {
				w.refusedWith("the last renewal", err, pawl.ErrFenced, pawl.ReasonLeaseOver)
				break
			}
			last = next
		}
		k := w.timings.Default
		if ends := last.LeaseUntil.Sub(admittedAt); ends != k.SubmissionWindow+k.EffectTimeout+w.timings.LeaseMargin {
			w.wrongf("the last lease ends %v after admission", ends)
		}
		_, err = g.Renew(w.t.Context(), got.Operation.ID, "x")
		w.refusedWith("a stranger's renewal", err, pawl.ErrNotFound, pawl.ReasonAbsent)
	})
}

// A person settles what automation may not, with who and why in the log, and only
// that [M8].
func TestResolve(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance()
		id := w.strand()
		r := pawl.Resolution{ID: id, Outcome: pawl.Succeeded("cr_7"), By: "sue", Note: "seen in the provider's console"}
		_, err := g.Resolve(w.t.Context(), r)
		w.refusedWith("while automation is at it", err, pawl.ErrRefused, pawl.ReasonNotResolvable)
		time.Sleep(time.Minute)
		w.wants(g, handedOver())
		for name, change := range map[string]func(*pawl.Resolution){
			"nobody":      func(r *pawl.Resolution) { r.By = "" },
			"no why":      func(r *pawl.Resolution) { r.Note = "" },
			"unknown":     func(r *pawl.Resolution) { r.Outcome = pawl.Unknown("") },
			"no outcome":  func(r *pawl.Resolution) { r.Outcome = pawl.Outcome{} },
			"no id":       func(r *pawl.Resolution) { r.ID = pawl.OperationID{} },
			"a bad note ": func(r *pawl.Resolution) { r.Note = "a\x00" },
		} {
			wrong := r
			change(&wrong)
			if _, err := g.Resolve(w.t.Context(), wrong); !errors.Is(err, pawl.ErrInvalid) {
				w.wrongf("%s: %v, want malformed", name, err)
			}
		}
		absent := r
		absent.ID = pawl.NewOperationID()
		_, err = g.Resolve(w.t.Context(), absent)
		w.refusedWith("no such operation", err, pawl.ErrNotFound, pawl.ReasonAbsent)
		op, err := g.Resolve(w.t.Context(), r)
		if err != nil || op.Status != pawl.StatusSucceeded || string(op.Result) != "cr_7" {
			w.wrongf("%v %q, %v", op.Status, op.Result, err)
		}
		_, err = g.Resolve(w.t.Context(), r)
		w.refusedWith("twice", err, pawl.ErrRefused, pawl.ReasonNotResolvable)
		tl, err := g.Log(w.t.Context(), id, pawl.AsOperator())
		if err != nil || len(tl.Entries) == 0 {
			w.t.Fatal(err)
		}
		if e := tl.Entries[len(tl.Entries)-1]; e.Type != pawl.EntryResolution || e.Source != "sue" || e.Reason != r.Note {
			w.wrongf("the log tells %+v", e)
		}
	})
}

// A reservation runs once for one key: the same request joins, another lock is a
// mismatch also while the first is in flight, and runs nothing [B1].
func TestCase_CE8_ReservationsLock(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance()
		r := pawl.ReservedRequest{Key: "order-17", Kind: credit, Details: []byte(`{"amount":"250.00"}`), Caller: ana()}
		resume := make(chan struct{})
		w.bank.before = func(context.Context, pawl.Submission) error { <-resume; return nil }
		first := make(chan pawl.Operation, 1)
		go func() {
			op, err := g.ExecuteReserved(w.t.Context(), r)
			if err != nil {
				w.wrongf("%v", err)
			}
			first <- op
		}()
		synctest.Wait()
		other, moved, tenant := r, r, r
		other.Details = []byte(`{"amount":"999.00"}`)
		moved.Caller.Generation = "8"
		tenant.Caller.Tenant = "globex"
		for name, x := range map[string]pawl.ReservedRequest{"another intent": other, "another generation [M5]": moved} {
			_, err := g.ExecuteReserved(w.t.Context(), x)
			w.refusedWith(name, err, pawl.ErrMismatch, pawl.ReasonLock)
			_, err = g.Reserve(w.t.Context(), x)
			w.refusedWith(name+", reserved", err, pawl.ErrMismatch, pawl.ReasonLock)
		}
		joined, err := g.ExecuteReserved(w.t.Context(), r)
		if err != nil || joined.Status != pawl.StatusAdmitted || joined.ID.Version() != 8 {
			w.wrongf("the same again: %v %v, %v; want the operation, pending", joined.ID, joined.Status, err)
		}
		close(resume)
		if op := <-first; op.Status != pawl.StatusSucceeded || op.ID != joined.ID {
			w.wrongf("the first: %v %v", op.ID, op.Status)
		}
		if op, err := g.ExecuteReserved(w.t.Context(), tenant); err != nil || op.ID == joined.ID {
			w.wrongf("another tenant: %v, %v; want an operation of its own [B2]", op.ID, err)
		}
		w.expectEffects(joined.ID, 1)
		bad := r
		bad.Key = ""
		_, err = g.ExecuteReserved(w.t.Context(), bad)
		w.refusedWith("no key", err, pawl.ErrInvalid, pawl.ReasonMissing)
		bad = r
		bad.Kind = "credit.void"
		_, err = g.ExecuteReserved(w.t.Context(), bad)
		w.refusedWith("unknown kind", err, pawl.ErrRefused, pawl.ReasonKindUnknown)
	})
}

// A waiting status answers as soon as there is an outcome, at the end of the wait
// with what it saw last, and at once for a stranger [S1].
func TestStatusWaits(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance()
		r := w.request()
		w.bank.before = func(context.Context, pawl.Submission) error { time.Sleep(5 * time.Second); return nil }
		go func() { _, _ = g.Execute(w.t.Context(), r) }()
		synctest.Wait()
		began := time.Now()
		op, err := g.Status(w.t.Context(), r.OperationID, pawl.AsCaller(ana()), 2*time.Second)
		if took := time.Since(began); err != nil || op.Status != pawl.StatusAdmitted || took != 2*time.Second {
			w.wrongf("a short wait: %v, %v after %v", op.Status, err, took)
		}
		_, err = g.Status(w.t.Context(), r.OperationID, pawl.AsCaller(pawl.Caller{Principal: "bob"}), time.Hour)
		w.refusedWith("a stranger", err, pawl.ErrNotFound, pawl.ReasonAbsent)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		if op, err := g.Status(ctx, r.OperationID, pawl.AsOperator(), time.Hour); err != nil || op.Status != pawl.StatusAdmitted {
			w.wrongf("a caller that leaves: %v, %v", op.Status, err)
		}
		op, err = g.Status(w.t.Context(), r.OperationID, pawl.AsCaller(ana()), time.Hour)
		if took := time.Since(began); err != nil || op.Status != pawl.StatusSucceeded || took > 6*time.Second {
			w.wrongf("a long wait: %v, %v after %v", op.Status, err, took)
		}
	})
}

// Revoking contends with admitting, and says what it found [R1, R2].
func TestRevokeThroughTheGate(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance()
		used, unused := w.tokenRequest(), w.tokenRequest()
		if _, err := g.Execute(w.t.Context(), used); err != nil {
			w.wrongf("%v", err)
		}
		stored := w.request()
		for _, c := range []struct {
			what string
			r    pawl.RevokeRequest
			want pawl.RevocationState
		}{
			{"an unused token", pawl.RevokeRequest{Token: unused.Token, By: "sue"}, pawl.Revoked},
			{"it again", pawl.RevokeRequest{Token: unused.Token, By: "sue"}, pawl.AlreadyRevoked},
			{"a used token", pawl.RevokeRequest{Token: used.Token, By: "sue"}, pawl.AlreadyAdmitted},
			{"a stored grant", pawl.RevokeRequest{Key: stored.Stored, By: "sue"}, pawl.Revoked},
		} {
			state, key, err := g.Revoke(w.t.Context(), c.r)
			if err != nil || state != c.want || key.IsZero() {
				w.wrongf("%s: %q, %v", c.what, state, err)
			}
		}
		_, err := g.Execute(w.t.Context(), unused)
		w.refusedWith("the revoked token", err, pawl.ErrRefused, pawl.ReasonRevoked)
		_, err = g.Execute(w.t.Context(), stored)
		w.refusedWith("the revoked stored grant", err, pawl.ErrRefused, pawl.ReasonRevoked)
		_, _, err = g.Revoke(w.t.Context(), pawl.RevokeRequest{Key: pawl.GrantKey{Issuer: "i", ID: "none"}, By: "sue"})
		w.refusedWith("without proof", err, pawl.ErrRefused, pawl.ReasonNotProven)
		_, _, err = g.Revoke(w.t.Context(), pawl.RevokeRequest{Token: "forged", By: "sue"})
		w.refusedWith("a forged token", err, pawl.ErrRefused, pawl.ReasonSignature)
		_, _, err = g.Revoke(w.t.Context(), pawl.RevokeRequest{By: "sue"})
		w.refusedWith("nothing", err, pawl.ErrInvalid, pawl.ReasonMalformed)
		_, _, err = g.Revoke(w.t.Context(), pawl.RevokeRequest{Key: stored.Stored})
		w.refusedWith("by nobody", err, pawl.ErrInvalid, pawl.ReasonMissing)
	})
}

// A second effect that may exist is told loudly, whatever the record says [M7].
func TestSuspicionIsTold(t *testing.T) {
	play(t, func(w *world) {
		told := map[pawl.Disposition]int{}
		w.events = func(_ context.Context, e pawl.Event) {
			if e.Type == pawl.EventSuspicious {
				told[e.Disposition]++
			}
		}
		g := w.instance()
		for _, first := range []pawl.Outcome{pawl.Succeeded("cr_1"), pawl.Failed("declined")} {
			w.bank.after = func(context.Context, pawl.Submission, string) (pawl.Outcome, error) { return first, nil }
			r := w.request()
			op, err := g.Execute(w.t.Context(), r)
			if err != nil {
				w.wrongf("%v", err)
			}
			wrong := op.Lock
			wrong.Fingerprint[0]++
			for _, e := range []pawl.Evidence{
				{Lock: op.Lock, Outcome: pawl.Succeeded("cr_1")},
				{Lock: op.Lock, Outcome: pawl.Succeeded("cr_2")},
				{Lock: op.Lock, Outcome: pawl.Failed("declined")},
				{Lock: wrong, Outcome: pawl.Succeeded("cr_3")},
				{Lock: op.Lock, Outcome: pawl.Unknown("timeout")},
			} {
				e.ID, e.Trusted = op.ID, true
				if _, err := g.Settle(w.t.Context(), e); err != nil {
					w.wrongf("%v", err)
				}
			}
			op = w.expect(op.ID, pawl.StatusSucceeded)
			if string(op.Result) != "cr_1" || !op.DivergenceSeen || !op.MismatchSeen || !op.ContradictionSeen {
				w.wrongf("%q, %+v", op.Result, op)
			}
		}
		// Each of the two: divergent, contradiction, mismatch; the second also a success over its failure.
		want := map[pawl.Disposition]int{pawl.Divergent: 2, pawl.Contradiction: 2, pawl.Mismatched: 2, pawl.Applied: 1}
		for d, n := range want {
			if told[d] != n {
				w.wrongf("%s told %d times, want %d", d, told[d], n)
			}
		}
	})
}
