package sim

import (
	"time"

	"github.com/pawl-go/pawl"
)

// The store's side: each function is one atomic statement, decided by the pure
// rules of package pawl.

// serve answers a call at the store.
func (w *World) serve(m *message) answer {
	switch m.call {
	case callAdmit:
		if w.plan.Targets[m.target].Grant == none {
			return w.reserve(m)
		}
		return w.admit(m)
	case callTakeOver:
		return w.takeOver(m)
	}
	r := &w.records[m.target]
	if !r.there {
		return answer{err: pawl.NotFound()}
	}
	fence, proven := w.plan.secret.Fence(r.Operation, m.token)
	switch m.call {
	case callMaySubmit:
		return w.maySubmit(m, fence, proven)
	case callRenew:
		return w.renew(m, fence, proven)
	case callRecord:
		return w.record(m, fence, proven)
	default:
		return w.settle(m, fence, proven)
	}
}

// begin is the start of an admission: its statement gets its time [A4].
func (w *World) begin(m *message) {
	m.stage, m.statement, m.since = begun, w.clock(), w.now
	if w.plan.Targets[m.target].Grant != none {
		m.free = !w.claims[w.plan.Targets[m.target].Grant].there
	}
}

// overdue tells an admission that the server has ended [P1].
func (w *World) overdue(m *message) bool {
	bound := w.plan.Timings.AdmissionBound + w.plan.Timings.ReplicationWaitBound
	return w.plan.Bounded && w.now > m.since+bound && !w.wrong(AdmitWithoutBound)
}

// admit is the rest of an admission: the claim and the record, in one write [A2].
func (w *World) admit(m *message) answer {
	t := &w.plan.Targets[m.target]
	if w.overdue(m) {
		return answer{err: notConfirmed()}
	}
	f := pawl.Findings{Now: m.statement, Realm: realm, Policy: w.plan.policy}
	if w.rows[t.Grant] {
		f.Grant.Row = &w.plan.Grants[t.Grant]
	}
	if c := w.claims[t.Grant]; c.there {
		f.Grant.Claimed = true
		if c.by != none {
			f.Grant.ClaimedBy = w.plan.Targets[c.by].ID
		}
	}
	if r := &w.records[m.target]; r.there {
		f.Operation = &r.Operation
	}
	if w.wrong(AdmitInTwoSteps) && m.free && f.Operation == nil {
		f.Grant = pawl.GrantState{Row: f.Grant.Row}
	}
	already, err := t.admission.Judge(f)
	if err != nil {
		return answer{err: err}
	}
	if already {
		return w.joined(m)
	}
	w.claims[t.Grant] = claim{there: true, by: m.target, retain: w.retention(t.Grant)}
	if w.wrong(ClaimAlone) && len(w.mail)%2 == 0 { // the process dies between its two writes
		w.note(happening{what: claimed, target: m.target, grant: int8(t.Grant)})
		return answer{err: notConfirmed()}
	}
	return w.create(m, t.admission.NewOperation(w.clock()))
}

// retention is until when a claim is kept, the margin not counted [P1].
func (w *World) retention(grant int) time.Time {
	g := w.plan.Grants[grant]
	return w.plan.policy.RefusalRetention(g.ExpiresAt, g.LeewayPolicy, w.clock())
}

// reserve records an operation under its key, or joins it [B1].
func (w *World) reserve(m *message) answer {
	t := &w.plan.Targets[m.target]
	if r := &w.records[m.target]; r.there {
		if w.wrong(JoinRewritesLock) {
			r.Lock = t.moved
		}
		if err := t.reservation.Join(r.Operation); err != nil {
			return answer{err: err}
		}
		return w.joined(m)
	}
	return w.create(m, t.reservation.NewOperation(w.clock()))
}

func (w *World) create(m *message, op pawl.Operation) answer {
	w.records[m.target] = record{Operation: op, there: true}
	w.note(happening{what: admitted, target: m.target, grant: int8(w.plan.Targets[m.target].Grant), who: m.from})
	return answer{fresh: true, record: w.snapshot(m.target), owner: op.OwnerOf(w.plan.secret, w.clock())}
}

func (w *World) joined(m *message) answer {
	a := answer{record: w.snapshot(m.target)}
	a.owner.Token = w.plan.secret.Mint(*a.record, 0)
	w.note(happening{what: joined, target: m.target})
	return a
}

func (w *World) snapshot(target int8) *pawl.Operation {
	op := w.records[target].Operation
	return &op
}

// apply writes a change [M1].
func (w *World) apply(target int8, c pawl.Change) {
	if c.Write {
		w.records[target].Operation = c.Next
	}
}

func (w *World) maySubmit(m *message, fence uint64, proven bool) answer {
	op, now := w.records[m.target].Operation, w.clock()
	if w.wrong(SubmitAfterDeadline) {
		op.SubmitBy = now.Add(time.Hour)
	}
	c, err := pawl.PermitSubmit(op, fence, proven, now)
	if err != nil {
		return answer{err: err}
	}
	c.Next.SubmitBy = w.records[m.target].SubmitBy
	w.apply(m.target, c)
	w.note(happening{what: permitted, target: m.target, who: m.from})
	return answer{owner: pawl.Owner{Fence: fence, LeaseUntil: op.LeaseUntil, SubmitBy: op.SubmitBy, AsOf: now}}
}

func (w *World) renew(m *message, fence uint64, proven bool) answer {
	now, kt := w.clock(), w.plan.kt()
	c, err := pawl.RenewLease(w.records[m.target].Operation, fence, proven, kt.RecoveryLease,
		kt.EffectTimeout+w.plan.Timings.LeaseMargin, now)
	if err != nil {
		return answer{err: err}
	}
	w.apply(m.target, c)
	return answer{owner: c.Next.OwnerOf(w.plan.secret, now)}
}

func (w *World) record(m *message, fence uint64, proven bool) answer {
	before := w.records[m.target].Operation
	if w.wrong(DoorWithoutFence) && proven && fence > 0 {
		fence = before.Fence
	}
	c, err := pawl.RecordOutcome(before, fence, proven, m.out, m.pause, w.clock())
	w.apply(m.target, c)
	if err != nil {
		return answer{err: err}
	}
	if w.wrong(ReleaseOnUnknown) && c.Next.Status == pawl.StatusUnknown && w.plan.Targets[m.target].Grant != none {
		w.claims[w.plan.Targets[m.target].Grant] = claim{}
	}
	w.note(happening{what: recorded, target: m.target, who: m.from, verdict: m.out.Verdict()})
	return answer{record: w.snapshot(m.target)}
}

func (w *World) settle(m *message, fence uint64, proven bool) answer {
	return w.evidence(m.target, pawl.Evidence{
		ID: w.records[m.target].ID, Lock: m.lock, Outcome: m.out, Token: m.token, Trusted: m.trusted,
	}, m.from, fence, proven)
}

// evidence is the evidence door [M1].
func (w *World) evidence(target int8, e pawl.Evidence, who actorID, fence uint64, proven bool) answer {
	before, now := w.records[target].Operation, w.clock()
	matched := e.Lock == before.Lock
	if w.wrong(EvidenceForAnyLock) {
		e.Lock = before.Lock
	}
	speaks := fence
	if w.wrong(FailureUnderLease) {
		speaks, proven = before.Fence, true
	}
	c, got, err := pawl.SettleEvidence(before, e, speaks, proven, now)
	if err != nil {
		return answer{err: err}
	}
	w.misapply(&c, before, e)
	w.apply(target, c)
	w.note(happening{
		what: settled, target: target, who: who, verdict: e.Outcome.Verdict(), fence: fence, matched: matched,
		resolution: e.Resolution, digest: e.Outcome.Digest(), disposition: got.Disposition,
	})
	return answer{record: w.snapshot(target), disposition: got.Disposition}
}

// misapply is what the mistakes of the settlement table make of a change.
func (w *World) misapply(c *pawl.Change, before pawl.Operation, e pawl.Evidence) {
	switch {
	case w.wrong(UnknownOverFinal) && e.Outcome.Verdict() == pawl.VerdictUnknown && before.Status.Final():
		c.Next.Status, c.Write = pawl.StatusUnknown, true
	case w.wrong(SuccessReplacesResult) && e.Lock == before.Lock && e.Outcome.Verdict() == pawl.VerdictSucceeded:
		c.Next.Result, c.Next.ResultDigest, c.Write = e.Outcome.Result(), e.Outcome.Digest(), true
	case w.wrong(SettlementKeepsFence):
		c.Next.Fence = before.Fence
	case w.wrong(SettlementClearsFlags) && !before.Status.Final() && c.Next.Status.Final():
		c.Next.MismatchSeen = false
	}
}

// takeOver makes a recovery the owner of what has been stalled the longest [O2].
func (w *World) takeOver(m *message) answer {
	now, best := w.clock(), none
	for i := range w.records {
		r := &w.records[i]
		if r.there && w.stalled(&r.Operation, now) && (best == none || r.LeaseUntil.Before(w.records[best].LeaseUntil)) {
			best = i
		}
	}
	if best == none {
		return answer{target: none}
	}
	before := w.records[best].Operation
	if w.wrong(TakeOverLiveLease) {
		before.LeaseUntil = now
	}
	c, ok := pawl.TakeOverOperation(before, w.plan.kt().RecoveryLease, "sim", now)
	if !ok {
		return answer{target: none}
	}
	if w.wrong(TakeOverWithOldFence) {
		c.Next.Fence--
	}
	w.apply(int8(best), c)
	w.note(happening{what: tookOver, target: int8(best), who: m.from})
	return answer{target: int8(best), record: w.snapshot(int8(best)), owner: c.Next.OwnerOf(w.plan.secret, now)}
}

func (w *World) stalled(op *pawl.Operation, now time.Time) bool {
	switch {
	case w.wrong(RecoverAdmittedOnly) && op.Status == pawl.StatusUnknown:
		return false
	case w.wrong(TakeOverLiveLease) && op.Status.Open() && !now.Before(op.OwnedSince.Add(w.plan.kt().EffectTimeout)):
		return true
	}
	return op.CanTakeOver(now)
}

// revoke claims a grant's key without an operation [R1].
func (w *World) revoke(grant int) {
	if !w.revocable(grant) {
		w.tell("revocation of grant %d: claimed already, or expired", grant)
		return
	}
	known := &w.plan.Grants[grant]
	row, proof := known, (*pawl.Grant)(nil)
	if !w.rows[grant] {
		row, proof = nil, known
	}
	retain, _ := w.plan.policy.RevocationRetention(row, proof, w.clock()) // [R3]
	w.claims[grant] = claim{there: true, by: none, retain: retain}
	w.note(happening{what: revoked, target: none, grant: int8(grant)})
	w.tell("revocation of grant %d: revoked", grant)
}

func (w *World) revocable(grant int) bool {
	c := &w.claims[grant]
	free := !c.there || w.wrong(RevokeOverClaim) && c.by != none
	return free && w.retention(grant).After(w.clock())
}

// purge deletes what retention no longer needs [P1, P3].
func (w *World) purge() {
	for g := range w.claims {
		if w.claimOver(g) {
			w.claims[g] = claim{}
			w.note(happening{what: purged, target: none, grant: int8(g)})
			w.tell("purge: the claim of grant %d", g)
		}
		if w.rows[g] && !w.claims[g].there && w.clock().After(w.retention(g).Add(w.margin())) {
			w.rows[g] = false
		}
	}
	for i := range w.records {
		if w.recordOver(i) {
			w.records[i] = record{}
			w.note(happening{what: deleted, target: int8(i)})
			w.tell("purge: operation %d", i)
		}
	}
}

func (w *World) margin() time.Duration {
	if w.wrong(PurgeWithoutMargin) {
		return 0
	}
	return w.plan.Timings.PurgeMargin
}

func (w *World) claimOver(grant int) bool {
	c := &w.claims[grant]
	return c.there && w.clock().Sub(c.retain.Add(w.margin())) > 0
}

func (w *World) recordOver(target int) bool {
	r, now, keep := &w.records[target], w.clock(), w.plan.Timings.RetainOperations
	if w.wrong(ForgetReservation) && w.plan.Targets[target].Grant == none {
		keep = 0
	}
	if w.wrong(PurgeOpenOperation) && r.there && now.After(r.CreatedAt.Add(keep)) {
		return true
	}
	return r.there && r.Status.Final() && now.After(r.SettledAt.Add(keep))
}

func (w *World) anyPurgeable() bool {
	for g := range w.claims {
		if w.claimOver(g) {
			return true
		}
	}
	for i := range w.records {
		if w.recordOver(i) {
			return true
		}
	}
	return false
}
