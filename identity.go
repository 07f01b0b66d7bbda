package pawl

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
)

// GrantKey is the identity of a grant, all of it from the verified grant and
// never from the request [A5]. Keys are compared byte by byte. Namespace is the
// tenant for an issuer declared to scope its ids per tenant, else empty.
type GrantKey struct {
	Issuer    string
	Namespace string
	ID        string
}

// Validate reports, as ErrInvalid, what is missing or malformed.
func (k GrantKey) Validate() error {
	if err := checkID("issuer", k.Issuer); err != nil {
		return err
	}
	if err := checkOptionalID("namespace", k.Namespace); err != nil {
		return err
	}
	return checkID("grant id", k.ID)
}

// IsZero reports whether k is no key at all.
func (k GrantKey) IsZero() bool { return k == GrantKey{} }

// Caller is whom an operation is for. Authority is the authentication issuer,
// needed where principals of several could meet. Generation is whatever the
// caller's session or delegation moves on with.
type Caller struct {
	Authority  string
	Principal  string
	Tenant     string
	Scopes     []string
	Generation string
}

// Validate reports, as ErrInvalid, what is missing or malformed.
func (c Caller) Validate() error {
	if err := checkID("principal", c.Principal); err != nil {
		return err
	}
	optional := []struct{ what, value string }{
		{"authority", c.Authority}, {"tenant", c.Tenant}, {"generation", c.Generation},
	}
	for _, o := range optional {
		if err := checkOptionalID(o.what, o.value); err != nil {
			return err
		}
	}
	if len(c.Scopes) > MaxScopes {
		return invalid(ReasonTooLarge, "more than 64 scopes")
	}
	for _, s := range c.Scopes {
		if err := checkID("scope", s); err != nil {
			return err
		}
	}
	return nil
}

// Normalised returns the caller with its scopes sorted and each once, in memory
// of its own.
func (c Caller) Normalised() Caller {
	c.Scopes = slices.Compact(slices.Sorted(slices.Values(c.Scopes)))
	return c
}

// Same reports whether two callers are one identity: authority, principal and
// tenant. Scopes and generation are the binding's affair [S1].
func (c Caller) Same(o Caller) bool {
	return c.Authority == o.Authority && c.Principal == o.Principal && c.Tenant == o.Tenant
}

// Binding is the digest of who holds the authority: SHA-256 over the fields
// "pawl/binding/v1", authority, principal, tenant, generation and then each
// sorted scope, every field as its length in 8 bytes, big-endian, and its bytes.
type Binding [sha256.Size]byte

// Binding returns the digest that is compared wherever callers are.
func (c Caller) Binding() Binding {
	h := sha256.New()
	writeFields(h, "pawl/binding/v1", c.Authority, c.Principal, c.Tenant, c.Generation)
	writeFields(h, c.Normalised().Scopes...)
	return Binding(h.Sum(nil))
}

// String returns lower-case hexadecimal.
func (b Binding) String() string { return hex.EncodeToString(b[:]) }

// Lock is fixed when an operation is created and never changes [B1]: evidence
// counts only for exactly this intent and authority.
type Lock struct {
	Fingerprint Fingerprint
	Binding     Binding
}

// LockOf returns the lock of an intent for a caller.
func LockOf(i Intent, c Caller) Lock {
	return Lock{Fingerprint: i.Fingerprint(), Binding: c.Binding()}
}

// writeFields writes each field as its length and its bytes, so that no two
// lists of fields have one encoding.
func writeFields(h hash.Hash, fields ...string) {
	var n [8]byte
	for _, f := range fields {
		binary.BigEndian.PutUint64(n[:], uint64(len(f)))
		h.Write(n[:])
		h.Write([]byte(f))
	}
}
