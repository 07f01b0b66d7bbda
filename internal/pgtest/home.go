package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// home is the one directory of one server: its data, its log, its socket. Every process started in it carries the
// directory's name in its command line, which is how all of them are found again, orphans included.
type home struct {
	dir      string
	account  account
	watchdog *watchdog
}

// dirVariable is the environment variable that names the directory in which homes are made.
const dirVariable = "PAWL_PGTEST_DIR"

// parent is the directory in which homes are made: the one that was asked for, or memory where there is plenty, or the
// usual temporary one. Memory is true enough and several times as fast: what a killed process had written is kept by
// the kernel either way, and no test here cuts the power. Benchmarks ask for a disk.
func (a account) parent() string {
	if dir := os.Getenv(dirVariable); dir != "" {
		return dir
	}
	if dir := memoryDir(); dir != "" && a.canRead(dir) {
		return dir
	}
	if dir := os.TempDir(); a.canRead(dir) {
		return dir
	}
	return "/tmp"
}

// newHome makes the directory, owned by the account that servers run as, and sets a watchdog on it before anything
// runs there.
func newHome() (*home, error) {
	acc, err := serverAccount()
	if err != nil {
		return nil, err
	}
	parent := acc.parent()
	if !acc.canRead(parent) {
		return nil, fmt.Errorf("%s=%s: the user that servers run as cannot enter it", dirVariable, parent)
	}
	dir, err := os.MkdirTemp(parent, "pawl-pg-")
	if err != nil {
		return nil, err
	}
	h := &home{dir: dir, account: acc}
	if err := acc.own(dir); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	if h.watchdog, err = startWatchdog(dir, h.marker()); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	return h, nil
}

// marker is the name that the home's processes carry.
func (h *home) marker() string { return filepath.Base(h.dir) }

func (h *home) path(name ...string) string {
	return filepath.Join(append([]string{h.dir}, name...)...)
}

// write makes a file that the account owns.
func (h *home) write(path, content string) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	return h.account.own(path)
}

// remove kills what still runs in the home, removes the directory and lets the watchdog go.
func (h *home) remove() error {
	errs := []error{h.killAll(), removeSharedMemory(h.path("data", "postmaster.pid")), os.RemoveAll(h.dir)}
	if h.watchdog != nil {
		errs = append(errs, h.watchdog.dismiss())
	}
	return errors.Join(errs...)
}

// killAll ends every process of the home at once and returns when none is left and none has the server's memory: the
// next start would be refused. The backends of a killed postmaster
// would otherwise finish what they are doing, commits included.
func (h *home) killAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		pids, err := processesOf(h.marker())
		if err != nil {
			return true, err
		}
		if len(pids) == 0 {
			used, err := segmentInUse(h.path("data", "postmaster.pid"))
			return !used, err
		}
		for _, pid := range pids {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill() // it may have ended since; the next look tells
			}
		}
		return false, nil
	})
}

// reachable is a folder of programs where the account can read it, and otherwise a copy in the home: a checkout below a
// private directory must not keep the server from its own programs.
func (h *home) reachable(dir string) (string, error) {
	if h.account.canRead(dir) {
		return dir, nil
	}
	staged := h.path("programs")
	if err := os.CopyFS(staged, os.DirFS(dir)); err != nil {
		return "", fmt.Errorf("copying the server's programs: %w", err)
	}
	return staged, h.account.ownTree(staged)
}

// command is a program run in the home by the account, with an environment of its own: a PGPORT or PGDATA of the
// person at the desk must not reach it.
func (h *home) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = h.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + h.dir}
	h.account.apply(cmd)
	return cmd
}

// process is one running server.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// start runs a server whose output goes to the log. The goroutine that reaps it ends with it; kill and stop wait for
// that.
func (h *home) start(log, name string, args ...string) (*process, error) {
	out, err := os.OpenFile(h.path(log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{cmd: h.command(context.Background(), name, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // why a server ended is in its log
	}()
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the process as a power cut would and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// stop asks the process to end, and says so when it did not in time. The process is gone in any case.
func (p *process) stop(patience time.Duration) error {
	_ = p.cmd.Process.Signal(os.Interrupt)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
		p.kill()
		return fmt.Errorf("the server did not stop within %v and was killed", patience)
	}
}

// tail is the end of a log, for the message of a failure.
func (h *home) tail(log string) string {
	const most = 4096
	f, err := os.Open(h.path(log))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "(no log)"
		}
		return err.Error()
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-most), io.SeekStart)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// patience bounds every wait for a condition. It is far above what any of them takes, so that only a wait in vain
// reaches it.
const patience = 60 * time.Second

// poll asks until the answer is yes, an error, or the context's end.
func poll(ctx context.Context, ask func() (done bool, err error)) error {
	const interval = 10 * time.Millisecond
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}
