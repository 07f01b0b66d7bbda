package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// eventLog is everything that was said in one run.
type eventLog struct {
	mu     sync.Mutex
	events []event
	moved  chan struct{} // closed and replaced at each event
}

func newEventLog() *eventLog { return &eventLog{moved: make(chan struct{})} }

func (l *eventLog) add(e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	close(l.moved)
	l.moved = make(chan struct{})
}

// await returns the first event that matches, past ones included. It fails when a
// process broke off or ctx ends; what names what was waited for.
func (l *eventLog) await(ctx context.Context, what string, match func(event) bool) (event, error) {
	for {
		l.mu.Lock()
		found := slices.IndexFunc(l.events, match)
		broken := slices.IndexFunc(l.events, event.broken)
		events, moved := l.events, l.moved
		l.mu.Unlock()
		switch {
		case found >= 0:
			return events[found], nil
		case broken >= 0:
			return event{}, fmt.Errorf("%s broke off: %s", events[broken].who, events[broken].Text)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return event{}, fmt.Errorf("waited in vain for %s: %w", what, context.Cause(ctx))
		}
	}
}

func (e event) broken() bool { return e.Type == evFailed || e.Type == evEnded }

// story returns the events in the order of their times. Those of one process
// keep their order where times are equal.
func (l *eventLog) story() []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := slices.Clone(l.events)
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return events
}

// by matches what somebody did.
func by(who string, t eventType) func(event) bool {
	return func(e event) bool { return e.who == who && e.Type == t }
}

// final matches the word that makes an operation succeed, whoever said it.
func final(e event) bool {
	return (e.Type == evRecorded || e.Type == evSettled) && e.Status == "succeeded"
}
