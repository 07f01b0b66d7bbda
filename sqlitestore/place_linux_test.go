package sqlitestore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Numbers of file systems: shared ones are refused, unknown ones are said.
func TestClassify(t *testing.T) {
	for magic, want := range map[uint32]place{
		unix.NFS_SUPER_MAGIC:  {name: "NFS", known: true, remote: true},
		0xff534d42:            {name: "CIFS", known: true, remote: true},
		0xfe534d42:            {name: "SMB", known: true, remote: true},
		unix.V9FS_MAGIC:       {name: "9p", known: true, remote: true},
		unix.CEPH_SUPER_MAGIC: {name: "Ceph", known: true, remote: true},
		0x0bd00bd0:            {name: "Lustre", known: true, remote: true},
		0x01161970:            {name: "GFS2", known: true, remote: true},
		unix.EXT4_SUPER_MAGIC: {name: "ext4", known: true},
		unix.TMPFS_MAGIC:      {name: "tmpfs", known: true, volatile: true},
		0x12345678:            {name: "unknown 0x12345678"},
	} {
		if got := classify(magic); got != want {
			t.Errorf("%#x is %+v, want %+v", magic, got, want)
		}
	}
}

// The innermost mount of a folder counts, whatever its path looks like.
func TestMountKind(t *testing.T) {
	const mountinfo = `22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
40 22 0:35 / /mnt rw - fuse.mergerfs a:b rw
41 40 0:36 / /mnt/with\040blank rw shared:7 master:1 - fuse.sshfs host:/ rw
42 22 0:37 / /mntother rw - fuse.rclone remote: rw
43 40 0:38 / /mnt rw - fuseblk /dev/sdb1 rw
broken line
`
	for folder, want := range map[string]string{
		"/home/pawl": "ext4", "/mnt/data": "fuseblk", "/mnt/with blank/data": "fuse.sshfs", "/mntother": "fuse.rclone", "/": "ext4",
	} {
		if got := mountKind(mountinfo, folder); got != want {
			t.Errorf("%s is on %q, want %q", folder, got, want)
		}
	}
	if got := mountKind("", "/home"); got != "" {
		t.Errorf("without a table of mounts: %q", got)
	}
}

// The folder that tests run in is somewhere.
func TestInspect(t *testing.T) {
	p, err := placeOf(t.TempDir())
	if err != nil || p.name == "" || p.free == 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := placeOf("/absent/folder"); err == nil {
		t.Error("an absent folder has a file system")
	}
}

// A handle that comes and goes leaves the locks of the others alone: a process
// that closes the file anywhere but in the engine would lose them all.
func TestLocksStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	locked := func() bool {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Fatal(err)
		}
		mine := fmt.Sprintf(" %d ", os.Getpid())
		file := fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino)
		for line := range strings.Lines(string(locks)) {
			if strings.Contains(line, mine) && strings.Contains(line, file) {
				return true
			}
		}
		return false
	}
	for step := range 3 {
		s, err := Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if step == 0 {
			defer s.Close()
		} else if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if !locked() {
			t.Fatalf("after handle %d: no lock on the file is left", step)
		}
	}
}
