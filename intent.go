package pawl

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/pawl-go/pawl/internal/canonical"
)

// Kind names a sort of effect, for example "credit.create": 1 to MaxKind bytes
// of a-z, 0-9, '.', '_' and '-'.
type Kind string

// Validate reports, as ErrInvalid, why k is not a kind.
func (k Kind) Validate() error {
	if k == "" {
		return invalid(ReasonMissing, "kind is empty")
	}
	if len(k) > MaxKind {
		return invalid(ReasonTooLarge, "kind is longer than 64 bytes")
	}
	for _, c := range []byte(k) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return invalid(ReasonMalformed, "kind has a character outside a-z 0-9 . _ -")
		}
	}
	return nil
}

// Details are what an effect needs to know, as one canonical JSON object
// (RFC 8785) of at most MaxDetails bytes. The value is immutable: it shares no
// memory with what it was parsed from. The zero value is no details, which is
// malformed everywhere; an effect without parameters has the details {}.
type Details struct{ canonical string }

// ParseDetails reads one strict I-JSON object. Duplicate members, lone
// surrogates, NUL and numbers that a double cannot hold exactly are ErrInvalid:
// write money and large integers as strings.
func ParseDetails(raw []byte) (Details, error) {
	b, err := canonical.Object(raw, MaxDetails)
	if err != nil {
		return Details{}, &Error{Class: ErrInvalid, Reason: ReasonDetails, Note: "details: " + err.Error(), Cause: err}
	}
	return Details{canonical: string(b)}, nil
}

// StoredDetails returns details that a store has kept in canonical form. It
// trusts its argument; everything that comes from outside goes through
// ParseDetails.
func StoredDetails(canonicalJSON string) Details { return Details{canonical: canonicalJSON} }

// JSON returns a copy of the canonical JSON.
func (d Details) JSON() []byte { return []byte(d.canonical) }

// MarshalJSON implements json.Marshaler.
func (d Details) MarshalJSON() ([]byte, error) {
	if d.canonical == "" {
		return []byte("null"), nil
	}
	return []byte(d.canonical), nil
}

// UnmarshalJSON implements json.Unmarshaler with the strictness of ParseDetails.
func (d *Details) UnmarshalJSON(raw []byte) (err error) {
	*d, err = ParseDetails(raw)
	return err
}

// IsZero reports whether there are no details at all.
func (d Details) IsZero() bool { return d.canonical == "" }

// String tells the size only, so that details do not reach a log by accident [S2].
func (d Details) String() string { return "details of " + strconv.Itoa(len(d.canonical)) + " bytes" }

// GoString hides the content as String does.
func (d Details) GoString() string { return "pawl.Details{" + d.String() + "}" }

// Intent is what an operation is meant to do, no more and no less.
type Intent struct {
	Kind    Kind
	Details Details
}

// Validate reports, as ErrInvalid, what is missing or malformed.
func (i Intent) Validate() error {
	if err := i.Kind.Validate(); err != nil {
		return err
	}
	if i.Details.IsZero() {
		return invalid(ReasonMissing, "details are missing")
	}
	return nil
}

// Fingerprint is SHA-256 over the canonical JSON of
// {"details":…,"kind":…}; testdata/vectors.json has vectors for other languages.
type Fingerprint [sha256.Size]byte

// Fingerprint returns the digest that is compared wherever intents are.
func (i Intent) Fingerprint() Fingerprint {
	h := sha256.New()
	h.Write([]byte(`{"details":`))
	h.Write([]byte(i.Details.canonical))
	h.Write([]byte(`,"kind":"` + string(i.Kind) + `"}`)) // a kind needs no escapes
	return Fingerprint(h.Sum(nil))
}

// String returns lower-case hexadecimal.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }
