package jwtgrant_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

func openRing(t testing.TB, path string, now func() time.Time) *jwtgrant.KeyRing {
	t.Helper()
	r, err := jwtgrant.OpenKeyRing(path, &jwtgrant.KeyRingOptions{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// info fails on an error and returns the key.
func info(t testing.TB) func(jwtgrant.KeyInfo, error) jwtgrant.KeyInfo {
	return func(k jwtgrant.KeyInfo, err error) jwtgrant.KeyInfo {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
}

func wantList(t *testing.T, r *jwtgrant.KeyRing, want ...jwtgrant.KeyInfo) {
	t.Helper()
	got, err := r.List()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys differ (-want +got):\n%s", diff)
	}
}

// TestLifeOfAKey takes a ring through everything, read by another handle as by
// another process.
func TestLifeOfAKey(t *testing.T) {
	path, c := filepath.Join(t.TempDir(), "keys", "ring.json"), &handClock{}
	r, other := openRing(t, path, c.now), openRing(t, path, nil)
	if _, err := other.SigningKey(); !errors.Is(err, pawl.ErrMisconfigured) {
		t.Errorf("an empty ring signs: %v", err)
	}
	if _, err := other.Key(t.Context(), ""); !errors.Is(err, pawl.ErrMisconfigured) {
		t.Errorf("an empty ring verifies: %v", err)
	}
	if _, err := r.Rotate(t.Context()); !errors.Is(err, pawl.ErrRefused) {
		t.Errorf("an empty ring rotates: %v", err)
	}

	first := info(t)(r.New(t.Context(), ""))
	wantList(t, other, jwtgrant.KeyInfo{ID: first.ID, Algorithm: jwtgrant.EdDSA, State: jwtgrant.KeyActive, CreatedAt: noon(), Since: noon()})
	c.advance(time.Hour)
	second := info(t)(r.New(t.Context(), jwtgrant.ES256))
	if second.State != jwtgrant.KeyNext {
		t.Errorf("the second key is %s, want next", second.State)
	}
	wantKey(t, other, second.ID, 0) // known before it signs
	if _, err := r.New(t.Context(), ""); !errors.Is(err, pawl.ErrRefused) {
		t.Errorf("a second next key: %v", err)
	}
	if k, err := other.SigningKey(); err != nil || k.ID() != first.ID {
		t.Errorf("signs with %q, error %v, want the first", k.ID(), err)
	}

	c.advance(time.Hour)
	second = info(t)(r.Rotate(t.Context()))
	first.State, first.Since = jwtgrant.KeyRetained, noon().Add(2*time.Hour)
	want := jwtgrant.KeyInfo{
		ID: second.ID, Algorithm: jwtgrant.ES256, State: jwtgrant.KeyActive,
		CreatedAt: noon().Add(time.Hour), Since: noon().Add(2 * time.Hour),
	}
	wantList(t, other, first, want)
	if k, err := other.SigningKey(); err != nil || k.ID() != second.ID || k.Algorithm() != jwtgrant.ES256 {
		t.Errorf("signs with %q, error %v, want the second", k.ID(), err)
	}
	wantKey(t, other, first.ID, 0)

	c.advance(24 * time.Hour)
	for id, class := range map[string]pawl.Class{second.ID: pawl.ErrRefused, "stranger": pawl.ErrNotFound, first.ID: pawl.ErrRefused} {
		if _, err := r.Retire(t.Context(), id, 24*time.Hour+time.Second); !errors.Is(err, class) {
			t.Errorf("retire %s: got %v, want %v", id, err, class)
		}
	}
	c.advance(time.Second)
	info(t)(r.Retire(t.Context(), first.ID, 24*time.Hour+time.Second))
	wantKey(t, other, first.ID, pawl.ErrRefused)
	wantList(t, other, want)

	third := info(t)(r.Rotate(t.Context())) // without a next one
	if third.Algorithm != jwtgrant.ES256 || third.State != jwtgrant.KeyActive || third.ID == second.ID {
		t.Errorf("rotated to %+v", third)
	}
	info(t)(r.Retire(t.Context(), second.ID, 0)) // a key that leaked
	wantKey(t, other, second.ID, pawl.ErrRefused)
	if got := info(t)(r.Ensure(t.Context(), jwtgrant.EdDSA)); got != third {
		t.Errorf("ensure made %+v", got)
	}
}

// TestPrivateHalves looks into the file: only keys that may sign have one, and
// what is published has none.
func TestPrivateHalves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	r := openRing(t, path, nil)
	for _, a := range []jwtgrant.Algorithm{jwtgrant.EdDSA, jwtgrant.ES256, jwtgrant.PS256, jwtgrant.EdDSA} {
		k := info(t)(r.New(t.Context(), a))
		if k.State == jwtgrant.KeyNext {
			info(t)(r.Rotate(t.Context()))
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Keys []struct {
			State jwtgrant.KeyState
			JWK   map[string]any
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for _, k := range file.Keys {
		if _, private := k.JWK["d"]; private != (k.State == jwtgrant.KeyActive) {
			t.Errorf("the %s key %s has a private half: %v", k.State, k.JWK["alg"], private)
		}
	}
	set, err := r.Public()
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(set)
	if err != nil || bytes.Contains(out, []byte(`"d"`)) || bytes.Contains(out, []byte(`"p"`)) {
		t.Errorf("the published set: %s, error %v", out, err)
	}
	if back, err := jwtgrant.ParseKeySet(out); err != nil || len(back.Keys()) != 4 {
		t.Errorf("the published set cannot be read: %v", err)
	}
	stat, err := os.Stat(path)
	if err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, error %v", stat.Mode(), err)
	}
}

func TestBadRingFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ring.json")
	r := openRing(t, path, nil)
	info(t)(r.New(t.Context(), ""))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	with := func(from, to string) string { return strings.Replace(string(good), from, to, 1) }
	twice := strings.Replace(strings.Replace(string(good), "\"keys\": [", "\"keys\": [HERE,", 1), "HERE",
		strings.TrimSpace(string(good[strings.Index(string(good), "[")+1:strings.LastIndex(string(good), "]")])), 1)
	for name, content := range map[string]string{
		"empty": "", "no JSON": "{", "another version": with(`"version": 1`, `"version": 2`), "an unknown state": with(`"active"`, `"live"`),
		"two active keys": twice, "no private half": with(`"d"`, `"x-d"`), "another algorithm": with(`"EdDSA"`, `"ES256"`),
		"no algorithm": with(`"EdDSA"`, `""`), "a member twice": with(`"version": 1`, `"version": 1, "version": 1`),
	} {
		bad := filepath.Join(dir, "bad.json")
		if err := os.WriteFile(bad, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := jwtgrant.OpenKeyRing(bad, nil); !errors.Is(err, pawl.ErrMisconfigured) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := r.SigningKey(); !errors.Is(err, pawl.ErrMisconfigured) {
		t.Errorf("a file that others may read: %v", err)
	}
	if _, err := jwtgrant.OpenKeyRing("", nil); !errors.Is(err, pawl.ErrMisconfigured) {
		t.Errorf("no path: %v", err)
	}
}

// TestInterruptedChange finds what a writer that was killed left behind.
func TestInterruptedChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.json")
	r := openRing(t, path, nil)
	first := info(t)(r.New(t.Context(), ""))
	if err := os.WriteFile(path+".new", []byte(`{"version":1,"ke`), 0o600); err != nil {
		t.Fatal(err)
	}
	wantKey(t, openRing(t, path, nil), first.ID, 0)
	second := info(t)(r.Rotate(t.Context()))
	wantKey(t, openRing(t, path, nil), second.ID, 0)
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unfinished file is still there: %v", err)
	}
}

const ringVariable = "PAWL_TEST_KEY_RING"

// TestMain makes this binary one of the processes of TestManyProcesses where it
// is told to be.
func TestMain(m *testing.M) {
	path := os.Getenv(ringVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	r, err := jwtgrant.OpenKeyRing(path, nil)
	if err == nil {
		_, err = r.Ensure(context.Background(), jwtgrant.EdDSA)
	}
	for range 5 {
		if err == nil {
			_, err = r.Rotate(context.Background())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err, errors.Unwrap(err))
		os.Exit(1)
	}
}

// TestManyProcesses has processes that make the first key and rotate, all at
// once. No key is lost, and one is active.
func TestManyProcesses(t *testing.T) {
	const processes = 6
	path := filepath.Join(t.TempDir(), "ring.json")
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			c := exec.CommandContext(t.Context(), os.Args[0])
			c.Env = append(os.Environ(), ringVariable+"="+path)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("a process: %v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	keys, err := openRing(t, path, nil).List()
	if err != nil {
		t.Fatal(err)
	}
	ids, active := map[string]bool{}, 0
	for _, k := range keys {
		ids[k.ID] = true
		if k.State == jwtgrant.KeyActive {
			active++
		}
	}
	if want := 1 + processes*5; len(ids) != want || len(keys) != want || active != 1 {
		t.Errorf("got %d keys of %d ids, %d active, want %d and 1", len(keys), len(ids), active, want)
	}
}
