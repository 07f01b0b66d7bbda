package sqlitestore

import (
	"context"
	"sync"
	"testing"
	"time"
)

// OpenHooked opens a store with a clock of the test's own, microseconds since
// 1970 or nil, and with the end of every transaction in a test's hands.
func OpenHooked(ctx context.Context, path string, o *Options, clock func() any, end func(func() error) error) (*Store, error) {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	opts.hooks = hooks{clock: clock, end: end}
	return Open(ctx, path, &opts)
}

// AwaitWaiting waits until one job is at work and so many wait behind it.
func (s *Store) AwaitWaiting(t *testing.T, behind int) {
	t.Helper()
	for tick := time.NewTicker(time.Millisecond); ; {
		select {
		case <-tick.C:
			if s.writer.atWork.Load() && len(s.writer.queue) >= behind {
				tick.Stop()
				return
			}
		case <-t.Context().Done():
			t.Fatalf("%d jobs never waited", behind)
		}
	}
}

// LoseNextEnd makes the next transaction end well and its answer be err.
func (s *Store) LoseNextEnd(err error) {
	var once sync.Once
	s.writer.hooks.end = func(end func() error) error {
		ended := end()
		once.Do(func() { ended = err })
		return ended
	}
}
