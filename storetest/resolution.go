package storetest

import (
	"time"

	"github.com/pawl-go/pawl"
)

// evidenceMovesFence: a live owner's next write fails [M2], and what it knows
// for certain it takes to the evidence door [M3].
func evidenceMovesFence(t *Trial) {
	own := t.admitted()
	id := own.Operation.ID
	got := t.settle(t.a, pawl.Evidence{ID: id, Lock: own.Operation.Lock, Outcome: pawl.Succeeded(marker), Trusted: true, Source: "provider"})
	if got.Disposition != pawl.Applied || got.Operation.Fence != own.Owner.Fence+1 {
		t.fail("M2", "a provider's success: %s at fence %d, want applied at %d", got.Disposition, got.Operation.Fence, own.Owner.Fence+1)
	}
	_, err := t.a.MaySubmit(t.ctx, id, own.Owner.Token)
	t.wantClass("M2", "the live owner asks to create", err, pawl.ErrFenced)
	_, err = t.a.Renew(t.ctx, pawl.Renewal{ID: id, Token: own.Owner.Token, Lease: lease})
	t.wantClass("M2", "the live owner renews", err, pawl.ErrFenced)
	_, err = t.a.Record(t.ctx, pawl.Statement{ID: id, Token: own.Owner.Token, Outcome: pawl.Failed("declined")})
	t.wantClass("M2", "the live owner records", err, pawl.ErrFenced)
	again := t.settle(t.a, pawl.Evidence{ID: id, Lock: own.Operation.Lock, Outcome: pawl.Failed("declined"), Token: own.Owner.Token})
	if again.Disposition != pawl.Contradiction || again.Operation.Status != pawl.StatusSucceeded || !again.Operation.ContradictionSeen {
		t.fail("M3", "the refused owner's failure as evidence: %s, %v, want contradiction, succeeded", again.Disposition, again.Operation.Status)
	}
}

// conflictStopsCreates: [M8].
func conflictStopsCreates(t *Trial) {
	k := t.inStatus(pawl.StatusConflict)
	id := k.Operation.ID
	_, err := t.a.MaySubmit(t.ctx, id, k.Owner.Token)
	t.wantClass("M8", "an owner asks to create in conflict", err, pawl.ErrFenced, pawl.ReasonNotOpen)
	if _, err := t.a.Get(t.ctx, id, pawl.AsCaller(t.caller)); err != nil {
		t.fail("M8", "the caller reads an operation in conflict: %v", err)
	}
	t.advance(2 * longLease)
	if n := len(t.takeOver(t.a, 10)); n != 0 {
		t.fail("M8", "%d operations in conflict were taken over, want 0", n)
	}
	got := t.settle(t.a, pawl.Evidence{ID: id, Lock: k.Operation.Lock, Outcome: pawl.Succeeded(marker), Trusted: true, Source: "provider"})
	if got.Disposition != pawl.Applied || got.Operation.Status != pawl.StatusSucceeded || !got.Operation.MismatchSeen {
		t.fail("M8", "matching evidence in conflict: %s, %v, mismatch seen %v; want applied, succeeded, still seen",
			got.Disposition, got.Operation.Status, got.Operation.MismatchSeen)
	}
}

// resolutions: to failed or succeeded, from unknown, needs_reconciliation or
// conflict, with no live lease; who and why are kept [M9].
func resolutions(t *Trial) {
	resolve := func(op pawl.Operation, o pawl.Outcome) (pawl.Settlement, error) {
		return t.a.Settle(t.ctx, pawl.Evidence{
			ID: op.ID, Lock: op.Lock, Outcome: o, Trusted: true, Resolution: true, Source: "operator", Note: "asked the bank",
		})
	}
	live := t.inStatus(pawl.StatusUnknown)
	_, err := resolve(live.Operation, pawl.Failed("never sent"))
	t.wantClass("M9", "resolving under a live lease", err, pawl.ErrRefused, pawl.ReasonNotResolvable)
	t.same("M9", "a refused resolution", live.Operation)
	var settled []pawl.TakenOver
	for _, s := range []pawl.Status{pawl.StatusFailed, pawl.StatusSucceeded} {
		settled = append(settled, t.inStatus(s))
	}
	var open []pawl.TakenOver
	for _, s := range []pawl.Status{pawl.StatusNeedsReconciliation, pawl.StatusConflict} {
		open = append(open, t.inStatus(s))
	}
	admitted := t.admitted()
	t.advance(longLease + time.Second)
	open = append(open, live)
	for _, op := range []pawl.Operation{settled[0].Operation, settled[1].Operation, admitted.Operation} {
		_, err := resolve(op, pawl.Succeeded(marker))
		t.wantClass("M9", "resolving what is "+op.Status.String(), err, pawl.ErrRefused, pawl.ReasonNotResolvable)
		t.same("M9", "a refused resolution", op)
	}
	for i, k := range open {
		o := []pawl.Outcome{pawl.Succeeded(marker), pawl.Failed("never sent"), pawl.Failed("never sent")}[i]
		got, err := resolve(k.Operation, o)
		if err != nil || got.Disposition != pawl.Applied || got.Operation.Status.String() != o.Verdict().String() {
			t.fail("M8", "resolving what is %v to %v: %s, %v, %v; want applied", k.Operation.Status, o, got.Disposition, got.Operation.Status, err)
			continue
		}
		entries := t.log(k.Operation.ID).Entries
		if last := entries[len(entries)-1]; last.Type != pawl.EntryResolution || last.Source != "operator" || last.Reason != "asked the bank" {
			t.fail("M9", "the last entry is %s by %q because %q, want the resolution, who and why", last.Type, last.Source, last.Reason)
		}
	}
	_, err = t.a.Settle(t.ctx, pawl.Evidence{
		ID: live.Operation.ID, Lock: live.Operation.Lock, Outcome: pawl.Succeeded(marker), Token: live.Owner.Token, Resolution: true,
	})
	t.wantClass("M9", "a resolution by who is not trusted", err, pawl.ErrInvalid)
}
