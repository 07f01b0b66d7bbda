package billing

import (
	"context"
	"fmt"
	"sync"
)

// gates hold requests in flight until a test lets them go. A gate is made by its first mention and
// stays open once released, so that releasing early is never lost.
type gates struct {
	mu sync.Mutex
	by map[string]*gate
}

type gate struct {
	open    chan struct{}
	arrived int
	moved   chan struct{} // closed and replaced at each arrival
	opened  bool
}

// of returns the gate of a name; the lock is held.
func (g *gates) of(name string) *gate {
	if g.by == nil {
		g.by = make(map[string]*gate)
	}
	if g.by[name] == nil {
		g.by[name] = &gate{open: make(chan struct{}), moved: make(chan struct{})}
	}
	return g.by[name]
}

// arrive counts a request at a gate and returns the channel that opens it.
func (g *gates) arrive(name string) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.of(name)
	at.arrived++
	close(at.moved)
	at.moved = make(chan struct{})
	return at.open
}

func (g *gates) release(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := g.of(name); !at.opened {
		at.opened = true
		close(at.open)
	}
}

// await returns once n requests in all have come to a gate.
func (g *gates) await(ctx context.Context, stop <-chan struct{}, name string, n int) error {
	for {
		g.mu.Lock()
		at := g.of(name)
		arrived, moved := at.arrived, at.moved
		g.mu.Unlock()
		if arrived >= n {
			return nil
		}
		select {
		case <-moved:
		case <-stop:
			return errStopping
		case <-ctx.Done():
			return fmt.Errorf("billing: %d of %d requests came to gate %q: %w", arrived, n, name, context.Cause(ctx))
		}
	}
}
