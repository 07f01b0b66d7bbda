package sqlitestore

import (
	"context"
	"database/sql"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pace"
)

const (
	defaultBatch = 1000
	largestBatch = 10_000

	// How many rows one transaction deletes while others write, who wait for it
	// about as long as for a few of their own kind, and while nobody does.
	sharedChunk = 8
	aloneChunk  = 32
	logChunk    = 256

	// While others write, a purge pauses after each chunk for so many times as
	// long as that took: it has a fifth of the store's time.
	purgeYield   = 4
	longestPause = 100 * time.Millisecond
)

// Purge implements pawl.Store. An admission decides under the same write lock
// and by the same clock, which never goes back, so what is deleted here is of
// grants that can never be admitted again, whatever the clock does [P1]. A batch
// is many short transactions, between which others have their turn [P4] and ctx is
// asked. With an error comes the report of what was deleted until then.
func (s *Store) Purge(ctx context.Context, b pawl.PurgeBatch) (pawl.PurgeReport, error) {
	if b.Limit < 0 || b.Limit > largestBatch {
		return pawl.PurgeReport{}, malformed("limit is not 1 to 10000")
	}
	if b.Limit == 0 {
		b.Limit = defaultBatch
	}
	var all pawl.PurgeReport
	var last activity
	for left, chunk := b.Limit, sharedChunk; left > 0; {
		if err := ctx.Err(); err != nil {
			return all, cancelled(pawl.ErrUnavailable, err)
		}
		piece := pace.Begin()
		done, err := s.purgeChunk(context.WithoutCancel(ctx), min(left, chunk), left)
		if err != nil {
			return all, err
		}
		all = all.Add(done.report)
		if !all.More {
			all.Stale, err = s.stale(ctx, done.now)
			return all, err
		}
		left -= max(chunk, done.report.Deleted())
		if chunk = aloneChunk; !done.activity.alone(last) {
			chunk = sharedChunk
			s.checkpoint(ctx)
			piece.Pause(ctx, purgeYield, longestPause)
		}
		last = done.activity
	}
	return all, nil
}

// activity tells one moment of the store from another by what was written.
type activity struct {
	jobs    int64 // that this process's writer had done
	version int64 // the engine's, which changes with the commits of other connections
}

// alone reports whether nobody but one job of this process wrote since. The zero
// activity is of a time unknown.
func (a activity) alone(since activity) bool {
	return since.version != 0 && a.version == since.version && a.jobs == since.jobs+1
}

// checkpoint moves what a chunk wrote from the log into the file, beside the
// writer. Left to the commits of admissions, as it is where this fails, one in
// some of them would wait for all the scattered pages of a purge at once.
func (s *Store) checkpoint(ctx context.Context) {
	if rows, err := s.prepared["checkpoint"].QueryContext(ctx); err == nil {
		_ = rows.Close()
	}
}

// purgeChunk deletes so many rows in one transaction, or more of one log: its
// entries stand side by side, and each transaction that deletes some leaves one.
// most is what is left of the batch.
func (s *Store) purgeChunk(ctx context.Context, rows, most int) (*purge, error) {
	return write(ctx, s, pawl.ErrUnavailable, func(t *txn) (*purge, error) {
		p := &purge{txn: t, timings: s.opts.timings, left: int64(rows), logs: int64(min(most-rows, logChunk)), activity: activity{jobs: t.jobs}}
		if _, err := t.one("data_version", []any{&p.activity.version}); err != nil {
			return nil, err
		}
		for _, step := range []func() error{p.refusals, p.grants, p.operations, p.attempts, p.results} {
			if err := step(); err != nil {
				return nil, err
			}
		}
		return p, nil
	})
}

// stale counts, without the write lock, what is never deleted by time and should
// have ended long ago [P3]. It looks at all that is open, so that is done once
// nothing more is due, not for every batch.
func (s *Store) stale(ctx context.Context, now time.Time) (int, error) {
	t := s.opts.timings
	longest := max(t.RetainOperations, t.RetainAttempts, t.RetainResults, t.KeyLifetime)
	return read(ctx, s, func(a asker) (n int, err error) {
		_, err = a.one("count_stale", []any{&n}, named("cutoff", micros(now.Add(-longest))))
		return n, err
	})
}

// purge is one chunk of a batch.
type purge struct {
	*txn
	timings  pawl.Timings
	activity activity // before it
	left     int64    // rows that may still be deleted
	logs     int64    // log entries that may be
	report   pawl.PurgeReport
}

// delete runs a statement that deletes at most what is left of the batch.
func (p *purge) delete(name string, cutoff time.Time, args ...any) (int, error) {
	if p.left == 0 {
		return 0, nil
	}
	n, err := p.exec(name, append(args, named("cutoff", micros(cutoff)), named("limit", p.left))...)
	p.spent(n)
	return int(n), err
}

func (p *purge) spent(n int64) {
	p.wrote = p.wrote || n > 0
	p.left -= n
	if p.left == 0 {
		p.report.More = true
	}
}

// before is the moment that lies a retention ago.
func (p *purge) before(keep time.Duration) time.Time { return p.now.Add(-keep) }

func (p *purge) refusals() (err error) {
	p.report.Refusals, err = p.delete("purge_claims", p.before(p.policy.PurgeMargin))
	if err != nil {
		return err
	}
	var oldest int64
	found, err := p.one("oldest_claim", []any{&oldest})
	if found {
		p.report.Overdue = max(0, p.before(p.policy.PurgeMargin).Sub(timeOf(oldest)))
	}
	return err
}

func (p *purge) grants() (err error) {
	p.report.Grants, err = p.delete("purge_grants", p.before(p.policy.PurgeMargin))
	return err
}

// operations counts from settlement. A reservation is its own refusal record:
// its key's lifetime is a lower bound [B3].
func (p *purge) operations() (err error) {
	keep := max(p.timings.RetainOperations, p.policy.KeyLifetime)
	p.report.Operations, err = p.delete("purge_operations", p.before(keep))
	return err
}

func (p *purge) attempts() error {
	rows := p.left
	if rows == 0 {
		return nil
	}
	cutoff := p.before(p.timings.RetainAttempts)
	due, err := ids(p.asker, "list_purgeable_logs", named("cutoff", micros(cutoff)), named("limit", rows))
	if err != nil || len(due) == 0 {
		return err
	}
	p.left = max(rows, p.logs)
	defer func() {
		p.left = max(0, rows-int64(p.report.Attempts))
		p.report.More = p.left == 0 || int64(len(due)) == rows
	}()
	for _, id := range due {
		n, err := p.delete("purge_entries", cutoff, named("operation_id", id[:]))
		if err != nil {
			return err
		}
		if n == 0 {
			return nil // the batch is full
		}
		p.report.Attempts += n
		var seq int64
		if _, err := p.one("note_purged_log", []any{&seq}, named("operation_id", id[:])); err != nil {
			return err
		}
		if err := p.tell(id, seq, "log entries"); err != nil {
			return err
		}
	}
	return nil
}

func (p *purge) results() error {
	if p.left == 0 {
		return nil
	}
	type cleared struct {
		id  []byte
		seq int64
	}
	var done []cleared
	err := p.each("purge_results", func(rows *sql.Rows) error {
		var c cleared
		err := rows.Scan(&c.id, &c.seq)
		done = append(done, c)
		return err
	}, named("cutoff", micros(p.before(p.timings.RetainResults))), named("limit", p.left))
	if err != nil {
		return err
	}
	p.spent(int64(len(done)))
	p.report.Results = len(done)
	for _, c := range done {
		var id pawl.OperationID
		if !fill(id[:], c.id) {
			return errSize
		}
		if err := p.tell(id, c.seq, "result"); err != nil {
			return err
		}
	}
	return nil
}

// tell leaves an entry in the log, so that a timeline says what is gone [M9].
func (p *purge) tell(id pawl.OperationID, seq int64, what string) error {
	return p.note(id, seq, pawl.Entry{
		Type: pawl.EntryPurge, Source: "retention", Disposition: pawl.Applied, Reason: what,
	})
}
