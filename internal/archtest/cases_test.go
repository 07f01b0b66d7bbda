package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const casesFile = "testdata/cases.txt"

// caseStatus maps each case to whether tests are said to cover it.
type caseStatus map[string]bool

// parseCases reads lines of "C-A1 open" or "C-A1 covered"; # begins a comment.
func parseCases(text string) (caseStatus, error) {
	cases := caseStatus{}
	columns := regexp.MustCompile(`^(C-[A-E][0-9]+) +(open|covered)$`)
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := columns.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %d is neither \"ID open\" nor \"ID covered\": %q", i+1, line)
		}
		if _, twice := cases[m[1]]; twice {
			return nil, fmt.Errorf("line %d lists %s again", i+1, m[1])
		}
		cases[m[1]] = m[2] == "covered"
	}
	return cases, nil
}

// caseTests finds the cases that tests name, with the files: CA1 in the name of a function, as in TestCase_CA1_Race, or
// C-A1 in a string, as in the name of a subtest.
func caseTests(t *tree) map[string][]string {
	found := map[string][]string{}
	add := func(id string, f *file) {
		if !slices.Contains(found[id], f.path) {
			found[id] = append(found[id], f.path)
		}
	}
	inName := regexp.MustCompile(`_C([A-E][0-9]+)`)
	inString := regexp.MustCompile(`\bC-([A-E][0-9]+)`)
	for _, f := range t.goFiles() {
		if !f.servesTests() || strings.HasPrefix(f.path, "internal/archtest/") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				for _, m := range inName.FindAllStringSubmatch(n.Name.Name, -1) {
					add("C-"+m[1], f)
				}
			case *ast.BasicLit:
				for _, m := range inString.FindAllStringSubmatch(n.Value, -1) {
					add("C-"+m[1], f)
				}
			}
			return true
		})
	}
	return found
}

func caseProblems(cases caseStatus, tests map[string][]string) (problems []string) {
	for id, covered := range cases {
		switch {
		case covered && len(tests[id]) == 0:
			problems = append(problems, fmt.Sprintf("no test names case %s, which %s calls covered", id, casesFile))
		case !covered && len(tests[id]) > 0:
			problems = append(problems, fmt.Sprintf("%s names case %s, which %s calls open", tests[id][0], id, casesFile))
		}
	}
	for id, files := range tests {
		if _, known := cases[id]; !known {
			problems = append(problems, fmt.Sprintf("%s names case %s, which %s does not have", files[0], id, casesFile))
		}
	}
	slices.Sort(problems)
	return problems
}

// TestMapCases holds the list of cases and the tests together; -v prints which file tests what.
func TestMapCases(t *testing.T) {
	tests := caseTests(loadTree(t))
	if updating() {
		markCovered(t, tests)
	}
	cases, err := parseCases(readFile(t, casesFile))
	if err != nil {
		t.Fatalf("%s: %v", casesFile, err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s lists no case", casesFile)
	}
	for _, p := range caseProblems(cases, tests) {
		t.Error(p)
	}
	t.Run("matrix", func(t *testing.T) {
		var text strings.Builder
		open := 0
		for _, id := range slices.Sorted(maps.Keys(cases)) {
			if !cases[id] {
				open++
			}
			fmt.Fprintf(&text, "\n%-6s %s", id, strings.Join(tests[id], " "))
		}
		t.Logf("%s\n%d cases, %d of them open", text.String(), len(cases), open)
	})
}

// markCovered writes "covered" at the cases that tests name now.
func markCovered(t *testing.T, tests map[string][]string) {
	t.Helper()
	var text strings.Builder
	for line := range strings.Lines(readFile(t, casesFile)) {
		if id, rest, ok := strings.Cut(line, " "); ok && len(tests[id]) > 0 {
			line = id + " " + strings.Replace(rest, "open", "covered", 1)
		}
		text.WriteString(line)
	}
	if err := os.WriteFile(casesFile, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestMapCasesCanFail(t *testing.T) {
	cases, err := parseCases("# the head\nC-A1 covered\nC-A2 open\nC-A3 covered\nC-A4 open\n")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string][]string{"C-A1": {"a_test.go"}, "C-A2": {"a_test.go"}, "C-Z1": {"a_test.go"}}
	want := []string{
		"a_test.go names case C-A2, which testdata/cases.txt calls open",
		"a_test.go names case C-Z1, which testdata/cases.txt does not have",
		"no test names case C-A3, which testdata/cases.txt calls covered",
	}
	if diff := cmp.Diff(want, caseProblems(cases, tests)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"C-A1 maybe", "A1 open", "C-A1 open\nC-A1 covered"} {
		if _, err := parseCases(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestCaseTests(t *testing.T) {
	tr := newTree()
	tr.add("a_test.go", []byte("package a\n\n// C-A9 is only a comment.\nfunc TestCase_CA1_Race() {}\n\nfunc TestCase_CA12_CB3() { t.Run(\"C-E14 order\", f) }\n"))
	tr.add("a.go", []byte("package a\n\nfunc f_CA2() { g(\"C-A3\") }\n"))
	tr.add("storetest/race.go", []byte("package storetest\n\nfunc race() { t.Run(`C-A4`, f) }\n"))
	got := slices.Sorted(maps.Keys(caseTests(tr)))
	if diff := cmp.Diff([]string{"C-A1", "C-A12", "C-A4", "C-B3", "C-E14"}, got); diff != "" {
		t.Errorf("cases (-want +got):\n%s", diff)
	}
}
