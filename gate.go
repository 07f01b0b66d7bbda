package pawl

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"
)

// Gate is the execution boundary: the component that admits, performs and
// records, in an order that cannot be got wrong from outside. Create one with
// New; it may be used by many goroutines at once.
//
// A program calls [Gate.Execute] for each request and runs [Gate.Run] beside it.
// The other calls are for queue workers, services and people.
type Gate struct {
	store     Store
	book      GrantBook // nil where the store has none
	verifier  Verifier  // nil: no token is trusted
	effects   map[Kind]Effect
	matchers  map[Kind]Matcher
	timings   Timings
	sealed    IDSealer
	needsGen  bool
	name      string
	workers   int
	purgeWait time.Duration
	grace     time.Duration
	jitter    func() float64
	observer  Observer
	logger    *slog.Logger

	crew crew // work in flight, which Close waits for
}

// Config is what a gate may be told. A nil *Config is all defaults: a gate
// without effects, which admits for others to execute.
type Config struct {
	// Effects are what this process can perform and recover, one for each kind.
	Effects []Effect
	// Timings default to DefaultTimings. They hold each kind's provider contract,
	// and must agree with the policy that stands in the store [A11].
	Timings *Timings
	// Matchers replace exact equality of intents, by kind. They need a store that is
	// a GrantBook, for the granted intent of a stored grant is read there.
	Matchers map[Kind]Matcher
	// SealedIDs, where not nil, makes operation ids the issuer's affair: a request
	// by grant needs an id the issuer has sealed for it, and one that was made up is
	// refused before admission.
	SealedIDs IDSealer
	// RequireGeneration makes an empty generation of a caller malformed.
	RequireGeneration bool

	// Name says who takes over, in logs of operations; at most MaxID bytes. Empty:
	// "gate".
	Name string
	// Workers is how many stalled operations are recovered at once; 0 is 8.
	Workers int
	// PurgeInterval is the pause between two purges; 0 is a minute.
	PurgeInterval time.Duration
	// Grace is how long a stop lets calls in flight finish [E7]. 0 is as long as the
	// longest of them may take.
	Grace time.Duration
	// Jitter returns numbers in [0, 1) that keep recoveries of several processes
	// from marching in step [E6]. Nil is random.
	Jitter func() float64

	Observer Observer     // nil: nobody is told
	Logger   *slog.Logger // nil: nothing is logged
}

// IDSealer opens operation ids that an issuer has sealed: authenticated for one
// grant, so that nobody else can name an id under it. An error means that the
// id is not the issuer's for this grant.
type IDSealer interface {
	Open(sealed string, key GrantKey) (OperationID, error)
}

// New returns a gate on a store that keeps its promises. verifier may be nil:
// then no token is trusted, and stored grants and idempotency keys remain. cfg
// may be nil.
//
// New reads the deployment's facts. Errors: ErrMisconfigured naming everything
// wrong at once: unsafe facts, every timing rule that is broken with both values
// [T1], every value that disagrees with the store's [A11]; ErrUnavailable for a
// store that cannot be asked. There is no gate without its store [A6].
func New(ctx context.Context, store Store, verifier Verifier, cfg *Config) (*Gate, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if store == nil {
		return nil, &Error{Class: ErrMisconfigured, Reason: ReasonUnsafeStore, Note: "no store"}
	}
	g := newGate(store, verifier, c)
	wrong := []error{g.timings.Validate(), g.takeEffects(c.Effects), g.takeMatchers(c.Matchers), c.check()}
	facts, err := store.Check(ctx)
	if err != nil {
		if err := misconfigured(wrong); err != nil {
			return nil, err
		}
		return nil, err
	}
	wrong = append(wrong, facts.Err(), g.agrees(facts.Policy), sameRealm(verifier, facts.Realm))
	if err := misconfigured(wrong); err != nil {
		return nil, err
	}
	if g.grace == 0 {
		g.grace = g.longestWork()
	}
	return g, nil
}

func newGate(store Store, verifier Verifier, c Config) *Gate {
	g := &Gate{
		store: store, verifier: verifier, timings: DefaultTimings(), sealed: c.SealedIDs, needsGen: c.RequireGeneration,
		name: c.Name, workers: c.Workers, purgeWait: c.PurgeInterval, grace: c.Grace, jitter: c.Jitter,
		observer: c.Observer, logger: c.Logger,
	}
	g.book, _ = store.(GrantBook)
	if c.Timings != nil {
		g.timings = c.Timings.Clone()
	}
	if g.name == "" {
		g.name = "gate"
	}
	if g.workers == 0 {
		g.workers = 8
	}
	if g.purgeWait == 0 {
		g.purgeWait = time.Minute
	}
	if g.jitter == nil {
		g.jitter = rand.Float64
	}
	if g.observer == nil {
		g.observer = NopObserver{}
	}
	if g.logger == nil {
		g.logger = slog.New(slog.DiscardHandler)
	}
	return g
}

func unsafeConfig(note string) error {
	return &Error{Class: ErrMisconfigured, Reason: ReasonUnsafeTimings, Note: note}
}

// check reports what is wrong in the plain values.
func (c Config) check() error {
	var wrong []string
	if err := checkOptionalID("Name", c.Name); err != nil {
		wrong = append(wrong, "Name is no identifier")
	}
	if c.Workers < 0 || c.Workers > MaxPage {
		wrong = append(wrong, "Workers is not 0 to 1000")
	}
	if c.PurgeInterval < 0 || c.Grace < 0 {
		wrong = append(wrong, "PurgeInterval or Grace is negative")
	}
	if wrong == nil {
		return nil
	}
	return unsafeConfig(strings.Join(wrong, "; "))
}

// takeEffects registers each effect under its kind.
func (g *Gate) takeEffects(effects []Effect) error {
	g.effects = make(map[Kind]Effect, len(effects))
	var wrong []string
	for _, e := range effects {
		if e == nil {
			wrong = append(wrong, "an effect is nil")
			continue
		}
		k := e.Kind()
		if k.Validate() != nil {
			wrong = append(wrong, "an effect's kind is malformed")
			continue
		}
		if g.effects[k] != nil {
			wrong = append(wrong, "two effects are of kind "+string(k))
		}
		g.effects[k] = e
	}
	if wrong == nil {
		return nil
	}
	return unsafeConfig(strings.Join(wrong, "; "))
}

func (g *Gate) takeMatchers(matchers map[Kind]Matcher) error {
	g.matchers = make(map[Kind]Matcher, len(matchers))
	for k, m := range matchers {
		if m == nil || k.Validate() != nil {
			return unsafeConfig("a matcher is nil or its kind is malformed")
		}
		g.matchers[k] = m
	}
	if len(matchers) > 0 && g.book == nil {
		return unsafeConfig("matchers need a store that is a GrantBook")
	}
	return nil
}

// sameRealm refuses a verifier that says it is for another store: every grant
// would be refused [A1].
func sameRealm(v Verifier, realm string) error {
	at, ok := v.(interface{ Realm() string })
	if !ok || at.Realm() == realm {
		return nil
	}
	return unsafeConfig("the verifier is for the realm " + at.Realm() + " and the store's is " + realm +
		": a store's realm is given when it is made (Options.Realm), and told by Check")
}

// agrees holds the timings against the policy in the store. A leeway version
// that the store lacks is a disagreement too: grants that name it would all be
// refused there [A4].
func (g *Gate) agrees(stored Policy) error {
	merged, err := stored.Agree(g.timings.Policy())
	if err != nil {
		return err
	}
	for v := range merged.Leeways {
		if _, ok := stored.Leeways[v]; !ok {
			return &Error{
				Class: ErrMisconfigured, Reason: ReasonDisagreement,
				Note: leewayName(v) + " is not in the store: open the store with the same timings",
			}
		}
	}
	return nil
}

// misconfigured makes one error that names everything wrong, or nil.
func misconfigured(errs []error) error {
	var first *Error
	var notes []string
	for _, err := range errs {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			continue
		}
		if first == nil {
			first = e
		}
		notes = append(notes, e.Note)
	}
	if first == nil {
		return nil
	}
	return &Error{Class: ErrMisconfigured, Reason: first.Reason, Note: strings.Join(notes, "; ")}
}

// longestWork is how long one operation in flight may take when nothing pauses:
// look-up, call, and every store call around them.
func (g *Gate) longestWork() time.Duration {
	longest := time.Duration(0)
	for k := range g.effects {
		kt := g.timings.For(k)
		longest = max(longest, kt.FindTimeout+kt.EffectTimeout)
	}
	return longest + storeCalls*g.timings.StoreCallTimeout
}

// storeCalls is how many store calls the recovery of one operation makes at
// most, the tries of recording included.
const storeCalls = 3 + 2*recordTries

// Timings returns a copy of the timings in force.
func (g *Gate) Timings() Timings { return g.timings.Clone() }

// kinds returns the recovery lease of every kind that has an effect here.
func (g *Gate) kinds() map[Kind]time.Duration {
	leases := make(map[Kind]time.Duration, len(g.effects))
	for k := range g.effects {
		leases[k] = g.timings.For(k).RecoveryLease
	}
	return leases
}

// asking bounds one call of the store by the time a caller waits for it.
func (g *Gate) asking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, g.timings.StoreCallTimeout)
}

// committing bounds a call that makes an owner: on top comes the wait for a
// standby at its commit, which the leases have room for [O4]. An owner whose
// confirmation was never waited for would leave everything to recovery.
func (g *Gate) committing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, g.timings.StoreCallTimeout+g.timings.ReplicationWaitBound)
}

// Close takes no new work, waits for what is in flight as long as the grace says,
// then cancels the calls that are left and waits for their unknown outcomes to
// be recorded [E7]. What does not even then end is left to recovery, and Close
// says how much that is. The store stays open: it is its maker's to close.
func (g *Gate) Close() error {
	jobs := g.crew.close()
	g.await(jobs, g.grace)
	return g.abandon(jobs)
}

// abandon cancels jobs and waits a moment for their records.
func (g *Gate) abandon(jobs []*job) error {
	for _, j := range jobs {
		j.cancel()
	}
	left := g.await(jobs, recordTries*g.timings.StoreCallTimeout)
	if left == 0 {
		return nil
	}
	return Errorf(ErrUnavailable, ReasonClosed, "%d operations in flight did not end and are left to recovery", left)
}

// await waits until all jobs have ended or the time is over, and returns how
// many have not ended.
func (g *Gate) await(jobs []*job, atMost time.Duration) (left int) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	over := false
	for _, j := range jobs {
		if !over {
			select {
			case <-j.done:
			case <-timer.C:
				over = true
			}
		}
		if over && !j.ended() {
			left++
		}
	}
	return left
}
