package canonical

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads raw, one JSON object that [Strict] accepts, into the value that dst
// points to, usually a struct of a request. limit counts the bytes of raw.
//
//   - Member names match exactly, letter case included; a name that the struct
//     does not have is refused, at every level.
//   - A member of type [jsontext.Value] or [json.RawMessage] receives the bytes as
//     they stand, white space inside included, in memory of its own. They have
//     been checked like the rest, and may be null.
//   - A member that is missing keeps its zero value; whoever needs it checks for
//     that. A member that is null is refused, unless its Go type is a pointer, an
//     interface or one of the raw types: null for a string, a number, a struct, a
//     slice or a map is a mistake, not another way to leave it out.
//   - An integer member takes integer literals only: 60, not 60.0 or 6e1.
//
// dst is replaced as a whole, and only on success. Every refusal is an [*Error];
// any other error says that dst is not a pointer to write to, which is a defect of
// the caller.
func Decode(raw []byte, limit int, dst any) error {
	target := reflect.ValueOf(dst)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("canonical: decode into %T, want a non-nil pointer", dst)
	}
	if len(raw) > limit {
		return &Error{Reason: ReasonTooLarge}
	}
	hasNull, err := scan(raw)
	if err != nil {
		return err
	}
	options := jsonv2.RejectUnknownMembers(true)
	if hasNull {
		options = jsonv2.JoinOptions(options, jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(refuseNull)))
	}
	fresh := reflect.New(target.Type().Elem())
	if err := jsonv2.Unmarshal(raw, fresh.Interface(), options); err != nil {
		return mismatch(raw, err)
	}
	target.Elem().Set(fresh.Elem())
	return nil
}

// refuseNull runs before each value is read. It refuses null where Go has nothing
// to hold it and leaves everything else to the library.
func refuseNull(decoder *jsontext.Decoder, dst any) error {
	if decoder.PeekKind() != jsontext.KindNull {
		return errors.ErrUnsupported // the library's word for "go on without me"
	}
	switch dst.(type) {
	case *jsontext.Value, *json.RawMessage:
		return errors.ErrUnsupported
	}
	switch reflect.TypeOf(dst).Elem().Kind() {
	case reflect.Pointer, reflect.Interface:
		return errors.ErrUnsupported
	}
	return errors.New("null")
}

// mismatch turns an error of decoding into an [*Error] without wrapping it: the
// library's error holds the value that did not fit.
func mismatch(raw []byte, err error) error {
	var semantic *jsonv2.SemanticError
	if !errors.As(err, &semantic) {
		return refusal(raw, err)
	}
	reason := ReasonWrongType
	if errors.Is(err, jsonv2.ErrUnknownName) {
		reason = ReasonUnknownMember
	}
	return newError(reason, int(semantic.ByteOffset), semantic.JSONPointer)
}
