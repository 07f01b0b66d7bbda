package demo

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// child is one process of a run, seen from the stage.
type child struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	errs   tail
	log    *eventLog
	now    func() time.Time
	ending atomic.Bool   // the stage ends it; its end is no surprise
	done   chan struct{} // closed once it has ended and all it said is in the log
}

// startChild starts a process and gives it its configuration.
func startChild(o *Options, part string, c config, log *eventLog) (*child, error) {
	argv := o.Command(part)
	cmd := exec.Command(argv[0], argv[1:]...)
	p := &child{name: c.Name, cmd: cmd, log: log, now: o.Now, done: make(chan struct{})}
	cmd.Stderr = &p.errs
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	p.in = in
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("demo: start %s: %w", c.Name, err)
	}
	go p.listen(out)
	if err := json.NewEncoder(in).Encode(c); err != nil {
		p.kill()
		return nil, fmt.Errorf("demo: configure %s: %w", c.Name, err)
	}
	return p, nil
}

// listen takes what the process says to the log, until it has ended.
func (p *child) listen(out io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			e = event{At: p.now(), Type: evFailed, Text: "said what is no event"}
		}
		e.who, e.pid = p.name, p.pid()
		p.log.add(e)
	}
	_, _ = io.Copy(io.Discard, out) // after a line too long to be an event
	err := p.cmd.Wait()
	if p.ending.Load() {
		return
	}
	text := "ended by itself"
	if err != nil {
		text += ": " + err.Error()
	}
	if said := p.errs.String(); said != "" {
		text += ": " + said
	}
	p.log.add(event{At: p.now(), Type: evEnded, Text: text, who: p.name, pid: p.pid()})
}

func (p *child) pid() int { return p.cmd.Process.Pid }

// release tells the process to stop.
func (p *child) release() {
	p.ending.Store(true)
	_ = p.in.Close() // it may have ended already
}

// kill ends the process as a crash does, and waits for it.
func (p *child) kill() {
	p.ending.Store(true)
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
	_ = p.in.Close()
}

// patience is how long a process may take to stop when told to.
const patience = 5 * time.Second

// stopAll ends processes and waits for all of them: at once, or those that have
// not stopped within the patience.
func stopAll(children []*child, atOnce bool) {
	for _, p := range children {
		p.release()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, p := range children {
		if !atOnce {
			select {
			case <-p.done:
				continue
			case <-timer.C:
				atOnce = true
			}
		}
		p.kill()
	}
}

// tail keeps the end of what a process wrote to standard error.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	const most = 2 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	t.buf = t.buf[max(0, len(t.buf)-most):]
	return len(b), nil
}

// String returns it as one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.buf)), " ")
}
