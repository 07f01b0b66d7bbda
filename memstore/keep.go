package memstore

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
)

const (
	defaultBatch = 1000
	largestBatch = 10_000
)

// Purge implements pawl.Store. One lock and a clock that never goes back make
// it safe without any bound on an admission [P1].
func (s *Store) Purge(ctx context.Context, b pawl.PurgeBatch) (report pawl.PurgeReport, err error) {
	if b.Limit < 0 || b.Limit > largestBatch {
		return pawl.PurgeReport{}, malformed("limit is not 1 to 10000")
	}
	if b.Limit == 0 {
		b.Limit = defaultBatch
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		p := &purge{tx: tx, timings: s.timings, margin: tx.Meta().Policy.PurgeMargin, left: b.Limit}
		p.refusals()
		p.grants()
		p.operations()
		report = p.report
		return nil
	})
	return report, err
}

// purge is one batch [P4].
type purge struct {
	tx      *memdb.Tx
	timings pawl.Timings
	margin  time.Duration
	left    int
	report  pawl.PurgeReport
}

// take reports whether n more rows fit; the first that do not mean more work.
func (p *purge) take(n int) bool {
	if p.left <= 0 {
		p.report.More = true
		return false
	}
	p.left -= n
	return true
}

func (p *purge) refusals() {
	for key, c := range p.tx.Claims() {
		over := p.tx.Now.Sub(c.RetainUntil.Add(p.margin))
		if over > 0 && p.take(1) { // strictly more than the margin [P1]
			p.tx.DeleteClaim(key)
			p.report.Refusals++
			continue
		}
		p.report.Overdue = max(p.report.Overdue, over)
	}
}

// grants deletes rows that can neither be admitted nor explain a claim.
func (p *purge) grants() {
	for _, row := range p.tx.Grants() {
		_, claimed := p.tx.Claim(row.Grant.Key)
		if !claimed && p.tx.Now.After(deadline(p.tx, row.Grant).Add(p.margin)) && p.take(1) {
			p.tx.DeleteGrant(row.Grant.Key)
			p.report.Grants++
		}
	}
}

func (p *purge) operations() {
	t := p.timings
	longest := max(t.RetainOperations, t.RetainAttempts, t.RetainResults, t.KeyLifetime)
	for _, op := range p.tx.Operations() {
		switch {
		case !op.Status.Final():
			if p.tx.Now.After(op.CreatedAt.Add(longest)) {
				p.report.Stale++ // never deleted by time [P3]
			}
		case p.past(op.SettledAt, p.keepOperation(op)):
			if p.take(1) {
				p.tx.DeleteOperation(op.ID)
				p.report.Operations++
			}
		default:
			p.attempts(op.Clone())
			p.result(op.ID)
		}
	}
}

// keepOperation is a record's retention. A reservation is its own refusal
// record and lives at least as long as its key [B3].
func (p *purge) keepOperation(op *pawl.Operation) time.Duration {
	if op.Grant.IsZero() {
		return max(p.timings.RetainOperations, p.timings.KeyLifetime)
	}
	return p.timings.RetainOperations
}

func (p *purge) past(from time.Time, keep time.Duration) bool { return p.tx.Now.After(from.Add(keep)) }

// attempts deletes log entries, counted from settlement and, for what came
// after it, from the entry itself. What purges and erasures left behind stays.
func (p *purge) attempts(op pawl.Operation) {
	if !p.past(op.SettledAt, p.timings.RetainAttempts) {
		return
	}
	n := p.tx.KeepEntries(op.ID, func(e pawl.Entry) bool {
		return e.Type == pawl.EntryPurge || e.Type == pawl.EntryErasure ||
			!p.past(e.LastAt, p.timings.RetainAttempts) || !p.take(1)
	})
	if n > 0 {
		p.report.Attempts += n
		p.note(op.ID, "log entries")
	}
}

func (p *purge) result(id pawl.OperationID) {
	op, _ := p.tx.Operation(id)
	if len(op.Result) == 0 || !p.past(op.SettledAt, p.timings.RetainResults) || !p.take(1) {
		return
	}
	op.Result = []byte{} // the digest stays, so that a duplicate is still told from a divergence
	p.tx.PutOperation(op)
	p.report.Results++
	p.note(id, "result")
}

func (p *purge) note(id pawl.OperationID, what string) {
	p.tx.Note(id, pawl.Entry{
		Type: pawl.EntryPurge, Source: "retention", Disposition: pawl.Applied, Reason: what, // [M9]
	})
}

// RaiseEpoch implements pawl.Keeper.
func (s *Store) RaiseEpoch(ctx context.Context) (e pawl.Epoch, err error) {
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		m := tx.Meta()
		m.Epoch.Number++
		m.Epoch.IssuedNotBefore = tx.Now.Add(m.Policy.IssueSkew) // [A12]
		e = m.Epoch
		return nil
	})
	return e, err
}

// Erase implements pawl.Keeper.
func (s *Store) Erase(ctx context.Context, e pawl.Erasure) (report pawl.ErasureReport, err error) {
	if err := e.Validate(); err != nil {
		return pawl.ErasureReport{}, err
	}
	limit := e.Limit
	if limit == 0 {
		limit = pawl.MaxPage
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		for _, op := range tx.Operations() {
			switch {
			case !op.Caller.Same(e.Caller) || op.Erased:
			case !op.Status.Final():
				report.Unsettled++
			case report.Erased == limit:
				report.More = true
			default:
				erase(tx, op.Clone(), e)
				report.Erased++
			}
		}
		return nil
	})
	return report, err
}

func erase(tx *memdb.Tx, op pawl.Operation, e pawl.Erasure) {
	op.Intent.Details, op.Erased = pawl.StoredDetails("{}"), true
	if op.Result != nil {
		op.Result = []byte{}
	}
	tx.PutOperation(op)
	tx.EraseGrant(op.Grant)
	tx.Note(op.ID, pawl.Entry{Type: pawl.EntryErasure, Source: e.By, Disposition: pawl.Applied, Reason: e.Reason})
}
