package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pawl-go/pawl"
)

func raceCases() []Case {
	return []Case{
		{ID: "C-A1", Title: "many racers at each of many grants", Clauses: clauses("A1 A2 A11"), run: manyRacers},
		{ID: "C-A2", Title: "two sessions past validation claim at once", Clauses: clauses("A2"), run: twoSessions},
		{ID: "C-A4", Title: "losers leave nothing", Clauses: clauses("A2 A10"), run: losersLeaveNothing},
		{ID: "C-A20", Title: "one grant, five operation ids", Clauses: clauses("A2"), run: fiveIDs},
		{ID: "A8-race", Title: "one admission sent many times at once", Clauses: clauses("A8 O1"), run: oneAdmissionAtOnce},
		{ID: "A7-race", Title: "one operation id for two grants at once", Clauses: clauses("A7"), run: oneIDTwoGrants},
		{ID: "A2-order", Title: "a loser finds the winner's operation", Clauses: clauses("A2"), run: loserFindsWinner},
		{ID: "B1-race", Title: "one key reserved by many at once", Clauses: clauses("B1"), run: oneKeyAtOnce},
	}
}

// contest races n admissions of one grant, each under its own id and spread over
// instances, and returns who was admitted. Losers must be refused, not fail [A11].
func (t *Trial) contest(g pawl.Grant, n int, instances []pawl.Store) (won, lost []pawl.Admission) {
	var mu sync.Mutex
	asked := make([]pawl.Admission, n)
	for i := range asked {
		asked[i] = t.admission(g)
	}
	race(n, func(i int) {
		got, err := t.admit(instances[i%len(instances)], asked[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil && got.Fresh:
			won = append(won, asked[i])
			return
		case err == nil:
			t.fail("A2", "an admission under a fresh id was answered as already admitted")
		case !errors.Is(err, pawl.ErrRefused):
			t.fail("A11", "a loser of a race: %v, want refused", err)
		}
		lost = append(lost, asked[i])
	})
	if len(won) != 1 {
		t.fail("A2", "%d of %d racers for one grant were admitted, want exactly 1", len(won), n)
	}
	return won, lost
}

// manyRacers is C-A1, over two instances here; the harness of a store that
// outlives its process runs it over two processes too.
func manyRacers(t *Trial) {
	instances := []pawl.Store{t.a, t.open()}
	for range t.sizes.Grants {
		t.contest(t.grant(), t.sizes.Racers, instances)
	}
}

// twoSessions is C-A2: zero rows is never success [A2].
func twoSessions(t *Trial) {
	instances := []pawl.Store{t.a, t.open()}
	for range t.sizes.Rounds {
		t.contest(t.grant(), 2, instances)
	}
}

func fiveIDs(t *Trial) { t.contest(t.grant(), 5, []pawl.Store{t.a}) }

// losersLeaveNothing is C-A4.
func losersLeaveNothing(t *Trial) {
	won, lost := t.contest(t.grant(), t.sizes.Racers, []pawl.Store{t.a, t.open()})
	for _, a := range lost {
		t.absent("A2", a.OperationID)
		if _, err := t.a.Log(t.ctx, a.OperationID, pawl.AsOperator()); !errors.Is(err, pawl.ErrNotFound) {
			t.fail("A2", "the log of a loser: %v, want not found", err)
		}
	}
	page, err := t.a.List(t.ctx, pawl.Filter{Principal: t.caller, Limit: pawl.MaxPage})
	if err != nil {
		t.stop("S1", "listing a caller's operations: %v", err)
	}
	if len(page.Operations) != len(won) {
		t.fail("A2", "the caller has %d operations after a race with %d winners", len(page.Operations), len(won))
	}
	for _, a := range won {
		tl := t.log(a.OperationID)
		if len(tl.Entries) != 1 || tl.Entries[0].Type != pawl.EntryAdmission {
			t.fail("A10", "the winner's log has %d entries, want the admission's alone", len(tl.Entries))
		}
	}
}

// oneAdmissionAtOnce: whatever the order, one runs and the others join [A8].
func oneAdmissionAtOnce(t *Trial) {
	instances := []pawl.Store{t.a, t.open()}
	for range t.sizes.Rounds {
		a := t.admission(t.grant())
		t.wantOneFresh("A8", "one admission sent at once", 4, func(i int) (pawl.Admitted, error) {
			return t.admit(instances[i%2], a)
		})
	}
}

// oneKeyAtOnce is the same for a reservation [B1].
func oneKeyAtOnce(t *Trial) {
	instances := []pawl.Store{t.a, t.open()}
	for range t.sizes.Rounds {
		r := t.reservation()
		t.wantOneFresh("B1", "one key reserved at once", 4, func(i int) (pawl.Admitted, error) {
			return t.reserve(instances[i%2], r)
		})
	}
}

func (t *Trial) wantOneFresh(clause, what string, n int, call func(int) (pawl.Admitted, error)) {
	var mu sync.Mutex
	fresh := 0
	race(n, func(i int) {
		got, err := call(i)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.fail(clause, "%s: %v, want fresh once and joined else", what, err)
		}
		if got.Fresh {
			fresh++
		}
	})
	if fresh != 1 {
		t.fail(clause, "%s: %d of %d were fresh, want exactly 1", what, fresh, n)
	}
}

// oneIDTwoGrants: the loser's grant is unspent [A7].
func oneIDTwoGrants(t *Trial) {
	instances := []pawl.Store{t.a, t.open()}
	for range t.sizes.Rounds {
		asked := []pawl.Admission{t.admission(t.grant()), t.admission(t.grant())}
		asked[1].OperationID = asked[0].OperationID
		fresh, errs := make([]bool, 2), make([]error, 2)
		race(2, func(i int) {
			got, err := t.admit(instances[i], asked[i])
			fresh[i], errs[i] = got.Fresh, err
		})
		if fresh[0] == fresh[1] {
			t.fail("A7", "one operation id for two grants at once: fresh %v, errors %v, want exactly one admitted", fresh, errs)
			continue
		}
		loser := 0
		if fresh[0] {
			loser = 1
		}
		t.wantClass("A7", "the other grant", errs[loser], pawl.ErrRefused, pawl.ReasonOperationTaken)
		if got, err := t.admit(t.a, t.admission(asked[loser].Grant)); err != nil || !got.Fresh {
			t.fail("A7", "the loser's grant under a fresh id: fresh %v, error %v, want admitted: it was spent", got.Fresh, err)
		}
	}
}

// loserFindsWinner: the claim and the operation appear at one moment. A refusal
// as used before the operation can be read would mean two commits [A2].
func loserFindsWinner(t *Trial) {
	instances := []pawl.Store{t.a, t.open()}
	for range t.sizes.Rounds {
		g := t.grant()
		asked := []pawl.Admission{t.admission(g), t.admission(g)}
		missing := make([]string, 2)
		race(2, func(i int) {
			if _, err := t.admit(instances[i], asked[i]); err == nil || !errors.Is(err, pawl.ErrRefused) {
				return
			}
			if _, err := instances[i].Get(t.ctx, asked[1-i].OperationID, pawl.AsOperator()); err != nil {
				missing[i] = fmt.Sprintf("a loser was told that the grant is used, and the winner's operation: %v", err)
			}
		})
		for _, msg := range missing {
			if msg != "" {
				t.fail("A2", "%s", msg)
			}
		}
	}
}
