package pawl

import (
	"context"
	"time"
)

// Observer is told what happens, for logs and metrics. Calls are made on the
// goroutine that did the work and must not block. Events carry ids and reasons,
// never tokens, details or results [S2].
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// EventType names what happened.
type EventType string

// The events.
const (
	EventAdmission  EventType = "admission"   // Err nil: admitted or already admitted
	EventSubmit     EventType = "submit"      // a create call ended
	EventFind       EventType = "find"        // a look-up ended
	EventRecord     EventType = "record"      // the owner's door
	EventSettle     EventType = "settle"      // the evidence door
	EventTakeover   EventType = "takeover"    // recovery became owner
	EventHandOver   EventType = "hand_over"   // recovery gave an operation to a person
	EventRecovery   EventType = "recovery"    // a recovery pass failed
	EventPurge      EventType = "purge"       // a purge pass ended
	EventDefect     EventType = "defect"      // an error without a class: alarm
	EventSuspicious EventType = "double_risk" // mismatch, contradiction or divergence: a second effect may exist [M7]
)

// Event is one thing that happened. Fields that do not apply are zero.
type Event struct {
	Type        EventType
	Operation   OperationID
	Kind        Kind
	Fence       uint64
	Fresh       bool
	Verdict     Verdict
	Status      Status
	Disposition Disposition
	Reason      Reason
	Count       int
	Elapsed     time.Duration
	Err         error // an error of Pawl's; a provider's own error is only its type's name in Note
	Note        string
}

// NopObserver ignores everything.
type NopObserver struct{}

// Observe implements Observer.
func (NopObserver) Observe(context.Context, Event) {}
