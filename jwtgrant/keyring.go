package jwtgrant

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// KeyState says what a key of a ring is for.
type KeyState string

// The states, in the order a key goes through them. A key that is retired is
// gone: nothing it signed is accepted any more.
const (
	KeyNext     KeyState = "next"     // published, so that verifiers know it before it signs
	KeyActive   KeyState = "active"   // signs
	KeyRetained KeyState = "retained" // verifies what it signed; its private half is erased
)

// KeyInfo describes a key of a ring, without the key.
type KeyInfo struct {
	ID        string
	Algorithm Algorithm
	State     KeyState
	CreatedAt time.Time
	Since     time.Time // when it came into its state
}

// KeyRingOptions are what a ring may be told. Nil is all defaults.
type KeyRingOptions struct {
	Now func() time.Time // dates keys; nil is the wall clock
}

// KeyRing is an issuer's keys in one file that only its owner may read. Any
// number of processes may use and change it at once: a change is made under a
// lock and appears as a whole, and every use sees the latest. It is both the
// issuer's [SigningKeys] and a [KeySource] for verifiers on the same machine;
// others get [KeyRing.Public].
type KeyRing struct {
	path string
	now  func() time.Time

	mu     sync.Mutex
	raw    []byte // the file as it was parsed last
	parsed ring
}

var (
	_ SigningKeys = (*KeyRing)(nil)
	_ KeySource   = (*KeyRing)(nil)
)

// OpenKeyRing returns the ring in the file path. The file need not exist: New
// makes it. Errors: ErrMisconfigured for a file that others may read or that is
// no ring, ErrUnavailable for one that cannot be read.
func OpenKeyRing(path string, opts *KeyRingOptions) (*KeyRing, error) {
	if path == "" {
		return nil, misconfigured("the key ring has no path")
	}
	r := &KeyRing{path: path, now: time.Now}
	if opts != nil && opts.Now != nil {
		r.now = opts.Now
	}
	if _, err := r.read(); err != nil {
		return nil, err
	}
	return r, nil
}

// read returns the ring as it is in the file now, an empty one where there is no
// file. The file is read each time, which costs less than a signature; it is
// parsed only when it has changed.
func (r *KeyRing) read() (ring, error) {
	raw, err := readRing(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return ring{Version: ringVersion}, nil
	}
	if err != nil {
		return ring{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.raw != nil && bytes.Equal(raw, r.raw) {
		return r.parsed, nil
	}
	parsed, err := parseRing(raw)
	if err != nil {
		return ring{}, err
	}
	r.raw, r.parsed = raw, parsed
	return parsed, nil
}

// SigningKey implements [SigningKeys] with the active key. Errors:
// ErrMisconfigured where there is none, ErrUnavailable.
func (r *KeyRing) SigningKey() (SigningKey, error) {
	now, err := r.read()
	if err != nil {
		return SigningKey{}, err
	}
	i := now.index(KeyActive)
	if i < 0 {
		return SigningKey{}, misconfigured("the key ring has no active key: make one")
	}
	return now.Keys[i].signing()
}

// Public returns the keys that verify the issuer's tokens: those of every state.
// Errors: ErrMisconfigured where there are none, ErrUnavailable.
func (r *KeyRing) Public() (*KeySet, error) {
	now, err := r.read()
	if err == nil && now.published == nil {
		err = misconfigured("the key ring has no key: make one")
	}
	return now.published, err
}

// Key implements [KeySource]. Errors: ErrRefused, ErrMisconfigured,
// ErrUnavailable.
func (r *KeyRing) Key(ctx context.Context, kid string) (PublicKey, error) {
	set, err := r.Public()
	if err != nil {
		return PublicKey{}, err
	}
	return set.Key(ctx, kid)
}

// List describes the keys, the oldest first. Errors: ErrMisconfigured,
// ErrUnavailable.
func (r *KeyRing) List() ([]KeyInfo, error) {
	now, err := r.read()
	if err != nil {
		return nil, err
	}
	infos := make([]KeyInfo, len(now.Keys))
	for i, k := range now.Keys {
		infos[i] = k.info()
	}
	return infos, nil
}

// New makes a key; "" is EdDSA. The first one is active at once; a later one is
// next: publish the ring, give verifiers the time to read it, then rotate. Errors:
// ErrRefused where there is a next key already, ErrMisconfigured, ErrUnavailable.
func (r *KeyRing) New(ctx context.Context, a Algorithm) (KeyInfo, error) {
	return r.change(ctx, func(v *ring) (KeyInfo, error) {
		if v.index(KeyNext) >= 0 {
			return KeyInfo{}, refused(pawl.ReasonUnsafeKeys, "the key ring has a next key already: rotate, or retire it")
		}
		state := KeyNext
		if v.index(KeyActive) < 0 {
			state = KeyActive
		}
		return v.add(a, state, r.now())
	})
}

// Ensure makes the first key of a ring, and does nothing where there is an active
// one: of several processes that start at once, one makes it. Errors as New.
func (r *KeyRing) Ensure(ctx context.Context, a Algorithm) (KeyInfo, error) {
	return r.change(ctx, func(v *ring) (KeyInfo, error) {
		if i := v.index(KeyActive); i >= 0 {
			return v.Keys[i].info(), errUnchanged
		}
		return v.add(a, KeyActive, r.now())
	})
}

// Rotate makes the next key the active one, or a new one of the active key's
// algorithm where none is next. The old one is retained for what it signed, and
// its private half is erased. Errors: ErrRefused where there is no key yet,
// ErrMisconfigured, ErrUnavailable.
func (r *KeyRing) Rotate(ctx context.Context) (KeyInfo, error) {
	return r.change(ctx, func(v *ring) (KeyInfo, error) {
		old, next := v.index(KeyActive), v.index(KeyNext)
		if old < 0 {
			return KeyInfo{}, refused(pawl.ReasonUnsafeKeys, "the key ring has no active key to rotate: make one")
		}
		if err := v.Keys[old].retain(r.now()); err != nil {
			return KeyInfo{}, err
		}
		if next < 0 {
			return v.add(v.Keys[old].algorithm(), KeyActive, r.now())
		}
		v.Keys[next].State, v.Keys[next].Since = KeyActive, r.now().UTC()
		return v.Keys[next].info(), nil
	})
}

// Retire removes a key: what it signed is refused from now on, by verifiers
// elsewhere once they have read the published set again. A retained key is
// removed only when it has been so for grace: the longest life of a grant with
// skew and leeway, so that no valid grant is refused; 0 is for a key that leaked.
// Errors: ErrNotFound, ErrRefused for the active key or too early,
// ErrMisconfigured, ErrUnavailable.
func (r *KeyRing) Retire(ctx context.Context, id string, grace time.Duration) (KeyInfo, error) {
	return r.change(ctx, func(v *ring) (KeyInfo, error) {
		for i, k := range v.Keys {
			info := k.info()
			if info.ID != id {
				continue
			}
			if info.State == KeyActive {
				return KeyInfo{}, refused(pawl.ReasonUnsafeKeys, "the active key signs: rotate, then retire it")
			}
			if until := info.Since.Add(grace); info.State == KeyRetained && r.now().Before(until) {
				return KeyInfo{}, refused(pawl.ReasonUnsafeKeys, "grants that the key signed may be valid until "+
					until.UTC().Format(time.RFC3339))
			}
			v.remove(i)
			return info, nil
		}
		return KeyInfo{}, pawl.NotFound()
	})
}

// errUnchanged ends a change that has nothing to write.
const errUnchanged = unchanged("unchanged")

type unchanged string

func (u unchanged) Error() string { return string(u) }

// change makes one change under the lock, on the ring as it is in the file then.
func (r *KeyRing) change(ctx context.Context, edit func(*ring) (KeyInfo, error)) (KeyInfo, error) {
	unlock, err := lockRing(ctx, r.path)
	if err != nil {
		return KeyInfo{}, err
	}
	defer unlock()
	now, err := r.read()
	if err != nil {
		return KeyInfo{}, err
	}
	now = now.clone()
	info, err := edit(&now)
	if errors.Is(err, errUnchanged) {
		return info, nil
	}
	if err != nil {
		return KeyInfo{}, err
	}
	return info, writeRing(r.path, now)
}
