package pawl_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// act is one thing that may happen to a record: an observation at the evidence
// door, or an owner's write, which goes on to the evidence door where it is
// refused with a definite outcome in hand [M3].
type act struct {
	name  string
	owner bool   // speaks at the owner's door first
	fence uint64 // that the speaker proves
	lock  string // of an observation, as in the settlement table
	say   string
	value string // result of a success
}

// acts are the whole alphabet: a superseded owner, the present owner, a joined
// attempt and a provider.
func acts() []act {
	return []act{
		{name: "old owner succeeded", owner: true, fence: 1, lock: "match", say: "succeeded", value: "cr_1"},
		{name: "old owner failed", owner: true, fence: 1, lock: "match", say: "failed"},
		{name: "old owner unknown", owner: true, fence: 1, lock: "match", say: "unknown"},
		{name: "owner succeeded", owner: true, fence: presentFence, lock: "match", say: "succeeded", value: "cr_1"},
		{name: "owner failed", owner: true, fence: presentFence, lock: "match", say: "failed"},
		{name: "owner unknown", owner: true, fence: presentFence, lock: "match", say: "unknown"},
		{name: "owner hands over", owner: true, fence: presentFence, lock: "match", say: "needs_reconciliation"},
		{name: "attempt unknown", lock: "match", say: "unknown"},
		{name: "attempt failed", lock: "match", say: "failed"},
		{name: "provider succeeded", lock: "match", say: "succeeded", value: "cr_1"},
		{name: "provider succeeded otherwise", lock: "match", say: "succeeded", value: "cr_2"},
		{name: "success of another intent", lock: "fingerprint", say: "succeeded", value: "cr_3"},
		{name: "failure of another binding", lock: "binding", say: "failed"},
	}
}

// perform lets one act happen.
func (a act) perform(t *testing.T, o pawl.Operation, now time.Time) pawl.Operation {
	t.Helper()
	out := verdictOf(a.say, a.value)
	if a.owner {
		c, err := pawl.RecordOutcome(o, a.fence, true, out, 0, now)
		checkStep(t, o, c)
		if c.Write {
			o = c.Next
		}
		if err == nil || !out.Verdict().Definite() {
			return o
		}
	}
	ev := pawl.Evidence{ID: o.ID, Lock: lockFor(t, o, a.lock), Outcome: out}
	c, _, err := pawl.SettleEvidence(o, ev, a.fence, true, now)
	if err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	checkStep(t, o, c)
	return c.Next
}

// settleUp lets the lease end and the deferred failure be read.
func settleUp(t *testing.T, o pawl.Operation) pawl.Operation {
	t.Helper()
	ev := pawl.Evidence{ID: o.ID, Lock: o.Lock, Outcome: pawl.Unknown(""), Trusted: true}
	c, _, err := pawl.SettleEvidence(o, ev, 0, false, at(3600))
	if err != nil {
		t.Fatal(err)
	}
	checkStep(t, o, c)
	if c.Next.Deferred != nil {
		t.Fatalf("a failure is deferred past the lease: %+v", c.Next)
	}
	return c.Next
}

// The final status and the result do not depend on the order in which
// observations and owner's writes arrive [M4]: every sequence of up to four,
// against every other order of the same four, while a lease is live and when none
// is. Excepted is which of two divergent successes was first. A success that is
// known always ends as one, and a mismatched one never does [M1].
func TestCase_CE12_OrderDoesNotMatter(t *testing.T) {
	for _, lease := range []string{"live", "over"} {
		t.Run(lease, func(t *testing.T) {
			ends, sequences := map[string]map[string]string{}, 0
			start := recordIn(t, pawl.StatusAdmitted)
			if lease == "live" {
				start.LeaseUntil = at(60)
			}
			for n := 1; n <= 4; n++ {
				eachSequence(len(acts()), n, func(pick []int) {
					sequences++
					set, end := orderCase(t, start, pick)
					if ends[set] == nil {
						ends[set] = map[string]string{}
					}
					ends[set][end] = fmt.Sprint(pick)
				})
			}
			if want := 13 + 13*13 + 13*13*13 + 13*13*13*13; sequences != want {
				t.Errorf("%d sequences, want %d", sequences, want)
			}
			for _, set := range slices.Sorted(maps.Keys(ends)) {
				if len(ends[set]) != 1 {
					t.Errorf("%s ends in one way or another by order: %v", set, ends[set])
				}
			}
		})
	}
}

// orderCase runs one sequence and returns its multiset and its end.
func orderCase(t *testing.T, o pawl.Operation, pick []int) (set, end string) {
	t.Helper()
	all := acts()
	var names []string
	known, results := false, map[string]bool{}
	for i, p := range pick {
		o = all[p].perform(t, o, at(i))
		names = append(names, all[p].name)
		if all[p].lock == "match" && all[p].value != "" {
			known, results[all[p].value] = true, true
		}
	}
	o = settleUp(t, o)
	slices.Sort(names)
	if (o.Status == pawl.StatusSucceeded) != known || string(o.Result) == "cr_3" {
		t.Errorf("%v ends %v %q, a matching success was told: %v", names, o.Status, o.Result, known)
	}
	end = o.Status.String()
	if len(results) > 1 {
		if !o.DivergenceSeen || !results[string(o.Result)] {
			t.Errorf("%v: two successes, divergence seen %v, result %q", names, o.DivergenceSeen, o.Result)
		}
	} else {
		end += " " + string(o.Result)
	}
	return strings.Join(names, ", "), end
}

// eachSequence calls f with every sequence of n of the numbers below base.
func eachSequence(base, n int, f func([]int)) {
	pick := make([]int, n)
	for {
		f(pick)
		i := n - 1
		for i >= 0 && pick[i] == base-1 {
			pick[i] = 0
			i--
		}
		if i < 0 {
			return
		}
		pick[i]++
	}
}

// What is said twice changes nothing the second time [M4].
func TestSettlementIsIdempotent(t *testing.T) {
	all := acts()
	for n := 1; n <= 3; n++ {
		eachSequence(len(all), n, func(pick []int) {
			o := recordIn(t, pawl.StatusAdmitted)
			o.LeaseUntil = at(60)
			for i, p := range pick {
				o = all[p].perform(t, o, at(i))
			}
			last := all[pick[n-1]]
			again := last.perform(t, o, at(n))
			if again.Status != o.Status || string(again.Result) != string(o.Result) || again.Fence != o.Fence {
				t.Errorf("%v: repeating %q led from %v %q, fence %d to %v %q, fence %d", pick, last.name,
					o.Status, o.Result, o.Fence, again.Status, again.Result, again.Fence)
			}
		})
	}
}
