package main

import (
	"os"
	"strings"
	"testing"
)

// Example runs the program as the README prints it.
func Example() {
	dir, err := os.MkdirTemp("", "pawl-example-")
	check(err)
	defer os.RemoveAll(dir)
	back, err := os.Getwd()
	check(err)
	check(os.Chdir(dir))
	defer func() { check(os.Chdir(back)) }()
	main()
	// Output:
	// one create call, details {"account":"A-1187","amount":"250.00"}
	// first:  succeeded cr_8812
	// retry:  succeeded cr_8812
	// replay: refused true
}

// TestReadme: the README's program is this program, byte for byte.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	from := strings.Index(string(program), "// credit performs")
	if from < 0 || !strings.Contains(string(readme), "```go\n"+string(program[from:])+"```") {
		t.Error("the program in the README is not examples/credit/main.go from its type on")
	}
}
