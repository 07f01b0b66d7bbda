package storetest

import (
	"fmt"
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
		msg, ok := s.excuse(h.Name, os.Getenv(requireAll) == "1")
		if !ok {
			t.Fatal(msg)
		}
		t.Skip(msg)
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

// excuse says why a case was not run, and whether that may be.
func (s Skip) excuse(store string, require bool) (msg string, ok bool) {
	if s.Declared != "" {
		return fmt.Sprintf("needs %s, which %s cannot have: %s", s.Power, store, s.Declared), true
	}
	if require {
		return fmt.Sprintf("needs %s, which %s neither has nor declares impossible", s.Power, store), false
	}
	return fmt.Sprintf("needs %s, which %s does not have", s.Power, store), true
}
