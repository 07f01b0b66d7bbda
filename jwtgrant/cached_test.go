package jwtgrant_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

// endpoint serves a key set that a test changes, and counts who asks.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	body   []byte
	asked  atomic.Int64
	asks   chan struct{} // one for each time it was asked
	gate   chan struct{} // where not nil, each answer waits for it
}

func newEndpoint(t testing.TB, keys ...jwtgrant.PublicKey) *endpoint {
	t.Helper()
	e := &endpoint{asks: make(chan struct{}, 10_000)}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.asked.Add(1)
		e.asks <- struct{}{}
		if e.gate != nil {
			<-e.gate
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		status := e.status
		if status >= 300 && status < 400 {
			w.Header().Set("Location", "/elsewhere")
		}
		if r.URL.Path == "/elsewhere" {
			status = http.StatusOK
		}
		w.WriteHeader(status)
		w.Write(e.body)
	}))
	t.Cleanup(e.Close)
	e.publish(t, keys...)
	return e
}

func published(t testing.TB, keys ...jwtgrant.PublicKey) []byte {
	t.Helper()
	set, err := jwtgrant.NewKeySet(keys...)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (e *endpoint) publish(t testing.TB, keys ...jwtgrant.PublicKey) {
	t.Helper()
	e.answer(http.StatusOK, published(t, keys...))
}

func (e *endpoint) answer(status int, body []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status, e.body = status, body
}

// handClock is a clock that a test moves.
type handClock struct{ elapsed atomic.Int64 }

func (c *handClock) now() time.Time          { return noon().Add(time.Duration(c.elapsed.Load())) }
func (c *handClock) advance(d time.Duration) { c.elapsed.Add(int64(d)) }

func urlKeys(t testing.TB, e *endpoint, c *handClock) *jwtgrant.CachedKeys {
	t.Helper()
	keys, err := jwtgrant.NewURLKeys(e.URL, e.Client(), &jwtgrant.KeyOptions{
		Refresh: time.Minute, MinRefresh: 10 * time.Second, MaxStale: time.Hour, Timeout: 10 * time.Second, Now: c.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// wantKey asks for a key: class 0 is that it is found.
func wantKey(t *testing.T, s jwtgrant.KeySource, kid string, class pawl.Class) {
	t.Helper()
	k, err := s.Key(t.Context(), kid)
	switch {
	case class == 0 && (err != nil || k.ID() != kid):
		t.Errorf("%s: got %q, error %v, want the key", kid, k.ID(), err)
	case class != 0 && !errors.Is(err, class):
		t.Errorf("%s: got %q, error %v, want %v", kid, k.ID(), err, class)
	}
}

func (e *endpoint) wantAsked(t *testing.T, want int64) {
	t.Helper()
	if got := e.asked.Load(); got != want {
		t.Errorf("the endpoint was asked %d times, want %d", got, want)
	}
}

func TestCase_CB16_ValidWhileCached(t *testing.T) {
	e, c := newEndpoint(t, publicKey(t, 1), publicKey(t, 2)), &handClock{}
	keys := urlKeys(t, e, c)
	e.wantAsked(t, 0)
	wantKey(t, keys, "key-1", 0)
	wantKey(t, keys, "key-2", 0)
	e.wantAsked(t, 1)
	e.answer(http.StatusInternalServerError, nil)
	wantKey(t, keys, "key-3", pawl.ErrUnavailable) // read a moment ago: not asked for again yet
	e.wantAsked(t, 1)
	c.advance(11 * time.Second)
	wantKey(t, keys, "key-3", pawl.ErrUnavailable) // asked for, and nobody can say
	e.wantAsked(t, 2)
	wantKey(t, keys, "key-1", 0)
	for range 50 { // a while with the endpoint down
		c.advance(time.Minute)
		wantKey(t, keys, "key-1", 0)
		wantKey(t, keys, "key-3", pawl.ErrUnavailable)
	}
	e.publish(t, publicKey(t, 2), publicKey(t, 3)) // up again, key-1 rotated out
	c.advance(time.Minute)
	wantKey(t, keys, "key-3", 0)
	wantKey(t, keys, "key-2", 0)
	c.advance(11 * time.Second)
	wantKey(t, keys, "key-1", pawl.ErrRefused) // a definite no: it was looked for just now
	e.answer(http.StatusServiceUnavailable, nil)
	c.advance(time.Hour)
	wantKey(t, keys, "key-2", pawl.ErrUnavailable) // too old to trust
	if s := keys.Status(); !s.Stale || s.Err == nil || s.Keys != nil {
		t.Errorf("status of a stale set: %+v", s)
	}
	e.publish(t, publicKey(t, 2))
	c.advance(11 * time.Second)
	wantKey(t, keys, "key-2", 0)
	if s := keys.Status(); s.Stale || s.Err != nil || s.Age != 0 || !slices.Equal(s.Keys, []string{"key-2"}) {
		t.Errorf("status of a new set: %+v", s)
	}
}

// TestRetiredKeyIsDropped has a key that its issuer no longer publishes: it is
// accepted for as long as the set may be kept, and no longer.
func TestRetiredKeyIsDropped(t *testing.T) {
	e, c := newEndpoint(t, publicKey(t, 1), publicKey(t, 2)), &handClock{}
	keys := urlKeys(t, e, c)
	wantKey(t, keys, "key-1", 0)
	e.publish(t, publicKey(t, 2))
	c.advance(time.Minute - 1)
	wantKey(t, keys, "key-1", 0)
	c.advance(1)
	wantKey(t, keys, "key-1", pawl.ErrRefused)
}

func TestNothingKnownYet(t *testing.T) {
	e, c := newEndpoint(t, publicKey(t, 1)), &handClock{}
	e.answer(http.StatusNotFound, published(t, publicKey(t, 1)))
	keys := urlKeys(t, e, c)
	wantKey(t, keys, "key-1", pawl.ErrUnavailable)
	wantKey(t, keys, "", pawl.ErrUnavailable)
	e.wantAsked(t, 1) // not more often than MinRefresh
	if err := keys.Refresh(t.Context()); !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("a refresh that fails: %v", err)
	}
	e.publish(t, publicKey(t, 1))
	if err := keys.Refresh(t.Context()); err != nil {
		t.Errorf("a refresh: %v", err)
	}
	wantKey(t, keys, "key-1", 0)
	if k, err := keys.Key(t.Context(), ""); err != nil || k.ID() != "key-1" {
		t.Errorf("the only key: got %q, error %v", k.ID(), err)
	}
}

// TestBadAnswersChangeNothing has documents that are no key set. The set at hand
// stays.
func TestBadAnswersChangeNothing(t *testing.T) {
	good := string(published(t, publicKey(t, 2)))
	one := strings.TrimSuffix(strings.TrimPrefix(good, `{"keys":[`), "]}")
	private := strings.Replace(good, `"kty"`, `"d":"`+b64(edKey(2)[:32])+`","kty"`, 1)
	for name, answer := range map[string]struct {
		status int
		body   string
	}{
		"nothing":             {200, ""},
		"no JSON":             {200, "<html>"},
		"no keys":             {200, `{"keys":[]}`},
		"no list":             {200, `{"keys":{}}`},
		"a member twice":      {200, `{"keys":[],` + strings.TrimPrefix(good, "{")},
		"a private key":       {200, private},
		"one private key":     {200, `{"keys":[` + strings.TrimSuffix(strings.TrimPrefix(private, `{"keys":[`), "]}") + "," + strings.TrimSuffix(strings.TrimPrefix(string(published(t, publicKey(t, 3))), `{"keys":[`), "]}") + "]}"},
		"a symmetric key":     {200, `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"key-2"}]}`},
		"for encryption only": {200, strings.Replace(good, `"sig"`, `"enc"`, 1)},
		"for signing only":    {200, strings.Replace(good, `"kty"`, `"key_ops":["sign"],"kty"`, 1)},
		"one id twice":        {200, `{"keys":[` + one + "," + one + "]}"},
		"too many":            {200, `{"keys":[` + one + strings.Repeat(","+one, jwtgrant.MaxKeys) + "]}"},
		"too large":           {200, good + strings.Repeat(" ", jwtgrant.MaxKeySet)},
		"a redirect":          {302, good},
		"created":             {201, good},
		"an error":            {500, good},
	} {
		t.Run(name, func(t *testing.T) {
			e, c := newEndpoint(t, publicKey(t, 1)), &handClock{}
			keys := urlKeys(t, e, c)
			wantKey(t, keys, "key-1", 0)
			e.answer(answer.status, []byte(answer.body))
			c.advance(2 * time.Minute)
			wantKey(t, keys, "key-2", pawl.ErrUnavailable)
			wantKey(t, keys, "key-1", 0)
			if err := keys.Status().Err; err == nil || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("status says %v", err)
			}
		})
	}
}

// TestManyAskAtOnce has one reading for everybody who needs it, and nobody who
// does not need it waits.
func TestManyAskAtOnce(t *testing.T) {
	e, c := newEndpoint(t, publicKey(t, 1)), &handClock{}
	keys := urlKeys(t, e, c)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { wantKey(t, keys, "key-1", 0) })
	}
	wg.Wait()
	e.wantAsked(t, 1)

	c.advance(2 * time.Minute)
	e.gate = make(chan struct{})
	slow := make(chan error)
	go func() {
		_, err := keys.Key(context.WithoutCancel(t.Context()), "key-9")
		slow <- err
	}()
	<-e.asks                     // by the 50
	<-e.asks                     // by the slow one
	wantKey(t, keys, "key-1", 0) // old, and being read: the one at hand is used
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := keys.Key(impatient, "key-8"); !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("a caller who stops waiting: %v", err)
	}
	close(e.gate)
	if err := <-slow; !errors.Is(err, pawl.ErrRefused) {
		t.Errorf("the one who read: %v", err)
	}
	e.wantAsked(t, 2)
}

func TestRunKeepsTheSetYoung(t *testing.T) {
	e := newEndpoint(t, publicKey(t, 1))
	keys, err := jwtgrant.NewURLKeys(e.URL, nil, &jwtgrant.KeyOptions{Refresh: 8 * time.Millisecond, MinRefresh: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { keys.Run(ctx) })
	for range 3 {
		<-e.asks
	}
	e.answer(http.StatusInternalServerError, nil)
	for keys.Status().Err == nil {
		<-e.asks
	}
	cancel()
	wg.Wait()
	wantKey(t, keys, "key-1", 0)
}

func TestAddressOfAKeySet(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://issuer.example/jwks": true, "http://127.0.0.1:8080/jwks": true, "http://[::1]/jwks": true, "http://localhost/jwks": true,
		"HTTPS://issuer.example/jwks": true,
		"http://issuer.example/jwks":  false, "http://127.0.0.1.evil.example/": false, "http://10.0.0.1/jwks": false, "http://0.0.0.0/": false,
		"https://user:password@issuer.example/": false, "https://issuer.example/#x": false, "ftp://issuer.example/": false,
		"file:///etc/passwd": false, "/jwks": false, "https:///jwks": false, "": false, "https://%": false,
	} {
		if _, err := jwtgrant.NewURLKeys(address, nil, nil); (err == nil) != ok || (err != nil && !errors.Is(err, pawl.ErrMisconfigured)) {
			t.Errorf("%q: got error %v, want accepted %v", address, err, ok)
		}
	}
	for name, o := range map[string]jwtgrant.KeyOptions{
		"negative":                   {Timeout: -1},
		"MinRefresh over Refresh":    {MinRefresh: time.Hour},
		"Refresh over MaxStale":      {Refresh: 48 * time.Hour},
		"MaxStale under the default": {MaxStale: time.Second},
	} {
		if _, err := jwtgrant.NewURLKeys("https://issuer.example/", nil, &o); !errors.Is(err, pawl.ErrMisconfigured) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeysInAFile(t *testing.T) {
	path, c := filepath.Join(t.TempDir(), "jwks.json"), &handClock{}
	write := func(raw []byte) {
		t.Helper()
		if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := jwtgrant.NewFileKeys(path, &jwtgrant.KeyOptions{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	wantKey(t, keys, "key-1", pawl.ErrUnavailable)
	write(published(t, publicKey(t, 1)))
	c.advance(2 * time.Second)
	wantKey(t, keys, "key-1", 0)
	write(published(t, publicKey(t, 1), publicKey(t, 2)))
	c.advance(2 * time.Second)
	wantKey(t, keys, "key-2", 0)
	write(published(t, publicKey(t, 2)))
	c.advance(11 * time.Second)
	wantKey(t, keys, "key-1", pawl.ErrRefused)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Hour)
	wantKey(t, keys, "key-2", 0)
	wantKey(t, keys, "key-1", pawl.ErrUnavailable)
	if _, err := jwtgrant.NewFileKeys("", nil); !errors.Is(err, pawl.ErrMisconfigured) {
		t.Errorf("a file without a name: %v", err)
	}
}
