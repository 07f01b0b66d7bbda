package billing_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/billing"
)

func open(t *testing.T, opts billing.Options) *billing.Provider {
	t.Helper()
	p, err := billing.New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestBooksKeysAndClockSurviveARestart(t *testing.T) {
	opts := billing.Options{
		File:     filepath.Join(t.TempDir(), "books.jsonl"),
		Settings: billing.Settings{Retention: time.Hour},
		Faults: []billing.Fault{
			{Key: "declined", Do: billing.Decline, Code: "account_closed"},
			{Key: "stored", Do: billing.FailAfter, Stored: true},
			{Key: "dropped", Times: 1, Do: billing.DropBefore},
		},
	}
	keys := []string{"old", "young", "declined", "stored", "dropped"}
	p := open(t, opts)
	before := make(map[string]string)
	for _, key := range keys {
		before[key] = serve(p, key).Body.String()
		if key == "old" {
			if err := p.Advance(time.Hour - 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantBooks := p.Books()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}

	opts.Faults = nil
	p = open(t, opts)
	got := p.Books()
	if diff := cmp.Diff(wantBooks.Credits, got.Credits); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(wantBooks.Accounts, got.Accounts); diff != "" {
		t.Error(diff)
	}
	if err := p.Advance(1); err != nil { // to where the first key's retention ends
		t.Fatal(err)
	}
	for _, key := range keys {
		rec := serve(p, key)
		replayed := rec.Header().Get("Idempotent-Replayed") == "true"
		if want := key != "old" && key != "dropped"; replayed != want || (want && rec.Body.String() != before[key]) {
			t.Errorf("%s: replayed=%v %s, before: %s", key, replayed, rec.Body, before[key])
		}
	}
	wantCredits(t, p.Books(), "old", 2, 1)
	wantCredits(t, p.Books(), "stored", 1, 1)
	wantCredits(t, p.Books(), "dropped", 1, 1)
}

// Of two racing calls the first to finish is remembered, after a restart as before it.
func TestRememberedReplyOfARaceSurvivesARestart(t *testing.T) {
	opts := billing.Options{
		File:     filepath.Join(t.TempDir(), "books.jsonl"),
		Settings: billing.Settings{Concurrency: billing.ConcurrencyRacy},
		Faults:   []billing.Fault{{Times: 1, HoldBefore: "g"}},
	}
	p := open(t, opts)
	slow := make(chan struct{})
	go func() {
		defer close(slow)
		serve(p, "k1")
	}()
	await(t, p, "g", 1)
	fast := serve(p, "k1").Body.String()
	p.Release("g")
	<-slow
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = open(t, billing.Options{File: opts.File})
	if got := serve(p, "k1").Body.String(); got != fast {
		t.Errorf("got %s, want %s", got, fast)
	}
	wantCredits(t, p.Books(), "k1", 2, 1)
}

// A line without its end was never answered, so it never happened.
func TestTornLastLineIsCutOff(t *testing.T) {
	file := filepath.Join(t.TempDir(), "books.jsonl")
	p := open(t, billing.Options{File: file})
	for _, key := range []string{"k1", "k2"} {
		serve(p, key)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.IndexByte(string(whole), '\n') + 1
	for _, cut := range []int{first, first + 1, (first + len(whole)) / 2, len(whole) - 1} {
		if err := os.WriteFile(file, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second opening reads what the first one left and added
			p := open(t, billing.Options{File: file})
			serve(p, "k3")
			b := p.Books()
			if len(b.Credits) != 2 || b.Reference("k1").Credits != 1 || b.Reference("k3").Credits != 1 {
				t.Errorf("cut at %d of %d: %+v", cut, len(whole), b)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDamagedBooksAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "books.jsonl")
	const asked = `"key":"k","asked":{"account":"a","amount":"1.00","currency":"USD"},"reply":{"status":201,"body":{}}`
	const credit = `"credit":{"id":"cr_1","account":"a","amount":"1.00","currency":"USD","reference":"k"}`
	for _, line := range []string{
		"\n", "{\n", "{}\n", `{"kind":"gift"}` + "\n",
		`{"kind":"credit",` + asked + "}\n",
		`{"kind":"credit",` + credit + "}\n",
		`{"kind":"credit",` + asked + `,` + strings.Replace(credit, "1.00", "lots", 1) + "}\n",
		`{"kind":"refusal","kept":true,` + strings.Replace(asked, `"key":"k",`, "", 1) + "}\n",
	} {
		if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := billing.New(&billing.Options{File: file}); err == nil {
			t.Errorf("accepted %s", line)
			_ = p.Close()
		}
		if left, err := os.ReadFile(file); err != nil || string(left) != line {
			t.Errorf("refusing changed the file to %q: %v", left, err)
		}
	}
	if err := os.WriteFile(file, []byte(`{"kind":"credit",`+asked+`,`+credit+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p := open(t, billing.Options{File: file}); len(p.Books().Credits) != 1 {
		t.Error("the undamaged line is not read")
	}
}
