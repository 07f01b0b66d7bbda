package pgtest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Statement is one statement on its way through a [Proxy].
type Statement struct {
	// Conn numbers the proxy's connections from 1, in the order they came.
	Conn int
	// Index numbers the connection's statements from 1. An empty ping counts.
	Index int
	// SQL is the text, also where the client sends only the name of a statement it prepared earlier on the connection.
	SQL string
}

// Match chooses statements. It is called from the proxy's goroutines, one call at a time, and must not call the proxy.
type Match func(Statement) bool

// Containing chooses statements whose text contains the given one, whatever the case of the letters.
func Containing(text string) Match {
	text = strings.ToLower(text)
	return func(s Statement) bool { return strings.Contains(strings.ToLower(s.SQL), text) }
}

// Commit chooses the commit of an explicit transaction.
func Commit() Match {
	return func(s Statement) bool {
		return strings.EqualFold(strings.Trim(s.SQL, " \t\r\n;"), "commit")
	}
}

// Nth chooses the n-th, from 1, of those that match chooses.
func Nth(n int, match Match) Match {
	seen := 0
	return func(s Statement) bool {
		if !match(s) {
			return false
		}
		seen++
		return seen == n
	}
}

// Action is what a proxy does to a statement. A request is all that the client sent up to the point where the server
// must answer (Sync, or one simple query); the answer is all that the server says to it. Statements that share a request
// share its answer, and the first fault on it is the one that happens.
type Action int

const (
	// CutBefore cuts the connection; the server never sees the statement.
	CutBefore Action = iota + 1
	// CutAfter lets the server have the request and cuts the connection without an answer, and without knowing whether
	// there would have been one. A client such as pgx then asks the server to cancel, and sometimes it is in time: what
	// became of the statement is open.
	CutAfter
	// LoseAnswer waits until the server has answered and cuts the connection instead of passing the answer on: what
	// the statement committed is committed.
	LoseAnswer
	// MuteAnswer waits like LoseAnswer, but leaves the connection open and silent for good, in both directions.
	MuteAnswer
	// HoldRequest keeps the statement from the server until it is released.
	HoldRequest
	// HoldAnswer keeps the answer, which the server has given, from the client until it is released.
	HoldAnswer
)

// onRequest says whether the action takes place before the server sees the statement.
func (a Action) onRequest() bool { return a == CutBefore || a == HoldRequest }

// Fault describes what is to happen to which statement. The zero action is not one.
type Fault struct {
	// Match chooses the statements; nil chooses all.
	Match Match
	// Action is what happens to them.
	Action Action
	// Delay passes before a cut, or before a held message goes on by itself. Zero cuts at once and holds until Release.
	Delay time.Duration
	// Every repeats the fault for each statement that matches. Otherwise it happens once, to the first.
	Every bool
}

// Injection is a fault that a proxy was told to do.
type Injection struct {
	fault    Fault
	proxy    *Proxy
	reached  chan struct{}
	released chan struct{}
	reach    sync.Once
	release  sync.Once

	// Guarded by the proxy's mutex.
	count     int
	answered  int
	withdrawn bool
}

// Inject tells the proxy to do a fault. A statement meets at most one fault on its request and one on its answer, the
// oldest of each that matches. A fault that never happens fails the test in the end: what a test says it survived must
// have taken place. [Injection.Withdraw] takes that back.
func (p *Proxy) Inject(f Fault) *Injection {
	if f.Action < CutBefore || f.Action > HoldAnswer {
		panic("pgtest: a fault without an action")
	}
	if f.Match == nil {
		f.Match = func(Statement) bool { return true }
	}
	i := &Injection{fault: f, proxy: p, reached: make(chan struct{}), released: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.injections = append(p.injections, i)
	return i
}

// Reached is closed when the fault has taken place for the first time: when a request was cut, when the request to be
// held has arrived, or when the answer to be lost, muted or held has come from the server or cannot come any more.
func (i *Injection) Reached() <-chan struct{} { return i.reached }

// Await returns when the fault has taken place, and fails the test if it does not.
func (i *Injection) Await(tb testing.TB) {
	tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-i.reached:
	case <-timer.C:
		tb.Fatal("the injected fault did not take place")
	}
}

// Count says how many statements have met the fault so far.
func (i *Injection) Count() int {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	return i.count
}

// Answered says how many of them the server is known to have answered in full. For [LoseAnswer], [MuteAnswer] and
// [HoldAnswer] it stays below Count only where the server ended the connection instead.
func (i *Injection) Answered() int {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	return i.answered
}

// Release lets everything go on that the fault holds or will hold.
func (i *Injection) Release() { i.release.Do(func() { close(i.released) }) }

// Withdraw ends the fault: it happens to no further statement, and what it holds goes on.
func (i *Injection) Withdraw() {
	i.proxy.mu.Lock()
	i.withdrawn = true
	i.proxy.drop(i)
	i.proxy.mu.Unlock()
	i.Release()
}

func (i *Injection) markReached() { i.reach.Do(func() { close(i.reached) }) }

func (i *Injection) markAnswered() {
	i.proxy.mu.Lock()
	i.answered++
	i.proxy.mu.Unlock()
}

// pick finds the faults that a statement meets, and counts them.
func (p *Proxy) pick(s Statement) (onRequest, onAnswer *Injection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range slices.Clone(p.injections) {
		slot := &onAnswer
		if i.fault.Action.onRequest() {
			slot = &onRequest
		}
		if *slot != nil || !i.fault.Match(s) {
			continue
		}
		*slot = i
		i.count++
		if !i.fault.Every {
			p.drop(i)
		}
	}
	return onRequest, onAnswer
}

// drop takes a fault off the list; the caller holds the mutex.
func (p *Proxy) drop(i *Injection) {
	p.injections = slices.DeleteFunc(p.injections, func(other *Injection) bool { return other == i })
}
