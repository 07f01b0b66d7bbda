package billing

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be written did not happen: no credit, an answer that says nothing definite, and a key
// that is free for another try.
func TestUnwritableBooksMakeNoCredit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "books.jsonl")
	p, err := New(&Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	create := func(key string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodPost, "/credits",
			strings.NewReader(`{"account":"a","amount":"1.00","currency":"USD"}`))
		req.Header.Set(headerKey, key)
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, req)
		return rec
	}
	if got := create("k1").Code; got != http.StatusCreated {
		t.Fatal(got)
	}
	readOnly, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	writable := p.journal.file
	p.journal.file = readOnly
	for range 2 {
		if got := create("k2").Code; got != http.StatusInternalServerError {
			t.Errorf("got %d, want 500", got)
		}
	}
	if err := p.Advance(1); err == nil {
		t.Error("the clock moved without its line")
	}
	if got := create("k1").Header().Get(headerReplayed); got != "true" {
		t.Error("what is on the books is still answered for")
	}
	b := p.Books()
	if len(b.Credits) != 1 || b.Reference("k2").Credits != 0 || p.keys["k2"] != nil || p.offset != 0 {
		t.Errorf("got %+v, key %+v", b, p.keys["k2"])
	}
	// A line may be half written: nothing more is added after it, even if writing works again.
	p.journal.file = writable
	if got := create("k2").Code; got != http.StatusInternalServerError {
		t.Errorf("behind a line that may be torn: %d", got)
	}
	p.journal.broken = nil
	if got := create("k2").Code; got != http.StatusCreated {
		t.Errorf("once writable again: %d", got)
	}
	if err := readOnly.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
