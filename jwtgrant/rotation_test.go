package jwtgrant_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

// rotation is an issuer whose keys rotate while it issues, and verifiers of two
// sorts: on the same machine and over HTTP.
type rotation struct {
	ring   *jwtgrant.KeyRing
	issuer *jwtgrant.Issuer
	near   *jwtgrant.Verifier
	far    *jwtgrant.Verifier
	remote *jwtgrant.CachedKeys

	inFlight sync.RWMutex // held for reading from signing to verification
	accepted atomic.Int64
	repeated atomic.Int64
}

func newRotation(t *testing.T) *rotation {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ring.json")
	r := &rotation{ring: openRing(t, path, nil)}
	info(t)(r.ring.New(t.Context(), ""))
	r.issuer = newIssuer(t, openRing(t, path, nil), nil)
	publisher := openRing(t, path, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		set, err := publisher.Public()
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(set)
	}))
	t.Cleanup(server.Close)
	var err error
	r.remote, err = jwtgrant.NewURLKeys(server.URL, server.Client(), &jwtgrant.KeyOptions{
		Refresh: 20 * time.Millisecond, MinRefresh: time.Millisecond, Timeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.near = r.verifier(t, openRing(t, path, nil))
	r.far = r.verifier(t, r.remote)
	return r
}

func (r *rotation) verifier(t *testing.T, keys jwtgrant.KeySource) *jwtgrant.Verifier {
	t.Helper()
	v, err := jwtgrant.NewVerifier(realm, []jwtgrant.TrustedIssuer{{Name: issuerName, Keys: keys}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// once issues a grant and presents it to both verifiers, again where the answer
// is that it cannot be told now.
func (r *rotation) once(t *testing.T) {
	r.inFlight.RLock()
	defer r.inFlight.RUnlock()
	token, err := r.issuer.Sign(credit(t))
	if err != nil {
		t.Errorf("sign: %v", err)
		return
	}
	for _, v := range []*jwtgrant.Verifier{r.near, r.far} {
		_, err := v.Verify(t.Context(), token)
		for errors.Is(err, pawl.ErrUnavailable) {
			r.repeated.Add(1)
			_, err = v.Verify(t.Context(), token)
		}
		if err != nil {
			t.Errorf("a valid grant is refused: %v", err)
		}
		r.accepted.Add(1)
	}
}

// TestRotationUnderLoad rotates and retires keys while grants are issued and
// verified: no valid grant is refused, no retired key accepted.
func TestRotationUnderLoad(t *testing.T) {
	r := newRotation(t)
	done := make(chan struct{})
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					r.once(t)
				}
			}
		})
	}
	for i := range 25 {
		old, err := r.issuer.Sign(credit(t))
		if err != nil {
			t.Fatal(err)
		}
		before, err := r.ring.SigningKey()
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // every other time the key is published before it signs
			info(t)(r.ring.New(t.Context(), ""))
		}
		info(t)(r.ring.Rotate(t.Context()))
		r.inFlight.Lock() // until what the old key signed is done with
		_, err = r.ring.Retire(t.Context(), before.ID(), 0)
		if err == nil {
			err = r.remote.Refresh(t.Context())
		}
		r.inFlight.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.near.Verify(t.Context(), old); !errors.Is(err, pawl.ErrRefused) {
			t.Errorf("a grant under a retired key, on the same machine: %v, want refused", err)
		}
		if _, err := r.far.Verify(t.Context(), old); !errors.Is(err, pawl.ErrRefused) && !errors.Is(err, pawl.ErrUnavailable) {
			t.Errorf("a grant under a retired key, elsewhere: %v, want refused", err)
		}
		for accepted := r.accepted.Load(); r.accepted.Load() < accepted+20; {
			r.once(t)
		}
	}
	close(done)
	load.Wait()
	t.Logf("%d grants verified over 25 rotations, %d presented again", r.accepted.Load(), r.repeated.Load())
}
