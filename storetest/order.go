package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

func orderCases() []Case {
	return []Case{
		{ID: "C-E12", Title: "four statements in every order", Clauses: clauses("M4 M3"), Needs: []Power{PowerClock}, run: fourInEveryOrder},
		{ID: "M4-orders", Title: "any statements in every order", Clauses: clauses("M4 M3"), Needs: []Power{PowerClock}, run: anyInEveryOrder},
	}
}

// event is one statement about an operation.
type event struct {
	name string
	say  func(*Trial, subject)
}

// subject is an operation with what its witnesses hold.
type subject struct {
	own    pawl.Admitted
	joined pawl.OwnerToken
}

// ownerEvent speaks at the owner's door; refused there with something definite
// in hand, the owner takes it to the evidence door [M3].
func ownerEvent(o pawl.Outcome) func(*Trial, subject) {
	return func(t *Trial, s subject) {
		id := s.own.Operation.ID
		_, err := t.a.Record(t.ctx, pawl.Statement{ID: id, Token: s.own.Owner.Token, Outcome: o})
		if err == nil {
			return
		}
		t.wantClass("O1", "an owner's word that came late", err, pawl.ErrFenced)
		if o.Verdict().Definite() {
			t.settle(t.a, pawl.Evidence{ID: id, Lock: s.own.Operation.Lock, Outcome: o, Token: s.own.Owner.Token, Source: "owner"})
		}
	}
}

func evidenceEvent(o pawl.Outcome, joined, match bool) func(*Trial, subject) {
	return func(t *Trial, s subject) {
		e := provider(s.own.Operation, o)
		if joined {
			e.Trusted, e.Token = false, s.joined
		}
		if !match {
			e.Lock.Fingerprint[0] ^= 1
		}
		t.settle(t.a, e)
	}
}

func events() []event {
	return []event{
		{"owner:success", ownerEvent(pawl.Succeeded(marker))},
		{"joined:unknown", evidenceEvent(pawl.Unknown("timeout"), true, true)},
		{"provider:failed", evidenceEvent(pawl.Failed("declined"), false, true)},
		{"provider:mismatched-success", evidenceEvent(pawl.Succeeded("foreign"), false, false)},
		{"owner:unknown", ownerEvent(pawl.Unknown("timeout"))},
		{"owner:failed", ownerEvent(pawl.Failed("declined"))},
		{"provider:success", evidenceEvent(pawl.Succeeded(marker), false, true)},
		{"provider:mismatched-failed", evidenceEvent(pawl.Failed("foreign"), false, false)},
	}
}

// fourInEveryOrder is C-E12.
func fourInEveryOrder(t *Trial) { t.orders(events()[:4], 4) }

func anyInEveryOrder(t *Trial) { t.orders(events(), t.sizes.Orders) }

// orders makes every selection of up to most events, and tells each in every
// order to an operation of its own: the final status and result must be one [M4].
// Half of them hear it under the owner's live lease, half after it.
func (t *Trial) orders(all []event, most int) {
	type told struct {
		set, order string
		s          subject
		events     []event
	}
	var under, after []told
	for _, set := range selections(all, most) {
		for _, order := range permutations(set) {
			under = append(under, told{set: names(sorted(set)), order: names(order), events: order})
		}
	}
	after = slices.Clone(under)
	for _, half := range [][]told{under, after} {
		for i := range half {
			half[i].s = t.subject()
		}
	}
	tell := func(half []told) {
		for _, x := range half {
			for _, e := range x.events {
				e.say(t, x.s)
			}
		}
	}
	tell(under)
	t.advance(lease + time.Second)
	tell(after)
	results := map[string]string{}
	orderOf := map[string]string{}
	for _, half := range [][]told{under, after} {
		for _, x := range half {
			// The lease is over: whoever speaks next reads what was deferred.
			evidenceEvent(pawl.Unknown("the last word"), true, true)(t, x.s)
			op := t.get(x.s.own.Operation.ID)
			got := fmt.Sprintf("%v with the result %q", op.Status, op.Result)
			if want, ok := results[x.set]; ok && want != got {
				t.fail("M4", "%s ends %s, and %s ends %s", orderOf[x.set], want, x.order, got)
				continue
			}
			results[x.set], orderOf[x.set] = got, x.order
			if want := expectedEnd(x.set); want != op.Status {
				t.fail("M4", "%s ends %s, want %v", x.order, got, want)
			}
		}
	}
}

// expectedEnd is what any order of a set must come to: a matching success is
// never lost, then a failure, then the conflict, then the doubt.
func expectedEnd(set string) pawl.Status {
	for _, rule := range []struct {
		word   string
		status pawl.Status
	}{
		{"owner:success", pawl.StatusSucceeded},
		{"provider:success", pawl.StatusSucceeded},
		{"owner:failed", pawl.StatusFailed},
		{"provider:failed", pawl.StatusFailed},
		{"provider:mismatched-success", pawl.StatusConflict},
	} {
		if slices.Contains(strings.Split(set, " "), rule.word) {
			return rule.status
		}
	}
	return pawl.StatusUnknown // of the last word at least
}

func (t *Trial) subject() subject {
	r := t.reservation()
	own, err := t.reserve(t.a, r)
	if err != nil || !own.Fresh {
		t.stop("B1", "a fresh key: fresh %v, error %v", own.Fresh, err)
	}
	joined, err := t.reserve(t.a, r)
	if err != nil {
		t.stop("B1", "the same key again: %v", err)
	}
	return subject{own: own, joined: joined.Owner.Token}
}

func names(events []event) string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = e.name
	}
	return strings.Join(all, " ")
}

func sorted(events []event) []event {
	return slices.SortedFunc(slices.Values(events), func(a, b event) int { return strings.Compare(a.name, b.name) })
}

// selections returns every set of 1 to most events.
func selections(all []event, most int) (sets [][]event) {
	for mask := 1; mask < 1<<len(all); mask++ {
		var set []event
		for i, e := range all {
			if mask&(1<<i) != 0 {
				set = append(set, e)
			}
		}
		if len(set) <= most {
			sets = append(sets, set)
		}
	}
	return sets
}

func permutations(set []event) (all [][]event) {
	if len(set) <= 1 {
		return [][]event{set}
	}
	for i, first := range set {
		rest := append(slices.Clone(set[:i]), set[i+1:]...)
		for _, p := range permutations(rest) {
			all = append(all, append([]event{first}, p...))
		}
	}
	return all
}
