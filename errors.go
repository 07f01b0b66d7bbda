package pawl

import (
	"errors"
	"fmt"
)

// Class says what to do next about an error. A Class is itself an error, so
// errors.Is(err, pawl.ErrRefused) is the test; the text of an error is not API.
type Class uint8

// The classes. Anything that is none of them is a defect: it is reported as a
// server error, never retried and never called unavailable [A7].
const (
	// ErrInvalid: malformed, nothing ran and nothing was written; fix the request [A9].
	ErrInvalid Class = iota + 1
	// ErrRefused: a definite no; nothing ran.
	ErrRefused
	// ErrNotConfirmed: an admission or reservation was not confirmed and may or
	// may not have been committed. Nothing ran; retry with the same operation id [A6].
	ErrNotConfirmed
	// ErrUnavailable: the store could not be asked, outside admission; repeat the call.
	ErrUnavailable
	// ErrFenced: not the owner any more, or past the lease or the submission deadline [O1].
	ErrFenced
	// ErrMismatch: the lock does not match [B1].
	ErrMismatch
	// ErrNotFound: absent, or not yours; the two cannot be told apart [S1].
	ErrNotFound
	// ErrMisconfigured: an unsafe store or unsafe timings; refuses to start [T1].
	ErrMisconfigured
)

// Error implements error.
func (c Class) Error() string {
	for _, row := range Table() {
		if row.Class == c {
			return row.Name
		}
	}
	return "defect"
}

// ClassRow is one line of the table that drives HTTP answers, exit codes and
// docs/errors.md.
type ClassRow struct {
	Class   Class
	Name    string // stable, used in messages
	HTTP    int    // the status code unless the reason has its own
	Exit    int    // exit code of the command
	Meaning string
	Ran     string // did the effect run?
	Retry   bool   // answered with Retry-After
}

// Table returns the classes in order. An error of no class is a defect: HTTP
// 500, exit code 1.
func Table() []ClassRow {
	return []ClassRow{
		{ErrInvalid, "malformed", 400, 2, "malformed; fix it", "no", false},
		{ErrRefused, "refused", 409, 3, "a definite no", "no", false},
		{ErrNotConfirmed, "not confirmed", 503, 4, "admission not confirmed; retry the same operation id", "no", true},
		{ErrUnavailable, "unavailable", 503, 4, "the store could not be asked; repeat the call", "unknown", true},
		{ErrFenced, "fenced", 409, 5, "not the owner any more, or past lease or deadline", "not by this caller", false},
		{ErrMismatch, "lock mismatch", 409, 6, "the lock does not match", "no", false},
		{ErrNotFound, "not found", 404, 7, "absent, or not yours", "no", false},
		{ErrMisconfigured, "misconfigured", 500, 78, "unsafe store or timings; refuses to start", "no", false},
	}
}

// Row returns the table's row of an error, and whether it has a class.
func Row(err error) (ClassRow, bool) {
	for _, row := range Table() {
		if errors.Is(err, row.Class) {
			return row, true
		}
	}
	return ClassRow{Name: "defect", HTTP: 500, Exit: 1, Meaning: "a defect", Ran: "unknown"}, false
}

// Reason is the exact cause under a class: for operators and logs. Callers get
// [Reason.Public], a smaller set [S2].
type Reason string

// Reasons under ErrInvalid.
const (
	ReasonMalformed       Reason = "malformed"
	ReasonMissing         Reason = "missing"
	ReasonTooLarge        Reason = "too_large"
	ReasonDetails         Reason = "details_not_canonical" // not a strict I-JSON object
	ReasonReservedID      Reason = "reserved_operation_id" // nil, or a version-8 id at an admission [B2]
	ReasonGenerationEmpty Reason = "generation_required"
)

// Reasons under ErrRefused. The first group is public as grant-not-valid, the
// second as grant-not-available.
const (
	ReasonSignature       Reason = "signature"       // forged, unknown key, wrong algorithm or type
	ReasonIssuerUnknown   Reason = "issuer_unknown"  // no such issuer is trusted
	ReasonRealm           Reason = "wrong_realm"     // the audience is another store [A1]
	ReasonSubject         Reason = "wrong_caller"    // the grant is for somebody else
	ReasonIntent          Reason = "wrong_intent"    // the grant is for something else
	ReasonKindUnknown     Reason = "unknown_kind"    // nothing is registered for the kind
	ReasonNotYetValid     Reason = "not_yet_valid"   // nbf or iat ahead of the store's clock
	ReasonExpired         Reason = "expired"         // past expiry + leeway on the store's clock [A4]
	ReasonLifetime        Reason = "lifetime"        // expires beyond now + maximum lifetime + skew [A4]
	ReasonLeewayUnknown   Reason = "leeway_policy"   // names a leeway policy the store does not hold
	ReasonGrantUnknown    Reason = "grant_unknown"   // no such stored grant [A2]
	ReasonBeforeEpoch     Reason = "before_epoch"    // issued before a restore [A12]
	ReasonPossession      Reason = "possession"      // bound to a key whose proof was not given
	ReasonSealedID        Reason = "sealed_id"       // the operation id is not the issuer's
	ReasonOutsideLimits   Reason = "outside_limits"  // the credential is limited to other tenants, kinds or issuers
	ReasonPrecheck        Reason = "precheck"        // the effect's own check refused before admission [E4]
	ReasonUsed            Reason = "used"            // admitted for another operation
	ReasonRevoked         Reason = "revoked"         // withdrawn before use [R1]
	ReasonOperationTaken  Reason = "operation_taken" // the id belongs to another operation [A7]
	ReasonNotProven       Reason = "issuance_not_proven"
	ReasonNotResolvable   Reason = "not_resolvable"   // wrong status, or a lease is live
	ReasonRateLimited     Reason = "rate_limited"     // too many revocations [R4]
	ReasonRequestMismatch Reason = "request_mismatch" // the request id was used for other content
)

// Reasons under the other classes.
const (
	ReasonUnreachable   Reason = "unreachable"    // the store could not be reached or did not answer
	ReasonNotReplicated Reason = "not_replicated" // the wait for a standby was cancelled [A3]
	ReasonCancelled     Reason = "cancelled"      // the caller stopped waiting
	ReasonClosed        Reason = "closed"         // the store or gate is closed
	ReasonSuperseded    Reason = "superseded"     // another owner, or a final outcome, moved the fence
	ReasonLeaseOver     Reason = "lease_over"
	ReasonDeadlineOver  Reason = "submission_deadline_over"
	ReasonNotOpen       Reason = "not_open"    // the status is neither admitted nor unknown
	ReasonContract      Reason = "no_contract" // no stated provider contract allows another create [E5]
	ReasonLock          Reason = "lock_mismatch"
	ReasonAbsent        Reason = "absent"
	ReasonUnsafeStore   Reason = "unsafe_store"
	ReasonUnsafeTimings Reason = "unsafe_timings"
	ReasonUnsafeKeys    Reason = "unsafe_keys"        // keys that cannot be trusted, or that cannot sign
	ReasonDisagreement  Reason = "instances_disagree" // the store holds other values [A11]
)

// Public returns the stable name a caller may see, which is also the name of
// the problem document; the exact reason is for operators [S2].
func (r Reason) Public(c Class) string {
	switch c {
	case ErrInvalid:
		return "malformed-request"
	case ErrRefused:
		return r.publicRefusal()
	case ErrNotConfirmed:
		return "not-confirmed"
	case ErrUnavailable:
		return "unavailable"
	case ErrFenced:
		return "fenced"
	case ErrMismatch:
		if r == ReasonRequestMismatch {
			return "request-mismatch"
		}
		return "lock-mismatch"
	case ErrNotFound:
		return "not-found"
	case ErrMisconfigured:
		return "misconfigured"
	}
	return "defect"
}

func (r Reason) publicRefusal() string {
	switch r {
	case ReasonUsed, ReasonRevoked, ReasonOperationTaken:
		return "grant-not-available"
	case ReasonNotProven:
		return "issuance-not-proven"
	case ReasonNotResolvable:
		return "not-resolvable"
	case ReasonRateLimited:
		return "rate-limited"
	case ReasonOutsideLimits:
		return "not-permitted"
	case ReasonPrecheck:
		return "precheck-refused"
	default:
		return "grant-not-valid"
	}
}

// Error is an error of a class with its exact reason. Op names the call, Note
// is for operators: it holds ids and reasons, never tokens, details or results.
type Error struct {
	Class  Class
	Reason Reason
	Note   string
	Cause  error // may be nil; kept for operators, never shown to callers
}

// Error implements error.
func (e *Error) Error() string {
	s := "pawl: " + e.Class.Error() + " (" + string(e.Reason) + ")"
	if e.Note != "" {
		s += ": " + e.Note
	}
	return s
}

// Unwrap makes errors.Is work on the class and on the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Class}
	}
	return []error{e.Class, e.Cause}
}

// Errorf makes an error of a class. A %w in format becomes the cause.
func Errorf(c Class, r Reason, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Class: c, Reason: r, Note: wrapped.Error(), Cause: errors.Unwrap(wrapped)}
}

// ReasonOf returns the exact reason of an error, or "" for a defect.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

func invalid(r Reason, note string) error { return &Error{Class: ErrInvalid, Reason: r, Note: note} }
