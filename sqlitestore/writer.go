package sqlitestore

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/failpoint"
)

const (
	queueLength = 1024 // jobs that wait; more wait to be let in
	groupSize   = 256  // jobs of one commit at most
	yieldAfter  = 512  // jobs without a pause, before other processes are let in
)

// Waiting for the write lock: often enough to meet the moment between two
// groups of another process, rarely enough to cost nothing.
const (
	shortestWait = 100 * time.Microsecond
	longestWait  = time.Millisecond
)

// job is what one caller asked for. It runs on the writer's goroutine.
type job struct {
	ctx   context.Context // asked once, before the job begins: then it runs to its end [A3]
	class pawl.Class      // of an answer that cannot be had
	run   func(*txn) error
	done  chan error // has room for the one answer, so that a caller may have left
	lent  *Tx        // takes the lock for a caller's own transaction instead
}

// writer owns the one connection of a process that writes. What waits is done in
// one transaction, each job in a savepoint of its own, and is answered after
// the commit: a group shares one wait for the disk.
type writer struct {
	engine   engine
	path     string
	file     os.FileInfo // the file that the store opened
	patience time.Duration
	log      *slog.Logger
	store    identity
	hooks    hooks

	queue  chan *job
	ended  chan struct{} // closed when the goroutine has ended
	atWork atomic.Bool   // something that left the queue is not answered yet; tests wait for it

	// Used by the goroutine only.
	session  *session
	policy   pawl.Policy
	revision int64
	jobs     int64 // jobs done, whatever became of them
	sinceGap int   // jobs done without a pause
}

// hooks are for tests. The zero value does nothing.
type hooks struct {
	clock func() any                   // replaces the engine's clock: microseconds, or nil
	end   func(end func() error) error // around the end of every transaction; its error takes the place of all answers
}

func (h hooks) time() any {
	if h.clock == nil {
		return nil
	}
	return h.clock()
}

// loop ends when the queue is closed and empty.
func (w *writer) loop() {
	defer close(w.ended)
	defer w.giveUp()
	var next *job
	for {
		first, ok := next, true
		if next = nil; first == nil {
			if first, ok = <-w.queue; !ok {
				return
			}
		}
		w.atWork.Store(true)
		if first.lent != nil {
			w.lend(first)
			w.jobs++
		} else {
			var group []*job
			group, next = w.gather(first)
			w.do(group)
			w.jobs += int64(len(group))
			w.yield(len(group))
		}
		w.atWork.Store(false)
	}
}

// gather takes what waits, up to a group. A transaction to be lent waits for its
// own turn.
func (w *writer) gather(first *job) (group []*job, next *job) {
	for j := first; ; {
		if j.lent != nil {
			return group, j
		}
		if err := j.ctx.Err(); err != nil {
			j.done <- cancelled(j.class, err)
		} else {
			group = append(group, j)
		}
		if len(group) >= groupSize {
			return group, nil
		}
		var ok bool
		select {
		case j, ok = <-w.queue:
			if !ok {
				return group, nil
			}
		default:
			return group, nil
		}
	}
}

// do runs a group in one transaction and answers all of it after its end.
func (w *writer) do(group []*job) {
	if len(group) == 0 {
		return
	}
	t, err := w.begin()
	if err != nil {
		w.answerAll(group, err) // nothing was begun
		return
	}
	answers := make([]error, len(group))
	for i, j := range group {
		run := w.runJob
		if len(group) == 1 {
			run = w.runAlone
		}
		if answers[i], err = run(t, j.run); err != nil {
			w.fail(group, err)
			return
		}
	}
	if err := w.end(t); err != nil {
		w.fail(group, err)
		return
	}
	for i, j := range group {
		j.done <- w.engine.explain(answers[i], j.class)
	}
}

// runJob runs one job in its savepoint. answer is the job's own; err says that
// the whole transaction is in doubt.
func (w *writer) runJob(t *txn, run func(*txn) error) (answer, err error) {
	if err := w.session.do(jobSave); err != nil {
		return nil, err
	}
	wrote := t.wrote
	answer = run(t)
	if w.engine.lost(answer) {
		return nil, answer
	}
	if _, stands := answer.(*kept); answer == nil || stands {
		return answer, w.session.do(jobKeep)
	}
	t.wrote = wrote
	return answer, w.session.do(jobUndo, jobKeep) // this job only
}

// runAlone runs the only job of a transaction, which needs no savepoint: what it
// must not leave goes with the transaction.
func (w *writer) runAlone(t *txn, run func(*txn) error) (answer, err error) {
	answer = run(t)
	if w.engine.lost(answer) {
		return nil, answer
	}
	if _, stands := answer.(*kept); answer != nil && !stands {
		t.wrote = false
	}
	return answer, nil
}

// begin takes the write lock and the store's time.
func (w *writer) begin() (*txn, error) {
	if err := sameFile(w.path, w.file); err != nil {
		w.giveUp()
		return nil, err
	}
	if w.session == nil {
		s, err := openSession(context.Background(), w.engine, w.path, w.patience)
		if err != nil {
			return nil, err
		}
		w.session = s
		if err := s.set.unsafe(); err != nil {
			w.giveUp()
			return nil, err
		}
	}
	if err := w.lock(context.Background()); err != nil {
		return nil, err
	}
	t, err := w.transaction()
	if err != nil {
		w.giveUp()
		return nil, err
	}
	return t, nil
}

// lock begins the transaction, immediate. While another connection has the lock
// nothing is written, so it may be asked for again until patience or ctx ends.
func (w *writer) lock(ctx context.Context) error {
	patience := time.NewTimer(w.patience)
	defer patience.Stop()
	for wait := shortestWait; ; wait = min(2*wait, longestWait) {
		err := w.session.do(begin)
		if err == nil {
			return nil
		}
		if !w.engine.busy(err) {
			w.giveUp()
			return err
		}
		again := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-again.C:
		case <-patience.C:
			again.Stop()
			return err
		case <-ctx.Done():
			again.Stop()
			return ctx.Err()
		}
	}
}

func (w *writer) transaction() (*txn, error) {
	b, err := raiseFloor(w.session.asker, w.hooks.time())
	if err != nil {
		return nil, err
	}
	if b.revision != w.revision {
		m, _, err := readMeta(w.session.asker)
		if err != nil {
			return nil, err
		}
		w.policy, w.revision = m.policy, m.revision
	}
	return &txn{
		asker: w.session.asker, engine: w.engine, store: w.store, policy: w.policy, epoch: b.epoch, now: b.now,
		jobs: w.jobs,
	}, nil
}

// end commits what was written. A transaction that wrote nothing is rolled back:
// no answer from it rests on more than what others committed. After an error it
// may have been committed all the same.
func (w *writer) end(t *txn) error {
	end := func() error { return w.session.do(rollback) }
	if t.wrote {
		end = w.commit
	}
	if w.hooks.end != nil {
		committed := end
		end = func() error { return w.hooks.end(committed) }
	}
	err := end()
	if err == nil || w.engine.primary(err) == codeConstraint {
		return err // nothing is committed over a violation, and it is a defect [A7]
	}
	return fmt.Errorf("%w: %w", errUnconfirmed, err)
}

func (w *writer) commit() error {
	if err := failpoint.Hit(failpoint.CommitBefore); err != nil {
		return err
	}
	if err := w.session.do(commit); err != nil {
		return err
	}
	return failpoint.Hit(failpoint.CommitAfter)
}

// fail answers a group of which nobody knows, or nobody may say, whether it was
// committed, and gives up the connection: what is not committed is undone by
// that, and what is stands.
func (w *writer) fail(group []*job, err error) {
	w.giveUp()
	w.answerAll(group, err)
}

func (w *writer) answerAll(group []*job, err error) {
	w.log.Error("sqlitestore: calls were not confirmed", "calls", len(group), "error", err)
	for _, j := range group {
		j.done <- w.engine.unbegun(err, j.class)
	}
}

func (w *writer) giveUp() {
	if w.session == nil {
		return
	}
	if err := w.session.close(); err != nil {
		w.log.Warn("sqlitestore: closing a connection", "error", err)
	}
	w.session = nil
}

// yield leaves the lock alone for a moment after a long busy stretch: other
// processes ask for it again and again, and must find it free in the end.
func (w *writer) yield(done int) {
	if len(w.queue) == 0 {
		w.sinceGap = 0
		return
	}
	if w.sinceGap += done; w.sinceGap < yieldAfter {
		return
	}
	w.sinceGap = 0
	<-time.NewTimer(2 * longestWait).C
}
