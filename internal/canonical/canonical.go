// Package canonical reads JSON strictly and writes it in one form only.
//
// Two documents that mean the same must give the same bytes, because a
// fingerprint is taken over them; and two readers of one document must never
// see two meanings. So the input is strict I-JSON (RFC 7493) and the output is
// the canonical form of RFC 8785. Beyond I-JSON's rules on duplicate member
// names, surrogates and noncharacters, three rules are stricter than usual:
//
//   - A number must have exactly the decimal value that its canonical form
//     shows. 1.0, 1e2 and -0 are accepted (as 1, 100 and 0); 9007199254740993,
//     1e400 and 1e-400 are refused, because they would silently become another
//     number. Money and big integers belong in strings.
//   - U+0000 is refused everywhere, names included. Other control characters
//     are accepted where JSON accepts them, that is, escaped.
//   - Nesting is bounded by [MaxDepth], size by the caller's limit.
//
// No Unicode normalisation takes place: é as one code point and as two are
// different texts. The functions hold no state and may be called concurrently.
package canonical

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep objects and arrays may nest, the outermost object being 1.
const MaxDepth = 64

// A canonical document of n bytes may arrive in at most maxExpansion*n+rawSlack
// bytes. Six is the length of \u0041 for one byte of canonical text, so a choice
// of escapes alone never makes a document too large; what is left is for white
// space.
const (
	maxExpansion = 6
	rawSlack     = 4096
)

// Object returns the RFC 8785 form of raw, which must be one JSON object with
// nothing but white space around it. limit bounds the result in bytes; raw itself
// may be up to 6 × limit + 4,096 bytes and is refused unread beyond that. A limit
// of zero or less refuses everything.
//
// The result is fresh memory. Checking and rewriting act on one copy taken at the
// start, so whatever the caller does to raw after the call changes nothing.
//
// Every refusal is an [*Error].
func Object(raw []byte, limit int) ([]byte, error) {
	if tooLarge(raw, limit) {
		return nil, &Error{Reason: ReasonTooLarge}
	}
	document := jsontext.Value(bytes.Clone(raw))
	if _, err := scan(document); err != nil {
		return nil, err
	}
	if err := document.Canonicalize(); err != nil {
		return nil, refusal(document, err) // scan accepts nothing that gets here; fail closed if it ever does
	}
	if len(document) > limit {
		return nil, &Error{Reason: ReasonTooLarge}
	}
	return document, nil
}

// Strict reports whether raw is one JSON object that [Object] would accept, apart
// from the limit, which here counts the bytes of raw as they are. It keeps nothing
// and allocates little: it is for whole request bodies.
//
// Every refusal is an [*Error].
func Strict(raw []byte, limit int) error {
	if len(raw) > limit {
		return &Error{Reason: ReasonTooLarge}
	}
	_, err := scan(raw)
	return err
}

// tooLarge divides instead of multiplying, so that no limit overflows.
func tooLarge(raw []byte, limit int) bool {
	return (len(raw)-rawSlack-1)/maxExpansion >= limit
}
