package pawl

import "time"

// pace returns how long an operation is left alone after a takeover that learnt
// nothing: doubling with each takeover from the base to the cap, and jittered
// down to half of that, so that operations that stalled together do not come
// back together [E6]. jitter is in [0, 1); whatever is not counts as 0.
func (k KindTimings) pace(takeovers int, jitter float64) time.Duration {
	d := k.BackoffBase
	for range takeovers - 1 {
		if d >= k.BackoffCap/2 {
			d = k.BackoffCap
			break
		}
		d *= 2
	}
	if !(jitter >= 0 && jitter < 1) {
		jitter = 0
	}
	return max(d-time.Duration(jitter*float64(d)/2), 1)
}

// exhausted reports whether an operation has had all its takeovers: what this
// one does not settle waits for a person [E6].
func (k KindTimings) exhausted(o Operation) bool { return o.Takeovers >= k.MaxTakeovers }
