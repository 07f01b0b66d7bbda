package pawl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sizes in bytes, each with a test at the edge and one past it.
const (
	MaxID      = 255      // issuer, namespace, grant id, principal, tenant, authority, scope, generation, key, realm
	MaxKind    = 64       // kind
	MaxScopes  = 64       // number of scopes of a caller
	MaxDetails = 16 << 10 // canonical JSON of the details
	MaxResult  = 64 << 10 // result; a larger one is replaced by its size and digest
	MaxReason  = 1 << 10  // reason of a failure, note of a resolution or a revocation
	MaxPage    = 1000     // rows of one List, Grants or TakeOver
	MaxWeak    = 1000     // weak entries kept in one operation's log [M6]
)

// checkID reports why s is not an identifier: what names it in the error. An
// identifier is 1 to MaxID bytes of valid UTF-8 without control characters.
// Bytes are compared as they are, so no Unicode normalisation takes place [A5].
func checkID(what, s string) error {
	if s == "" {
		return invalid(ReasonMissing, what+" is empty")
	}
	return checkOptionalID(what, s)
}

func checkOptionalID(what, s string) error {
	if len(s) > MaxID {
		return invalid(ReasonTooLarge, what+" is longer than 255 bytes")
	}
	if !utf8.ValidString(s) {
		return invalid(ReasonMalformed, what+" is not valid UTF-8")
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return invalid(ReasonMalformed, what+" has a control character")
	}
	return nil
}

// CheckID reports, as ErrInvalid, why s cannot be an issuer, grant id,
// principal or key; what names it in the error. For those who write a store or
// a service.
func CheckID(what, s string) error { return checkID(what, s) }

// CheckNote reports, as ErrInvalid, why s cannot be a reason or a note: at most
// MaxReason bytes of valid UTF-8; line feeds and tabs are the only control
// characters.
func CheckNote(what, s string) error {
	if len(s) > MaxReason {
		return invalid(ReasonTooLarge, what+" is longer than 1024 bytes")
	}
	if !utf8.ValidString(s) {
		return invalid(ReasonMalformed, what+" is not valid UTF-8")
	}
	for _, r := range s {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return invalid(ReasonMalformed, what+" has a control character")
		}
	}
	return nil
}
