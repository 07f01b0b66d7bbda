package storetest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pawl-go/pawl"
)

// Harness makes deployments of the store under test.
type Harness struct {
	Name string
	// Deploy makes one deployment. It is called for each case.
	Deploy func(context.Context, Config) (*Deployment, error)
	// Impossible names the powers that this store cannot have, with the reason.
	Impossible map[Power]string
	// AnyStepBack says that the store stays safe however far its clock is set
	// back; otherwise as far as its timings' ClockStepBound [P1].
	AnyStepBack bool
	// Sizes of the heavy cases; zero fields are small.
	Sizes Sizes
}

// Config is what a case wants of its deployment.
type Config struct {
	Case string // the case's id, for names and logs
	// Fresh asks for data that no other case has touched or will. Otherwise
	// deployments may share data, as long as their Timings are the defaults.
	Fresh bool
	// Timings are what instances are opened with.
	Timings pawl.Timings
	// Offset is how far the store's clock is ahead of the process's at first,
	// behind where negative. Only cases that need PowerClock set it.
	Offset time.Duration
}

// Deployment is one set of data with what can be done to it. Only Open is
// required.
type Deployment struct {
	// Open returns an independent instance on the data, as another process would
	// have it: no memory is shared but through the data. The suite closes it.
	Open func(context.Context) (pawl.Store, error)
	// Close frees the deployment, once its instances are closed.
	Close func() error

	// Advance moves the store's clock for all instances, back where d is negative.
	Advance func(ctx context.Context, d time.Duration) error
	// Frozen says that the store's clock stands still between calls of Advance,
	// so that exact boundaries can be tested.
	Frozen bool
	// OpenConfigured opens an instance with other timings than Config's.
	OpenConfigured func(context.Context, pawl.Timings) (pawl.Store, error)
	// OpenLossy opens an instance whose next call, after lose was called,
	// happens but whose answer does not arrive. Later calls are answered again.
	OpenLossy func(context.Context) (s pawl.Store, lose func(), err error)
	// Kill abandons an instance as if its process had died: it is not closed,
	// and the suite does not use it again. What it holds may be freed in Close.
	Kill func(context.Context, pawl.Store) error
	// Partition cuts one instance off its data until heal is called.
	Partition func(context.Context, pawl.Store) (heal func() error, err error)
	// Restart stops and starts whatever holds the data; instances opened before
	// are closed or useless afterwards. Data that does not survive this makes
	// the power impossible.
	Restart func(context.Context) error
	// Block holds what a writer of the operation must wait for, until release.
	Block func(context.Context, pawl.OperationID) (release func(), err error)
}

// Power is something only a harness can do, or an interface that a store may
// leave out.
type Power string

// The powers.
const (
	PowerClock     Power = "clock"      // Deployment.Advance
	PowerFrozen    Power = "frozen"     // Deployment.Frozen, and Advance
	PowerConfigure Power = "configure"  // Deployment.OpenConfigured
	PowerLossy     Power = "lossy"      // Deployment.OpenLossy
	PowerKill      Power = "kill"       // Deployment.Kill
	PowerPartition Power = "partition"  // Deployment.Partition
	PowerRestart   Power = "restart"    // Deployment.Restart
	PowerBlock     Power = "block"      // Deployment.Block
	PowerGrantBook Power = "grant-book" // the store is a pawl.GrantBook
	PowerKeeper    Power = "keeper"     // the store is a pawl.Keeper
)

// has reports whether a deployment, whose first instance is s, has a power.
func (d *Deployment) has(p Power, s pawl.Store) bool {
	switch p {
	case PowerClock:
		return d.Advance != nil
	case PowerFrozen:
		return d.Advance != nil && d.Frozen
	case PowerConfigure:
		return d.OpenConfigured != nil
	case PowerLossy:
		return d.OpenLossy != nil
	case PowerKill:
		return d.Kill != nil
	case PowerPartition:
		return d.Partition != nil
	case PowerRestart:
		return d.Restart != nil
	case PowerBlock:
		return d.Block != nil
	case PowerGrantBook:
		_, ok := s.(pawl.GrantBook)
		return ok
	case PowerKeeper:
		_, ok := s.(pawl.Keeper)
		return ok
	}
	return false
}

// Sizes of the heavy cases. Zero fields are the small ones, which take a slow
// engine a few seconds in all; [FullSizes] are those of the case list.
type Sizes struct {
	Grants   int // raced for, C-A1
	Racers   int // at each of them
	Rounds   int // of revoke against admit, C-C1, and of other two-sided races
	Stalled  int // operations, C-D4
	Workers  int // taking them over
	Attempts int // on one operation, C-E10; more than pawl.MaxWeak
	Weak     int // observations before the divergence, C-E13; more than pawl.MaxWeak
	Orders   int // observations permuted, C-E12: 1 to 4
}

// FullSizes are the sizes of the case list.
func FullSizes() Sizes {
	return Sizes{
		Grants: 200, Racers: 50, Rounds: 1000, Stalled: 100, Workers: 20,
		Attempts: 10_000, Weak: 5_000, Orders: 4,
	}
}

func (s Sizes) orSmall() Sizes {
	return Sizes{
		Grants: cmp.Or(s.Grants, 10), Racers: cmp.Or(s.Racers, 10), Rounds: cmp.Or(s.Rounds, 30),
		Stalled: cmp.Or(s.Stalled, 20), Workers: cmp.Or(s.Workers, 5),
		Attempts: cmp.Or(s.Attempts, pawl.MaxWeak+50), Weak: cmp.Or(s.Weak, pawl.MaxWeak+20),
		Orders: cmp.Or(s.Orders, 2),
	}
}

// Violation is one way in which a store broke the contract.
type Violation struct {
	Clause string // such as "A2"
	Case   string // id of the case that found it
	Msg    string
}

// String is the violation as one line.
func (v Violation) String() string { return fmt.Sprintf("[%s] %s: %s", v.Clause, v.Case, v.Msg) }

// Skip is a case that was not run for want of a power.
type Skip struct {
	Case     string
	Power    Power
	Declared string // why the harness cannot have it; empty: it did not say
}

// Report is what a run found.
type Report struct {
	Violations []Violation
	Skips      []Skip
	Ran        int // cases
}
