package sqlitestore

import (
	"errors"
	"testing"

	"github.com/pawl-go/pawl"
)

// Kinds of file systems in user space: what another host may be the other end
// of, and what has no kind, is refused; what nobody knows is used and said.
func TestClassifyFUSE(t *testing.T) {
	for kind, want := range map[string]place{
		"fuse.sshfs":     {name: "fuse.sshfs", known: true, remote: true},
		"virtiofs":       {name: "virtiofs", known: true, remote: true},
		"fuseblk":        {name: "fuseblk", known: true},
		"fuse.something": {name: "fuse.something"},
		"":               {name: "a file system in user space of no known kind", remote: true},
	} {
		got := classifyFUSE(kind)
		if got != want {
			t.Errorf("%q is %+v, want %+v", kind, got, want)
		}
		if err := got.refuse("pawl.db"); errors.Is(err, pawl.ErrMisconfigured) != want.remote {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

// The unsafe facts of a place are those that refuse to start.
func TestPlaceFacts(t *testing.T) {
	for name, c := range map[string]struct {
		p      place
		ok     bool
		unsafe bool
	}{
		"ext4":    {place{name: "ext4", known: true, free: 1 << 40}, true, false},
		"unknown": {place{name: "unknown", free: 1 << 40}, false, false},
		"memory":  {place{name: "tmpfs", known: true, volatile: true, free: 1 << 40}, false, false},
		"NFS":     {place{name: "NFS", known: true, remote: true, free: 1 << 40}, false, true},
	} {
		facts := c.p.facts()
		if facts[0].OK != c.ok || facts[0].Unsafe != c.unsafe || !facts[1].OK {
			t.Errorf("%s: %+v", name, facts)
		}
	}
	if full := (place{name: "ext4", known: true, free: 1 << 20}).facts(); full[1].OK || full[1].Unsafe || full[1].Fix == "" {
		t.Errorf("a full disk: %+v", full[1])
	}
}

// The engine gate: 3.51.3, and the corrections on two older branches.
func TestSafeVersion(t *testing.T) {
	for version, want := range map[string]bool{
		"3.51.3": true, "3.51.4": true, "3.53.0": true, "3.54.1": true, "3.100.0": true, "3.50.7": true, "3.44.6": true,
		"3.51.2": false, "3.52.0": false, "3.50.6": false, "3.44.5": false, "3.45.9": false, "3.49.2": false, "3.40.1": false,
		"4.0.0": false, "": false, "3": false, "version": false,
	} {
		if got := safeVersion(version); got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}

// A connection that is not set as it must be is not used [A11].
func TestUnsafeSettings(t *testing.T) {
	good := settings{version: "3.54.1", journal: "wal", synchronous: 2, foreignKeys: 1}
	if err := good.unsafe(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*settings){
		"version":      func(s *settings) { s.version = "3.40.1" },
		"journal":      func(s *settings) { s.journal = "delete" },
		"synchronous":  func(s *settings) { s.synchronous = 1 },
		"foreign keys": func(s *settings) { s.foreignKeys = 0 },
	} {
		bad := good
		change(&bad)
		if err := bad.unsafe(); !errors.Is(err, pawl.ErrMisconfigured) {
			t.Errorf("%s: %v", name, err)
		}
		unsafe := 0
		for _, f := range bad.facts(true) {
			if f.Unsafe && !f.OK {
				unsafe++
			}
		}
		if unsafe != 1 {
			t.Errorf("%s: %d unsafe facts, want 1", name, unsafe)
		}
	}
}
