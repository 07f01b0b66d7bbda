package pawl

import (
	"strconv"
	"time"
)

// This file is the settlement table of docs/contract.md, M1 to M9, and the only
// place where a status is decided. A store reads the record under its write
// lock, asks here, and writes the Change back in the same transaction.

// Evidence is a statement at the evidence door. It needs no ownership, but proof
// of taking part: Token, of any fence, or Trusted.
type Evidence struct {
	ID      OperationID
	Lock    Lock // of the intent and authority the statement is about
	Outcome Outcome
	Token   OwnerToken
	// Trusted says that the speaker was authorised for the role evidence (a
	// provider's webhook, an operator, recovery's look-up). It never comes from
	// a request.
	Trusted bool
	// Resolution says that a person decides: only to failed or succeeded, from
	// unknown, needs_reconciliation or conflict, with no live lease.
	Resolution bool
	Source     string // who spoke, for the log; at most MaxID bytes
	Note       string // why a person decided so; at most MaxReason bytes
}

// Validate reports, as ErrInvalid, what is missing or malformed.
func (e Evidence) Validate() error {
	if e.ID.IsZero() {
		return invalid(ReasonReservedID, "operation id is the nil UUID")
	}
	if e.Outcome.verdict > VerdictSucceeded {
		return invalid(ReasonMalformed, "evidence is succeeded, failed or unknown")
	}
	if e.Resolution && (!e.Outcome.verdict.Definite() || !e.Trusted) {
		return invalid(ReasonMalformed, "a resolution is succeeded or failed, by a person")
	}
	if err := checkOptionalID("source", e.Source); err != nil {
		return err
	}
	return CheckNote("note", e.Note)
}

// Settlement is the answer of the evidence door. On a mismatch it shows nothing
// of the record: Operation is then the zero value.
type Settlement struct {
	Disposition Disposition
	Operation   Operation
}

// Change is what one call does to a record. A store writes Next and appends
// Entries in one transaction, also when the call is answered with an error: a
// refused statement is logged too. A Change without Write writes nothing.
type Change struct {
	Next    Operation
	Entries []Entry // in order; equal Keys are counted, not repeated
	Write   bool
}

// log appends an entry to the change, bounded as M6 says.
func (c *Change) log(e Entry, l Lock, now time.Time) {
	c.Write = true
	if e.Type == EntryOutcome || e.Type == EntryEvidence || e.Type == EntryResolution {
		c.Next.Observations++
	}
	if e.weak() {
		c.Next.WeakEntries++
		if c.Next.WeakEntries > MaxWeak {
			return
		}
	}
	c.Next.Entries++
	e.Seq, e.At, e.LastAt, e.Count = c.Next.Entries, now, now, 1
	e.Key = strconv.FormatUint(e.Seq, 10)
	if e.Type == EntryCheck || e.Type == EntryRenewal {
		e.Key = string(e.Type) + " by owner " + strconv.FormatUint(e.Fence, 10)
	}
	if e.Verdict.Definite() || e.Disposition == Mismatched {
		e.Key = e.equalKey(l)
	}
	c.Entries = append(c.Entries, e)
}

// SettleEvidence is the evidence door [M1]. fence and proven come from
// [TokenSecret.Fence] for ev.Token. Without proof of taking part the answer is
// ErrNotFound and nothing is written.
func SettleEvidence(o Operation, ev Evidence, fence uint64, proven bool, now time.Time) (Change, Settlement, error) {
	if !proven && !ev.Trusted {
		return Change{}, Settlement{}, NotFound()
	}
	if !proven {
		fence = 0
	}
	c := Change{Next: o.Clone()}
	if err := c.resolvable(ev, now); err != nil {
		return Change{}, Settlement{}, err
	}
	c.applyDeferred(now)
	e := Entry{
		Type: EntryEvidence, Fence: fence, Source: ev.Source, Verdict: ev.Outcome.verdict,
		ResultDigest: ev.Outcome.digest, Reason: ev.Outcome.reason,
	}
	if ev.Resolution {
		e.Type, e.Reason = EntryResolution, ev.Note
	}
	if e.MismatchOf = mismatchOf(o.Lock, ev.Lock); e.MismatchOf != "" {
		e.Disposition = c.mismatch(ev.Outcome)
		c.log(e, ev.Lock, now)
		return c, Settlement{Disposition: e.Disposition}, nil
	}
	e.Disposition, e.Contradiction = c.merge(ev.Outcome, fence, now)
	c.Next.ContradictionSeen = c.Next.ContradictionSeen || e.Contradiction
	c.log(e, ev.Lock, now)
	return c, Settlement{Disposition: e.Disposition, Operation: c.Next.Clone()}, nil
}

// resolvable is the precondition of a person's statement: nobody is at work, and
// the record is not what automation is still certain to move.
func (c *Change) resolvable(ev Evidence, now time.Time) error {
	if !ev.Resolution {
		return nil
	}
	s := c.Next.Status
	if c.Next.LeaseLive(now) || s == StatusAdmitted || s.Final() {
		return &Error{Class: ErrRefused, Reason: ReasonNotResolvable}
	}
	return nil
}

// merge is the table's rows for a matching lock, lowest claim first.
func (c *Change) merge(out Outcome, fence uint64, now time.Time) (d Disposition, contradicts bool) {
	status := c.Next.Status
	switch out.verdict {
	case VerdictFailed:
		switch {
		case status == StatusSucceeded:
			return Contradiction, true
		case status == StatusFailed:
			return Duplicate, false
		case c.Next.LeaseLive(now) && fence != c.Next.Fence:
			c.Next.Deferred = &DeferredFailure{Reason: out.reason, At: now}
			return Deferred, false
		}
		c.settle(out, now)
		return Applied, false
	case VerdictSucceeded:
		switch {
		case status == StatusSucceeded && out.digest == c.Next.ResultDigest:
			return Duplicate, false
		case status == StatusSucceeded:
			c.Next.DivergenceSeen = true
			return Divergent, false
		}
		c.settle(out, now)
		return Applied, status == StatusFailed
	default:
		if status != StatusAdmitted {
			return Weaker, false
		}
		c.Next.Status, c.Next.Reason = StatusUnknown, out.reason
		return Applied, false
	}
}

// mismatch is the table's rows for a lock that does not match: a success marks
// conflict, which stops create calls under the id [M8]; nothing else moves.
func (c *Change) mismatch(out Outcome) Disposition {
	c.Next.MismatchSeen = true
	if out.verdict == VerdictSucceeded && c.Next.Status < StatusConflict {
		c.Next.Status, c.Next.Reason = StatusConflict, "success reported for another intent or authority"
	}
	return Mismatched
}

// settle makes the record final through the evidence door and moves the fence,
// so that a live owner's next write fails [M2].
func (c *Change) settle(out Outcome, now time.Time) {
	c.finish(out, now)
	c.Next.Fence++
	if c.Next.LeaseUntil.After(now) {
		c.Next.LeaseUntil = now
	}
}

// finish writes a definite outcome and its result together; a result is never
// cleared or changed afterwards.
func (c *Change) finish(out Outcome, now time.Time) {
	c.Next.Status, c.Next.Reason, c.Next.SettledAt = StatusFailed, out.reason, now
	if out.verdict == VerdictSucceeded {
		c.Next.Status, c.Next.Reason = StatusSucceeded, ""
		c.Next.Result, c.Next.ResultDigest = out.Result(), out.digest
	}
	if c.Next.Erased { // what was erased does not come back by evidence that is late
		c.Next.Reason = ""
		if c.Next.Result != nil {
			c.Next.Result = []byte{}
		}
	}
	c.Next.Deferred = nil
}

// applyDeferred reads a deferred failure first, once the lease it waited for is
// over and no owner has spoken since.
func (c *Change) applyDeferred(now time.Time) {
	d := c.Next.Deferred
	if d == nil || c.Next.LeaseLive(now) || c.Next.Status >= StatusFailed {
		return
	}
	out := Failed(d.Reason)
	c.settle(out, now)
	c.log(Entry{
		Type: EntryEvidence, Source: "deferred", Verdict: VerdictFailed,
		Disposition: Applied, Reason: out.reason,
	}, c.Next.Lock, now)
	c.Next.Observations-- // the statement itself was counted when it was deferred
}

// RecordOutcome is the owner's door [O1]: from admitted or unknown, under the
// current fence, to unknown, failed or succeeded; an owner by takeover may also
// hand over to a person. pause, for unknown only, ends the lease now and keeps
// takeovers away for so long [E6]; zero leaves the lease as it is. A superseded
// owner changes nothing but the log.
func RecordOutcome(o Operation, fence uint64, proven bool, out Outcome, pause time.Duration, now time.Time) (Change, error) {
	err := o.CheckOwner(fence, proven)
	if err != nil && ReasonOf(err) != ReasonSuperseded {
		return Change{}, err
	}
	if out.verdict == VerdictNeedsReconciliation && o.Takeovers == 0 {
		return Change{}, invalid(ReasonMalformed, "only an owner by takeover may hand over to a person")
	}
	if err == nil && !o.Status.Open() {
		err = &Error{Class: ErrFenced, Reason: ReasonNotOpen}
	}
	c := Change{Next: o.Clone()}
	e := Entry{
		Type: EntryOutcome, Fence: fence, Source: "owner", Verdict: out.verdict, Disposition: Applied,
		ResultDigest: out.digest, Reason: out.reason,
	}
	if err != nil {
		e.Disposition = Refused
		c.log(e, o.Lock, now)
		return c, err
	}
	switch out.verdict {
	case VerdictFailed, VerdictSucceeded:
		c.finish(out, now)
		c.endLease(now)
	case VerdictNeedsReconciliation:
		c.Next.Status, c.Next.Reason = StatusNeedsReconciliation, out.reason
		c.endLease(now)
	default:
		c.Next.Status, c.Next.Reason = StatusUnknown, out.reason
		if pause > 0 {
			c.endLease(now)
			c.Next.ResumeAt = now.Add(pause)
		}
	}
	c.log(e, o.Lock, now)
	if out.verdict == VerdictNeedsReconciliation {
		c.applyDeferred(now) // the lease it waited for is over, and nobody takes over any more
	}
	return c, nil
}

// endLease ends the present owner's lease at the store time now.
func (c *Change) endLease(now time.Time) {
	if c.Next.LeaseUntil.After(now) {
		c.Next.LeaseUntil = now
	}
}

// TakeOverOperation makes recovery the owner [O2]: fence + 1 and a new lease
// from now, which a store reads after any lock wait. ok is false where the
// record may not be taken over.
func TakeOverOperation(o Operation, lease time.Duration, by string, now time.Time) (c Change, ok bool) {
	if !o.CanTakeOver(now) {
		return Change{}, false
	}
	c = Change{Next: o.Clone()}
	c.Next.Fence++
	c.Next.Takeovers++
	c.Next.OwnedSince, c.Next.LeaseUntil, c.Next.ResumeAt = now, now.Add(lease), time.Time{}
	c.log(Entry{
		Type: EntryTakeover, Fence: c.Next.Fence, Source: by, Disposition: Applied,
		LeaseUntil: c.Next.LeaseUntil,
	}, o.Lock, now)
	return c, true
}

// RenewLease renews an owner's lease [O3]; a renewal past a second lease is
// logged [M9].
func RenewLease(o Operation, fence uint64, proven bool, lease, beyond time.Duration, now time.Time) (Change, error) {
	until, err := o.RenewedLease(fence, proven, now, lease, beyond)
	if err != nil {
		return Change{}, err
	}
	c := Change{Next: o.Clone(), Write: true}
	c.Next.LeaseUntil = until
	if until.Sub(o.OwnedSince) > 2*lease {
		c.log(Entry{Type: EntryRenewal, Fence: fence, Source: "owner", Disposition: Applied, LeaseUntil: until}, o.Lock, now)
	}
	return c, nil
}

// PermitSubmit answers a submission check [O5]. A permitted one is logged, so
// that a timeline can show the submission that it implies [M9].
func PermitSubmit(o Operation, fence uint64, proven bool, now time.Time) (Change, error) {
	if err := o.CheckSubmit(fence, proven, now); err != nil {
		return Change{}, err
	}
	c := Change{Next: o.Clone()}
	c.log(Entry{Type: EntryCheck, Fence: fence, Source: "owner", Disposition: Applied}, o.Lock, now)
	return c, nil
}

// mismatchOf names what differs between a record's lock and a statement's. A
// generation that moved on makes another binding [M5].
func mismatchOf(record, statement Lock) string {
	f, b := record.Fingerprint == statement.Fingerprint, record.Binding == statement.Binding
	switch {
	case f && b:
		return ""
	case b:
		return "fingerprint"
	case f:
		return "binding"
	}
	return "both"
}
