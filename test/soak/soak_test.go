//go:build unix && !failpoints

package soak

import (
	"os"
	"strconv"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// number reads a number from the environment.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q, not a number", variable, text)
	}
	return n
}

// long skips a test that waits for many leases, or for an engine, where the short form is asked for.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("waits for leases: run without -short")
	}
}

// grants is how many grants a soak presents: as many as PAWL_SOAK says, else its short form, and fewer with -short.
func grants(t *testing.T, short int) int {
	t.Helper()
	if testing.Short() {
		short = min(short, 40)
	}
	return max(10, number(t, "PAWL_SOAK", short))
}

// soak plays a plan of right workers, judges, and tells what happened.
func soak(t *testing.T, p place, s terms, set billing.Settings, m measure, seed int) report {
	t.Helper()
	plan := newPlan(uint64(number(t, "PAWL_SEED", seed)), m)
	e, rep := play(t, newWorld(t, p, s, set), plan, nil)
	t.Logf("seed %d: %d grants: %v", plan.seed, m.grants, rep)
	for _, f := range audit(e) {
		t.Errorf("seed %d: %v", plan.seed, f)
	}
	if rep.kills == 0 || rep.pauses == 0 || rep.lost == 0 || rep.takeovers == 0 {
		t.Errorf("seed %d: nothing went wrong in this run, so it shows nothing", plan.seed)
	}
	return rep
}

// TestSoakSQLite: two processes on one file, killed and stopped at random, and a provider whose replies are lost; at most
// one effect for each grant, and every record agrees with the books [A1, A2, A6, A8, E5, E6, O2, M1, M3].
func TestSoakSQLite(t *testing.T) {
	soak(t, onSQLite(t), terms{Stated: true}, billing.Settings{}, measure{grants: grants(t, 200)}, 1)
}

// TestSoakPostgres is the same through two processes on one PostgreSQL.
func TestSoakPostgres(t *testing.T) {
	long(t)
	soak(t, onPostgres(t), terms{Stated: true}, billing.Settings{}, measure{grants: grants(t, 150)}, 2)
}

// TestSoakWithoutContract: the provider states no contract. Recovery never creates; what it cannot find waits for a person
// [E3, E5].
func TestSoakWithoutContract(t *testing.T) {
	long(t)
	rep := soak(t, onSQLite(t), terms{}, billing.Settings{}, measure{grants: grants(t, 60)}, 3)
	if rep.statuses[pawl.StatusNeedsReconciliation] == 0 {
		t.Error("nothing was left to a person, so this run shows nothing of it")
	}
}

// TestSoakRacyProvider: the provider makes a second effect of a second call while the first is in flight, and states
// nothing else. There is still at most one effect for each grant, because there is at most one call [E5].
func TestSoakRacyProvider(t *testing.T) {
	long(t)
	soak(t, onSQLite(t), terms{}, billing.Settings{Concurrency: billing.ConcurrencyRacy}, measure{grants: grants(t, 60)}, 4)
}
