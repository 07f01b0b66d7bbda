package billing_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/billing"
)

func TestFind(t *testing.T) {
	r := start(t, nil)
	if c, found, err := r.client.Find(t.Context(), "k1"); found || err != nil {
		t.Errorf("before: %v %v %v", c, found, err)
	}
	id, err := r.client.Create(t.Context(), "k1", "acc_1", "250.00", "USD")
	if err != nil {
		t.Fatal(err)
	}
	got, found, err := r.client.Find(t.Context(), "k1")
	want := billing.Credit{ID: id, Account: "acc_1", Amount: "250.00", Currency: "USD", Reference: "k1"}
	if diff := cmp.Diff(want, got); !found || err != nil || diff != "" {
		t.Error(found, err, diff)
	}
	// Forgetting the key does not make the credit invisible, and the first of two is the one found.
	if err := r.Advance(billing.DefaultRetention); err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.Create(t.Context(), "k1", "acc_1", "1.00", "USD"); err != nil {
		t.Fatal(err)
	}
	if got, found, err := r.client.Find(t.Context(), "k1"); !found || err != nil || got != want {
		t.Error(got, found, err)
	}
}

// Nothing found while the first call is in flight, which is no proof of anything [E2].
func TestFindSeesNothingInFlight(t *testing.T) {
	r := start(t, &billing.Options{Faults: []billing.Fault{{On: billing.CallCreate, HoldBefore: "g"}}})
	first := inFlight(t.Context(), r.client, "k1", "250.00")
	await(t, r.Provider, "g", 1)
	if _, found, err := r.client.Find(t.Context(), "k1"); found || err != nil {
		t.Error(found, err)
	}
	r.Release("g")
	if _, err := first(); err != nil {
		t.Error(err)
	}
	if _, found, err := r.client.Find(t.Context(), "k1"); !found || err != nil {
		t.Error(found, err)
	}
}

func TestFindLags(t *testing.T) {
	r := start(t, &billing.Options{Settings: billing.Settings{Lookup: billing.Lookup{Lag: time.Minute}}})
	if _, err := r.client.Create(t.Context(), "k1", "acc_1", "250.00", "USD"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		advance time.Duration
		found   bool
	}{{0, false}, {time.Minute - 1, false}, {1, true}} {
		if err := r.Advance(step.advance); err != nil {
			t.Fatal(err)
		}
		if _, found, err := r.client.Find(t.Context(), "k1"); found != step.found || err != nil {
			t.Errorf("after %v: %v %v", step.advance, found, err)
		}
	}
	wantCredits(t, r.Books(), "k1", 1, 1) // the books do not lag
}

// A look-up that does not answer is an error and never "not found".
func TestFindWithoutAnAnswer(t *testing.T) {
	for mode, status := range map[billing.LookupMode]int{
		billing.LookupAbsent: 404, billing.LookupUnsupported: 501, billing.LookupBroken: 500,
	} {
		r := start(t, &billing.Options{Settings: billing.Settings{Lookup: billing.Lookup{Mode: mode}}})
		_, found, err := r.client.Find(t.Context(), "k1")
		if got, ok := errors.AsType[*billing.ReplyError](err); found || !ok || got.Status != status {
			t.Errorf("%s: %v %v", mode, found, err)
		}
	}
	for _, f := range []billing.Fault{
		{Do: billing.DropBefore},
		{Do: billing.FailBefore},
		{Do: billing.CutBefore},
		{Do: billing.LostAfter},
		{Do: billing.FailAfter},
		{Do: billing.GarbageAfter},
		{Do: billing.HalfAfter},
	} {
		f.On = billing.CallLookup
		r := start(t, &billing.Options{Faults: []billing.Fault{f}})
		if _, err := r.client.Create(t.Context(), "k1", "acc_1", "250.00", "USD"); err != nil {
			t.Fatal(err)
		}
		if _, found, err := r.client.Find(t.Context(), "k1"); found || err == nil {
			t.Errorf("%s: %v %v", f.Do, found, err)
		}
	}
}

// A credit with a member missing is not a credit: nothing can be concluded from it [E2].
func TestFindOfAnIncompleteCredit(t *testing.T) {
	for _, name := range []string{"id", "account", "amount", "currency", "reference"} {
		r := start(t, &billing.Options{Settings: billing.Settings{Lookup: billing.Lookup{Omit: []string{name}}}})
		if _, err := r.client.Create(t.Context(), "k1", "acc_1", "250.00", "USD"); err != nil {
			t.Fatal(err)
		}
		if c, found, err := r.client.Find(t.Context(), "k1"); found || err == nil || c != (billing.Credit{}) {
			t.Errorf("without %s: %v %v %v", name, c, found, err)
		}
	}
}

func TestLookupNeedsAReference(t *testing.T) {
	r := start(t, nil)
	for _, query := range []string{"", "?reference=", "?reference=a%20b"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/credits"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := do(t, req); got.status != http.StatusBadRequest || got.code != "invalid_request" {
			t.Errorf("%q: %+v", query, got)
		}
	}
	if _, _, err := r.client.Find(t.Context(), ""); err == nil {
		t.Error("the client looks for nothing")
	}
}
