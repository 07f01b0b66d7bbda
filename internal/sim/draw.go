package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
)

// What a seed draws: the plan, the weights, and then move after move.

// newRand returns the numbers of a seed.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x7061776c)) }

func one(r *rand.Rand, in int) bool { return r.IntN(in) == 0 }

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// theme is what a run is mostly about. Some mistakes need a long chain of unlikely
// things; a theme makes most of them likely.
type theme uint8

const (
	anything  theme = iota
	deadlines       // calls close to the submission deadline, at a provider whose look-up lags
	waiting         // admissions that begin before the grant's deadline and wait
	sleeping        // hosts that stand still for long
)

func drawTheme(r *rand.Rand) theme {
	return pick(r, anything, anything, anything, deadlines, waiting, sleeping)
}

// drawPlan draws what a world is made of.
func drawPlan(r *rand.Rand, about theme, m Mistake) *Plan {
	p := newPlan(drawProvider(r, about, m), pick(r, 1, 2, 3, 6))
	p.Hosts, p.Bounded, p.Mistake = pick(r, 1, 2, 2, 3), about == waiting || one(r, 2), m
	if about == sleeping {
		p.Hosts = max(p.Hosts, 2)
	}
	if about == deadlines {
		p.addGrant(pawl.FormToken, time.Minute)
		p.addTarget(0)
		return p
	}
	for range pick(r, 1, 2, 3) {
		p.addGrant(pick(r, pawl.FormToken, pawl.FormStored), time.Duration(pick(r, 20, 45, 90, 180))*time.Second)
		for range pick(r, 1, 2, 2, 3) {
			p.addTarget(len(p.Grants) - 1)
		}
	}
	if one(r, 3) {
		p.addTarget(none)
	}
	return p
}

func drawProvider(r *rand.Rand, about theme, m Mistake) Provider {
	p := Provider{
		Stated: !one(r, 4), Retention: tightRetention(), Finds: !one(r, 5), Tells: one(r, 2), Forgets: one(r, 6),
		Lag: time.Duration(pick(r, 0, 0, 20, 60, 300)) * time.Second, Rewords: one(r, 4),
	}
	if about == deadlines {
		p.Finds, p.Lag = true, 300*time.Second
	}
	if m == KeyWithoutCall {
		p.Retention -= timings(p).Default.EffectTimeout
	}
	if !p.Stated {
		p.Keys = pick(r, KeysAtomic, KeysRacy, KeysIgnored)
		p.Retention = time.Duration(pick(r, 0, 10, 1000)) * time.Second
	}
	return p
}

// weights say how likely each kind of move is, and what colours it.
type weights struct {
	of       [lastMove + 1]int
	sum      int
	about    theme
	contrary int           // one in so many calls is refused, or not answered
	putOff   int           // one in so many moves that are put off is made all the same
	edge     int           // one in so many ticks goes to an instant that matters
	unit     time.Duration // of the other ticks
}

// drawWeights makes some things frequent, some rare and some impossible, each run
// in its own way. What a world cannot do without is never impossible.
func drawWeights(r *rand.Rand, about theme) weights {
	w := weights{
		about: about, contrary: pick(r, 2, 4, 20), putOff: pick(r, 4, 20, 80), edge: pick(r, 1, 2, 4),
		unit: pick(r, time.Millisecond, 100*time.Millisecond, time.Second),
	}
	for k := MoveTick; k <= lastMove; k++ {
		w.of[k] = pick(r, 0, 0, 1, 4, 10)
	}
	for _, k := range []MoveKind{MovePurge, MoveRevoke, MoveLate, MoveCrash, MovePause, MoveCut} {
		w.of[k] = pick(r, 0, 0, 3, 10)
	}
	w.of[MoveForeign] = pick(r, 0, 0, 0, 0, 2)
	for _, k := range []MoveKind{MoveStep, MoveServe, MoveAnswer, MoveBegin} {
		w.of[k] = pick(r, 100, 200, 400)
	}
	w.of[MoveTick], w.of[MoveAttempt], w.of[MoveTimeout] = pick(r, 2, 8, 25), pick(r, 3, 10, 20), pick(r, 5, 30, 100)
	for _, back := range []MoveKind{MoveStart, MoveResume, MoveMend} {
		w.of[back] = pick(r, 5, 15, 50)
	}
	switch about {
	case waiting:
		w.of[MovePurge], w.edge = 15, 1
	case sleeping:
		w.of[MovePause], w.of[MoveResume], w.edge = 0, 1, 1
	case deadlines:
		for _, k := range []MoveKind{MovePause, MoveCut, MoveNotice, MoveLate, MoveForeign, MoveResolve, MoveRevoke, MoveLose} {
			w.of[k] = 0
		}
		w.of[MoveCrash], w.of[MoveTick], w.edge, w.contrary = 5, 2, 1, 10
	}
	for _, n := range w.of {
		w.sum += n
	}
	return w
}

// kind draws a kind of move.
func (w *weights) kind(r *rand.Rand) MoveKind {
	n := r.IntN(w.sum)
	for k, of := range w.of {
		if n < of {
			return MoveKind(k)
		}
		n -= of
	}
	return MoveTick
}

// draw returns a move that is possible. When nothing else is, time passes.
func (w *World) draw(r *rand.Rand, s *weights, buf []Move) (Move, []Move) {
	for range 12 {
		k := s.kind(r)
		if k == MoveTick {
			return Move{MoveTick, 0, w.drawTick(r, s)}, buf
		}
		buf = w.moves(k, buf[:0])
		if len(buf) == 0 {
			continue
		}
		m := buf[r.IntN(len(buf))]
		if w.hesitates(m, s.about) && !one(r, s.putOff) {
			continue
		}
		switch k {
		case MoveServe:
			m.Arg = oneIn(r, s.contrary)
		case MoveLose, MoveLate:
			m.Arg = oneIn(r, 2)
		case MoveClock:
			m.Arg = pick(r, 0, int64(clockWidth)/2, int64(clockWidth))
		}
		if w.can(m) {
			return m, buf
		}
	}
	return Move{MoveTick, 0, w.drawTick(r, s)}, buf
}

// hesitates tells the moves that are put off: those that change nothing, and those
// that a theme wants others to come in between.
func (w *World) hesitates(m Move, about theme) bool {
	switch m.Kind {
	case MoveServe, MoveAnswer:
		x := w.message(messageID(m.Who))
		return about == waiting && x.stage == begun ||
			about == deadlines && x.call == callCreate && (x.from >= firstRecovery) == (m.Kind == MoveServe)
	case MoveStep:
		a := w.actor(actorID(m.Who))
		late := about == sleeping || about == deadlines && a.recovers
		return late && a.at == atCreate || a.at == atTakeOver && !w.anyStalled()
	case MoveCrash, MovePause: // whoever has nothing to do loses nothing
		return !slices.ContainsFunc(w.actors, func(a actor) bool { return int(a.host) == m.Who && a.target != none })
	}
	return false
}

func oneIn(r *rand.Rand, n int) int64 {
	if one(r, n) {
		return 1
	}
	return 0
}

// drawTick draws how much time passes: often to just before, at or just after an
// instant at which something ends.
func (w *World) drawTick(r *rand.Rand, s *weights) int64 {
	if one(r, s.edge) {
		var room [64]time.Duration
		ahead := room[:0]
		late := s.about == deadlines && !one(r, 3)
		for _, t := range w.instants(room[:0], late) {
			if t > w.now {
				ahead = append(ahead, t-w.now)
			}
		}
		if len(ahead) > 0 {
			slices.Sort(ahead)
			near := min(len(ahead), pick(r, 1, 1, 2, 4))
			off := pick(r, -int64(100*time.Millisecond), -int64(time.Microsecond), 0, int64(time.Microsecond))
			if late {
				off = pick(r, -int64(5*time.Second), -int64(time.Second), -int64(100*time.Millisecond), 0)
			}
			return max(int64(ahead[r.IntN(near)])+off, int64(time.Microsecond))
		}
	}
	return int64(s.unit) * int64(1+r.IntN(9))
}

// instants are the true times at which something ends as things stand; late are
// only the ends of submission and of the provider's keys.
func (w *World) instants(buf []time.Duration, late bool) []time.Duration {
	on := func(t time.Time) { buf = append(buf, t.Sub(epoch())-w.skew) }
	for i := range w.records {
		if r := &w.records[i]; r.there && r.Status.Open() {
			on(r.SubmitBy)
			if !late {
				on(r.LeaseUntil)
			}
		}
		if b := &w.books[i]; b.known {
			buf = append(buf, b.usedAt+w.plan.Provider.Retention)
		}
	}
	if late && len(buf) > 0 {
		return buf
	}
	for g := range w.claims {
		on(w.retention(g))
		on(w.retention(g).Add(w.plan.Timings.PurgeMargin))
	}
	for i := range w.actors {
		buf = append(buf, w.actors[i].until)
	}
	for i := range w.mail {
		if w.mail[i].by > 0 {
			buf = append(buf, w.mail[i].by)
		}
	}
	return buf
}

// moves appends every possible move of a kind, with Arg 0 where Arg is a matter
// of taste.
func (w *World) moves(k MoveKind, buf []Move) []Move {
	add := func(who int, arg int64) {
		if m := (Move{k, who, arg}); w.can(m) {
			buf = append(buf, m)
		}
	}
	switch k {
	case MoveStep, MoveTimeout:
		for i := range w.actors {
			add(int(w.actors[i].id), 0)
		}
	case MoveBegin, MoveServe, MoveAnswer, MoveLose:
		for i := range w.mail {
			add(int(w.mail[i].id), 0)
		}
	case MoveAttempt:
		for i := range w.plan.Targets {
			for h := range w.hosts {
				add(i, int64(h))
			}
		}
	case MoveCrash, MoveStart, MovePause, MoveResume, MoveCut, MoveMend:
		for h := range w.hosts {
			add(h, 0)
		}
	case MoveRevoke:
		for g := range w.plan.Grants {
			add(g, 0)
		}
	case MoveNotice:
		for i := range w.notices {
			add(i, 0)
		}
	case MoveLate, MoveForeign, MoveResolve:
		for i := range w.plan.Targets {
			add(i, 0)
		}
	case MovePurge:
		add(0, 0)
	case MoveClock:
		if w.skew == 0 {
			add(0, int64(clockWidth))
		} else {
			add(0, 0)
		}
	}
	return buf
}
