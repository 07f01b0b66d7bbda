package sim

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// encode appends everything that can make a difference later. Two worlds of one
// plan with equal encodings go on alike; what only the log keeps is left out.
func (w *World) encode(b []byte) []byte {
	b = num(b, int64(w.now), int64(w.skew), int64(w.floor))
	for i := range w.records {
		b = w.encodeRecord(b, &w.records[i])
		b = w.encodeAccount(b, &w.books[i])
		t := &w.audit.targets[i]
		b = num(b, int64(t.owner), int64(w.sent[i]))
		b = append(b, t.admissions, t.effects, flags(t.refused, t.resolved))
	}
	for g := range w.claims {
		c, h := &w.claims[g], &w.audit.grants[g]
		b = append(b, byte(c.by), h.admissions, h.effects, flags(c.there, w.rows[g], h.revoked, h.purged))
	}
	for _, n := range w.notices {
		b = append(b, byte(n.target), n.told, byte(n.out.Verdict()))
	}
	for _, h := range w.hosts {
		b = append(b, h.born, flags(h.down, h.paused, h.cut))
	}
	for i := range w.actors {
		b = w.encodeActor(b, &w.actors[i])
	}
	for i := range w.mail {
		b = encodeMessage(b, &w.mail[i])
	}
	return b
}

func (w *World) encodeRecord(b []byte, r *record) []byte {
	if !r.there {
		return append(b, 0)
	}
	b = append(b, byte(r.Status), flags(r.MismatchSeen, r.ContradictionSeen, r.DivergenceSeen, r.Deferred != nil), byte(len(r.Result)))
	b = num(b, int64(r.Fence), int64(r.Takeovers))
	if r.Status.Final() {
		b = num(b, stamp(r.SettledAt))
	}
	return num(b, w.ahead(r.SubmitBy), w.ahead(r.LeaseUntil), w.ahead(r.ResumeAt))
}

// ahead is a time that is still to come. What is past is past, as long as the
// clock cannot go back.
func (w *World) ahead(t time.Time) int64 {
	if w.skew == 0 && !t.After(at(w.now)) {
		return -1
	}
	return stamp(t)
}

func (w *World) encodeAccount(b []byte, a *account) []byte {
	known := a.known && w.now < a.usedAt+w.plan.Provider.Retention
	b = append(b, flags(known, a.foreign), byte(a.said.Verdict()), a.effects, a.refused)
	if known {
		b = num(b, int64(a.usedAt))
	}
	if w.plan.Provider.Lag > 0 {
		b = num(b, int64(a.madeAt))
	}
	return b
}

func (w *World) encodeActor(b []byte, a *actor) []byte {
	b = append(b, byte(a.target), byte(a.at), flags(a.insists, a.looked, a.record != nil))
	b = num(b, int64(a.id), int64(a.waits))
	if a.waiting() || a.until > w.now {
		b = num(b, int64(a.until))
	}
	switch a.at {
	case atMaySubmit, atCreate, atRenew, atFind: // the owner still measures its own time
		b = num(b, int64(a.asked), int64(a.watch), stamp(a.owner.LeaseUntil), stamp(a.owner.SubmitBy), stamp(a.owner.AsOf))
	case atRecord, atTestify, atSettle:
		b = append(b, byte(a.out.Verdict()), a.tries, a.lock.Binding[0], a.lock.Fingerprint[0])
		b = num(b, int64(a.pause))
		if a.out.Verdict().Definite() && !a.recovers { // it may come to insist
			b = num(b, int64(a.watch), stamp(a.owner.SubmitBy), stamp(a.owner.AsOf))
		}
	}
	if a.record != nil && a.recovers {
		b = append(b, byte(a.record.Takeovers), flags(a.record.Deferred != nil))
	}
	return num(b, int64(a.owner.Fence))
}

func encodeMessage(b []byte, m *message) []byte {
	b = append(b, byte(m.target), byte(m.call), byte(m.stage), byte(m.out.Verdict()), flags(m.trusted, m.free), m.lock.Binding[0])
	b = num(b, int64(m.id), int64(m.by), int64(m.pause), int64(m.since), stamp(m.statement))
	if len(m.token) > 11 {
		b = append(b, m.token[:12]...) // the fence, and a few bits of whose
	}
	if m.stage != answered {
		return b
	}
	a := &m.answer
	b = append(b, byte(a.out.Verdict()), byte(a.found), byte(a.target), flags(a.fresh, a.record != nil))
	b = append(b, a.disposition...)
	b = num(b, int64(a.owner.Fence), stamp(a.owner.LeaseUntil), stamp(a.owner.AsOf))
	if e, ok := errors.AsType[*pawl.Error](a.err); ok {
		return append(append(b, e.Reason...), byte(e.Class))
	}
	return append(b, flags(a.err != nil))
}

func num(b []byte, ns ...int64) []byte {
	for _, n := range ns {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func stamp(t time.Time) int64 {
	if t.IsZero() {
		return -1
	}
	return int64(t.Sub(epoch()))
}

func flags(bits ...bool) (b byte) {
	for i, set := range bits {
		if set {
			b |= 1 << i
		}
	}
	return b
}
