package sim

import (
	"hash/maphash"
	"slices"
	"time"
)

// Scope is a small world and how often each thing may happen in it. Within it
// Explore makes everything happen in every order.
type Scope struct {
	Plan     *Plan
	Attempts []int           // targets; the attempt at the n-th is made by host n
	Instants []time.Duration // true time stands still at these, one after another
	Limits   Limits
}

// Limits say how often things may happen that need not.
type Limits struct {
	Purges, Revocations, Losses, Refusals, Crashes, Notices, Lates, Clocks uint8
}

// Report is what an exploration found.
type Report struct {
	States int     // different ones
	Ends   int     // in which nothing more could happen
	Breach *Breach // the first one found; nil: none in any order
	Moves  []Move  // that lead to it
	Census *Census
}

// Explore makes every order of events of a scope and stops at the first breach. A
// call of the store is one step of its caller: what can pass between a question
// and its answer is only seen by calls that take long, which an admission and a
// call of the provider are here.
func Explore(s Scope) Report {
	x := &explorer{
		scope: s, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{},
		report: Report{Census: NewCensus()},
	}
	x.visit(spot{world: NewWorld(s.Plan), limits: s.Limits})
	x.report.States = len(x.seen)
	return x.report
}

type explorer struct {
	scope  Scope
	seed   maphash.Seed
	seen   map[uint64]struct{}
	buf    []byte
	path   []Move
	rooms  []*World // by depth: no two spots of one depth are alive at once
	report Report
}

func (x *explorer) room(depth int) *World {
	for len(x.rooms) <= depth {
		x.rooms = append(x.rooms, &World{})
	}
	return x.rooms[depth]
}

// spot is a world and what may still happen in it.
type spot struct {
	world   *World
	limits  Limits
	asked   uint8 // attempts made
	instant uint8
	depth   int
}

// visit goes everywhere from a spot, unless it has been there.
func (x *explorer) visit(s spot) {
	if x.report.Breach != nil || x.known(s) {
		return
	}
	before := len(x.path)
	went := false
	for _, b := range x.branches(s) {
		next := s
		next.limits, next.asked, next.instant = b.limits, b.asked, b.instant
		next.world, next.depth = x.room(s.depth), s.depth+1
		next.world.become(s.world)
		next.world.audit.census = x.report.Census
		for _, m := range b.moves {
			next.world.Do(m)
			x.path = append(x.path, m)
		}
		went = true
		if breach := next.world.Broken(); breach != nil {
			x.report.Breach, x.report.Moves = breach, slices.Clone(x.path)
			return
		}
		x.visit(next)
		x.path = x.path[:before]
		if x.report.Breach != nil {
			return
		}
	}
	if went {
		return
	}
	x.report.Ends++
	end := s.world.Clone()
	end.Finish()
	if breach := end.Broken(); breach != nil {
		x.report.Breach, x.report.Moves = breach, slices.Clone(x.path)
	}
}

func (x *explorer) known(s spot) bool {
	l := s.limits
	x.buf = append(x.buf[:0], s.asked, s.instant, l.Purges, l.Revocations, l.Losses, l.Refusals, l.Crashes, l.Notices, l.Lates, l.Clocks)
	x.buf = s.world.encode(x.buf)
	sum := maphash.Bytes(x.seed, x.buf)
	if _, ok := x.seen[sum]; ok {
		return true
	}
	x.seen[sum] = struct{}{}
	return false
}

// branch is one thing that can happen at a spot: moves that belong together, and
// what may happen afterwards.
type branch struct {
	moves []Move
	spot
}

// branches are all things that can happen at a spot.
func (x *explorer) branches(s spot) (all []branch) {
	w := s.world
	plus := func(change func(*spot), moves ...Move) {
		b := branch{moves: moves, spot: s}
		if change != nil {
			change(&b.spot)
		}
		all = append(all, b)
	}
	if int(s.asked) < len(x.scope.Attempts) {
		plus(func(n *spot) { n.asked++ }, Move{MoveAttempt, x.scope.Attempts[s.asked], int64(s.asked)})
	}
	for i := range w.actors {
		x.acts(s, &w.actors[i], plus)
	}
	for i := range w.mail {
		x.arrives(s, &w.mail[i], plus)
	}
	if int(s.instant) < len(x.scope.Instants) {
		if d := x.scope.Instants[s.instant] - w.now; d > 0 {
			plus(func(n *spot) { n.instant++ }, Move{Kind: MoveTick, Arg: int64(d)})
		}
	}
	x.befalls(s, plus)
	return all
}

type plus = func(change func(*spot), moves ...Move)

func lose(n *spot) { n.limits.Losses-- }

// acts lets an actor take its next step, with the store's answer where that is
// one statement.
func (x *explorer) acts(s spot, a *actor, plus plus) {
	w := s.world
	step := Move{MoveStep, int(a.id), 0}
	if w.can(Move{MoveTimeout, int(a.id), 0}) {
		plus(nil, Move{MoveTimeout, int(a.id), 0})
	}
	if !w.can(step) || a.at == atTakeOver && !w.anyStalled() {
		return
	}
	id := w.nextMessage(a.id)
	switch {
	case a.at == atCreate || a.at == atFind:
		plus(nil, step)
	case a.at == atAdmit && w.plan.Bounded:
		plus(nil, step, Move{MoveBegin, id, 0})
	default:
		plus(nil, step, Move{MoveServe, id, 0}, Move{MoveAnswer, id, 0})
		if s.limits.Losses > 0 {
			plus(lose, step, Move{MoveServe, id, 0}, Move{MoveLose, id, 1})
			plus(lose, step, Move{MoveLose, id, 1})
		}
	}
}

// nextMessage is the name that the next message of an actor will have.
func (w *World) nextMessage(id actorID) int {
	first := int(id) * mostMail
	for n := range mostMail {
		if w.message(messageID(first+n)) == nil {
			return first + n
		}
	}
	return first
}

// arrives lets a message that takes long do what it is for.
func (x *explorer) arrives(s spot, m *message, plus plus) {
	id := int(m.id)
	if s.world.can(Move{MoveServe, id, 0}) {
		answer := Move{MoveAnswer, id, 0}
		plus(nil, Move{MoveServe, id, 0}, answer)
		if s.limits.Losses > 0 {
			plus(lose, Move{MoveServe, id, 0}, Move{MoveLose, id, 1})
			plus(lose, Move{MoveLose, id, 1})
		}
		if s.limits.Refusals > 0 && m.call == callCreate {
			plus(func(n *spot) { n.limits.Refusals-- }, Move{MoveServe, id, 1}, answer)
		}
		if s.limits.Losses > 0 && m.call == callFind {
			plus(lose, Move{MoveServe, id, 1}, answer)
		}
	}
}

// befalls is what happens to a world from outside.
func (x *explorer) befalls(s spot, plus plus) {
	l, w := s.limits, s.world
	if l.Purges > 0 && w.anyPurgeable() {
		plus(func(n *spot) { n.limits.Purges-- }, Move{Kind: MovePurge})
	}
	if l.Revocations > 0 && w.revocable(0) {
		plus(func(n *spot) { n.limits.Revocations-- }, Move{Kind: MoveRevoke})
	}
	if l.Clocks > 0 {
		plus(func(n *spot) { n.limits.Clocks-- }, Move{MoveClock, 0, int64(clockWidth - w.skew)})
	}
	if l.Crashes > 0 {
		for h := range int(s.asked) {
			if w.can(Move{MoveCrash, h, 0}) {
				plus(func(n *spot) { n.limits.Crashes-- }, Move{MoveCrash, h, 0})
			}
		}
	}
	if l.Notices > 0 {
		for i := range w.notices {
			plus(func(n *spot) { n.limits.Notices-- }, Move{MoveNotice, i, 0})
		}
	}
	if l.Lates > 0 {
		for i := range w.records {
			for arg := range int64(2) {
				if m := (Move{MoveLate, i, arg}); w.can(m) {
					plus(func(n *spot) { n.limits.Lates-- }, m)
				}
			}
		}
	}
}
