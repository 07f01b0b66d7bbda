package storetest

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memstore"
)

// smallest is a harness of a few lines: no power, the process's own clock.
func smallest() Harness {
	return Harness{
		Name: "memstore",
		Deploy: func(_ context.Context, c Config) (*Deployment, error) {
			first, err := memstore.New(&memstore.Options{Timings: &c.Timings})
			if err != nil {
				return nil, err
			}
			return &Deployment{
				Open:  func(context.Context) (pawl.Store, error) { return first.Handle(&memstore.Options{Timings: &c.Timings}) },
				Close: first.Close,
			}, nil
		},
	}
}

// A harness without any power still runs what needs none, and says what it left
// out.
func TestSmallestHarness(t *testing.T) {
	r, err := Check(t.Context(), smallest())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Error(v)
	}
	if r.Ran == 0 || r.Ran+len(r.Skips) != len(Cases()) {
		t.Errorf("%d cases ran and %d were skipped, want %d in all", r.Ran, len(r.Skips), len(Cases()))
	}
	for _, s := range r.Skips {
		if s.Power == PowerGrantBook || s.Power == PowerKeeper {
			t.Errorf("%s was skipped for want of %s, which the store has", s.Case, s.Power)
		}
	}
}

// A skip is no failure unless everything is required, and none at all where the
// harness says why it must be.
func TestSkips(t *testing.T) {
	for _, row := range []struct {
		declared string
		require  bool
		ok       bool
	}{{"", false, true}, {"", true, false}, {"no network", true, true}, {"no network", false, true}} {
		msg, ok := Skip{Case: "C-A8", Power: PowerLossy, Declared: row.declared}.excuse("mystore", row.require)
		if ok != row.ok || !strings.Contains(msg, string(PowerLossy)) || !strings.Contains(msg, row.declared) {
			t.Errorf("declared %q, required %v: %v, %q; want %v and the power and reason named", row.declared, row.require, ok, msg, row.ok)
		}
	}
}

// A harness that fails is told from a store that does.
func TestHarnessFails(t *testing.T) {
	broken := errors.New("no such host")
	h := smallest()
	h.Deploy = func(context.Context, Config) (*Deployment, error) { return nil, broken }
	if _, err := Check(t.Context(), h); !errors.Is(err, broken) {
		t.Errorf("a deployment that cannot be made: %v, want its error", err)
	}
	h.Deploy = func(context.Context, Config) (*Deployment, error) {
		return &Deployment{Open: func(context.Context) (pawl.Store, error) { return nil, broken }}, nil
	}
	if _, err := Check(t.Context(), h); !errors.Is(err, broken) {
		t.Errorf("an instance that cannot be opened: %v, want its error", err)
	}
}

// Ids are unique, and every case says what it carries.
func TestCases(t *testing.T) {
	clause := regexp.MustCompile(`^[ABRPSOMET][0-9]+$`)
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.ID] || c.Title == "" || c.run == nil {
			t.Errorf("case %q: named twice %v, title %q", c.ID, seen[c.ID], c.Title)
		}
		seen[c.ID] = true
		if len(c.Clauses) == 0 || slices.ContainsFunc(c.Clauses, func(s string) bool { return !clause.MatchString(s) }) {
			t.Errorf("case %s carries %q, want clauses", c.ID, c.Clauses)
		}
	}
	if len(seen) < 80 {
		t.Errorf("%d cases: some were lost", len(seen))
	}
}

// Every combination falls under exactly one row, and every row under some [M1].
func TestTablesAreExhaustive(t *testing.T) {
	every := func(columns ...[]string) (all [][]string) {
		all = [][]string{{}}
		for _, column := range columns {
			var next [][]string
			for _, c := range all {
				for _, value := range column {
					next = append(next, append(slices.Clone(c), value))
				}
			}
			all = next
		}
		return all
	}
	var statuses []string
	for _, s := range pawl.Statuses() {
		statuses = append(statuses, s.String())
	}
	for _, table := range []struct {
		name, text   string
		cells        int
		combinations [][]string
	}{
		{"evidence", evidenceTable, 7, every(
			[]string{"unknown", "failed", "succeeded:same", "succeeded:other"},
			[]string{"match", "fingerprint", "binding", "both"}, statuses, []string{"over", "live"},
		)},
		{"owner", ownerTable, 5, every(
			[]string{"unknown", "failed", "succeeded", "needs_reconciliation"},
			[]string{"present", "superseded", "attempt", "other", "none"}, statuses,
		)},
	} {
		rows, err := parseTable(table.text, table.cells)
		if err != nil {
			t.Fatalf("%s: %v", table.name, err)
		}
		used := map[int]bool{}
		for _, c := range table.combinations {
			r, err := find(rows, c...)
			if err != nil {
				t.Errorf("%s: %v", table.name, err)
			}
			used[r.line] = true
		}
		for _, r := range rows {
			if !used[r.line] {
				t.Errorf("%s: nothing falls under the row of line %d", table.name, r.line)
			}
		}
	}
}

func TestTableErrors(t *testing.T) {
	if _, err := parseTable("# head\n\na b c\na b\n", 3); err == nil || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("a short line: %v, want an error that names line 4", err)
	}
	rows, err := parseTable("a,b any\na x\n", 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, combination := range [][]string{{"a", "x"}, {"c", "x"}} {
		if _, err := find(rows, combination...); err == nil {
			t.Errorf("%v is found although no single row has it", combination)
		}
	}
}

// A lossy instance loses one answer and no call [A8].
func TestLossy(t *testing.T) {
	right, err := memstore.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, lose := Lossy(right)
	d, err := pawl.ParseDetails([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r := pawl.Reservation{
		Key: "k", Intent: pawl.Intent{Kind: "k", Details: d}, Caller: pawl.Caller{Principal: "p"},
		Lease: time.Second, SubmissionWindow: time.Second,
	}
	lose()
	if got, err := s.Reserve(t.Context(), r); !errors.Is(err, pawl.ErrNotConfirmed) || got.Fresh {
		t.Errorf("the lost answer: fresh %v, %v, want not confirmed", got.Fresh, err)
	}
	if got, err := s.Reserve(t.Context(), r); err != nil || got.Fresh {
		t.Errorf("the call again: fresh %v, %v, want joined", got.Fresh, err)
	}
}

// A fuse burns at the look it was given, whichever way it is looked at, and
// stays burnt.
func TestFuse(t *testing.T) {
	for looks := range 4 {
		f := newFuse(t.Context(), looks)
		for i := range looks {
			if i%2 == 0 && f.Err() != nil {
				t.Errorf("burnt at look %d of %d", i, looks)
			}
			if i%2 == 1 {
				f.Done()
			}
		}
		select {
		case <-f.Done():
		default:
			t.Errorf("intact after %d looks", looks+1)
		}
		if !errors.Is(f.Err(), context.Canceled) {
			t.Errorf("a burnt fuse says %v", f.Err())
		}
	}
}
