package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

// caseTimeout ends a case that hangs; the heaviest take seconds.
const caseTimeout = 5 * time.Minute

// Case is one situation and what must come of it.
type Case struct {
	ID      string   // "C-A1" of the case list, or a name after a clause such as "O3-renewal"
	Title   string   // what happens, in a few words
	Clauses []string // what it carries
	Needs   []Power
	Fresh   bool // it counts what is there, or moves the clock

	timings func(*pawl.Timings) // nil: the defaults
	offset  time.Duration
	run     func(*Trial)
}

// Name is the case's id and title, the name of its subtest.
func (c Case) Name() string { return c.ID + " " + c.Title }

// Cases returns the whole suite, a group of clauses after the other.
func Cases() []Case {
	return slices.Concat(
		admissionCases(), raceCases(), lostAnswerCases(), deadlineCases(), identityCases(), limitCases(),
		reservationCases(), grantCases(), revocationCases(), purgeCases(), statusCases(), epochCases(),
		ownershipCases(), takeoverCases(), settlementCases(), evidenceCases(), orderCases(), logCases(),
		instanceCases(),
	)
}

// Check runs cases, all of them where none are given, and reports what it
// found. An error means that the harness failed, not the store.
func Check(ctx context.Context, h Harness, cases ...Case) (Report, error) {
	if len(cases) == 0 {
		cases = Cases()
	}
	var all Report
	for _, c := range cases {
		r, err := check(ctx, h, c)
		if err != nil {
			return all, fmt.Errorf("storetest: %s on %s: %w", c.ID, h.Name, err)
		}
		all.Violations = append(all.Violations, r.Violations...)
		all.Skips = append(all.Skips, r.Skips...)
		all.Ran += r.Ran
	}
	return all, nil
}

func check(ctx context.Context, h Harness, c Case) (r Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, caseTimeout)
	defer cancel()
	timings := pawl.DefaultTimings()
	if c.timings != nil {
		c.timings(&timings)
	}
	moves := slices.Contains(c.Needs, PowerClock) || slices.Contains(c.Needs, PowerFrozen)
	d, err := h.Deploy(ctx, Config{
		Case: c.ID, Fresh: c.Fresh || moves || c.timings != nil || slices.Contains(c.Needs, PowerRestart),
		Timings: timings, Offset: c.offset,
	})
	if err != nil {
		return Report{}, err
	}
	t := newTrial(ctx, h, c, d, timings)
	defer func() {
		if closeErr := t.close(); err == nil {
			err = closeErr
		}
	}()
	if err := t.start(); err != nil {
		return Report{}, err
	}
	for _, p := range c.Needs {
		if !d.has(p, t.a) {
			return Report{Skips: []Skip{{Case: c.ID, Power: p, Declared: h.Impossible[p]}}}, nil
		}
	}
	err = t.do(c.run)
	return Report{Violations: t.violations, Ran: 1}, err
}

// group gives the cases of one file what they share.
func group(needs []Power, fresh bool, cases ...Case) []Case {
	for i := range cases {
		cases[i].Needs = append(slices.Clone(needs), cases[i].Needs...)
		cases[i].Fresh = cases[i].Fresh || fresh
	}
	return cases
}

// clauses splits "A2 A4".
func clauses(s string) []string { return strings.Fields(s) }
