package jwtgrant

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// KeyOptions say how a key set that may change is kept. Nil is all defaults, and
// so is each zero value.
type KeyOptions struct {
	// Refresh is the age from which a set is read again before use: for so long at
	// most is a key accepted that its issuer has retired. 0 is 5 minutes for a URL and
	// 10 seconds for a file.
	Refresh time.Duration
	// MinRefresh is the least time between two readings, whatever the tokens name:
	// a flood of made-up key ids does not become a flood of requests. 0 is 5 seconds
	// for a URL and 1 second for a file.
	MinRefresh time.Duration
	// MaxStale is the age at which a set that could not be read again is trusted no
	// longer. 0 is 24 hours.
	MaxStale time.Duration
	// Timeout bounds one reading; 0 is 2 seconds.
	Timeout time.Duration
	// Now is the clock that ages are measured with; only differences count. Nil is
	// time.Now, whose differences are monotonic.
	Now func() time.Time
}

// withDefaults fills in what is zero. Errors: ErrMisconfigured.
func (o *KeyOptions) withDefaults(refresh, minRefresh time.Duration) (KeyOptions, error) {
	var v KeyOptions
	if o != nil {
		v = *o
	}
	for _, d := range []struct {
		value   *time.Duration
		without time.Duration
	}{{&v.Refresh, refresh}, {&v.MinRefresh, minRefresh}, {&v.MaxStale, 24 * time.Hour}, {&v.Timeout, 2 * time.Second}} {
		if *d.value < 0 {
			return v, misconfigured("a duration of a key set is negative")
		}
		if *d.value == 0 {
			*d.value = d.without
		}
	}
	if v.MinRefresh > v.Refresh || v.Refresh > v.MaxStale {
		return v, misconfigured("of a key set must hold: MinRefresh <= Refresh <= MaxStale")
	}
	if v.Now == nil {
		v.Now = time.Now
	}
	return v, nil
}

// CachedKeys is an issuer's key set that is kept elsewhere and may change there:
// behind a URL ([NewURLKeys]) or in a file ([NewFileKeys]).
//
// A key that is known is used without asking again while the set is younger than
// Refresh, and while the set cannot be read, until MaxStale. A key that is not
// known is looked for by reading the set once more, though not more often than
// MinRefresh: ErrRefused if it is not there, ErrUnavailable where that cannot be
// told now. Whoever needs a newer set reads it, everybody else goes on with the
// one there is; nothing runs in the background unless [CachedKeys.Run] does.
type CachedKeys struct {
	load    func(context.Context) ([]byte, error)
	options KeyOptions
	turn    chan struct{} // held while reading

	mu     sync.Mutex
	set    *KeySet // the last one read; nil: none yet
	loaded time.Time
	tried  time.Time
	tries  uint64
	err    error // of the last try
}

var _ KeySource = (*CachedKeys)(nil)

func newCachedKeys(o KeyOptions, load func(context.Context) ([]byte, error)) *CachedKeys {
	return &CachedKeys{load: load, options: o, turn: make(chan struct{}, 1)}
}

// view is what is known at one moment.
type view struct {
	set   *KeySet // nil: none, or too old to trust
	fresh bool    // younger than Refresh
	rest  bool    // read a moment ago, so not again yet
	tries uint64
	err   error
}

func (c *CachedKeys) look() view {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.options.Now()
	v := view{tries: c.tries, err: c.err, rest: c.tries > 0 && now.Sub(c.tried) < c.options.MinRefresh}
	if c.set == nil {
		return v
	}
	age := now.Sub(c.loaded)
	v.fresh = age < c.options.Refresh
	if age < c.options.MaxStale {
		v.set = c.set
	}
	return v
}

// find looks among what is known.
func (v view) find(ctx context.Context, kid string) (k PublicKey, known bool) {
	if v.set == nil {
		return PublicKey{}, false
	}
	k, err := v.set.Key(ctx, kid)
	return k, err == nil
}

// Key implements [KeySource]. Errors: ErrRefused for a key that a reading just
// made did not find, ErrUnavailable for one that could not be looked for now. A
// caller that stops waiting may still be held for Timeout: every reading that was
// begun counts, or callers that hang up could make any number of them.
func (c *CachedKeys) Key(ctx context.Context, kid string) (PublicKey, error) {
	before := c.look()
	k, known := before.find(ctx, kid)
	if known && (before.fresh || before.rest) {
		return k, nil
	}
	if before.rest {
		return PublicKey{}, notNow(before.err)
	}
	if known {
		select {
		case c.turn <- struct{}{}:
		default: // another is reading; the key at hand is good until then
			return k, nil
		}
	} else {
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return PublicKey{}, notNow(ctx.Err())
		}
	}
	defer func() { <-c.turn }()
	mine := c.look().tries == before.tries // else another has just read it
	if mine {
		c.read(ctx)
	}
	after := c.look()
	if k, known := after.find(ctx, kid); known {
		return k, nil
	}
	if mine && after.err == nil {
		return after.set.Key(ctx, kid) // a definite no
	}
	return PublicKey{}, notNow(after.err)
}

// notNow says that a key could not be looked for, and why if that is known.
func notNow(cause error) error {
	if cause == nil {
		return unreachable("the key is not in the issuer's key set as it was read a moment ago", nil)
	}
	return unreachable("the issuer's key set cannot be read now, and the key is not known", plain(cause))
}

// plain returns an error as a cause unless it has a class: one error must not be
// of two.
func plain(err error) error {
	if _, classed := pawl.Row(err); classed {
		return nil
	}
	return err
}

// read reads the set, with the turn held. A reading that fails leaves the set as
// it is.
func (c *CachedKeys) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.Timeout)
	defer cancel()
	var set *KeySet
	raw, err := c.load(ctx)
	if err == nil {
		set, err = ParseKeySet(raw)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries++
	c.tried, c.err = c.options.Now(), err
	if err == nil {
		c.set, c.loaded = set, c.tried
	}
	return err
}

// Refresh reads the set now, whatever its age: at start, to find a wrong address
// early. Errors: ErrUnavailable, ErrMisconfigured for what is there and no set.
func (c *CachedKeys) Refresh(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return notNow(ctx.Err())
	}
	defer func() { <-c.turn }()
	return c.read(ctx)
}

// Run keeps the set young until ctx is done, so that no request has to wait for
// a reading. It is optional; whoever starts it waits for it.
func (c *CachedKeys) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if c.Refresh(ctx) == nil {
			timer.Reset(c.options.Refresh * 3 / 4)
		} else {
			timer.Reset(c.options.MinRefresh)
		}
	}
}

// KeyStatus is how a cached key set stands, for health checks.
type KeyStatus struct {
	Keys  []string      // ids that are accepted now
	Age   time.Duration // of the set; 0 where there is none
	Stale bool          // too old to trust, or never read
	Err   error         // of the last reading
}

// Status tells how the set stands.
func (c *CachedKeys) Status() KeyStatus {
	v := c.look()
	s := KeyStatus{Stale: v.set == nil, Err: v.err}
	if v.set != nil {
		for _, k := range v.set.Keys() {
			s.Keys = append(s.Keys, k.id)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set != nil {
		s.Age = c.options.Now().Sub(c.loaded)
	}
	return s
}
