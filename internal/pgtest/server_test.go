package pgtest_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/pgtest"
)

func TestServerIsTheVersionItSaysAndSurvivesBeingKilled(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version) {
		s := pgtest.Start(t, v, nil)
		if got := s.Text(t, "SELECT current_setting('server_version')"); !strings.HasPrefix(got, v.String()+".") {
			t.Errorf("server_version = %q, want %s", got, v)
		}
		for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
			if got := query[string](t, open(t, s.Superuser()), "SELECT current_setting($1)", name); got != "on" {
				t.Errorf("%s = %q, want on", name, got)
			}
		}
		dsn := s.Database(t)
		run(t, open(t, dsn), "CREATE TABLE kept AS SELECT 7 AS n")

		s.Kill(t)
		if left := processesWith(t, filepath.Dir(s.DataDir())); len(left) != 0 {
			t.Errorf("after Kill there runs %q", left)
		}
		s.Restart(t)
		if got := query[int](t, open(t, dsn), "SELECT n FROM kept"); got != 7 {
			t.Errorf("after a kill: n = %d, want 7", got)
		}
		s.Stop(t)
		s.Restart(t)
		if got := query[int](t, open(t, dsn), "SELECT n FROM kept"); got != 7 {
			t.Errorf("after a stop: n = %d, want 7", got)
		}
	})
}

func TestStartTakesSettings(t *testing.T) {
	s := pgtest.Start(t, pgtest.Newest(t), &pgtest.Options{
		Config:     map[string]string{"fsync": "off", "application_name": "it's"},
		InitdbArgs: []string{"--wal-segsize", "2"},
	})
	for name, want := range map[string]string{"fsync": "off", "wal_segment_size": "2MB"} {
		if got := s.Text(t, "SELECT current_setting($1)", name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	conn := open(t, s.Superuser())
	// Not through the rig's own sessions, which name themselves.
	if got := query[string](t, conn, "SELECT current_setting('application_name')"); got != "it's" {
		t.Errorf("application_name = %q, want it's", got)
	}
	s.Reload(t, map[string]string{"work_mem": "5MB"})
	if got := s.Text(t, "SELECT current_setting('work_mem')"); got != "5MB" {
		t.Errorf("after Reload work_mem = %q, want 5MB", got)
	}
}

func TestSharedServerIsOneAndKeepsNothingOfATest(t *testing.T) {
	v := pgtest.Newest(t)
	s := pgtest.Shared(t, v)
	if again := pgtest.Shared(t, v); again.Addr() != s.Addr() {
		t.Errorf("asked twice, got servers at %s and %s", s.Addr(), again.Addr())
	}
	t.Run("test", func(t *testing.T) {
		role := s.Role(t, "NOSUPERUSER")
		dsn := s.Database(t, "OWNER "+role)
		other := s.Database(t)
		if dsn == other {
			t.Fatal("two databases are one")
		}
		database := open(t, dsn).Config().Database
		own := open(t, s.DSN(role, database))
		run(t, own, "CREATE TABLE mine (n int)")
		run(t, open(t, other), "CREATE TABLE granted (n int); GRANT SELECT ON granted TO "+role)
	})
	const left = `
SELECT count(*)::text FROM (
  SELECT datname FROM pg_database WHERE datname LIKE 'pawl%'
   UNION ALL
  SELECT rolname FROM pg_roles WHERE rolname LIKE 'pawl%') AS names`
	if got := s.Text(t, left); got != "0" {
		t.Errorf("%s databases and roles are left", got)
	}
}

// traces are where a server could leave something.
type traces struct {
	home    string
	segment string // number of its System V shared memory segment
}

func tracesOf(t *testing.T, dataDir string) traces {
	t.Helper()
	pidFile, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(pidFile), "\n")
	fields := strings.Fields(lines[6])
	tr := traces{home: filepath.Dir(dataDir), segment: fields[1]}
	if !strings.Contains(tr.home, "pawl-pg-") {
		t.Fatalf("%q is not a server's directory", tr.home)
	}
	if !segmentExists(t, tr.segment) {
		t.Fatalf("shared memory segment %s is not there while the server runs", tr.segment)
	}
	return tr
}

func (tr traces) mustBeGone(t *testing.T) {
	t.Helper()
	if exists(t, tr.home) {
		t.Errorf("%s is left", tr.home)
	}
	if left := processesWith(t, tr.home); len(left) != 0 {
		t.Errorf("there still runs %q", left)
	}
	if segmentExists(t, tr.segment) {
		t.Errorf("shared memory segment %s is left", tr.segment)
	}
}

func TestNothingIsLeftOfAServer(t *testing.T) {
	v := pgtest.Newest(t)
	var tr traces
	t.Run("running", func(t *testing.T) { tr = tracesOf(t, pgtest.Start(t, v, nil).DataDir()) })
	tr.mustBeGone(t)
	t.Run("killed", func(t *testing.T) {
		s := pgtest.Start(t, v, nil)
		tr = tracesOf(t, s.DataDir())
		s.Kill(t)
	})
	tr.mustBeGone(t)
}

// The test process itself is killed, with a busy server behind it.
func TestNothingIsLeftOfAKilledTest(t *testing.T) {
	pgtest.Versions(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestAbandonedServer$", "-test.v")
	child.Env = append(os.Environ(), abandonVariable+"=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var dataDir string
	for lines := bufio.NewScanner(out); dataDir == "" && lines.Scan(); {
		dataDir, _ = strings.CutPrefix(lines.Text(), "data directory: ")
		if !filepath.IsAbs(dataDir) {
			dataDir = ""
		}
	}
	if dataDir == "" {
		t.Fatalf("the child started no server: %v", child.Wait())
	}
	tr := tracesOf(t, dataDir)
	if len(processesWith(t, tr.home)) == 0 {
		t.Fatal("the child's server does not run")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(processesWith(t, tr.home)) != 0 || exists(t, tr.home) {
		select {
		case <-ctx.Done():
			t.Fatalf("%s is still there, with %q", tr.home, processesWith(t, tr.home))
		case <-time.After(10 * time.Millisecond):
		}
	}
	tr.mustBeGone(t)
}

// TestAbandonedServer is the child of the test above. It ends by being killed, in the middle of a statement: a busy
// session does not notice that its postmaster is gone.
func TestAbandonedServer(t *testing.T) {
	if os.Getenv(abandonVariable) == "" {
		return // not the child: there is nothing to abandon
	}
	s := pgtest.Start(t, pgtest.Newest(t), nil)
	conn := open(t, s.Superuser())
	if _, err := os.Stdout.WriteString("\ndata directory: " + s.DataDir() + "\n"); err != nil {
		t.Fatal(err)
	}
	run(t, conn, "DO $$ BEGIN LOOP END LOOP; END $$")
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func segmentExists(t *testing.T, number string) bool {
	t.Helper()
	all, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(all)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == number {
			return true
		}
	}
	return false
}

// processesWith lists the command lines that contain the name of a server's directory, but for its watchdog's.
func processesWith(t *testing.T, home string) (lines []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(line), filepath.Base(home)) && !strings.Contains(string(line), "pawl-watchdog") {
			lines = append(lines, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines
}
