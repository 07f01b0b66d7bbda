package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// exits runs a command that must end with an exit code: exits CODE pawl …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND …")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// member takes a member of a JSON file into a variable: member FILE PATH VAR
func member(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: member FILE PATH VAR")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	for _, p := range strings.Split(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[p]
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i >= len(at) {
				ts.Fatalf("no element %s", p)
			}
			v = at[i]
		default:
			ts.Fatalf("no member %s in %T", p, v)
		}
	}
	if v == nil {
		ts.Fatalf("no member %s in %s", args[1], args[0])
	}
	ts.Setenv(args[2], fmt.Sprint(v))
}

// absent fails if a text is in a file: what must not be shown. absent FILE TEXT
func absent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: absent FILE TEXT")
	}
	if strings.Contains(ts.ReadFile(args[0]), args[1]) {
		ts.Fatalf("%s shows it", args[0])
	}
}
