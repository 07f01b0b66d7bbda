package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sqlitestore"
	"github.com/pawl-go/pawl/storetest"
)

// TestStore runs the conformance suite. Instances share nothing but the file.
// With PAWL_FULL_SIZES=1 the heavy cases are as large as the case list says.
func TestStore(t *testing.T) {
	dir, sizes := t.TempDir(), storetest.Sizes{}
	if os.Getenv("PAWL_FULL_SIZES") == "1" {
		sizes = storetest.FullSizes()
	}
	storetest.Run(t, storetest.Harness{
		Name: "sqlitestore", AnyStepBack: true, Sizes: sizes,
		Deploy: func(_ context.Context, c storetest.Config) (*storetest.Deployment, error) {
			return newDeployment(dir, c)
		},
		Impossible: map[storetest.Power]string{
			storetest.PowerPartition: "embedded: there is no network between an instance and its data",
		},
	})
}

// deployment is one file with the instances on it.
type deployment struct {
	config storetest.Config
	path   string
	clock  atomic.Int64 // microseconds; stands still until it is moved

	mu   sync.Mutex
	open []*sqlitestore.Store
}

func newDeployment(dir string, c storetest.Config) (*storetest.Deployment, error) {
	folder, err := os.MkdirTemp(dir, "store")
	if err != nil {
		return nil, err
	}
	d := &deployment{config: c, path: filepath.Join(folder, "pawl.db")}
	d.clock.Store(time.Now().Add(c.Offset).UnixMicro())
	return &storetest.Deployment{
		Open:           func(ctx context.Context) (pawl.Store, error) { return d.openWith(ctx, c.Timings) },
		Close:          d.closeAll,
		Advance:        d.advance,
		Frozen:         true,
		OpenConfigured: d.openWith,
		OpenLossy:      d.openLossy,
		Kill:           func(context.Context, pawl.Store) error { return nil }, // abandoned; the processes of other tests die
		Restart:        func(context.Context) error { return d.closeAll() },
		Block:          d.block,
	}, nil
}

func (d *deployment) openWith(ctx context.Context, ts pawl.Timings) (pawl.Store, error) {
	return d.opened(sqlitestore.OpenHooked(ctx, d.path, &sqlitestore.Options{Timings: &ts}, d.now, nil))
}

func (d *deployment) opened(s *sqlitestore.Store, err error) (pawl.Store, error) {
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = append(d.open, s)
	return s, nil
}

func (d *deployment) now() any { return d.clock.Load() }

func (d *deployment) advance(_ context.Context, by time.Duration) error {
	d.clock.Add(by.Microseconds())
	return nil
}

// openLossy loses the answer of one transaction, after its end.
func (d *deployment) openLossy(ctx context.Context) (pawl.Store, func(), error) {
	var armed atomic.Bool
	s, err := d.opened(sqlitestore.OpenHooked(ctx, d.path, &sqlitestore.Options{Timings: &d.config.Timings}, d.now, func(end func() error) error {
		err := end()
		if armed.CompareAndSwap(true, false) {
			return errors.New("the answer was lost")
		}
		return err
	}))
	return s, func() { armed.Store(true) }, err
}

func (d *deployment) closeAll() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, s := range d.open {
		errs = append(errs, s.Close())
	}
	d.open = nil
	return errors.Join(errs...)
}

// block holds the write lock of the file from a connection of its own.
func (d *deployment) block(ctx context.Context, _ pawl.OperationID) (release func(), err error) {
	db, err := sql.Open("sqlite", d.path)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return func() { _ = db.Close() }, nil
}
