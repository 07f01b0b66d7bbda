package memstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
	"github.com/pawl-go/pawl/memstore"
	"github.com/pawl-go/pawl/storetest"
)

// TestStore runs the conformance suite at its full sizes.
func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Name: "memstore", AnyStepBack: true, Sizes: storetest.FullSizes(), Impossible: impossible(),
		Deploy: func(_ context.Context, c storetest.Config) (*storetest.Deployment, error) {
			clock := &manualClock{now: time.Now().Add(c.Offset)}
			d := deployment(c, clock.read)
			d.Advance, d.Frozen = clock.advance, true
			return d, nil
		},
	})
}

func impossible() map[storetest.Power]string {
	return map[storetest.Power]string{
		storetest.PowerPartition: "one process: there is no network between an instance and its data",
		storetest.PowerRestart:   "one process, not durable: the data does not survive it",
	}
}

// TestStoreOnRunningClock runs the suite, small, on a clock that does not stand
// still, as an engine's does not.
func TestStoreOnRunningClock(t *testing.T) {
	impossible := impossible()
	impossible[storetest.PowerFrozen] = "the clock runs"
	storetest.Run(t, storetest.Harness{
		Name: "memstore", AnyStepBack: true, Impossible: impossible,
		Deploy: func(ctx context.Context, c storetest.Config) (*storetest.Deployment, error) {
			offset := &manualClock{}
			d := deployment(c, func() time.Time { return time.Now().Add(c.Offset + offset.read().Sub(time.Time{})) })
			d.Advance, d.Frozen = offset.advance, false
			return d, nil
		},
	})
}

// manualClock stands still until it is moved.
type manualClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *manualClock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) advance(_ context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return nil
}

func deployment(c storetest.Config, clock func() time.Time) *storetest.Deployment {
	db := memdb.New("", c.Timings.Policy(), clock)
	openWith := func(_ context.Context, ts pawl.Timings) (pawl.Store, error) {
		s, err := memstore.Over(db, &memstore.Options{Timings: &ts})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	open := func(ctx context.Context) (pawl.Store, error) { return openWith(ctx, c.Timings) }
	return &storetest.Deployment{
		Open:           open,
		OpenConfigured: openWith,
		OpenLossy: func(ctx context.Context) (pawl.Store, func(), error) {
			s, err := open(ctx)
			if err != nil {
				return nil, nil, err
			}
			lossy, lose := storetest.Lossy(s)
			return lossy, lose, nil
		},
		Kill:  func(context.Context, pawl.Store) error { return nil },
		Block: func(context.Context, pawl.OperationID) (func(), error) { return block(db), nil },
	}
}

// block holds the one lock until release, which waits for the holder to end.
func block(db *memdb.DB) (release func()) {
	held, free := make(chan struct{}), make(chan struct{})
	var holder sync.WaitGroup
	holder.Go(func() {
		_ = db.Update(func(*memdb.Tx) error {
			close(held)
			<-free
			return nil
		})
	})
	<-held
	return func() {
		close(free)
		holder.Wait()
	}
}
