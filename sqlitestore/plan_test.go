package sqlitestore

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// On a fresh schema, with no statistics, no statement of an admission or of an
// owner's call reads through a table [A11]: a plan that does would only show
// itself when the table has grown.
func TestPlansOnAFreshSchema(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	allowed := map[string]string{
		"list_objects": "SCAN sqlite_schema",                                             // the same, at opening and for a report
		"quick_check":  "SCAN m, SCAN q VIRTUAL TABLE INDEX 0:",                          // reads all by intent, of a small file
		"list_leeways": "SCAN pawl_leeways",                                              // a handful of rows
		"oldest_claim": "SCAN pawl_claims USING COVERING INDEX pawl_claims_by_retention", // its first row
		// What waits for a person, what is open: few, and read without the write lock.
		"list_waiting": "SCAN pawl_operations USING INDEX pawl_operations_waiting",
		"count_stale":  "SCAN pawl_operations USING INDEX pawl_operations_open",
		"count_unsettled": "SCAN pawl_operations USING INDEX pawl_operations_open, " +
			"SCAN pawl_operations USING INDEX pawl_operations_waiting",
	}
	for _, name := range statementNames(t) {
		var found []string
		for _, step := range plan(t, s.reads, name) {
			if readsThrough(step) {
				found = append(found, step)
			}
			if strings.Contains(step, "AUTOMATIC") || strings.Contains(step, "TEMP B-TREE") && name != "list_waiting" {
				t.Errorf("%s: %s", name, step)
			}
		}
		if got := strings.Join(found, ", "); got != allowed[name] {
			t.Errorf("%s reads through %q, want %q", name, got, allowed[name])
		}
	}
}

func statementNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := statements.ReadDir("sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".sql"))
	}
	if len(names) < 30 {
		t.Fatalf("found only %d statements", len(names))
	}
	return names
}

func plan(t *testing.T, db *sql.DB, name string) (steps []string) {
	t.Helper()
	text, err := statementText(name)
	if err != nil {
		t.Fatal(err)
	}
	var args []any
	for _, p := range regexp.MustCompile(`:[a-z_]+`).FindAllString(text, -1) {
		args = append(args, named(p[1:], nil))
	}
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, detail)
	}
	return steps
}

// readsThrough tells the steps that look at every row of a table. A constant
// row, a common table expression and a list that was passed in are none.
func readsThrough(step string) bool {
	return strings.HasPrefix(step, "SCAN ") && !regexp.MustCompile(`^SCAN (CONSTANT ROW|o$|t$|json_each |\(subquery-)`).MatchString(step)
}
