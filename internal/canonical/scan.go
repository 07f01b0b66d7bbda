package canonical

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// scan walks raw once, token by token, and refuses whatever the package refuses,
// except by size. The library answers for the grammar, for UTF-8, surrogates and
// duplicate names; the rest is decided here. hasNull reports whether a null occurs
// anywhere, which spares [Decode] a look at every member of most documents.
func scan(raw []byte) (hasNull bool, err error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(raw)) // reads from raw itself, copies and writes nothing
	switch decoder.PeekKind() {
	case jsontext.KindBeginObject, jsontext.KindInvalid: // the read below reports what is invalid
	default:
		return false, newError(ReasonNotObject, offsetOfValue(raw), "")
	}
	for {
		switch decoder.PeekKind() {
		case jsontext.KindString, jsontext.KindNumber:
			literal, err := decoder.ReadValue()
			if err != nil {
				return false, refusal(raw, err)
			}
			if reason, at := faultIn(literal); reason != "" {
				start := int(decoder.InputOffset()) - len(literal)
				return false, newError(reason, start+at, position(decoder))
			}
			continue
		case jsontext.KindNull:
			hasNull = true
		}
		if _, err := decoder.ReadToken(); err != nil {
			return false, refusal(raw, err)
		}
		switch depth := decoder.StackDepth(); {
		case depth > MaxDepth:
			return false, newError(ReasonTooDeep, int(decoder.InputOffset())-1, position(decoder))
		case depth == 0:
			return hasNull, checkEnd(raw, int(decoder.InputOffset()))
		}
	}
}

// checkEnd refuses anything but white space from offset on.
func checkEnd(raw []byte, offset int) error {
	rest := raw[offset:]
	if offset += offsetOfValue(rest); offset < len(raw) {
		return newError(ReasonTrailing, offset, "")
	}
	return nil
}

// offsetOfValue is where the white space at the start of raw ends.
func offsetOfValue(raw []byte) int {
	return len(raw) - len(bytes.TrimLeft(raw, " \t\r\n"))
}

// position is the path of what was read last. A name is not part of its own path:
// it may hold just what is being refused.
func position(decoder *jsontext.Decoder) jsontext.Pointer {
	pointer := decoder.StackPointer()
	if kind, length := decoder.StackIndex(decoder.StackDepth()); kind == jsontext.KindBeginObject && length%2 == 1 {
		return pointer.Parent()
	}
	return pointer
}

// faultIn looks for what the library lets pass in a string or number. The reason
// is empty where there is nothing to refuse; at is an offset in literal.
func faultIn(literal []byte) (reason Reason, at int) {
	if literal[0] == '"' {
		return faultInText(literal)
	}
	if !isExact(literal) {
		return ReasonNumber, 0
	}
	return "", 0
}
