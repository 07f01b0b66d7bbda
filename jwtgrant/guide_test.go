package jwtgrant_test

import (
	"os"
	"strings"
	"testing"
)

// TestGuide holds the code of the guide to the examples, which run: each block
// stands in them, line by line, at whatever depth.
func TestGuide(t *testing.T) {
	sources := map[string]string{"go": "example_test.go", "js": "../test/jose/verify.mjs"}
	guide := read(t, "../docs/guides/issue-and-verify.md")
	blocks := 0
	for i, block := range strings.Split(guide, "```") {
		language, code, _ := strings.Cut(block, "\n")
		if i%2 == 0 || sources[language] == "" {
			continue
		}
		blocks++
		if !strings.Contains(flat(read(t, sources[language])), flat(code)) {
			t.Errorf("this block of the guide is not in %s:\n%s", sources[language], code)
		}
	}
	if blocks < 13 {
		t.Errorf("the guide has %d blocks of code, want at least 13", blocks)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// flat takes the indentation off each line.
func flat(code string) string {
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return "\n" + strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}
