package pgstore

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestStatements holds the files to what is relied on elsewhere: each is named by
// a constant, every name of ours is qualified, and no string could be taken for a
// comment.
func TestStatements(t *testing.T) {
	const schema = "elsewhere"
	texts, err := loadStatements(schema)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("statements.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[statement]bool{}
	for _, m := range regexp.MustCompile(`stmt\w+\s+statement = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		named[statement(m[1])] = true
	}
	for name := range named {
		if texts[name] == "" {
			t.Errorf("the statement %s has no file", name)
		}
	}
	ours := regexp.MustCompile(`(?i)\b(FROM|JOIN|INTO|UPDATE)\s+([a-z_"]+)(\.\w+)?`)
	ctes := regexp.MustCompile(`(\w+) AS (?:MATERIALIZED )?\(`)
	for name, text := range texts {
		if !named[name] {
			t.Errorf("no constant names the file of %s", name)
		}
		if strings.Contains(text, defaultSchema+".") {
			t.Errorf("%s: the schema's name was not replaced", name)
		}
		var local []string
		for _, m := range ctes.FindAllStringSubmatch(text, -1) {
			local = append(local, m[1])
		}
		for _, m := range ours.FindAllStringSubmatch(text, -1) {
			word := m[2]
			if word == quoted(schema) || strings.HasPrefix(word, "pg_") || slices.Contains(local, word) || !slices.Contains(tableNames(), word) {
				continue
			}
			t.Errorf("%s: %s is not qualified", name, word)
		}
	}
	files, err := fs.Glob(sqlFiles, "sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := fs.ReadFile(sqlFiles, file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`'[^'\n]*--[^'\n]*'`).Match(raw) {
			t.Errorf("%s: a string holds two hyphens", file)
		}
		if !strings.HasPrefix(string(raw), "-- ") && !strings.HasPrefix(path.Base(file), partPrefix) {
			t.Errorf("%s does not begin by saying what it does", file)
		}
	}
}

func tableNames() []string {
	return []string{"schema_state", "meta", "secrets", "leeways", "grants", "claims", "operations", "entries"}
}

// TestSessionIsReadAlike: all statements that make an operation demand the same of
// their session, word by word [A11].
func TestSessionIsReadAlike(t *testing.T) {
	block := func(name string) string {
		raw, err := fs.ReadFile(sqlFiles, "sql/"+name+".sql")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(string(raw), "-- session: begin")
		text, _, ended := strings.Cut(rest, "-- session: end")
		if !ok || !ended {
			t.Fatalf("%s does not read its session", name)
		}
		return text
	}
	want := block("admit_token")
	for _, name := range []string{"admit_stored", "reserve"} {
		if got := block(name); got != want {
			t.Errorf("%s demands of its session:\n%s\nwant\n%s", name, got, want)
		}
	}
	for _, setting := range []string{
		"pg_is_in_recovery()", "'transaction_isolation'", "'client_min_messages'", "'synchronous_commit'",
		"'synchronous_standby_names'", "'transaction_timeout'", "'statement_timeout'",
	} {
		if !strings.Contains(want, setting) {
			t.Errorf("no admission reads %s", setting)
		}
	}
}
