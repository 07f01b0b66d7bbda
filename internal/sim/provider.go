package sim

import (
	"time"

	"github.com/pawl-go/pawl"
)

// The provider's side: what stands in its books is what really happened.

// looks is the first half of a create call at a provider whose keys are racy.
func (w *World) looks(m *message) { m.stage, m.free = begun, !w.remembers(m.target) }

// remembers reports whether a key is kept, and forgets one that is too old.
func (w *World) remembers(target int8) bool {
	b := &w.books[target]
	if b.known && w.now >= b.usedAt+w.plan.Provider.Retention {
		b.known, b.said = false, pawl.Outcome{}
	}
	return b.known
}

// perform is a create call: it makes an effect, refuses, or answers as before.
func (w *World) perform(m *message, refuses bool) answer {
	b, p := &w.books[m.target], w.plan.Provider
	known := w.remembers(m.target)
	switch {
	case b.foreign && p.Keys != KeysIgnored:
		return answer{err: errProvider("the key was used with other parameters")}
	case p.Keys == KeysIgnored, p.Keys == KeysRacy && m.free:
	case known:
		return answer{out: b.said}
	}
	said := declined()
	if refuses {
		b.refused++
		w.note(happening{what: refusal, target: m.target})
	} else {
		b.effects++
		if b.effects == 1 {
			b.madeAt = w.now
		}
		said = result(int(m.target), int(b.effects))
		w.note(happening{what: effect, target: m.target, who: m.from})
	}
	if !refuses || !p.Forgets {
		b.known, b.said, b.usedAt = true, said, w.now
	}
	if len(w.notices) < mostNotices {
		n := notice{target: m.target, out: said}
		if !refuses {
			n.out = w.told(m.target, int(b.effects))
		}
		w.notices = append(w.notices, n)
	}
	return answer{out: said}
}

const mostNotices = 8

// told is what a look-up or a notice tells of an effect.
func (w *World) told(target int8, n int) pawl.Outcome {
	if w.plan.Provider.Rewords {
		return retold(int(target), n)
	}
	return result(int(target), n)
}

// lookUp answers a look-up by reference [E2].
func (w *World) lookUp(m *message, silent bool) answer {
	b, p := &w.books[m.target], w.plan.Provider
	switch {
	case silent || !p.Finds:
		return answer{found: foundSilence}
	case b.effects > 0 && w.now >= b.madeAt+p.Lag:
		return answer{found: foundEffect, out: w.told(m.target, 1)}
	case b.foreign:
		return answer{found: foundForeign, out: pawl.Succeeded("another's")}
	case b.refused > 0 && b.effects == 0 && p.Tells:
		return answer{found: foundRefusal, out: declined()}
	}
	return answer{found: foundNothing}
}

// tellNotice delivers a statement of the provider's to the evidence door.
func (w *World) tellNotice(i int) {
	n := &w.notices[i]
	n.told++
	r := &w.records[n.target]
	if !r.there {
		return
	}
	got := w.evidence(n.target, pawl.Evidence{
		ID: r.ID, Lock: w.plan.Targets[n.target].lock, Outcome: n.out, Trusted: true, Source: "provider",
	}, 0, 0, false)
	w.tell("the provider says of operation %d: %v; %s", n.target, n.out.Verdict(), got.disposition)
}

// tellMoved is a joined attempt's statement under a generation that moved on, or
// one that says nothing [M5].
func (w *World) tellMoved(target int8, out pawl.Outcome, lock pawl.Lock) {
	op := w.records[target].Operation
	got := w.evidence(target, pawl.Evidence{ID: op.ID, Lock: lock, Outcome: out, Token: w.plan.secret.Mint(op, 0)}, 0, 0, true)
	w.tell("a joined attempt says of operation %d: %v; %s", target, out.Verdict(), got.disposition)
}

// resolve is a person who reads the provider's books and waits until no call can
// be under way before calling something a failure [M8].
func (w *World) resolve(target int8) {
	r, b := &w.records[target], &w.books[target]
	out := result(int(target), 1)
	if b.effects == 0 {
		out = pawl.Failed("nothing there")
	}
	got := w.evidence(target, pawl.Evidence{
		ID: r.ID, Lock: r.Lock, Outcome: out, Trusted: true, Resolution: true, Source: "a person", Note: "looked it up",
	}, 0, 0, false)
	w.tell("a person says of operation %d: %v; %v", target, out.Verdict(), got.err)
}

// certain reports whether a person can know what became of an operation.
func (w *World) certain(target int8) bool {
	r := &w.records[target]
	last := r.SubmitBy.Add(w.plan.kt().EffectTimeout + 2*slack + clockWidth)
	return r.there && (w.books[target].effects > 0 || at(w.now).After(last))
}

// errProvider is an error status: it says nothing about the effect.
type errProvider string

func (e errProvider) Error() string { return string(e) }

// arrivesBy is until when the request of a call can still arrive.
func (w *World) arrivesBy(left time.Duration) time.Duration { return w.now + left + slack }
