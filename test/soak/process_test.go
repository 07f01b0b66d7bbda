//go:build unix

package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
)

// process is one worker, seen from the test.
type process struct {
	assignment
	url   string
	cmd   *exec.Cmd
	in    io.WriteCloser
	errs  tail
	ended chan struct{} // closed once it has ended and all it said was heard
	err   error         // how it ended; read after ended

	mu    sync.Mutex
	heard []said
	moved chan struct{} // closed and replaced at each word
}

// start starts a worker and waits until it takes orders. more are further environment variables.
func start(ctx context.Context, a assignment, more ...string) (*process, error) {
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	p := &process{assignment: a, cmd: exec.Command(os.Args[0]), ended: make(chan struct{}), moved: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), assignmentVariable+"="+string(raw)), more...)
	p.cmd.Stderr = &p.errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.listen(out) // ends with the process
	ready, err := p.await(ctx, "to start", func(s said) bool { return s.Type == saidReady })
	if err != nil {
		p.kill()
		return nil, err
	}
	p.url = ready.Text
	return p, nil
}

// listen hears what the process says, until it has ended.
func (p *process) listen(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var s said
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			s = said{Type: saidNonsense, Text: err.Error()}
		}
		p.mu.Lock()
		p.heard = append(p.heard, s)
		close(p.moved)
		p.moved = make(chan struct{})
		p.mu.Unlock()
	}
	p.err = p.cmd.Wait()
}

// await returns the first word that matches, past ones included.
func (p *process) await(ctx context.Context, what string, match func(said) bool) (said, error) {
	for {
		p.mu.Lock()
		found := slices.IndexFunc(p.heard, match)
		nonsense := slices.IndexFunc(p.heard, func(s said) bool { return s.Type == saidNonsense })
		heard, moved := p.heard, p.moved
		p.mu.Unlock()
		switch {
		case nonsense >= 0:
			return said{}, fmt.Errorf("%s said what is no event: %s", p.Name, heard[nonsense].Text)
		case found >= 0:
			return heard[found], nil
		}
		select {
		case <-moved:
		case <-p.ended:
			if p.said(match) == nil {
				return said{}, fmt.Errorf("%s ended instead (%v): %s; it was %s", p.Name, p.err, &p.errs, what)
			}
		case <-ctx.Done():
			return said{}, fmt.Errorf("waited in vain for %s %s: %w", p.Name, what, context.Cause(ctx))
		}
	}
}

// said returns all words that match.
func (p *process) said(match func(said) bool) (all []said) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.heard {
		if match(s) {
			all = append(all, s)
		}
	}
	return all
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.ended
	_ = p.in.Close()
}

// tail keeps the end of what a process wrote to standard error.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	const most = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	t.buf = t.buf[max(0, len(t.buf)-most):]
	return len(b), nil
}

// String returns it without its line ends.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Join(bytes.Fields(t.buf), []byte(" ")))
}

// signalled tells whether a process was ended by a signal, as kill -9 ends it.
func signalled(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == -1
}
