package billing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/billing"
)

// What each action does to the books, and what a careful client hears. Only a decline and a credit
// are definite [E1].
func TestActions(t *testing.T) {
	reply := func(status int) func(error) bool {
		return func(err error) bool {
			got, ok := errors.AsType[*billing.ReplyError](err)
			return ok && got.Status == status
		}
	}
	open := func(err error) bool {
		_, answered := errors.AsType[*billing.ReplyError](err)
		return err != nil && !answered
	}
	for _, row := range []struct {
		fault   billing.Fault
		credits int              // after the first request
		heard   func(error) bool // by the first request
		again   bool             // whether a second request hears of a credit
	}{
		{billing.Fault{}, 1, func(err error) bool { return err == nil }, true},
		{billing.Fault{Do: billing.DropBefore}, 0, open, true},
		{billing.Fault{Do: billing.DropBefore, Reset: true}, 0, open, true},
		{billing.Fault{Do: billing.FailBefore}, 0, reply(503), true},
		{billing.Fault{Do: billing.CutBefore}, 1, open, true},
		{billing.Fault{Do: billing.LostAfter}, 1, open, true},
		{billing.Fault{Do: billing.LostAfter, Reset: true}, 1, open, true},
		{billing.Fault{Do: billing.FailAfter}, 1, reply(500), true},
		{billing.Fault{Do: billing.FailAfter, Stored: true}, 1, reply(500), false},
		{billing.Fault{Do: billing.GarbageAfter}, 1, open, true},
		{billing.Fault{Do: billing.HalfAfter}, 1, open, true},
		{billing.Fault{Do: billing.TrickleAfter, Interval: 1}, 1, func(err error) bool { return err == nil }, true},
		{billing.Fault{Do: billing.Decline, Code: "frozen"}, 0, func(err error) bool {
			got, ok := errors.AsType[*billing.DeclinedError](err)
			return ok && got.Code == "frozen" && errors.Is(err, billing.ErrDeclined)
		}, false},
	} {
		t.Run(fmt.Sprintf("%s reset=%v stored=%v", row.fault.Do, row.fault.Reset, row.fault.Stored), func(t *testing.T) {
			row.fault.Times = 1
			row.fault.HoldAfter = "effect"
			r := start(t, &billing.Options{Faults: []billing.Fault{row.fault}})
			r.Release("effect") // only counts who passes: after a cut the effect comes later than the error
			_, err := r.client.Create(t.Context(), "k1", "acc_1", "250.00", "USD")
			if !row.heard(err) {
				t.Errorf("first: %v", err)
			}
			if row.credits == 1 {
				await(t, r.Provider, "effect", 1)
			}
			wantCredits(t, r.Books(), "k1", row.credits, 1)
			if row.fault.Do != billing.Decline && errors.Is(err, billing.ErrDeclined) {
				t.Errorf("an open outcome passed for a definite one: %v", err)
			}
			_, err = r.client.Create(t.Context(), "k1", "acc_1", "250.00", "USD")
			if (err == nil) != row.again {
				t.Errorf("second: %v", err)
			}
		})
	}
}

func TestResetIsAReset(t *testing.T) {
	r := start(t, &billing.Options{Faults: []billing.Fault{{Do: billing.DropBefore, Reset: true, Key: "reset"}, {Do: billing.DropBefore}}})
	if _, err := r.client.Create(t.Context(), "reset", "a", "1.00", "USD"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", err)
	}
	if _, err := r.client.Create(t.Context(), "orderly", "a", "1.00", "USD"); !errors.Is(err, io.EOF) {
		t.Errorf("orderly end: %v", err)
	}
}

// A real provider goes on working when its caller has given up; so does this one.
func TestCallerLeavesEffectStays(t *testing.T) {
	r := start(t, &billing.Options{Faults: []billing.Fault{{Times: 1, HoldBefore: "before", HoldAfter: "after"}}})
	ctx, leave := context.WithCancel(t.Context())
	first := inFlight(ctx, r.client, "k1", "250.00")
	await(t, r.Provider, "before", 1)
	leave()
	if _, err := first(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantCredits(t, r.Books(), "k1", 0, 1)
	r.Release("before")
	await(t, r.Provider, "after", 1)
	wantCredits(t, r.Books(), "k1", 1, 1)
}

func TestRulesMatchCountAndYield(t *testing.T) {
	r := start(t, &billing.Options{Faults: []billing.Fault{
		{Key: "k1", Times: 2, Do: billing.FailBefore},
		{Account: "acc_x", Do: billing.Decline, Code: "account_closed"},
		{On: billing.CallLookup, Times: 1, Do: billing.FailBefore},
	}})
	create := func(key, account string) error {
		_, err := r.client.Create(t.Context(), key, account, "1.00", "USD")
		return err
	}
	for i, want := range []bool{false, false, true} {
		if err := create("k1", "acc_1"); (err == nil) != want {
			t.Errorf("k1 request %d: %v", i, err)
		}
	}
	if err := create("k2", "acc_1"); err != nil {
		t.Errorf("another key: %v", err)
	}
	for _, key := range []string{"k3", "k4", "k4"} {
		if err := create(key, "acc_x"); !errors.Is(err, billing.ErrDeclined) {
			t.Errorf("closed account: %v", err)
		}
	}
	for i, want := range []bool{false, true} {
		if _, found, err := r.client.Find(t.Context(), "k2"); found != want || (err == nil) != want {
			t.Errorf("look-up %d: %v %v", i, found, err)
		}
	}
}

// Luck depends on seed, rule, key and attempt, and on nothing that other keys do.
func TestProbabilityIsReproducible(t *testing.T) {
	const keys, attempts = 200, 3
	run := func(seed uint64, keyMajor bool) (hits map[string]bool) {
		p, err := billing.New(&billing.Options{
			Seed: seed, Faults: []billing.Fault{{Probability: 0.25, Do: billing.FailBefore}},
		})
		if err != nil {
			t.Fatal(err)
		}
		hits = make(map[string]bool)
		for i := range keys * attempts {
			key, n := i/attempts, i%attempts
			if !keyMajor {
				key, n = i%keys, i/keys
			}
			k := fmt.Sprint("k", key)
			hits[fmt.Sprint(k, "#", n)] = serve(p, k).Code == http.StatusServiceUnavailable
		}
		return hits
	}
	count := func(hits, other map[string]bool) (n, same int) {
		for k, hit := range hits {
			if hit {
				n++
			}
			if hit == other[k] {
				same++
			}
		}
		return n, same
	}
	a := run(1, true)
	if _, same := count(a, run(1, false)); same != len(a) {
		t.Errorf("the order of arrival changed %d draws", len(a)-same)
	}
	n, same := count(a, run(2, true))
	if n < 100 || n > 200 { // 150 expected of 600; the seed is fixed, so this cannot flake
		t.Errorf("%d of %d hit", n, len(a))
	}
	if same == len(a) {
		t.Error("the seed changes nothing")
	}
}

func TestFaultsThatMakeNoSense(t *testing.T) {
	p, err := billing.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []billing.Fault{
		{On: "books"},
		{Do: "explode"},
		{Do: billing.Decline},
		{Do: billing.Decline, Code: "Not A Word"},
		{Do: billing.Decline, Code: "x", On: billing.CallLookup},
		{Code: "account_closed"},
		{On: billing.CallLookup, Account: "acc_1"},
		{Times: -1},
		{Probability: -0.1},
		{Probability: 1.1},
		{Do: billing.TrickleAfter},
		{Interval: time.Second},
		{Do: billing.FailBefore, Stored: true},
		{Do: billing.FailAfter, Stored: true, On: billing.CallLookup},
		{Do: billing.GarbageAfter, Reset: true},
		{DelayBefore: -1},
		{DelayAfter: -1},
	} {
		if err := p.Inject(f); err == nil {
			t.Errorf("accepted %+v", f)
		}
	}
	if got := serve(p, strings.Repeat("k", 3)).Code; got != http.StatusCreated {
		t.Errorf("a refused rule is in force: %d", got)
	}
}
