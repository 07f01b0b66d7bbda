package pawl_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// ruleTable is a table in testdata/rules: conditions first, consequences after.
type ruleTable struct {
	name string
	rows []ruleRow
}

type ruleRow struct {
	line int
	cond []string // one for each condition; alternatives parted by commas
	then []string
}

// readRules reads a table of so many conditions and consequences.
func readRules(t *testing.T, name string, conditions, consequences int) ruleTable {
	t.Helper()
	raw, err := os.ReadFile("testdata/rules/" + name)
	if err != nil {
		t.Fatal(err)
	}
	table := ruleTable{name: name}
	for i, line := range strings.Split(string(raw), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) != conditions+consequences {
			t.Fatalf("%s:%d has %d columns, want %d", name, i+1, len(f), conditions+consequences)
		}
		table.rows = append(table.rows, ruleRow{line: i + 1, cond: f[:conditions], then: f[conditions:]})
	}
	if len(table.rows) == 0 {
		t.Fatalf("%s has no rows", name)
	}
	return table
}

// find returns the one row that a case falls under.
func (r ruleTable) find(t *testing.T, values ...string) ruleRow {
	t.Helper()
	var found []ruleRow
	for _, row := range r.rows {
		if row.covers(values) {
			found = append(found, row)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: %d rows for %v, want exactly one", r.name, len(found), values)
	}
	return found[0]
}

func (r ruleRow) covers(values []string) bool {
	for i, v := range values {
		if r.cond[i] != "*" && !slices.Contains(strings.Split(r.cond[i], ","), v) {
			return false
		}
	}
	return true
}

// walk calls f with every combination of the values of each condition.
func walk(values [][]string, f func(pick []string)) {
	pick := make([]string, len(values))
	var step func(int)
	step = func(i int) {
		if i == len(values) {
			f(pick)
			return
		}
		for _, v := range values[i] {
			pick[i] = v
			step(i + 1)
		}
	}
	step(0)
}

// unused returns the rows that no case fell under.
func (r ruleTable) unused(used map[int]bool) (lines []int) {
	for _, row := range r.rows {
		if !used[row.line] {
			lines = append(lines, row.line)
		}
	}
	return lines
}
