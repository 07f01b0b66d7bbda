package pawl

import (
	"bytes"
	"time"
)

// FirstFence is the fence of the owner that admission or reservation makes.
// Fence 0 belongs to joined attempts, which observe and never own [O1].
const FirstFence = 1

// Operation is the record of one intended effect. Everything down to SubmitBy
// is fixed when it is created, the lock above all [B1].
//
// Invariants, which stores may rely on and must keep:
//
//  1. Lock is LockOf(Intent, Caller).
//  2. Grant is zero exactly for a reservation, whose ID has version 8 [B2].
//  3. Result is non-nil exactly when Status is succeeded; then it never changes.
//  4. Fence never falls; SettledAt is set exactly when Status is final.
//  5. A flag that is set never clears [M7].
type Operation struct {
	ID        OperationID
	Grant     GrantKey
	Intent    Intent
	Caller    Caller
	Lock      Lock
	CreatedAt time.Time
	SubmitBy  time.Time // latest store time at which a create call may be sent [O5]

	Status       Status
	Result       []byte
	ResultDigest ResultDigest
	Reason       string // why it failed, is unknown or waits for a person
	SettledAt    time.Time

	Fence      uint64
	OwnedSince time.Time // when the present owner became it
	LeaseUntil time.Time
	ResumeAt   time.Time // no takeover before this, also when the lease is over [E6]
	Takeovers  int       // how often recovery became owner [E6]

	// Deferred is a failure reported while another owner's lease was live; the
	// next owner, or the first evidence after the lease, reads it first.
	Deferred *DeferredFailure

	MismatchSeen      bool
	ContradictionSeen bool
	DivergenceSeen    bool

	Observations uint64 // statements made through either door, all of them counted
	Entries      uint64 // sequence number of the last log entry
	WeakEntries  uint64 // weak entries; those beyond MaxWeak are counted only [M6]
	Erased       bool   // details and result were removed on request; the lock remains
}

// DeferredFailure is a failure that waits for the end of a lease.
type DeferredFailure struct {
	Reason string
	At     time.Time
}

// Clone returns an operation that shares no memory with o.
func (o Operation) Clone() Operation {
	o.Caller.Scopes = append([]string(nil), o.Caller.Scopes...)
	o.Result = bytes.Clone(o.Result)
	if o.Deferred != nil {
		d := *o.Deferred
		o.Deferred = &d
	}
	return o
}

// LeaseLive reports whether an owner's lease runs at the store time now. The
// status does not matter: an owner that a conflict stopped may still have a call
// in flight.
func (o Operation) LeaseLive(now time.Time) bool { return now.Before(o.LeaseUntil) }

// Viewer is who reads an operation. The zero value sees nothing. Create one
// with AsCaller or AsOperator.
type Viewer struct {
	caller   Caller
	operator bool
}

// AsCaller is the view of a caller: its own operations only [S1].
func AsCaller(c Caller) Viewer { return Viewer{caller: c} }

// AsOperator is the view of an operator or auditor, already authorised.
func AsOperator() Viewer { return Viewer{operator: true} }

// Sees reports whether the viewer may read the operation. A store answers
// ErrNotFound with ReasonAbsent where it may not, as for an id that never
// existed [S1]. A generation that moved on does not hide an operation.
func (v Viewer) Sees(o Operation) bool {
	return v.operator || (v.caller.Principal != "" && v.caller.Same(o.Caller))
}

// NotFound is the one answer for what is absent and for what is not yours [S1].
func NotFound() error { return &Error{Class: ErrNotFound, Reason: ReasonAbsent} }
