package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/timeline"
)

// The incidents.
const (
	IncidentRetry   = "retry"   // a retry lands on the other instance
	IncidentRestart = "restart" // the instance restarts between two presentations
	IncidentCrash   = "crash"   // an instance dies after the credit and before its record
)

// Incidents returns their names, in the order they are shown.
func Incidents() []string { return []string{IncidentRetry, IncidentRestart, IncidentCrash} }

// storeMemory names the local record in the report.
const storeMemory = "memory"

// Issuer signs grants; *jwtgrant.Issuer is one.
type Issuer interface {
	Issue(realm string, now time.Time, r pawl.Issuance) (string, pawl.Grant, error)
}

// Options are what the stage needs. All but the last group is required.
type Options struct {
	// Command returns the command line that runs Serve for a part.
	Command func(part string) []string
	// Now is the wall clock, for dates in the story.
	Now func() time.Time
	// Issuer is the supervisor's: it signs one grant for each run. Keys is its
	// public key set.
	Issuer Issuer
	Keys   json.RawMessage
	// Store names the kind of store in the report.
	Store string
	// Place makes a fresh, empty store for one run. It may be called from any
	// goroutine.
	Place func(ctx context.Context, run, realm string, t *pawl.Timings) (Address, error)
	// Open is that of the Wiring, to read an operation's log with.
	Open func(ctx context.Context, a Address, realm string, t *pawl.Timings) (pawl.Store, error)

	// Incidents to show; none named is all.
	Incidents []string
	// Separate gives every instance process a store of its own, a fault of
	// deployment that the demo must notice.
	Separate bool
	// Out gets the stories, Progress a line that is rewritten while waiting. Nil is
	// nobody.
	Out      io.Writer
	Progress io.Writer
	Colour   bool
}

// Report is how the runs ended.
type Report struct {
	Runs []RunReport `json:"runs"`
	OK   bool        `json:"ok"` // every run ended as claimed
}

// RunReport is one run by the provider's books. Problem says what was not as
// claimed, and is empty where all was.
type RunReport struct {
	Store    string `json:"store"`
	Incident string `json:"incident"`
	Credits  int    `json:"credits"`
	Total    string `json:"total"`
	Problem  string `json:"problem,omitempty"`
}

// result is a run as it is shown.
type result struct {
	RunReport
	plan      plan
	processes string
	story     []event
	books     []bookLine
	operation string // of the crash, with its log as told
	told      []timeline.Line
	state     string
}

// plan is one run and what is claimed of it.
type plan struct {
	store, incident string
	title, about    string
	play            func(ctx context.Context, s *stage) error
	credits         int
	total           string
	verdict         string
}

// runBound ends a run that does not end by itself: longer than any wait in it,
// and shorter than anybody's patience.
const runBound = 28 * time.Second

// Run plays the incidents side by side and shows them in order. The report is
// whole where err is nil; whether the runs ended as claimed is in it. An error is
// one of the setting: a store that cannot be had, or ctx. All processes have
// ended when Run returns.
func Run(ctx context.Context, o *Options) (Report, error) {
	plans, err := choose(o)
	if err != nil {
		return Report{}, err
	}
	stages := make([]*stage, len(plans))
	for i, p := range plans {
		if stages[i], err = newStage(ctx, o, p); err != nil {
			return Report{}, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]chan result, len(plans))
	for i, s := range stages {
		results[i] = make(chan result, 1)
		go func() { results[i] <- s.run(ctx) }() // waited for below
	}
	sc := newScreen(o)
	sc.opening()
	report := Report{OK: true}
	for i, r := range results {
		got := sc.await(r, plans[i], i+1, len(plans))
		if ctx.Err() == nil {
			sc.show(i+1, got)
		}
		report.Runs = append(report.Runs, got.RunReport)
		report.OK = report.OK && got.Problem == ""
	}
	if ctx.Err() != nil {
		return Report{}, fmt.Errorf("demo: broken off: %w", context.Cause(ctx))
	}
	sc.closing(report)
	return report, nil
}

func choose(o *Options) ([]plan, error) {
	if o.Command == nil || o.Now == nil || o.Issuer == nil || o.Place == nil || o.Open == nil || o.Store == "" {
		return nil, errors.New("demo: the options are incomplete")
	}
	for _, name := range o.Incidents {
		if !slices.Contains(Incidents(), name) {
			return nil, fmt.Errorf("demo: there is no incident %q", name)
		}
	}
	chosen := slices.DeleteFunc(plans(o.Store), func(p plan) bool {
		return len(o.Incidents) > 0 && !slices.Contains(o.Incidents, p.incident)
	})
	return chosen, nil
}

// plans are all runs, in the order they are shown.
func plans(store string) []plan {
	const local = "Used grants are noted in an atomic map in the instance's memory: right for one process, while it lives."
	shared := "Used grants, and what they allowed, are recorded by Pawl in one " + engineName(store) + " store that all instances share."
	return []plan{
		{
			store: storeMemory, incident: IncidentRetry, title: "retry, with a record in each process", about: local,
			play: localRetry, credits: 2, total: "500.00",
			verdict: "Both maps are right about their own process; the service as a whole has none.",
		},
		{
			store: storeMemory, incident: IncidentRestart, title: "restart, with a record in the process", about: local,
			play: localRestart, credits: 2, total: "500.00",
			verdict: "The map was right until its process ended; the grant lived on.",
		},
		{
			store: store, incident: IncidentRetry, title: "retry, with Pawl", about: shared,
			play: pawlRetry, credits: 1, total: "250.00",
			verdict: "The second click ran nothing; it was told how the first one stands.",
		},
		{
			store: store, incident: IncidentRestart, title: "restart, with Pawl", about: shared,
			play: pawlRestart, credits: 1, total: "250.00",
			verdict: "The new process reads the same store: the grant is spent, and what it allowed is known.",
		},
		{
			store: store, incident: IncidentCrash, title: "crash, with Pawl", play: pawlCrash, credits: 1, total: "250.00",
			about:   shared + "\n   Billing keeps its answer back here, so that the instance can be killed in between.",
			verdict: "The credit outlived its instance. Recovery looked it up and sent no second call.",
		},
	}
}

func engineName(store string) string {
	switch store {
	case "sqlite":
		return "SQLite"
	case "postgres":
		return "PostgreSQL"
	}
	return store
}
