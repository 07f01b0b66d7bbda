package canonical_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/internal/canonical"
)

// member is one member of a generated object. A generated value is nil, a bool, a
// float64, a string, a []any or a []member.
type member struct {
	name  string
	value any
}

// texts draws what names and strings are made of, with the code points where
// UTF-8 and UTF-16 order differ, and without what is refused.
func texts() *rapid.Generator[string] {
	special := rapid.SampledFrom([]rune("\"\\/\b\f\n\r\t\x01\x1f\x7f\u0080é\u2028\u2029\ud7ff\ue000\ufb33\ufdcf\ufffd\U00010000\U0001f600\U0010fffd"))
	anyRune := rapid.Rune().Filter(func(r rune) bool {
		return r != 0 && r&0xfffe != 0xfffe && (r < 0xfdd0 || r > 0xfdef)
	})
	return rapid.StringOfN(rapid.OneOf(special, anyRune, rapid.RuneFrom([]rune("ab"))), 0, 8, -1)
}

func values(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Float64().AsAny(),
		rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.Int64Range(-1<<53, 1<<53).Draw(t, "integer")) }).AsAny(),
		texts().AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	lists := rapid.SliceOfN(values(depth-1), 0, 4).AsAny()
	return rapid.OneOf(append(scalars, lists, objects(depth-1).AsAny())...)
}

func objects(depth int) *rapid.Generator[[]member] {
	return rapid.Custom(func(t *rapid.T) []member {
		names := rapid.SliceOfNDistinct(texts(), 0, 5, rapid.ID).Draw(t, "names")
		var object []member
		for _, name := range names {
			object = append(object, member{name, values(depth).Draw(t, "value")})
		}
		return object
	})
}

// TestEverySpellingHasOneForm writes one document in two random ways, with other
// order, white space, escapes and spellings of numbers, and compares both forms
// with what a reference written for this test makes of the value.
func TestEverySpellingHasOneForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document := objects(3).Draw(t, "document")
		want := string(reference(nil, document))
		for range 2 {
			hand := speller{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
			spelling := hand.value(nil, document)
			got, err := canonical.Object(spelling, 1<<20)
			if err != nil {
				t.Fatalf("%q: %v", spelling, err)
			}
			if string(got) != want {
				t.Fatalf("%q:\ngot  %q\nwant %q", spelling, got, want)
			}
			again, err := canonical.Object(got, len(got))
			if err != nil || string(again) != want {
				t.Fatalf("the form of %q is %q, %v", got, again, err)
			}
		}
	})
}

// speller writes values in any way that JSON allows.
type speller struct{ random *rand.Rand }

func (s speller) space(text []byte) []byte {
	for s.random.IntN(3) == 0 {
		text = append(text, " \t\r\n"[s.random.IntN(4)])
	}
	return text
}

func (s speller) value(text []byte, value any) []byte {
	text = s.space(text)
	switch value := value.(type) {
	case []member:
		members := slices.Clone(value)
		s.random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		text = append(text, '{')
		for i, m := range members {
			if i > 0 {
				text = append(text, ',')
			}
			text = s.space(s.text(s.space(text), m.name))
			text = s.value(append(text, ':'), m.value)
		}
		text = append(s.space(text), '}')
	case []any:
		text = append(text, '[')
		for i, element := range value {
			if i > 0 {
				text = append(text, ',')
			}
			text = s.value(text, element)
		}
		text = append(s.space(text), ']')
	case string:
		text = s.text(text, value)
	case float64:
		text = append(text, s.number(value)...)
	case nil:
		text = append(text, "null"...)
	default:
		text = fmt.Append(text, value)
	}
	return s.space(text)
}

func (s speller) text(text []byte, value string) []byte {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	text = append(text, '"')
	for _, r := range value {
		switch escape := short[r]; {
		case escape != "" && s.random.IntN(2) == 0:
			text = append(text, escape...)
		case r < ' ' || r == '"' || r == '\\' || s.random.IntN(3) == 0:
			format := []string{`\u%04x`, `\u%04X`}[s.random.IntN(2)]
			for _, unit := range utf16.Encode([]rune{r}) {
				text = fmt.Appendf(text, format, unit)
			}
		default:
			text = append(text, string(r)...)
		}
	}
	return append(text, '"')
}

// number moves the point of the shortest form, and pads.
func (s speller) number(value float64) string {
	digits, exponent := shortest(value)
	digits += strings.Repeat("0", s.random.IntN(3))
	sign := ""
	if value < 0 || value == 0 && s.random.IntN(2) == 0 {
		sign = "-"
	}
	point := 1 + s.random.IntN(len(digits)) // digits before the point
	exponent += 1 - point
	whole, fraction := digits[:point], digits[point:]+strings.Repeat("0", s.random.IntN(3))
	if len(whole) > 1 && whole[0] == '0' {
		whole, fraction, exponent = "0", digits[1:], 0 // zero, which must not begin with two zeros
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	if exponent == 0 && s.random.IntN(2) == 0 {
		return sign + whole + fraction
	}
	format := []string{"e%d", "E%d", "e%+d", "E%+03d"}[s.random.IntN(4)]
	return sign + whole + fraction + fmt.Sprintf(format, exponent)
}

// shortest gives the digits of the shortest form, and the exponent for a point
// after the first of them.
func shortest(value float64) (digits string, exponent int) {
	mantissa, power, _ := strings.Cut(strconv.FormatFloat(value, 'e', -1, 64), "e")
	exponent, _ = strconv.Atoi(power)
	return strings.NewReplacer(".", "", "-", "").Replace(mantissa), exponent
}

// reference is RFC 8785 as its text has it, written apart from the code.
func reference(text []byte, value any) []byte {
	switch value := value.(type) {
	case []member:
		members := slices.Clone(value)
		slices.SortFunc(members, func(a, b member) int {
			return slices.Compare(utf16.Encode([]rune(a.name)), utf16.Encode([]rune(b.name)))
		})
		text = append(text, '{')
		for i, m := range members {
			if i > 0 {
				text = append(text, ',')
			}
			text = reference(append(referenceText(text, m.name), ':'), m.value)
		}
		return append(text, '}')
	case []any:
		text = append(text, '[')
		for i, element := range value {
			if i > 0 {
				text = append(text, ',')
			}
			text = reference(text, element)
		}
		return append(text, ']')
	case string:
		return referenceText(text, value)
	case float64:
		return append(text, referenceNumber(value)...)
	case nil:
		return append(text, "null"...)
	}
	return fmt.Append(text, value)
}

// referenceText is section 3.2.2.2.
func referenceText(text []byte, value string) []byte {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	text = append(text, '"')
	for _, r := range value {
		if r < ' ' {
			text = append(text, cmp.Or(short[r], fmt.Sprintf(`\u%04x`, r))...)
		} else {
			text = append(text, cmp.Or(short[r], string(r))...)
		}
	}
	return append(text, '"')
}

// referenceNumber is Number::toString of ECMA-262, with its names k and n.
func referenceNumber(value float64) string {
	if value == 0 {
		return "0"
	}
	if value < 0 {
		return "-" + referenceNumber(-value)
	}
	digits, exponent := shortest(value)
	k, n := len(digits), exponent+1
	switch {
	case k <= n && n <= 21:
		return digits + strings.Repeat("0", n-k)
	case 0 < n && n <= 21:
		return digits[:n] + "." + digits[n:]
	case -6 < n && n <= 0:
		return "0." + strings.Repeat("0", -n) + digits
	case k == 1:
		return fmt.Sprintf("%se%+d", digits, n-1)
	}
	return fmt.Sprintf("%s.%se%+d", digits[:1], digits[1:], n-1)
}
