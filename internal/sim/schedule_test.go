package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
)

// schedule says when what is asked of whom, and what becomes of every single
// call. It leaves nothing to chance, so that the simulator and real Gates can
// play it and must end with the same records.
type schedule struct {
	plan   *Plan
	seed   uint64
	events []planned
}

// planned is one thing that is done from outside.
type planned struct {
	at   time.Duration
	kind MoveKind // MoveAttempt, MoveStart for a recovery pass, MoveCrash, MoveRevoke, MovePurge, MoveNotice
	who  int      // target, grant or notice
	host int
}

// fate is what becomes of one call.
type fate struct {
	there, back time.Duration
	how         how
}

type how uint8

const (
	arrives how = iota
	requestLost
	requestReset
	answerLost
	answerReset
	contrary // the provider refuses, or is silent
)

// calmHost is the last host: nothing goes wrong there.
const calmHost = 2

// drawSchedule draws a schedule of two minutes. Times are such that no two things
// happen at once.
func drawSchedule(seed uint64) schedule {
	r := newRand(seed)
	p := newPlan(drawProvider(r, anything, NoMistake), pick(r, 1, 2, 3))
	p.Provider.Forgets = false
	if p.Provider.Keys == KeysRacy {
		p.Provider.Keys = KeysIgnored
	}
	p.Hosts, p.Plain = calmHost+1, calmHost+1
	p.addGrant(pick(r, pawl.FormToken, pawl.FormStored), time.Duration(pick(r, 20, 60))*time.Second)
	p.addTarget(0)
	p.addTarget(0)
	p.addTarget(none)
	s := schedule{plan: p, seed: seed}
	odd := func(most time.Duration) time.Duration {
		return time.Duration(r.Int64N(int64(most/time.Microsecond)))*time.Microsecond + 1
	}
	add := func(at time.Duration, k MoveKind, who, host int) {
		s.events = append(s.events, planned{at.Truncate(time.Microsecond), k, who, host})
	}
	for range 1 + r.IntN(mostAttempts) {
		add(odd(20*time.Second), MoveAttempt, pick(r, 0, 0, 1, 2), r.IntN(2))
	}
	for range 2 + r.IntN(4) {
		add(30*time.Second+odd(80*time.Second), MoveStart, 0, 1+r.IntN(2))
	}
	for range r.IntN(3) {
		add(odd(120*time.Second), MoveNotice, r.IntN(2), 0)
	}
	if one(r, 3) {
		add(odd(40*time.Second), MoveCrash, 0, 0)
	}
	if one(r, 4) {
		add(odd(15*time.Second), MoveRevoke, 0, calmHost)
	}
	for range r.IntN(3) {
		add(odd(150*time.Second), MovePurge, 0, calmHost)
	}
	for n := range 12 {
		add(150*time.Second+time.Duration(n)*47*time.Second, MoveStart, 0, calmHost)
	}
	slices.SortFunc(s.events, func(a, b planned) int { return int(a.at - b.at) })
	return s
}

// fateOf is what becomes of the n-th call of a sort that a host makes.
func (s schedule) fateOf(host int, c call, n int) fate {
	r := rand.New(rand.NewPCG(s.seed, uint64(host)<<32|uint64(c)<<16|uint64(n)))
	most := int64(pick(r, 5, 300, 300, 1500, 2500)) * 1000
	if c.toProvider() || c == callAdmit || c == callTakeOver {
		most *= 4
	}
	f := fate{
		there: time.Duration(1+r.Int64N(most)) * time.Microsecond,
		back:  time.Duration(1+r.Int64N(most)) * time.Microsecond,
	}
	if host == calmHost {
		return f
	}
	if one(r, 4) {
		f.how = how(1 + r.IntN(int(contrary)))
	}
	if f.how == contrary && !c.toProvider() {
		f.how = arrives
	}
	return f
}

// player plays a schedule in a world.
type player struct {
	schedule
	w     *World
	calls map[sort]int
	fates map[messageID]fate
	due   map[messageID]time.Duration
	lives int
}

// sort is whose calls are counted together.
type sort struct {
	host int
	call call
}

func (s schedule) simulate(trace func(string, ...any)) *player {
	p := &player{schedule: s, w: NewWorld(s.plan), calls: map[sort]int{}, fates: map[messageID]fate{}, due: map[messageID]time.Duration{}}
	p.w.trace = trace
	for p.w.Broken() == nil && p.next() {
		p.post()
	}
	return p
}

// post gives new messages their fates.
func (p *player) post() {
	live := map[messageID]bool{}
	for i := range p.w.mail {
		m := &p.w.mail[i]
		live[m.id] = true
		if _, known := p.fates[m.id]; known {
			continue
		}
		k := sort{int(m.host), m.call}
		p.calls[k]++
		f := p.fateOf(k.host, k.call, p.calls[k])
		p.fates[m.id], p.due[m.id] = f, p.w.now+f.there
	}
	for id := range p.fates {
		if !live[id] {
			delete(p.fates, id)
			delete(p.due, id)
		}
	}
}

// next makes the earliest thing happen, and reports whether there was any.
func (p *player) next() bool {
	best, at := func() {}, time.Duration(-1)
	earlier := func(t time.Duration, do func()) {
		if t = max(t, p.w.now); at < 0 || t < at {
			best, at = do, t
		}
	}
	for i := range p.w.actors {
		a := &p.w.actors[i]
		k := MoveStep
		if a.waiting() {
			k = MoveTimeout
		}
		earlier(a.until, func() { p.w.Do(Move{k, int(a.id), 0}) })
	}
	for id, t := range p.due {
		earlier(t, func() { p.arrive(id) })
	}
	if len(p.events) > 0 {
		earlier(p.events[0].at, func() {
			p.happen(p.events[0])
			p.events = p.events[1:]
		})
	}
	if at < 0 {
		return false
	}
	if at > p.w.now {
		p.w.Do(Move{Kind: MoveTick, Arg: int64(at - p.w.now)})
		p.post()
		return true
	}
	best()
	return true
}

// arrive lets a message come to where it is going.
func (p *player) arrive(id messageID) {
	m, f := p.w.message(id), p.fates[id]
	arg := int64(0)
	if f.how == contrary {
		arg = 1
	}
	switch {
	case m.stage == onTheWay && f.how == requestLost, m.stage == answered && f.how == answerLost:
		p.w.Do(Move{MoveLose, int(id), 0})
	case m.stage == onTheWay && f.how == requestReset, m.stage == answered && f.how == answerReset:
		p.w.Do(Move{MoveLose, int(id), 1})
	case m.stage == onTheWay && p.w.Do(Move{MoveServe, int(id), arg}):
		p.due[id] = p.w.now + f.back
	case m.stage == answered:
		p.w.Do(Move{MoveAnswer, int(id), 0})
	default:
		p.w.Do(Move{MoveLose, int(id), 0}) // too late
	}
}

func (p *player) happen(e planned) {
	switch e.kind {
	case MoveAttempt:
		p.w.Do(Move{MoveAttempt, e.who, int64(e.host)})
	case MoveStart:
		if !p.w.hosts[e.host].down {
			p.lives++
			p.w.add(actor{
				id: recoveryID(e.host, p.lives), host: int8(e.host), target: none, at: atTakeOver, recovers: true, once: true,
				until: p.w.now,
			})
		}
	case MoveCrash:
		p.w.Do(Move{MoveCrash, e.host, 0})
	default:
		p.w.Do(Move{e.kind, e.who, 0})
	}
}
