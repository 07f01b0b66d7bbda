package pawl

import (
	"context"
	"sync"
)

// crew keeps account of the work in flight, so that every goroutine of a gate
// has an owner that can wait for it and stop it [E7].
type crew struct {
	mu     sync.Mutex
	closed bool
	jobs   map[*job]struct{}
}

// job is one piece of work: an operation being performed or recovered, or a
// running Run.
type job struct {
	cancel  context.CancelFunc
	done    chan struct{} // closed when the work has ended
	standby bool          // ends when the gate closes, not after the grace: a Run, or who only waits
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// join takes on a piece of work. Its context has the values of ctx; only the
// crew ends it, so that a caller that hangs up changes nothing [E4]. ok is false
// for a closed crew. Whoever joins must leave.
func (c *crew) join(ctx context.Context) (work context.Context, j *job, ok bool) {
	return c.take(context.WithoutCancel(ctx), false)
}

// stand takes on a Run, which ends with ctx or with the crew.
func (c *crew) stand(ctx context.Context) (work context.Context, j *job, ok bool) {
	return c.take(ctx, true)
}

func (c *crew) take(ctx context.Context, standby bool) (context.Context, *job, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, false
	}
	work, cancel := context.WithCancel(ctx)
	j := &job{cancel: cancel, done: make(chan struct{}), standby: standby}
	if c.jobs == nil {
		c.jobs = map[*job]struct{}{}
	}
	c.jobs[j] = struct{}{}
	return work, j, true
}

// standBy makes a job one that no stop waits for: it has nothing left to do but
// to wait for a store that is away.
func (c *crew) standBy(j *job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j.standby = true
	if c.closed {
		j.cancel()
	}
}

// leave ends a piece of work.
func (c *crew) leave(j *job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.jobs, j)
	j.cancel()
	close(j.done)
}

// working returns the operations in flight.
func (c *crew) working() (jobs []*job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for j := range c.jobs {
		if !j.standby {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// close takes on no more work, ends every Run and returns all that is in flight.
func (c *crew) close() (jobs []*job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for j := range c.jobs {
		if j.standby {
			j.cancel()
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// isClosed reports whether the crew takes on no more work.
func (c *crew) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// closedFor is the answer of a closed gate, in the class of the call.
func closedFor(c Class) error {
	return &Error{Class: c, Reason: ReasonClosed, Note: "the gate is closed"}
}
