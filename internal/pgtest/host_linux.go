package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// account is who servers run as. PostgreSQL and PgBouncer refuse root, so root lends them an unprivileged account;
// everybody else runs them as themselves.
type account struct {
	other    bool
	uid, gid uint32
}

func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return account{}, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return account{}, err
		}
		return account{other: true, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return account{}, errors.New("PostgreSQL refuses to run as root, and there is no user postgres or nobody")
}

func (a account) apply(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal's interrupt is for the test, not for its servers
	if a.other {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
}

func (a account) own(path string) error {
	if !a.other {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

func (a account) ownTree(root string) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return a.own(path)
	})
}

// canRead says whether the account can enter a directory, by the permissions for others all the way up.
func (a account) canRead(dir string) bool {
	if !a.other {
		return true
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	const enter = 0o001
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&enter == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// memoryDir is a file system in memory that has plenty of room and lets programs run, or empty.
func memoryDir() string {
	const dir, plenty, noexec = "/dev/shm", 2 << 30, 0x8
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return ""
	}
	if fs.Bavail*uint64(fs.Bsize) < plenty || fs.Flags&noexec != 0 {
		return ""
	}
	return dir
}

// detach takes a command out of the terminal's reach.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// processesOf lists the servers whose command line carries the marker: the postmaster by the path of its data, its
// children by the cluster name in their titles.
func processesOf(marker string) ([]int, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, dir := range all {
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			continue // ended since it was listed
		}
		switch strings.TrimSpace(string(name)) {
		case "postgres", "initdb", "pgbouncer":
		default:
			continue
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.Contains(line, []byte(marker)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// removeSharedMemory removes the small System V segment that a killed postmaster leaves. No pid file means an orderly end.
func removeSharedMemory(pidFile string) error {
	segment, found, err := segmentOf(pidFile)
	if err != nil || !found {
		return err
	}
	const remove = 0
	_, _, errno := syscall.Syscall(syscall.SYS_SHMCTL, uintptr(segment), remove, 0)
	if errno != 0 && errno != syscall.EINVAL && errno != syscall.EIDRM {
		return fmt.Errorf("removing shared memory segment %d: %w", segment, errno)
	}
	return nil
}

// segmentOf reads which segment a postmaster made; line 7 of its pid file names it.
func segmentOf(pidFile string) (segment int, found bool, err error) {
	text, err := os.ReadFile(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	const segmentLine = 6
	lines := strings.Split(string(text), "\n")
	if len(lines) <= segmentLine {
		return 0, false, nil // killed before it had made one
	}
	fields := strings.Fields(lines[segmentLine])
	if len(fields) != 2 {
		return 0, false, nil
	}
	segment, err = strconv.Atoi(fields[1])
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", pidFile, err)
	}
	return segment, true, nil
}

// segmentInUse reports whether a process still has a postmaster's segment: one that is ending has lost its command line,
// by which it would be found, a moment before it gives its memory back.
func segmentInUse(pidFile string) (bool, error) {
	segment, found, err := segmentOf(pidFile)
	if err != nil || !found {
		return false, err
	}
	table, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return false, err
	}
	const idColumn, attachedColumn = 1, 6
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > attachedColumn && fields[idColumn] == strconv.Itoa(segment) {
			return fields[attachedColumn] != "0", nil
		}
	}
	return false, nil
}

// reservePort finds a free loopback port and holds it, across restarts of the server that uses it, against every other
// test process until release. It stays below the range from which the kernel gives ports to outgoing connections. The
// hold is a socket name in the kernel, which a dying process cannot leave behind.
func reservePort() (port int, release func() error, err error) {
	const first, count, tries = 20000, 10000, 200
	for range tries {
		port := first + rand.IntN(count)
		hold, err := net.Listen("unix", "@pawl-pgtest-port-"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		if portFree(port) {
			return port, hold.Close, nil
		}
		if err := hold.Close(); err != nil {
			return 0, nil, err
		}
	}
	return 0, nil, fmt.Errorf("no free port from %d to %d in %d tries", first, first+count-1, tries)
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
