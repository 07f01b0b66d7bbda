package broken_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/storetest"
	"github.com/pawl-go/pawl/storetest/broken"
)

// catch is what the suite must find wrong with one store: "case clause", all of
// them and no others. sometimes lists what depends on how a race goes.
type catch struct {
	store     string
	caught    []string
	sometimes []string
}

// catches is the table of the experiment. The first entries of a row are those
// that a mistake is about; the others are what it brings with it.
func catches() []catch {
	return slices.Concat(admissionCatches(), authorityCatches(), ownershipCatches(), settlementCatches())
}

func admissionCatches() []catch {
	return []catch{
		{
			store: "map per handle",
			caught: []string{
				"C-A1 A2", "C-A2 A2", "C-A4 A2", "C-A5 A2", "C-A6 A1", "C-A8 A8", "C-A19 A8", "C-A26 A2", "C-C4 A1",
				"A2-stored A2", "A2-stored A8", "A8-race A8",
			},
		},
		{
			store: "read then write",
			caught: []string{
				"C-A1 A2", "C-A2 A2", "C-A4 A2", "C-A20 A2", "C-A26 A2", "A7-race A7", "A8-race A8", "C-C1 R1",
			},
		},
		{
			store:  "claim and operation in two commits",
			caught: []string{"C-A9 A6", "A2-order A2", "A7-race A7", "A8-race A8"},
		},
		{
			store: "deadline on the process clock",
			caught: []string{
				"C-A18 A4", "A4-behind A4", "A4-stored A4", "A8-expired A4", "C-C5 A4", "C-C12 P1",
				"P2-deletes P1", "C-C9 P3", "R1-states A4", "R3-unknown R3", "C-A23 A12",
				// Grants of hours after the clock was moved are none for this store.
				"C-A21 A2", "M9-resolution A2", "O2-open A2", "O2-race A2", "O5-check A2",
			},
		},
		{store: "deadline inclusive", caught: []string{"A4-strict A4"}},
		{
			store:  "upsert on conflict",
			caught: []string{"C-A10 A7", "C-A10 A10", "A7-race A7", "A8-other A8", "A8-other A10"},
		},
		{store: "lease extended on repeat", caught: []string{"C-A5 A10"}},
		{
			store: "zero rows read as success",
			caught: []string{
				"P3-archived P3",
				"C-A1 A2", "C-A2 A2", "C-A4 A2", "C-A4 S1", "C-A5 A2", "C-A6 A1", "C-A8 A8", "C-A20 A2", "C-A26 A2", "C-D15 A2",
				"A2-stored A2", "C-B1 A2", "C-B2 A5", "C-B6 A5", "C-B8 A4", "C-C1 R1", "C-C4 A1", "C-C5 P1", "P3-erase A2",
			},
		},
		{
			store: "already admitted answers fresh",
			caught: []string{
				"C-A8 A8", "C-A9 A6", "C-A19 A8", "C-A5 A8", "A8-other A8", "A8-race A8", "C-B11 A8", "A2-stored A8",
				"C-A6 A1", "C-A21 O1", "P3-erase A8", "P3-erase A2", "P3-erase O1",
			},
		},
		{store: "wrong realm accepted", caught: []string{"C-A24 A1"}},
		{store: "epoch ignored", caught: []string{"C-A23 A12"}},
		{store: "issuer and id joined to one string", caught: []string{"C-B1 A5", "C-B2 A5"}},
		{store: "stored grant without a row", caught: []string{"A2-stored A2"}},
		{store: "cancelled read as refused", caught: []string{"C-A9 A6"}},
		{store: "timeout read as unused", caught: []string{"C-A8 A6", "A8-expired A6"}},
		{store: "written before it is checked", caught: []string{"C-B4 A9", "C-A27 A2"}},
		{
			store:  "any lock joins",
			caught: []string{"C-E8 B1", "C-E8 A8", "B2-keys B1", "B2-keys A8", "C-B14 B1", "C-B14 A8", "S2-errors A8"},
		},
		{store: "every issue is new", caught: []string{"C-A25 A6", "A6-issue A6", "A6-issue-race A6"}},
	}
}

func authorityCatches() []catch {
	return []catch{
		{store: "revocation outside the claim", caught: []string{"C-C1 R1"}},
		{store: "revocation without proof", caught: []string{"C-C3 R2"}},
		{store: "purge before retention ends", caught: []string{"C-C5 P1", "P4-batches P4"}},
		{
			store: "purge deletes nothing",
			caught: []string{
				"O1-second-life P3", "P3-archived P3",
				"P2-deletes P2", "R3-unknown P2", "P4-batches P4", "B3-lifetime P3", "C-C9 P3", "C-C10 P3", "P3-log P3", "P3-log M9",
			},
		},
		{store: "grant freed with its operation", caught: []string{"P3-archived P3"}},
		{
			store:  "retention from creation",
			caught: []string{"C-C10 P3", "C-C10 S1", "C-C9 S1", "B3-lifetime B3", "B3-lifetime P3"},
		},
		{store: "clock without a floor", caught: []string{"C-C12 P1"}},
		{store: "status shown to another caller", caught: []string{"C-B15 S1"}},
		{store: "foreign told from absent", caught: []string{"C-B15 S1"}},
		{store: "memory shared with the caller", caught: []string{"C-B13 A5"}},
	}
}

func ownershipCatches() []catch {
	return []catch{
		{
			store: "owner door ignores the fence",
			caught: []string{
				"C-D1 O5", "C-A21 O1", "C-A21 M1", "M1-owner O1", "M1-owner M1", "C-E7 O1", "C-E7 M1", "C-E7 M2",
			},
			sometimes: []string{"O2-race O1"},
		},
		{store: "lease not asked before a create", caught: []string{"C-D1 O5", "O5-check O5", "O5-exact O5"}},
		{
			store:  "joined token accepted as owner",
			caught: []string{"C-A19 O1", "C-A21 O1", "B1-join O1", "B1-join B1", "M1-owner O1"},
		},
		{store: "renewal without end", caught: []string{"C-D21 O3"}},
		{
			store: "takeover without a new fence",
			caught: []string{
				"C-D1 O2", "C-D4 O2", "O2-fence O2", "C-A21 O1", "C-A21 M1", "C-E7 O1", "C-E7 M1", "C-E7 M2",
				"M1-owner O1", "M1-owner M1", "M1-evidence M1", "M1-evidence M2",
			},
			sometimes: []string{"O2-race O1"},
		},
		{
			store: "takeover under a live lease",
			caught: []string{
				"C-D2 O2", "C-D4 O2", "O2-lost O2", "O5-exact O2", "O5-exact O3", "O5-exact O5", "E6-pause O2",
				"A9-calls A9", "C-A27 S1", "M9-resolution O2",
			},
		},
		{
			store:  "takeover of what was found before",
			caught: []string{"O2-race O1"}, sometimes: []string{"C-D4 O2"},
		},
		{store: "lease from before the wait", caught: []string{"C-D16 O2"}},
	}
}

func settlementCatches() []catch {
	return []catch{
		{
			store: "unconditional status write",
			caught: []string{
				"O1-record O1", "O1-record M1", "M1-owner O1", "M1-owner M1", "C-A21 O1", "C-A21 M1", "M4-orders M4",
				"M2-fence M2", "M2-fence M3", "C-E7 O1", "C-E7 M1", "C-E7 M2", "C-E7 M3", "A6-lost O1",
			},
			sometimes: []string{"O2-race O1"},
		},
		{
			store: "success accepted whatever the fingerprint",
			caught: []string{
				"C-E3 M1", "C-E3 M5", "C-E12 M4", "M4-orders M4", "M1-evidence M1", "M1-evidence M2", "M1-evidence M7",
				"M6-counts M6",
			},
		},
		{
			store:  "statement accepted under any generation",
			caught: []string{"C-E3 M1", "C-E3 M5", "M1-evidence M1", "M1-evidence M2", "M1-evidence M7", "C-E13 M1", "C-E13 M6"},
		},
		{store: "revocation by the row's expiry alone", caught: []string{"R3-two-expiries R1"}},
		{store: "grant released on unknown", caught: []string{"C-D15 A2"}},
		{
			store:  "failed applied under another's lease",
			caught: []string{"C-D11 M1", "C-D11 M4", "M1-evidence M1", "M1-evidence M2"},
		},
		{store: "deferred failure forgotten", caught: []string{"C-D11 M1", "C-D11 M4", "C-E12 M4", "M4-orders M4"}},
		{
			store:  "result cleared by a weaker write",
			caught: []string{"C-E1 M4", "M1-evidence M1"}, sometimes: []string{"C-E4 M4"},
		},
		{store: "fence kept at a final outcome", caught: []string{"M2-fence M2", "C-E7 M2", "M1-evidence M2"}},
		{store: "evidence without proof accepted", caught: []string{"C-E14 M1", "O1-second-life M1", "O1-second-life O1"}},
		{store: "mismatch answered with the record", caught: []string{"C-E3 M1", "M1-evidence M1"}},
		{store: "flags cleared", caught: []string{"C-E6 M7", "M1-evidence M7", "M8-conflict M8"}},
		{store: "full log drops everything", caught: []string{"C-E13 M6"}},
		{store: "log without a bound", caught: []string{"C-E10 M6"}},
		{store: "refusals at the owner's door not logged", caught: []string{"O1-record M1", "M1-owner M1", "C-A21 M1"}},
	}
}

// TestRight is the control: the suite finds nothing wrong with the store that
// all the wrong ones are made of, and runs everything but what cannot be.
func TestRight(t *testing.T) {
	r, err := storetest.Check(t.Context(), broken.Right().Harness)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Error(v)
	}
	for _, s := range r.Skips {
		if s.Declared == "" {
			t.Errorf("%s was skipped for want of %s", s.Case, s.Power)
		}
	}
	if want := len(storetest.Cases()); r.Ran+len(r.Skips) != want || r.Ran < want-3 {
		t.Errorf("%d cases ran and %d were skipped, want %d in all", r.Ran, len(r.Skips), want)
	}
}

// TestBroken runs the whole suite on each wrong store: it must fail in the cases
// and clauses named, and only there.
func TestBroken(t *testing.T) {
	expected := map[string]catch{}
	for _, c := range catches() {
		expected[c.store] = c
	}
	for _, s := range broken.Stores() {
		c, ok := expected[s.Name]
		delete(expected, s.Name)
		t.Run(strings.ReplaceAll(s.Name, " ", "-"), func(t *testing.T) {
			if !ok {
				t.Fatal("no expectation stands in the table")
			}
			t.Parallel()
			r, err := storetest.Check(t.Context(), s.Harness)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sorted(c.caught), found(r, c.sometimes)); diff != "" {
				t.Errorf("caught (-want +got):\n%s\nfirst of all: %v", diff, r.Violations[:min(1, len(r.Violations))])
			}
		})
	}
	for name := range expected {
		t.Errorf("the table names %q, which is no wrong store", name)
	}
}

// found returns "case clause" of every violation, but those that a race decides.
func found(r storetest.Report, sometimes []string) []string {
	var all []string
	for _, v := range r.Violations {
		if s := v.Case + " " + v.Clause; !slices.Contains(sometimes, s) {
			all = append(all, s)
		}
	}
	return sorted(all)
}

func sorted(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }
