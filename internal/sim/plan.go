package sim

import (
	"time"

	"github.com/pawl-go/pawl"
)

// Plan is what a world is made of. It does not change while the world runs, and
// any number of worlds may share it.
type Plan struct {
	Timings  pawl.Timings
	Hosts    int // processes that each take requests and recover
	Plain    int // the first so many do not recover
	Grants   []pawl.Grant
	Targets  []Target
	Bounded  bool // the store bounds an admission, and its clock may step back; else it has one lock and a time floor [P1]
	Provider Provider
	Mistake  Mistake

	policy pawl.Policy
	secret pawl.TokenSecret
}

// Target is one operation that may come to be, under a grant or under a key.
type Target struct {
	Grant int // index into Plan.Grants; none for a reservation
	ID    pawl.OperationID

	admission   pawl.Admission
	reservation pawl.Reservation
	lock        pawl.Lock
	moved       pawl.Lock // the same intent for a caller whose generation moved on [M5]
	foreign     pawl.Lock // another intent for the same caller
}

// none is no grant, no target, no actor.
const none = -1

// Provider is what the other side does, and what it says it does.
type Provider struct {
	Stated    bool // the whole contract is stated [E3]; it is then kept
	Keys      Keys
	Retention time.Duration // of a key, from its first use
	Finds     bool          // effects can be looked up by reference
	Lag       time.Duration // until a look-up sees a fresh effect
	Tells     bool          // a look-up tells of refusals too
	Rewords   bool          // look-ups and notices tell of an effect in other words than the call's answer
	Forgets   bool          // refusals are not remembered: the one way in which a provider here breaks its word
}

// Keys is how a provider treats idempotency keys.
type Keys uint8

// The treatments. A stated contract has the first.
const (
	KeysAtomic Keys = iota
	KeysRacy        // looks first and writes later
	KeysIgnored
)

const kind pawl.Kind = "credit.create"

// realm is the name of the one store.
const realm = "books"

// epoch is when true time begins. The store's clock is that plus its skew.
func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// at is the time on a clock that stands d past the beginning.
func at(d time.Duration) time.Time { return epoch().Add(d) }

// clockWidth is how far apart the store's clock may be at two moments, true time
// taken off: no more than the declared step, and than a provider allows for.
const clockWidth = 5 * time.Second

// slack is how long after the end of a call its request may still arrive: what
// was written to a connection can be read after the writer is gone. The margin
// must cover it.
const slack = time.Second

// timings are short enough for everything to happen within minutes, and as tight
// as their rules allow. They are valid [T1].
func timings(p Provider) pawl.Timings {
	t := pawl.DefaultTimings()
	t.MaxGrantLifetime = 10 * time.Minute
	t.PurgeMargin = t.AdmissionBound + t.ReplicationWaitBound + t.ClockStepBound + time.Millisecond
	t.RetainOperations, t.RetainAttempts, t.RetainResults, t.KeyLifetime = time.Minute, time.Minute, time.Minute, time.Minute
	k := &t.Default
	k.SubmissionWindow = k.ExecutionLease + t.RecoveryInterval + k.RecoveryLease + 14*time.Second
	k.MaxTakeovers, k.BackoffBase, k.BackoffCap = 3, time.Second, 10*time.Second
	if p.Stated {
		k.Provider = pawl.ProviderContract{
			AtomicKeys: true, SameParameters: true, KeyRetention: p.Retention, ClockDifference: clockWidth,
		}
	}
	return t
}

// tightRetention is the shortest retention of keys that the timings of a stated
// contract allow.
func tightRetention() time.Duration {
	t := timings(Provider{})
	return t.Default.SubmissionWindow + t.Default.EffectTimeout + t.LeaseMargin + clockWidth
}

// newPlan returns a plan without grants or targets.
func newPlan(p Provider, takeovers int) *Plan {
	t := timings(p)
	t.Default.MaxTakeovers = takeovers
	return &Plan{Timings: t, Provider: p, policy: t.Policy()}
}

// kt are the timings of the one kind.
func (p *Plan) kt() pawl.KindTimings { return p.Timings.Default }

// addGrant adds a grant that is issued at the beginning and lives for a time.
func (p *Plan) addGrant(form pawl.Form, lifetime time.Duration) {
	name := string(rune('a' + len(p.Grants)))
	p.Grants = append(p.Grants, pawl.Grant{
		Form: form, Key: pawl.GrantKey{Issuer: "support", ID: "grant-" + name}, Realm: realm, Subject: "ana",
		Tenant: "acme", Intent: intent(name), IssuedAt: epoch(), ExpiresAt: at(lifetime),
	})
}

// addTarget adds an operation under a grant, or under a key where grant is none.
func (p *Plan) addTarget(grant int) {
	n := len(p.Targets)
	t := Target{Grant: grant, ID: pawl.OperationID{6: 0x70, 8: 0x80, 15: byte(n + 1)}}
	kt := p.kt()
	what := intent(string(rune('A' + n)))
	if grant == none {
		t.reservation = pawl.Reservation{
			Key: "key-" + string(rune('A'+n)), Intent: what, Caller: ana(), Lease: kt.ExecutionLease,
			SubmissionWindow: kt.SubmissionWindow,
		}
		t.ID = t.reservation.OperationID()
	} else {
		what = p.Grants[grant].Intent
		t.admission = pawl.Admission{
			Grant: p.Grants[grant], OperationID: t.ID, Intent: what, Caller: ana(), Lease: kt.ExecutionLease,
			SubmissionWindow: kt.SubmissionWindow,
		}
	}
	t.lock = pawl.LockOf(what, ana())
	t.moved = pawl.LockOf(what, later(ana()))
	t.foreign = pawl.LockOf(intent("another"), ana())
	p.Targets = append(p.Targets, t)
}

func ana() pawl.Caller { return pawl.Caller{Principal: "ana", Tenant: "acme", Generation: "1"} }

func later(c pawl.Caller) pawl.Caller {
	c.Generation = "2"
	return c
}

func intent(what string) pawl.Intent {
	return pawl.Intent{Kind: kind, Details: pawl.StoredDetails(`{"for":"` + what + `"}`)}
}

// result is what a provider answers with about its n-th effect for a target.
func result(target, n int) pawl.Outcome {
	return pawl.Succeeded("cr_" + string(rune('A'+target)) + string(rune('0'+n)))
}

// retold is the same effect in other words.
func retold(target, n int) pawl.Outcome {
	return pawl.Succeeded("{" + string(result(target, n).Result()) + "}")
}

// declined is a provider's definite refusal.
func declined() pawl.Outcome { return pawl.Failed("declined") }
