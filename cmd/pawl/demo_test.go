package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/demo"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// demonstration is one "pawl demo" with a binary and a temporary directory of its
// own, so that what it leaves behind can be found.
type demonstration struct {
	cmd      *exec.Cmd
	temp     string
	out, err bytes.Buffer
}

func newDemonstration(t *testing.T, args ...string) *demonstration {
	t.Helper()
	installed, err := exec.LookPath("pawl") // TestMain put it there
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "pawl")
	if err := os.Link(installed, binary); err != nil {
		copyTo(t, binary, installed)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second) // so that a test says what hangs
	t.Cleanup(cancel)
	d := &demonstration{cmd: exec.CommandContext(ctx, binary, append([]string{"demo"}, args...)...), temp: t.TempDir()}
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.temp)
	d.cmd.Stdout, d.cmd.Stderr = &d.out, &d.err
	return d
}

func copyTo(t *testing.T, to, from string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, raw, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run runs it to its end and checks that nothing is left of it.
func (d *demonstration) run(t *testing.T, wantExit int) {
	t.Helper()
	err := d.cmd.Run()
	d.ended(t, err, wantExit)
}

func (d *demonstration) ended(t *testing.T, err error, wantExit int) {
	t.Helper()
	exit := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		exit = e.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if exit != wantExit {
		t.Errorf("exit code %d, want %d\n%s\n%s", exit, wantExit, d.out.String(), d.err.String())
	}
	if left, err := os.ReadDir(d.temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v %v", left, err)
	}
	if left := d.processes(t); len(left) > 0 {
		t.Errorf("processes that outlive the demo: %v", left)
	}
}

// processes are those that run this demonstration's binary, where the system
// shows them as files; elsewhere none are seen.
func (d *demonstration) processes(t *testing.T) (running []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		raw, err := os.ReadFile(name) // gone with its process, or a dead one's: empty
		if err == nil && strings.HasPrefix(string(raw), d.cmd.Path) {
			running = append(running, strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	return running
}

// report reads the one object on standard output.
func (d *demonstration) report(t *testing.T) (r demo.Report) {
	t.Helper()
	dec := json.NewDecoder(&d.out)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more on standard output than one object: %v", err)
	}
	return r
}

func claimed(store string) demo.Report {
	return demo.Report{OK: true, Runs: []demo.RunReport{
		{Store: "memory", Incident: "retry", Credits: 2, Total: "500.00"},
		{Store: "memory", Incident: "restart", Credits: 2, Total: "500.00"},
		{Store: store, Incident: "retry", Credits: 1, Total: "250.00"},
		{Store: store, Incident: "restart", Credits: 1, Total: "250.00"},
		{Store: store, Incident: "crash", Credits: 1, Total: "250.00"},
	}}
}

// TestDemo_JSON: two credits with a record in each process, one with Pawl, and
// nothing left behind.
func TestDemo_JSON(t *testing.T) {
	t.Parallel()
	d := newDemonstration(t, "--json")
	d.run(t, 0)
	if d.err.Len() > 0 {
		t.Errorf("standard error: %s", d.err.String())
	}
	if diff := cmp.Diff(claimed("sqlite"), d.report(t)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// TestDemo_Text: a person can follow it, without colour where there is no
// terminal, and no token is shown [S2].
func TestDemo_Text(t *testing.T) {
	t.Parallel()
	d := newDemonstration(t)
	d.run(t, 0)
	text := d.out.String()
	for _, part := range []string{
		"1. retry, with a record in each process", "5. crash, with Pawl", `clicks "Apply credit"`,
		"no answer from instance A within 1s: gives up", "is told: 504, Gateway Timeout",
		"2 in all, 500.00 USD", "1 in all, 250.00 USD", "is told: 409, grant-not-available",
		"(pawl explain)", "took over as owner 2", "It succeeded.", "sqlite    crash     1 credit, $250.00   as claimed",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the text lacks %q", part)
		}
	}
	for _, part := range []string{"\x1b", "eyJ", "NOT AS CLAIMED"} {
		if strings.Contains(text, part) {
			t.Errorf("the text has %q", part)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestDemo_NotAsClaimed: with a store for each instance the grant is spent twice,
// and the demo must say so and fail.
func TestDemo_NotAsClaimed(t *testing.T) {
	t.Parallel()
	d := newDemonstration(t, "--json", "--incident", "restart", "--separate-stores")
	d.run(t, 1)
	r := d.report(t)
	if len(r.Runs) != 2 || r.OK {
		t.Fatalf("report: %+v", r)
	}
	if got := r.Runs[0]; got.Problem != "" {
		t.Errorf("the local record's run: %+v", got)
	}
	if got := r.Runs[1]; got.Credits != 2 || got.Total != "500.00" || got.Problem == "" {
		t.Errorf("the run with separate stores: %+v", got)
	}
	if !strings.Contains(d.err.String(), "sqlite/restart did not end as claimed") {
		t.Errorf("standard error: %s", d.err.String())
	}
}

// TestDemo_Refuses what it cannot show; nothing is started.
func TestDemo_Refuses(t *testing.T) {
	t.Parallel()
	newDemonstration(t, "--store", "memory:").run(t, 2)
	newDemonstration(t, "--incident", "flood").run(t, 2)
	newDemonstration(t, "--part", "provider").run(t, 1)
	newDemonstration(t, "--store", "postgres://127.0.0.1:1/nowhere").run(t, 4)
}

// TestDemo_Postgres: the same on PostgreSQL, in schemas that are gone afterwards.
func TestDemo_Postgres(t *testing.T) {
	t.Parallel()
	versions := pgtest.Versions(t)
	server := pgtest.Start(t, versions[len(versions)-1], nil)
	d := newDemonstration(t, "--json", "--store", server.Superuser())
	d.run(t, 0)
	if diff := cmp.Diff(claimed("postgres"), d.report(t)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if left := server.Text(t, "select coalesce(string_agg(nspname, ' '), '') from pg_namespace where nspname like 'pawl%'"); left != "" {
		t.Errorf("schemas that outlive the demo: %s", left)
	}
}
