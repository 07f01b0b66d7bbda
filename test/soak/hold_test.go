//go:build unix

package soak

import (
	"context"
	"sync"

	"github.com/pawl-go/pawl"
)

// point is a place between two steps of an owner's work, seen from outside of store and provider.
type point string

const (
	admitAfter   point = "admit.after" // the admission is committed, nobody has heard
	checkBefore  point = "check.before"
	checkAfter   point = "check.after"
	submitBefore point = "submit.before" // the next thing is the create call
	submitAfter  point = "submit.after"  // the provider has answered
	recordBefore point = "record.before"
	recordAfter  point = "record.after" // the outcome is recorded, nobody has heard
)

// hold stops the first passage of one operation at one point, until the test lets it go on.
type hold struct {
	At        point
	Operation pawl.OperationID
}

func (h hold) String() string { return string(h.At) + " " + h.Operation.String() }

// holds are those of one worker. They let a test be exact: whoever is held has done what stands before the point and
// nothing of what stands behind it.
type holds struct {
	tell *teller

	mu   sync.Mutex
	open map[string]chan struct{} // by hold; closed to let go
	been map[string]bool
}

func newHolds(list []hold, tell *teller) *holds {
	h := &holds{tell: tell, open: map[string]chan struct{}{}, been: map[string]bool{}}
	for _, x := range list {
		h.open[x.String()] = make(chan struct{})
	}
	return h
}

// pass passes a point and tells whether it was held there.
func (h *holds) pass(at point, id pawl.OperationID) (held bool) {
	name := hold{at, id}.String()
	h.mu.Lock()
	gate := h.open[name]
	first := gate != nil && !h.been[name]
	h.been[name] = true
	h.mu.Unlock()
	if first {
		h.tell.say(said{Type: saidHeld, Operation: id.String(), Text: name})
		<-gate
	}
	return first
}

// passWith passes a point before a question to the store. A hold there stands for a pause before the question, so that
// whoever was held has the whole time for the question afterwards.
func (h *holds) passWith(ctx context.Context, at point, id pawl.OperationID) (context.Context, context.CancelFunc) {
	if h.pass(at, id) {
		return context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	}
	return ctx, func() {}
}

// release lets one hold go. What is not held, or was let go before, is none of its business.
func (h *holds) release(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if gate := h.open[name]; gate != nil {
		close(gate)
		delete(h.open, name)
	}
}

// heldStore is a store with holds before and behind the calls of an owner.
type heldStore struct {
	pawl.Store
	holds *holds
}

// Admit implements pawl.Store.
func (s heldStore) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	got, err := s.Store.Admit(ctx, a)
	s.holds.pass(admitAfter, a.OperationID)
	return got, err
}

// MaySubmit implements pawl.Store.
func (s heldStore) MaySubmit(ctx context.Context, id pawl.OperationID, token pawl.OwnerToken) (pawl.Permit, error) {
	ctx, cancel := s.holds.passWith(ctx, checkBefore, id)
	defer cancel()
	got, err := s.Store.MaySubmit(ctx, id, token)
	s.holds.pass(checkAfter, id)
	return got, err
}

// Record implements pawl.Store.
func (s heldStore) Record(ctx context.Context, st pawl.Statement) (pawl.Operation, error) {
	ctx, cancel := s.holds.passWith(ctx, recordBefore, st.ID)
	defer cancel()
	got, err := s.Store.Record(ctx, st)
	s.holds.pass(recordAfter, st.ID)
	return got, err
}
