package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/pgstore"
	"github.com/pawl-go/pawl/sqlitestore"
)

// purgeCommand deletes what retention no longer needs, batch by batch.
type purgeCommand struct {
	storeFlags
	jsonFlag
	Batch int  `default:"1000" help:"Rows of one batch, 1 to 10000."`
	Once  bool `help:"One batch only."`
}

// purgeJSON is a report as --json prints it.
type purgeJSON struct {
	Refusals   int    `json:"refusals"`
	Grants     int    `json:"grants"`
	Operations int    `json:"operations"`
	Attempts   int    `json:"attempts"`
	Results    int    `json:"results"`
	More       bool   `json:"more"`
	Overdue    string `json:"oldest_overdue"`
	Held       string `json:"held,omitempty"`
	Stale      int    `json:"stale_operations"`
}

// Run purges until nothing is due, and may be stopped and run again at any time
// [P4].
func (c *purgeCommand) Run(ctx context.Context, env environment) error {
	if c.Batch < 1 || c.Batch > 10_000 {
		return usage("--batch is not 1 to 10000")
	}
	return c.with(ctx, env, func(st store) error {
		var total pawl.PurgeReport
		for {
			report, err := st.Purge(ctx, pawl.PurgeBatch{Limit: c.Batch})
			if err != nil { // what was deleted is told, and what was known
				report.More, report.Held, report.Stale = true, total.Held, total.Stale
				report.Overdue = max(report.Overdue, total.Overdue)
				return errors.Join(c.print(env, total.Add(report)), err)
			}
			total = total.Add(report)
			if c.Once || !report.More || ctx.Err() != nil {
				break
			}
			if c.Verbose {
				_, _ = fmt.Fprintf(env.err, "deleted %d refusal records, %d operations, %d log entries\n",
					total.Refusals, total.Operations, total.Attempts)
			}
		}
		return c.print(env, total)
	})
}

func (c *purgeCommand) print(env environment, r pawl.PurgeReport) error {
	if c.JSON {
		return writeJSON(env.out, purgeJSON{
			r.Refusals, r.Grants, r.Operations, r.Attempts, r.Results, r.More, r.Overdue.String(), r.Held, r.Stale,
		})
	}
	if err := writeTable(env.out, []string{"WHAT", "ROWS"}, [][]string{
		{"refusal records deleted", fmt.Sprint(r.Refusals)},
		{"grants deleted", fmt.Sprint(r.Grants)},
		{"operations deleted", fmt.Sprint(r.Operations)},
		{"log entries deleted", fmt.Sprint(r.Attempts)},
		{"results cleared", fmt.Sprint(r.Results)},
	}); err != nil {
		return err
	}
	if r.Held != "" {
		_, _ = fmt.Fprintf(env.out, "\nrefusal records are kept: %s\n", printable(r.Held))
	}
	if r.Overdue > 0 {
		_, _ = fmt.Fprintf(env.out, "oldest refusal record left is overdue by %v\n", r.Overdue.Round(time.Second))
	}
	if r.Stale > 0 {
		_, _ = fmt.Fprintf(env.out, "ALARM: %d operations are older than every retention and not settled: let a gate recover them, or settle with pawl resolve\n", r.Stale)
	}
	return nil
}

// restoredCommand raises the epoch after a restore from backup [A12].
type restoredCommand struct {
	storeFlags
	jsonFlag
}

// Run raises the epoch.
func (c *restoredCommand) Run(ctx context.Context, env environment) error {
	return c.with(ctx, env, func(st store) error {
		e, err := st.RaiseEpoch(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(env.out, map[string]any{"epoch": e.Number, "refuses_issued_before": e.IssuedNotBefore.UTC()})
		}
		_, err = fmt.Fprintf(env.out, "epoch %d: every grant issued before %s UTC is refused; issue new ones from then on\n",
			e.Number, when(e.IssuedNotBefore))
		return err
	})
}

// eraseCommand removes personal content of one principal's settled operations.
type eraseCommand struct {
	storeFlags
	jsonFlag
	who
	Principal string `required:"" help:"Whose operations."`
	Tenant    string `help:"Tenant of the principal."`
	Authority string `help:"Authentication issuer of the principal."`
	Reason    string `required:"" help:"Why, kept in the operations' timelines."`
	Yes       bool   `help:"Really do it: what is erased cannot be brought back."`
}

// Run erases in bounded transactions until nothing is left to erase.
func (c *eraseCommand) Run(ctx context.Context, env environment) error {
	if c.Reason == "" {
		return usage("--reason is empty")
	}
	if !c.Yes {
		return usage("what is erased cannot be brought back; say --yes")
	}
	return c.with(ctx, env, func(st store) error {
		var erased int
		for {
			report, err := st.Erase(ctx, pawl.Erasure{
				Caller: pawl.Caller{Principal: c.Principal, Tenant: c.Tenant, Authority: c.Authority}, By: c.By, Reason: c.Reason,
			})
			if err != nil {
				return err
			}
			erased += report.Erased
			if report.More && ctx.Err() == nil {
				continue
			}
			if c.JSON {
				return writeJSON(env.out, map[string]any{"erased": erased, "unsettled": report.Unsettled, "more": report.More})
			}
			_, err = fmt.Fprintf(env.out, "erased %d operations; %d are not settled and were left alone\n", erased, report.Unsettled)
			return err
		}
	})
}

// migrateCommand creates or upgrades a schema.
type migrateCommand struct {
	storeFlags
	Print       bool `help:"Print the SQL and change nothing (PostgreSQL)."`
	After       int  `help:"With --print: from the tables of this version; 0 is none."`
	AdoptPolicy bool `help:"Replace the timings that stand in the store; no instance may run."`
}

// Run migrates. A database owner runs it once; afterwards instances need no
// right to change the schema.
func (c *migrateCommand) Run(ctx context.Context, env environment) error {
	if c.Print {
		sql, err := pgstore.MigrationSQL(c.Schema, c.After)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(env.out, sql)
		return err
	}
	a, err := c.address(env)
	if err != nil {
		return err
	}
	timings, err := c.timings()
	if err != nil {
		return err
	}
	var before pawl.Facts
	unseen := errors.New("nothing is adopted")
	if c.AdoptPolicy {
		before, unseen = c.inspect(ctx, env, timings)
	}
	st, err := c.migrate(ctx, env, a, timings)
	if err != nil {
		return err
	}
	facts, err := st.Check(ctx)
	if err = errors.Join(err, st.Close()); err != nil {
		return err
	}
	if unseen == nil {
		var changed []string
		for _, c := range before.Policy.Changes(facts.Policy) {
			changed = append(changed, fmt.Sprintf("%s is %v before and %v now", c.Name, c.From, c.To))
		}
		if changed != nil {
			_, _ = fmt.Fprintf(env.out, "adopted; before and now: %s\n", strings.Join(changed, "; "))
		}
	}
	_, err = fmt.Fprintf(env.out, "ready: store %s, realm %s\n", facts.StoreID, facts.Realm)
	return err
}

func (c *migrateCommand) migrate(ctx context.Context, env environment, a storeAddress, timings *pawl.Timings) (store, error) {
	switch a.scheme {
	case "sqlite":
		o := c.sqlite(env, timings)
		o.AdoptPolicy = c.AdoptPolicy
		return sqlitestore.Open(ctx, a.rest, o)
	case "postgres":
		o := c.postgres(env, timings)
		o.AdoptPolicy, o.Migrate = c.AdoptPolicy, true
		return pgstore.Open(ctx, a.rest, o)
	}
	return nil, usage("a memory store has no schema")
}
