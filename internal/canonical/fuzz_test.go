package canonical_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/canonical"
)

const seedCorpus = "testdata/fuzz/FuzzObject"

// TestSeedCorpus keeps the committed seeds from vanishing unnoticed.
func TestSeedCorpus(t *testing.T) {
	seeds, err := filepath.Glob(filepath.Join(seedCorpus, "*"))
	if err != nil || len(seeds) < 16 {
		t.Fatalf("%d seeds in %s (%v), want at least 16", len(seeds), seedCorpus, err)
	}
	for _, seed := range seeds {
		text, err := os.ReadFile(seed)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "go test fuzz v1\n[]byte(") {
			t.Errorf("%s is no seed for FuzzObject", seed)
		}
	}
}

// FuzzObject looks for an accepted document whose form is not stable, has another
// value than the document, or breaks a limit, and for a refusal that the standard
// library's parser shows to be wrong.
func FuzzObject(f *testing.F) {
	for _, v := range readVectors(f).Vectors {
		f.Add(v.input())
	}
	const limit = 1 << 12
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		form, err := canonical.Object(raw, limit)
		strict := canonical.Strict(raw, len(raw))
		if !bytes.Equal(raw, before) {
			t.Fatalf("input changed from %q to %q", before, raw)
		}
		if err != nil {
			checkRefusal(t, raw, err, strict)
			return
		}
		if strict != nil {
			t.Fatalf("Object accepts %q, Strict says %v", raw, strict)
		}
		if len(form) > limit {
			t.Fatalf("%d bytes, want at most %d", len(form), limit)
		}
		again, err := canonical.Object(form, len(form))
		if err != nil || !bytes.Equal(again, form) {
			t.Fatalf("the form of %q is %q, %v", form, again, err)
		}
		var input, output, decoded any
		if err := errors.Join(json.Unmarshal(raw, &input), json.Unmarshal(form, &output), canonical.Decode(raw, len(raw), &decoded)); err != nil {
			t.Fatalf("%q: accepted, and yet %v", raw, err)
		}
		if !reflect.DeepEqual(input, output) || !reflect.DeepEqual(input, decoded) {
			t.Fatalf("%q: value %v, of the form %v, decoded %v", raw, input, output, decoded)
		}
	})
}

func checkRefusal(t *testing.T, raw []byte, object, strict error) {
	t.Helper()
	var refused *canonical.Error
	if !errors.As(object, &refused) {
		t.Fatalf("%q: got %T, want a refusal", raw, object)
	}
	if refused.Offset < 0 || refused.Offset > len(raw) || len(refused.Pointer) > 256 {
		t.Fatalf("%q: offset %d, pointer %q", raw, refused.Offset, refused.Pointer)
	}
	if refused.Reason == canonical.ReasonTooLarge {
		return
	}
	if strict == nil || strict.Error() != object.Error() {
		t.Fatalf("%q: Object says %v, Strict says %v", raw, object, strict)
	}
	grammar := refused.Reason == canonical.ReasonSyntax || refused.Reason == canonical.ReasonTrailing
	if grammar && json.Valid(raw) {
		t.Fatalf("%q: valid JSON refused for %s", raw, refused.Reason)
	}
}
