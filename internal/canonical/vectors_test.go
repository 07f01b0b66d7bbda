package canonical_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/canonical"
)

// vectorFile is testdata/vectors.json, described in testdata/README.md.
type vectorFile struct {
	Limit    int      `json:"limit"`
	MaxDepth int      `json:"max_depth"`
	Vectors  []vector `json:"vectors"`
}

type vector struct {
	Name        string           `json:"name"`
	Input       string           `json:"input"`
	InputBase64 []byte           `json:"input_base64"`
	Canonical   string           `json:"canonical"`
	SHA256      string           `json:"sha256"`
	Reason      canonical.Reason `json:"reason"`
}

func (v vector) input() []byte {
	if v.InputBase64 != nil {
		return v.InputBase64
	}
	return []byte(v.Input)
}

// readVectors fails when vectors went missing, not only when the file did.
func readVectors(t testing.TB) vectorFile {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file vectorFile
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if got, want := len(file.Vectors), 118; got < want {
		t.Fatalf("vectors.json has %d vectors, want at least %d", got, want)
	}
	if file.MaxDepth != canonical.MaxDepth {
		t.Fatalf("vectors.json assumes max_depth %d, want %d", file.MaxDepth, canonical.MaxDepth)
	}
	return file
}

func TestVectors(t *testing.T) {
	file := readVectors(t)
	for _, v := range file.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			got, err := canonical.Object(v.input(), file.Limit)
			strict := canonical.Strict(v.input(), file.Limit)
			if v.Reason != "" {
				wantReason(t, err, v.Reason)
				wantReason(t, strict, v.Reason)
				return
			}
			if err != nil || strict != nil {
				t.Fatalf("Object: %v, Strict: %v, want both to accept", err, strict)
			}
			if string(got) != v.Canonical {
				t.Errorf("got  %q\nwant %q", got, v.Canonical)
			}
			sum := sha256.Sum256(got)
			if digest := hex.EncodeToString(sum[:]); digest != v.SHA256 {
				t.Errorf("digest %s, want %s", digest, v.SHA256)
			}
		})
	}
}

// TestRFC8785Samples runs the published samples. A sample that is not an object
// is put into one. values.json holds a number that rounds: it is refused as it
// stands, and gives the published bytes with the rounding done beforehand.
func TestRFC8785Samples(t *testing.T) {
	inputs, err := filepath.Glob("testdata/rfc8785/input/*.json")
	if err != nil || len(inputs) != 7 {
		t.Fatalf("found %d samples (%v), want 7", len(inputs), err)
	}
	for _, path := range inputs {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			input, want := readFile(t, path), readFile(t, filepath.Join("testdata/rfc8785/output", name))
			switch name {
			case "values.json":
				_, err := canonical.Object(input, 1<<10)
				refused := wantReason(t, err, canonical.ReasonNumber)
				if refused.Pointer != "/numbers/0" {
					t.Errorf("pointer %q, want /numbers/0", refused.Pointer)
				}
				input = bytes.Replace(input, []byte("333333333.33333329"), []byte("333333333.3333333"), 1)
			case "arrays.json":
				input = fmt.Appendf(nil, `{"sample":%s}`, input)
				want = fmt.Appendf(nil, `{"sample":%s}`, want)
			}
			got, err := canonical.Object(input, 1<<10)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// TestRFC8785Numbers runs the table of appendix B: each double, written with all
// its digits or in its canonical form, is that form.
func TestRFC8785Numbers(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(string(readFile(t, "testdata/rfc8785/numbers.txt"))), "\n")
	if len(lines) != 24 {
		t.Fatalf("%d numbers, want 24", len(lines))
	}
	for _, line := range lines {
		bits, want, _ := strings.Cut(line, " ")
		value, err := strconv.ParseUint(bits, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		double := math.Float64frombits(value)
		for _, literal := range []string{want, strconv.FormatFloat(double, 'e', -1, 64), strconv.FormatFloat(double, 'f', -1, 64)} {
			got, err := canonical.Object(fmt.Appendf(nil, `{"n":%s}`, literal), 1<<10)
			if err != nil {
				t.Errorf("%s as %s: %v", bits, literal, err)
				continue
			}
			if string(got) != `{"n":`+want+`}` {
				t.Errorf("%s as %s: got %s, want %s", bits, literal, got, want)
			}
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
