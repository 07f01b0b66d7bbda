package storetest

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
)

//go:embed tables/evidence.txt
var evidenceTable string

//go:embed tables/owner.txt
var ownerTable string

func settlementCases() []Case {
	return []Case{
		{ID: "M1-evidence", Title: "the settlement table, row by row", Clauses: clauses("M1 M2 M5 M7"), Needs: []Power{PowerClock}, run: walkEvidence},
		{ID: "M1-owner", Title: "the owner's door, row by row", Clauses: clauses("O1 M1"), Needs: []Power{PowerClock}, run: walkOwner},
		{ID: "M2-fence", Title: "a final outcome through the evidence door stops the live owner", Clauses: clauses("M2 M3"), run: evidenceMovesFence},
		{ID: "M8-conflict", Title: "a conflict stops create calls, not evidence, reading or resolution", Clauses: clauses("M8"), Needs: []Power{PowerClock}, run: conflictStopsCreates},
		{ID: "M9-resolution", Title: "a person resolves, or may not", Clauses: clauses("M8 M9"), Needs: []Power{PowerClock}, run: resolutions},
	}
}

// specimen is one operation in a known state, with a token of every kind.
type specimen struct {
	op     pawl.Operation
	live   bool // the present owner's lease
	tokens map[string]pawl.OwnerToken
}

// state is where specimens are brought: to a status, with the lease live or over.
type state struct {
	status pawl.Status
	live   bool
}

// states are all that can be reached: an owner that has spoken for good, or
// handed over, has no lease any more.
func states() []state {
	return []state{
		{pawl.StatusAdmitted, true},
		{pawl.StatusAdmitted, false},
		{pawl.StatusUnknown, true},
		{pawl.StatusUnknown, false},
		{pawl.StatusNeedsReconciliation, false},
		{pawl.StatusConflict, true},
		{pawl.StatusConflict, false},
		{pawl.StatusFailed, false},
		{pawl.StatusSucceeded, false},
	}
}

// shortLease is over when advance moves by a second or more.
const shortLease = time.Second

// specimens makes n operations of every state through the store's own calls:
// reserved, joined, their first lease over, taken over, and brought there.
func (t *Trial) specimens(n int) map[state][]specimen {
	made := map[state][]specimen{}
	byID := map[pawl.OperationID]*specimen{}
	where := map[pawl.OperationID]state{}
	leases := map[bool]pawl.Kind{true: t.kind, false: t.kind + ".over"}
	for _, st := range states() {
		for range n {
			r := t.reservation()
			r.Lease, r.Intent.Kind = shortLease, leases[st.live]
			first, err := t.reserve(t.a, r)
			if err != nil {
				t.stop("B1", "a fresh key: %v", err)
			}
			joined, err := t.reserve(t.a, r)
			if err != nil {
				t.stop("B1", "the same key again: %v", err)
			}
			byID[first.Operation.ID] = &specimen{live: st.live, tokens: map[string]pawl.OwnerToken{
				"superseded": first.Owner.Token, "attempt": joined.Owner.Token, "none": "", "trusted": "",
			}}
			where[first.Operation.ID] = st
		}
	}
	t.advance(2 * shortLease)
	for left := len(byID); left > 0; {
		taken, err := t.a.TakeOver(t.ctx, pawl.TakeOver{
			Leases: map[pawl.Kind]time.Duration{leases[true]: longLease, leases[false]: shortLease}, Limit: pawl.MaxPage, By: "recovery",
		})
		if err != nil || len(taken) == 0 {
			t.stop("O2", "with %d stalled operations left a takeover took none: %v", left, err)
		}
		left -= len(taken)
		for _, k := range taken {
			s := byID[k.Operation.ID]
			s.tokens["present"] = k.Owner.Token
			t.bring(&k, where[k.Operation.ID].status)
			s.op = k.Operation
		}
	}
	t.advance(2 * shortLease)
	for id, st := range where {
		made[st] = append(made[st], *byID[id])
	}
	t.borrowTokens(made)
	return made
}

// borrowTokens gives each specimen the token of another operation.
func (t *Trial) borrowTokens(made map[state][]specimen) {
	other := t.admitted().Owner.Token
	for _, all := range made {
		for i := range all {
			all[i].tokens["other"] = other
		}
	}
}

// locks of a statement about a record, by what differs.
func locks(l pawl.Lock) map[string]pawl.Lock {
	f, b, both := l, l, l
	f.Fingerprint[0] ^= 1
	b.Binding[0] ^= 1
	both.Fingerprint[31] ^= 1
	both.Binding[31] ^= 1
	return map[string]pawl.Lock{"match": l, "fingerprint": f, "binding": b, "both": both}
}

// said are the statements of the tables.
func said() map[string]pawl.Outcome {
	return map[string]pawl.Outcome{
		"unknown": pawl.Unknown("said unknown"), "failed": pawl.Failed("said failed"),
		"succeeded:same": pawl.Succeeded(marker), "succeeded:other": pawl.Succeeded(marker + " another"),
	}
}

// walkEvidence puts every statement, about every lock, by everybody who may
// speak, to a record in every state [M1].
func walkEvidence(t *Trial) {
	rows, err := parseTable(evidenceTable, 7)
	t.must(err)
	voices := []string{"present", "superseded", "attempt", "trusted"}
	statements, differences := said(), locks(pawl.Lock{})
	made := t.specimens(len(statements) * len(differences) * len(voices))
	walked := map[int]bool{}
	for _, st := range states() {
		all := made[st]
		for _, what := range slices.Sorted(maps.Keys(statements)) {
			for _, differs := range slices.Sorted(maps.Keys(differences)) {
				for _, voice := range voices {
					s := all[0]
					all = all[1:]
					another := "over"
					if st.live && voice != "present" {
						another = "live"
					}
					r, err := find(rows, what, differs, st.status.String(), another)
					t.must(err)
					walked[r.line] = true
					t.checkEvidence(s, r, fmt.Sprintf("%s said %s, lock %s, record %v, other lease %s (row %d)",
						voice, what, differs, st.status, another, r.line), pawl.Evidence{
						ID: s.op.ID, Lock: locks(s.op.Lock)[differs], Outcome: statements[what],
						Token: s.tokens[voice], Trusted: voice == "trusted", Source: voice,
					})
				}
			}
		}
	}
	if len(walked) != len(rows) {
		t.must(fmt.Errorf("walked %d of %d rows", len(walked), len(rows)))
	}
}

// checkEvidence makes one statement and compares answer, record and log with
// the row.
func (t *Trial) checkEvidence(s specimen, r row, what string, e pawl.Evidence) {
	becomes, disposition, seen := r.cells[4], r.cells[5], r.cells[6]
	got, err := t.a.Settle(t.ctx, e)
	if err != nil {
		t.clean(err)
		t.fail("M1", "%s: %v, want %s", what, err, disposition)
		return
	}
	if string(got.Disposition) != disposition {
		t.fail("M1", "%s: %s, want %s", what, got.Disposition, disposition)
	}
	want, after := s.op, t.get(s.op.ID)
	want.MismatchSeen = want.MismatchSeen || seen == "mismatch"
	want.ContradictionSeen = want.ContradictionSeen || seen == "contradiction"
	want.DivergenceSeen = want.DivergenceSeen || seen == "divergence"
	if after.MismatchSeen != want.MismatchSeen || after.ContradictionSeen != want.ContradictionSeen || after.DivergenceSeen != want.DivergenceSeen {
		t.fail("M7", "%s: mismatch, contradiction, divergence seen %v %v %v, want %v %v %v", what,
			after.MismatchSeen, after.ContradictionSeen, after.DivergenceSeen,
			want.MismatchSeen, want.ContradictionSeen, want.DivergenceSeen)
	}
	t.wantBecome(what, s.op, after, becomes, e.Outcome, true)
	if got.Disposition == pawl.Mismatched {
		if diff := differ(pawl.Operation{}, got.Operation); diff != "" {
			t.fail("M1", "%s: a mismatch is shown:\n%s", what, diff)
		}
	} else if diff := differ(after, got.Operation); diff != "" {
		t.fail("M1", "%s: the answer is not the record (-record +answer):\n%s", what, diff)
	}
	if (after.Deferred != nil) != (disposition == "deferred") {
		t.fail("M1", "%s: a deferred failure is kept: %v", what, after.Deferred != nil)
	}
	t.wantEntry(what, after, e.Outcome, disposition)
}

// wantBecome compares a record with what a row says it becomes. evidence says
// through which door: there a final outcome moves the fence [M2].
func (t *Trial) wantBecome(what string, before, after pawl.Operation, becomes string, o pawl.Outcome, evidence bool) {
	status, result, fence, settled := before.Status.String(), before.Result, before.Fence, !before.SettledAt.IsZero()
	if becomes != "same" {
		status = becomes
		if o.Verdict().Definite() && becomes == o.Verdict().String() {
			settled = true
			if evidence {
				fence++
			}
		}
		if becomes == "succeeded" {
			result = o.Result()
		}
	}
	if after.Status.String() != status || string(after.Result) != string(result) || (after.Result == nil) != (result == nil) {
		t.fail("M1", "%s: the record is %v with %d bytes (nil %v), want %s with %d", what,
			after.Status, len(after.Result), after.Result == nil, status, len(result))
	}
	if after.SettledAt.IsZero() == settled || after.Lock != before.Lock {
		t.fail("M1", "%s: settled at %v, lock changed %v", what, after.SettledAt, after.Lock != before.Lock)
	}
	if after.Fence != fence {
		t.fail("M2", "%s: the fence moved from %d to %d, want %d", what, before.Fence, after.Fence, fence)
	}
	if after.Observations != before.Observations+1 {
		t.fail("M1", "%s: %d statements are counted, want %d", what, after.Observations, before.Observations+1)
	}
}

// wantEntry requires the statement in the log [M1].
func (t *Trial) wantEntry(what string, op pawl.Operation, o pawl.Outcome, disposition string) {
	for _, e := range t.log(op.ID).Entries {
		if string(e.Disposition) == disposition && e.Verdict == o.Verdict() && e.ResultDigest == o.Digest() &&
			(e.Type == pawl.EntryEvidence || e.Type == pawl.EntryOutcome) && e.Count == 1 {
			return
		}
	}
	t.fail("M1", "%s: the log has no entry of %v as %s", what, o, disposition)
}

// walkOwner is the same for the owner's door [O1].
func walkOwner(t *Trial) {
	rows, err := parseTable(ownerTable, 5)
	t.must(err)
	tokens := []string{"present", "superseded", "attempt", "other", "none"}
	statements := map[string]pawl.Outcome{
		"unknown": pawl.Unknown("said unknown"), "failed": pawl.Failed("said failed"),
		"succeeded": pawl.Succeeded(marker), "needs_reconciliation": pawl.NeedsReconciliation("said so"),
	}
	classes := map[string]pawl.Class{"fenced": pawl.ErrFenced, "not-found": pawl.ErrNotFound}
	made := t.specimens(len(statements) * len(tokens))
	for _, st := range states() {
		all := made[st]
		for _, saying := range slices.Sorted(maps.Keys(statements)) {
			for _, token := range tokens {
				s, outcome := all[0], statements[saying]
				all = all[1:]
				r, err := find(rows, saying, token, st.status.String())
				t.must(err)
				what := fmt.Sprintf("%s with the token of %s, record %v, lease live %v (row %d)", saying, token, st.status, st.live, r.line)
				op, err := t.a.Record(t.ctx, pawl.Statement{ID: s.op.ID, Token: s.tokens[token], Outcome: outcome})
				after := t.get(s.op.ID)
				if class, refused := classes[r.cells[4]]; refused {
					t.wantClass("O1", what, err, class)
				} else if err != nil {
					t.fail("O1", "%s: %v, want accepted", what, err)
				} else if diff := differ(after, op); diff != "" {
					t.fail("O1", "%s: the answer is not the record (-record +answer):\n%s", what, diff)
				}
				if r.cells[4] == "not-found" {
					t.same("O1", what, s.op)
					continue
				}
				t.wantBecome(what, s.op, after, r.cells[3], outcome, false)
				if err != nil {
					t.wantEntry(what, after, outcome, string(pawl.Refused))
				}
			}
		}
	}
}
