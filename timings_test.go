package pawl_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
)

// breach breaks one rule of the timings as gently as it can be broken: by
// equality where the rule is strict, by one nanosecond where it is not.
type breach struct {
	rule   string
	values string // both, as the error must name them
	change func(*pawl.Timings, *pawl.KindTimings)
	also   []string // rules that cannot hold then either
}

// breaches has one for every rule, in the order of docs/timings.md.
func breaches() []breach {
	t, k := pawl.DefaultTimings(), pawl.DefaultTimings().Default
	lease := t.ReplicationWaitBound + 2*t.StoreCallTimeout + k.EffectTimeout + t.LeaseMargin
	return []breach{
		{"StoreCallTimeout > 0", "0s > 0s", func(t *pawl.Timings, _ *pawl.KindTimings) { t.StoreCallTimeout = 0 }, nil},
		{"LeaseMargin > 0", "0s > 0s", func(t *pawl.Timings, _ *pawl.KindTimings) { t.LeaseMargin = 0 }, nil},
		{"RecoveryInterval > 0", "0s > 0s", func(t *pawl.Timings, _ *pawl.KindTimings) { t.RecoveryInterval = 0 }, nil},
		{"AdmissionBound > 0", "0s > 0s", func(t *pawl.Timings, _ *pawl.KindTimings) { t.AdmissionBound = 0 }, nil},
		{
			"ReplicationWaitBound >= 0", "-1ns >= 0s",
			func(t *pawl.Timings, _ *pawl.KindTimings) { t.ReplicationWaitBound = -1 }, nil,
		},
		{"ClockStepBound >= 0", "-1ns >= 0s", func(t *pawl.Timings, _ *pawl.KindTimings) { t.ClockStepBound = -1 }, nil},
		{
			"PurgeMargin > AdmissionBound + ReplicationWaitBound + ClockStepBound", "15s > 15s",
			func(t *pawl.Timings, _ *pawl.KindTimings) { t.PurgeMargin = 15 * time.Second }, nil,
		},
		{"MaxGrantLifetime > 0", "0s > 0s", func(t *pawl.Timings, _ *pawl.KindTimings) { t.MaxGrantLifetime = 0 }, nil},
		{"IssueSkew >= 0", "-1ns >= 0s", func(t *pawl.Timings, _ *pawl.KindTimings) { t.IssueSkew = -1 }, nil},
		{"RetainAttempts > 0", "0s > 0s", func(t *pawl.Timings, _ *pawl.KindTimings) { t.RetainAttempts = 0 }, nil},
		{"RetainResults > 0", "0s > 0s", func(t *pawl.Timings, _ *pawl.KindTimings) { t.RetainResults = 0 }, nil},
		{"KeyLifetime > 0", "0s > 0s", func(t *pawl.Timings, _ *pawl.KindTimings) { t.KeyLifetime = 0 }, nil},
		{
			"RetainOperations >= KeyLifetime", "23h59m59.999999999s >= 24h0m0s",
			func(t *pawl.Timings, _ *pawl.KindTimings) { t.RetainOperations = t.KeyLifetime - 1 }, nil,
		},
		{"AdmissionLeeway >= 0", "-1ns >= 0s", func(t *pawl.Timings, _ *pawl.KindTimings) { t.Leeways["v2"] = -1 }, nil},
		{"EffectTimeout > 0", "0s > 0s", func(_ *pawl.Timings, k *pawl.KindTimings) { k.EffectTimeout = 0 }, nil},
		{"FindTimeout > 0", "0s > 0s", func(_ *pawl.Timings, k *pawl.KindTimings) { k.FindTimeout = 0 }, nil},
		{
			"EffectTimeout < ExecutionLease - LeaseMargin", "28s < 28s",
			func(_ *pawl.Timings, k *pawl.KindTimings) { k.EffectTimeout = k.ExecutionLease - 2*time.Second },
			[]string{
				"ExecutionLease >= ReplicationWaitBound + 2 x StoreCallTimeout + EffectTimeout + LeaseMargin",
				"RecoveryLease >= ReplicationWaitBound + 2 x StoreCallTimeout + FindTimeout + EffectTimeout + LeaseMargin",
			},
		},
		{
			"ExecutionLease >= ReplicationWaitBound + 2 x StoreCallTimeout + EffectTimeout + LeaseMargin", "20.999999999s >= 21s",
			func(_ *pawl.Timings, k *pawl.KindTimings) { k.ExecutionLease = lease - 1 }, nil,
		},
		{
			"RecoveryLease >= ReplicationWaitBound + 2 x StoreCallTimeout + FindTimeout + EffectTimeout + LeaseMargin", "30.999999999s >= 31s",
			func(_ *pawl.Timings, k *pawl.KindTimings) { k.RecoveryLease = lease + k.FindTimeout - 1 }, nil,
		},
		{
			"SubmissionWindow > ExecutionLease + RecoveryInterval + RecoveryLease", "1m16s > 1m16s",
			func(_ *pawl.Timings, k *pawl.KindTimings) { k.SubmissionWindow = 76 * time.Second }, nil,
		},
		{"MaxTakeovers > 0", "0 > 0", func(_ *pawl.Timings, k *pawl.KindTimings) { k.MaxTakeovers = 0 }, nil},
		{"BackoffBase > 0", "0s > 0s", func(_ *pawl.Timings, k *pawl.KindTimings) { k.BackoffBase = 0 }, nil},
		{
			"BackoffCap >= BackoffBase", "999.999999ms >= 1s",
			func(_ *pawl.Timings, k *pawl.KindTimings) { k.BackoffCap = k.BackoffBase - 1 }, nil,
		},
		{
			"SubmissionWindow <= KeyRetention - EffectTimeout - LeaseMargin - ClockDifference", "10m0s <= 9m59.999999999s",
			func(_ *pawl.Timings, k *pawl.KindTimings) {
				k.Provider = pawl.ProviderContract{ClockDifference: time.Second, KeyRetention: 10*time.Minute + 13*time.Second - 1}
			}, nil,
		},
	}
}

// brokenRules returns the names of the rules that do not hold.
func brokenRules(t pawl.Timings) (names []string) {
	for _, q := range t.Inequalities() {
		if !q.Holds() {
			names = append(names, q.Rule)
		}
	}
	slices.Sort(names)
	return names
}

// Each rule, broken alone, is named with both values [T1]; the same rule is
// checked for the default and for a kind of its own.
func TestCase_CD17_EachTimingRule(t *testing.T) {
	for _, b := range breaches() {
		for _, kind := range []pawl.Kind{"", "credit.create"} {
			timings := pawl.DefaultTimings()
			k := timings.Default
			b.change(&timings, &k)
			where := "kind default: "
			if kind == "" {
				timings.Default = k
			} else {
				timings.Kinds = map[pawl.Kind]pawl.KindTimings{kind: k}
				where = "kind credit.create: "
			}
			want := slices.Sorted(slices.Values(append([]string{b.rule}, b.also...)))
			if diff := cmp.Diff(want, brokenRules(timings)); diff != "" {
				t.Errorf("%s, kind %q: broken rules (-want +got):\n%s", b.rule, kind, diff)
			}
			err := timings.Validate()
			if !errors.Is(err, pawl.ErrMisconfigured) || pawl.ReasonOf(err) != pawl.ReasonUnsafeTimings {
				t.Errorf("%s: %v, want misconfigured by unsafe timings", b.rule, err)
			}
			text := b.rule + ": " + b.values
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("the error does not say %q: %v", text, err)
			}
			if err != nil && k != timings.Default && kind != "" && !strings.Contains(err.Error(), where+text) {
				t.Errorf("the error does not say of which kind: %v", err)
			}
		}
	}
}

// No rule is without its breach above: a rule that is added here and nowhere
// tested would be found.
func TestEveryTimingRuleIsTested(t *testing.T) {
	timings := pawl.DefaultTimings()
	timings.Default.Provider = pawl.ProviderContract{KeyRetention: 24 * time.Hour}
	rules, tested := map[string]bool{}, map[string]bool{}
	for _, q := range timings.Inequalities() {
		rules[q.Rule] = true
		if !q.Holds() {
			t.Errorf("the defaults break %v", q)
		}
	}
	for _, b := range breaches() {
		tested[b.rule] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(rules)), slices.Sorted(maps.Keys(tested))); diff != "" {
		t.Errorf("rules and breaches differ (-rules +breaches):\n%s", diff)
	}
	if err := timings.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

// Several rules broken at once are all named, each with both values.
func TestCase_CD17_SeveralAtOnce(t *testing.T) {
	timings := pawl.DefaultTimings()
	timings.PurgeMargin = time.Second
	timings.Default.EffectTimeout = 40 * time.Second
	timings.Default.RecoveryLease = 10 * time.Second
	delete(timings.Leeways, "")
	timings.Kinds = map[pawl.Kind]pawl.KindTimings{"Not A Kind": timings.Default}
	err := timings.Validate()
	for _, want := range []string{
		"PurgeMargin > AdmissionBound + ReplicationWaitBound + ClockStepBound: 1s > 15s",
		"kind default: EffectTimeout < ExecutionLease - LeaseMargin: 40s < 28s",
		"kind default: ExecutionLease >= ReplicationWaitBound + 2 x StoreCallTimeout + EffectTimeout + LeaseMargin: 30s >= 51s",
		"RecoveryLease >= ReplicationWaitBound + 2 x StoreCallTimeout + FindTimeout + EffectTimeout + LeaseMargin: 10s >= 1m1s",
		"Leeways has no default policy", "a kind's name is malformed",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

// What stands in the store rules: every value that differs is named with both,
// and a new leeway version is none of them [A11].
func TestPolicyAgreement(t *testing.T) {
	stored := pawl.DefaultTimings().Policy()
	for name, change := range map[string]func(*pawl.Policy){
		"AdmissionBound is 5s in the store and 6s here":                 func(p *pawl.Policy) { p.AdmissionBound = 6 * time.Second },
		"PurgeMargin is 30s in the store and 31s here":                  func(p *pawl.Policy) { p.PurgeMargin = 31 * time.Second },
		"MaxGrantLifetime is 24h0m0s in the store and 1h0m0s here":      func(p *pawl.Policy) { p.MaxGrantLifetime = time.Hour },
		"IssueSkew is 5s in the store and 0s here":                      func(p *pawl.Policy) { p.IssueSkew = 0 },
		"KeyLifetime is 24h0m0s in the store and 1h0m0s here":           func(p *pawl.Policy) { p.KeyLifetime = time.Hour },
		"AdmissionLeeway of leeway policy (default) is 5s in the store": func(p *pawl.Policy) { p.Leeways = map[string]time.Duration{"": 0} },
	} {
		mine := pawl.DefaultTimings().Policy()
		change(&mine)
		if _, err := stored.Agree(mine); !errors.Is(err, pawl.ErrMisconfigured) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
	mine := pawl.DefaultTimings().Policy()
	mine.Leeways["v2"] = time.Minute
	merged, err := stored.Agree(mine)
	if err != nil || merged.Leeways["v2"] != time.Minute || merged.Leeways[""] != 5*time.Second {
		t.Errorf("a new leeway version: %v, %v", merged, err)
	}
	if len(stored.Leeways) != 1 {
		t.Error("the stored policy was changed")
	}
}

// An operator may replace the policy, but nothing under which grants may live:
// leeways in use, lifetime and skew.
func TestPolicyAdoption(t *testing.T) {
	stored := pawl.DefaultTimings().Policy()
	edited, shorter, skewed, wider := stored, stored, stored, stored
	edited.Leeways = map[string]time.Duration{"": time.Minute}
	shorter.MaxGrantLifetime--
	skewed.IssueSkew--
	wider.PurgeMargin *= 2
	wider.Leeways = map[string]time.Duration{"v2": time.Minute}
	for name, p := range map[string]pawl.Policy{"leeway edited": edited, "lifetime shortened": shorter, "skew shortened": skewed} {
		if _, err := stored.Adopt(p); !errors.Is(err, pawl.ErrMisconfigured) {
			t.Errorf("%s: %v, want misconfigured", name, err)
		}
	}
	got, err := stored.Adopt(wider)
	if err != nil || got.PurgeMargin != wider.PurgeMargin || len(got.Leeways) != 2 {
		t.Errorf("a wider margin and a new version: %v, %v", got, err)
	}
}
