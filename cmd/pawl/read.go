package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/timeline"
	"github.com/pawl-go/pawl/service"
)

// with opens a store that is there, calls do and closes it. A mistyped path must
// not become a new and empty store that looks safe.
func (f storeFlags) with(ctx context.Context, env environment, do func(store) error) error {
	a, err := f.address(env)
	if err != nil {
		return err
	}
	if a.scheme == "sqlite" && !f.Dev {
		if _, err := os.Stat(a.rest); errors.Is(err, fs.ErrNotExist) {
			return pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonMissing, "there is no store %s; pawl migrate makes one", a)
		}
	}
	f.existing = !f.Dev
	return f.made(ctx, env, do)
}

// made opens a store, and makes it where there is none.
func (f storeFlags) made(ctx context.Context, env environment, do func(store) error) error {
	st, err := f.open(ctx, env)
	if err != nil {
		return err
	}
	return errors.Join(do(st), st.Close())
}

// versionCommand prints the version.
type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(env environment) error {
	_, err := fmt.Fprintln(env.out, "pawl", version())
	return err
}

// newIDCommand prints a fresh operation id.
type newIDCommand struct{}

// Run prints the id: made once for one operation, and repeated by its retries.
func (newIDCommand) Run(env environment) error {
	_, err := fmt.Fprintln(env.out, pawl.NewOperationID())
	return err
}

// statusCommand shows one operation as an operator.
type statusCommand struct {
	storeFlags
	jsonFlag
	ID   string        `arg:"" help:"Operation id."`
	Wait time.Duration `help:"Wait so long for a final status."`
}

// Run shows the operation.
func (c *statusCommand) Run(ctx context.Context, env environment) error {
	id, err := pawl.ParseOperationID(c.ID)
	if err != nil {
		return err
	}
	return c.with(ctx, env, func(st store) error {
		op, err := awaitFinal(ctx, st, id, c.Wait)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(env.out, operationAsJSON(op))
		}
		return writeFields(env.out, operationFields(op)...)
	})
}

// awaitFinal reads until the status is final or the wait is over.
func awaitFinal(ctx context.Context, st store, id pawl.OperationID, wait time.Duration) (pawl.Operation, error) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		op, err := st.Get(ctx, id, pawl.AsOperator())
		if err != nil || op.Status.Final() || wait <= 0 {
			return op, err
		}
		select {
		case <-deadline.C:
			return op, nil
		case <-ctx.Done():
			return op, nil
		case <-look.C:
		}
	}
}

// explainCommand tells an operation's whole timeline.
type explainCommand struct {
	storeFlags
	jsonFlag
	ID string `arg:"" help:"Operation id."`
}

// lineJSON is one sentence as --json prints it.
type lineJSON struct {
	At       time.Time `json:"at"`
	Fence    uint64    `json:"fence,omitempty"`
	Text     string    `json:"text"`
	Inferred bool      `json:"inferred,omitempty"`
	Alarm    bool      `json:"alarm,omitempty"`
}

// Run tells the story from the attempt log [M9].
func (c *explainCommand) Run(ctx context.Context, env environment) error {
	id, err := pawl.ParseOperationID(c.ID)
	if err != nil {
		return err
	}
	return c.with(ctx, env, func(st store) error {
		log, err := st.Log(ctx, id, pawl.AsOperator())
		if err != nil {
			return err
		}
		lines := timeline.Tell(log)
		if c.JSON {
			told := make([]lineJSON, 0, len(lines))
			for _, l := range lines {
				told = append(told, lineJSON{l.At.UTC(), l.Fence, l.Text, l.Inferred, l.Alarm})
			}
			return writeJSON(env.out, map[string]any{
				"operation": operationAsJSON(log.Operation), "timeline": told, "state": timeline.State(log.Operation),
			})
		}
		_, _ = fmt.Fprintf(env.out, "operation %s\n", id)
		printTimeline(env, lines)
		_, err = fmt.Fprintf(env.out, "\n%s\n", timeline.State(log.Operation))
		return err
	})
}

// printTimeline prints one line for each sentence, with the time since the first.
func printTimeline(env environment, lines []timeline.Line) {
	if len(lines) == 0 {
		return
	}
	start := lines[0].At
	_, _ = fmt.Fprintf(env.out, "%s UTC\n\n", when(start))
	for _, l := range lines {
		mark := " "
		switch {
		case l.Alarm:
			mark = "!"
		case l.Inferred:
			mark = "~"
		}
		_, _ = fmt.Fprintf(env.out, "%s %+9.3fs  %s\n", mark, l.At.Sub(start).Seconds(), printable(l.Text))
	}
}

// operationsCommand lists operations.
type operationsCommand struct {
	storeFlags
	jsonFlag
	Status []string `help:"Only of this status; repeatable."`
	Kind   []string `help:"Only of this kind; repeatable."`
	Tenant []string `help:"Only of this tenant; repeatable."`
	Limit  int      `default:"50" help:"Rows of one page."`
	Cursor string   `help:"The page after this cursor."`
}

// Run lists one page, newest first.
func (c *operationsCommand) Run(ctx context.Context, env environment) error {
	f := pawl.Filter{Tenants: c.Tenant, Limit: c.Limit, Cursor: c.Cursor}
	for _, name := range c.Status {
		s, err := pawl.ParseStatus(name)
		if err != nil {
			return err
		}
		f.Statuses = append(f.Statuses, s)
	}
	for _, k := range c.Kind {
		f.Kinds = append(f.Kinds, pawl.Kind(k))
	}
	return c.with(ctx, env, func(st store) error {
		page, err := st.List(ctx, f)
		if err != nil {
			return err
		}
		if c.JSON {
			ops := make([]service.OperationView, 0, len(page.Operations))
			for _, o := range page.Operations {
				ops = append(ops, operationAsJSON(o))
			}
			return writeJSON(env.out, map[string]any{"operations": ops, "next": page.Next})
		}
		var rows [][]string
		for _, o := range page.Operations {
			rows = append(rows, []string{o.ID.String(), o.Status.String(), string(o.Intent.Kind), o.Caller.Principal, o.Caller.Tenant, when(o.CreatedAt)})
		}
		if err := writeTable(env.out, []string{"OPERATION", "STATUS", "KIND", "PRINCIPAL", "TENANT", "CREATED"}, rows); err != nil {
			return err
		}
		return more(env, page.Next)
	})
}

func more(env environment, next string) error {
	if next == "" {
		return nil
	}
	_, err := fmt.Fprintf(env.out, "\nmore: --cursor %s\n", next)
	return err
}

// grantsCommand lists issued grants.
type grantsCommand struct {
	storeFlags
	jsonFlag
	State   string   `enum:",issued,used,revoked,expired" default:"" help:"Only of this state: issued, used, revoked or expired."`
	Subject string   `help:"Only of this subject."`
	Tenant  []string `help:"Only of this tenant; repeatable."`
	Limit   int      `default:"50" help:"Rows of one page."`
	Cursor  string   `help:"The page after this cursor."`
}

// grantJSON is a grant as --json prints it.
type grantJSON struct {
	Issuer    string                `json:"issuer"`
	Namespace string                `json:"namespace,omitempty"`
	GrantID   string                `json:"grant_id"`
	Form      string                `json:"form"`
	State     pawl.GrantRecordState `json:"state"`
	Subject   string                `json:"subject"`
	Tenant    string                `json:"tenant"`
	Kind      pawl.Kind             `json:"kind"`
	IssuedAt  time.Time             `json:"issued_at"`
	ExpiresAt time.Time             `json:"expires_at"`
	Operation string                `json:"operation,omitempty"`
	RevokedBy string                `json:"revoked_by,omitempty"`
	Reason    string                `json:"reason,omitempty"`
}

func grantAsJSON(g pawl.GrantRecord) grantJSON {
	v := grantJSON{
		Issuer: g.Grant.Key.Issuer, Namespace: g.Grant.Key.Namespace, GrantID: g.Grant.Key.ID, Form: g.Grant.Form.String(),
		State: g.State, Subject: g.Grant.Subject, Tenant: g.Grant.Tenant, Kind: g.Grant.Intent.Kind,
		IssuedAt: g.Grant.IssuedAt.UTC(), ExpiresAt: g.Grant.ExpiresAt.UTC(), RevokedBy: g.RevokedBy, Reason: g.Reason,
	}
	if !g.Operation.IsZero() {
		v.Operation = g.Operation.String()
	}
	return v
}

// Run lists one page, newest first.
func (c *grantsCommand) Run(ctx context.Context, env environment) error {
	f := pawl.GrantFilter{
		State: pawl.GrantRecordState(c.State), Subject: c.Subject, Tenants: c.Tenant, Limit: c.Limit, Cursor: c.Cursor,
	}
	return c.with(ctx, env, func(st store) error {
		page, err := st.Grants(ctx, f)
		if err != nil {
			return err
		}
		grants := make([]grantJSON, 0, len(page.Grants))
		var rows [][]string
		for _, g := range page.Grants {
			v := grantAsJSON(g)
			grants = append(grants, v)
			rows = append(rows, []string{v.GrantID, string(v.State), v.Form, string(v.Kind), v.Subject, when(v.ExpiresAt), v.Operation})
		}
		if c.JSON {
			return writeJSON(env.out, map[string]any{"grants": grants, "next": page.Next})
		}
		if err := writeTable(env.out, []string{"GRANT", "STATE", "FORM", "KIND", "SUBJECT", "EXPIRES", "OPERATION"}, rows); err != nil {
			return err
		}
		return more(env, page.Next)
	})
}
