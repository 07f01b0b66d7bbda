//go:build failpoints

package failpoint

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLoadRefuses(t *testing.T) {
	for _, setting := range []string{
		"admit.claimd=kill", "admit.claimed", "admit.claimed=", "admit.claimed=explode", "admit.claimed=kill@0",
		"admit.claimed=kill@x", "admit.claimed=pause", "admit.claimed=pause:", "admit.claimed=kill:now",
	} {
		if _, err := load(setting); err == nil {
			t.Errorf("load(%q) accepts it", setting)
		}
	}
}

func TestErrorOnlyOnTheCountedPassage(t *testing.T) {
	table, err := load("commit.before=error@2,commit.after=error")
	if err != nil {
		t.Fatal(err)
	}
	for passage, want := range []error{nil, ErrInjected, nil} {
		if err := table.hit(CommitBefore); !errors.Is(err, want) {
			t.Errorf("passage %d: %v, want %v", passage+1, err, want)
		}
		if err := table.hit(CommitAfter); !errors.Is(err, ErrInjected) {
			t.Errorf("a point without a count, passage %d: %v", passage+1, err)
		}
	}
	if err := table.hit(AdmitBegun); err != nil {
		t.Errorf("a point that is not set: %v", err)
	}
}

func TestPauseGoesOnWhenTheFileIsGone(t *testing.T) {
	here := filepath.Join(t.TempDir(), "here")
	table, err := load("admit.begun=pause:" + here)
	if err != nil {
		t.Fatal(err)
	}
	passed := make(chan error)
	go func() { passed <- table.hit(AdmitBegun) }()
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		if _, err := os.Stat(here); err == nil {
			break
		}
	}
	select {
	case <-passed:
		t.Fatal("it went on while the file was there")
	default:
	}
	if err := os.Remove(here); err != nil {
		t.Fatal(err)
	}
	if err := <-passed; err != nil {
		t.Error(err)
	}
}

// TestKill runs itself as a process that must not come past the point.
func TestKill(t *testing.T) {
	const past = "came past the point"
	if os.Getenv("FAILPOINT_TEST_CHILD") != "" {
		_ = Hit(CommitAfter)
		os.Stdout.WriteString(past)
		os.Exit(0)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), "FAILPOINT_TEST_CHILD=1", Variable+"=commit.after=kill")
	out, err := cmd.CombinedOutput()
	if err == nil || strings.Contains(string(out), past) {
		t.Errorf("the process ended with %v and said %q", err, out)
	}
	cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), "FAILPOINT_TEST_CHILD=1", Variable+"=comit.after=kill")
	if out, err = cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "no point is called") {
		t.Errorf("with a misspelt name the process ended with %v and said %q", err, out)
	}
}
