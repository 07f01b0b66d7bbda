package storetest

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl"
)

// logSlack is how many entries a bounded log may have beyond the weak ones.
const logSlack = 20

func logCases() []Case {
	return []Case{
		{ID: "C-E10", Title: "very many attempts at one operation", Clauses: clauses("M6"), run: manyAttempts},
		{ID: "C-E13", Title: "very many weak statements, then a divergent success", Clauses: clauses("M6 M7"), run: weakThenDivergent},
		{ID: "M6-counts", Title: "equal definite statements are one entry with a count", Clauses: clauses("M6"), run: equalStatements},
		{ID: "M9-timeline", Title: "the log tells the whole story, in order", Clauses: clauses("M9"), Needs: []Power{PowerClock}, run: timeline},
	}
}

// weakly makes n weak statements about an operation from several goroutines.
func (t *Trial) weakly(op pawl.Operation, n int) {
	instances := []pawl.Store{t.a, t.open()}
	var left atomic.Int64
	left.Store(int64(n))
	race(8, func(i int) {
		for left.Add(-1) >= 0 {
			t.settle(instances[i%2], provider(op, pawl.Unknown("timeout")))
		}
	})
}

// manyAttempts is C-E10: the log is bounded and the count exact [M6].
func manyAttempts(t *Trial) {
	n := t.sizes.Attempts
	own := t.admitted()
	t.weakly(own.Operation, n)
	tl := t.log(own.Operation.ID)
	if tl.Operation.Observations != uint64(n) || tl.Operation.WeakEntries != uint64(n) {
		t.fail("M6", "of %d statements %d are counted, %d as weak", n, tl.Operation.Observations, tl.Operation.WeakEntries)
	}
	if len(tl.Entries) > pawl.MaxWeak+logSlack || len(tl.Entries) < pawl.MaxWeak {
		t.fail("M6", "after %d weak statements the log has %d entries, want about %d", n, len(tl.Entries), pawl.MaxWeak)
	}
	if tl.NotKept != uint64(n-pawl.MaxWeak) {
		t.fail("M6", "%d entries are said not to be kept, want %d: nothing is dropped silently", tl.NotKept, n-pawl.MaxWeak)
	}
}

// weakThenDivergent is C-E13: definite statements are kept whatever came before.
func weakThenDivergent(t *Trial) {
	own := t.admitted()
	t.ownerSays(own, pawl.Succeeded(marker))
	t.weakly(own.Operation, t.sizes.Weak)
	got := t.wantSettled(t.a, provider(own.Operation, pawl.Succeeded(marker+"2")), pawl.Divergent)
	if !got.Operation.DivergenceSeen {
		t.fail("M7", "the divergence is not flagged")
	}
	tl := t.log(own.Operation.ID)
	if last := tl.Entries[len(tl.Entries)-1]; last.Disposition != pawl.Divergent {
		t.fail("M6", "the last of %d entries is %s/%s, want the divergent success", len(tl.Entries), last.Type, last.Disposition)
	}
	mismatch := provider(own.Operation, pawl.Unknown("?"))
	mismatch.Lock.Binding[0] ^= 1
	t.wantSettled(t.a, mismatch, pawl.Mismatched)
	tl = t.log(own.Operation.ID)
	if last := tl.Entries[len(tl.Entries)-1]; last.Disposition != pawl.Mismatched || last.MismatchOf != "binding" {
		t.fail("M6", "the last entry is %s of %q, want the mismatch of the binding", last.Disposition, last.MismatchOf)
	}
}

func equalStatements(t *Trial) {
	own := t.admitted()
	const times = 25
	for i := range times {
		o := provider(own.Operation, pawl.Succeeded(marker))
		if i%2 == 1 {
			o.Lock.Fingerprint[0] ^= 1
		}
		t.settle(t.a, o)
	}
	tl := t.log(own.Operation.ID)
	var total uint64
	for _, e := range tl.Entries {
		if e.Type == pawl.EntryEvidence {
			total += e.Count
		}
	}
	// Applied, its duplicates, the mismatches.
	if len(tl.Entries) != 4 || total != times || tl.Operation.Observations != times {
		t.fail("M6", "%d statements of two kinds are %d entries counting %d, %d in the record; want 4 with the admission's, %d, %d",
			times, len(tl.Entries), total, tl.Operation.Observations, times, times)
	}
}

// timeline: admission, check, outcome, takeover, evidence; each with its time
// and fence, in the order of their numbers [M9].
func timeline(t *Trial) {
	own := t.admitted()
	id := own.Operation.ID
	if _, err := t.a.MaySubmit(t.ctx, id, own.Owner.Token); err != nil {
		t.stop("O5", "a fresh owner asks to create: %v", err)
	}
	t.ownerSays(own, pawl.Unknown("timeout"))
	t.advance(lease + time.Second)
	if n := len(t.takeOver(t.a, 1)); n != 1 {
		t.stop("O2", "%d operations were taken over, want 1", n)
	}
	t.settle(t.a, provider(own.Operation, pawl.Succeeded(marker)))
	type line struct {
		typ    pawl.EntryType
		fence  uint64
		source string
	}
	want := []line{
		{pawl.EntryAdmission, 1, t.caller.Principal},
		{pawl.EntryCheck, 1, "owner"},
		{pawl.EntryOutcome, 1, "owner"},
		{pawl.EntryTakeover, 2, "recovery"},
		{pawl.EntryEvidence, 0, "provider"},
	}
	entries := t.log(id).Entries
	var got []line
	for _, e := range entries {
		got = append(got, line{e.Type, e.Fence, e.Source})
		if e.At.IsZero() || e.Count != 1 || e.LastAt.Before(e.At) {
			t.fail("M9", "entry %s: at %v, last %v, count %d", e.Type, e.At, e.LastAt, e.Count)
		}
	}
	if !slices.Equal(got, want) {
		t.fail("M9", "the log tells %v, want %v", got, want)
	}
	if !slices.IsSortedFunc(entries, func(a, b pawl.Entry) int { return cmp.Compare(a.Seq, b.Seq) }) {
		t.fail("M9", "the log is not in the order of its numbers")
	}
}
