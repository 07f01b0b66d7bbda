package pawl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
)

// The record that the tables start from: the third owner, by takeover.
const presentFence = 3

func at(seconds int) time.Time { return time.Unix(1_700_000_000+int64(seconds), 0).UTC() }

func details(t testing.TB, raw string) pawl.Details {
	t.Helper()
	d, err := pawl.ParseDetails([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func intentOf(t testing.TB, amount string) pawl.Intent {
	t.Helper()
	return pawl.Intent{Kind: "credit.create", Details: details(t, `{"amount":"`+amount+`"}`)}
}

func ana() pawl.Caller {
	return pawl.Caller{Authority: "corp", Principal: "ana", Tenant: "acme", Scopes: []string{"credit"}, Generation: "7"}
}

// diffOf compares values that hold details, which are comparable and closed.
func diffOf(want, got any) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b pawl.Details) bool { return a == b }))
}

// recordIn returns a record in a status, at the store time at(0), lease over.
func recordIn(t testing.TB, s pawl.Status) pawl.Operation {
	t.Helper()
	a := pawl.Admission{
		Grant:       pawl.Grant{Key: pawl.GrantKey{Issuer: "support", ID: "g-1"}},
		OperationID: pawl.NewOperationID(), Intent: intentOf(t, "250.00"), Caller: ana(),
		Lease: 30 * time.Second, SubmissionWindow: 10 * time.Minute,
	}
	o := a.NewOperation(at(-60))
	o.Fence, o.Takeovers, o.Status = presentFence, presentFence-1, s
	o.LeaseUntil = at(0) // over: a lease ends at its last moment, not after it
	if s == pawl.StatusSucceeded {
		done := pawl.Succeeded("cr_1")
		o.Result, o.ResultDigest = done.Result(), done.Digest()
	}
	if s.Final() {
		o.SettledAt = at(-10)
	}
	if s == pawl.StatusFailed {
		o.Reason = "declined"
	}
	return o
}

func verdictOf(name, result string) pawl.Outcome {
	switch name {
	case "succeeded":
		return pawl.Succeeded(result)
	case "failed":
		return pawl.Failed("declined late")
	case "needs_reconciliation":
		return pawl.NeedsReconciliation("cannot tell")
	}
	return pawl.Unknown("timeout")
}

// lockFor returns the record's lock, or one that differs as the table says.
func lockFor(t testing.TB, o pawl.Operation, how string) pawl.Lock {
	t.Helper()
	l := o.Lock
	if how == "match" {
		return l
	}
	if how == "fingerprint" || how == "both" {
		l.Fingerprint = intentOf(t, "999.00").Fingerprint()
	}
	if how == "binding" || how == "both" {
		moved := ana()
		moved.Generation = "8" // a generation that moved on [M5]
		l.Binding = moved.Binding()
	}
	return l
}

// speaker is who gives evidence.
type speaker struct {
	fence   uint64
	proven  bool
	trusted bool
}

// speakersFor lists everybody who stands to a lease as the table says.
func speakersFor(lease string) []speaker {
	present := speaker{fence: presentFence, proven: true}
	others := []speaker{{fence: 0, proven: true}, {fence: 1, proven: true}, {fence: presentFence - 1, proven: true}, {trusted: true}}
	switch lease {
	case "own":
		return []speaker{present, {fence: presentFence, proven: true, trusted: true}}
	case "other":
		return others
	}
	return append(others, present)
}

func statusNames() (names []string) {
	for _, s := range pawl.Statuses() {
		names = append(names, s.String())
	}
	return names
}

// The settlement table is exhaustive and the code is the table [M1]: every
// combination falls under exactly one row of the hand-written table and does
// what it says, and nothing else.
func TestSettlementTable(t *testing.T) {
	table := readRules(t, "settlement.txt", 5, 4)
	used, cases := map[int]bool{}, 0
	walk([][]string{
		{"unknown", "failed", "succeeded"},
		{"match", "fingerprint", "binding", "both"},
		statusNames(),
		{"over", "own", "other"},
		{"same", "other"},
	}, func(pick []string) {
		row := table.find(t, pick...)
		used[row.line] = true
		for _, s := range speakersFor(pick[3]) {
			cases++
			name := fmt.Sprintf("%v by fence %d trusted %v (line %d)", pick, s.fence, s.trusted, row.line)
			if got := settleCase(t, pick, s); got != strings.Join(row.then, " ") {
				t.Errorf("%s:\n got %s\nwant %s", name, got, strings.Join(row.then, " "))
			}
		}
	})
	if lines := table.unused(used); lines != nil {
		t.Errorf("no case falls under lines %v", lines)
	}
	if want := 3 * 4 * 6 * 2 * (5 + 2 + 4); cases != want {
		t.Errorf("walked %d cases, want %d", cases, want)
	}
}

// settleCase returns the consequences of one case in the table's words, and
// checks what holds for every case.
func settleCase(t *testing.T, pick []string, s speaker) string {
	t.Helper()
	status, err := pawl.ParseStatus(pick[2])
	if err != nil {
		t.Fatal(err)
	}
	o := recordIn(t, status)
	if pick[3] != "over" {
		o.LeaseUntil = at(1)
	}
	result := map[string]string{"same": "cr_1", "other": "cr_2"}[pick[4]]
	ev := pawl.Evidence{ID: o.ID, Lock: lockFor(t, o, pick[1]), Outcome: verdictOf(pick[0], result), Trusted: s.trusted, Source: "bob"}
	before := o.Clone()
	c, answer, err := pawl.SettleEvidence(o, ev, s.fence, s.proven, at(0))
	if err != nil {
		t.Fatalf("%v: %v", pick, err)
	}
	if diff := diffOf(before, o); diff != "" {
		t.Fatalf("%v: the record given was changed:\n%s", pick, diff)
	}
	checkStep(t, before, c)
	if len(c.Entries) != 1 || c.Entries[0].Disposition != answer.Disposition || c.Next.Observations != before.Observations+1 {
		t.Fatalf("%v: entries %+v, answer %q, %d observations", pick, c.Entries, answer.Disposition, c.Next.Observations)
	}
	if pick[1] != "match" {
		if answer.Operation.ID != (pawl.OperationID{}) {
			t.Errorf("%v: a mismatch shows the record", pick)
		}
		if got := c.Entries[0].MismatchOf; got != pick[1] {
			t.Errorf("%v: logged as a mismatch of %q", pick, got)
		}
	} else if diff := diffOf(c.Next, answer.Operation); diff != "" {
		t.Errorf("%v: the answer is not the record:\n%s", pick, diff)
	}
	if c.Next.Status == pawl.StatusSucceeded && status != pawl.StatusSucceeded && string(c.Next.Result) != result {
		t.Errorf("%v: result %q", pick, c.Next.Result)
	}
	if got := c.Next.Deferred != nil; got != (answer.Disposition == pawl.Deferred) {
		t.Errorf("%v: deferred %v with disposition %q", pick, got, answer.Disposition)
	}
	return consequences(before, c, answer.Disposition)
}

func consequences(before pawl.Operation, c pawl.Change, d pawl.Disposition) string {
	becomes, fence, flags := "stays", "stays", []string{}
	if c.Next.Status != before.Status {
		becomes = c.Next.Status.String()
	}
	if c.Next.Fence == before.Fence+1 {
		fence = "moves"
	} else if c.Next.Fence != before.Fence {
		fence = fmt.Sprint(c.Next.Fence)
	}
	for name, set := range map[string]bool{
		"mismatch": c.Next.MismatchSeen, "contradiction": c.Next.ContradictionSeen, "divergence": c.Next.DivergenceSeen,
	} {
		if set {
			flags = append(flags, name)
		}
	}
	if len(flags) == 0 {
		flags = []string{"-"}
	}
	return strings.Join([]string{becomes, string(d), fence, strings.Join(flags, "+")}, " ")
}

// checkStep checks what no step may ever do to a record [B1, M1, M7].
func checkStep(t *testing.T, before pawl.Operation, c pawl.Change) {
	t.Helper()
	if !c.Write {
		return
	}
	n := c.Next
	switch {
	case n.Status < before.Status:
		t.Fatalf("status fell from %v to %v", before.Status, n.Status)
	case n.Fence < before.Fence:
		t.Fatalf("fence fell from %d to %d", before.Fence, n.Fence)
	case n.ID != before.ID || n.Lock != before.Lock || n.Intent != before.Intent || !n.SubmitBy.Equal(before.SubmitBy):
		t.Fatalf("an immutable field changed: %+v", n)
	case before.Result != nil && (string(n.Result) != string(before.Result) || n.ResultDigest != before.ResultDigest):
		t.Fatalf("the result changed from %q to %q", before.Result, n.Result)
	case (n.Result != nil) != (n.Status == pawl.StatusSucceeded):
		t.Fatalf("result %q in status %v", n.Result, n.Status)
	case n.SettledAt.IsZero() == n.Status.Final():
		t.Fatalf("settled at %v in status %v", n.SettledAt, n.Status)
	case before.MismatchSeen && !n.MismatchSeen, before.ContradictionSeen && !n.ContradictionSeen,
		before.DivergenceSeen && !n.DivergenceSeen:
		t.Fatalf("a flag cleared: %+v", n)
	case n.Deferred != nil && n.Status.Final():
		t.Fatalf("a failure is still deferred in status %v", n.Status)
	case n.Entries < before.Entries || n.Observations < before.Observations:
		t.Fatalf("a count fell: %+v", n)
	}
}

// Without proof of taking part there is nothing to be found, and nothing is
// written [M1]; the answer is the same as for an id that never existed.
func TestCase_CE14_StrangerSettlesNothing(t *testing.T) {
	for _, s := range pawl.Statuses() {
		for _, how := range []string{"match", "fingerprint"} {
			o := recordIn(t, s)
			ev := pawl.Evidence{ID: o.ID, Lock: lockFor(t, o, how), Outcome: pawl.Succeeded("cr_9")}
			c, answer, err := pawl.SettleEvidence(o, ev, presentFence, false, at(0))
			if !errors.Is(err, pawl.ErrNotFound) || c.Write || answer.Disposition != "" {
				t.Errorf("%v, %s: %v, write %v, disposition %q; want not found and nothing written", s, how, err, c.Write, answer.Disposition)
			}
			if diff := cmp.Diff(pawl.NotFound().Error(), err.Error()); diff != "" {
				t.Errorf("the answer differs from that for an absent id:\n%s", diff)
			}
		}
	}
}

// The owner's door is a table too [O1].
func TestOwnersDoorTable(t *testing.T) {
	table := readRules(t, "owner.txt", 4, 3)
	used := map[int]bool{}
	walk([][]string{
		{"unknown", "failed", "succeeded", "needs_reconciliation"},
		{"present", "old", "joined", "none"},
		{"first", "takeover"},
		statusNames(),
	}, func(pick []string) {
		row := table.find(t, pick...)
		used[row.line] = true
		for _, s := range proofs(pick[1]) {
			if got := recordCase(t, pick, s); got != strings.Join(row.then, " ") {
				t.Errorf("%v with fence %d (line %d):\n got %s\nwant %s", pick, s.fence, row.line, got, strings.Join(row.then, " "))
			}
		}
	})
	if lines := table.unused(used); lines != nil {
		t.Errorf("no case falls under lines %v", lines)
	}
}

func proofs(name string) []speaker {
	switch name {
	case "present":
		return []speaker{{fence: presentFence, proven: true}}
	case "old":
		return []speaker{{fence: 1, proven: true}, {fence: presentFence - 1, proven: true}, {fence: presentFence + 1, proven: true}}
	case "joined":
		return []speaker{{fence: 0, proven: true}}
	}
	return []speaker{{}, {fence: presentFence}}
}

func recordCase(t *testing.T, pick []string, s speaker) string {
	t.Helper()
	status, err := pawl.ParseStatus(pick[3])
	if err != nil {
		t.Fatal(err)
	}
	o := recordIn(t, status)
	o.LeaseUntil = at(20)
	if pick[2] == "first" {
		o.Takeovers = 0
	}
	before := o.Clone()
	c, err := pawl.RecordOutcome(o, s.fence, s.proven, verdictOf(pick[0], "cr_2"), 0, at(0))
	checkStep(t, before, c)
	answer := "ok"
	if err != nil {
		row, _ := pawl.Row(err)
		answer = strings.ReplaceAll(row.Name, " ", "_")
	}
	becomes, logged := "stays", "-"
	if c.Write {
		logged = string(c.Entries[0].Disposition)
		if err == nil || c.Next.Status != before.Status {
			becomes = c.Next.Status.String()
		}
		if err != nil && (c.Next.Fence != before.Fence || !c.Next.LeaseUntil.Equal(before.LeaseUntil)) {
			t.Errorf("%v: refused, and yet fence or lease changed", pick)
		}
		if err == nil && c.Next.Status != pawl.StatusUnknown && c.Next.LeaseLive(at(0)) {
			t.Errorf("%v: the lease is still live", pick)
		}
	}
	return strings.Join([]string{becomes, answer, logged}, " ")
}
