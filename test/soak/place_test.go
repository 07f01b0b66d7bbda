//go:build unix

package soak

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/pgstore"
	"github.com/pawl-go/pawl/sqlitestore"
)

const realm = "soak"

// place is where the shared store of a test is. One of the two is set.
type place struct {
	SQLite   string
	Postgres string
}

// found makes the store.
func (p place) found(ctx context.Context, t *pawl.Timings) (pawl.Store, error) {
	return p.open(ctx, t, true)
}

// join opens the store that is there.
func (p place) join(ctx context.Context, t *pawl.Timings) (pawl.Store, error) {
	return p.open(ctx, t, false)
}

func (p place) open(ctx context.Context, t *pawl.Timings, first bool) (pawl.Store, error) {
	switch {
	case p.SQLite != "":
		return sqlitestore.Open(ctx, p.SQLite, &sqlitestore.Options{Realm: realm, Timings: t})
	case p.Postgres != "":
		return pgstore.Open(ctx, p.Postgres, &pgstore.Options{Realm: realm, Timings: t, Migrate: first})
	}
	return nil, errors.New("soak: no store is named")
}

// onSQLite is a store of the test's own.
func onSQLite(t *testing.T) place { return place{SQLite: filepath.Join(t.TempDir(), "pawl.db")} }

// onPostgres is a database of the test's own on the newest server there is.
func onPostgres(t *testing.T) place {
	t.Helper()
	return place{Postgres: pgtest.Shared(t, pgtest.Newest(t)).Database(t)}
}

// terms are what workers are configured with.
type terms struct {
	// Stated says that the provider's contract is stated, without which recovery never creates [E3, E5].
	Stated bool
	// Effect is how long a create call may take; zero is callTimeout.
	Effect time.Duration
	// Grace is how long a stop lets calls in flight finish; zero is as long as they may take [E7].
	Grace time.Duration
}

// Short, so that leases end while one waits, and long enough for a loaded machine: nothing that must not happen depends on
// them.
const (
	storeTimeout = time.Second
	leaseMargin  = 250 * time.Millisecond
	callTimeout  = 750 * time.Millisecond
)

// lease is an execution lease: the shortest that is valid.
func (s terms) lease() time.Duration { return 2*storeTimeout + s.effect() + leaseMargin }

func (s terms) effect() time.Duration {
	if s.Effect == 0 {
		return callTimeout
	}
	return s.Effect
}

// timings are valid together [T1].
func (s terms) timings() *pawl.Timings {
	t := pawl.DefaultTimings()
	t.StoreCallTimeout, t.LeaseMargin = storeTimeout, leaseMargin
	t.RecoveryInterval = 200 * time.Millisecond
	t.ReplicationWaitBound = 0
	t.Default.EffectTimeout, t.Default.FindTimeout = s.effect(), callTimeout
	t.Default.ExecutionLease, t.Default.RecoveryLease = s.lease(), s.lease()+callTimeout
	t.Default.MaxTakeovers = 60
	t.Default.BackoffBase, t.Default.BackoffCap = 200*time.Millisecond, time.Second
	if s.Stated {
		t.Default.Provider = pawl.ProviderContract{
			AtomicKeys: true, SameParameters: true, KeyRetention: billing.DefaultRetention, ClockDifference: time.Second,
		}
	}
	return &t
}

// TestTimings holds the durations of these tests against the rules [T1].
func TestTimings(t *testing.T) {
	for _, s := range []terms{{}, {Stated: true}, {Stated: true, Effect: 10 * time.Second}} {
		if err := s.timings().Validate(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
