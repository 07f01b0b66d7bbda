package sim

import (
	"time"

	"github.com/pawl-go/pawl"
)

// The program of a recovery worker: package pawl's rescue, a place at a time [E5].

// idle ends work on an operation and lets the worker look again later.
func (w *World) idle(a *actor, why string) {
	w.says(a.id, "is free: %s", why)
	*a = actor{id: a.id, host: a.host, target: none, at: atTakeOver, recovers: true, once: a.once, until: w.now}
}

// tookOverOr begins with what the takeover brought.
func (w *World) tookOverOr(a *actor, got answer) {
	if got.err != nil || got.target == none {
		if a.once {
			w.end(a, "nothing is stalled")
		}
		a.until = w.now + w.plan.Timings.RecoveryInterval
		return
	}
	a.target, a.record, a.owner, a.token, a.lock = got.target, got.record, got.owner, got.owner.Token, got.record.Lock
	if w.plan.Provider.Finds {
		a.at = atRenew
		return
	}
	if d := a.record.Deferred; d != nil {
		w.conclude(a, pawl.Failed(d.Reason), 0)
		return
	}
	w.handOver(a)
}

// renewedOr goes on to the step that the lease was renewed for [E6].
func (w *World) renewedOr(a *actor, got answer) {
	switch {
	case got.err != nil || got.owner.Fence != a.owner.Fence:
		w.idle(a, "not renewed")
	case a.looked:
		a.owner, a.watch, a.at = got.owner, a.asked, atMaySubmit
	default:
		a.owner, a.watch, a.at, a.looked = got.owner, a.asked, atFind, true
	}
}

// foundOut is what follows a look-up [E2, E5].
func (w *World) foundOut(a *actor, f found, out pawl.Outcome) {
	w.says(a.id, "finds: %v", f)
	switch f {
	case foundEffect, foundRefusal:
		a.out, a.tries, a.at = out, 0, atSettle
	case foundForeign:
		a.out, a.lock, a.tries, a.at = out, w.plan.Targets[a.target].foreign, 0, atSettle
	case foundNothing:
		switch d := a.record.Deferred; {
		case d != nil:
			w.conclude(a, pawl.Failed(d.Reason), 0)
		case w.wrong(NotFoundIsFailed):
			w.conclude(a, pawl.Failed("not found"), 0)
		default:
			w.createAgain(a)
		}
	default:
		w.pace(a, 0)
	}
}

// createAgain goes on only where everything allows another call [E5].
func (w *World) createAgain(a *actor) {
	kt := w.plan.kt()
	switch {
	case !kt.Provider.Stated() && !w.wrong(CreateWithoutContract), a.record.Takeovers > kt.MaxTakeovers:
		w.handOver(a)
	default:
		w.note(happening{what: createsAgain, target: a.target})
		a.at = atRenew
	}
}

// settledOr is what a look-up's evidence came to.
func (w *World) settledOr(a *actor, got answer) {
	switch {
	case again(got.err):
		a.tries++
		a.until = w.now + w.plan.Timings.StoreCallTimeout/20<<(a.tries-1)
		if a.tries == recordTries {
			w.idle(a, "the store is away")
		}
	case got.err != nil:
		w.idle(a, "refused")
	case got.disposition == pawl.Mismatched && a.out.Verdict() != pawl.VerdictSucceeded:
		w.handOver(a)
	case got.disposition == pawl.Mismatched:
		w.idle(a, "another intent's effect stands there")
	default:
		w.concluded(a, "settled: "+string(got.disposition))
	}
}

// pace leaves an operation alone for a while, or to a person [E6]. inFlight is how
// long the lease still guards a call that may be under way.
func (w *World) pace(a *actor, inFlight time.Duration) {
	kt := w.plan.kt()
	if a.record.Takeovers >= kt.MaxTakeovers {
		w.handOver(a)
		return
	}
	pause := kt.BackoffBase
	for range a.record.Takeovers - 1 {
		pause *= 2
	}
	pause = min(pause, kt.BackoffCap)
	if pause <= inFlight {
		pause = 0
	}
	w.conclude(a, pawl.Unknown("nothing learnt"), pause)
}

func (w *World) handOver(a *actor) { w.conclude(a, pawl.NeedsReconciliation("a person decides"), 0) }

// lostAnswer is what an actor hears when nothing comes: the class of its call.
func (a *actor) lostAnswer() answer {
	switch a.at {
	case atAdmit:
		return answer{err: notConfirmed()}
	case atCreate, atFind:
		return answer{err: errProvider("no answer")}
	}
	return answer{err: unavailable()}
}
