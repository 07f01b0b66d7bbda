package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pgstore"
	"github.com/pawl-go/pawl/sqlitestore"
)

// checkCommand reads the deployment and says what it promises.
type checkCommand struct {
	storeFlags
	jsonFlag
	PrintConfig bool `help:"Print the configuration in force, secrets masked, and stop."`
}

// checkJSON is the report as --json prints it.
type checkJSON struct {
	Promise  string       `json:"promise"`
	OK       bool         `json:"ok"`
	Engine   string       `json:"engine"`
	StoreID  string       `json:"store_id"`
	Realm    string       `json:"realm"`
	Scope    string       `json:"scope"`
	Clock    string       `json:"clock"`
	Now      time.Time    `json:"now"`
	Survives []string     `json:"survives"`
	Not      []string     `json:"does_not_survive"`
	Epoch    int64        `json:"epoch"`
	Held     string       `json:"purge_held,omitempty"`
	Facts    []factJSON   `json:"facts"`
	Timings  []timingJSON `json:"timings"`
}

type factJSON struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	OK       bool   `json:"ok"`
	Unsafe   bool   `json:"unsafe,omitempty"`
	Declared bool   `json:"declared,omitempty"`
	Fix      string `json:"fix,omitempty"`
}

type timingJSON struct {
	Rule  string `json:"rule"`
	Kind  string `json:"kind,omitempty"`
	Left  string `json:"left"`
	Op    string `json:"op"`
	Right string `json:"right"`
	Holds bool   `json:"holds"`
}

// Run exits with 78 where the deployment is unsafe.
func (c *checkCommand) Run(ctx context.Context, env environment) error {
	if c.PrintConfig {
		return c.printConfig(env)
	}
	timings, err := c.givenTimings()
	if err != nil {
		return err
	}
	facts, err := c.read(ctx, env, timings)
	if err != nil {
		return err
	}
	if err := c.print(env, facts, timings.Inequalities()); err != nil {
		return err
	}
	if facts.Err() != nil {
		return exitError{78}
	}
	return nil
}

// read returns the facts of a deployment, one that the store refuses to open on
// included: then they are those for which it refuses.
func (c *checkCommand) read(ctx context.Context, env environment, timings pawl.Timings) (facts pawl.Facts, err error) {
	if broken, ok := errors.AsType[*pawl.Error](timings.Validate()); ok {
		return pawl.Facts{Scope: pawl.ScopeProcess, Checks: []pawl.Fact{{
			Name: "timings", Value: broken.Note, Unsafe: true, Fix: "change them until every rule below holds",
		}}}, nil
	}
	asked := env.now()
	err = c.with(ctx, env, func(st store) error {
		asked = env.now()
		facts, err = st.Check(ctx)
		return err
	})
	if errors.Is(err, pawl.ErrMisconfigured) {
		seen, failed := c.inspect(ctx, env, &timings)
		if failed != nil || seen.Err() == nil {
			return pawl.Facts{}, err // nothing can be read, or another thing is wrong
		}
		facts, err = seen, nil
	}
	if err == nil && !facts.Now.IsZero() {
		facts.Checks = append(facts.Checks, hostClock(asked, env.now(), facts.Now, timings.IssueSkew))
	}
	return facts, err
}

// inspect reads what can be read without opening the store.
func (c *checkCommand) inspect(ctx context.Context, env environment, timings *pawl.Timings) (pawl.Facts, error) {
	a, err := c.address(env)
	if err != nil {
		return pawl.Facts{}, err
	}
	switch a.scheme {
	case "sqlite":
		return sqlitestore.Inspect(ctx, a.rest, c.sqlite(env, timings))
	case "postgres":
		return pgstore.Inspect(ctx, a.rest, c.postgres(env, timings))
	}
	return pawl.Facts{}, usage("nothing to look at")
}

// hostClock compares this host's clock with the store's. The store decides
// whatever this one shows; but an issuer on this host would date its grants by it,
// and ahead by more than the skew they are refused.
func hostClock(asked, answered, store time.Time, skew time.Duration) pawl.Fact {
	apart := time.Duration(0)
	switch {
	case asked.After(store):
		apart = asked.Sub(store)
	case answered.Before(store):
		apart = answered.Sub(store)
	}
	f := pawl.Fact{Name: "host clock", Value: "within " + answered.Sub(asked).Round(time.Millisecond).String() + " of the store's", OK: true}
	if apart.Abs() <= skew {
		if apart.Abs() >= time.Millisecond {
			f.Value = apart.Round(time.Millisecond).String() + " from the store's"
		}
		return f
	}
	f.OK, f.Unsafe = false, true
	f.Value = apart.Round(time.Second).String() + " from the store's, more than IssueSkew (" + skew.String() + ")"
	f.Fix = "synchronise the clocks: chronyc makestep"
	return f
}

func (c *checkCommand) print(env environment, f pawl.Facts, rules []pawl.Inequality) error {
	if c.JSON {
		return writeJSON(env.out, factsAsJSON(f, rules))
	}
	_, _ = fmt.Fprintf(env.out, "%s\n\n", printable(f.Promise()))
	var rows [][]string
	if f.StoreID != "" {
		rows = append(rows, []string{"ok", "store id", f.StoreID, ""})
	}
	for _, fact := range f.Checks {
		value := fact.Value
		if fact.Declared {
			value += " (declared)"
		}
		rows = append(rows, []string{mark(fact), fact.Name, value, fact.Fix})
	}
	if err := writeTable(env.out, []string{"", "FACT", "VALUE", "TO CHANGE IT"}, rows); err != nil {
		return err
	}
	rows = nil
	for _, q := range rules {
		holds := "ok"
		if !q.Holds() {
			holds = "BROKEN"
		}
		rows = append(rows, []string{holds, q.Kind, q.Rule, q.Values()})
	}
	_, _ = fmt.Fprintln(env.out)
	return writeTable(env.out, []string{"", "KIND", "TIMING RULE", "VALUES"}, rows)
}

func mark(f pawl.Fact) string {
	switch {
	case f.OK:
		return "ok"
	case f.Unsafe:
		return "UNSAFE"
	}
	return "note"
}

func factsAsJSON(f pawl.Facts, rules []pawl.Inequality) checkJSON {
	v := checkJSON{
		Promise: f.Promise(), OK: f.Err() == nil, Engine: f.Engine, StoreID: f.StoreID, Realm: f.Realm,
		Scope: f.Scope.String(), Clock: f.Clock, Now: f.Now.UTC(), Survives: f.Survives, Not: f.Not,
		Epoch: f.Epoch.Number, Held: f.PurgeHeld, Facts: []factJSON{}, Timings: []timingJSON{},
	}
	for _, c := range f.Checks {
		v.Facts = append(v.Facts, factJSON{c.Name, c.Value, c.OK, c.Unsafe, c.Declared, c.Fix})
	}
	for _, q := range rules {
		v.Timings = append(v.Timings, timingJSON{q.Rule, q.Kind, q.Left.String(), q.Op, q.Right.String(), q.Holds()})
	}
	return v
}

// printConfig shows what flags and environment came to.
func (c *checkCommand) printConfig(env environment) error {
	a, err := c.address(env)
	if err != nil {
		return err
	}
	timings, err := c.timings()
	if err != nil {
		return err
	}
	values := map[string]any{"store": a.String(), "realm": c.Realm, "store_id": c.StoreID, "schema": c.Schema, "dev": c.Dev}
	durations := map[string]string{}
	for _, f := range timingFields() {
		durations[f.name] = f.of(timings).String()
	}
	for version, d := range timings.Leeways {
		name := "admission_leeway"
		if version != "" {
			name += "." + version
		}
		durations[name] = d.String()
	}
	durations["max_takeovers"] = strconv.Itoa(timings.Default.MaxTakeovers)
	values["timings"] = durations
	return writeJSON(env.out, values)
}
