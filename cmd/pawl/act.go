package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

// who is the person a command acts for, in records that are kept.
type who struct {
	By string `env:"PAWL_BY,USER" default:"operator" help:"Who does this, for the record."`
}

// intentFlags name what is approved or done.
type intentFlags struct {
	Kind    string `required:"" help:"Kind of effect, such as credit.create."`
	Details string `required:"" placeholder:"JSON" help:"Details, one JSON object; - reads standard input."`
}

func (f intentFlags) intent(env environment) (pawl.Intent, error) {
	raw := []byte(f.Details)
	if f.Details == "-" {
		var err error
		if raw, err = io.ReadAll(io.LimitReader(env.in, 1<<20)); err != nil {
			return pawl.Intent{}, usage("standard input could not be read")
		}
	}
	details, err := pawl.ParseDetails(raw)
	if err != nil {
		return pawl.Intent{}, err
	}
	i := pawl.Intent{Kind: pawl.Kind(f.Kind), Details: details}
	return i, i.Validate()
}

// issueCommand issues a grant.
type issueCommand struct {
	storeFlags
	jsonFlag
	intentFlags
	issuerFlags
	RequestID string        `help:"Repeat a request under its id and get the same grant; one is made where it is empty."`
	Subject   string        `required:"" help:"Principal the grant is for."`
	Tenant    string        `help:"Tenant of the subject."`
	Authority string        `help:"Authentication issuer of the subject."`
	Lifetime  time.Duration `default:"15m" help:"How long it may be admitted, whole seconds."`
	Form      string        `enum:"token,stored" default:"token" help:"token (signed) or stored (a row)."`
}

// Run writes the grant's row and, for a token, signs it.
func (c *issueCommand) Run(ctx context.Context, env environment) error {
	form, err := pawl.ParseForm(c.Form)
	if err != nil {
		return err
	}
	intent, err := c.intent(env)
	if err != nil {
		return err
	}
	return c.made(ctx, env, func(st store) error {
		a, err := c.authority(ctx, env, st, c.storeFlags)
		if err != nil {
			return err
		}
		request := c.RequestID
		if request == "" {
			request = "pawl-issue-" + pawl.NewOperationID().String()
		}
		got, err := st.Issue(ctx, pawl.Issuance{
			RequestID: request, Form: form, Issuer: a.name, Subject: c.Subject, Tenant: c.Tenant, Authority: c.Authority,
			Intent: intent, Lifetime: c.Lifetime, GrantID: pawl.NewOperationID().String(),
		})
		if err != nil {
			return err
		}
		token := ""
		if form == pawl.FormToken {
			if token, err = a.sign(got.Grant); err != nil {
				return err
			}
		}
		return c.print(env, got.Grant, token)
	})
}

func (c *issueCommand) print(env environment, g pawl.Grant, token string) error {
	if c.JSON {
		return writeJSON(env.out, struct {
			Issuer    string    `json:"issuer"`
			GrantID   string    `json:"grant_id"`
			Token     string    `json:"token,omitempty"`
			ExpiresAt time.Time `json:"expires_at"`
		}{g.Key.Issuer, g.Key.ID, token, g.ExpiresAt.UTC()})
	}
	return writeFields(env.out,
		field{"grant", g.Key.ID}, field{"issuer", g.Key.Issuer}, field{"expires", when(g.ExpiresAt)}, field{"token", token})
}

// grantFlags name a grant: its token, or the key of a stored one.
type grantFlags struct {
	Token     string `help:"Signed grant; - reads standard input."`
	Issuer    string `help:"Issuer of a stored grant."`
	Namespace string `help:"Namespace of a stored grant."`
	GrantID   string `help:"Id of a stored grant."`
}

func (f grantFlags) named(env environment) (token string, key pawl.GrantKey, err error) {
	key = pawl.GrantKey{Issuer: f.Issuer, Namespace: f.Namespace, ID: f.GrantID}
	token = f.Token
	if token == "-" {
		raw, err := io.ReadAll(io.LimitReader(env.in, 1<<20))
		if err != nil {
			return "", key, usage("standard input could not be read")
		}
		token = strings.TrimSpace(string(raw))
	}
	if (token == "") == key.IsZero() {
		return "", key, usage("name the grant with --token, or with --issuer and --grant-id")
	}
	return token, key, nil
}

// admitCommand admits a grant for an operation that its caller performs itself.
type admitCommand struct {
	storeFlags
	jsonFlag
	intentFlags
	grantFlags
	trustFlags
	OperationID string   `required:"" help:"Id of the operation; repeat it to retry."`
	Principal   string   `required:"" help:"Caller."`
	Tenant      string   `help:"Tenant of the caller."`
	Authority   string   `help:"Authentication issuer of the caller."`
	Scope       []string `help:"Scope of the caller; repeatable."`
	Generation  string   `help:"Generation of the caller's session."`
}

// Run prints the ownership once: whoever holds the owner token may act. Only a
// fresh admission exits with 0.
func (c *admitCommand) Run(ctx context.Context, env environment) error {
	id, err := pawl.ParseOperationID(c.OperationID)
	if err != nil {
		return err
	}
	token, key, err := c.named(env)
	if err != nil {
		return err
	}
	intent, err := c.intent(env)
	if err != nil {
		return err
	}
	return c.with(ctx, env, func(st store) (err error) {
		gate, err := c.gate(ctx, env, st, c.storeFlags)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, gate.Close()) }()
		got, err := gate.Admit(ctx, pawl.Request{
			Token: token, Stored: key, OperationID: id, Kind: intent.Kind, Details: intent.Details.JSON(),
			Caller: pawl.Caller{
				Principal: c.Principal, Tenant: c.Tenant, Authority: c.Authority, Scopes: c.Scope, Generation: c.Generation,
			},
		})
		if err != nil {
			return err
		}
		if err := c.print(env, got); err != nil || got.Fresh {
			return err
		}
		return exitError{exitAlreadyAdmitted}
	})
}

// exitAlreadyAdmitted is the exit code of an admission that reports an earlier
// one, so that "pawl admit && perform" performs once [A8].
const exitAlreadyAdmitted = 8

func (c *admitCommand) print(env environment, got pawl.Admitted) error {
	outcome := "already_admitted"
	if got.Fresh {
		outcome = "admitted"
	}
	if c.JSON {
		v := map[string]any{"outcome": outcome, "operation": operationAsJSON(got.Operation)}
		if got.Fresh {
			v["owner"] = map[string]any{
				"fence": got.Owner.Fence, "owner_token": string(got.Owner.Token),
				"lease_until": got.Owner.LeaseUntil.UTC(), "submit_by": got.Owner.SubmitBy.UTC(),
			}
		} else {
			v["attempt_token"] = string(got.Owner.Token)
		}
		return writeJSON(env.out, v)
	}
	fields := append([]field{{"outcome", outcome}}, operationFields(got.Operation)...)
	if got.Fresh {
		return writeFields(env.out, append(fields, field{"owner token", string(got.Owner.Token)})...)
	}
	return writeFields(env.out, append(fields, field{"attempt token", string(got.Owner.Token)})...)
}

// revokeCommand withdraws one grant, or every unused stored grant of one subject
// for one intent.
type revokeCommand struct {
	storeFlags
	jsonFlag
	grantFlags
	trustFlags
	who
	Reason  string `required:"" help:"Why, kept for ever."`
	Subject string `help:"With --kind and --details: every unused stored grant of this subject for that intent."`
	Tenant  string `help:"Tenant of the subject."`
	Kind    string `help:"Kind of the intent."`
	Details string `help:"Details of the intent."`
}

// Run says what the revocation found [R1].
func (c *revokeCommand) Run(ctx context.Context, env environment) error {
	if c.Subject != "" {
		return c.byIntent(ctx, env)
	}
	token, key, err := c.named(env)
	if err != nil {
		return err
	}
	return c.with(ctx, env, func(st store) (err error) {
		gate, err := c.gate(ctx, env, st, c.storeFlags)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, gate.Close()) }()
		state, key, err := gate.Revoke(ctx, pawl.RevokeRequest{Token: token, Key: key, By: c.By, Reason: c.Reason})
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(env.out, map[string]string{"state": string(state), "issuer": key.Issuer, "grant_id": key.ID})
		}
		return writeFields(env.out, field{"grant", key.ID}, field{"state", string(state)})
	})
}

func (c *revokeCommand) byIntent(ctx context.Context, env environment) error {
	intent, err := intentFlags{Kind: c.Kind, Details: c.Details}.intent(env)
	if err != nil {
		return err
	}
	return c.with(ctx, env, func(st store) error {
		n, err := st.RevokeIntent(ctx, pawl.IntentRevocation{
			Issuer: c.Issuer, Subject: c.Subject, Tenant: c.Tenant, Intent: intent, By: c.By, Reason: c.Reason,
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(env.out, map[string]int{"revoked": n})
		}
		_, err = fmt.Fprintf(env.out, "revoked %d\n", n)
		return err
	})
}

// resolveCommand settles what waits for a person.
type resolveCommand struct {
	storeFlags
	jsonFlag
	who
	ID     string `arg:"" help:"Operation id."`
	Status string `enum:"succeeded,failed" required:"" help:"succeeded or failed."`
	Result string `help:"Result of a success, kept as it is written."`
	Note   string `required:"" help:"Why, kept for ever."`
}

// Run decides through the evidence door [M8].
func (c *resolveCommand) Run(ctx context.Context, env environment) error {
	id, err := pawl.ParseOperationID(c.ID)
	if err != nil {
		return err
	}
	out := pawl.Succeeded(c.Result)
	if c.Status == "failed" {
		if c.Result != "" {
			return usage("only a success has a result")
		}
		out = pawl.Failed(c.Note)
	}
	return c.with(ctx, env, func(st store) error {
		timings, err := c.timings()
		if err != nil {
			return err
		}
		gate, err := pawl.New(ctx, st, nil, &pawl.Config{Timings: timings})
		if err != nil {
			return err
		}
		op, err := gate.Resolve(ctx, pawl.Resolution{ID: id, Outcome: out, By: c.By, Note: c.Note})
		if err = errors.Join(err, gate.Close()); err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(env.out, operationAsJSON(op))
		}
		return writeFields(env.out, operationFields(op)...)
	})
}
