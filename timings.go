package pawl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Timings are all durations that must fit together [T1]. One value feeds
// validation, admission, recovery and purge; [Timings.Validate] checks every
// inequality at once. The zero value is not valid: start from DefaultTimings.
type Timings struct {
	// Leeways are the admission leeways by policy version; "" is the version of
	// a grant that names none. A version in use is never edited: add another.
	Leeways map[string]time.Duration

	StoreCallTimeout time.Duration // how long a caller waits for one answer of the store
	LeaseMargin      time.Duration // kept free at the end of a lease
	RecoveryInterval time.Duration // between two looks for stalled operations

	AdmissionBound       time.Duration // server-enforced bound on an admission, where the engine needs one [P1]
	ReplicationWaitBound time.Duration // declared: longest wait for a standby at commit
	ClockStepBound       time.Duration // declared: largest step of the store's clock, a failover's included
	PurgeMargin          time.Duration // beyond retain_until before a refusal record is deleted [P1]

	MaxGrantLifetime time.Duration // expiry minus issue time, at most; never shortened while grants live
	IssueSkew        time.Duration // how far an issuer's clock may be ahead of the store's

	RetainOperations time.Duration // of settled operations, from settlement [P3]
	RetainAttempts   time.Duration // of log entries, from settlement
	RetainResults    time.Duration // of results, from settlement
	KeyLifetime      time.Duration // published lifetime of an idempotency key [B3]

	Default KindTimings          // of kinds not named in Kinds
	Kinds   map[Kind]KindTimings // whole replacements, by kind
}

// KindTimings are the durations of one kind of effect, and what its provider
// states.
type KindTimings struct {
	EffectTimeout    time.Duration // of one create call
	FindTimeout      time.Duration // of one look-up
	ExecutionLease   time.Duration // the admitted owner's
	RecoveryLease    time.Duration // an owner's by takeover
	SubmissionWindow time.Duration // from admission; no create call is sent later [O5]

	MaxTakeovers int           // then the operation waits for a person [E6]
	BackoffBase  time.Duration // first pause between takeovers; doubles, jittered
	BackoffCap   time.Duration // longest pause

	Provider ProviderContract
}

// ProviderContract is what a provider documents of its idempotency keys. What
// is not stated is assumed absent [E3]: recovery then never creates again.
type ProviderContract struct {
	AtomicKeys      bool          // concurrent requests with one key are handled atomically
	SameParameters  bool          // the key is honoured with the same parameters
	KeyRetention    time.Duration // how long a key is kept; 0 is not stated
	ClockDifference time.Duration // bound on the provider's clock against the store's; 0 is not stated
}

// Stated reports whether all of the contract is stated, without which nobody
// but the first owner may create [E5].
func (p ProviderContract) Stated() bool {
	return p.AtomicKeys && p.SameParameters && p.KeyRetention > 0 && p.ClockDifference > 0
}

// DefaultTimings returns timings that are valid together. Retention is 90 days.
func DefaultTimings() Timings {
	const day = 24 * time.Hour
	return Timings{
		Leeways:              map[string]time.Duration{"": 5 * time.Second},
		StoreCallTimeout:     2 * time.Second,
		LeaseMargin:          2 * time.Second,
		RecoveryInterval:     time.Second,
		AdmissionBound:       5 * time.Second,
		ReplicationWaitBound: 5 * time.Second,
		ClockStepBound:       5 * time.Second,
		PurgeMargin:          30 * time.Second,
		MaxGrantLifetime:     day,
		IssueSkew:            5 * time.Second,
		RetainOperations:     90 * day,
		RetainAttempts:       90 * day,
		RetainResults:        90 * day,
		KeyLifetime:          day,
		Default: KindTimings{
			EffectTimeout:    10 * time.Second,
			FindTimeout:      10 * time.Second,
			ExecutionLease:   30 * time.Second,
			RecoveryLease:    45 * time.Second,
			SubmissionWindow: 10 * time.Minute,
			MaxTakeovers:     20,
			BackoffBase:      time.Second,
			BackoffCap:       5 * time.Minute,
		},
	}
}

// For returns the timings of a kind.
func (t Timings) For(k Kind) KindTimings {
	if kt, ok := t.Kinds[k]; ok {
		return kt
	}
	return t.Default
}

// Clone returns timings that share no memory with t.
func (t Timings) Clone() Timings {
	t.Leeways = maps.Clone(t.Leeways)
	t.Kinds = maps.Clone(t.Kinds)
	return t
}

// Inequality is one rule between durations, with both values.
type Inequality struct {
	Rule  string // such as "PurgeMargin > AdmissionBound + ReplicationWaitBound + ClockStepBound"
	Kind  string // of a rule per kind; "default" for the default
	Left  time.Duration
	Op    string // "<", "<=", ">" or ">="
	Right time.Duration
	Count bool // the values are numbers, not durations
}

// Values are both values with the relation between them.
func (q Inequality) Values() string {
	if q.Count {
		return fmt.Sprintf("%d %s %d", q.Left, q.Op, q.Right)
	}
	return fmt.Sprintf("%v %s %v", q.Left, q.Op, q.Right)
}

// Holds reports whether the rule holds.
func (q Inequality) Holds() bool {
	switch q.Op {
	case "<":
		return q.Left < q.Right
	case "<=":
		return q.Left <= q.Right
	case ">":
		return q.Left > q.Right
	case ">=":
		return q.Left >= q.Right
	}
	return false
}

// String names the rule and both values.
func (q Inequality) String() string {
	s := q.Rule + ": " + q.Values()
	if q.Kind != "" {
		s = "kind " + q.Kind + ": " + s
	}
	return s
}

// Inequalities returns every rule of the table in docs/timings.md with its
// present values, those that hold included.
func (t Timings) Inequalities() []Inequality {
	rules := []Inequality{
		{Rule: "StoreCallTimeout > 0", Kind: "", Left: t.StoreCallTimeout, Op: ">", Right: 0},
		{Rule: "LeaseMargin > 0", Kind: "", Left: t.LeaseMargin, Op: ">", Right: 0},
		{Rule: "RecoveryInterval > 0", Kind: "", Left: t.RecoveryInterval, Op: ">", Right: 0},
		{Rule: "AdmissionBound > 0", Kind: "", Left: t.AdmissionBound, Op: ">", Right: 0},
		{Rule: "ReplicationWaitBound >= 0", Kind: "", Left: t.ReplicationWaitBound, Op: ">=", Right: 0},
		{Rule: "ClockStepBound >= 0", Kind: "", Left: t.ClockStepBound, Op: ">=", Right: 0},
		{
			Rule: "PurgeMargin > AdmissionBound + ReplicationWaitBound + ClockStepBound", Kind: "",
			Left: t.PurgeMargin, Op: ">", Right: t.AdmissionBound + t.ReplicationWaitBound + t.ClockStepBound,
		},
		{Rule: "MaxGrantLifetime > 0", Kind: "", Left: t.MaxGrantLifetime, Op: ">", Right: 0},
		{Rule: "IssueSkew >= 0", Kind: "", Left: t.IssueSkew, Op: ">=", Right: 0},
		{Rule: "RetainAttempts > 0", Kind: "", Left: t.RetainAttempts, Op: ">", Right: 0},
		{Rule: "RetainResults > 0", Kind: "", Left: t.RetainResults, Op: ">", Right: 0},
		{Rule: "KeyLifetime > 0", Kind: "", Left: t.KeyLifetime, Op: ">", Right: 0},
		{Rule: "RetainOperations >= KeyLifetime", Kind: "", Left: t.RetainOperations, Op: ">=", Right: t.KeyLifetime},
	}
	for _, v := range slices.Sorted(maps.Keys(t.Leeways)) {
		rules = append(rules, Inequality{Rule: "AdmissionLeeway >= 0", Kind: leewayName(v), Left: t.Leeways[v], Op: ">=", Right: 0})
	}
	rules = append(rules, t.kindRules("default", t.Default)...)
	for _, k := range slices.Sorted(maps.Keys(t.Kinds)) {
		rules = append(rules, t.kindRules(string(k), t.Kinds[k])...)
	}
	return rules
}

func leewayName(version string) string {
	if version == "" {
		return "leeway policy (default)"
	}
	return "leeway policy " + version
}

func (t Timings) kindRules(kind string, k KindTimings) []Inequality {
	lease := t.ReplicationWaitBound + 2*t.StoreCallTimeout + k.EffectTimeout + t.LeaseMargin
	rules := []Inequality{
		{Rule: "EffectTimeout > 0", Kind: kind, Left: k.EffectTimeout, Op: ">", Right: 0},
		{Rule: "FindTimeout > 0", Kind: kind, Left: k.FindTimeout, Op: ">", Right: 0},
		{Rule: "EffectTimeout < ExecutionLease - LeaseMargin", Kind: kind, Left: k.EffectTimeout, Op: "<", Right: k.ExecutionLease - t.LeaseMargin},
		{
			Rule: "ExecutionLease >= ReplicationWaitBound + 2 x StoreCallTimeout + EffectTimeout + LeaseMargin", Kind: kind,
			Left: k.ExecutionLease, Op: ">=", Right: lease,
		},
		{
			Rule: "RecoveryLease >= ReplicationWaitBound + 2 x StoreCallTimeout + FindTimeout + EffectTimeout + LeaseMargin", Kind: kind,
			Left: k.RecoveryLease, Op: ">=", Right: lease + k.FindTimeout,
		},
		{
			Rule: "SubmissionWindow > ExecutionLease + RecoveryInterval + RecoveryLease", Kind: kind,
			Left: k.SubmissionWindow, Op: ">", Right: k.ExecutionLease + t.RecoveryInterval + k.RecoveryLease,
		},
		{Rule: "MaxTakeovers > 0", Kind: kind, Left: time.Duration(k.MaxTakeovers), Op: ">", Count: true},
		{Rule: "BackoffBase > 0", Kind: kind, Left: k.BackoffBase, Op: ">", Right: 0},
		{Rule: "BackoffCap >= BackoffBase", Kind: kind, Left: k.BackoffCap, Op: ">=", Right: k.BackoffBase},
	}
	if p := k.Provider; p.KeyRetention > 0 {
		rules = append(rules, Inequality{
			// A call that is sent at the last moment takes its time to arrive, and the key must still be kept then.
			Rule: "SubmissionWindow <= KeyRetention - EffectTimeout - LeaseMargin - ClockDifference", Kind: kind,
			Left: k.SubmissionWindow, Op: "<=", Right: p.KeyRetention - k.EffectTimeout - t.LeaseMargin - p.ClockDifference,
		})
	}
	return rules
}

// MaxDuration bounds every duration, so that no sum of them overflows.
const MaxDuration = 10 * 365 * 24 * time.Hour

// tooLong names the durations over MaxDuration.
func (t Timings) tooLong() (names []string) {
	check := func(of string, fields map[string]time.Duration) {
		for name, d := range fields {
			if d > MaxDuration || d < -MaxDuration {
				names = append(names, fmt.Sprintf("%s%s <= %v: %v", of, name, MaxDuration, d))
			}
		}
	}
	check("", map[string]time.Duration{
		"StoreCallTimeout": t.StoreCallTimeout, "LeaseMargin": t.LeaseMargin, "RecoveryInterval": t.RecoveryInterval,
		"AdmissionBound": t.AdmissionBound, "ReplicationWaitBound": t.ReplicationWaitBound, "ClockStepBound": t.ClockStepBound,
		"PurgeMargin": t.PurgeMargin, "MaxGrantLifetime": t.MaxGrantLifetime, "IssueSkew": t.IssueSkew,
		"RetainOperations": t.RetainOperations, "RetainAttempts": t.RetainAttempts, "RetainResults": t.RetainResults,
		"KeyLifetime": t.KeyLifetime,
	})
	check("AdmissionLeeway of policy ", t.Leeways)
	kinds := map[string]KindTimings{"default": t.Default}
	for k, kt := range t.Kinds {
		kinds[string(k)] = kt
	}
	for k, kt := range kinds {
		check("kind "+k+": ", map[string]time.Duration{
			"EffectTimeout": kt.EffectTimeout, "FindTimeout": kt.FindTimeout, "ExecutionLease": kt.ExecutionLease,
			"RecoveryLease": kt.RecoveryLease, "SubmissionWindow": kt.SubmissionWindow, "BackoffBase": kt.BackoffBase,
			"BackoffCap": kt.BackoffCap, "KeyRetention": kt.Provider.KeyRetention, "ClockDifference": kt.Provider.ClockDifference,
		})
	}
	return names
}

// Validate reports every violated rule at once with both values, as
// ErrMisconfigured.
func (t Timings) Validate() error {
	var broken []string
	if _, ok := t.Leeways[""]; !ok {
		broken = append(broken, "Leeways has no default policy (version \"\")")
	}
	for v := range t.Leeways {
		if checkOptionalID("leeway policy", v) != nil {
			broken = append(broken, "a leeway policy's name is malformed")
		}
	}
	for k := range t.Kinds {
		if k.Validate() != nil {
			broken = append(broken, "a kind's name is malformed")
		}
	}
	broken = append(broken, t.tooLong()...)
	for _, q := range t.Inequalities() {
		if !q.Holds() {
			broken = append(broken, q.String())
		}
	}
	if broken == nil {
		return nil
	}
	slices.Sort(broken)
	return &Error{Class: ErrMisconfigured, Reason: ReasonUnsafeTimings, Note: strings.Join(broken, "; ")}
}

// Policy is the part of the timings that must be equal in all instances of one
// store. It stands in the store; an instance configured otherwise refuses to
// start [A11].
type Policy struct {
	Leeways          map[string]time.Duration `json:"leeways"`
	AdmissionBound   time.Duration            `json:"admission_bound"`
	PurgeMargin      time.Duration            `json:"purge_margin"`
	MaxGrantLifetime time.Duration            `json:"max_grant_lifetime"`
	IssueSkew        time.Duration            `json:"issue_skew"`
	KeyLifetime      time.Duration            `json:"key_lifetime"`
}

// Policy returns the part that stands in the store.
func (t Timings) Policy() Policy {
	return Policy{
		Leeways: maps.Clone(t.Leeways), AdmissionBound: t.AdmissionBound, PurgeMargin: t.PurgeMargin,
		MaxGrantLifetime: t.MaxGrantLifetime, IssueSkew: t.IssueSkew, KeyLifetime: t.KeyLifetime,
	}
}

// Agree compares the policy that stands in the store with an instance's. New
// leeway versions are no disagreement: merged has them all, and the store keeps
// merged. Everything else that differs is ErrMisconfigured, naming each
// difference with both values.
func (p Policy) Agree(instance Policy) (merged Policy, err error) {
	var differ []string
	for _, c := range p.Changes(instance) {
		differ = append(differ, fmt.Sprintf("%s is %v in the store and %v here", c.Name, c.From, c.To))
	}
	merged = p
	merged.Leeways = maps.Clone(p.Leeways)
	for v, d := range instance.Leeways {
		if _, ok := p.Leeways[v]; ok {
			continue
		}
		if merged.Leeways == nil {
			merged.Leeways = map[string]time.Duration{}
		}
		merged.Leeways[v] = d
	}
	if differ != nil {
		return Policy{}, &Error{Class: ErrMisconfigured, Reason: ReasonDisagreement, Note: strings.Join(differ, "; ")}
	}
	return merged, nil
}

// PolicyChange is one value in which two policies differ.
type PolicyChange struct {
	Name     string
	From, To time.Duration
}

// Changes returns in what next differs from p. A leeway version that only one of
// them has is no difference.
func (p Policy) Changes(next Policy) (changes []PolicyChange) {
	check := func(name string, from, to time.Duration) {
		if from != to {
			changes = append(changes, PolicyChange{name, from, to})
		}
	}
	check("AdmissionBound", p.AdmissionBound, next.AdmissionBound)
	check("PurgeMargin", p.PurgeMargin, next.PurgeMargin)
	check("MaxGrantLifetime", p.MaxGrantLifetime, next.MaxGrantLifetime)
	check("IssueSkew", p.IssueSkew, next.IssueSkew)
	check("KeyLifetime", p.KeyLifetime, next.KeyLifetime)
	for _, v := range slices.Sorted(maps.Keys(next.Leeways)) {
		if from, ok := p.Leeways[v]; ok {
			check("AdmissionLeeway of "+leewayName(v), from, next.Leeways[v])
		}
	}
	return changes
}

// Adopt returns the policy with which an operator deliberately replaces the one
// in the store, while no instance runs. A leeway version in use is never edited
// and neither the lifetime nor the skew shrinks, for grants issued under them
// may live.
func (p Policy) Adopt(next Policy) (Policy, error) {
	var wrong []error
	for v, d := range p.Leeways {
		if n, ok := next.Leeways[v]; ok && n != d {
			wrong = append(wrong, fmt.Errorf("AdmissionLeeway of %s is never edited: add a version", leewayName(v)))
		}
	}
	if next.MaxGrantLifetime < p.MaxGrantLifetime {
		wrong = append(wrong, errors.New("MaxGrantLifetime is never shortened"))
	}
	if next.IssueSkew < p.IssueSkew {
		wrong = append(wrong, errors.New("IssueSkew is never shortened"))
	}
	if next.KeyLifetime < p.KeyLifetime {
		wrong = append(wrong, errors.New("KeyLifetime is never shortened: keys were published under it"))
	}
	if wrong != nil {
		return Policy{}, Errorf(ErrMisconfigured, ReasonDisagreement, "%w", errors.Join(wrong...))
	}
	leeways := maps.Clone(p.Leeways)
	maps.Copy(leeways, next.Leeways)
	next.Leeways = leeways
	return next, nil
}
