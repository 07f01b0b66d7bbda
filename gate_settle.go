package pawl

import "context"

// Settle takes evidence to the record: a late handler's, another attempt's, a
// provider's [M1]. It needs no ownership but proof of taking part. On a mismatch
// the answer shows nothing of the record. Errors: ErrInvalid, ErrNotFound (no
// proof, or absent), ErrUnavailable; idempotent, so repeat it on a lost answer
// [M4].
func (g *Gate) Settle(ctx context.Context, e Evidence) (Settlement, error) {
	asking, cancel := g.asking(ctx)
	defer cancel()
	got, err := g.store.Settle(asking, e)
	event := Event{
		Type: EventSettle, Operation: e.ID, Kind: got.Operation.Intent.Kind, Verdict: e.Outcome.Verdict(),
		Status: got.Operation.Status, Disposition: got.Disposition, Reason: ReasonOf(err), Err: err,
	}
	g.tell(ctx, event)
	if err == nil && suspicious(e, got) {
		event.Type = EventSuspicious
		g.tell(ctx, event)
	}
	return got, err
}

// suspicious reports whether a settlement tells of a second effect that may
// exist, whatever the record says [M7].
func suspicious(e Evidence, s Settlement) bool {
	switch s.Disposition {
	case Mismatched, Contradiction, Divergent:
		return true
	case Applied: // a success over a failure, which is flagged then
		return e.Outcome.Verdict() == VerdictSucceeded && s.Operation.ContradictionSeen
	}
	return false
}

// Resolution is a person's decision on an operation that automation may not
// finish.
type Resolution struct {
	ID      OperationID
	Outcome Outcome // succeeded or failed
	By      string  // who decides, kept for ever; at most MaxID bytes
	Note    string  // why; at most MaxReason bytes
}

// Validate reports, as ErrInvalid, what is missing or malformed.
func (r Resolution) Validate() error {
	if r.ID.IsZero() {
		return invalid(ReasonReservedID, "operation id is the nil UUID")
	}
	if !r.Outcome.Verdict().Definite() {
		return invalid(ReasonMalformed, "a resolution is succeeded or failed")
	}
	if err := checkID("who resolves", r.By); err != nil {
		return err
	}
	if r.Note == "" {
		return invalid(ReasonMissing, "a resolution needs a note that says why")
	}
	return CheckNote("note", r.Note)
}

// Resolve settles what waits for a person, through the evidence door: from
// unknown, needs_reconciliation or conflict, with no live lease, to succeeded or
// failed [M8]. The caller has authorised the person. Errors: ErrInvalid,
// ErrNotFound, ErrRefused (ReasonNotResolvable), ErrUnavailable.
func (g *Gate) Resolve(ctx context.Context, r Resolution) (Operation, error) {
	if err := r.Validate(); err != nil {
		return Operation{}, err
	}
	op, err := g.get(ctx, r.ID, AsOperator())
	if err != nil {
		return Operation{}, err
	}
	got, err := g.Settle(ctx, Evidence{
		ID: r.ID, Lock: op.Lock, Outcome: r.Outcome, Trusted: true, Resolution: true, Source: r.By, Note: r.Note,
	})
	return got.Operation, err
}
