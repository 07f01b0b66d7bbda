package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	contractFile    = "docs/contract.md"
	openClausesFile = "docs/open-clauses.txt"
)

// designClauses are the clauses there are: each family with the number of its last one. A new clause is added here and
// in docs/contract.md at once.
func designClauses() []string {
	families := []struct {
		letter string
		last   int
	}{{"A", 12}, {"B", 3}, {"R", 4}, {"P", 4}, {"S", 2}, {"O", 5}, {"M", 9}, {"E", 7}, {"T", 1}}
	var ids []string
	for _, f := range families {
		for n := range f.last {
			ids = append(ids, f.letter+strconv.Itoa(n+1))
		}
	}
	return ids
}

// contractClauses reads the clauses that the contract states: list items whose first word is the id in bold.
func contractClauses(text string) []string {
	var ids []string
	for _, m := range regexp.MustCompile(`(?m)^- \*\*([A-Z][0-9]+)\*\*`).FindAllStringSubmatch(text, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// citation is one place that says it carries a clause: "[A2]", or "[A2, A7]" for two.
type citation struct {
	clause string
	path   string
	line   int
	test   bool // in what serves tests
}

// citations reads the comments and strings of Go, and SQL and test scripts as a whole. Package comments in a doc.go tell
// of clauses and carry none, and this package cites only to explain itself: both are left out.
func citations(t *tree) (found []citation) {
	bracket := regexp.MustCompile(`\[([A-Z][0-9]+(?:, ?[A-Z][0-9]+)*)\]`)
	for _, f := range t.files {
		if strings.HasPrefix(f.path, "internal/archtest/") || path.Base(f.path) == "doc.go" {
			continue
		}
		for _, p := range prose(t, f) {
			for i, line := range strings.Split(p.text, "\n") {
				for _, m := range bracket.FindAllStringSubmatch(line, -1) {
					for clause := range strings.SplitSeq(m[1], ",") {
						c := citation{strings.TrimSpace(clause), f.path, p.line + i, f.servesTests()}
						found = append(found, c)
					}
				}
			}
		}
	}
	return found
}

// passage is text that people read, and the line where it begins.
type passage struct {
	line int
	text string
}

func prose(t *tree, f *file) []passage {
	if f.ast != nil {
		return goProse(t, f)
	}
	if ext := path.Ext(f.path); ext == ".sql" || ext == ".txtar" {
		return []passage{{1, string(f.data)}}
	}
	return nil
}

func goProse(t *tree, f *file) (found []passage) {
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			found = append(found, passage{t.line(c.Pos()), c.Text})
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			found = append(found, passage{t.line(lit.Pos()), lit.Value})
		}
		return true
	})
	return found
}

// openLine is a line of a list of what is open: an id, why, and the issue that will close it.
type openLine struct{ id, why, issue string }

// parseOpen reads such a list: three columns set apart by two blanks or more; # begins a comment.
func parseOpen(text string) (lines []openLine, err error) {
	columns := regexp.MustCompile(`^(\S+) {2,}(\S.*\S) {2,}(#\d+)$`)
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := columns.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %d is not \"clause  reason  #issue\": %q", i+1, line)
		}
		lines = append(lines, openLine{m[1], m[2], m[3]})
	}
	return lines, nil
}

// clauseMap says of each clause which files carry it.
type clauseMap struct {
	code, tests map[string][]string // clause to files
}

func newClauseMap(found []citation) clauseMap {
	m := clauseMap{map[string][]string{}, map[string][]string{}}
	for _, c := range found {
		side := m.code
		if c.test {
			side = m.tests
		}
		if !slices.Contains(side[c.clause], c.path) {
			side[c.clause] = append(side[c.clause], c.path)
		}
	}
	return m
}

func (m clauseMap) covered(clause string) bool {
	return len(m.code[clause]) > 0 && len(m.tests[clause]) > 0
}

// clauseProblems compares the contract, the citations and the list of what is open.
func clauseProblems(stated []string, found []citation, open []openLine) (problems []string) {
	known := designClauses()
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, id := range known {
		switch n := count(stated, id); {
		case n == 0:
			problem("%s does not state clause %s", contractFile, id)
		case n > 1:
			problem("%s states clause %s %d times", contractFile, id, n)
		}
	}
	for _, id := range stated {
		if !slices.Contains(known, id) {
			problem("%s states clause %s, which designClauses() does not have", contractFile, id)
		}
	}
	for _, c := range found {
		if !slices.Contains(known, c.clause) {
			problem("%s:%d cites clause %s, which does not exist", c.path, c.line, c.clause)
		}
	}
	m := newClauseMap(found)
	listed := map[string]bool{}
	for _, o := range open {
		switch {
		case !slices.Contains(known, o.id):
			problem("%s lists clause %s, which does not exist", openClausesFile, o.id)
		case listed[o.id]:
			problem("%s lists clause %s twice", openClausesFile, o.id)
		case m.covered(o.id):
			problem("%s lists clause %s, which has code (%s) and a test (%s)", openClausesFile, o.id, m.code[o.id][0], m.tests[o.id][0])
		}
		listed[o.id] = true
	}
	for _, id := range known {
		if listed[id] {
			continue
		}
		if len(m.code[id]) == 0 {
			problem("no code cites clause %s", id)
		}
		if len(m.tests[id]) == 0 {
			problem("no test cites clause %s", id)
		}
	}
	return problems
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// TestMapClauses holds the contract, the code and the tests together; -v prints who carries what.
func TestMapClauses(t *testing.T) {
	tr := loadTree(t)
	stated := contractClauses(readFile(t, repository+"/"+contractFile))
	found := citations(tr)
	m := newClauseMap(found)
	if updating() {
		strike(t, repository+"/"+openClausesFile, m.covered)
	}
	open, err := parseOpen(readFile(t, repository+"/"+openClausesFile))
	if err != nil {
		t.Fatalf("%s: %v", openClausesFile, err)
	}
	for _, p := range clauseProblems(stated, found, open) {
		t.Error(p)
	}
	t.Run("matrix", func(t *testing.T) {
		var text strings.Builder
		for _, id := range designClauses() {
			fmt.Fprintf(&text, "\n%-4s code:  %s\n     tests: %s", id, strings.Join(m.code[id], " "), strings.Join(m.tests[id], " "))
		}
		for _, o := range open {
			fmt.Fprintf(&text, "\nopen: %-4s %s (%s)", o.id, o.why, o.issue)
		}
		t.Log(text.String())
	})
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// updating tells whether the lists of what is open may be rewritten. They only ever get shorter that way: what is lost
// again must be looked at by a person.
func updating() bool { return os.Getenv("PAWL_UPDATE") == "1" }

// strike removes the lines whose first word is done.
func strike(t *testing.T, name string, done func(id string) bool) {
	t.Helper()
	var kept strings.Builder
	for line := range strings.Lines(readFile(t, name)) {
		if words := strings.Fields(line); len(words) == 0 || !done(words[0]) {
			kept.WriteString(line)
		}
	}
	if err := os.WriteFile(name, []byte(kept.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestMapClausesCanFail(t *testing.T) {
	all := designClauses()
	code := func(id string) citation { return citation{id, "a.go", 1, false} }
	test := func(id string) citation { return citation{id, "a_test.go", 2, true} }
	full := func(but string) (cites []citation) {
		for _, id := range all {
			if id != but {
				cites = append(cites, code(id), test(id))
			}
		}
		return cites
	}
	for _, tc := range []struct {
		name   string
		stated []string
		cites  []citation
		open   []openLine
		want   []string
	}{
		{"everything carried", all, full(""), nil, nil},
		{"listed as open", all, full("A3"), []openLine{{"A3", "later", "#9"}}, nil},
		{"open with code and no test", all, append(full("A3"), code("A3")), []openLine{{"A3", "later", "#9"}}, nil},
		{"no test", all, append(full("A3"), code("A3")), nil, []string{"no test cites clause A3"}},
		{"no code", all, append(full("A3"), test("A3")), nil, []string{"no code cites clause A3"}},
		{"nothing", all, full("A3"), nil, []string{"no code cites clause A3", "no test cites clause A3"}},
		{
			"open and carried", all, full(""),
			[]openLine{{"A3", "later", "#9"}},
			[]string{"docs/open-clauses.txt lists clause A3, which has code (a.go) and a test (a_test.go)"},
		},
		{
			"open twice", all, full("A3"),
			[]openLine{{"A3", "later", "#9"}, {"A3", "later", "#9"}},
			[]string{"docs/open-clauses.txt lists clause A3 twice"},
		},
		{
			"open and unknown", all, full(""),
			[]openLine{{"A99", "later", "#9"}},
			[]string{"docs/open-clauses.txt lists clause A99, which does not exist"},
		},
		{
			"unknown citation", all, append(full(""), code("A13")), nil,
			[]string{"a.go:1 cites clause A13, which does not exist"},
		},
		{
			"not stated", without(all, "T1"), full(""), nil,
			[]string{"docs/contract.md does not state clause T1"},
		},
		{
			"stated twice and stated too much", append(slices.Clone(all), "A1", "Z1"), full(""), nil,
			[]string{"docs/contract.md states clause A1 2 times", "docs/contract.md states clause Z1, which designClauses() does not have"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clauseProblems(tc.stated, tc.cites, tc.open)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

func TestCitations(t *testing.T) {
	tr := newTree()
	tr.add("a.go", []byte("package a\n\n// It does [A1].\n// And [A2, B3] and [A2].\nvar _ = `\n[E7]`\n\nvar x = m[A9]\n"))
	tr.add("a_test.go", []byte("package a\n\nfunc f() { t.Run(\"[M1] holds\", g) }\n"))
	tr.add("storetest/admit.go", []byte("package storetest\n// [A4]\n"))
	tr.add("sql/claim.sql", []byte("SELECT 1 -- [O1]\n"))
	tr.add("cmd/testdata/x.txtar", []byte("# [S2]\n"))
	tr.add("doc.go", []byte("// Package a keeps [A7].\npackage a\n"))
	tr.add("docs/a.md", []byte("[A5] is a link here"))
	tr.add("internal/archtest/a_test.go", []byte("package archtest\n// [A6]\n"))
	got := map[string]string{}
	for _, c := range citations(tr) {
		got[c.clause] += fmt.Sprintf("%s:%d %t;", c.path, c.line, c.test)
	}
	want := map[string]string{
		"A1": "a.go:3 false;", "A2": "a.go:4 false;a.go:4 false;", "B3": "a.go:4 false;", "E7": "a.go:6 false;",
		"M1": "a_test.go:3 true;", "A4": "storetest/admit.go:2 true;", "O1": "sql/claim.sql:1 false;",
		"S2": "cmd/testdata/x.txtar:1 true;",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("citations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"A1", "M2"}, contractClauses("- **A1** so\n  **A2** not\n- **M2**, too\n")); diff != "" {
		t.Errorf("clauses (-want +got):\n%s", diff)
	}
	if _, err := parseOpen("A1  no issue\n"); err == nil {
		t.Error("a line without an issue was taken")
	}
}
