package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
)

// Move is one thing that happens. Who names an actor, a message, a host, a target
// or a grant, as Kind has it; Arg is what else it needs. Names are the same in
// every order of events, so that a list of moves stays meaningful when some are
// taken out.
type Move struct {
	Kind MoveKind
	Who  int
	Arg  int64
}

// MoveKind is what sort of thing happens.
type MoveKind uint8

// The kinds of moves. The first five are what goes well.
const (
	MoveTick    MoveKind = iota // true time passes: Arg
	MoveAttempt                 // somebody asks a host, Arg, for a target
	MoveStep                    // an actor does its next thing
	MoveServe                   // a message is dealt with where it was sent to; Arg 1: the provider refuses, or is silent
	MoveAnswer                  // an answer arrives
	MoveBegin                   // an admission's statement begins, or a racy provider looks
	MoveTimeout                 // an actor waits no longer; its message is still on its way
	MoveLose                    // a message or its answer is lost, and its sender hears so: Arg 1, or not
	MoveCrash                   // a host dies
	MoveStart                   // a host starts
	MovePause                   // a host stands still
	MoveResume                  // and goes on
	MoveCut                     // a host and the store no longer reach each other
	MoveMend                    // and do again
	MoveClock                   // the store's clock steps to another skew: Arg
	MoveRevoke                  // a grant is revoked
	MovePurge                   // one purge
	MoveNotice                  // the provider says what became of an operation
	MoveLate                    // a joined attempt says unknown, or, Arg 1, a success for a generation that moved on
	MoveForeign                 // somebody else makes an effect under an operation's reference
	MoveResolve                 // a person decides
	lastMove    = MoveResolve
)

// String returns the word used in traces.
func (k MoveKind) String() string {
	return [...]string{
		"tick", "attempt", "step", "serve", "answer", "begin", "timeout", "lose", "crash", "start", "pause", "resume", "cut",
		"mend", "clock", "revoke", "purge", "notice", "late", "foreign", "resolve",
	}[k]
}

// String returns the move as a trace shows it.
func (m Move) String() string {
	switch m.Kind {
	case MoveTick, MoveClock:
		return fmt.Sprintf("%v %v", m.Kind, time.Duration(m.Arg))
	case MovePurge:
		return m.Kind.String()
	}
	return fmt.Sprintf("%v %d %d", m.Kind, m.Who, m.Arg)
}

// mostAttempts bounds the requests for one target.
const mostAttempts = 3

// Do makes a move happen and reports whether it could. Afterwards Broken tells
// whether the world is still as it must be.
func (w *World) Do(m Move) bool {
	if w.audit.breach != nil || !w.can(m) {
		return false
	}
	if w.trace != nil {
		w.tell("- %v", m)
	}
	w.audit.begin(w)
	w.do(m)
	w.sweep()
	w.audit.end(w)
	return true
}

// can reports whether a move is possible.
func (w *World) can(m Move) bool {
	switch m.Kind {
	case MoveTick:
		return m.Arg > 0
	case MoveAttempt:
		return w.canAttempt(m.Who, int(m.Arg))
	case MoveStep:
		a := w.actor(actorID(m.Who))
		return a != nil && a.at != atDone && !a.waiting() && a.until <= w.now && !w.hosts[a.host].paused
	case MoveTimeout:
		a := w.actor(actorID(m.Who))
		return a != nil && a.waiting() && a.until <= w.now && !w.hosts[a.host].paused
	case MoveBegin, MoveServe, MoveAnswer, MoveLose:
		x := w.message(messageID(m.Who))
		return x != nil && w.canMove(m.Kind, x)
	case MoveCrash, MoveStart, MovePause, MoveResume, MoveCut, MoveMend:
		return w.canHost(m.Kind, &w.hosts[m.Who])
	case MoveClock:
		return m.Arg >= 0 && m.Arg <= int64(clockWidth) && m.Arg != int64(w.skew)
	case MoveRevoke, MovePurge:
		return true
	case MoveNotice:
		return m.Who < len(w.notices) && w.notices[m.Who].told < 2
	case MoveLate:
		return w.records[m.Who].there
	case MoveForeign:
		b := &w.books[m.Who]
		return w.audit.targets[m.Who].admissions > 0 && !b.foreign && !b.known && b.effects == 0
	default:
		return w.certain(int8(m.Who)) && !w.records[m.Who].Status.Final()
	}
}

// canAttempt keeps a client of an idempotency key to the key's lifetime [B3].
func (w *World) canAttempt(target, host int) bool {
	if w.hosts[host].down || w.hosts[host].paused || w.sent[target] >= mostAttempts {
		return false
	}
	return w.sent[target] == 0 || w.keyLives(target)
}

// keyLives reports whether a client may still repeat a request: a key has a
// published lifetime, and a grant's deadline is the store's affair.
func (w *World) keyLives(target int) bool {
	return w.plan.Targets[target].Grant != none || w.now < w.first[target]+w.plan.Timings.KeyLifetime-5*time.Second
}

func (w *World) canMove(k MoveKind, m *message) bool {
	cut := w.hosts[m.host].cut && !m.call.toProvider()
	late := w.late(m)
	switch k {
	case MoveBegin:
		return !cut && !late && m.stage == onTheWay && w.hasBeginning(m)
	case MoveServe:
		ready := m.stage == begun || m.stage == onTheWay && !w.hasBeginning(m)
		return ready && !cut && !late
	case MoveAnswer:
		a := w.actor(m.from)
		return m.stage == answered && !cut && a != nil && a.waits == m.id && !w.hosts[a.host].paused
	default:
		return true
	}
}

// late reports whether a message can do nothing any more: a request that did not
// arrive, a call that the provider has given up.
func (w *World) late(m *message) bool {
	switch {
	case m.stage == answered || m.by == 0:
		return false
	case m.stage == onTheWay:
		return w.now > m.by
	case m.call == callCreate:
		return w.now > m.by+slack
	}
	return w.overdue(m)
}

// hasBeginning tells the calls that take effect later than they began.
func (w *World) hasBeginning(m *message) bool {
	return m.call == callAdmit && w.plan.Bounded || m.call == callCreate && w.plan.Provider.Keys == KeysRacy
}

func (w *World) canHost(k MoveKind, h *host) bool {
	switch k {
	case MoveCrash:
		return !h.down
	case MoveStart:
		return h.down
	case MovePause:
		return !h.down && !h.paused
	case MoveResume:
		return h.paused && !h.down
	case MoveCut:
		return !h.down && !h.cut
	default:
		return h.cut && !h.down
	}
}

func (w *World) do(m Move) {
	switch m.Kind {
	case MoveTick:
		w.now += time.Duration(m.Arg)
	case MoveAttempt:
		w.attempt(m.Who, int(m.Arg))
	case MoveStep:
		w.step(w.actor(actorID(m.Who)))
	case MoveServe, MoveBegin, MoveAnswer, MoveLose:
		w.moveMessage(m)
	case MoveTimeout:
		a := w.actor(actorID(m.Who))
		w.hear(a, a.lostAnswer())
	case MoveCrash:
		w.kill(m.Who)
	case MoveStart:
		w.start(m.Who)
	case MovePause, MoveResume:
		w.hosts[m.Who].paused = m.Kind == MovePause
	case MoveCut, MoveMend:
		w.hosts[m.Who].cut = m.Kind == MoveCut
	case MoveClock:
		w.skew = time.Duration(m.Arg)
	case MoveRevoke:
		w.revoke(m.Who)
	case MovePurge:
		w.purge()
	case MoveNotice:
		w.tellNotice(m.Who)
	case MoveLate:
		t := &w.plan.Targets[m.Who]
		if m.Arg == 0 {
			w.tellMoved(int8(m.Who), pawl.Unknown("joined"), t.lock)
		} else {
			w.tellMoved(int8(m.Who), pawl.Succeeded("under a generation that moved on"), t.moved)
		}
	case MoveForeign:
		w.books[m.Who].foreign = true
	case MoveResolve:
		w.resolve(int8(m.Who))
	}
}

func (w *World) attempt(target, host int) {
	w.sent[target]++
	if w.sent[target] == 1 {
		w.first[target] = w.now
	}
	w.add(actor{id: attemptID(target, int(w.sent[target])), host: int8(host), target: int8(target), at: atAdmit})
}

func (w *World) moveMessage(m Move) {
	x := w.message(messageID(m.Who))
	switch m.Kind {
	case MoveBegin:
		if x.call == callAdmit {
			w.begin(x)
		} else {
			w.looks(x)
		}
	case MoveServe:
		w.serveMessage(x, m.Arg == 1)
	case MoveAnswer:
		got := x.answer
		a := w.actor(x.from)
		w.discard(x.id)
		w.hear(a, got)
	case MoveLose:
		a := w.actor(x.from)
		awaited := a != nil && a.waits == x.id && !w.hosts[a.host].paused
		w.discard(x.id)
		if awaited && m.Arg == 1 {
			w.hear(a, a.lostAnswer())
		}
	}
}

// serveMessage deals with a message. An answer that nobody waits for any more is
// not kept.
func (w *World) serveMessage(x *message, contrary bool) {
	if x.call == callAdmit && x.stage == onTheWay {
		w.begin(x)
	}
	switch x.call {
	case callCreate:
		x.answer = w.perform(x, contrary)
	case callFind:
		x.answer = w.lookUp(x, contrary)
	default:
		x.answer = w.serve(x)
	}
	x.stage = answered
	if w.trace != nil {
		w.says(x.from, "is answered: %s", w.describe(x))
	}
	if a := w.actor(x.from); a == nil || a.waits != x.id {
		w.discard(x.id)
	}
}

// sweep takes away what cannot matter any more: actors that have ended, requests
// that cannot arrive, answers that nobody waits for.
func (w *World) sweep() {
	w.actors = slices.DeleteFunc(w.actors, func(a actor) bool { return a.at == atDone })
	w.mail = slices.DeleteFunc(w.mail, func(m message) bool {
		a := w.actor(m.from)
		return w.late(&m) || m.stage == answered && (a == nil || a.waits != m.id)
	})
}
