package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// eventType says what happened.
type eventType string

// What processes report, and what the stage adds of its own: the agent and
// itself.
const (
	evListening eventType = "listening" // a process takes requests at URL
	evFailed    eventType = "failed"    // a process cannot go on
	evEnded     eventType = "ended"     // a process ended that nobody had stopped

	evCredited eventType = "credited" // the provider made a credit
	evReplayed eventType = "replayed" // the provider answered a known key

	evRouted  eventType = "routed"   // the gateway chose an instance
	evTimeout eventType = "gave_up"  // the gateway stopped waiting
	evBroken  eventType = "cut_off"  // the instance's connection broke
	evNoted   eventType = "noted"    // the local record took the grant as used
	evKnown   eventType = "known"    // the local record had the grant
	evInvalid eventType = "invalid"  // the local checks refused
	evSending eventType = "sending"  // a create call goes out under Key
	evAnswer  eventType = "answered" // the provider answered the local record

	evAdmitted  eventType = "admitted"
	evJoined    eventType = "already_admitted"
	evRefused   eventType = "refused"
	evRecorded  eventType = "recorded" // the owner's word is in the record
	evTakenOver eventType = "taken_over"
	evLookedUp  eventType = "looked_up"
	evSettled   eventType = "settled" // evidence is in the record

	evClick   eventType = "click"
	evPresent eventType = "present"
	evAsk     eventType = "ask"
	evTold    eventType = "told"
	evKilled  eventType = "killed"
	evStarted eventType = "started"
)

// event is one thing that happened, as a line of JSON between processes. No
// token is in it.
type event struct {
	At        time.Time `json:"at"`
	Type      eventType `json:"type"`
	URL       string    `json:"url,omitempty"`
	Instance  string    `json:"instance,omitempty"`
	Credit    string    `json:"credit,omitempty"`
	Key       string    `json:"key,omitempty"`
	Operation string    `json:"operation,omitempty"`
	Status    string    `json:"status,omitempty"`
	Code      int       `json:"code,omitempty"`
	Fence     uint64    `json:"fence,omitempty"`
	Text      string    `json:"text,omitempty"`

	who string // set by the stage
	pid int    // of the process that said it; 0 for the stage
}

// teller writes a process's events. Its methods may be called from any goroutine.
type teller struct {
	now func() time.Time
	mu  sync.Mutex
	enc *json.Encoder
}

func newTeller(out io.Writer, now func() time.Time) *teller {
	return &teller{now: now, enc: json.NewEncoder(out)}
}

// tell writes one event. A stage that is gone cannot be told, and its end is
// noticed at standard input.
func (t *teller) tell(e event) {
	e.At = t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.enc.Encode(e)
}

// sentence tells an event to a person; "" for what is no part of the story.
func (e event) sentence() string {
	switch e.Type {
	case evCredited:
		return fmt.Sprintf("credit %s exists now: %s, key %s", short(e.Credit), e.Text, short(e.Key))
	case evReplayed:
		return "knows the key: the first answer again, no second credit"
	case evRouted:
		return "sends it to " + e.Instance
	case evTimeout:
		return "no answer from " + e.Instance + " within " + e.Text + ": gives up"
	case evBroken:
		return "lost the connection to " + e.Instance
	case evNoted:
		return "grant valid, and not in this process's map: noted as used"
	case evKnown:
		return "grant valid, but noted as used in this process's map: refused"
	case evInvalid:
		return "refused: " + e.Text
	case evSending:
		return "calls billing, key " + short(e.Key) + e.Text
	case evAnswer:
		return "billing answered: " + short(e.Credit)
	case evClick, evPresent, evAsk, evKilled, evStarted:
		return e.Text
	case evTold:
		return e.told()
	}
	return e.ofPawl()
}

// ofPawl tells what an instance heard from its gate.
func (e event) ofPawl() string {
	switch e.Type {
	case evAdmitted:
		return "grant admitted: one write to the store spent it and recorded operation " + short(e.Operation)
	case evJoined:
		return "operation " + short(e.Operation) + " was admitted before: reports it, and runs nothing"
	case evRefused:
		return "refused, nothing runs: " + e.Text
	case evRecorded:
		return "billing answered: records operation " + short(e.Operation) + " as " + e.Status
	case evTakenOver:
		return fmt.Sprintf("the last owner's lease is over: recovery takes operation %s over, as owner %d", short(e.Operation), e.Fence)
	case evLookedUp:
		return "recovery asks billing for the operation id: " + e.Text
	case evSettled:
		return "the evidence settles operation " + short(e.Operation) + ": " + e.Status
	}
	return ""
}

// told is what the agent sees.
func (e event) told() string {
	s := fmt.Sprintf("is told: %d", e.Code)
	for _, part := range []string{e.Status, short(e.Credit), e.Text} {
		if part != "" {
			s += ", " + part
		}
	}
	return s
}

// short makes an id readable: its kind, if it has one, and its last characters,
// which differ also where ids were made in the same moment.
func short(id string) string {
	const tail = 6
	if len(id) <= tail {
		return id
	}
	kind, _, ok := strings.Cut(id, "_")
	if !ok {
		return "…" + id[len(id)-tail:]
	}
	return kind + "_…" + id[len(id)-tail:]
}

// heard turns what a gate observes into an event of the story; false for what is
// no part of it.
func heard(e pawl.Event) (event, bool) {
	v := event{Operation: e.Operation.String(), Status: e.Status.String(), Fence: e.Fence}
	switch {
	case e.Type == pawl.EventAdmission && e.Err != nil:
		v.Type, v.Operation, v.Status, v.Text = evRefused, "", "", refusal(e.Reason)
	case e.Type == pawl.EventAdmission && e.Fresh:
		v.Type = evAdmitted
	case e.Type == pawl.EventAdmission:
		v.Type = evJoined
	case e.Type == pawl.EventRecord && e.Err == nil:
		v.Type = evRecorded
	case e.Type == pawl.EventTakeover:
		v.Type = evTakenOver
	case e.Type == pawl.EventFind:
		v.Type, v.Text = evLookedUp, e.Note
	case e.Type == pawl.EventSettle && e.Err == nil:
		v.Type = evSettled
	default:
		return event{}, false
	}
	return v, true
}

func refusal(r pawl.Reason) string {
	if r == pawl.ReasonUsed {
		return "the grant was admitted for another operation"
	}
	return string(r)
}
