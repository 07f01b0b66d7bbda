package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/pawl-go/pawl"
)

func evidenceCases() []Case {
	return []Case{
		{ID: "C-E1", Title: "success, then a timeout", Clauses: clauses("M1 M4"), run: successThenTimeout},
		{ID: "C-E2", Title: "a timeout, then success", Clauses: clauses("M1 M4"), run: timeoutThenSuccess},
		{ID: "C-E3", Title: "a late success for another intent or generation", Clauses: clauses("M1 M5 S1"), run: mismatchedSuccess},
		{ID: "C-E4", Title: "success and recovery's failure at once", Clauses: clauses("M4 M1"), run: successAgainstFailure},
		{ID: "C-E5", Title: "the same success twice, and at once", Clauses: clauses("M4"), run: sameSuccessTwice},
		{ID: "C-E6", Title: "two different successes", Clauses: clauses("M7 M1"), run: twoSuccesses},
		{ID: "C-E7", Title: "a superseded owner's success while recovery looks up", Clauses: clauses("M2 M3"), Needs: []Power{PowerClock}, run: supersededSuccess},
		{ID: "C-E9", Title: "results are bytes, and bounded", Clauses: clauses("M1"), run: resultBytes},
		{ID: "C-D15", Title: "the grant stays spent whatever the outcome", Clauses: clauses("A2"), run: staysSpent},
		{ID: "C-E14", Title: "evidence by someone who never took part", Clauses: clauses("M1 O1"), run: strangersEvidence},
	}
}

// provider is trusted evidence about an operation, with its own lock.
func provider(op pawl.Operation, o pawl.Outcome) pawl.Evidence {
	return pawl.Evidence{ID: op.ID, Lock: op.Lock, Outcome: o, Trusted: true, Source: "provider"}
}

// ownerSays records an outcome at the owner's door and requires it.
func (t *Trial) ownerSays(own pawl.Admitted, o pawl.Outcome) pawl.Operation {
	op, err := t.a.Record(t.ctx, pawl.Statement{ID: own.Operation.ID, Token: own.Owner.Token, Outcome: o})
	if err != nil {
		t.stop("O1", "an owner's %v: %v", o, err)
	}
	return op
}

func (t *Trial) wantSettled(s pawl.Store, e pawl.Evidence, d pawl.Disposition) pawl.Settlement {
	got := t.settle(s, e)
	if got.Disposition != d {
		t.fail("M1", "%v: %s, want %s", e.Outcome, got.Disposition, d)
	}
	return got
}

func (t *Trial) wantRecordIs(clause string, id pawl.OperationID, s pawl.Status, result string) pawl.Operation {
	op := t.get(id)
	if op.Status != s || string(op.Result) != result {
		t.fail(clause, "the record is %v with the result %q, want %v with %q", op.Status, op.Result, s, result)
	}
	return op
}

// successThenTimeout is C-E1, with a joined attempt's timeout and a provider's.
func successThenTimeout(t *Trial) {
	a := t.admission(t.grant())
	own := t.mustAdmit(t.a, a)
	joined, err := t.admit(t.a, a)
	if err != nil {
		t.stop("A8", "the same admission again: %v", err)
	}
	t.ownerSays(own, pawl.Succeeded(marker))
	e := provider(own.Operation, pawl.Unknown("timeout"))
	t.wantSettled(t.a, e, pawl.Weaker)
	e.Trusted, e.Token = false, joined.Owner.Token
	t.wantSettled(t.open(), e, pawl.Weaker)
	t.wantRecordIs("M4", a.OperationID, pawl.StatusSucceeded, marker)
}

func timeoutThenSuccess(t *Trial) {
	own := t.admitted()
	t.wantSettled(t.a, provider(own.Operation, pawl.Unknown("timeout")), pawl.Applied)
	t.wantRecordIs("M1", own.Operation.ID, pawl.StatusUnknown, "")
	t.wantSettled(t.open(), provider(own.Operation, pawl.Succeeded(marker)), pawl.Applied)
	t.wantRecordIs("M4", own.Operation.ID, pawl.StatusSucceeded, marker)
}

// mismatchedSuccess is C-E3: conflict where nothing is settled, else unchanged,
// and the result stays; the foreign one is shown to nobody [M5].
func mismatchedSuccess(t *Trial) {
	const foreign = "another intent's result"
	next := t.caller
	next.Generation = "2"
	other := t.intent
	other.Details = details("1.00")
	for what, lock := range map[string]pawl.Lock{
		"another fingerprint": pawl.LockOf(other, t.caller), "another generation": pawl.LockOf(t.intent, next),
	} {
		open, done := t.admitted(), t.admitted()
		t.ownerSays(done, pawl.Succeeded(marker))
		for _, own := range []pawl.Admitted{open, done} {
			e := pawl.Evidence{ID: own.Operation.ID, Lock: lock, Outcome: pawl.Succeeded(foreign), Token: own.Owner.Token}
			got := t.wantSettled(t.a, e, pawl.Mismatched)
			if diff := differ(pawl.Operation{}, got.Operation); diff != "" {
				t.fail("M1", "%s: a mismatch is shown:\n%s", what, diff)
			}
			op, err := t.a.Get(t.ctx, own.Operation.ID, pawl.AsCaller(t.caller))
			if err != nil || bytes.Contains(op.Result, []byte(foreign)) || !op.MismatchSeen {
				t.fail("M5", "%s: the caller sees %q, mismatch seen %v, %v", what, op.Result, op.MismatchSeen, err)
			}
		}
		t.wantRecordIs("M1", open.Operation.ID, pawl.StatusConflict, "")
		t.wantRecordIs("M1", done.Operation.ID, pawl.StatusSucceeded, marker)
	}
}

// successAgainstFailure is C-E4: one final state, and success wins [M4].
func successAgainstFailure(t *Trial) {
	b := t.open()
	for round := range t.sizes.Rounds {
		own := t.admitted()
		t.ownerSays(own, pawl.Unknown("timeout"))
		weaker := []pawl.Outcome{pawl.Failed("declined"), pawl.Unknown("?")}[round%2]
		race(2, func(i int) {
			if i == 0 {
				t.settle(b, provider(own.Operation, pawl.Succeeded(marker)))
				return
			}
			e := provider(own.Operation, weaker)
			e.Trusted, e.Token = false, own.Owner.Token
			t.settle(t.a, e)
		})
		t.wantRecordIs("M4", own.Operation.ID, pawl.StatusSucceeded, marker)
	}
}

// sameSuccessTwice is C-E5: the second is a duplicate of the same record.
func sameSuccessTwice(t *Trial) {
	b := t.open()
	own := t.admitted()
	first := t.wantSettled(t.a, provider(own.Operation, pawl.Succeeded(marker)), pawl.Applied)
	second := t.wantSettled(b, provider(own.Operation, pawl.Succeeded(marker)), pawl.Duplicate)
	first.Operation.Observations, first.Operation.Entries = second.Operation.Observations, second.Operation.Entries
	if diff := differ(first.Operation, second.Operation); diff != "" {
		t.fail("M4", "a duplicate changed the record (-before +after):\n%s", diff)
	}
	for range t.sizes.Rounds {
		own := t.admitted()
		got := make([]pawl.Disposition, 2)
		race(2, func(i int) {
			got[i] = t.settle([]pawl.Store{t.a, b}[i], provider(own.Operation, pawl.Succeeded(marker))).Disposition
		})
		if !(got[0] == pawl.Applied && got[1] == pawl.Duplicate) && !(got[1] == pawl.Applied && got[0] == pawl.Duplicate) {
			t.fail("M4", "the same success at once: %v, want applied and duplicate", got)
		}
		t.wantRecordIs("M4", own.Operation.ID, pawl.StatusSucceeded, marker)
	}
}

// twoSuccesses is C-E6: the first is kept, the other flagged and logged [M7].
func twoSuccesses(t *Trial) {
	own := t.admitted()
	id := own.Operation.ID
	t.wantSettled(t.a, provider(own.Operation, pawl.Succeeded(marker)), pawl.Applied)
	for range 3 {
		got := t.wantSettled(t.a, provider(own.Operation, pawl.Succeeded(marker+"2")), pawl.Divergent)
		if !got.Operation.DivergenceSeen {
			t.fail("M7", "divergence is not flagged")
		}
	}
	t.wantSettled(t.a, provider(own.Operation, pawl.Succeeded(marker)), pawl.Duplicate)
	if op := t.wantRecordIs("M1", id, pawl.StatusSucceeded, marker); !op.DivergenceSeen {
		t.fail("M7", "the flag was cleared by a later statement")
	}
	for _, e := range t.log(id).Entries {
		if e.Disposition == pawl.Divergent {
			if e.Count != 3 || e.ResultDigest != pawl.Succeeded(marker+"2").Digest() {
				t.fail("M6", "the divergent success is counted %d times, want 3, with its digest", e.Count)
			}
			return
		}
	}
	t.fail("M7", "the divergent success is not in the log")
}

// supersededSuccess is C-E7: the success counts, and recovery's next write does
// nothing [M3, M2].
func supersededSuccess(t *Trial) {
	own := t.admitted()
	t.advance(lease + time.Second)
	taken := t.takeOver(t.open(), 1)
	if len(taken) != 1 {
		t.stop("O2", "%d operations were taken over, want 1", len(taken))
	}
	_, err := t.a.Record(t.ctx, pawl.Statement{ID: own.Operation.ID, Token: own.Owner.Token, Outcome: pawl.Succeeded(marker)})
	t.wantClass("O1", "a superseded owner's success", err, pawl.ErrFenced, pawl.ReasonSuperseded)
	e := provider(own.Operation, pawl.Succeeded(marker))
	e.Trusted, e.Token = false, own.Owner.Token
	t.wantSettled(t.a, e, pawl.Applied)
	for _, o := range []pawl.Outcome{pawl.Failed("not found"), pawl.NeedsReconciliation("not found"), pawl.Unknown("not found")} {
		_, err := t.a.Record(t.ctx, pawl.Statement{ID: own.Operation.ID, Token: taken[0].Owner.Token, Outcome: o})
		t.wantClass("M2", "recovery's next word", err, pawl.ErrFenced, pawl.ReasonSuperseded)
	}
	_, err = t.a.MaySubmit(t.ctx, own.Operation.ID, taken[0].Owner.Token)
	t.wantClass("M2", "recovery asks to create", err, pawl.ErrFenced)
	t.wantRecordIs("M3", own.Operation.ID, pawl.StatusSucceeded, marker)
}

// resultBytes is C-E9: identical bytes, through either door, or size and digest.
func resultBytes(t *Trial) {
	big := bytes.Repeat([]byte("x"), 5<<20)
	atLimit := bytes.Repeat([]byte{0}, pawl.MaxResult)
	all := map[string][]byte{
		"nothing": {}, "a NUL": {0}, "every byte": allBytes(), "not UTF-8": []byte("\xff\xfe\x00"),
		"JSON as it was written": []byte("{ \"b\":1,\n\"a\" : 1.0 }\r\n"), "the most": atLimit,
	}
	for what, raw := range all {
		for _, byOwner := range []bool{true, false} {
			own := t.admitted()
			if byOwner {
				t.ownerSays(own, pawl.Succeeded(raw))
			} else {
				t.wantSettled(t.a, provider(own.Operation, pawl.Succeeded(raw)), pawl.Applied)
			}
			op := t.get(own.Operation.ID)
			if op.Result == nil || !bytes.Equal(op.Result, raw) || op.ResultDigest != sha256.Sum256(raw) {
				t.fail("M1", "%s (by the owner: %v): %d bytes came back (nil: %v), want %d the same", what, byOwner, len(op.Result), op.Result == nil, len(raw))
			}
		}
	}
	own := t.admitted()
	t.ownerSays(own, pawl.Succeeded(big))
	op := t.get(own.Operation.ID)
	sum := sha256.Sum256(big)
	var left struct {
		Size   int    `json:"size"`
		SHA256 string `json:"sha256"`
	}
	if err := json.Unmarshal(op.Result, &left); err != nil || left.Size != len(big) || left.SHA256 != hex.EncodeToString(sum[:]) ||
		op.Status != pawl.StatusSucceeded || op.ResultDigest != sum {
		t.fail("M1", "5 MiB: %v with %.100q, want succeeded with size and SHA-256", op.Status, op.Result)
	}
	t.wantSettled(t.a, provider(own.Operation, pawl.Succeeded(big)), pawl.Duplicate)
}

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// staysSpent is C-D15 for every outcome and either door: nothing gives a grant
// back [A2].
func staysSpent(t *Trial) {
	for _, o := range []pawl.Outcome{pawl.Unknown("timeout"), pawl.Failed("declined"), pawl.Succeeded(marker)} {
		for _, byOwner := range []bool{true, false} {
			g := t.grant()
			own := t.mustAdmit(t.a, t.admission(g))
			if byOwner {
				t.ownerSays(own, o)
			} else {
				e := provider(own.Operation, o)
				e.Trusted, e.Token = false, own.Owner.Token
				t.wantSettled(t.a, e, pawl.Applied)
			}
			again := t.admission(g)
			t.wantRefused("A2", t.a, again, pawl.ReasonUsed)
			t.absent("A2", again.OperationID)
		}
	}
}

// strangersEvidence is C-E14: not found, and nothing is written.
func strangersEvidence(t *Trial) {
	own, other := t.admitted(), t.admitted()
	id := own.Operation.ID
	before, log := t.get(id), t.log(id)
	elsewhere := own.Operation.Lock
	elsewhere.Fingerprint[0] ^= 1
	for what, token := range map[string]pawl.OwnerToken{
		"no token": "", "another operation's token": other.Owner.Token, "a forged token": own.Owner.Token[:20] + other.Owner.Token[20:],
	} {
		for _, o := range []pawl.Outcome{pawl.Succeeded("stolen"), pawl.Failed("stolen"), pawl.Unknown("stolen")} {
			for _, lock := range []pawl.Lock{own.Operation.Lock, elsewhere} {
				got, err := t.a.Settle(t.ctx, pawl.Evidence{ID: id, Lock: lock, Outcome: o, Token: token, Source: "stranger"})
				t.wantClass("M1", "evidence with "+what, err, pawl.ErrNotFound)
				if got.Disposition != "" {
					t.fail("M1", "evidence with %s is answered %s", what, got.Disposition)
				}
			}
		}
	}
	t.same("M1", "a stranger's evidence", before)
	if diff := differ(log, t.log(id)); diff != "" {
		t.fail("M1", "a stranger's evidence is in the log (-before +after):\n%s", diff)
	}
	_, err := t.a.Settle(t.ctx, pawl.Evidence{ID: pawl.NewOperationID(), Lock: own.Operation.Lock, Outcome: pawl.Succeeded("x"), Trusted: true})
	t.wantClass("M1", "evidence about an operation that never was", err, pawl.ErrNotFound)
}
