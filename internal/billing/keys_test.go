package billing_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/billing"
)

func TestCreateAndReplay(t *testing.T) {
	r := start(t, nil)
	first := post(t, r.url, "k1", credit250)
	if first.status != http.StatusCreated || first.replayed || !strings.HasPrefix(first.id, "cr_") {
		t.Fatalf("first: %+v", first)
	}
	for _, key := range []string{"k1", `"k1"`} { // bare, and the quoted form of the IETF draft
		again := post(t, r.url, key, credit250)
		if again.status != http.StatusCreated || !again.replayed || again.body != first.body {
			t.Errorf("key %s: got %+v, want a replay of %s", key, again, first.body)
		}
	}
	// Parameters are compared as values, so white space and member order do not matter.
	if again := post(t, r.url, "k1", `{"currency":"USD", "amount":"250.00", "account":"acc_1"}`); again.body != first.body {
		t.Errorf("reordered: %+v", again)
	}
	want := billing.Books{
		Credits:  []billing.Credit{{ID: first.id, Account: "acc_1", Amount: "250.00", Currency: "USD", Reference: "k1"}},
		Accounts: []billing.AccountTotal{{Account: "acc_1", Currency: "USD", Credits: 1, Total: "250.00"}},
		References: []billing.ReferenceTotal{
			{Reference: "k1", Requests: 4, Credits: 1, Totals: map[string]string{"USD": "250.00"}},
		},
	}
	if diff := cmp.Diff(want, r.Books()); diff != "" {
		t.Error(diff)
	}
	overWire, err := r.client.Books(t.Context())
	if diff := cmp.Diff(want, overWire); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestOtherParametersUnderAUsedKey(t *testing.T) {
	r := start(t, nil)
	post(t, r.url, "k1", credit250)
	for name, body := range map[string]string{
		"amount":   `{"account":"acc_1","amount":"250.01","currency":"USD"}`,
		"spelling": `{"account":"acc_1","amount":"250.0","currency":"USD"}`,
		"account":  `{"account":"acc_2","amount":"250.00","currency":"USD"}`,
		"currency": `{"account":"acc_1","amount":"250.00","currency":"EUR"}`,
	} {
		got := post(t, r.url, "k1", body)
		if got.status != http.StatusUnprocessableEntity || got.code != "idempotency_mismatch" || got.replayed {
			t.Errorf("%s: %+v", name, got)
		}
	}
	wantCredits(t, r.Books(), "k1", 1, 5)
}

func TestNoKeyAlwaysCreates(t *testing.T) {
	r := start(t, nil)
	if a, b := post(t, r.url, "", credit250), post(t, r.url, "", credit250); a.id == b.id || b.status != http.StatusCreated {
		t.Errorf("got %+v and %+v", a, b)
	}
	if got := r.Books().Total("acc_1", "USD"); got != "500.00" {
		t.Errorf("total %s, want 500.00", got)
	}
}

func TestRefusalIsRemembered(t *testing.T) {
	r := start(t, &billing.Options{Faults: []billing.Fault{
		{Account: "acc_closed", Do: billing.Decline, Code: "account_closed"},
	}})
	const body = `{"account":"acc_closed","amount":"1.00","currency":"USD"}`
	first := post(t, r.url, "k1", body)
	if first.status != http.StatusPaymentRequired || first.code != "declined" || first.decline != "account_closed" {
		t.Fatalf("first: %+v", first)
	}
	// The account reopens; the key still says no, a new key says yes.
	if err := r.Apply(t.Context(), billing.Control{ClearFaults: true}); err != nil {
		t.Fatal(err)
	}
	if again := post(t, r.url, "k1", body); !again.replayed || again.body != first.body {
		t.Errorf("again: %+v", again)
	}
	if other := post(t, r.url, "k2", body); other.status != http.StatusCreated {
		t.Errorf("new key: %+v", other)
	}
	wantCredits(t, r.Books(), "k1", 0, 2)
	wantCredits(t, r.Books(), "k2", 1, 1)
}

// A key in flight, under a provider whose contract states atomic keys and under one that does not [E3].
func TestSameKeyInFlight(t *testing.T) {
	hold := billing.Fault{Key: "k1", Times: 1, HoldBefore: "first"}
	start := func(t *testing.T, mode billing.Concurrency) (rig, func() (string, error)) {
		r := start(t, &billing.Options{
			Settings: billing.Settings{Concurrency: mode}, Faults: []billing.Fault{hold},
		})
		first := inFlight(t.Context(), r.client, "k1", "250.00")
		await(t, r.Provider, "first", 1)
		return r, first
	}
	t.Run("refuse", func(t *testing.T) {
		r, first := start(t, billing.ConcurrencyRefuse)
		got := post(t, r.url, "k1", credit250)
		if got.status != http.StatusConflict || got.code != "in_progress" {
			t.Errorf("second: %+v", got)
		}
		r.Release("first")
		id, err := first()
		if again := post(t, r.url, "k1", credit250); err != nil || again.id != id {
			t.Errorf("first: %s %v, again: %+v", id, err, again)
		}
		wantCredits(t, r.Books(), "k1", 1, 3)
	})
	t.Run("racy", func(t *testing.T) {
		r, first := start(t, billing.ConcurrencyRacy)
		second := post(t, r.url, "k1", credit250)
		r.Release("first")
		id, err := first()
		if err != nil || second.status != http.StatusCreated || second.id == id {
			t.Errorf("first: %s %v, second: %+v", id, err, second)
		}
		wantCredits(t, r.Books(), "k1", 2, 2)
		if again := post(t, r.url, "k1", credit250); !again.replayed || again.id != second.id {
			t.Errorf("the first to finish is remembered: %+v", again)
		}
	})
	t.Run("C-E8 mismatch wins over in progress", func(t *testing.T) {
		for _, mode := range []billing.Concurrency{billing.ConcurrencyRefuse, billing.ConcurrencyWait} {
			r, first := start(t, mode)
			got := post(t, r.url, "k1", `{"account":"acc_1","amount":"1.00","currency":"USD"}`)
			if got.code != "idempotency_mismatch" {
				t.Errorf("%q: %+v", mode, got)
			}
			r.Release("first")
			if _, err := first(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestForgottenKeyMakesASecondCredit(t *testing.T) {
	r := start(t, &billing.Options{Settings: billing.Settings{Retention: time.Hour}})
	first := post(t, r.url, "k1", credit250)
	for _, step := range []struct {
		advance  time.Duration
		replayed bool
	}{{time.Hour - 1, true}, {1, false}, {time.Hour - 1, true}, {1, false}} {
		if err := r.Advance(step.advance); err != nil {
			t.Fatal(err)
		}
		got := post(t, r.url, "k1", credit250)
		if got.status != http.StatusCreated || got.replayed != step.replayed || (step.replayed != (got.id == first.id)) {
			t.Errorf("after %v: %+v", step.advance, got)
		}
		if !got.replayed {
			first = got
		}
	}
	wantCredits(t, r.Books(), "k1", 3, 5)
	// A forgotten key binds nobody to the old parameters.
	if err := r.Advance(time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := post(t, r.url, "k1", `{"account":"acc_1","amount":"9.00","currency":"USD"}`); got.status != http.StatusCreated {
		t.Errorf("other parameters: %+v", got)
	}
}

// A key once forgotten stays forgotten, whatever the retention becomes.
func TestForgettingIsForGood(t *testing.T) {
	r := start(t, nil)
	post(t, r.url, "k1", credit250)
	if err := r.Advance(time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, retention := range []time.Duration{time.Minute, 2 * time.Hour} {
		set := billing.Settings{Retention: retention}
		if err := r.Apply(t.Context(), billing.Control{Settings: &set}); err != nil {
			t.Fatal(err)
		}
	}
	if got := post(t, r.url, "k1", credit250); got.replayed {
		t.Errorf("got %+v", got)
	}
}

func TestKeyInFlightIsNeverForgotten(t *testing.T) {
	r := start(t, &billing.Options{
		Settings: billing.Settings{Retention: time.Hour},
		Faults:   []billing.Fault{{Key: "k1", Times: 1, HoldBefore: "first"}},
	})
	first := inFlight(t.Context(), r.client, "k1", "250.00")
	await(t, r.Provider, "first", 1)
	if err := r.Advance(2 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := post(t, r.url, "k1", credit250); got.code != "in_progress" {
		t.Errorf("got %+v", got)
	}
	r.Release("first")
	if _, err := first(); err != nil {
		t.Error(err)
	}
	// Retention counts from the first request, so the finished call is forgotten at once.
	if got := post(t, r.url, "k1", credit250); got.status != http.StatusCreated || got.replayed {
		t.Errorf("got %+v", got)
	}
}

func TestMalformedCreatesAreNotRemembered(t *testing.T) {
	r := start(t, nil)
	for name, body := range map[string]string{
		"not JSON":        `{`,
		"two values":      credit250 + credit250,
		"unknown member":  `{"account":"a","amount":"1.00","currency":"USD","memo":"x"}`,
		"number":          `{"account":"a","amount":250,"currency":"USD"}`,
		"no account":      `{"amount":"1.00","currency":"USD"}`,
		"control in name": `{"account":"a\u0000b","amount":"1.00","currency":"USD"}`,
		"long account":    `{"account":"` + strings.Repeat("a", 256) + `","amount":"1.00","currency":"USD"}`,
		"currency":        `{"account":"a","amount":"1.00","currency":"usd"}`,
		"zero":            `{"account":"a","amount":"0.00","currency":"USD"}`,
		"large":           strings.Repeat(" ", 16<<10) + credit250,
	} {
		if got := post(t, r.url, "k1", body); got.status != http.StatusBadRequest || got.code != "invalid_request" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, key := range []string{" ", `"`, `""`, `"a"b"`, "a b", "é", strings.Repeat("k", 256)} {
		if got := post(t, r.url, key, credit250); got.status != http.StatusBadRequest {
			t.Errorf("key %q: %+v", key, got)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/credits", strings.NewReader(credit250))
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Idempotency-Key"] = []string{"k1", "k2"}
	if got := do(t, req); got.status != http.StatusBadRequest {
		t.Errorf("two keys: %+v", got)
	}
	if b := r.Books(); len(b.Credits) != 0 || len(b.References) != 0 {
		t.Errorf("books: %+v", b)
	}
	if got := post(t, r.url, strings.Repeat("k", 255), credit250); got.status != http.StatusCreated {
		t.Errorf("longest key: %+v", got)
	}
}

func TestNewRefusesOptionsThatMakeNoSense(t *testing.T) {
	for name, opts := range map[string]billing.Options{
		"concurrency": {Settings: billing.Settings{Concurrency: "hope"}},
		"retention":   {Settings: billing.Settings{Retention: -1}},
		"look-up":     {Settings: billing.Settings{Lookup: billing.Lookup{Mode: "maybe"}}},
		"lag":         {Settings: billing.Settings{Lookup: billing.Lookup{Lag: -1}}},
		"omit":        {Settings: billing.Settings{Lookup: billing.Lookup{Omit: []string{"colour"}}}},
		"fault":       {Faults: []billing.Fault{{Do: "explode"}}},
		"grace":       {Grace: -1},
		"file":        {File: t.TempDir()},
	} {
		if p, err := billing.New(&opts); err == nil {
			t.Errorf("%s: accepted", name)
			_ = p.Close()
		}
	}
}
