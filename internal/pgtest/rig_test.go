package pgtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/pgtest"
)

// verdict is how a test of the rig's own would have ended.
type verdict struct {
	testing.TB
	skipped, failed string
	cleanups        []func()
}

func (v *verdict) Helper()          {}
func (v *verdict) Log(...any)       {}
func (v *verdict) Cleanup(f func()) { v.cleanups = append(v.cleanups, f) }
func (v *verdict) Failed() bool     { return v.failed != "" }
func (v *verdict) Skipped() bool    { return v.skipped != "" }
func (v *verdict) Error(args ...any) {
	v.failed += fmt.Sprintln(args...)
}

func (v *verdict) Fatal(args ...any) {
	v.Error(args...)
	runtime.Goexit()
}

func (v *verdict) Fatalf(format string, args ...any) { v.Fatal(fmt.Sprintf(format, args...)) }

func (v *verdict) Skip(args ...any) {
	v.skipped = fmt.Sprintln(args...)
	runtime.Goexit()
}

// judge runs a test of the rig's own to its end, clean-up included.
func judge(t *testing.T, test func(testing.TB)) *verdict {
	t.Helper()
	v := &verdict{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(v)
	}()
	<-done
	for i := len(v.cleanups) - 1; i >= 0; i-- {
		v.cleanups[i]()
	}
	return v
}

func TestWhatIsNotInstalledSkipsOrFails(t *testing.T) {
	versions := func(tb testing.TB) { pgtest.Versions(tb) }
	t.Setenv("PAWL_CACHE", t.TempDir())
	t.Setenv("PAWL_REQUIRE_ALL", "")
	if v := judge(t, versions); !strings.Contains(v.skipped, "test/postgres/setup") {
		t.Errorf("nothing installed: skipped %q, failed %q; want a skip that names the remedy", v.skipped, v.failed)
	}
	t.Setenv("PAWL_REQUIRE_ALL", "1")
	if v := judge(t, versions); !strings.Contains(v.failed, "PostgreSQL 15") {
		t.Errorf("nothing may be missing: skipped %q, failed %q; want a failure that names what is", v.skipped, v.failed)
	}
	t.Setenv("PAWL_POSTGRES", "18")
	if v := judge(t, versions); v.failed == "" {
		t.Error("a list that leaves versions out passed where nothing may be missing")
	}
	t.Setenv("PAWL_REQUIRE_ALL", "")
	for _, list := range []string{"14", "19", "x", "17,", "17;18"} {
		t.Setenv("PAWL_POSTGRES", list)
		if v := judge(t, versions); v.failed == "" {
			t.Errorf("PAWL_POSTGRES=%q passed", list)
		}
	}
	t.Setenv("PAWL_POSTGRES", "")
	t.Setenv("PAWL_CACHE", "relative")
	if v := judge(t, versions); v.failed == "" && v.skipped == "" {
		t.Error("a relative PAWL_CACHE passed")
	}
}

func TestAListChoosesVersions(t *testing.T) {
	all := pgtest.Versions(t)
	t.Setenv("PAWL_REQUIRE_ALL", "")
	last := all[len(all)-1]
	t.Setenv("PAWL_POSTGRES", fmt.Sprintf("%s, %s", last, last))
	got := pgtest.Versions(t)
	if len(got) != 1 || got[0] != last {
		t.Errorf("Versions() = %v, want %v alone", got, last)
	}
}

func TestASharedServerIsSafeFromATest(t *testing.T) {
	s := pgtest.Shared(t, pgtest.Newest(t))
	for name, harm := range map[string]func(testing.TB){
		"Kill":         s.Kill,
		"Stop":         s.Stop,
		"Restart":      s.Restart,
		"Promote":      s.Promote,
		"Reload":       func(tb testing.TB) { s.Reload(tb, map[string]string{"work_mem": "5MB"}) },
		"StartReplica": func(tb testing.TB) { pgtest.StartReplica(tb, s, nil) },
	} {
		if v := judge(t, harm); v.failed == "" {
			t.Errorf("%s of a shared server passed", name)
		}
	}
	if got := s.Text(t, "SELECT current_setting('work_mem')"); got == "5MB" {
		t.Error("a shared server was reconfigured")
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	v := judge(t, func(tb testing.TB) {
		pgtest.Start(tb, pgtest.Newest(t), &pgtest.Options{Config: map[string]string{"no_such_setting": "1"}})
	})
	if !strings.Contains(v.failed, "no_such_setting") {
		t.Errorf("failed with %q, want the server's own reason", v.failed)
	}
}

func TestAFaultThatNeverTakesPlaceFailsTheTest(t *testing.T) {
	s := pgtest.Shared(t, pgtest.Newest(t))
	inject := func(tb testing.TB) *pgtest.Injection {
		return pgtest.StartProxy(tb, s.Addr()).Inject(pgtest.Fault{Action: pgtest.CutBefore})
	}
	if v := judge(t, func(tb testing.TB) { inject(tb) }); v.failed == "" {
		t.Error("a test passed whose fault did not take place")
	}
	if v := judge(t, func(tb testing.TB) { inject(tb).Withdraw() }); v.failed != "" {
		t.Errorf("a withdrawn fault failed the test: %s", v.failed)
	}
}

// setup runs test/postgres/setup with a cache of its own and the named programs alone.
func setup(t *testing.T, programs map[string]string) (output string, err error) {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{
		"bash", "cat", "chmod", "dirname", "flock", "id", "mkdir", "mktemp", "mv", "node", "rm", "tail", "tar", "uname",
	} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("setup needs %s", name)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range programs {
		_ = os.Remove(filepath.Join(bin, name))
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join("..", "..", "test", "postgres", "setup"))
	cmd.Env = []string{"PATH=" + bin, "PAWL_CACHE=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestSetupSaysInOneLineWhatCannotBeHad(t *testing.T) {
	for name, c := range map[string]struct {
		programs map[string]string
		want     string
	}{
		"no npm":          {nil, "npm is not installed"},
		"no registry":     {map[string]string{"npm": "echo connection refused >&2; exit 1"}, "connection refused"},
		"another package": {map[string]string{"npm": "echo other >package.tgz"}, "hash"},
		"another machine": {map[string]string{"npm": "", "uname": "echo Plan9"}, "Plan9"},
	} {
		out, err := setup(t, c.programs)
		if err == nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, c.want) {
			t.Errorf("%s: got %v and %q, want failure and one line with %q", name, err, out, c.want)
		}
	}
}
