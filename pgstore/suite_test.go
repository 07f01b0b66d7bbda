package pgstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/storetest"
)

// TestSuite runs the conformance suite on every supported version.
func TestSuite(t *testing.T) {
	for _, v := range pgtest.Versions(t) {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			r := &rig{t: t, version: v, dsn: pgtest.Shared(t, v).Database(t)}
			storetest.Run(t, storetest.Harness{Name: "pgstore on " + v.String(), Deploy: r.deploy})
		})
	}
}

// rig makes deployments on one version's server. Cases that need nothing of their
// own share one schema, on the server's clock; the others get a schema each, on a
// clock that the case moves.
type rig struct {
	t       *testing.T
	version pgtest.Version
	dsn     string
	edit    func(*tables, statements) // of wrong variants

	once   sync.Once
	shared *tables
	err    error
}

func (r *rig) deploy(ctx context.Context, c storetest.Config) (*storetest.Deployment, error) {
	d := &deployed{rig: r, timings: c.Timings, gates: map[pawl.Store]*gate{}}
	if !c.Fresh {
		r.once.Do(func() { r.shared, r.err = newTables(ctx, r.dsn, nil) })
		d.tables = r.shared
		return d.powers(), r.err
	}
	dsn := r.dsn
	if needsRestart(c.Case) {
		d.server = pgtest.Start(r.t, r.version, nil)
		dsn = d.server.Superuser()
	}
	now := time.Now().Add(c.Offset)
	var err error
	d.tables, err = newTables(ctx, dsn, &now)
	return d.powers(), err
}

func needsRestart(id string) bool {
	return slices.ContainsFunc(storetest.Cases(), func(c storetest.Case) bool {
		return c.ID == id && slices.Contains(c.Needs, storetest.PowerRestart)
	})
}

// deployed is one deployment.
type deployed struct {
	rig     *rig
	tables  *tables
	server  *pgtest.Server // its own, of a case that restarts it
	timings pawl.Timings
	gates   map[pawl.Store]*gate
	killed  []pawl.Store
}

func (d *deployed) powers() *storetest.Deployment {
	powers := &storetest.Deployment{
		Open: func(ctx context.Context) (pawl.Store, error) { return d.open(ctx, d.timings) },
		OpenConfigured: func(ctx context.Context, ts pawl.Timings) (pawl.Store, error) {
			return d.open(ctx, ts)
		},
		OpenLossy: d.openLossy,
		Kill: func(_ context.Context, s pawl.Store) error {
			d.gates[s].close()
			d.killed = append(d.killed, s)
			return nil
		},
		Partition: func(_ context.Context, s pawl.Store) (func() error, error) {
			d.gates[s].close()
			return d.gates[s].open, nil
		},
		Block: d.block,
		Close: d.close,
	}
	if d.tables != nil && d.tables.clock {
		powers.Advance, powers.Frozen = d.tables.advance, true
	}
	if d.server != nil {
		powers.Restart = func(context.Context) error {
			d.server.Kill(d.rig.t)
			d.server.Restart(d.rig.t)
			return nil
		}
	} else {
		powers.Restart = func(context.Context) error { return fmt.Errorf("the server is shared") }
	}
	return powers
}

func (d *deployed) open(ctx context.Context, ts pawl.Timings) (pawl.Store, error) {
	g := &gate{}
	s, err := d.tables.openWith(ctx, Options{Timings: &ts}, g, d.rig.edit)
	if err != nil {
		return nil, err
	}
	d.gates[s] = g
	return s, nil
}

// openLossy puts a proxy in between, which lets the next commit happen and loses
// the server's answer to it.
func (d *deployed) openLossy(ctx context.Context) (pawl.Store, func(), error) {
	config, err := pgx.ParseConfig(d.tables.dsn)
	if err != nil {
		return nil, nil, err
	}
	proxy := pgtest.StartProxy(d.rig.t, fmt.Sprintf("%s:%d", config.Host, config.Port))
	far := *d.tables
	far.dsn = pgtest.Via(d.rig.t, d.tables.dsn, proxy.Addr())
	s, err := far.openWith(ctx, Options{Timings: &d.timings}, nil, d.rig.edit)
	if err != nil {
		return nil, nil, err
	}
	commits := func(st pgtest.Statement) bool { return pgtest.Commit()(st) || createsOperation(st.SQL) }
	return s, func() { proxy.Inject(pgtest.Fault{Match: commits, Action: pgtest.LoseAnswer}) }, nil
}

// createsOperation recognises the statements that commit by themselves.
func createsOperation(sql string) bool {
	return strings.Contains(sql, "INSERT INTO") && strings.Contains(sql, ".operations (")
}

// block keeps every writer of operations waiting.
func (d *deployed) block(ctx context.Context, _ pawl.OperationID) (func(), error) {
	conn, err := pgx.Connect(ctx, d.tables.dsn)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, "BEGIN; LOCK TABLE "+d.tables.schema+".operations IN EXCLUSIVE MODE")
	return func() { _ = conn.Close(context.WithoutCancel(ctx)) }, err
}

func (d *deployed) close() error {
	for _, s := range d.killed {
		_ = s.Close()
	}
	if d.tables == d.rig.shared {
		return nil
	}
	return d.tables.drop(context.Background())
}
