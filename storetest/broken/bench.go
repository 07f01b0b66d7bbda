package broken

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
	"github.com/pawl-go/pawl/memstore"
	"github.com/pawl-go/pawl/storetest"
)

// bench is one deployment of a wrong store: the right tables, a clock that
// stands still until it is moved, and what a mistake keeps beside them.
type bench struct {
	db      *memdb.DB
	timings pawl.Timings
	process time.Time // the process's clock, which nobody moves

	mu  sync.Mutex
	now time.Time // the store's
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) advance(_ context.Context, d time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
	return nil
}

// right is a correct instance to embed: its calls but the mistaken one.
type right struct {
	*memstore.Store
	bench *bench
}

// mistake makes an instance of a wrong store around a right one.
type mistake func(r right) pawl.Store

func (b *bench) right(ts pawl.Timings) (right, error) {
	s, err := memstore.Over(b.db, &memstore.Options{Timings: &ts})
	return right{s, b}, err
}

// harness deploys a mistake. aboveWire says that the mistake is made by who
// hears that an answer was lost, not by who answers.
func harness(name string, m mistake, aboveWire bool) storetest.Harness {
	return storetest.Harness{
		Name: name, AnyStepBack: true, Sizes: storetest.Sizes{Stalled: 40, Workers: 10, Orders: 2},
		Impossible: map[storetest.Power]string{
			storetest.PowerPartition: "one process: there is no network between an instance and its data",
			storetest.PowerRestart:   "one process, not durable: the data does not survive it",
		},
		Deploy: func(_ context.Context, c storetest.Config) (*storetest.Deployment, error) {
			now := time.Now()
			b := &bench{timings: c.Timings, process: now, now: now.Add(c.Offset)}
			b.db = memdb.New("", c.Timings.Policy(), b.clock)
			return b.deployment(m, aboveWire), nil
		},
	}
}

func (b *bench) deployment(m mistake, aboveWire bool) *storetest.Deployment {
	openWith := func(_ context.Context, ts pawl.Timings) (pawl.Store, error) {
		r, err := b.right(ts)
		if err != nil {
			return nil, err
		}
		return m(r), nil
	}
	return &storetest.Deployment{
		Open:           func(ctx context.Context) (pawl.Store, error) { return openWith(ctx, b.timings) },
		OpenConfigured: openWith,
		Advance:        b.advance,
		Frozen:         true,
		Kill:           func(context.Context, pawl.Store) error { return nil },
		OpenLossy: func(context.Context) (pawl.Store, func(), error) {
			r, err := b.right(b.timings)
			if err != nil {
				return nil, nil, err
			}
			if aboveWire {
				lossy, lose := storetest.Lossy(r.Store)
				return timeoutAsUnused{right: r, wire: lossy}, lose, nil
			}
			lossy, lose := storetest.Lossy(m(r))
			return lossy, lose, nil
		},
		Block: func(context.Context, pawl.OperationID) (func(), error) { return b.block(), nil },
	}
}

// block holds the lock of the tables until release.
func (b *bench) block() (release func()) {
	held, free := make(chan struct{}), make(chan struct{})
	var holder sync.WaitGroup
	holder.Go(func() {
		_ = b.db.Update(func(*memdb.Tx) error {
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

// gap is where two transactions of one call leave room for others. It is made
// wide enough that whoever is ready gets in: there is no event to wait for, since
// nobody may come.
func gap() { time.Sleep(300 * time.Microsecond) }

// update is one transaction of a mistaken call. Like the right store it asks
// the context and whether the instance is closed first.
func (r right) update(ctx context.Context, lost pawl.Class, f func(*memdb.Tx) error) error {
	if _, err := r.Store.Check(ctx); err != nil {
		return &pawl.Error{Class: lost, Reason: pawl.ReasonOf(err), Cause: err}
	}
	return r.bench.db.Update(f)
}

// fresh writes what an admission writes and answers as it does.
func fresh(tx *memdb.Tx, a pawl.Admission, f pawl.Findings) pawl.Admitted {
	g := a.Grant
	if f.Grant.Row != nil {
		g = *f.Grant.Row
	}
	op := a.NewOperation(tx.Now)
	tx.PutClaim(a.Grant.Key, memdb.Claim{
		Operation: op.ID, At: tx.Now, RetainUntil: f.Policy.RefusalRetention(g.ExpiresAt, g.LeewayPolicy, tx.Now),
	})
	tx.PutOperation(op)
	return owned(tx, op)
}

// owned is the answer of a fresh admission.
func owned(tx *memdb.Tx, op pawl.Operation) pawl.Admitted {
	return pawl.Admitted{Fresh: true, Operation: op.Clone(), Owner: op.OwnerOf(tx.Meta().Secret, tx.Now)}
}

// joined is the answer of a repeated one.
func joined(tx *memdb.Tx, op pawl.Operation) pawl.Admitted {
	return pawl.Admitted{Operation: op.Clone(), Owner: pawl.Owner{Token: tx.Meta().Secret.Mint(op, 0)}}
}

// judged admits as the right store does, but on findings that a mistake has
// changed before they are judged.
func (r right) judged(ctx context.Context, a pawl.Admission, change func(*memdb.Tx, *pawl.Findings)) (got pawl.Admitted, err error) {
	if err := a.Validate(); err != nil {
		return pawl.Admitted{}, err
	}
	err = r.update(ctx, pawl.ErrNotConfirmed, func(tx *memdb.Tx) error {
		f := tx.Findings(a)
		change(tx, &f)
		already, err := a.Judge(f)
		if err != nil {
			return err
		}
		if already {
			got = joined(tx, *f.Operation)
			return nil
		}
		got = fresh(tx, a, f)
		return nil
	})
	return got, err
}

// spokenFor reads a record and what a token proves of it.
func spokenFor(tx *memdb.Tx, id pawl.OperationID, token pawl.OwnerToken) (op pawl.Operation, fence uint64, proven bool, err error) {
	op, ok := tx.Operation(id)
	if !ok {
		return op, 0, false, pawl.NotFound()
	}
	fence, proven = tx.Meta().Secret.Fence(op, token)
	return op, fence, proven, nil
}
