package canonical_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/canonical"
)

// detailsLimit is the limit that details have [design section 6].
const detailsLimit = 16 << 10

// wantReason fails unless err is a refusal for this reason, and returns it.
func wantReason(t *testing.T, err error, want canonical.Reason) *canonical.Error {
	t.Helper()
	var refused *canonical.Error
	if !errors.As(err, &refused) {
		t.Fatalf("got error %v, want a refusal for %s", err, want)
	}
	if refused.Reason != want {
		t.Fatalf("got reason %s, want %s", refused.Reason, want)
	}
	return refused
}

// same fails unless all documents have one canonical form, and returns it.
func same(t *testing.T, documents ...string) string {
	t.Helper()
	var first []byte
	for _, document := range documents {
		form, err := canonical.Object([]byte(document), detailsLimit)
		if err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		if first == nil {
			first = form
		}
		if !bytes.Equal(form, first) {
			t.Errorf("%s: got %s, want %s", document, form, first)
		}
	}
	return string(first)
}

func TestCase_CB5_TextThatNoStoreKeeps(t *testing.T) {
	tests := []struct {
		name, document string
		want           canonical.Reason
	}{
		{"NUL", `{"note":"a\u0000b"}`, canonical.ReasonNUL},
		{"NUL in a name", `{"a\u0000":1}`, canonical.ReasonNUL},
		{"raw NUL", "{\"note\":\"a\x00b\"}", canonical.ReasonNUL},
		{"raw control character", "{\"note\":\"a\x07b\"}", canonical.ReasonSyntax},
		{"invalid UTF-8", "{\"note\":\"\xff\"}", canonical.ReasonUTF8},
		{"invalid UTF-8 outside strings", "{\xff}", canonical.ReasonUTF8},
		{"lone surrogate", `{"note":"\ud800"}`, canonical.ReasonSurrogate},
		{"lone surrogate in UTF-8", "{\"note\":\"\xed\xa0\x80\"}", canonical.ReasonUTF8},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := canonical.Object([]byte(test.document), detailsLimit)
			wantReason(t, err, test.want)
			wantReason(t, canonical.Strict([]byte(test.document), detailsLimit), test.want)
		})
	}
	same(t, `{"note":"\u0001\t\u007f"}`, `{"note":"\u0001\u0009`+"\x7f"+`"}`) // the other control characters may stand in details
}

func TestCase_CB6_MegabyteOfOneLetter(t *testing.T) {
	document := []byte(`{"a":"` + strings.Repeat("a", 1<<20) + `"}`)
	_, err := canonical.Object(document, detailsLimit)
	wantReason(t, err, canonical.ReasonTooLarge)
	wantReason(t, canonical.Strict(document, detailsLimit), canonical.ReasonTooLarge)
	if form, err := canonical.Object(document, len(document)); err != nil || !bytes.Equal(form, document) {
		t.Errorf("with room for it: %d bytes, %v, want it unchanged", len(form), err)
	}
}

func TestCase_CB11_OneMeaningOneForm(t *testing.T) {
	got := same(t,
		`{"amount":1,"to":"café","list":[1,2.5,100]}`,
		`{"to":"café","list":[1,2.5,100],"amount":1}`,
		"\n{ \"list\" : [ 1 , 25e-1 ,\t1e2 ] ,\r\n\"amount\":1.0, \"to\":\"caf\\u00E9\" } ",
		`{"\u0061mount":0.1e1,"t\u006f":"\u0063af\u00e9","list":[10e-1,2.50,100.00]}`,
	)
	if want := `{"amount":1,"list":[1,2.5,100],"to":"café"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if composed, decomposed := same(t, `{"to":"caf\u00e9"}`), same(t, `{"to":"cafe\u0301"}`); composed == decomposed {
		t.Error("two texts that differ in normalisation have one form")
	}
	if number, text := same(t, `{"n":1}`), same(t, `{"n":"1"}`); number == text {
		t.Error("a number and a string have one form")
	}
}

func TestCase_CB12_NothingIsChangedSilently(t *testing.T) {
	refused := map[string]canonical.Reason{
		`{"amount":9007199254740993}`:        canonical.ReasonNumber,
		`{"amount":-9007199254740993}`:       canonical.ReasonNumber,
		`{"amount":1e400}`:                   canonical.ReasonNumber,
		`{"amount":1e-400}`:                  canonical.ReasonNumber,
		`{"amount":1,"amount":1}`:            canonical.ReasonDuplicate,
		`{"amount":1,"\u0061mount":2}`:       canonical.ReasonDuplicate,
		`{"amount":{"value":1,"value":"1"}}`: canonical.ReasonDuplicate,
		`{"amount":"\u0000"}`:                canonical.ReasonNUL,
	}
	for document, want := range refused {
		_, err := canonical.Object([]byte(document), detailsLimit)
		wantReason(t, err, want)
	}
	if got, want := same(t, `{"amount":"9007199254740993"}`), `{"amount":"9007199254740993"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCase_CB13_CallerMutatesAfterwards(t *testing.T) {
	for _, document := range []string{`{"a":1,"b":"x"}`, `{ "b":"\u0078", "a":1.0 }`} {
		raw := []byte(document)
		form, err := canonical.Object(raw, detailsLimit)
		if err != nil {
			t.Fatal(err)
		}
		for i := range raw {
			raw[i] = '#'
		}
		if want := `{"a":1,"b":"x"}`; string(form) != want {
			t.Errorf("after the caller's change: got %s, want %s", form, want)
		}
	}
	raw := []byte(`{"a":1}`)
	form, err := canonical.Object(raw, detailsLimit)
	if err != nil {
		t.Fatal(err)
	}
	form[0] = '#'
	if string(raw) != `{"a":1}` {
		t.Errorf("changing the result changed the input to %s", raw)
	}
}

func TestInputIsNeverWritten(t *testing.T) {
	for _, v := range readVectors(t).Vectors {
		raw := slices.Clone(v.input())
		_, _ = canonical.Object(raw, detailsLimit)
		_ = canonical.Strict(raw, detailsLimit)
		var into any
		_ = canonical.Decode(raw, detailsLimit, &into)
		if !bytes.Equal(raw, v.input()) {
			t.Errorf("%s: input changed to %q", v.Name, raw)
		}
	}
}

func TestObjectLimits(t *testing.T) {
	const limit = 100
	document := func(size int) string { return `{"a":"` + strings.Repeat("x", size-8) + `"}` }
	escaped := func(size int) string { return `{"a":"` + strings.Repeat(`\u0078`, size-8) + `"}` }
	const most = 6*limit + 4096
	tests := []struct {
		name, document string
		limit          int
		ok             bool
	}{
		{"result at the limit", document(limit), limit, true},
		{"result one past", document(limit + 1), limit, false},
		{"result at the limit, all escaped", escaped(limit), limit, true},
		{"result one past, all escaped", escaped(limit + 1), limit, false},
		{"result grows past the limit", `{"n":1e20}`, 26, false},
		{"result grows to the limit", `{"n":1e20}`, 27, true},
		{"input at its bound", "{}" + strings.Repeat(" ", most-2), limit, true},
		{"input one past", "{}" + strings.Repeat(" ", most-1), limit, false},
		{"limit zero", `{}`, 0, false},
		{"limit one", `{}`, 1, false},
		{"limit two", `{}`, 2, true},
		{"limit negative", `{}`, -1, false},
		{"limit smallest", `{}`, -1 << 63, false},
		{"limit largest", `{}`, 1<<63 - 1, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			form, err := canonical.Object([]byte(test.document), test.limit)
			if !test.ok {
				wantReason(t, err, canonical.ReasonTooLarge)
				return
			}
			if err != nil || len(form) > test.limit {
				t.Errorf("got %d bytes, error %v, want at most %d", len(form), err, test.limit)
			}
		})
	}
}

func TestStrictLimits(t *testing.T) {
	for limit, ok := range map[int]bool{-1: false, 0: false, 9: false, 10: true, 11: true} {
		err := canonical.Strict([]byte(`{ "a": 1 }`), limit)
		if !ok {
			wantReason(t, err, canonical.ReasonTooLarge)
		} else if err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

func TestDepth(t *testing.T) {
	arrays := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "{}" + strings.Repeat("}", n) }
	same(t, arrays(canonical.MaxDepth-1))
	same(t, objects(canonical.MaxDepth-1))
	same(t, `{"a":[`+strings.TrimSuffix(strings.Repeat("[],", 1000), ",")+`]}`) // wide is not deep
	for _, document := range []string{
		arrays(canonical.MaxDepth), objects(canonical.MaxDepth),
		`{"a":` + strings.Repeat("[", 60_000), // refused for its depth before it is found to be cut short
	} {
		_, err := canonical.Object([]byte(document), detailsLimit)
		wantReason(t, err, canonical.ReasonTooDeep)
	}
}

// TestNumbers goes beyond the vectors: the same value in many spellings, at the
// places where doubles change their spacing or their form.
func TestNumbers(t *testing.T) {
	equal := map[string][]string{
		"0":                {"0", "-0", "0.0", "0e5", "0E-5", "-0.000e+999999999999999999999"},
		"1":                {"1.0", "1e0", "10e-1", "0.1e1", "0.001E+3", "1000000e-0000000006", "1" + strings.Repeat("0", 300) + "e-300"},
		"-1.5":             {"-1.5", "-15e-1", "-0.15e1", "-1.50000000000000000000000000000"},
		"100":              {"1e2", "1E+2", "100.000"},
		"1e+21":            {"1e21", "1000000000000000000000", "1000000000000000000000.0"},
		"1e+23":            {"1e23", "100000000000000000000000"},
		"9007199254740992": {"9007199254740992", "9.007199254740992e15", "9007199254740992.0"},
		"0.1":              {"0.1", "0.1" + strings.Repeat("0", 5000)},
		"5e-324":           {"5e-324", "0." + strings.Repeat("0", 323) + "5"},
		"1e-7":             {"1e-7", "0.0000001", "0." + strings.Repeat("0", 5000) + "1e4994"},
	}
	for want, spellings := range equal {
		for _, spelling := range spellings {
			if got := same(t, `{"n":`+spelling+`}`); got != `{"n":`+want+`}` {
				t.Errorf("%.40s: got %s, want %s", spelling, got, want)
			}
		}
	}
	refused := []string{
		"9007199254740993", "9007199254740992.5", "-9007199254740993", "90071992547409930e-1",
		"1e309", "1e400", "-1e400", "1e999999999", "1e" + strings.Repeat("9", 50_000),
		"1e-324", "1e-400", "-1e-400", "1e-999999999", "1e-" + strings.Repeat("9", 50_000),
		"1e18446744073709551616", "1e18446744073709551617", "1e4294967296", "1e-4294967296", // 2^64 and 2^32 must not wrap round
		"0.10000000000000000555", "0.1000000000000000055511151231257827021181583404541015625",
		"2.4703282292062327e-324", "4.9406564584124654e-324", "1.7976931348623158e308", "1.7976931348623159e308",
		"123456789012345678", "1." + strings.Repeat("0", 30_000) + "1", "0." + strings.Repeat("1", 60_000),
	}
	for _, literal := range refused {
		_, err := canonical.Object([]byte(`{"n":[`+literal+`]}`), 20_000)
		if refusal := wantReason(t, err, canonical.ReasonNumber); refusal.Pointer != "/n/0" || refusal.Offset != 6 {
			t.Errorf("%.40s: refused at %q, byte %d", literal, refusal.Pointer, refusal.Offset)
		}
	}
}

// TestExponentsBeyondTheParser has exponents with more digits than strconv reads,
// with zeros enough to make a plausible number of what it does read.
func TestExponentsBeyondTheParser(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("0", n) }
	for name, literal := range map[string]string{
		"10^90000, read as 1":         "0." + zeros(9_999) + "1e100000",
		"10^-90001, read as 0.1":      "1" + zeros(9_999) + "e-100000",
		"2^64 more than is read":      "0." + zeros(18_445) + "1e18446744073709570062",
		"1, read as zero":             "0." + zeros(100_010) + "1e100011", // fit to be accepted, but as 1
		"10^100011, written by zeros": "1" + zeros(100_011),
	} {
		form, err := canonical.Object([]byte(`{"n":`+literal+`}`), 20_000)
		if name == "1, read as zero" && string(form) == `{"n":1}` {
			continue
		}
		if err == nil {
			t.Errorf("%s: got %s", name, form)
			continue
		}
		wantReason(t, err, canonical.ReasonNumber)
	}
}

func TestErrorPosition(t *testing.T) {
	long := strings.Repeat("n", 300)
	tests := []struct {
		name, document, pointer string
		offset                  int
	}{
		{"number", `{"a":{"b":[0,1e400]}}`, "/a/b/1", 13},
		{"NUL in a value", `{"a":"xy\u0000"}`, "/a", 8},
		{"NUL in a name names the parent", `{"a":{"x\u0000":1}}`, "/a", 8},
		{"noncharacter in a name at the top", `{"\uffff":1}`, "", 2},
		{"duplicate", `{"a":[{"k":1,"k":2}]}`, "/a/0/k", 13},
		{"escaped pointer", `{"a/b~c":1e400}`, "/a~1b~0c", 9},
		{"lone surrogate", `{"a":"x\ud800"}`, "/a", 7},
		{"too deep", `{"a":` + strings.Repeat("[", 64), "/a" + strings.Repeat("/0", 63), 68},
		{"trailing data", "{} \n x", "", 5},
		{"not an object", "  []", "", 2},
		{"nothing", "  ", "", 2},
		{"long name stops at the parent", `{"a":{"` + long + `":1e400}}`, "/a", 10 + len(long) - 1},
		{"control characters in names are kept out of the text", `{"a\nb":1e400}`, "/a\nb", 8},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var refused *canonical.Error
			if err := canonical.Strict([]byte(test.document), detailsLimit); !errors.As(err, &refused) {
				t.Fatalf("got %v, want a refusal", err)
			}
			if refused.Pointer != test.pointer || refused.Offset != test.offset {
				t.Errorf("got %q at %d, want %q at %d", refused.Pointer, refused.Offset, test.pointer, test.offset)
			}
			if got, want := refused.Error(), fmt.Sprintf("canonical: %s at byte %d", refused.Reason, test.offset); got != want {
				t.Errorf("text %q, want %q", got, want)
			}
		})
	}
}

// TestErrorsCarryNothingOfTheDocument holds a secret in every kind of value that
// can be refused and looks for it in the refusal.
func TestErrorsCarryNothingOfTheDocument(t *testing.T) {
	const secret = "5ecre7"
	var into struct {
		Text string  `json:"text"`
		Int  int     `json:"int"`
		Deep []uint8 `json:"deep"`
	}
	for _, document := range []string{
		`{"text":"` + secret + `\u0000"}`, `{"text":"` + secret + `\ud800"}`, `{"text":"` + secret + "\xff\"}",
		`{"text":"` + secret + `\x"}`, `{"text":` + secret + `}`, `{"text":"` + secret, `{} ` + secret, `"` + secret + `"`,
		`{"text":1e400` + `,"x":"` + secret + `"}`, `{"int":"` + secret + `"}`, `{"deep":"` + secret + `"}`, `{"text":["` + secret + `"]}`,
	} {
		err := canonical.Decode([]byte(document), detailsLimit, &into)
		if err == nil {
			t.Errorf("%s: accepted", document)
			continue
		}
		if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, secret) {
			t.Errorf("%s: the refusal says %s", document, text)
		}
		if errors.Unwrap(err) != nil {
			t.Errorf("%s: the refusal wraps %T", document, errors.Unwrap(err))
		}
	}
}

func BenchmarkObject(b *testing.B) {
	document := []byte(benchmarkDocument)
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canonical.Object(document, detailsLimit); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStrict(b *testing.B) {
	document := []byte(benchmarkDocument)
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if err := canonical.Strict(document, detailsLimit); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkObjectWorst takes details near their limit, full of the
// numbers that cost most.
func BenchmarkObjectWorst(b *testing.B) {
	document := []byte(`{"n":[0` + strings.Repeat(",2.2250738585072014000e-308", 650) + `]}`)
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if _, err := canonical.Object(document, detailsLimit); err != nil {
			b.Fatal(err)
		}
	}
}

// benchmarkDocument is 300 bytes, in no order, with escapes and numbers.
const benchmarkDocument = `{"to":{"iban":"GB33BUKB20201555555555","name":"Caf\u00e9 M\u00fcller"},"amount":"1250.00","currency":"EUR",` +
	`"reference":"invoice 2024/0815","urgent":false,"retries":3,"rate":0.0425,"tags":["monthly","supplier","checked"],` +
	`"approved_by":["a.person@example.org","b.person@example.org"],"memo":null,"count":1.0}   `
