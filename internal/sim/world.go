package sim

import (
	"slices"
	"time"

	"github.com/pawl-go/pawl"
)

// World is everything there is at one moment. Create one with NewWorld. The zero
// value has no plan and cannot run.
type World struct {
	plan *Plan

	now   time.Duration // true time, which every process and the provider measure alike
	skew  time.Duration // of the store's clock; from 0 to clockWidth
	floor time.Duration // the store's clock has shown this much; only an unbounded store keeps it [P1]

	records []record  // by target
	claims  []claim   // by grant
	rows    []bool    // by grant: the row of a stored one is there
	books   []account // by target: the provider's
	notices []notice  // what the provider has to say about itself

	hosts  []host
	actors []actor   // by id
	mail   []message // by id
	sent   []uint8   // attempts made so far, by target
	first  []time.Duration

	audit auditor
	trace func(format string, args ...any) // nil: nobody listens
}

// record is an operation in the store.
type record struct {
	pawl.Operation
	there bool
}

// claim is the one claim of a grant's key: by a target or by a revocation.
type claim struct {
	there  bool
	by     int8 // target; none: a revocation
	retain time.Time
}

// account is what the provider holds under one key.
type account struct {
	known   bool // the key is remembered
	usedAt  time.Duration
	said    pawl.Outcome // the remembered reply
	effects uint8        // of the operation's own intent
	madeAt  time.Duration
	refused uint8
	foreign bool // an effect of another intent stands under the reference
}

// notice is a statement of the provider's, to be delivered late, never or twice.
type notice struct {
	target int8
	out    pawl.Outcome
	told   uint8
}

// host is a process. What it knows dies with it.
type host struct {
	down   bool
	paused bool
	cut    bool // from the store
	born   uint8
}

// NewWorld returns a world at its beginning: every host is up, every stored grant
// is issued, and nothing has been asked.
func NewWorld(p *Plan) *World {
	w := &World{
		plan: p, records: make([]record, len(p.Targets)), claims: make([]claim, len(p.Grants)),
		rows: make([]bool, len(p.Grants)), books: make([]account, len(p.Targets)), hosts: make([]host, p.Hosts),
		sent: make([]uint8, len(p.Targets)), first: make([]time.Duration, len(p.Targets)), audit: newAuditor(p),
	}
	for g, grant := range p.Grants {
		w.rows[g] = grant.Form == pawl.FormStored
	}
	for h := range w.hosts {
		w.start(h)
	}
	return w
}

// Clone returns a world that goes its own way, though not at the same time: the
// two share memory for what lasts one move.
func (w *World) Clone() *World {
	c := &World{}
	c.become(w)
	return c
}

// become makes a world what another is, in the memory it has.
func (w *World) become(o *World) {
	old := *w
	*w = *o
	w.records, w.claims = append(old.records[:0], o.records...), append(old.claims[:0], o.claims...)
	w.rows, w.books = append(old.rows[:0], o.rows...), append(old.books[:0], o.books...)
	w.notices, w.hosts = append(old.notices[:0], o.notices...), append(old.hosts[:0], o.hosts...)
	w.actors, w.mail = append(old.actors[:0], o.actors...), append(old.mail[:0], o.mail...)
	w.sent, w.first = append(old.sent[:0], o.sent...), append(old.first[:0], o.first...)
	w.audit.targets = append(old.audit.targets[:0], o.audit.targets...)
	w.audit.grants = append(old.audit.grants[:0], o.audit.grants...)
}

// Broken returns the first rule that was broken, or nil.
func (w *World) Broken() *Breach { return w.audit.breach }

// clock is the store's. A store that does not bound an admission never shows a
// time that is earlier than one it has shown.
func (w *World) clock() time.Time {
	t := w.now + w.skew
	if w.plan.Bounded {
		return at(t)
	}
	w.floor = max(w.floor, t)
	return at(w.floor)
}

func (w *World) tell(format string, args ...any) {
	if w.trace != nil {
		w.trace("+%-14v "+format, append([]any{w.now}, args...)...)
	}
}

// says is tell about an actor.
func (w *World) says(id actorID, format string, args ...any) {
	if w.trace != nil {
		w.tell("%s "+format, append([]any{w.name(id)}, args...)...)
	}
}

func (w *World) wrong(m Mistake) bool { return w.plan.Mistake == m }

// start brings a host up with its recovery.
func (w *World) start(h int) {
	x := &w.hosts[h]
	x.down, x.paused, x.cut = false, false, false
	x.born++
	if h < w.plan.Plain {
		return
	}
	w.add(actor{id: recoveryID(h, int(x.born)), host: int8(h), target: none, at: atTakeOver, recovers: true})
}

// kill ends a host: its processes are gone, and what they sent is on its way.
func (w *World) kill(h int) {
	w.hosts[h].down = true
	w.actors = slices.DeleteFunc(w.actors, func(a actor) bool { return int(a.host) == h })
}

func (w *World) add(a actor) {
	i, _ := slices.BinarySearchFunc(w.actors, a.id, func(x actor, id actorID) int { return int(x.id) - int(id) })
	w.actors = slices.Insert(w.actors, i, a)
}

func (w *World) actor(id actorID) *actor {
	for i := range w.actors {
		if w.actors[i].id == id {
			return &w.actors[i]
		}
	}
	return nil
}

func (w *World) message(id messageID) *message {
	for i := range w.mail {
		if w.mail[i].id == id {
			return &w.mail[i]
		}
	}
	return nil
}

func (w *World) discard(id messageID) {
	w.mail = slices.DeleteFunc(w.mail, func(m message) bool { return m.id == id })
}

// actorID is the same in every order of events: attempts are counted by target,
// recoveries by host and life.
type actorID uint16

func attemptID(target, n int) actorID { return actorID(target*100 + n) }

func recoveryID(host, life int) actorID { return actorID(firstRecovery + host*1000 + life) }

const firstRecovery = 10_000

// messageID is the sender's id and the first number that none of its messages
// under way has.
type messageID uint32

const mostMail = 16 // of one sender under way; then the oldest is lost

// post puts a message on its way.
func (w *World) post(m message) messageID {
	taken := 0
	for taken < mostMail && w.message(messageID(uint32(m.from)*mostMail+uint32(taken))) != nil {
		taken++
	}
	if taken == mostMail {
		taken = 0
		w.discard(messageID(uint32(m.from) * mostMail))
	}
	m.id = messageID(uint32(m.from)*mostMail + uint32(taken))
	i, _ := slices.BinarySearchFunc(w.mail, m.id, func(x message, id messageID) int { return int(x.id) - int(id) })
	w.mail = slices.Insert(w.mail, i, m)
	return m.id
}
