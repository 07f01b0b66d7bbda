//go:build unix

package main

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startAsGroup starts the demo as a terminal would, and waits for the last of its
// parts to run: from then on it waits for a lease to end.
func startAsGroup(t *testing.T) *demonstration {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked up in /proc")
	}
	d := newDemonstration(t, "--incident", "crash")
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.await(t, "the gateway to run", func(running []string) bool {
		return strings.Contains(strings.Join(running, "\n"), "--part gateway")
	})
	return d
}

func (d *demonstration) await(t *testing.T, what string, done func(running []string) bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for !done(d.processes(t)) {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("waited in vain for %s: %v", what, d.processes(t))
		}
	}
}

// TestDemo_Interrupted: Ctrl-C goes to the whole group. The demo ends its parts,
// waits for them and cleans up.
func TestDemo_Interrupted(t *testing.T) {
	t.Parallel()
	d := startAsGroup(t)
	if err := syscall.Kill(-d.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	d.ended(t, d.cmd.Wait(), exitInterrupted)
}

// TestDemo_Killed: a demo that dies takes its parts with it, for their standard
// input ends.
func TestDemo_Killed(t *testing.T) {
	t.Parallel()
	d := startAsGroup(t)
	if err := d.cmd.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	if d.cmd.Wait() == nil {
		t.Error("it was not killed")
	}
	d.await(t, "the parts to end", func(running []string) bool { return len(running) == 0 })
}
