package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-go/pawl/internal/pgtest"
)

// TestMain lets the scripts run this very program as "pawl".
func TestMain(m *testing.M) {
	testscript.Main(postgres{m}, map[string]func(){"pawl": main})
}

// postgres runs the tests with the servers that they share, and ends those.
type postgres struct{ m *testing.M }

func (p postgres) Run() int { return pgtest.Main(p.m) }

// TestScripts are the command's behaviour, messages and exit codes, as text
// beside their inputs: testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_DATA_HOME", e.WorkDir+"/data")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("USER", "olga")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "member": member, "absent": absent,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// TestTimings_Documented: every field that --timing takes is in docs/timings.md.
func TestTimings_Documented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/timings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range timingFields() {
		if !strings.Contains(string(doc), "`"+f.name+"`") {
			t.Errorf("docs/timings.md does not name %s", f.name)
		}
	}
}

// runFor runs a command in this process until its context ends.
func runFor(ctx context.Context, args []string, env environment) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	return run(ctx, args, env)
}
