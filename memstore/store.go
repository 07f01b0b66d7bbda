// Package memstore is one process, and not durable: when the process ends,
// every claim is forgotten and every grant could be admitted again. It is for
// tests, for development and as the smallest complete example of a store; it is
// never a fallback for a store that cannot be reached [A6].
//
// Within its process it keeps the whole contract, and package storetest checks
// it. One mutex makes each call atomic [A2]. The process's clock decides, and
// never goes back: what it showed once is the least it shows later [P1].
//
// Callers must not assume that two stores made by [New] know of each other, in
// one process or in two. Use [Store.Handle] for another handle on the same data.
package memstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
)

// Options are what may differ from the defaults. A nil *Options is all defaults.
type Options struct {
	// Realm is the store's name in a grant's audience [A1]. Empty: "memory:" and
	// the store's id, so that no token is for two stores by accident. A handle
	// leaves it empty or repeats the store's.
	Realm string
	// Timings default to pawl.DefaultTimings. They must be valid [T1], and those
	// of a handle must agree with the store's [A11].
	Timings *pawl.Timings
	// Clock is the store's clock; nil is the process's. Tests set it. Only New
	// reads it: all handles on one data have one clock.
	Clock func() time.Time
}

// Store implements pawl.Store, pawl.GrantBook and pawl.Keeper in memory. Create
// one with New. It may be used by many goroutines at once.
type Store struct {
	db      *memdb.DB
	timings pawl.Timings

	inFlight sync.RWMutex // held for reading by every call
	closed   bool
}

var (
	_ pawl.Store     = (*Store)(nil)
	_ pawl.GrantBook = (*Store)(nil)
	_ pawl.Keeper    = (*Store)(nil)
)

// New returns an empty store. Errors: ErrMisconfigured for timings that break a
// rule, ErrInvalid for a realm that is no identifier.
func New(o *Options) (*Store, error) {
	opts, timings, err := o.resolve()
	if err != nil {
		return nil, err
	}
	clock := opts.Clock
	if clock == nil {
		clock = time.Now
	}
	return &Store{db: memdb.New(opts.Realm, timings.Policy(), clock), timings: timings}, nil
}

// Handle returns another handle on the same data, as another process would have
// it of a shared store; each is closed on its own. Errors as New, and
// ErrMisconfigured where timings or realm disagree with the store's [A11].
func (s *Store) Handle(o *Options) (*Store, error) { return Over(s.db, o) }

// Over returns a handle on tables that a test of this module holds: wrong
// stores are made of a right one this way. Nothing outside the module can call
// it; use New.
func Over(db *memdb.DB, o *Options) (*Store, error) {
	opts, timings, err := o.resolve()
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *memdb.Tx) error {
		m := tx.Meta()
		if opts.Realm != "" && opts.Realm != m.Realm {
			return pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonDisagreement, "the store's realm is another")
		}
		merged, err := m.Policy.Agree(timings.Policy())
		if err == nil {
			m.Policy = merged
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Store{db: db, timings: timings}, nil
}

func (o *Options) resolve() (Options, pawl.Timings, error) {
	if o == nil {
		o = &Options{}
	}
	timings := pawl.DefaultTimings()
	if o.Timings != nil {
		timings = o.Timings.Clone()
	}
	if err := timings.Validate(); err != nil {
		return Options{}, pawl.Timings{}, err
	}
	if o.Realm != "" {
		if err := pawl.CheckID("realm", o.Realm); err != nil {
			return Options{}, pawl.Timings{}, err
		}
	}
	return *o, timings, nil
}

// Close implements pawl.Store. It waits for calls in flight; the data stays for
// other handles. A second Close does nothing.
func (s *Store) Close() error {
	s.inFlight.Lock()
	defer s.inFlight.Unlock()
	s.closed = true
	return nil
}

// update runs f as one atomic call. lost is the class of an answer that could
// not be had. The context is asked once, before anything is decided: from then
// on the call runs to its end [A3].
func (s *Store) update(ctx context.Context, lost pawl.Class, f func(*memdb.Tx) error) error {
	s.inFlight.RLock()
	defer s.inFlight.RUnlock()
	if s.closed {
		return &pawl.Error{Class: lost, Reason: pawl.ReasonClosed}
	}
	if err := ctx.Err(); err != nil {
		return &pawl.Error{Class: lost, Reason: pawl.ReasonCancelled, Cause: err}
	}
	return s.db.Update(f)
}

// Check implements pawl.Store.
func (s *Store) Check(ctx context.Context) (facts pawl.Facts, err error) {
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		m := tx.Meta()
		policy, err := m.Policy.Agree(m.Policy) // a copy that shares no memory
		facts = pawl.Facts{
			Engine: "memory", StoreID: m.ID, Realm: m.Realm, Scope: pawl.ScopeProcess,
			Clock: "the process's clock, which never goes back,", Now: tx.Now,
			Not:   []string{"the end of the process"},
			Epoch: m.Epoch, Policy: policy,
			Checks: []pawl.Fact{
				{Name: "scope", Value: "one process", OK: true},
				{Name: "durability", Value: "none", Fix: "for anything but tests and development use sqlitestore or pgstore"},
				{Name: "purge", Value: "inherently safe: one lock and a clock that never goes back", OK: true},
			},
		}
		return err
	})
	return facts, err
}

// errGrantID is a defect of whoever issues: a fresh id was not fresh [A7].
func errGrantID() error { return errors.New("memstore: the grant id of a new request is in use") }
