package canonical

import (
	"errors"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Reason says why a document was refused. The values are stable: they appear in
// answers and in testdata/vectors.json.
type Reason string

// The reasons for refusing a document.
const (
	ReasonTooLarge      Reason = "too-large"        // over the limit in bytes
	ReasonSyntax        Reason = "syntax"           // not JSON (RFC 8259), or cut short
	ReasonTrailing      Reason = "trailing-data"    // something other than white space after the object
	ReasonNotObject     Reason = "not-an-object"    // the outermost value is something else
	ReasonTooDeep       Reason = "too-deep"         // nested deeper than MaxDepth
	ReasonDuplicate     Reason = "duplicate-member" // a name twice in one object, compared after unescaping
	ReasonNumber        Reason = "number-not-exact" // the canonical form would have another decimal value
	ReasonUTF8          Reason = "invalid-utf8"     // bytes that are no UTF-8
	ReasonSurrogate     Reason = "lone-surrogate"   // \ud800 and the like without its other half
	ReasonNoncharacter  Reason = "noncharacter"     // U+FFFE, U+FDD0 and the like (RFC 7493 section 2.1)
	ReasonNUL           Reason = "nul-character"    // U+0000, escaped or not
	ReasonUnknownMember Reason = "unknown-member"   // Decode: no such member, letter case included
	ReasonWrongType     Reason = "wrong-type"       // Decode: the value does not fit the member, null included
)

// maxPointer bounds Error.Pointer in bytes: names come from the sender.
const maxPointer = 256

// Error is the one error type of this package. It carries no value of the
// document, and its text carries no name either, so that it may be logged.
type Error struct {
	Reason Reason

	// Offset is the byte in the input at or after which the fault was found. It
	// is 0 for ReasonTooLarge.
	Offset int

	// Pointer is the RFC 6901 path of the member at fault, or of the nearest
	// enclosing object or array where the member cannot be named: its name is the
	// fault, or the path is longer than 256 bytes. It is built from the sender's
	// own member names: show it to the sender, keep it out of logs.
	Pointer string
}

// Error gives the reason and the offset, and nothing the sender wrote.
func (e *Error) Error() string {
	return "canonical: " + string(e.Reason) + " at byte " + strconv.Itoa(e.Offset)
}

// newError cuts the pointer to an ancestor that is short enough.
func newError(reason Reason, offset int, pointer jsontext.Pointer) *Error {
	for len(pointer) > maxPointer {
		pointer = pointer.Parent()
	}
	return &Error{Reason: reason, Offset: offset, Pointer: string(pointer)}
}

// refusal turns an error of the JSON library into an [*Error]. The library's own
// error is not wrapped, because its text quotes the document.
func refusal(raw []byte, err error) *Error {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) { // io.EOF: there was no value at all
		return newError(ReasonSyntax, len(raw), "")
	}
	offset := min(max(int(syntactic.ByteOffset), 0), len(raw))
	reason := ReasonSyntax
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		reason = ReasonDuplicate
	case !errors.Is(err, io.ErrUnexpectedEOF):
		reason = reasonAt(raw[offset:])
	}
	return newError(reason, offset, syntactic.JSONPointer)
}

// reasonAt tells apart the faults that the library reports alike, by the bytes at
// which it stopped rather than by the text of its error.
func reasonAt(rest []byte) Reason {
	if len(rest) == 0 {
		return ReasonSyntax
	}
	if rest[0] == 0 {
		return ReasonNUL
	}
	if r, size := utf8.DecodeRune(rest); r == utf8.RuneError && size == 1 {
		return ReasonUTF8
	}
	if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
		unit, err := strconv.ParseUint(string(rest[2:6]), 16, 16)
		if err == nil && utf16.IsSurrogate(rune(unit)) {
			return ReasonSurrogate
		}
	}
	return ReasonSyntax
}
