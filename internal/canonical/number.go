package canonical

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxPlain is the longest literal without exponent that is exact without a
	// look: fifteen decimal digits always survive the way to a double and back.
	maxPlain = 15

	// maxDigits is the most significant digits that a canonical number has.
	maxDigits = 17

	// maxExponent is where reading an exponent stops. No literal that fits in
	// memory has zeros enough to bring such a number back to the range of a double.
	maxExponent = 1 << 40
)

// isExact reports whether a JSON number has the same decimal value as its
// canonical form, the shortest one that names the nearest double. The work grows
// with the length of the literal, never with the exponent written in it. -0 is
// exact: its value is that of 0.
func isExact(literal []byte) bool {
	if len(literal) <= maxPlain && !bytes.ContainsAny(literal, "eE") {
		return true
	}
	var space, canonicalSpace [40]byte
	number := decimalOf(literal, space[:0])
	if len(number.digits) > maxDigits {
		return false
	}
	// The literal itself is parsed, not the shortened number, because that is what
	// the canonical form will be made from. strconv reads no more than five digits
	// of an exponent; what it then reads wrongly fails the comparison.
	nearest, err := strconv.ParseFloat(string(literal), 64)
	if err != nil {
		return false // beyond the largest double
	}
	canonical := jsontext.AppendFloat(canonicalSpace[:0], nearest, 64)
	var digitSpace [40]byte
	return number.equal(decimalOf(canonical, digitSpace[:0]))
}

// decimal is the value digits × 10^exponent, without its sign. There are no zeros
// at either end of digits, so that equal values are equal parts; zero has no
// digits and exponent 0.
type decimal struct {
	digits   []byte
	exponent int64
}

// equal leaves out the sign, which parsing and formatting keep, except for zero,
// where it does not count.
func (d decimal) equal(other decimal) bool {
	return d.exponent == other.exponent && bytes.Equal(d.digits, other.digits)
}

// decimalOf reads a valid JSON number and keeps its digits in space while they
// fit there.
func decimalOf(literal, space []byte) decimal {
	mantissa, exponent := bytes.TrimPrefix(literal, []byte("-")), []byte(nil)
	if i := bytes.IndexAny(mantissa, "eE"); i >= 0 {
		mantissa, exponent = mantissa[:i], mantissa[i+1:]
	}
	integer, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(append(space, integer...), fraction...)
	trimmed := bytes.TrimRight(digits, "0")
	value := decimal{
		digits:   bytes.TrimLeft(trimmed, "0"),
		exponent: readExponent(exponent) - int64(len(fraction)) + int64(len(digits)-len(trimmed)),
	}
	if len(value.digits) == 0 {
		return decimal{}
	}
	return value
}

// readExponent reads what follows the e of a valid JSON number, which may have any
// number of digits. It stops counting at maxExponent.
func readExponent(text []byte) int64 {
	var value int64
	for _, digit := range bytes.TrimLeft(text, "+-") {
		if value < maxExponent {
			value = value*10 + int64(digit-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		return -value
	}
	return value
}
