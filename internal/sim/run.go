package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
)

// Run is one world from one seed: the same fields give the same steps.
type Run struct {
	Seed    uint64
	Steps   int // faults stop after so many
	Mistake Mistake
	Census  *Census // nil: nobody counts
}

// Outcome is what became of a run.
type Outcome struct {
	Plan   *Plan
	Moves  []Move
	Breach *Breach // nil: every rule held
}

// Play draws and makes moves until a rule breaks or the steps are over, then lets
// the world come to its end.
func (r Run) Play() Outcome {
	rng := newRand(r.Seed)
	about := drawTheme(rng)
	plan := drawPlan(rng, about, r.Mistake)
	s := drawWeights(rng, about)
	w := NewWorld(plan)
	w.audit.census = r.Census
	o := Outcome{Plan: plan, Moves: make([]Move, 0, r.Steps)}
	m, buf := Move{MoveAttempt, rng.IntN(len(plan.Targets)), int64(rng.IntN(plan.Hosts))}, []Move(nil)
	for range r.Steps {
		o.Moves = append(o.Moves, m)
		if r.Census != nil {
			r.Census.Steps++
			r.Census.Moves[m.Kind]++
		}
		w.Do(m)
		if w.Broken() != nil || w.spent() {
			break
		}
		m, buf = w.draw(rng, &s, buf)
	}
	w.Finish()
	o.Breach = w.Broken()
	return o
}

// spent reports whether nothing of interest can happen any more: nothing is under
// way, every grant is long over, and every operation waits for a person at most.
func (w *World) spent() bool {
	for g := range w.claims {
		if w.retention(g).Add(w.plan.Timings.PurgeMargin + clockWidth).After(w.clock()) {
			return false
		}
	}
	for i := range w.records {
		if w.records[i].there && w.records[i].Status.Open() {
			return false
		}
	}
	return !slices.ContainsFunc(w.actors, func(a actor) bool { return a.target != none })
}

// Replay makes moves in a fresh world, leaves out those that cannot be, and lets
// it come to its end. trace, where not nil, is told every step.
func Replay(p *Plan, moves []Move, trace func(format string, args ...any)) *Breach {
	w := NewWorld(p)
	w.trace = trace
	for _, m := range moves {
		w.Do(m)
	}
	w.tell("- no more faults")
	w.Finish()
	return w.Broken()
}

// longestEnd bounds the moves of an end; every operation has a bounded number of
// takeovers, each of a bounded number of moves.
const longestEnd = 20_000

// Finish ends all faults and lets everything run, the earliest first, until
// nothing is left to do. Then the rules of the end must hold.
func (w *World) Finish() {
	if w.audit.breach != nil {
		return
	}
	for h := range w.hosts {
		for _, k := range []MoveKind{MoveStart, MoveResume, MoveMend} {
			w.Do(Move{k, h, 0})
		}
	}
	var buf []Move
	for range longestEnd {
		if w.audit.breach != nil {
			return
		}
		var m Move
		if m, buf = w.next(buf); m.Kind == MoveTick && m.Arg == 0 {
			break
		}
		w.Do(m)
	}
	w.audit.close(w)
}

// next is what happens next in a world without faults. It returns no tick at all
// when nothing is left.
func (w *World) next(buf []Move) (Move, []Move) {
	for _, k := range []MoveKind{MoveAnswer, MoveServe, MoveBegin, MoveTimeout, MoveStep} {
		for _, m := range w.moves(k, buf[:0]) {
			a := w.actor(actorID(m.Who))
			if k != MoveStep || a.at != atTakeOver || w.anyStalled() {
				return m, buf
			}
		}
	}
	return Move{Kind: MoveTick, Arg: int64(w.untilNext())}, buf
}

func (w *World) anyStalled() bool {
	now := w.clock()
	for i := range w.records {
		if r := &w.records[i]; r.there && w.stalled(&r.Operation, now) {
			return true
		}
	}
	return false
}

// untilNext is how long nothing can happen; 0: nothing can happen any more.
func (w *World) untilNext() time.Duration {
	next := time.Duration(0)
	sooner := func(t time.Duration) {
		if d := t - w.now; d > 0 && (next == 0 || d < next) {
			next = d
		}
	}
	for i := range w.actors {
		if a := &w.actors[i]; a.at != atTakeOver || a.waiting() {
			sooner(a.until)
		}
	}
	open := false
	for i := range w.records {
		if r := &w.records[i]; r.there && r.Status.Open() {
			open = true
			free := r.LeaseUntil
			if r.ResumeAt.After(free) {
				free = r.ResumeAt
			}
			sooner(free.Sub(epoch()) - w.skew)
		}
	}
	if next == 0 && open {
		return w.plan.Timings.RecoveryInterval // a floor of the clock may be ahead of its skew
	}
	return next
}

// Shrink takes out moves as long as the same rule still breaks. The rest is short
// enough to read.
func Shrink(p *Plan, moves []Move, want Rule) []Move {
	breaks := func(moves []Move) bool {
		b := Replay(p, moves, nil)
		return b != nil && b.Rule == want
	}
	for size := len(moves) / 2; size > 0; size = cmp.Compare(size, 1) * size / 2 {
		for from := 0; from < len(moves); {
			without := append(append([]Move{}, moves[:from]...), moves[min(from+size, len(moves)):]...)
			if breaks(without) {
				moves = without
			} else {
				from += size
			}
		}
	}
	return moves
}

// Records returns the operations in the store, by target; nil where there is none.
func (w *World) Records() []*pawl.Operation {
	ops := make([]*pawl.Operation, len(w.records))
	for i := range w.records {
		if w.records[i].there {
			ops[i] = w.snapshot(int8(i))
		}
	}
	return ops
}
