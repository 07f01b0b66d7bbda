package pawl

import (
	"crypto/sha256"

	"github.com/google/uuid"
)

// OperationID names one operation: a UUID that the issuer's side makes before
// the first attempt, so that a retry can name the same one. The zero value is
// the nil UUID, which is malformed everywhere.
type OperationID uuid.UUID

// NewOperationID returns a fresh UUIDv7.
func NewOperationID() OperationID { return OperationID(uuid.Must(uuid.NewV7())) }

// ParseOperationID reads the canonical form of 36 characters only, so that one
// operation has one spelling (upper case is read, and written lower).
func ParseOperationID(s string) (OperationID, error) {
	if len(s) != 36 {
		return OperationID{}, invalid(ReasonMalformed, "operation id is not a UUID")
	}
	u, err := uuid.Parse(s)
	if err != nil {
		return OperationID{}, invalid(ReasonMalformed, "operation id is not a UUID")
	}
	if u == uuid.Nil {
		return OperationID{}, invalid(ReasonReservedID, "operation id is the nil UUID")
	}
	return OperationID(u), nil
}

// String returns the canonical form.
func (id OperationID) String() string { return uuid.UUID(id).String() }

// IsZero reports whether id is the nil UUID.
func (id OperationID) IsZero() bool { return uuid.UUID(id) == uuid.Nil }

// Version returns the UUID version; 8 is an id made from a reservation's key [B2].
func (id OperationID) Version() int { return int(uuid.UUID(id).Version()) }

// MarshalText implements encoding.TextMarshaler.
func (id OperationID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler as ParseOperationID.
func (id *OperationID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseOperationID(string(b))
	return err
}

// KeyScope says among whom an idempotency key is unique. It is never a free
// string, so that two tenants never meet [B2]. The zero value is the principal.
type KeyScope uint8

// The scopes of a key.
const (
	ScopePrincipal KeyScope = iota // one principal of one tenant
	ScopeTenant                    // everybody in one tenant
)

// String returns the wire name.
func (s KeyScope) String() string {
	if s == ScopeTenant {
		return "tenant"
	}
	return "principal"
}

// ReservationID returns the operation id of an idempotency key: a UUIDv8 from
// SHA-256 over the fields "pawl/reservation/v1", scope, tenant and, in the
// scope of a principal, authority and principal, then the key; fields are
// written as in [Binding]. Version and variant bits replace those of the digest [B2].
func ReservationID(s KeyScope, c Caller, key string) OperationID {
	h := sha256.New()
	writeFields(h, "pawl/reservation/v1", s.String(), c.Tenant)
	if s == ScopePrincipal {
		writeFields(h, c.Authority, c.Principal)
	}
	writeFields(h, key)
	var id OperationID
	copy(id[:], h.Sum(nil))
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}
