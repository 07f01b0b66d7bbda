package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// runSteps is how long a run goes on before its faults stop.
const runSteps = 400

// TestRuns plays one seed after another until the steps are made. Every rule must
// hold after every step and at the end of every run: one admission [A2], at most
// one effect while the provider keeps its word [O5, E5], no final status lowered
// [M1], no success lost [M3], and every operation settled or a person's [E6].
func TestRuns(t *testing.T) {
	steps := option[int](t, "steps")
	if steps == 0 {
		steps = 200_000
	}
	if testing.Short() || raceDetector {
		steps = min(steps, 50_000)
	}
	seed := max(option[uint64](t, "seed"), 1)
	c := NewCensus()
	for ; c.Steps < steps; seed++ {
		o := Run{Seed: seed, Steps: runSteps, Census: c}.Play()
		if o.Breach != nil {
			t.Fatalf("seed %d: %v\n%s", seed, o.Breach, retell(o))
		}
	}
	t.Logf("seeds up to %d: %v", seed-1, c)
	if missing := c.missing(); missing != nil && steps >= 200_000 {
		t.Errorf("the runs never came to: %s", strings.Join(missing, ", "))
	}
}

// missing are the situations that a fair number of steps must have seen: what is
// never reached is not tested.
func (c *Census) missing() (missing []string) {
	for _, what := range []string{
		"status unknown", "status needs_reconciliation", "status conflict", "status failed", "status succeeded",
		"succeeded after a takeover", "creates again", "evidence applied", "evidence deferred", "evidence duplicate",
		"evidence divergent", "evidence mismatch", "evidence weaker", "revoked", "claims purged", "operations deleted", "joined",
		"refusals by the provider",
	} {
		if c.Reached[what] < 5 {
			missing = append(missing, what)
		}
	}
	for k, n := range c.Moves {
		if n == 0 {
			missing = append(missing, "a move "+MoveKind(k).String())
		}
	}
	return missing
}

// retell is the shortest story that breaks the same rule.
func retell(o Outcome) string {
	moves := Shrink(o.Plan, o.Moves, o.Breach.Rule)
	var b strings.Builder
	fmt.Fprintf(&b, "%d moves, of which %d are enough (provider: %+v):\n", len(o.Moves), len(moves), o.Plan.Provider)
	breach := Replay(o.Plan, moves, func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) })
	fmt.Fprintf(&b, "broken: %v\n", breach)
	return b.String()
}

// TestSeed tells the story of one seed, with or without a mistake.
func TestSeed(t *testing.T) {
	seed := max(option[uint64](t, "seed"), 1)
	m, ok := parseMistake(option[string](t, "mistake"))
	if !ok {
		t.Fatalf("no such -mistake; there are %v", Mistakes())
	}
	o := Run{Seed: seed, Steps: runSteps, Mistake: m}.Play()
	if o.Breach != nil {
		t.Errorf("seed %d: %v\n%s", seed, o.Breach, retell(o))
		return
	}
	t.Logf("seed %d breaks no rule:\n%s", seed, story(o))
}

func parseMistake(name string) (Mistake, bool) {
	all := append(Mistakes(), NoMistake)
	i := slices.IndexFunc(all, func(m Mistake) bool { return m.String() == name })
	if i < 0 {
		return 0, false
	}
	return all[i], true
}

// The same seed is the same run, and the moves alone are enough to repeat it.
func TestRunsRepeat(t *testing.T) {
	for seed := range uint64(20) {
		r := Run{Seed: seed, Steps: runSteps}
		first, second := r.Play(), r.Play()
		if diff := cmp.Diff(first.Moves, second.Moves); diff != "" {
			t.Fatalf("seed %d (-first +second):\n%s", seed, diff)
		}
		if a, b := story(first), story(second); a != b {
			t.Fatalf("seed %d: the moves tell another story:\n%s", seed, cmp.Diff(a, b))
		}
	}
}

func story(o Outcome) string {
	var b strings.Builder
	Replay(o.Plan, o.Moves, func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) })
	return b.String()
}

// A clone goes its own way: what happens to it does not happen to the world it
// came from, and worlds that are encoded alike go on alike.
func TestClone(t *testing.T) {
	o := Run{Seed: 7, Steps: runSteps}.Play()
	w := NewWorld(o.Plan)
	for _, m := range o.Moves {
		before := w.encode(nil)
		c := w.Clone()
		c.Do(m)
		if diff := cmp.Diff(before, w.encode(nil)); diff != "" {
			t.Fatalf("%v changed the world that was cloned: %s", m, diff)
		}
		w.Do(m)
		if diff := cmp.Diff(w.encode(nil), c.encode(nil)); diff != "" {
			t.Fatalf("%v made another world of the clone: %s", m, diff)
		}
	}
}
