//go:build unix && !failpoints

package soak

import (
	"context"
	"fmt"
	"syscall"
)

// pause stops the process in the middle of whatever it does; resume lets it go on, to its own surprise.
func (p *process) pause() error  { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// quit asks the process to stop, and returns what it said at its end.
func (p *process) quit(ctx context.Context) (said, error) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return said{}, err
	}
	closed, err := p.await(ctx, "to close", func(s said) bool { return s.Type == saidClosed })
	if err != nil {
		return said{}, err
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		return said{}, fmt.Errorf("%s does not end: %w", p.Name, context.Cause(ctx))
	}
	_ = p.in.Close()
	return closed, p.err
}

// goOn lets a hold go.
func (p *process) goOn(h hold) error {
	_, err := fmt.Fprintln(p.in, h)
	return err
}
