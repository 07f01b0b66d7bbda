package pawl

import "time"

// Admission asks a store to claim a grant and to record its operation in one
// write [A2].
type Admission struct {
	// Grant is the verified grant. Of a stored grant only Form and Key are read:
	// subject, tenant, intent and times are those of the row.
	Grant       Grant
	OperationID OperationID
	// Intent is what will run: for a token the granted intent, for a stored
	// grant what was asked for, which the row must equal.
	Intent Intent
	Caller Caller

	Lease            time.Duration // execution lease of the kind
	SubmissionWindow time.Duration // of the kind
}

// Lock returns the lock of the operation to be.
func (a Admission) Lock() Lock { return LockOf(a.Intent, a.Caller) }

// Validate checks everything that needs no store: shapes as ErrInvalid; a token
// that is for another caller or intent as ErrRefused. Every store calls it
// before it writes anything [A9].
func (a Admission) Validate() error {
	if a.OperationID.IsZero() {
		return invalid(ReasonReservedID, "operation id is the nil UUID")
	}
	if a.OperationID.Version() == 8 {
		return invalid(ReasonReservedID, "operation id has version 8, which reservations use")
	}
	if err := a.Intent.Validate(); err != nil {
		return err
	}
	if err := a.Caller.Validate(); err != nil {
		return err
	}
	if a.Lease <= 0 || a.SubmissionWindow <= 0 {
		return invalid(ReasonMissing, "lease or submission window is not positive")
	}
	if a.Grant.Form == FormStored {
		return a.Grant.Key.Validate()
	}
	if err := a.Grant.Validate(); err != nil {
		return err
	}
	if err := a.Grant.PermitsCaller(a.Caller); err != nil {
		return err
	}
	if a.Grant.Intent.Fingerprint() != a.Intent.Fingerprint() {
		return &Error{Class: ErrRefused, Reason: ReasonIntent}
	}
	return nil
}

// Admitted is the answer of an admission. The zero value admits nothing.
type Admitted struct {
	// Fresh says that this call admitted the grant: only then does its caller
	// own the operation. Not fresh is "already admitted for this operation":
	// the record is reported and nothing runs [A8].
	Fresh     bool
	Operation Operation
	// Owner is the ownership of a fresh admission. Else only Token is set, to
	// the token of a joined attempt: it may observe, never own.
	Owner Owner
}

// GrantState is what a store holds under one grant key.
type GrantState struct {
	// Row is the stored or logged grant; nil where there is none.
	Row *Grant
	// Claimed says that the key is claimed: by the operation ClaimedBy, or, where
	// that is zero, by a revocation.
	Claimed   bool
	ClaimedBy OperationID
}

// Findings are what a store reads in order to decide, or to explain, an
// admission. All of it is read in one transaction, on the store's clock.
type Findings struct {
	Now             time.Time
	Realm           string
	Policy          Policy
	IssuedNotBefore time.Time // grants issued before this are refused; zero: none [A12]
	Grant           GrantState
	Operation       *Operation // under the asked operation id; nil where there is none
}

// Judge is the rule of admission [A2, A4, A7, A8, A12] for stores that decide
// under their own lock, and the explanation of a refusal for those that decide
// in one statement. It returns nil where the grant may be claimed,
// already = true where this very operation holds it, else the refusal.
// Expiry comes before everything the record could tell.
func (a Admission) Judge(f Findings) (already bool, err error) {
	grant := a.Grant
	if a.Grant.Form == FormStored {
		row := f.Grant.Row
		if row == nil || row.Form != FormStored {
			return false, refused(ReasonGrantUnknown)
		}
		grant = *row
		grant.Realm = f.Realm
		if err := a.asGranted(grant, f); err != nil {
			return false, err
		}
	}
	if err := grant.Timely(f); err != nil {
		return false, err
	}
	if f.Grant.Claimed {
		if f.Grant.ClaimedBy.IsZero() {
			return false, refused(ReasonRevoked)
		}
		if f.Grant.ClaimedBy != a.OperationID {
			return false, refused(ReasonUsed)
		}
	}
	if f.Operation == nil {
		if f.Grant.Claimed {
			return false, refused(ReasonUsed) // the operation was archived; the claim still refuses [P3]
		}
		return false, nil
	}
	if f.Grant.Claimed && f.Operation.Grant == a.Grant.Key && f.Operation.Lock == a.Lock() {
		return true, nil
	}
	return false, refused(ReasonOperationTaken)
}

// asGranted holds what is asked for against a stored grant's row. Where this very
// operation holds the claim its lock was held against the row already, and the
// row may have lost its details to an erasure since.
func (a Admission) asGranted(row Grant, f Findings) error {
	if f.Grant.ClaimedBy == a.OperationID && f.Operation != nil && f.Operation.Lock == a.Lock() {
		return nil
	}
	if err := row.PermitsCaller(a.Caller); err != nil {
		return err
	}
	if row.Intent.Fingerprint() != a.Intent.Fingerprint() {
		return refused(ReasonIntent)
	}
	return nil
}

// Timely is the part of the rule that needs the store's clock [A4], its realm
// [A1] and its epoch [A12]. The deadline is strict: at expiry + leeway it is over.
func (g Grant) Timely(f Findings) error {
	if g.Realm != f.Realm {
		return refused(ReasonRealm)
	}
	leeway, ok := f.Policy.Leeways[g.LeewayPolicy]
	if !ok {
		return refused(ReasonLeewayUnknown)
	}
	switch {
	case g.IssuedAt.Before(f.IssuedNotBefore):
		return refused(ReasonBeforeEpoch)
	case !g.ExpiresAt.Add(leeway).After(f.Now):
		return refused(ReasonExpired)
	case g.ExpiresAt.After(f.Now.Add(f.Policy.MaxGrantLifetime + f.Policy.IssueSkew)),
		g.ExpiresAt.Sub(g.IssuedAt) > f.Policy.MaxGrantLifetime:
		return refused(ReasonLifetime)
	case g.IssuedAt.After(f.Now.Add(f.Policy.IssueSkew)),
		!g.NotBefore.IsZero() && g.NotBefore.After(f.Now.Add(leeway)):
		return refused(ReasonNotYetValid)
	}
	return nil
}

// NewOperation returns the record that an admission writes at the store time
// now.
func (a Admission) NewOperation(now time.Time) Operation {
	return newOperation(a.OperationID, a.Grant.Key, a.Intent, a.Caller, a.Lease, a.SubmissionWindow, now)
}

func newOperation(id OperationID, key GrantKey, i Intent, c Caller, lease, window time.Duration, now time.Time) Operation {
	return Operation{
		ID: id, Grant: key, Intent: i, Caller: c.Normalised(), Lock: LockOf(i, c),
		CreatedAt: now, SubmitBy: now.Add(window), Status: StatusAdmitted,
		Fence: FirstFence, OwnedSince: now, LeaseUntil: now.Add(lease),
	}
}

// OwnerOf returns what the present owner of an operation holds, at the store
// time now.
func (o Operation) OwnerOf(s TokenSecret, now time.Time) Owner {
	return Owner{
		Fence: o.Fence, Token: s.Mint(o, o.Fence), LeaseUntil: o.LeaseUntil, SubmitBy: o.SubmitBy, AsOf: now,
	}
}

// Reservation asks a store to record an operation under an idempotency key
// instead of a grant. The operation id is made from the key [B2].
type Reservation struct {
	Scope  KeyScope
	Key    string
	Intent Intent
	Caller Caller

	Lease            time.Duration
	SubmissionWindow time.Duration
}

// OperationID returns the id that the key stands for.
func (r Reservation) OperationID() OperationID { return ReservationID(r.Scope, r.Caller, r.Key) }

// Lock returns the lock of the operation to be.
func (r Reservation) Lock() Lock { return LockOf(r.Intent, r.Caller) }

// Validate reports, as ErrInvalid, what is missing or malformed.
func (r Reservation) Validate() error {
	if r.Scope > ScopeTenant {
		return invalid(ReasonMalformed, "no such scope of a key")
	}
	if err := checkID("key", r.Key); err != nil {
		return err
	}
	if r.Scope == ScopeTenant && r.Caller.Tenant == "" {
		return invalid(ReasonMissing, "a key of a tenant needs the tenant")
	}
	if err := r.Intent.Validate(); err != nil {
		return err
	}
	if r.Lease <= 0 || r.SubmissionWindow <= 0 {
		return invalid(ReasonMissing, "lease or submission window is not positive")
	}
	return r.Caller.Validate()
}

// NewOperation returns the record that a reservation writes at the store time
// now.
func (r Reservation) NewOperation(now time.Time) Operation {
	return newOperation(r.OperationID(), GrantKey{}, r.Intent, r.Caller, r.Lease, r.SubmissionWindow, now)
}

// Join is the rule for a key that is reserved already: the same lock joins,
// another is ErrMismatch and shows nothing of the record [B1].
func (r Reservation) Join(o Operation) error {
	if o.Lock != r.Lock() {
		return &Error{Class: ErrMismatch, Reason: ReasonLock}
	}
	return nil
}

func refused(r Reason) error { return &Error{Class: ErrRefused, Reason: r} }
