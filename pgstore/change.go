package pgstore

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/failpoint"
)

// locked is a record whose row is locked, read after the wait for the lock, with
// the time of then [O2].
type locked struct {
	op  pawl.Operation
	now time.Time
}

// scanLocked reads a row of lock_operation.sql or take_over.sql.
func (s *Store) scanLocked(scan scanner) (l locked, err error) {
	var row operationRow
	var session inForce
	dest := append([]any{&l.now}, session.columns()...)
	if err := scan(append(dest, row.columns()...)...); err != nil {
		return l, err
	}
	l.now = l.now.UTC()
	if err := s.unfit(&session, forTheRest); err != nil {
		return l, err // [A11]
	}
	l.op, err = row.operation()
	return l, err
}

// lockStep locks one record and reads it. The id stays zero where there is none.
func (s *Store) lockStep(id pawl.OperationID, l *locked) step {
	return step{sql: s.sql[stmtLockOperation], args: []any{uuid.UUID(id)}, each: func(scan scanner) (err error) {
		*l, err = s.scanLocked(scan)
		return err
	}}
}

// decision is what a call makes of a locked record: what to write, and what to
// answer. The change is written also beside an error: a refused statement is
// logged too [M1].
type decision func(l locked) (pawl.Change, error)

// change is every write to one record: two round trips, the first ending with
// the lock, the second with the commit [M1].
func (s *Store) change(ctx context.Context, on session, id pawl.OperationID, decide decision) error {
	var l locked
	if err := failpoint.Hit(failpoint.SettleBegun); err != nil {
		return err
	}
	if err := on.run(ctx, step{sql: beginSQL}, s.lockStep(id, &l)); err != nil {
		rollBack(ctx, on)
		return err
	}
	if l.op.ID.IsZero() {
		rollBack(ctx, on)
		return pawl.NotFound()
	}
	c, answer := decide(l)
	if !c.Write {
		rollBack(ctx, on)
		return answer
	}
	if err := failpoint.Hit(failpoint.SettleDecided); err != nil {
		rollBack(ctx, on)
		return err
	}
	var written int64
	if err := transaction(ctx, on, []step{s.writeStep(l.op, c, &written)}); err != nil {
		return err
	}
	if err := failpoint.Hit(failpoint.CommitAfter); err != nil {
		return err
	}
	if written != 1 {
		return unwritten(id)
	}
	return answer
}

// unwritten: the row was locked and yet not what it was read as.
func unwritten(id pawl.OperationID) error {
	return &defect{what: "the record " + id.String() + " changed under its lock, and nothing was written"}
}

// writeStep writes a change to a record that is locked, restating what it was
// decided on [O1]. written is 1 where that held, and 0 where nothing happened.
func (s *Store) writeStep(before pawl.Operation, c pawl.Change, written *int64) step {
	next := c.Next
	var result []byte
	if before.Result == nil {
		result = next.Result
	}
	var deferredReason *string
	var deferredAt *time.Time
	if d := next.Deferred; d != nil {
		deferredReason, deferredAt = &d.Reason, &d.At
	}
	args := []any{
		uuid.UUID(before.ID), int64(before.Fence), int16(before.Status),
		int16(next.Status), result, digestOrNull(next.ResultDigest), next.Reason, orNull(next.SettledAt),
		int64(next.Fence), next.OwnedSince, next.LeaseUntil, orNull(next.ResumeAt), int32(next.Takeovers),
		deferredReason, deferredAt, next.MismatchSeen, next.ContradictionSeen, next.DivergenceSeen,
		int64(next.Observations), int64(next.Entries), int64(next.WeakEntries),
	}
	return step{sql: s.sql[stmtWriteChange], args: append(args, entryArgs(c.Entries)...), each: func(scan scanner) error {
		return scan(written)
	}}
}

// entryArgs are the log entries of a change, column by column.
func entryArgs(entries []pawl.Entry) []any {
	var at *time.Time
	keys, types, sources := []string{}, []string{}, []string{}
	dispositions, mismatches, reasons := []string{}, []string{}, []string{}
	seqs, fences, verdicts := []int64{}, []int64{}, []int16{}
	contradictions, digests, leases := []bool{}, [][]byte{}, []*time.Time{}
	for _, e := range entries {
		at = &e.At
		keys, types, sources = append(keys, e.Key), append(types, string(e.Type)), append(sources, e.Source)
		dispositions, mismatches = append(dispositions, string(e.Disposition)), append(mismatches, e.MismatchOf)
		reasons, seqs = append(reasons, e.Reason), append(seqs, int64(e.Seq))
		fences, verdicts = append(fences, int64(e.Fence)), append(verdicts, int16(e.Verdict))
		contradictions, digests = append(contradictions, e.Contradiction), append(digests, digestOrNull(e.ResultDigest))
		leases = append(leases, orNull(e.LeaseUntil))
	}
	return []any{
		at, keys, seqs, types, fences, sources, verdicts, dispositions, contradictions, mismatches, digests, reasons, leases,
	}
}
