package archtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rule is one thing that holds for the whole tree. check returns every breach; exceptions are taken off afterwards.
type rule struct {
	name  string
	why   string
	check func(*tree) []finding
}

// finding is one breach. name is the identifier or import it is about, for exceptions to name.
type finding struct {
	rule string
	path string
	line int
	name string
	text string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.text) }

func rules() []rule {
	return []rule{
		{"parses", "no rule can see into a file that does not parse", parses},
		{"layers", "the tree is the architecture: every package has a row that says what it may import", importsOwnLayer},
		{"reach", "what a package must not import it must not get through another either", reachesNothingBanned},
		{"no-init", "work done by importing a package cannot fail, be ordered or be tested", noInit},
		{
			"no-package-variables",
			"state that every caller shares is state that no test can set apart; constants, functions, embedded files and " +
				"assertions (var _ I = T{}) do",
			noPackageVariables,
		},
		{"wall-clock", "the store's clock decides; a second clock can only disagree", wallClock},
		{"banned-names", "one word per idea: a grant is admitted, and asking whether it was decides nothing", bannedNames},
		{"package-comment", "a package says once what it is for", packageComments},
		{"exported-comment", "an exported name is a promise, and its comment states it", exportedComments},
		{"function-length", "a function longer than a screen hides its shape: 70 lines, tests 100", functionLength},
		{"file-length", "a file of more than 800 lines is two files; aim for 500", fileLength},
		{"no-binaries", "what cannot be read cannot be reviewed", noBinaries},
		{"no-machine-paths", "a tree that names one machine or one registry works there only", noMachinePaths},
		{"no-placeholders", "what is left to do is an issue, not a comment", noPlaceholders},
	}
}

// TestRules holds the repository to every rule.
func TestRules(t *testing.T) {
	tr := loadTree(t)
	var needed []exception
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			left, used := takeOff(r.findings(tr), exceptions())
			needed = append(needed, used...)
			for _, f := range left {
				t.Error(f)
			}
			if len(left) > 0 {
				t.Logf("the rule: %s", r.why)
			}
		})
	}
	t.Run("exceptions", func(t *testing.T) {
		for _, e := range exceptions() {
			if !slices.Contains(needed, e) {
				t.Errorf("exception from %s for %s %s: nothing needs it any more", e.rule, e.path, e.name)
			}
			if e.why == "" {
				t.Errorf("exception from %s for %s %s has no reason", e.rule, e.path, e.name)
			}
		}
	})
	t.Run("folders", func(t *testing.T) {
		if updating() {
			strike(t, notYetFile, tr.exists)
		}
		for _, text := range stale(tr, namedFolders(), notYet(t)) {
			t.Error(text)
		}
	})
	t.Run("long files", func(t *testing.T) {
		for _, f := range tr.goFiles() {
			if n := f.lines(); n > 500 {
				t.Logf("%s has %d lines; about 500 are aimed for", f.path, n)
			}
		}
	})
}

func (r rule) findings(tr *tree) []finding {
	all := r.check(tr)
	for i := range all {
		all[i].rule = r.name
	}
	return all
}

// takeOff separates the findings that stand from the exceptions that cover the others.
func takeOff(all []finding, allowed []exception) (left []finding, used []exception) {
	for _, f := range all {
		i := slices.IndexFunc(allowed, func(e exception) bool { return e.covers(f) })
		if i < 0 {
			left = append(left, f)
			continue
		}
		used = append(used, allowed[i])
	}
	return left, used
}

// TestRulesCanFail runs every rule on the small trees in testdata/rules. Each says in its head which findings it must
// bring about, as "want: RULE PATH:LINE"; any other finding, of whatever rule, is an error too.
func TestRulesCanFail(t *testing.T) {
	archives, err := filepath.Glob("testdata/rules/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	caught := map[string]bool{}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			want, tr := readTree(t, name)
			var got []string
			for _, r := range rules() {
				left, _ := takeOff(r.findings(tr), exceptions())
				for _, f := range left {
					got = append(got, fmt.Sprintf("%s %s:%d", f.rule, f.path, f.line))
					caught[r.name] = true
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
	for _, r := range rules() {
		if !caught[r.name] {
			t.Errorf("no tree in testdata/rules breaks the rule %s: nothing shows that it can fail", r.name)
		}
	}
}

// readTree reads an archive of the txtar format: a head, then files, each under its name as "-- name --".
func readTree(t *testing.T, name string) (want []string, tr *tree) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile(`(?m)^-- (.+) --\n`).FindAllStringSubmatchIndex(string(data), -1)
	if len(parts) == 0 {
		t.Fatal("no file in the archive")
	}
	for line := range strings.Lines(string(data[:parts[0][0]])) {
		if w, ok := strings.CutPrefix(line, "want: "); ok {
			want = append(want, strings.TrimSpace(w))
		}
	}
	slices.Sort(want)
	tr = newTree()
	for i, part := range parts {
		end := len(data)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		}
		tr.add(string(data[part[2]:part[3]]), expand(data[part[1]:end]))
	}
	return want, tr
}

// expand writes out what a tree abbreviates: a NUL byte as ␀, and N lines of comment as one line "… N".
func expand(data []byte) []byte {
	data = bytes.ReplaceAll(data, []byte("␀"), []byte{0})
	return regexp.MustCompile(`(?m)^… \d+$`).ReplaceAllFunc(data, func(mark []byte) []byte {
		var n int
		fmt.Sscanf(string(mark), "… %d", &n)
		return bytes.TrimSuffix(bytes.Repeat([]byte("//\n"), n), []byte("\n"))
	})
}

// parses finds Go files that no rule could look into.
func parses(t *tree) (found []finding) {
	for _, f := range t.files {
		if f.err != nil {
			found = append(found, finding{path: f.path, line: 1, text: f.err.Error()})
		}
	}
	return found
}
