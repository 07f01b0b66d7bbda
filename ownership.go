package pawl

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"
)

// OwnerToken proves ownership of one operation at one fence, or with fence 0
// that its holder took part [O1]. It is a secret: only the answers of
// admission, reservation and takeover carry it.
type OwnerToken string

// String hides the token, so that it does not reach a log by accident [S2].
// Convert with string(t) where the token itself must be sent.
func (t OwnerToken) String() string { return "owner token" }

// GoString hides the token as String does.
func (t OwnerToken) GoString() string { return "pawl.OwnerToken(hidden)" }

// Owner is what an owner holds: the answer of admission, reservation, takeover
// and renewal.
type Owner struct {
	Fence      uint64
	Token      OwnerToken
	LeaseUntil time.Time
	SubmitBy   time.Time
	// AsOf is the store's time of the write that granted this. LeaseUntil and
	// SubmitBy minus AsOf are durations, which an owner can measure with its own
	// monotonic clock from before it asked [O5].
	AsOf time.Time
}

// TokenSecretSize is the size in bytes of a store's secret.
const TokenSecretSize = 32

// TokenSecret makes and checks the owner tokens of one store. The store keeps
// it and it never leaves; losing it makes every owner a stranger, no more.
type TokenSecret [TokenSecretSize]byte

// NewTokenSecret returns a random secret.
func NewTokenSecret() (s TokenSecret) {
	rand.Read(s[:]) // never fails: it ends the process instead
	return s
}

// Mint returns the token of an operation: with its present fence the owner's,
// with fence 0 a joined attempt's. It is base64url of the fence, the time since
// which it owns (0 for a joined attempt), both in 8 bytes, big-endian, and
// HMAC-SHA256 over the fields "pawl/owner/v1", operation id, time of creation,
// fence and that time, written as in [Binding]. Times are microseconds since 1970.
//
// The two times tell apart what id and fence cannot: a key that is reserved anew
// after retention, and two histories of one record after a restore [A12].
func (s TokenSecret) Mint(o Operation, fence uint64) OwnerToken {
	since := int64(0)
	if fence != 0 {
		since = o.OwnedSince.UnixMicro()
	}
	b := binary.BigEndian.AppendUint64(nil, fence)
	b = binary.BigEndian.AppendUint64(b, uint64(since))
	return OwnerToken(base64.RawURLEncoding.EncodeToString(append(b, s.mac(o, b)...)))
}

// Fence returns the fence that a token proves for an operation. ok is false for
// a token of another operation, of another store, forged or empty: the answer
// is then ErrNotFound [O1]. An owner of another history of the record, from before
// a restore, proves a fence that is not the present one.
func (s TokenSecret) Fence(o Operation, t OwnerToken) (fence uint64, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(string(t))
	if err != nil || len(b) != 16+sha256.Size || o.ID.IsZero() || strings.ContainsAny(string(t), "\r\n") {
		return 0, false
	}
	if !hmac.Equal(b[16:], s.mac(o, b[:16])) {
		return 0, false
	}
	fence = binary.BigEndian.Uint64(b)
	if since := int64(binary.BigEndian.Uint64(b[8:])); fence == o.Fence && since != o.OwnedSince.UnixMicro() {
		return o.Fence + 1, true
	}
	return fence, true
}

// mac is over the operation's identity and what the token says: fence and since.
func (s TokenSecret) mac(o Operation, said []byte) []byte {
	m := hmac.New(sha256.New, s[:])
	created := binary.BigEndian.AppendUint64(nil, uint64(o.CreatedAt.UnixMicro()))
	writeFields(m, "pawl/owner/v1", string(o.ID[:]), string(created), string(said[:8]), string(said[8:]))
	return m.Sum(nil)
}

// CheckOwner is the rule of every owner call [O1]. proven and fence come from
// [TokenSecret.Fence]; a joined attempt (fence 0) is a stranger here. The error
// is ErrNotFound for a stranger and ErrFenced for a superseded owner.
func (o Operation) CheckOwner(fence uint64, proven bool) error {
	if !proven || fence == 0 {
		return NotFound()
	}
	if fence != o.Fence {
		return &Error{Class: ErrFenced, Reason: ReasonSuperseded}
	}
	return nil
}

// CheckSubmit is the rule of a create call [O5]: the owner, an open status, and
// store time before both lease and submission deadline.
func (o Operation) CheckSubmit(fence uint64, proven bool, now time.Time) error {
	if err := o.CheckOwner(fence, proven); err != nil {
		return err
	}
	switch {
	case !o.Status.Open():
		return &Error{Class: ErrFenced, Reason: ReasonNotOpen}
	case !now.Before(o.LeaseUntil):
		return &Error{Class: ErrFenced, Reason: ReasonLeaseOver}
	case !now.Before(o.SubmitBy):
		return &Error{Class: ErrFenced, Reason: ReasonDeadlineOver}
	}
	return nil
}

// RenewedLease is the rule of a renewal [O3]: it needs the fence, an open status
// and an unexpired lease, and never passes submission deadline + beyond, which is
// effect timeout + margin. A renewal never shortens a lease.
func (o Operation) RenewedLease(fence uint64, proven bool, now time.Time, lease, beyond time.Duration) (time.Time, error) {
	if err := o.CheckOwner(fence, proven); err != nil {
		return time.Time{}, err
	}
	if !o.Status.Open() {
		return time.Time{}, &Error{Class: ErrFenced, Reason: ReasonNotOpen}
	}
	if !now.Before(o.LeaseUntil) {
		return time.Time{}, &Error{Class: ErrFenced, Reason: ReasonLeaseOver}
	}
	until, last := now.Add(lease), o.SubmitBy.Add(beyond)
	if until.After(last) {
		until = last
	}
	if until.Before(o.LeaseUntil) {
		until = o.LeaseUntil
	}
	return until, nil
}

// CanTakeOver is the rule of a takeover [O2]: admitted or unknown, the lease
// over, and not before the time recovery paces itself to [E6].
func (o Operation) CanTakeOver(now time.Time) bool {
	return o.Status.Open() && !now.Before(o.LeaseUntil) && !now.Before(o.ResumeAt)
}
