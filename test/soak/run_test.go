//go:build unix && !failpoints

package soak

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

const (
	lanes        = 8               // customers at once
	answerWait   = 6 * time.Second // how long a customer waits for an answer
	heldAtMost   = 20 * time.Second
	strikeWait   = 5 * time.Second // how long a strike waits for a call to be held
	restBetween  = 150 * time.Millisecond
	finishAtMost = 4 * time.Minute // for recovery, when the last customer has gone
)

// run is one soak: the plan on a world with two workers.
type run struct {
	plan  plan
	w     *world
	slots [2]*slot
	files []file // by trial

	kills, pauses, unheard atomic.Int64
	mu                     sync.Mutex
	problems               []error // of the test itself, not of what it tests
}

// report tells the shape of a run, so that one can see that it was worth something.
type report struct {
	kills, pauses, unheard int // unheard are answers that did not reach a customer
	lost                   int // replies of the provider, after their effect
	statuses               map[pawl.Status]int
	takeovers, repeats     int // repeats are create calls after the first under one operation
	effects                int
	took                   time.Duration
}

// slot is one of the two workers, whichever process it is now.
type slot struct {
	a       assignment
	strikes chan strike

	mu   sync.Mutex
	now  *process
	past []*process
}

func (s *slot) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// restart starts a process in the place of the last one, again and again as a supervisor does: while the other worker is
// stopped with the write lock of a file in its hands, nobody can open the file.
func (s *slot) restart(ctx context.Context) error {
	trying, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		p, err := start(trying, s.a)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.past = append(s.past, p)
			s.now = p
			return nil
		}
		if pauseFor(trying, restBetween) != nil {
			return err
		}
	}
}

// killAll ends every process that there was.
func (s *slot) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.past {
		p.kill()
	}
}

func (r *run) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, fmt.Errorf(format, args...))
}

// play runs the plan to its end and returns everything to judge by.
func play(t *testing.T, w *world, p plan, change func(*assignment)) (evidence, report) {
	t.Helper()
	began := time.Now()
	ctx, cancel := bound(t)
	defer cancel()
	r := &run{plan: p, w: w, files: make([]file, len(p.trials))}
	if err := w.provider.Inject(p.faults()...); err != nil {
		t.Fatal(err)
	}
	for i := range r.slots {
		a := w.assign(fmt.Sprint("worker ", i))
		if change != nil {
			change(&a)
		}
		s := &slot{a: a, strikes: make(chan strike)}
		r.slots[i] = s
		t.Cleanup(s.killAll)
		if err := s.restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	r.present(ctx)
	operations := r.settle(ctx)
	if err := errors.Join(r.problems...); err != nil {
		t.Fatalf("seed %d: %v", p.seed, err)
	}
	e := evidence{
		files: r.files, operations: operations, books: w.provider.Books(), stated: w.terms.Stated, alarms: r.alarms(),
	}
	return e, r.report(e, time.Since(began))
}

// bound ends a run before the test's own deadline does, so that what failed can be told and processes are cleaned up.
func bound(t *testing.T) (context.Context, context.CancelFunc) {
	end, ok := t.Deadline()
	if !ok {
		return context.WithCancel(t.Context())
	}
	return context.WithDeadline(t.Context(), end.Add(-20*time.Second))
}

// present lets customers come until every grant was presented, and strikes the workers meanwhile.
func (r *run) present(ctx context.Context) {
	var striking, presenting sync.WaitGroup
	for _, s := range r.slots {
		striking.Go(func() {
			for x := range s.strikes {
				if err := r.strike(ctx, s, x); err != nil {
					r.problem("striking %s: %w", s.a.Name, err)
				}
			}
		})
	}
	next := make(chan int)
	for range lanes {
		presenting.Go(func() {
			for n := range next {
				if err := r.try(ctx, n); err != nil {
					r.problem("trial %d: %w", n, err)
				}
			}
		})
	}
	strikes := r.plan.strikes
	for n := range r.plan.trials {
		next <- n
		for len(strikes) > 0 && strikes[0].trial == n {
			r.slots[strikes[0].worker].strikes <- strikes[0] // waits while the worker suffers its last one
			strikes = strikes[1:]
		}
	}
	close(next)
	presenting.Wait()
	for _, s := range r.slots {
		close(s.strikes)
	}
	striking.Wait()
}

// strike kills a worker and starts another in its place, or stops it past its lease.
func (r *run) strike(ctx context.Context, s *slot, x strike) error {
	if x.gate != "" {
		waiting, cancel := context.WithTimeout(ctx, strikeWait)
		_ = r.w.provider.Await(waiting, x.gate, 1) // the call may have been lost to another strike
		cancel()
	}
	p := s.process()
	if !x.pause {
		p.kill()
		r.kills.Add(1)
		if !signalled(p.err) {
			return fmt.Errorf("it had ended by itself: %w: %s", p.err, &p.errs)
		}
		return s.restart(ctx)
	}
	if err := p.pause(); err != nil {
		return err
	}
	r.pauses.Add(1)
	err := pauseFor(ctx, r.w.terms.lease()*4/3)
	return errors.Join(err, p.resume())
}

// try is one grant, presented as its trial says.
func (r *run) try(ctx context.Context, n int) error {
	x := r.plan.trials[n]
	f := file{trial: x}
	defer func() { r.files[n] = f }()
	g, err := r.w.issue(ctx, x.form, x.account, x.amount)
	if err != nil {
		return err
	}
	fresh := func() pawl.OperationID {
		id := pawl.NewOperationID()
		f.ids = append(f.ids, id)
		return id
	}
	id := fresh()
	if x.hangUp {
		hurried, cancel := context.WithTimeout(ctx, x.hurried)
		_, _ = r.w.ask(hurried, r.slots[x.first].process().url, g.order(id)) // whatever it was, nobody hears it
		cancel()
	}
	var held sync.WaitGroup
	if x.held {
		held.Go(func() { r.letGo(ctx, x, id) })
	}
	defer held.Wait()
	switch {
	case x.rivals:
		err = r.both(ctx, &f, g, id, fresh(), "")
	case x.both:
		err = r.both(ctx, &f, g, id, id, mustReport)
	default:
		err = r.one(ctx, &f, g, id, x.first, mustReport)
	}
	if err == nil && x.again && !x.rivals {
		err = r.one(ctx, &f, g, id, 1-x.first, mustReport)
	}
	if err == nil && x.other {
		err = r.one(ctx, &f, g, fresh(), 1-x.first, mustRefuse)
	}
	return err
}

// letGo releases a call that is held at the provider when recovery has sent another one or has left the operation to a
// person.
func (r *run) letGo(ctx context.Context, x trial, id pawl.OperationID) {
	gate := x.fault.HoldBefore + x.fault.HoldAfter
	defer r.w.provider.Release(gate)
	waiting, cancel := context.WithTimeout(ctx, heldAtMost)
	defer cancel()
	_ = until(waiting, "recovery", func() bool { // else the call is simply slow
		status := r.w.get(waiting, id).Status
		return r.w.requests(id) > 1 || status != 0 && !status.Open()
	})
}

// both presents a grant to both workers at once.
func (r *run) both(ctx context.Context, f *file, g grant, one, two pawl.OperationID, must expectation) error {
	var second file
	var errTwo error
	var other sync.WaitGroup
	other.Go(func() { errTwo = r.one(ctx, &second, g, two, 1-f.first, must) })
	err := r.one(ctx, f, g, one, f.first, must)
	other.Wait()
	f.answers = append(f.answers, second.answers...)
	return errors.Join(err, errTwo)
}

// one presents a grant under one id, at one worker and then the other, until there is an answer: an answer that was lost,
// and "not confirmed", are reasons to ask again with the same id [A6, A8].
func (r *run) one(ctx context.Context, f *file, g grant, id pawl.OperationID, worker int, must expectation) error {
	for {
		asking, cancel := context.WithTimeout(ctx, answerWait)
		got, err := r.w.ask(asking, r.slots[worker].process().url, g.order(id))
		cancel()
		if err == nil && got.Code != http.StatusServiceUnavailable {
			f.answers = append(f.answers, heard{id, got, must})
			return nil
		}
		r.unheard.Add(1)
		if err := pauseFor(ctx, restBetween); err != nil {
			return fmt.Errorf("no answer for operation %v: %w", id, err)
		}
		worker = 1 - worker
	}
}

// report says that the answer is about the operation as it stands.
func (a reply) report() bool { return a.Code == http.StatusOK || a.Code == http.StatusAccepted }

// settle waits until recovery has left nothing open, stops workers and provider in good order, and reads the records.
func (r *run) settle(ctx context.Context) []pawl.Operation {
	waiting, cancel := context.WithTimeout(ctx, finishAtMost)
	defer cancel()
	open := pawl.Filter{Statuses: []pawl.Status{pawl.StatusAdmitted, pawl.StatusUnknown}, Limit: 1}
	err := until(waiting, "recovery to finish", func() bool {
		page, err := r.w.store.List(waiting, open)
		return err == nil && len(page.Operations) == 0
	})
	if err != nil {
		r.problem("%w", err)
	}
	for _, s := range r.slots {
		if closed, err := s.process().quit(ctx); err != nil || closed.Text != "" {
			r.problem("%s: %w: %s", s.a.Name, err, closed.Text)
		}
	}
	if err := r.w.stop(); err != nil {
		r.problem("the provider: %w", err)
	}
	var all []pawl.Operation
	for f := (pawl.Filter{Limit: pawl.MaxPage}); ; {
		page, err := r.w.store.List(ctx, f)
		if err != nil {
			r.problem("reading the records: %w", err)
			return all
		}
		all = append(all, page.Operations...)
		if f.Cursor = page.Next; f.Cursor == "" {
			return all
		}
	}
}

// alarms are what workers themselves called a defect, or a sign of a second effect.
func (r *run) alarms() (all []string) {
	for _, s := range r.slots {
		for _, p := range s.past {
			for _, a := range p.said(func(s said) bool {
				return s.Type == string(pawl.EventDefect) || s.Type == string(pawl.EventSuspicious) || s.Type == saidNonsense
			}) {
				all = append(all, fmt.Sprintf("%s: %+v", p.Name, a))
			}
		}
	}
	return all
}

func (r *run) report(e evidence, took time.Duration) report {
	rep := report{
		kills: int(r.kills.Load()), pauses: int(r.pauses.Load()), unheard: int(r.unheard.Load()),
		statuses: map[pawl.Status]int{}, effects: len(e.books.Credits), took: took,
	}
	called := map[string]bool{}
	for _, op := range e.operations {
		rep.statuses[op.Status]++
		rep.takeovers += op.Takeovers
		requests := e.books.Reference(op.ID.String()).Requests
		rep.repeats += max(0, requests-1)
		called[op.ID.String()] = requests > 0
	}
	for _, f := range e.files {
		for _, id := range f.ids {
			if f.lossy && called[id.String()] {
				rep.lost++
			}
		}
	}
	return rep
}

func (r report) String() string {
	return fmt.Sprintf("%d kills, %d pauses past the lease, %d provider replies lost, %d answers that no customer heard, %d takeovers, "+
		"%d repeated create calls; %d succeeded, %d failed, %d needs_reconciliation; %d effects; %v",
		r.kills, r.pauses, r.lost, r.unheard, r.takeovers, r.repeats, r.statuses[pawl.StatusSucceeded], r.statuses[pawl.StatusFailed],
		r.statuses[pawl.StatusNeedsReconciliation], r.effects, r.took.Round(100*time.Millisecond))
}
