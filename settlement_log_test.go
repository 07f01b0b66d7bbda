package pawl_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// book is a record with its log as a store would keep it: entries of one key are
// one entry with a count.
type book struct {
	t   *testing.T
	op  pawl.Operation
	log map[string]pawl.Entry
}

func newBook(t *testing.T, s pawl.Status) *book {
	return &book{t: t, op: recordIn(t, s), log: map[string]pawl.Entry{}}
}

func (b *book) write(c pawl.Change) {
	b.t.Helper()
	checkStep(b.t, b.op, c)
	if !c.Write {
		return
	}
	b.op = c.Next
	for _, e := range c.Entries {
		if old, ok := b.log[e.Key]; ok {
			old.Count, old.LastAt = old.Count+1, e.At
			e = old
		}
		b.log[e.Key] = e
	}
}

func (b *book) settle(ev pawl.Evidence, fence uint64, now time.Time) pawl.Settlement {
	b.t.Helper()
	ev.ID = b.op.ID
	c, answer, err := pawl.SettleEvidence(b.op, ev, fence, true, now)
	if err != nil {
		b.t.Fatal(err)
	}
	b.write(c)
	return answer
}

func (b *book) say(out pawl.Outcome, fence uint64, now time.Time) pawl.Disposition {
	b.t.Helper()
	return b.settle(pawl.Evidence{Lock: b.op.Lock, Outcome: out}, fence, now).Disposition
}

// total is the number of statements that the log accounts for.
func (b *book) total() (n uint64) {
	for _, e := range b.log {
		n += e.Count
	}
	return n
}

// The log is bounded and nothing is dropped silently [M6]: weak entries beyond
// the limit are counted, and a divergence after any number of them is there.
func TestCase_CE13_DivergenceAfterManyWeakOnes(t *testing.T) {
	b := newBook(t, pawl.StatusAdmitted)
	b.say(pawl.Succeeded("cr_1"), 0, at(0))
	for i := range 5000 {
		b.say(pawl.Unknown(fmt.Sprint("timeout ", i)), 0, at(i))
	}
	if got := b.say(pawl.Succeeded("cr_2"), 0, at(5000)); got != pawl.Divergent {
		t.Errorf("disposition %q, want divergent", got)
	}
	if !b.op.DivergenceSeen || b.op.Status != pawl.StatusSucceeded || string(b.op.Result) != "cr_1" {
		t.Errorf("divergence seen %v, status %v, result %q; want true, succeeded, cr_1", b.op.DivergenceSeen, b.op.Status, b.op.Result)
	}
	if want := pawl.MaxWeak + 2; len(b.log) != want {
		t.Errorf("%d entries kept, want %d", len(b.log), want)
	}
	if b.op.Observations != 5002 || b.op.WeakEntries != 5000 {
		t.Errorf("%d observations and %d weak ones counted, want 5002 and 5000", b.op.Observations, b.op.WeakEntries)
	}
	divergent := 0
	for _, e := range b.log {
		if e.Disposition == pawl.Divergent {
			divergent++
		}
	}
	if divergent != 1 {
		t.Errorf("%d divergent entries, want 1", divergent)
	}
}

// Ten thousand attempts are exactly counted in a log that stays small [M6]:
// definite and mismatched statements are kept, each digest once with a count.
func TestCase_CE10_BoundedLogExactCount(t *testing.T) {
	b := newBook(t, pawl.StatusAdmitted)
	other := lockFor(t, b.op, "fingerprint")
	for i := range 10_000 {
		switch i % 4 {
		case 0:
			b.say(pawl.Succeeded("cr_1"), 0, at(i))
		case 1:
			b.say(pawl.Failed("declined"), 0, at(i))
		case 2:
			b.say(pawl.Unknown("timeout"), 0, at(i))
		case 3:
			b.settle(pawl.Evidence{Lock: other, Outcome: pawl.Succeeded("cr_3")}, 0, at(i))
		}
	}
	if b.op.Observations != 10_000 {
		t.Errorf("%d observations counted, want 10000", b.op.Observations)
	}
	// The first success applied and the others are duplicates; failures contradict; one mismatch.
	if want := pawl.MaxWeak + 4; len(b.log) != want {
		t.Errorf("%d entries kept, want %d", len(b.log), want)
	}
	if got, want := b.total()+b.op.WeakEntries-pawl.MaxWeak, uint64(10_000); got != want {
		t.Errorf("entries and uncounted weak ones tell of %d statements, want %d", got, want)
	}
}

// A failure that waits for another owner's lease is read by the first evidence
// after the lease, and counts as one statement.
func TestDeferredFailureIsReadAfterTheLease(t *testing.T) {
	b := newBook(t, pawl.StatusUnknown)
	b.op.LeaseUntil = at(30)
	if got := b.say(pawl.Failed("declined"), 1, at(0)); got != pawl.Deferred {
		t.Fatalf("disposition %q, want deferred", got)
	}
	if got := b.say(pawl.Unknown("timeout"), 0, at(29)); got != pawl.Weaker || b.op.Status != pawl.StatusUnknown {
		t.Errorf("under the lease: %q, status %v; want weaker, unknown", got, b.op.Status)
	}
	b.say(pawl.Unknown("timeout"), 0, at(30)) // a lease ends at its last moment
	if b.op.Status != pawl.StatusFailed || b.op.Reason != "declined" || b.op.Deferred != nil || b.op.Fence != presentFence+1 {
		t.Errorf("after the lease: %+v; want failed for the reason deferred, and a moved fence [M2]", b.op)
	}
	if b.op.Observations != 3 {
		t.Errorf("%d observations counted, want 3", b.op.Observations)
	}
}

// The next owner reads a deferred failure at its takeover and decides [E5]: a
// success that it finds wins, and clears it.
func TestCase_CD19_DeferredFailureYieldsToSuccess(t *testing.T) {
	b := newBook(t, pawl.StatusUnknown)
	b.op.LeaseUntil = at(30)
	b.say(pawl.Failed("declined"), 1, at(0))
	c, ok := pawl.TakeOverOperation(b.op, 45*time.Second, "bob", at(31))
	if !ok || c.Next.Deferred == nil || c.Next.Status != pawl.StatusUnknown {
		t.Fatalf("taken over %v, %+v; want the deferred failure handed to the new owner", ok, c.Next)
	}
	b.write(c)
	c, err := pawl.RecordOutcome(b.op, b.op.Fence, true, pawl.Succeeded("cr_1"), 0, at(32))
	if err != nil {
		t.Fatal(err)
	}
	b.write(c)
	if b.op.Status != pawl.StatusSucceeded || b.op.Deferred != nil || string(b.op.Result) != "cr_1" {
		t.Errorf("%+v; want succeeded with the result and nothing deferred", b.op)
	}
}

// A look-up that says "failed" under another owner's live lease changes nothing:
// only the owner decides.
func TestCase_CD11_FailureUnderALiveLease(t *testing.T) {
	b := newBook(t, pawl.StatusAdmitted)
	b.op.LeaseUntil = at(30)
	c, answer, err := pawl.SettleEvidence(b.op, pawl.Evidence{
		ID: b.op.ID, Lock: b.op.Lock, Outcome: pawl.Failed("declined"), Trusted: true,
	}, 0, false, at(29))
	if err != nil {
		t.Fatal(err)
	}
	b.write(c)
	if answer.Disposition != pawl.Deferred || b.op.Status != pawl.StatusAdmitted || b.op.Fence != presentFence {
		t.Errorf("disposition %q, status %v, fence %d; want deferred and nothing changed", answer.Disposition, b.op.Status, b.op.Fence)
	}
	c, err = pawl.RecordOutcome(b.op, presentFence, true, pawl.Succeeded("cr_1"), 0, at(29))
	if err != nil || c.Next.Status != pawl.StatusSucceeded {
		t.Errorf("the owner's success: %v, status %v", err, c.Next.Status)
	}
}

// A final outcome through the evidence door moves the fence and ends the lease,
// so that a live owner's next write and its next create call fail [M2].
func TestEvidenceFencesTheOwner(t *testing.T) {
	b := newBook(t, pawl.StatusAdmitted)
	b.op.LeaseUntil = at(30)
	if got := b.say(pawl.Succeeded("cr_1"), 0, at(0)); got != pawl.Applied {
		t.Fatalf("disposition %q, want applied", got)
	}
	if _, err := pawl.PermitSubmit(b.op, presentFence, true, at(1)); !errors.Is(err, pawl.ErrFenced) {
		t.Errorf("submission check: %v, want fenced", err)
	}
	c, err := pawl.RecordOutcome(b.op, presentFence, true, pawl.Failed("declined"), 0, at(1))
	if !errors.Is(err, pawl.ErrFenced) {
		t.Errorf("the owner's write: %v, want fenced", err)
	}
	b.write(c)
	if b.op.Status != pawl.StatusSucceeded || string(b.op.Result) != "cr_1" {
		t.Errorf("status %v, result %q; want succeeded, cr_1", b.op.Status, b.op.Result)
	}
}

// Conflict stops create calls under the id, never evidence or resolution [M8].
func TestConflictStopsCreateCalls(t *testing.T) {
	b := newBook(t, pawl.StatusAdmitted)
	b.op.LeaseUntil = at(30)
	b.settle(pawl.Evidence{Lock: lockFor(t, b.op, "fingerprint"), Outcome: pawl.Succeeded("cr_3")}, 0, at(0))
	if b.op.Status != pawl.StatusConflict {
		t.Fatalf("status %v, want conflict", b.op.Status)
	}
	if _, err := pawl.PermitSubmit(b.op, presentFence, true, at(1)); pawl.ReasonOf(err) != pawl.ReasonNotOpen {
		t.Errorf("submission check: %v, want not open", err)
	}
	if _, err := pawl.RenewLease(b.op, presentFence, true, time.Minute, time.Minute, at(1)); !errors.Is(err, pawl.ErrFenced) {
		t.Errorf("renewal: %v, want fenced", err)
	}
	if _, ok := pawl.TakeOverOperation(b.op, time.Minute, "bob", at(31)); ok {
		t.Error("automation took over a conflict")
	}
	resolution := pawl.Evidence{
		ID: b.op.ID, Lock: b.op.Lock, Outcome: pawl.Failed("refunded"), Trusted: true, Resolution: true, Source: "sue", Note: "checked",
	}
	if _, _, err := pawl.SettleEvidence(b.op, resolution, 0, false, at(1)); pawl.ReasonOf(err) != pawl.ReasonNotResolvable {
		t.Errorf("resolution under a live lease: %v, want not resolvable", err)
	}
	c, _, err := pawl.SettleEvidence(b.op, resolution, 0, false, at(30))
	if err != nil || c.Next.Status != pawl.StatusFailed || !c.Next.MismatchSeen {
		t.Errorf("resolution: %v, status %v, mismatch seen %v; want failed and the flag kept [M7]", err, c.Next.Status, c.Next.MismatchSeen)
	}
	if e := c.Entries[len(c.Entries)-1]; e.Type != pawl.EntryResolution || e.Source != "sue" || e.Reason != "checked" {
		t.Errorf("the log does not tell who decided and why: %+v", e)
	}
}

// Results are bytes and stay those bytes; one too large is replaced by its size
// and digest, and the operation still succeeds.
func TestCase_CE9_ResultsAreBytes(t *testing.T) {
	for name, raw := range map[string][]byte{
		"empty": {}, "NUL": {0, 1, 0}, "invalid UTF-8": {0xff, 0xfe}, "key order and blanks": []byte("{\"b\": 1,\n \"a\":2}"),
		"at the limit": bytes.Repeat([]byte("x"), pawl.MaxResult),
	} {
		b := newBook(t, pawl.StatusUnknown)
		b.say(pawl.Succeeded(raw), 0, at(0))
		if b.op.Status != pawl.StatusSucceeded || !bytes.Equal(b.op.Result, raw) {
			t.Errorf("%s: status %v, result of %d bytes; want succeeded and the %d bytes given", name, b.op.Status, len(b.op.Result), len(raw))
		}
	}
	for _, size := range []int{pawl.MaxResult + 1, 5 << 20} {
		b := newBook(t, pawl.StatusUnknown)
		out := pawl.Succeeded(bytes.Repeat([]byte("x"), size))
		b.say(out, 0, at(0))
		want := fmt.Sprintf(`{"omitted":true,"sha256":"%s","size":%d}`, out.Digest(), size)
		if b.op.Status != pawl.StatusSucceeded || string(b.op.Result) != want {
			t.Errorf("%d bytes: status %v, result %s; want succeeded, %s", size, b.op.Status, b.op.Result, want)
		}
		if got := b.say(out, 0, at(1)); got != pawl.Duplicate {
			t.Errorf("%d bytes again: %q, want duplicate", size, got)
		}
	}
}
