package pgstore

import (
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-go/pawl"
)

// Options are what may differ from the defaults. A nil *Options is all defaults.
type Options struct {
	// Schema holds Pawl's tables and nothing else: a lower-case name of at most 63
	// letters, digits and underscores; default "pawl". Every name in every
	// statement is qualified with it.
	Schema string
	// Realm is the store's name in a grant's audience [A1], written once, when the
	// store is first opened; empty: "postgres:" and the store's id. Later it is
	// empty or repeats the store's.
	Realm string
	// StoreID pins the store: another one, reached by a wrong connection string or
	// after a fail-over to a wrong server, is refused [A1]. Empty pins nothing.
	StoreID string
	// Timings default to pawl.DefaultTimings. They must be valid [T1], and their
	// policy must agree with the store's [A11].
	Timings *pawl.Timings
	// AdoptPolicy replaces the policy in the store by that of Timings and
	// Replicated: an operator's deliberate act while no instance runs.
	AdoptPolicy bool
	// Existing opens only what is a store already: none is made in empty tables. For
	// what looks after a store, and must not take another database for one.
	Existing bool
	// Replicated promises that admissions survive the promotion of a standby: a
	// session that does not wait for one, by synchronous_commit on or remote_apply
	// and non-empty synchronous_standby_names, admits nothing [A3]. It is part of
	// what all instances agree on.
	Replicated bool
	// SynchronousCommit is pinned on every connection: "on" (the default),
	// "remote_apply", "remote_write" or "local"; "off" is refused, and the last two
	// with Replicated [A3].
	SynchronousCommit string
	// Pins says how settings get onto connections; default PinAtStartup.
	Pins Pins
	// AdmissionConns and Conns bound the connections for admissions and for all
	// else; default 8 each. A statement whose caller stopped waiting holds its
	// connection until it ends.
	AdmissionConns int
	Conns          int
	// Migrate makes or upgrades the tables first, as [Migrate] does. Without it
	// Open changes no schema and needs no right to.
	Migrate bool
	// Logger is told what operators should know, with ids and reasons only [S2].
	// Nil discards it.
	Logger *slog.Logger
}

// Pins says how the settings an admission depends on get onto a connection.
// However they get there, they are read back on each new connection, and again
// in each admission [A11].
type Pins uint8

const (
	// PinAtStartup sends them as start-up parameters. Poolers often refuse these.
	PinAtStartup Pins = iota
	// PinByRole sends nothing: ALTER ROLE … SET or the pooler's configuration must
	// have set them. A connection on which they are not in force is refused.
	PinByRole
)

const (
	defaultSchema = "pawl"
	defaultConns  = 8
	maxConns      = 1000

	// callLimit bounds every statement but an admission on the server, and with the
	// declared bounds on top the life of a call whose caller is gone.
	callLimit = 30 * time.Second
)

// settings are options after the defaults were filled in and everything was
// checked that needs no server.
type settings struct {
	Options
	timings pawl.Timings
	policy  agreed
	log     *slog.Logger
	dial    pgconn.DialFunc // nil: the network
}

// agreed is what all instances of one store must be configured with alike.
type agreed struct {
	pawl.Policy
	Replicated bool
}

func (o *Options) resolve() (settings, error) {
	s := settings{timings: pawl.DefaultTimings(), log: slog.New(slog.DiscardHandler)}
	if o != nil {
		s.Options = *o
	}
	if s.Schema == "" {
		s.Schema = defaultSchema
	}
	if s.SynchronousCommit == "" {
		s.SynchronousCommit = "on"
	}
	if s.AdmissionConns == 0 {
		s.AdmissionConns = defaultConns
	}
	if s.Conns == 0 {
		s.Conns = defaultConns
	}
	if s.Timings != nil {
		s.timings = s.Timings.Clone()
	}
	if s.Logger != nil {
		s.log = s.Logger
	}
	s.policy = agreed{s.timings.Policy(), s.Replicated}
	return s, s.check()
}

func (s *settings) check() error {
	if !regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`).MatchString(s.Schema) {
		return misconfigured("the schema's name is not 1 to 63 lower-case letters, digits and underscores")
	}
	if s.Realm != "" {
		if err := pawl.CheckID("realm", s.Realm); err != nil {
			return err
		}
	}
	if s.Pins > PinByRole {
		return misconfigured("no such way to pin settings")
	}
	if s.AdmissionConns < 1 || s.Conns < 1 || s.AdmissionConns > maxConns || s.Conns > maxConns {
		return misconfigured("connections are not 1 to %d", maxConns)
	}
	if !safeCommit(s.SynchronousCommit, s.Replicated) {
		return misconfigured("synchronous_commit %q makes no commit durable enough (replicated: %t)", s.SynchronousCommit, s.Replicated)
	}
	if err := s.timings.Validate(); err != nil {
		return err
	}
	return s.policy.check()
}

// check refuses what the tables or the server could not hold exactly.
func (a agreed) check() error {
	durations := map[string]time.Duration{
		"AdmissionBound": a.AdmissionBound, "PurgeMargin": a.PurgeMargin, "MaxGrantLifetime": a.MaxGrantLifetime,
		"IssueSkew": a.IssueSkew, "KeyLifetime": a.KeyLifetime,
	}
	for version, d := range a.Leeways {
		durations[fmt.Sprintf("AdmissionLeeway of policy %q", version)] = d
	}
	for name, d := range durations {
		if d%time.Microsecond != 0 {
			return misconfigured("%s is not whole microseconds", name)
		}
	}
	if a.AdmissionBound < time.Millisecond {
		return misconfigured("AdmissionBound is under a millisecond, the server's unit")
	}
	return nil
}

// safeCommit reports whether a commit under this setting is durable before it is
// acknowledged, in the sense that is promised [A3]. The admission statements
// restate it.
func safeCommit(synchronousCommit string, replicated bool) bool {
	switch synchronousCommit {
	case "on", "remote_apply":
		return true
	case "remote_write", "local":
		return !replicated
	}
	return false
}

func misconfigured(format string, args ...any) error {
	return pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonUnsafeStore, format, args...)
}
