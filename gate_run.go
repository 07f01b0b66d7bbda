package pawl

import (
	"context"
	"sync"
)

// Run recovers what stalled and purges what retention no longer needs, until ctx
// ends or the gate closes. Then it starts nothing more, waits as long as the
// grace says for what is in flight, requests included, cancels what is left of
// its own and returns: no goroutine of it outlives it unless an effect ignores
// its context [E7]. Requests are still taken afterwards; Close ends those.
//
// Several processes may run it on one store, and several times in one. A store
// that goes away is asked again until it comes back. Errors: ErrUnavailable for a
// closed gate, and for calls that did not end.
func (g *Gate) Run(ctx context.Context) error {
	ctx, j, ok := g.crew.stand(ctx)
	if !ok {
		return closedFor(ErrUnavailable)
	}
	defer g.crew.leave(j)
	sweeper := g.newSweeper()
	var loops sync.WaitGroup
	loops.Go(func() { g.recovering(ctx, sweeper) })
	loops.Go(func() { g.purging(ctx) })
	loops.Wait()
	g.await(g.crew.working(), g.grace)
	if err := g.abandon(sweeper.working()); err != nil {
		return err
	}
	sweeper.wait()
	return nil
}

// RecoverOnce makes one recovery pass: it takes over everything that is stalled
// now, as many at a time as there are workers, and returns when all of it has
// ended. Errors: ErrUnavailable; the report tells what was done before.
func (g *Gate) RecoverOnce(ctx context.Context) (RecoveryReport, error) {
	s := g.newSweeper()
	err := s.sweep(ctx)
	s.wait()
	return s.total(), err
}

// recovering sweeps again and again. A slow operation holds up one worker and
// not the next sweep.
func (g *Gate) recovering(ctx context.Context, s *sweeper) {
	if len(g.effects) == 0 {
		return // a gate recovers only kinds that it has an effect for
	}
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			g.tell(ctx, Event{Type: EventRecovery, Reason: ReasonOf(err), Err: err})
		}
		if !pauseFor(ctx, g.timings.RecoveryInterval) {
			return
		}
	}
}

// purging purges batch by batch, with a pause after each so that one lock at a
// time is held and others get theirs [P4].
func (g *Gate) purging(ctx context.Context) {
	for {
		report, err := g.Purge(ctx, PurgeBatch{})
		wait := g.purgeWait
		if err == nil && report.More {
			wait = min(wait, g.timings.StoreCallTimeout/20)
		}
		if !pauseFor(ctx, wait) {
			return
		}
	}
}

// sweeper is recovery's workers.
type sweeper struct {
	g     *Gate
	slots chan struct{} // one for each worker at work
	work  sync.WaitGroup

	mu     sync.Mutex
	report RecoveryReport
	jobs   map[*job]struct{}
}

func (g *Gate) newSweeper() *sweeper {
	return &sweeper{g: g, slots: make(chan struct{}, g.workers), jobs: map[*job]struct{}{}}
}

// sweep takes over as many as there are free workers, starts them, and goes on
// until nothing more is stalled. An operation that is taken over is worked on at
// once: a lease does not run in a queue.
func (s *sweeper) sweep(ctx context.Context) error {
	leases := s.g.kinds()
	if len(leases) == 0 {
		return nil
	}
	for {
		free := s.seize(ctx)
		if free == 0 {
			return nil // ctx ended
		}
		watch := startStopwatch() // before the question [O5]
		taken, err := s.g.takeOver(ctx, TakeOver{Leases: leases, Limit: free, By: s.g.name})
		taken = taken[:min(len(taken), free)]
		s.release(free - len(taken))
		closed := false
		for _, t := range taken {
			closed = !s.begin(ctx, t, watch) || closed
		}
		switch {
		case err != nil:
			return err
		case closed:
			return closedFor(ErrUnavailable)
		case len(taken) < free:
			return nil
		}
	}
}

// seize waits for a free worker and takes all that are free. It returns 0 when
// ctx ends first.
func (s *sweeper) seize(ctx context.Context) (free int) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	if ctx.Err() != nil {
		s.release(1)
		return 0
	}
	for free = 1; ; free++ {
		select {
		case s.slots <- struct{}{}:
		default:
			return free
		}
	}
}

func (s *sweeper) release(n int) {
	for range n {
		<-s.slots
	}
}

// begin starts one worker on an operation. It returns false for a closed gate:
// the operation is free again when its lease ends.
func (s *sweeper) begin(ctx context.Context, t TakenOver, w stopwatch) bool {
	work, j, ok := s.g.crew.join(ctx)
	if !ok {
		s.release(1)
		return false
	}
	s.mu.Lock()
	s.report.TakenOver++
	s.jobs[j] = struct{}{}
	s.mu.Unlock()
	r := s.g.newRescue(t, w)
	s.work.Go(func() {
		end := lost
		defer func() { s.end(j, r, end) }()
		end = r.run(work)
	})
	return true
}

func (s *sweeper) end(j *job, r *rescue, e ending) {
	s.mu.Lock()
	delete(s.jobs, j)
	s.report.count(e)
	if r.created {
		s.report.Created++
	}
	s.mu.Unlock()
	s.release(1)
	s.g.crew.leave(j)
}

func (s *sweeper) wait() { s.work.Wait() }

func (s *sweeper) total() RecoveryReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

// working returns the operations that are still being recovered.
func (s *sweeper) working() (jobs []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for j := range s.jobs {
		jobs = append(jobs, j)
	}
	return jobs
}
