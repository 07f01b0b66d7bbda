package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/demo"
	"github.com/pawl-go/pawl/jwtgrant"
	"github.com/pawl-go/pawl/pgstore"
	"github.com/pawl-go/pawl/sqlitestore"
)

// demoCommand shows what Pawl is for, in processes of this binary. It takes no
// store from the environment: a demonstration has no business in one that is in
// use.
type demoCommand struct {
	Store    string   `placeholder:"URL" help:"Run Pawl's half on this PostgreSQL, postgres://…, in schemas of its own that are dropped afterwards. Otherwise it is SQLite in a temporary directory."`
	Incident []string `enum:"retry,restart,crash" default:"retry,restart,crash" help:"Only this incident: retry, restart or crash; repeatable."`
	JSON     bool     `help:"Answer with one JSON object and nothing else."`

	SeparateStores bool   `hidden:"" help:"Give every instance a store of its own: a fault that the demo must notice."`
	Part           string `hidden:"" enum:",provider,instance,gateway" default:"" help:"Be one process of the demo, configured on standard input."`
}

// exitInterrupted is what shells report of a process that a signal ended.
const exitInterrupted = 130

// Run plays the incidents; the exit code is 1 where one did not end as claimed.
func (c *demoCommand) Run(ctx context.Context, env environment) error {
	if c.Part != "" {
		return demo.Serve(ctx, c.Part, env.in, env.out, demo.Wiring{Now: time.Now, Open: openDemoStore, Trust: trustDemoIssuer})
	}
	places, err := newDemoPlaces(c.Store)
	if err != nil {
		return err
	}
	report, err := c.play(ctx, env, places)
	if ctx.Err() != nil {
		_, _ = fmt.Fprintln(env.err, "interrupted; all processes of the demo have ended")
		err = exitError{exitInterrupted}
	}
	if err = errors.Join(err, places.clean(ctx)); err != nil {
		return err
	}
	if c.JSON {
		if err := json.NewEncoder(env.out).Encode(report); err != nil {
			return err
		}
	}
	for _, r := range report.Runs {
		if r.Problem != "" {
			_, _ = fmt.Fprintf(env.err, "%s/%s did not end as claimed: %s\n", r.Store, r.Incident, r.Problem)
		}
	}
	if !report.OK {
		return exitError{1}
	}
	return nil
}

func (c *demoCommand) play(ctx context.Context, env environment, places *demoPlaces) (demo.Report, error) {
	binary, err := os.Executable()
	if err != nil {
		return demo.Report{}, err
	}
	issuer, keys, err := newDemoIssuer()
	if err != nil {
		return demo.Report{}, err
	}
	o := &demo.Options{
		Command: func(part string) []string { return []string{binary, "demo", "--part", part} },
		Now:     time.Now, Issuer: issuer, Keys: keys,
		Store: places.name(), Place: places.place, Open: openDemoStore,
		Incidents: c.Incident, Separate: c.SeparateStores,
	}
	if !c.JSON {
		o.Out, o.Colour = env.out, isTerminal(env.out, env.get)
	}
	if isTerminal(env.err, notColour(env.get)) {
		o.Progress = env.err
	}
	return demo.Run(ctx, o)
}

// notColour hides NO_COLOR: a line that is rewritten is no colour.
func notColour(get func(string) string) func(string) string {
	return func(name string) string {
		if name == "NO_COLOR" {
			return ""
		}
		return get(name)
	}
}

// newDemoIssuer is the supervisor, with a key that lives as long as the demo.
func newDemoIssuer() (*jwtgrant.Issuer, json.RawMessage, error) {
	key, err := jwtgrant.GenerateKey(jwtgrant.EdDSA)
	if err != nil {
		return nil, nil, err
	}
	set, err := jwtgrant.NewKeySet(key.Public())
	if err != nil {
		return nil, nil, err
	}
	published, err := json.Marshal(set)
	if err != nil {
		return nil, nil, err
	}
	issuer, err := jwtgrant.NewIssuer(demo.IssuerName, key, nil)
	return issuer, published, err
}

// trustDemoIssuer is what every instance trusts: the supervisor's public keys.
func trustDemoIssuer(realm string, keys json.RawMessage) (pawl.Verifier, error) {
	set, err := jwtgrant.ParseKeySet(keys)
	if err != nil {
		return nil, err
	}
	return jwtgrant.NewVerifier(realm, []jwtgrant.TrustedIssuer{{Name: demo.IssuerName, Keys: set}}, nil)
}

func openDemoStore(ctx context.Context, a demo.Address, realm string, t *pawl.Timings) (pawl.Store, error) {
	if path, ok := strings.CutPrefix(a.URL, "sqlite:"); ok {
		return sqlitestore.Open(ctx, path, &sqlitestore.Options{Realm: realm, Timings: t})
	}
	return pgstore.Open(ctx, a.URL, &pgstore.Options{Schema: a.Schema, Realm: realm, Timings: t, AdmissionConns: 2, Conns: 2})
}

// demoPlaces are the stores of one demonstration: files in a directory of its
// own, or schemas of its own on a server.
type demoPlaces struct {
	dir    string
	server string
	suffix string

	mu      sync.Mutex
	schemas []string
}

func newDemoPlaces(store string) (*demoPlaces, error) {
	if store != "" {
		if scheme, _, ok := strings.Cut(store, "://"); !ok || (scheme != "postgres" && scheme != "postgresql") {
			return nil, usage("--store is postgres://…; without it the demo makes an SQLite file of its own")
		}
		return &demoPlaces{server: store, suffix: strings.ToLower(rand.Text()[:12])}, nil
	}
	dir, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return nil, pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonMissing, "no temporary directory: %w", err)
	}
	return &demoPlaces{dir: dir}, nil
}

func (p *demoPlaces) name() string {
	if p.server != "" {
		return "postgres"
	}
	return "sqlite"
}

// place makes the store of one run.
func (p *demoPlaces) place(ctx context.Context, run, realm string, t *pawl.Timings) (demo.Address, error) {
	if p.server == "" {
		return demo.Address{URL: "sqlite:" + filepath.Join(p.dir, run+".db")}, nil
	}
	schema := "pawl_demo_" + p.suffix + "_" + run
	p.mu.Lock()
	p.schemas = append(p.schemas, schema)
	p.mu.Unlock()
	err := pgstore.Migrate(ctx, p.server, &pgstore.Options{Schema: schema, Realm: realm, Timings: t})
	return demo.Address{URL: p.server, Schema: schema}, err
}

// clean removes all of them, also after an interruption.
func (p *demoPlaces) clean(ctx context.Context) (err error) {
	if p.server == "" {
		return os.RemoveAll(p.dir)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.server)
	if err != nil {
		return pawl.Errorf(pawl.ErrUnavailable, pawl.ReasonUnreachable, "the schemas %s may be left", strings.Join(p.schemas, ", "))
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	for _, schema := range p.schemas {
		if _, err := conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); err != nil {
			return pawl.Errorf(pawl.ErrUnavailable, pawl.ReasonUnreachable, "the schema %s could not be dropped: %w", schema, err)
		}
	}
	return nil
}
