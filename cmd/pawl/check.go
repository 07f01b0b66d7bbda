package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-go/pawl"
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
	Engine   string       `json:"engine,omitempty"` // this and the next are absent where they cannot be read
	StoreID  string       `json:"store_id,omitempty"`
	Realm    string       `json:"realm,omitempty"`
	Scope    string       `json:"scope,omitempty"`
	Clock    string       `json:"clock,omitempty"`
	Now      *time.Time   `json:"now,omitempty"`
	Survives []string     `json:"survives,omitempty"` // of a safe deployment only
	Not      []string     `json:"does_not_survive,omitempty"`
	Epoch    *int64       `json:"epoch,omitempty"`
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

// read returns the facts of a deployment, one that no store opens on included.
// Nothing is opened for use and nothing changes.
func (c *checkCommand) read(ctx context.Context, env environment, timings pawl.Timings) (pawl.Facts, error) {
	broken, _ := errors.AsType[*pawl.Error](timings.Validate())
	given := timings
	if broken != nil {
		timings = pawl.DefaultTimings() // something must be read with
	}
	asked := env.now()
	facts, err := c.inspect(ctx, env, &timings)
	if unfit, ok := errors.AsType[*pawl.Error](err); ok && errors.Is(err, pawl.ErrMisconfigured) {
		facts, err = pawl.Facts{Scope: pawl.ScopeProcess, Checks: []pawl.Fact{{Name: "store", Value: unfit.Note, Unsafe: true}}}, nil
	}
	if err != nil {
		return pawl.Facts{}, err
	}
	if broken != nil {
		facts.Checks = slices.DeleteFunc(facts.Checks, func(f pawl.Fact) bool { return f.Name == pawl.PolicyFact })
		facts.Checks = append(facts.Checks, pawl.Fact{
			Name: "timings", Value: broken.Note, Unsafe: true, Fix: "change them with --timing until every rule below holds",
		})
	}
	if !facts.Now.IsZero() {
		facts.Checks = append(facts.Checks, hostClock(asked, env.now(), facts.Now, given.IssueSkew))
	}
	return facts, nil
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
		rows = append(rows, []string{"ok", "store id", f.StoreID, ""}, []string{"ok", "epoch", epoch(f.Epoch), ""})
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

// epoch tells whether the store was restored from a backup, and what that refuses.
func epoch(e pawl.Epoch) string {
	if e.Number == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: grants issued before %s UTC are refused", e.Number, when(e.IssuedNotBefore))
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
		Promise: f.Promise(), OK: f.Err() == nil, Engine: f.Engine, Held: f.PurgeHeld, Facts: []factJSON{}, Timings: []timingJSON{},
	}
	if f.StoreID != "" {
		now := f.Now.UTC()
		v.StoreID, v.Realm, v.Scope, v.Clock, v.Now, v.Epoch = f.StoreID, f.Realm, f.Scope.String(), f.Clock, &now, &f.Epoch.Number
	}
	if v.OK {
		v.Survives, v.Not = f.Survives, f.Not
	}
	for _, c := range f.Checks {
		v.Facts = append(v.Facts, factJSON{c.Name, c.Value, c.OK, c.Unsafe, c.Declared, c.Fix})
	}
	for _, q := range rules {
		left, right := q.Left.String(), q.Right.String()
		if q.Count {
			left, right = strconv.Itoa(int(q.Left)), strconv.Itoa(int(q.Right))
		}
		v.Timings = append(v.Timings, timingJSON{q.Rule, q.Kind, left, q.Op, right, q.Holds()})
	}
	return v
}

// printConfig shows what flags and environment came to.
func (c *checkCommand) printConfig(env environment) error {
	a, err := c.address(env)
	if err != nil {
		return err
	}
	timings, err := c.givenTimings()
	if err != nil {
		return err
	}
	values := map[string]any{
		"store": a.String(), "realm": c.Realm, "store_id": c.StoreID, "schema": c.Schema, "dev": c.Dev,
		"replicated": c.Replicated, "pins": c.Pins,
	}
	durations := map[string]string{}
	for _, f := range timingFields() {
		durations[f.name] = f.of(&timings).String()
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
