package main

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memstore"
	"github.com/pawl-go/pawl/pgstore"
	"github.com/pawl-go/pawl/sqlitestore"
)

// store is everything a store of this binary can do.
type store interface {
	pawl.Store
	pawl.GrantBook
	pawl.Keeper
}

// storeFlags name the store and how it is opened.
type storeFlags struct {
	Store      string   `env:"PAWL_STORE" placeholder:"URL" help:"Store: sqlite:PATH, postgres://… or memory: (with --dev only)."`
	Dev        bool     `help:"Development: an SQLite file in the data directory by default, and the issuer pawl-dev."`
	Realm      string   `env:"PAWL_REALM" help:"Realm of a new store; for an existing one it must be this."`
	StoreID    string   `env:"PAWL_STORE_ID" placeholder:"UUID" help:"Refuse any other store than this one."`
	Schema     string   `env:"PAWL_SCHEMA" default:"pawl" help:"Schema, PostgreSQL only."`
	Replicated bool     `env:"PAWL_REPLICATED" help:"PostgreSQL: admit only while the commit waits for a standby."`
	Pins       string   `env:"PAWL_PINS" enum:"startup,role" default:"startup" help:"PostgreSQL: how settings get onto connections: startup parameters, or role (set by ALTER ROLE or the pooler)."`
	Timing     []string `env:"PAWL_TIMING" placeholder:"FIELD=DURATION" help:"Change one timing; repeatable."`
	Verbose    bool     `short:"v" help:"Log to standard error."`

	existing bool // nothing is made
}

// storeAddress is a store as flags name it.
type storeAddress struct {
	scheme string // sqlite, postgres or memory
	rest   string // path or connection string
}

// address reads --store. Nothing is assumed without --dev.
func (f storeFlags) address(env environment) (storeAddress, error) {
	if f.Store == "" && !f.Dev {
		return storeAddress{}, usage("name the store with --store or PAWL_STORE (or use --dev)")
	}
	if f.Store == "" {
		dir, err := dataDir(env)
		if err != nil {
			return storeAddress{}, err
		}
		return storeAddress{"sqlite", filepath.Join(dir, "pawl.db")}, nil
	}
	scheme, rest, ok := strings.Cut(f.Store, ":")
	switch {
	case ok && scheme == "sqlite" && rest != "":
		return storeAddress{"sqlite", strings.TrimPrefix(rest, "//")}, nil
	case ok && (scheme == "postgres" || scheme == "postgresql"):
		return storeAddress{"postgres", f.Store}, nil
	case ok && scheme == "memory" && rest == "":
		if !f.Dev {
			return storeAddress{}, usage("memory: forgets every grant at exit; it needs --dev")
		}
		return storeAddress{"memory", ""}, nil
	}
	return storeAddress{}, usage("--store is sqlite:PATH, postgres://… or memory:")
}

// String names the store. Of a connection string it has what is known to be no
// secret, and nothing else.
func (a storeAddress) String() string {
	if a.scheme != "postgres" {
		return a.scheme + ":" + a.rest
	}
	c, err := pgconn.ParseConfig(a.rest)
	if err != nil {
		return "postgres: a connection string that cannot be read"
	}
	u := url.URL{Scheme: "postgres", Host: net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), Path: c.Database}
	if c.User != "" {
		u.User = url.User(c.User)
	}
	return u.String()
}

// open opens the store that the flags name.
func (f storeFlags) open(ctx context.Context, env environment) (store, error) {
	a, err := f.address(env)
	if err != nil {
		return nil, err
	}
	timings, err := f.timings()
	if err != nil {
		return nil, err
	}
	return f.openAt(ctx, env, a, timings)
}

func (f storeFlags) openAt(ctx context.Context, env environment, a storeAddress, timings *pawl.Timings) (store, error) {
	switch a.scheme {
	case "sqlite":
		return sqlitestore.Open(ctx, a.rest, f.sqlite(env, timings))
	case "postgres":
		return pgstore.Open(ctx, a.rest, f.postgres(env, timings))
	}
	return memstore.New(&memstore.Options{Realm: f.Realm, Timings: timings})
}

// sqlite are the options of an SQLite store.
func (f storeFlags) sqlite(env environment, timings *pawl.Timings) *sqlitestore.Options {
	return &sqlitestore.Options{
		Realm: f.Realm, StoreID: f.StoreID, Timings: timings, Existing: f.existing, Logger: f.logger(env),
	}
}

// postgres are the options of a PostgreSQL store. Only --dev changes a schema
// without being asked: pawl migrate does it for everybody else.
func (f storeFlags) postgres(env environment, timings *pawl.Timings) *pgstore.Options {
	o := &pgstore.Options{
		Schema: f.Schema, Realm: f.Realm, StoreID: f.StoreID, Timings: timings, Logger: f.logger(env),
		Replicated: f.Replicated, Migrate: f.Dev, Existing: f.existing,
	}
	if f.Pins == "role" {
		o.Pins = pgstore.PinByRole
	}
	return o
}

// givenTimings are the defaults changed by --timing, whatever rule they break.
func (f storeFlags) givenTimings() (pawl.Timings, error) {
	t := pawl.DefaultTimings()
	for _, setting := range f.Timing {
		if err := setTiming(&t, setting); err != nil {
			return pawl.Timings{}, err
		}
	}
	return t, nil
}

// inspect reads the facts without opening the store.
func (f storeFlags) inspect(ctx context.Context, env environment, timings *pawl.Timings) (facts pawl.Facts, err error) {
	a, err := f.address(env)
	if err != nil {
		return pawl.Facts{}, err
	}
	switch a.scheme {
	case "sqlite":
		return sqlitestore.Inspect(ctx, a.rest, f.sqlite(env, timings))
	case "postgres":
		return pgstore.Inspect(ctx, a.rest, f.postgres(env, timings))
	}
	err = f.with(ctx, env, func(st store) error {
		facts, err = st.Check(ctx)
		return err
	})
	return facts, err
}

// timings are those given, if they hold to the rules.
func (f storeFlags) timings() (*pawl.Timings, error) {
	t, err := f.givenTimings()
	if err != nil {
		return nil, err
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return &t, nil
}

// logger logs to standard error; standard output is for answers.
func (f storeFlags) logger(env environment) *slog.Logger {
	level := slog.LevelWarn
	if f.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(env.err, &slog.HandlerOptions{Level: level}))
}

// dataDir is the user's data directory for Pawl, made on first use.
func dataDir(env environment) (string, error) {
	dir := env.get("XDG_DATA_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonMissing, "no home directory: name the store with --store")
		}
		dir = filepath.Join(home, ".local", "share")
		if runtime.GOOS == "darwin" {
			dir = filepath.Join(home, "Library", "Application Support")
		}
	}
	dir = filepath.Join(dir, "pawl")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonMissing, "cannot make the data directory: %w", err)
	}
	return dir, nil
}

func usage(note string) error {
	return &pawl.Error{Class: pawl.ErrInvalid, Reason: pawl.ReasonMissing, Note: note}
}
