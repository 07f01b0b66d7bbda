package sim

import (
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

// actor is one process of a Gate: a request being executed, or a worker of
// recovery. It is at one place of its program, and either waits for the answer to
// a message or is free to go on.
type actor struct {
	id       actorID
	host     int8
	target   int8
	at       place
	recovers bool
	once     bool // a recovery that ends when nothing is stalled

	waits messageID
	until time.Duration // waiting: no longer than this; free: not before this
	asked time.Duration // when the present question was asked

	owner   pawl.Owner
	token   pawl.OwnerToken // of the write that made it owner
	watch   time.Duration   // when that was asked for, or the last renewal [O5]
	record  *pawl.Operation // as the answer told it
	out     pawl.Outcome
	pause   time.Duration
	lock    pawl.Lock // of what a look-up found
	tries   uint8
	insists bool
	looked  bool // the renewal before the look-up is past
}

// place is where an actor stands: the next thing that it will do, or what it
// waits for.
type place uint8

const (
	atDone place = iota
	atAdmit
	atMaySubmit
	atCreate
	atRecord
	atTestify // the evidence door, after a refusal [M3]
	atTakeOver
	atRenew
	atFind
	atSettle // the evidence door, with what was found
)

func (p place) String() string {
	return [...]string{
		"done", "admit", "may-submit", "create", "record", "testify", "take over", "renew", "find", "settle",
	}[p]
}

// waiting reports whether the actor waits for an answer.
func (a *actor) waiting() bool { return a.waits != 0 }

// recordTries is how often an outcome is taken to the store before it is called
// pending, as in package pawl.
const recordTries = 3

// insistCap is the longest pause of an owner that insists, as in package pawl.
const insistCap = 30 * time.Second

// step lets a free actor do its next thing: what needs no answer, then one
// question.
func (w *World) step(a *actor) {
	t := w.plan.Timings
	switch a.at {
	case atAdmit:
		if !w.keyLives(int(a.target)) {
			w.end(a, "the client has given up")
			return
		}
		a.watch = w.now // before the question [O5]
		w.ask(a, callAdmit, t.StoreCallTimeout+t.ReplicationWaitBound)
	case atMaySubmit:
		w.ask(a, callMaySubmit, t.StoreCallTimeout)
	case atCreate:
		w.submit(a)
	case atRecord:
		if a.insists && w.submitLeft(a) <= 0 {
			w.end(a, "no attempt can be under way any more")
			return
		}
		w.ask(a, callRecord, t.StoreCallTimeout)
	case atTestify, atSettle:
		w.ask(a, callSettle, t.StoreCallTimeout)
	case atTakeOver:
		a.watch = w.now
		w.ask(a, callTakeOver, t.StoreCallTimeout+t.ReplicationWaitBound)
	case atRenew:
		if left := min(t.StoreCallTimeout, w.leaseLeft(a)-t.LeaseMargin); left > 0 {
			w.ask(a, callRenew, left)
		} else {
			w.idle(a, "no lease left to renew")
		}
	case atFind:
		if left := min(w.plan.kt().FindTimeout, w.leaseLeft(a)-t.LeaseMargin); left > 0 {
			w.ask(a, callFind, left)
		} else {
			w.foundOut(a, foundSilence, pawl.Outcome{})
		}
	}
}

// ask sends a question and waits for its answer.
func (w *World) ask(a *actor, c call, patience time.Duration) {
	a.asked, a.until = w.now, w.now+patience
	m := message{from: a.id, host: a.host, target: a.target, call: c, token: a.token}
	switch c {
	case callRecord:
		m.out, m.pause = a.out, a.pause
	case callSettle:
		m.out, m.lock = a.out, a.lock
		m.trusted = a.at == atSettle
	case callAdmit, callCreate, callFind:
		m.by = w.arrivesBy(patience)
	}
	a.waits = w.post(m)
	w.says(a.id, "asks: %v", c)
}

// hear gives an actor the answer to its question, or that there is none.
func (w *World) hear(a *actor, got answer) {
	a.waits, a.until = 0, w.now
	if got.err != nil {
		w.says(a.id, "hears: %s", got.err.Error())
	}
	switch a.at {
	case atAdmit:
		w.admittedOr(a, got)
	case atMaySubmit:
		w.permittedOr(a, got)
	case atCreate:
		w.submitted(a, got)
	case atRecord:
		w.recordedOr(a, got)
	case atTestify:
		w.testified(a, got)
	case atTakeOver:
		w.tookOverOr(a, got)
	case atRenew:
		w.renewedOr(a, got)
	case atFind:
		if got.err != nil {
			got = answer{}
		}
		w.foundOut(a, got.found, got.out)
	case atSettle:
		w.settledOr(a, got)
	}
}

// admittedOr is what Gate.execute does with the answer to its admission.
func (w *World) admittedOr(a *actor, got answer) {
	switch {
	case got.err != nil && w.wrong(RunUnconfirmed) && errors.Is(got.err, pawl.ErrNotConfirmed):
		a.owner = pawl.Owner{Fence: pawl.FirstFence, AsOf: at(w.now), LeaseUntil: at(w.now + time.Minute), SubmitBy: at(w.now + time.Minute)}
		a.at = atCreate
	case got.err != nil:
		w.end(a, "nothing ran")
	case !got.fresh && w.wrong(RetryExecutes):
		a.owner, a.token, a.record = got.record.OwnerOf(w.plan.secret, got.record.CreatedAt), got.owner.Token, got.record
		a.lock, a.at = got.record.Lock, atCreate
	case !got.fresh:
		w.end(a, "joined: reports and performs nothing") // [A8]
	default:
		a.record, a.owner, a.token, a.lock = got.record, got.owner, got.owner.Token, got.record.Lock
		a.at = atMaySubmit
	}
}

// permittedOr is Gate.confirm, and what its callers make of it [O5].
func (w *World) permittedOr(a *actor, got answer) {
	err := got.err
	if err == nil && !w.wrong(SubmitWithoutOwnClock) {
		switch {
		case got.owner.Fence != a.owner.Fence:
			err = &pawl.Error{Class: pawl.ErrFenced, Reason: pawl.ReasonSuperseded}
		case w.submitLeft(a) <= 0 && !w.wrong(SubmitAfterDeadline):
			err = &pawl.Error{Class: pawl.ErrFenced, Reason: pawl.ReasonDeadlineOver}
		case w.leaseLeft(a) <= w.plan.Timings.LeaseMargin:
			err = &pawl.Error{Class: pawl.ErrFenced, Reason: pawl.ReasonLeaseOver}
		}
	}
	switch {
	case err == nil:
		a.at = atCreate
	case a.recovers && pawl.ReasonOf(err) == pawl.ReasonDeadlineOver:
		w.handOver(a)
	case a.recovers:
		w.idle(a, "may not submit")
	default:
		w.end(a, "may not submit; left to recovery")
	}
}

// submit is Gate.submit: one call, which ends before the lease does, and no later
// than one that was sent at the submission deadline.
func (w *World) submit(a *actor) {
	step := w.plan.kt().EffectTimeout
	left := min(step, w.leaseLeft(a)-w.plan.Timings.LeaseMargin)
	if !w.wrong(CallOutlastsDeadline) && !w.wrong(SubmitAfterDeadline) {
		left = min(left, w.submitLeft(a)+step)
	}
	if w.wrong(SubmitWithoutOwnClock) {
		left = step
	}
	if left <= 0 {
		w.submitted(a, answer{err: errProvider("no time left")})
		return
	}
	w.ask(a, callCreate, left)
}

// submitted is what becomes of the answer to a create call [E1].
func (w *World) submitted(a *actor, got answer) {
	out := got.out
	if got.err != nil {
		out = pawl.Unknown("no definite answer")
		if w.wrong(SilenceIsSuccess) {
			out = result(int(a.target), 1)
		}
	}
	switch {
	case !a.recovers, out.Verdict().Definite():
		w.conclude(a, out, 0)
	default:
		w.pace(a, w.leaseLeft(a))
	}
}

// conclude takes an outcome to the record.
func (w *World) conclude(a *actor, out pawl.Outcome, pause time.Duration) {
	a.out, a.pause, a.tries, a.insists, a.at = out, pause, 0, false, atRecord
}

func (w *World) recordedOr(a *actor, got answer) {
	switch {
	case got.err == nil:
		w.concluded(a, "recorded")
	case again(got.err):
		w.recordAgain(a)
	case a.out.Verdict().Definite() && !errors.Is(got.err, pawl.ErrInvalid) && !errors.Is(got.err, pawl.ErrNotFound) &&
		!w.wrong(DropRefusedSuccess):
		a.lock, a.at = a.record.Lock, atTestify
	default:
		w.refused(a, got.err)
	}
}

func (w *World) testified(a *actor, got answer) {
	switch {
	case got.err == nil:
		w.concluded(a, "settled: "+string(got.disposition))
	case again(got.err):
		a.at = atRecord
		w.recordAgain(a)
	default:
		w.refused(a, got.err)
	}
}

// recordAgain waits before the next try, and after the last lets an attempt with
// a definite outcome insist.
func (w *World) recordAgain(a *actor) {
	a.tries++
	t := w.plan.Timings.StoreCallTimeout
	switch {
	case a.insists:
		a.until = w.now + min(t<<(a.tries-1), insistCap)
		a.tries = min(a.tries, 6)
	case a.tries < recordTries:
		a.until = w.now + t/20<<(a.tries-1)
	case !a.recovers && a.out.Verdict().Definite():
		a.insists, a.tries, a.until = true, 1, w.now+t
		if w.submitLeft(a) <= 0 {
			w.end(a, "no attempt can be under way any more")
		}
	case a.recovers:
		w.idle(a, "the store is away")
	default:
		w.end(a, "the store is away")
	}
}

// concluded is the end of what an owner had to say.
func (w *World) concluded(a *actor, how string) {
	w.note(happening{what: heard, target: a.target, who: a.id, verdict: a.out.Verdict()})
	w.rest(a, how)
}

// refused is the same after a definite no.
func (w *World) refused(a *actor, err error) {
	if !errors.Is(err, pawl.ErrNotFound) {
		w.note(happening{what: heard, target: a.target, who: a.id, verdict: a.out.Verdict()})
	}
	w.rest(a, "refused")
}

func (w *World) rest(a *actor, how string) {
	if a.recovers {
		w.idle(a, how)
	} else {
		w.end(a, how)
	}
}

func (w *World) end(a *actor, why string) {
	w.says(a.id, "ends: %s", why)
	a.at = atDone
}

// leaseLeft and submitLeft are an owner's own measure [O5].
func (w *World) leaseLeft(a *actor) time.Duration { return w.left(a, a.owner.LeaseUntil) }

func (w *World) submitLeft(a *actor) time.Duration { return w.left(a, a.owner.SubmitBy) }

func (w *World) left(a *actor, until time.Time) time.Duration {
	if a.owner.AsOf.IsZero() || until.IsZero() {
		return 0
	}
	return until.Sub(a.owner.AsOf) - (w.now - a.watch)
}

// again reports whether a call may be repeated as it is.
func again(err error) bool { return errors.Is(err, pawl.ErrUnavailable) }
