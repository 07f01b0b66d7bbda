//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Enabled says whether this build has failpoints.
const Enabled = true

// armed holds the points of this process and how often each was passed. A
// process has one environment, so it has one of these.
var armed = sync.OnceValue(func() *table { return mustLoad(os.Getenv(Variable)) })

// Hit passes a point.
func Hit(n Name) error { return armed().hit(n) }

type table struct {
	mu     sync.Mutex
	points map[Name]*point
}

type point struct {
	action string // kill, error or pause
	path   string // of a pause
	only   int    // the passage that counts; 0: every one
	passed int
}

func mustLoad(setting string) *table {
	t, err := load(setting)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return t
}

func load(setting string) (*table, error) {
	t := &table{points: map[Name]*point{}}
	for part := range strings.SplitSeq(setting, ",") {
		if part == "" {
			continue
		}
		name, action, _ := strings.Cut(part, "=")
		if !slices.Contains(Names(), Name(name)) {
			return nil, fmt.Errorf("%s: no point is called %q", Variable, name)
		}
		p, err := parse(action)
		if err != nil {
			return nil, err
		}
		t.points[Name(name)] = p
	}
	return t, nil
}

func parse(action string) (*point, error) {
	p := &point{}
	if at := strings.LastIndexByte(action, '@'); at >= 0 {
		n, err := strconv.Atoi(action[at+1:])
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s: %q is no count of passages", Variable, action[at+1:])
		}
		p.only, action = n, action[:at]
	}
	p.action, p.path, _ = strings.Cut(action, ":")
	switch {
	case (p.action == "kill" || p.action == "error") && p.path == "":
	case p.action == "pause" && p.path != "":
	default:
		return nil, fmt.Errorf("%s: no such action: %q", Variable, action)
	}
	return p, nil
}

func (t *table) hit(n Name) error {
	p := t.due(n)
	if p == nil {
		return nil
	}
	switch p.action {
	case "kill":
		kill()
	case "pause":
		pause(p.path)
	case "error":
		return fmt.Errorf("at %s: %w", n, ErrInjected)
	}
	return nil
}

// due counts the passage and returns the point if it acts now.
func (t *table) due(n Name) *point {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.points[n]
	if p == nil {
		return nil
	}
	p.passed++
	if p.only != 0 && p.passed != p.only {
		return nil
	}
	return p
}

// kill ends this process as kill -9 does, and until that has happened does nothing.
func kill() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "failpoint: cannot kill this process:", err)
		os.Exit(2)
	}
	select {}
}

// pause tells by a file that it has come here, and goes on when the file is gone.
func pause(path string) {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "failpoint: cannot pause:", err)
		os.Exit(2)
	}
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			tick.Stop()
			return
		}
	}
}
