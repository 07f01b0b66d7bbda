package billing

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Call names one of the two calls a fault can hit.
type Call string

// The calls. The empty Call means create.
const (
	CallCreate Call = "create"
	CallLookup Call = "lookup"
)

// Action is what a fault does. "Effect" is the credit or, in a look-up, the search.
type Action string

// The actions. Those before the effect leave nothing behind, except CutBefore. Those after it
// change only what the caller hears: the credit exists and its key remembers the true reply.
const (
	OnlyDelay    Action = ""              // delays and holds, then answers normally
	DropBefore   Action = "drop_before"   // no effect, connection closed without an answer
	FailBefore   Action = "fail_before"   // no effect, 503
	CutBefore    Action = "cut_before"    // connection closed at once, the work goes on to its effect
	Decline      Action = "decline"       // a definite refusal, remembered under the key (create only)
	LostAfter    Action = "lost_after"    // effect, connection closed without an answer
	FailAfter    Action = "fail_after"    // effect, 500
	GarbageAfter Action = "garbage_after" // effect, the true status with a body that is not JSON
	HalfAfter    Action = "half_after"    // effect, half of the body, then the connection is closed
	TrickleAfter Action = "trickle_after" // effect, the true answer one byte per Interval
)

func actions() []Action {
	return []Action{
		OnlyDelay, DropBefore, FailBefore, CutBefore, Decline,
		LostAfter, FailAfter, GarbageAfter, HalfAfter, TrickleAfter,
	}
}

// Fault is one rule of misbehaviour. Rules are tried in the order given; the first that matches and
// fires decides the request. Durations travel as nanoseconds in JSON.
type Fault struct {
	// What it matches: all of these that are set. Key of a look-up is the reference asked for;
	// a look-up has no account.
	On      Call   `json:"on,omitempty"`
	Key     string `json:"key,omitempty"`
	Account string `json:"account,omitempty"`

	// How often it fires. Times is the number of requests it may still hit, zero for no limit.
	// Probability is the share of matching requests it hits, zero for all of them; the draw depends
	// only on the seed, the rule, the key and how many requests of that key came before, so that
	// concurrent keys do not disturb one another's luck.
	Times       int     `json:"times,omitempty"`
	Probability float64 `json:"probability,omitempty"`

	Do Action `json:"do,omitempty"`
	// Code is the decline code of a Decline, such as "account_closed".
	Code string `json:"code,omitempty"`
	// Reset makes a closed connection a TCP reset instead of an orderly end.
	Reset bool `json:"reset,omitempty"`
	// Stored makes the 500 of a FailAfter what the key remembers and replays, as some providers do.
	Stored bool `json:"stored,omitempty"`
	// Interval is the pause before each byte of a TrickleAfter.
	Interval time.Duration `json:"interval_ns,omitempty"`

	// Delays and gates around the effect. The key counts as in flight until the effect. A request
	// stays at a gate until the gate is released or the provider stops.
	DelayBefore time.Duration `json:"delay_before_ns,omitempty"`
	DelayAfter  time.Duration `json:"delay_after_ns,omitempty"`
	HoldBefore  string        `json:"hold_before,omitempty"`
	HoldAfter   string        `json:"hold_after,omitempty"`
}

func (f Fault) valid() error {
	var bad []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	lookup := f.On == CallLookup
	refuse(f.On != "" && f.On != CallCreate && !lookup, "unknown call %q", f.On)
	refuse(!slices.Contains(actions(), f.Do), "unknown action %q", f.Do)
	refuse(lookup && f.Account != "", "a look-up has no account to match")
	refuse(lookup && f.Do == Decline, "a look-up cannot be declined")
	refuse(f.Times < 0, "times is negative")
	refuse(!(f.Probability >= 0 && f.Probability <= 1), "probability is not between 0 and 1")
	refuse((f.Do == Decline) != (f.Code != ""), "a decline, and only a decline, needs a code")
	refuse(f.Code != "" && !word(f.Code), "code must be a word of a-z, 0-9 and _")
	refuse(f.Stored && (f.Do != FailAfter || lookup), "stored belongs to a create that fails after its effect")
	refuse(f.Reset && !slices.Contains([]Action{DropBefore, CutBefore, LostAfter, HalfAfter}, f.Do),
		"reset belongs to an action that closes the connection")
	refuse((f.Do == TrickleAfter) != (f.Interval > 0), "a trickle, and only a trickle, needs a positive interval")
	refuse(f.DelayBefore < 0 || f.DelayAfter < 0, "a delay is negative")
	if len(bad) > 0 {
		return fmt.Errorf("billing: fault refused: %w", errors.Join(bad...))
	}
	return nil
}

func validFaults(faults []Fault) error {
	var bad []error
	for _, f := range faults {
		bad = append(bad, f.valid())
	}
	return errors.Join(bad...)
}

// rule is a fault in force. Its number is never used again, so that a replaced rule does not
// inherit the luck of the one before it.
type rule struct {
	Fault
	number uint64
	left   int // of Times
}

// rules decide which fault hits a request; the provider's lock guards them.
type rules struct {
	seed  uint64
	next  uint64
	inUse []*rule
}

func (r *rules) add(faults []Fault) {
	for _, f := range faults {
		r.inUse = append(r.inUse, &rule{Fault: f, number: r.next, left: f.Times})
		r.next++
	}
}

func (r *rules) clear() { r.inUse = nil }

// draw returns the fault for the nth request (from zero) of a call under a key. The zero Fault
// changes nothing.
func (r *rules) draw(call Call, key, account string, nth int) Fault {
	for _, u := range r.inUse {
		on := u.On
		if on == "" {
			on = CallCreate
		}
		if on != call || (u.Key != "" && u.Key != key) || (u.Account != "" && u.Account != account) {
			continue
		}
		if u.Times > 0 && u.left == 0 || u.Probability > 0 && r.luck(u.number, key, nth) >= u.Probability {
			continue
		}
		u.left--
		return u.Fault
	}
	return Fault{}
}

// luck is a number in [0, 1) fixed by its arguments and the seed.
func (r *rules) luck(number uint64, key string, nth int) float64 {
	b := binary.BigEndian.AppendUint64(nil, r.seed)
	b = binary.BigEndian.AppendUint64(b, number)
	b = binary.BigEndian.AppendUint64(b, uint64(nth))
	digest := sha256.Sum256(append(b, key...))
	return float64(binary.BigEndian.Uint64(digest[:])>>11) / (1 << 53)
}
