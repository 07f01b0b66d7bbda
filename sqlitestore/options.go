package sqlitestore

import (
	"cmp"
	"log/slog"
	"maps"
	"time"

	"github.com/pawl-go/pawl"
)

// Options are what may differ from the defaults. A nil *Options is all defaults.
type Options struct {
	// Realm is the store's name in a grant's audience [A1]. It is written when
	// the file is made: empty is then "sqlite:" and the store's id, so that no
	// token is for two stores by accident. Of an existing file, empty accepts
	// what stands in it and another realm is ErrMisconfigured.
	Realm string
	// StoreID pins the store: a file with another id, a new one included, is
	// ErrMisconfigured [A1]. Empty pins nothing.
	StoreID string
	// Timings default to pawl.DefaultTimings. They must be valid [T1], and agree
	// with the policy in the store [A11]. Policy durations count in whole
	// microseconds.
	Timings *pawl.Timings
	// AdoptPolicy replaces the policy in the store by that of Timings, as far as
	// pawl.Policy.Adopt allows. For an operator, while no other instance runs.
	AdoptPolicy bool
	// Existing opens only what is a store of this version already: no file, table
	// or store is made, and a schema is not upgraded. For what looks after a store
	// and must not take an empty file for one.
	Existing bool
	// TxTimeout is how long a transaction of [Store.BeginTx] may hold the write
	// lock, which keeps everybody else waiting; 0 is half of StoreCallTimeout.
	TxTimeout time.Duration
	// Logger is told of commits that were not confirmed and of lost connections;
	// nil is nobody. It gets ids and result codes, never content [S2].
	Logger *slog.Logger

	engine *engine // in tests another
	hooks  hooks   // of tests
}

// resolved are options with their defaults in place.
type resolved struct {
	Options
	timings pawl.Timings
	policy  pawl.Policy
	engine  engine
}

func (o *Options) resolve() (resolved, error) {
	if o == nil {
		o = &Options{}
	}
	r := resolved{Options: *o, timings: pawl.DefaultTimings(), engine: modernc()}
	if o.Timings != nil {
		r.timings = o.Timings.Clone()
	}
	if err := r.timings.Validate(); err != nil {
		return resolved{}, err
	}
	for what, s := range map[string]string{"realm": o.Realm, "store id": o.StoreID} {
		if s == "" {
			continue
		}
		if err := pawl.CheckID(what, s); err != nil {
			return resolved{}, err
		}
	}
	if o.TxTimeout < 0 {
		return resolved{}, malformed("TxTimeout is negative")
	}
	r.TxTimeout = cmp.Or(o.TxTimeout, r.timings.StoreCallTimeout/2)
	if o.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	if o.engine != nil {
		r.engine = *o.engine
	}
	r.policy = wholePolicy(r.timings.Policy())
	return r, nil
}

// wholePolicy cuts the durations to what the store keeps of them.
func wholePolicy(p pawl.Policy) pawl.Policy {
	p.Leeways = maps.Clone(p.Leeways)
	for v, d := range p.Leeways {
		p.Leeways[v] = d.Truncate(time.Microsecond)
	}
	for _, d := range []*time.Duration{
		&p.AdmissionBound, &p.PurgeMargin, &p.MaxGrantLifetime, &p.IssueSkew, &p.KeyLifetime,
	} {
		*d = d.Truncate(time.Microsecond)
	}
	return p
}
