package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// kept is a line of testdata/seeds: a seed that failed once, and what it found.
type kept struct {
	mistake Mistake
	seed    uint64
	rule    Rule
}

const seedsFile = "found.txt"

// readSeeds reads the kept seeds: mistake, seed, rule; # begins a comment.
func readSeeds(t *testing.T) (all []kept) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "seeds", seedsFile))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(line, "  ", 3)
		if len(f) != 3 {
			t.Fatalf("line %d is not \"mistake  seed  rule\"", i+1)
		}
		m, ok := parseMistake(f[0])
		seed, err := strconv.ParseUint(f[1], 10, 64)
		if !ok || err != nil || !slices.Contains(Rules(), Rule(f[2])) {
			t.Fatalf("line %d: no such mistake, seed or rule: %q", i+1, line)
		}
		all = append(all, kept{m, seed, Rule(f[2])})
	}
	return all
}

// TestMistakes plays every kept seed twice: with its mistake, which must break
// the same rule again, and without, which must break none. A seed whose mistake
// is none once found a real one.
//
// PAWL_UPDATE=1 looks for new seeds where a change of the simulator made the old
// ones tell another story.
func TestMistakes(t *testing.T) {
	if os.Getenv("PAWL_UPDATE") == "1" {
		searchSeeds(t)
	}
	found, broken := map[Mistake]bool{}, map[Rule]bool{}
	for _, k := range readSeeds(t) {
		t.Run(fmt.Sprintf("%v/%d", k.mistake, k.seed), func(t *testing.T) {
			if o := (Run{Seed: k.seed, Steps: runSteps}).Play(); o.Breach != nil {
				t.Errorf("without the mistake: %v\n%s", o.Breach, retell(o))
			}
			if k.mistake == NoMistake {
				return
			}
			o := Run{Seed: k.seed, Steps: runSteps, Mistake: k.mistake}.Play()
			if o.Breach == nil || o.Breach.Rule != k.rule {
				t.Fatalf("with the mistake: %v, want %q broken", o.Breach, k.rule)
			}
			t.Log(retell(o))
			found[k.mistake], broken[k.rule] = true, true
		})
	}
	for _, m := range Mistakes() {
		if !found[m] {
			t.Errorf("no kept seed finds %v", m)
		}
	}
	for _, r := range Rules() {
		if !broken[r] {
			t.Errorf("no mistake breaks the rule %q: a rule that cannot fail proves nothing", r)
		}
	}
}

// searchSeeds writes, for every mistake, the first seed that finds it, and those
// that break another rule soon after.
func searchSeeds(t *testing.T) {
	const longest, more = 400_000, 1000
	var b strings.Builder
	b.WriteString("# Seeds that failed: mistake, seed, the rule that broke. Replay one with\n" +
		"#   go test ./internal/sim -run TestSeed -seed SEED -mistake MISTAKE -v\n" +
		"# PAWL_UPDATE=1 go test ./internal/sim -run TestMistakes writes this file anew.\n")
	for _, m := range Mistakes() {
		var rules []Rule
		until := uint64(longest)
		for seed := uint64(1); seed < until; seed++ {
			o := Run{Seed: seed, Steps: runSteps, Mistake: m}.Play()
			if o.Breach == nil || slices.Contains(rules, o.Breach.Rule) {
				continue
			}
			if rules == nil {
				until = seed + more
			}
			rules = append(rules, o.Breach.Rule)
			fmt.Fprintf(&b, "%v  %d  %s\n", m, seed, o.Breach.Rule)
		}
		t.Logf("%v: %d rules", m, len(rules))
	}
	if err := os.WriteFile(filepath.Join("testdata", "seeds", seedsFile), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
