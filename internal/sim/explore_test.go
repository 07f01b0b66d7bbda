package sim

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// scopes are small worlds, each with its question. In all of them one worker
// recovers.
func scopes() map[string]func(Mistake) Scope {
	word := Provider{Stated: true, Finds: true, Retention: tightRetention()}
	wordy := word
	wordy.Rewords = true
	slow := word
	slow.Lag = 5 * time.Minute
	silent := Provider{Keys: KeysIgnored, Finds: true, Lag: 5 * time.Minute}
	// Before the grant's deadline, before the end of an admission begun then, after the purge margin, after the second
	// owner's lease, after the submission deadline, after the provider's keys.
	long := seconds(24.9, 33, 41, 56, 95, 140)
	short := seconds(24.9, 33, 41, 95)
	once := Limits{Purges: 1, Revocations: 1}
	return map[string]func(Mistake) Scope{
		"two attempts, purge, revocation": func(m Mistake) Scope { return small(m, word, 2, long, once, 0, 1) },
		"with a lost message": func(m Mistake) Scope {
			l := once
			l.Losses = 1
			return small(m, word, 2, short, l, 0, 1)
		},
		"with a crash and a refusal": func(m Mistake) Scope {
			l := once
			l.Crashes, l.Refusals = 1, 1
			return small(m, word, 2, short, l, 0, 1)
		},
		"one operation, asked for twice": func(m Mistake) Scope {
			return small(m, word, 1, seconds(31, 80), Limits{Losses: 1, Refusals: 1}, 0, 0)
		},
		"one key, asked for twice": func(m Mistake) Scope {
			return small(m, word, 0, seconds(31, 80), Limits{Losses: 1, Refusals: 1, Purges: 1}, 0, 0)
		},
		"evidence from all sides": func(m Mistake) Scope {
			return small(m, wordy, 1, seconds(31, 80), Limits{Refusals: 1, Notices: 2, Lates: 1}, 0)
		},
		"close to the deadline, the look-up lags": func(m Mistake) Scope {
			return small(m, slow, 1, seconds(31, 80, 89.9, 98, 107.5, 140), Limits{Crashes: 1}, 0)
		},
		"a provider that states nothing": func(m Mistake) Scope {
			return small(m, silent, 1, seconds(31, 80), Limits{Losses: 1, Crashes: 1}, 0, 0)
		},
	}
}

func seconds(xs ...float64) (ds []time.Duration) {
	for _, x := range xs {
		ds = append(ds, time.Duration(x*float64(time.Second)))
	}
	return ds
}

// small is a scope of one grant with a deadline of 25 s and some operations under
// it, or of one key.
func small(m Mistake, p Provider, targets int, instants []time.Duration, l Limits, attempts ...int) Scope {
	if m == KeyWithoutCall {
		p.Retention -= timings(p).Default.EffectTimeout
	}
	plan := newPlan(p, 2)
	plan.Hosts, plan.Plain, plan.Bounded, plan.Mistake = 3, 2, true, m
	plan.addGrant(pawl.FormToken, 20*time.Second)
	for range targets {
		plan.addTarget(0)
	}
	if targets == 0 {
		plan.addTarget(none)
	}
	return Scope{Plan: plan, Attempts: attempts, Instants: instants, Limits: l}
}

// In every order of two attempts, one recovery, one purge and one revocation the
// rules hold [A2, R1, P1, O2, M3], and so they do with a fault or two.
func TestExplore(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine, and hundreds of thousands of states")
	}
	for name, scope := range scopes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Explore(scope(NoMistake))
			if r.Breach != nil {
				t.Fatalf("%v\n%s", r.Breach, retell(Outcome{Plan: scope(NoMistake).Plan, Moves: r.Moves, Breach: r.Breach}))
			}
			t.Logf("%d states, %d ends, went through %v", r.States, r.Ends, r.Census)
		})
	}
}

// Every mistake is found in some order of some scope.
func TestExploreFinds(t *testing.T) {
	all := scopes()
	for _, m := range Mistakes() {
		name := scopeFor(m)
		r := Explore(all[name](m))
		if r.Breach == nil {
			t.Errorf("%v: no order of %q breaks a rule", m, name)
			continue
		}
		t.Logf("%v: %v, after %d states", m, r.Breach, r.States)
	}
}

// scopeFor is a scope that finds a mistake.
func scopeFor(m Mistake) string {
	switch m {
	case AdmitInTwoSteps, AdmitWithoutBound, PurgeWithoutMargin, RunUnconfirmed, ClaimAlone, RevokeOverClaim, TakeOverLiveLease,
		PurgeOpenOperation:
		return "two attempts, purge, revocation"
	case RetryExecutes, CreateWithoutContract:
		return "a provider that states nothing"
	case ForgetReservation, JoinRewritesLock:
		return "one key, asked for twice"
	case SubmitAfterDeadline, SubmitWithoutOwnClock, CallOutlastsDeadline, KeyWithoutCall:
		return "close to the deadline, the look-up lags"
	}
	return "evidence from all sides"
}
