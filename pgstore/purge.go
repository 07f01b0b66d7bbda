package pgstore

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pace"
)

const (
	defaultBatch = 1000
	largestBatch = 10_000

	// A purge that has more to do pauses after each batch for so many times as
	// long as that took: admissions have the most of the server [P4].
	purgeYield   = 3
	longestPause = 250 * time.Millisecond
)

// Purge implements pawl.Store. Refusal records go only where the bound on an
// admission was read in force on a connection that admissions use [P2]; all else
// needs no bound. Each sort of row is a short transaction of its own, so that at
// most one batch is locked at a time [P4], and a purge that is killed between two
// of them refuses more, never less. While there is more to do it returns after a
// pause.
func (s *Store) Purge(ctx context.Context, b pawl.PurgeBatch) (pawl.PurgeReport, error) {
	if b.Limit < 0 || b.Limit > largestBatch {
		return pawl.PurgeReport{}, malformed("limit is not 1 to 10000")
	}
	if b.Limit == 0 {
		b.Limit = defaultBatch
	}
	piece := pace.Begin()
	held, err := call(ctx, s, s.admissions, pawl.ErrUnavailable, s.purgeHeld)
	if err != nil {
		return pawl.PurgeReport{}, err
	}
	report, err := s.purge(context.WithoutCancel(ctx), b.Limit, held) // what is deleted is told
	if err == nil && report.More {
		piece.Pause(ctx, purgeYield, longestPause)
	}
	return report, err
}

// purge deletes one batch; held keeps refusal records from it. Its ctx must not end
// before it does: what was deleted is in the report, beside an error too.
func (s *Store) purge(ctx context.Context, limit int, held string) (pawl.PurgeReport, error) {
	p := purge{s: s, limit: limit, left: limit, report: pawl.PurgeReport{Held: held}}
	_, err := call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (struct{}, error) {
		p.on = on
		return struct{}{}, p.run(ctx)
	})
	return p.report, err
}

// purgeHeld tells why refusal records may not be deleted; "" is nothing. It asks
// an admission's own connection, because a bound in a configuration bounds
// nothing [P2].
func (s *Store) purgeHeld(ctx context.Context, on session) (string, error) {
	f, err := s.readSession(ctx, on)
	if err != nil || f.bounded() {
		return "", err
	}
	return s.boundName() + " on admissions is " + f.bound() + ", not over 0 and at most " +
		ofMicros(f.admissionMicros).String(), nil
}

// boundName is the setting that bounds an admission on this server [P1].
func (s *Store) boundName() string {
	if s.server.hasTransactionTimeout() {
		return "transaction_timeout"
	}
	return "statement_timeout"
}

func (s *Store) readSession(ctx context.Context, on session) (f inForce, err error) {
	var version int
	err = on.run(ctx, step{sql: s.sql[stmtSession], each: func(scan scanner) error {
		return scan(append([]any{&version}, f.columns()...)...)
	}})
	return f, err
}

// purge is one batch.
type purge struct {
	s      *Store
	on     session
	limit  int
	left   int
	report pawl.PurgeReport
}

func (p *purge) run(ctx context.Context) error {
	parts := []func(context.Context) error{p.grants, p.operations, p.attempts, p.results}
	if p.report.Held == "" {
		parts = append([]func(context.Context) error{p.refusals}, parts...)
	}
	for _, part := range parts {
		if p.left <= 0 {
			break
		}
		if err := part(ctx); err != nil {
			return err
		}
	}
	return p.summary(ctx)
}

// count runs one deleting statement and takes what it did off the batch.
func (p *purge) count(ctx context.Context, what statement, total *int, args ...any) error {
	n := 0
	err := p.s.write(ctx, p.on, step{sql: p.s.sql[what], args: append(args, p.left), each: func(scan scanner) error { return scan(&n) }})
	*total += n
	p.left -= n
	return err
}

func (p *purge) refusals(ctx context.Context) error {
	return p.count(ctx, stmtPurgeClaims, &p.report.Refusals)
}

func (p *purge) grants(ctx context.Context) error {
	return p.count(ctx, stmtPurgeGrants, &p.report.Grants)
}

func (p *purge) results(ctx context.Context) error {
	return p.count(ctx, stmtPurgeResults, &p.report.Results, p.s.timings.RetainResults)
}

// lockDue begins a transaction and locks one batch of operations in it.
func (p *purge) lockDue(ctx context.Context, what statement, retain time.Duration) (ids []uuid.UUID, err error) {
	var f inForce
	lock := step{sql: p.s.sql[what], args: []any{retain, p.left}, each: func(scan scanner) error {
		var id uuid.UUID
		err := scan(&id)
		ids = append(ids, id)
		return err
	}}
	err = p.on.run(ctx, step{sql: beginSQL}, p.s.sessionStep(&f), lock)
	if err == nil {
		err = p.s.unfit(&f, forTheRest)
	}
	if err != nil || len(ids) == 0 {
		rollBack(ctx, p.on)
	}
	return ids, err
}

// operations deletes settled ones with their logs [P3].
func (p *purge) operations(ctx context.Context) error {
	ids, err := p.lockDue(ctx, stmtLockDueOperations, p.s.timings.RetainOperations)
	if err != nil || len(ids) == 0 {
		return err
	}
	err = transaction(ctx, p.on, []step{
		{sql: p.s.sql[stmtDeleteLogs], args: []any{ids}},
		{sql: p.s.sql[stmtDeleteOperations], args: []any{ids}},
	})
	if err != nil {
		return err
	}
	p.report.Operations += len(ids)
	p.left -= len(ids)
	return nil
}

// attempts deletes log entries of settled operations and notes that it did [M9].
func (p *purge) attempts(ctx context.Context) error {
	retain := p.s.timings.RetainAttempts
	ids, err := p.lockDue(ctx, stmtLockDueLogs, retain)
	if err != nil || len(ids) == 0 {
		return err
	}
	deleted, shorter := 0, []uuid.UUID{}
	err = p.on.run(ctx, step{
		sql: p.s.sql[stmtPurgeEntries], args: []any{ids, retain, p.left},
		each: func(scan scanner) error {
			var id uuid.UUID
			var n int
			err := scan(&id, &n)
			deleted, shorter = deleted+n, append(shorter, id)
			return err
		},
	})
	if err != nil {
		rollBack(ctx, p.on)
		return err
	}
	if err := transaction(ctx, p.on, []step{{sql: p.s.sql[stmtNotePurgedLogs], args: []any{ids, shorter}}}); err != nil {
		return err
	}
	p.report.Attempts += deleted
	p.left -= deleted
	return nil
}

// summary tells what is left.
func (p *purge) summary(ctx context.Context) error {
	t := p.s.timings
	longest := max(t.RetainOperations, t.RetainAttempts, t.RetainResults, t.KeyLifetime)
	var overdue *int64
	err := p.on.run(ctx, step{
		sql:  p.s.sql[stmtPurgeSummary],
		args: []any{t.RetainOperations, t.RetainAttempts, t.RetainResults, longest, p.report.Held == "", p.left < p.limit},
		each: func(scan scanner) error { return scan(&overdue, &p.report.More, &p.report.Stale) },
	})
	if overdue != nil && *overdue > 0 {
		p.report.Overdue = ofMicros(*overdue)
	}
	return err
}

// RaiseEpoch implements pawl.Keeper.
func (s *Store) RaiseEpoch(ctx context.Context) (pawl.Epoch, error) {
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (e pawl.Epoch, err error) {
		err = s.write(ctx, on, step{sql: s.sql[stmtRaiseEpoch], each: func(scan scanner) error {
			err := scan(&e.Number, &e.IssuedNotBefore)
			e.IssuedNotBefore = e.IssuedNotBefore.UTC()
			return err
		}})
		return e, err // [A12]
	})
}

// Erase implements pawl.Keeper.
func (s *Store) Erase(ctx context.Context, e pawl.Erasure) (pawl.ErasureReport, error) {
	if err := e.Validate(); err != nil {
		return pawl.ErasureReport{}, err
	}
	limit := e.Limit
	if limit == 0 {
		limit = pawl.MaxPage
	}
	c := e.Caller
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (r pawl.ErasureReport, err error) {
		err = s.write(ctx, on, step{
			sql: s.sql[stmtEraseOperations], args: []any{c.Authority, c.Principal, c.Tenant, e.By, e.Reason, limit},
			each: func(scan scanner) error { return scan(&r.Erased) },
		})
		if err != nil {
			return r, err
		}
		return r, on.run(ctx, step{
			sql: s.sql[stmtCountErasable], args: []any{c.Authority, c.Principal, c.Tenant},
			each: func(scan scanner) error { return scan(&r.Unsettled, &r.More) },
		})
	})
}
