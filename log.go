package pawl

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// EntryType says what a log entry tells of [M9].
type EntryType string

// The types of entries.
const (
	EntryAdmission  EntryType = "admission"  // told from the operation's own immutable fields
	EntryCheck      EntryType = "check"      // a submission check that permitted a create call
	EntryOutcome    EntryType = "outcome"    // a statement at the owner's door
	EntryEvidence   EntryType = "evidence"   // a statement at the evidence door
	EntryResolution EntryType = "resolution" // a person's statement at the evidence door
	EntryTakeover   EntryType = "takeover"
	EntryRenewal    EntryType = "renewal" // a renewal past a second lease
	EntryPurge      EntryType = "purge"   // older entries or the result were deleted by retention
	EntryErasure    EntryType = "erasure" // details and result were removed on request
)

// Disposition is what became of a statement.
type Disposition string

// The dispositions of the settlement table, and of the owner's door.
const (
	Applied       Disposition = "applied"
	Weaker        Disposition = "weaker"
	Deferred      Disposition = "deferred"
	Duplicate     Disposition = "duplicate"
	Contradiction Disposition = "contradiction"
	Divergent     Disposition = "divergent"
	Mismatched    Disposition = "mismatch"
	Refused       Disposition = "refused" // at the owner's door: superseded, or no open status
)

// Entry is one line of an operation's log, kept for ever but for retention [P3].
// Result bytes are not in it, only their digest.
type Entry struct {
	Seq           uint64
	Type          EntryType
	At            time.Time
	LastAt        time.Time // of the last of Count equal ones
	Count         uint64    // equal statements are one entry with a count [M6]
	Fence         uint64    // the fence the speaker proved; 0 for none
	Source        string    // who spoke: a principal, a provider, "owner"
	Verdict       Verdict
	Disposition   Disposition
	Contradiction bool   // the statement contradicts an earlier definite one
	MismatchOf    string // "fingerprint", "binding" or "both" of a mismatch
	ResultDigest  ResultDigest
	Reason        string
	LeaseUntil    time.Time // of a takeover or renewal

	// Key is equal for statements that are counted as one, and unique within
	// the operation for all others.
	Key string
}

// Timeline is an operation's log as read back.
type Timeline struct {
	Operation Operation
	Entries   []Entry
	NotKept   uint64 // weak entries beyond the limit, counted only [M6]
}

// AdmissionEntry tells of an operation's creation from its immutable fields, so
// that the admission itself stays one write of one row.
func AdmissionEntry(o Operation) Entry {
	return Entry{
		Type: EntryAdmission, At: o.CreatedAt, LastAt: o.CreatedAt, Count: 1, Fence: FirstFence,
		Source: o.Caller.Principal, Key: "admission",
	}
}

// weak reports whether an entry counts against MaxWeak. Definite and mismatched
// statements never do, nor do takeovers and what people did. Checks and renewals
// of one owner are one entry with a count: a flood of statements by somebody else
// must not hide them.
func (e Entry) weak() bool {
	return (e.Type == EntryOutcome || e.Type == EntryEvidence) && !e.Verdict.Definite() && e.Disposition != Mismatched
}

// equalKey is the digest of what makes two definite or mismatched statements
// one entry with a count. The wording of a statement that changed nothing is not
// part of it: whoever repeats itself in other words does not fill the log [M6].
func (e Entry) equalKey(l Lock) string {
	h := sha256.New()
	if e.Disposition != Applied && e.Disposition != Deferred {
		e.Reason = ""
	}
	writeFields(h, "pawl/entry/v1", string(e.Type), e.Verdict.String(), string(e.Disposition), e.MismatchOf,
		string(l.Fingerprint[:]), string(l.Binding[:]), string(e.ResultDigest[:]), e.Reason)
	return hex.EncodeToString(h.Sum(nil))
}
