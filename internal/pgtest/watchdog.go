package pgtest

import (
	_ "embed"
	"fmt"
	"io"
	"os/exec"
)

//go:embed watchdog.sh
var watchdogScript string

// watchdog is a process that outlives the test process for a moment and cleans up behind it. It learns of a death by
// the end of its input, whose other end only the test process holds. The kernel's parent-death signal would not do: it
// follows the thread that started the server, which Go may end at any time, and it removes no directory.
type watchdog struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

func startWatchdog(dir, marker string) (*watchdog, error) {
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, "pawl-watchdog", dir, marker)
	cmd.Dir = "/"
	detach(cmd)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	return &watchdog{cmd: cmd, input: input}, nil
}

// dismiss tells the watchdog that all is clean, and waits until it has gone.
func (w *watchdog) dismiss() error {
	if _, err := io.WriteString(w.input, "done\n"); err != nil {
		return fmt.Errorf("dismissing the watchdog: %w", err)
	}
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("dismissing the watchdog: %w", err)
	}
	return nil
}
