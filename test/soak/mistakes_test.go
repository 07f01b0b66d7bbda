//go:build unix && !failpoints

package soak

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/billing"
)

// TestWrongWorkersAreCaught plays short plans with workers that are wrong in one way each, and wants them found guilty of
// it: a soak that cannot fail shows nothing.
func TestWrongWorkersAreCaught(t *testing.T) {
	long(t)
	t.Parallel()
	const racy = billing.ConcurrencyRacy
	for _, tc := range []struct {
		name    string
		mistake mistake
		terms   terms
		set     billing.Settings
		want    []charge
	}{
		{"a map in each process", ownMap, terms{Stated: true}, billing.Settings{}, []charge{chargeEffects, chargeAdmissions, chargeAnswer}},
		{"a store that forgets the claim", forgottenClaim, terms{Stated: true}, billing.Settings{}, []charge{chargeEffects, chargeAdmissions, chargeAnswer}},
		{"a contract stated that the provider does not keep", "", terms{Stated: true}, billing.Settings{Concurrency: racy}, []charge{chargeEffects}},
		{"an error taken for a refusal", errorIsFailure, terms{Stated: true}, billing.Settings{}, []charge{chargeFailure}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := newPlan(uint64(number(t, "PAWL_SEED", 5)), measure{grants: 30, tokens: true, spent: true, early: true})
			e, rep := play(t, newWorld(t, onSQLite(t), tc.terms, tc.set), p, func(a *assignment) { a.Mistake = tc.mistake })
			t.Logf("seed %d: %v", p.seed, rep)
			found := audit(e)
			for _, want := range tc.want {
				if !slices.ContainsFunc(found, func(f finding) bool { return f.charge == want }) {
					t.Errorf("seed %d: not found guilty of %q, only of %q", p.seed, want, charges(found))
				}
			}
		})
	}
}

// charges names what was found, each once.
func charges(found []finding) string {
	var all []string
	for _, f := range found {
		all = append(all, string(f.charge))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}
