package sim

import (
	"time"

	"github.com/pawl-go/pawl"
)

// call is what a message asks for.
type call uint8

const (
	callAdmit call = iota // or reserve
	callMaySubmit
	callRenew
	callRecord
	callSettle
	callTakeOver
	callCreate
	callFind
)

func (c call) String() string {
	return [...]string{"admit", "may-submit", "renew", "record", "settle", "take-over", "create", "find"}[c]
}

// toProvider tells whom a call is for.
func (c call) toProvider() bool { return c >= callCreate }

// stage is how far a message has come.
type stage uint8

const (
	onTheWay stage = iota
	begun          // an admission's statement has its time; a racy provider has looked
	answered
)

// message is one call and its answer. It outlives the wait for it, and its sender.
type message struct {
	id     messageID
	from   actorID
	host   int8
	target int8
	call   call
	stage  stage
	by     time.Duration // an admission or a call to the provider does not arrive later

	token   pawl.OwnerToken
	out     pawl.Outcome
	pause   time.Duration
	lock    pawl.Lock
	trusted bool

	statement time.Time     // the store's time when an admission began
	since     time.Duration // true time of that
	free      bool          // as an admission in two steps, or a racy provider, has seen it

	answer answer
}

// answer is what comes back. The record is a snapshot that nobody changes.
type answer struct {
	err         error
	fresh       bool
	record      *pawl.Operation
	owner       pawl.Owner
	disposition pawl.Disposition
	target      int8 // of a takeover; none: nothing was stalled
	out         pawl.Outcome
	found       found
}

// found is what a look-up says.
type found uint8

const (
	foundSilence found = iota
	foundNothing
	foundEffect
	foundRefusal
	foundForeign
)

func (f found) String() string {
	return [...]string{"no answer", "nothing", "the effect", "the refusal", "another intent's effect"}[f]
}

func unavailable() error {
	return &pawl.Error{Class: pawl.ErrUnavailable, Reason: pawl.ReasonUnreachable}
}

func notConfirmed() error {
	return &pawl.Error{Class: pawl.ErrNotConfirmed, Reason: pawl.ReasonUnreachable}
}
