package billing_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/billing"
)

func TestControlIsOffUnlessAskedFor(t *testing.T) {
	r := start(t, nil)
	err := r.client.Control(t.Context(), billing.Control{ClearFaults: true})
	if got, ok := errors.AsType[*billing.ReplyError](err); !ok || got.Status != http.StatusNotFound {
		t.Errorf("got %v", err)
	}
}

// Everything a test in the same process can do, one in another process can do too.
func TestControlOverHTTP(t *testing.T) {
	r := start(t, &billing.Options{Control: true, Faults: []billing.Fault{{Do: billing.FailBefore}}})
	control := func(c billing.Control) {
		t.Helper()
		if err := r.client.Control(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	control(billing.Control{
		Settings: &billing.Settings{Concurrency: billing.ConcurrencyRacy, Retention: time.Minute},
		// The rule from the start is gone, and these are in force instead.
		ClearFaults: true,
		Faults:      []billing.Fault{{Key: "k1", Times: 1, HoldBefore: "g"}},
	})
	first := inFlight(t.Context(), r.client, "k1", "250.00")
	control(billing.Control{Await: &billing.Await{Gate: "g", Requests: 1}})
	if _, err := r.client.Create(t.Context(), "k1", "acc_1", "250.00", "USD"); err != nil {
		t.Errorf("racing call: %v", err)
	}
	control(billing.Control{Release: []string{"g"}})
	if _, err := first(); err != nil {
		t.Errorf("held call: %v", err)
	}
	control(billing.Control{Advance: time.Minute})
	if _, err := r.client.Create(t.Context(), "k1", "acc_1", "250.00", "USD"); err != nil {
		t.Errorf("after pruning: %v", err)
	}
	wantCredits(t, r.Books(), "k1", 3, 3)
}

func TestBadControlChangesNothing(t *testing.T) {
	r := start(t, &billing.Options{Control: true})
	for name, c := range map[string]billing.Control{
		"fault":    {Faults: []billing.Fault{{Do: billing.FailBefore}, {Do: "explode"}}},
		"settings": {Settings: &billing.Settings{Concurrency: "hope"}, Faults: []billing.Fault{{Do: billing.FailBefore}}},
		"back":     {Advance: -1, Faults: []billing.Fault{{Do: billing.FailBefore}}},
		"gate":     {Await: &billing.Await{Requests: 1}, Faults: []billing.Fault{{Do: billing.FailBefore}}},
		"none":     {Await: &billing.Await{Gate: "g"}, Faults: []billing.Fault{{Do: billing.FailBefore}}},
	} {
		err := r.client.Control(t.Context(), c)
		if got, ok := errors.AsType[*billing.ReplyError](err); !ok || got.Status != http.StatusBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, body := range []string{"", "{", "[]", `{"explode":true}`, `{} {}`} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/_control", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := do(t, req); got.status != http.StatusBadRequest {
			t.Errorf("%q: %+v", body, got)
		}
	}
	if _, err := r.client.Create(t.Context(), "k1", "acc_1", "250.00", "USD"); err != nil {
		t.Errorf("a part of a refused change is in force: %v", err)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	r := start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Await(ctx, "g", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// A gate released before anybody came stays open.
	r.Release("late")
	r.Release("late")
	inject(t, r.Provider, billing.Fault{HoldBefore: "late"})
	if _, err := r.client.Create(t.Context(), "k1", "acc_1", "250.00", "USD"); err != nil {
		t.Error(err)
	}
}
