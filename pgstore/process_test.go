package pgstore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// taskVariable makes the test binary do one task of another process instead of
// running tests; its value is what to do, as JSON.
const taskVariable = "PAWL_PGSTORE_TASK"

// task is what another process does with a store of its own.
type task struct {
	DSN     string        `json:"dsn"`
	Schema  string        `json:"schema"`
	Migrate bool          `json:"migrate"` // only open, making the tables first
	Seed    []grantOnWire `json:"grants"`
	Racers  int           `json:"racers"`
}

// grantOnWire is what a grant of these tests consists of.
type grantOnWire struct {
	ID        string    `json:"id"`
	Realm     string    `json:"realm"`
	IssuedAt  time.Time `json:"issued_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// verdicts are what became of the racers: by grant, how many were admitted, and
// all errors that are no refusals.
type verdicts struct {
	Admitted []int    `json:"admitted"`
	Errors   []string `json:"errors"`
	StoreID  string   `json:"store_id"`
}

// runTask is the other process's main.
func runTask(ctx context.Context, raw string, in io.Reader, out io.Writer) error {
	var what task
	if err := json.Unmarshal([]byte(raw), &what); err != nil {
		return err
	}
	ready := bufio.NewReader(in)
	if what.Migrate { // everybody begins at once
		if _, err := ready.ReadByte(); err != nil {
			return err
		}
	}
	s, err := Open(ctx, what.DSN, &Options{Schema: what.Schema, Migrate: what.Migrate})
	if err != nil {
		return err
	}
	defer s.Close()
	v := verdicts{StoreID: s.id, Admitted: make([]int, len(what.Seed))}
	if len(what.Seed) > 0 {
		if err := what.race(ctx, s, &v, ready, out); err != nil {
			return err
		}
	}
	return json.NewEncoder(out).Encode(v)
}

// race presents every grant many times at once, each when it is told to: two
// processes left to themselves would not meet at many.
func (what task) race(ctx context.Context, s *Store, v *verdicts, in io.ByteReader, out io.Writer) error {
	var mu sync.Mutex
	for i, seed := range what.Seed {
		fmt.Fprintln(out, "ready")
		if _, err := in.ReadByte(); err != nil {
			return err
		}
		g := someGrant(seed.Realm)
		g.Key.ID, g.IssuedAt, g.ExpiresAt = seed.ID, seed.IssuedAt, seed.ExpiresAt
		var racers sync.WaitGroup
		for range what.Racers {
			racers.Go(func() {
				got, err := s.Admit(ctx, admissionOf(g))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && got.Fresh:
					v.Admitted[i]++
				case !errors.Is(err, pawl.ErrRefused):
					v.Errors = append(v.Errors, fmt.Sprint(err))
				}
			})
		}
		racers.Wait()
	}
	return nil
}

// another is a process that was given a task.
type another struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startTask(t *testing.T, what task) *another {
	t.Helper()
	raw, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), taskVariable+"="+string(raw))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &another{cmd, in, bufio.NewReader(out)}
}

func (a *another) awaitReady(t *testing.T) {
	t.Helper()
	if _, err := a.out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

func (a *another) begin(t *testing.T) {
	t.Helper()
	if _, err := a.in.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
}

func (a *another) verdicts(t *testing.T) (v verdicts) {
	t.Helper()
	if err := json.NewDecoder(a.out).Decode(&v); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestCase_CA1_TwoProcesses races fifty admissions for each of two hundred grants
// through two processes: each grant is admitted exactly once, everybody else is
// refused, and nothing fails [A1, A2, A11].
func TestCase_CA1_TwoProcesses(t *testing.T) {
	const grants, racers = 200, 50
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		tb := mustTables(t, dsn)
		s := tb.mustOpen(t, Options{})
		what := task{DSN: dsn, Schema: tb.schema, Racers: racers / 2}
		for range grants {
			g := someGrant(s.realm)
			what.Seed = append(what.Seed, grantOnWire{g.Key.ID, g.Realm, g.IssuedAt, g.ExpiresAt})
		}
		both := []*another{startTask(t, what), startTask(t, what)}
		for i := range grants {
			for _, a := range both {
				a.awaitReady(t)
			}
			for turn := range both {
				both[(i+turn)%len(both)].begin(t)
			}
		}
		total := make([]int, grants)
		for _, a := range both {
			v := a.verdicts(t)
			won := 0
			for i, n := range v.Admitted {
				total[i] += n
				won += n
			}
			if won == 0 || len(v.Errors) > 0 {
				t.Errorf("a process won %d grants and saw errors %q; want some, none", won, v.Errors)
			}
		}
		for i, n := range total {
			if n != 1 {
				t.Errorf("grant %d was admitted %d times, want once", i, n)
			}
		}
		if n := tb.count(t, "SELECT count(*) FROM @@.operations"); n != grants {
			t.Errorf("%d operations for %d grants", n, grants)
		}
	})
}

// TestTenProcessesMigrate: ten processes make one store at once [A1].
func TestTenProcessesMigrate(t *testing.T) {
	dsn := pgtest.Shared(t, pgtest.Newest(t)).Database(t)
	var all []*another
	for range 10 {
		all = append(all, startTask(t, task{DSN: dsn, Schema: "made_at_once", Migrate: true}))
	}
	for _, a := range all {
		a.begin(t)
	}
	ids := map[string]bool{}
	for _, a := range all {
		ids[a.verdicts(t).StoreID] = true
	}
	if len(ids) != 1 {
		t.Errorf("ten processes made %d stores, want one", len(ids))
	}
}
