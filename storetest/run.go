package storetest

import (
	"os"
	"slices"
	"testing"
)

// requireAll is the variable that makes a skipped case a failure.
const requireAll = "PAWL_REQUIRE_ALL"

// Run runs every case as a subtest named by its id and title, with a subtest
// for each clause it carries.
func Run(t *testing.T, h Harness) {
	for _, c := range Cases() {
		t.Run(c.Name(), func(t *testing.T) { runCase(t, h, c) })
	}
}

func runCase(t *testing.T, h Harness, c Case) {
	r, err := check(t.Context(), h, c)
	if err != nil {
		t.Fatalf("the harness failed: %v", err)
	}
	for _, s := range r.Skips {
		switch {
		case s.Declared != "":
			t.Skipf("needs %s, which %s cannot have: %s", s.Power, h.Name, s.Declared)
		case os.Getenv(requireAll) == "1":
			t.Fatalf("needs %s, which %s neither has nor declares impossible", s.Power, h.Name)
		default:
			t.Skipf("needs %s, which %s does not have", s.Power, h.Name)
		}
	}
	names := slices.Clone(c.Clauses)
	for _, v := range r.Violations {
		if !slices.Contains(names, v.Clause) {
			names = append(names, v.Clause)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			for _, v := range r.Violations {
				if v.Clause == name {
					t.Error(v)
				}
			}
		})
	}
}
