package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// fuse is a context that ends when it has been looked at so many times: by
// trying every number, a call is cancelled at every point where it looks.
type fuse struct {
	parent context.Context
	looks  atomic.Int64
	once   sync.Once
	burnt  chan struct{}
}

func newFuse(parent context.Context, looks int) *fuse {
	f := &fuse{parent: parent, burnt: make(chan struct{})}
	f.looks.Store(int64(looks))
	return f
}

func (f *fuse) look() {
	if f.looks.Add(-1) < 0 {
		f.once.Do(func() { close(f.burnt) })
	}
}

func (f *fuse) intact() bool {
	select {
	case <-f.burnt:
		return false
	default:
		return true
	}
}

// Deadline implements context.Context.
func (f *fuse) Deadline() (time.Time, bool) { return f.parent.Deadline() }

// Value implements context.Context.
func (f *fuse) Value(key any) any { return f.parent.Value(key) }

// Done implements context.Context.
func (f *fuse) Done() <-chan struct{} {
	f.look()
	return f.burnt
}

// Err implements context.Context.
func (f *fuse) Err() error {
	f.look()
	if !f.intact() {
		return context.Canceled
	}
	return f.parent.Err()
}
