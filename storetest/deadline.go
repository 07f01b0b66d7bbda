package storetest

import (
	"time"

	"github.com/pawl-go/pawl"
)

const processAhead = time.Minute

func deadlineCases() []Case {
	return []Case{
		{ID: "C-B8", Title: "expired four and six seconds ago with five seconds leeway", Clauses: clauses("A4"), Needs: []Power{PowerClock}, run: aroundExpiry},
		{ID: "A4-strict", Title: "exactly at the boundaries", Clauses: clauses("A4"), Needs: []Power{PowerFrozen}, run: exactBoundaries},
		{ID: "C-A18", Title: "the store's clock is ahead of the process's", Clauses: clauses("A4"), Needs: []Power{PowerClock}, offset: processAhead, run: storeDecides},
		{ID: "A4-behind", Title: "the store's clock is behind the process's", Clauses: clauses("A4"), Needs: []Power{PowerClock}, offset: -processAhead, run: storeDecides},
		{ID: "A4-future", Title: "issued or valid from later than the store's time", Clauses: clauses("A4"), run: notYetValid},
		{ID: "C-B7", Title: "times that no grant has", Clauses: clauses("A4 A9"), run: impossibleTimes},
		{ID: "A4-policy", Title: "a leeway policy the store does not hold, and one it does", Clauses: clauses("A4"), Needs: []Power{PowerClock}, timings: longLeeway, run: leewayPolicies},
		{ID: "A4-stored", Title: "a stored grant's own deadline", Clauses: clauses("A4 A2"), Needs: []Power{PowerClock}, run: storedDeadline},
		{ID: "C-A24", Title: "a grant for another realm", Clauses: clauses("A1"), run: otherRealm},
	}
}

// longLeeway adds a policy version of thirty seconds.
func longLeeway(ts *pawl.Timings) { ts.Leeways["long"] = 30 * time.Second }

func (t *Trial) leeway() time.Duration { return t.timings.Leeways[""] }

// aroundExpiry is C-B8: admitted once within the leeway, refused after it.
func aroundExpiry(t *Trial) {
	g := t.grantUntil(t.now().Add(-4 * time.Second))
	if got, err := t.admit(t.a, t.admission(g)); err != nil || !got.Fresh {
		t.fail("A4", "expired 4 s ago with 5 s leeway: fresh %v, error %v, want admitted", got.Fresh, err)
	}
	t.wantRefused("A4", t.a, t.admission(g), pawl.ReasonUsed)
	over := t.admission(t.grantUntil(t.now().Add(-6 * time.Second)))
	t.wantRefused("A4", t.a, over, pawl.ReasonExpired)
	t.absent("A4", over.OperationID)
}

// exactBoundaries: at expiry + leeway it is over, a microsecond before it is
// not; and so for the longest lifetime and the issuer's skew [A4].
func exactBoundaries(t *Trial) {
	const tick = time.Microsecond
	now, p := t.now(), t.timings.Policy()
	farthest := now.Add(p.MaxGrantLifetime + p.IssueSkew)
	for _, b := range []struct {
		what   string
		change func(*pawl.Grant)
		reason pawl.Reason // empty: admitted
	}{
		{"at the deadline", expireAt(now.Add(-t.leeway())), pawl.ReasonExpired},
		{"a tick before the deadline", expireAt(now.Add(tick - t.leeway())), ""},
		{"issued at the skew", func(g *pawl.Grant) { g.IssuedAt = now.Add(p.IssueSkew) }, ""},
		{"issued a tick past the skew", func(g *pawl.Grant) { g.IssuedAt = now.Add(p.IssueSkew + tick) }, pawl.ReasonNotYetValid},
		{"the longest lifetime", func(g *pawl.Grant) { g.IssuedAt, g.ExpiresAt = now, now.Add(p.MaxGrantLifetime) }, ""},
		{
			"a tick over the longest lifetime",
			func(g *pawl.Grant) { g.IssuedAt, g.ExpiresAt = now.Add(-tick), now.Add(p.MaxGrantLifetime) },
			pawl.ReasonLifetime,
		},
		{
			"expiry at the upper bound",
			func(g *pawl.Grant) { g.IssuedAt, g.ExpiresAt = now.Add(p.IssueSkew), farthest }, "",
		},
		{
			"expiry a tick past the upper bound",
			func(g *pawl.Grant) { g.IssuedAt, g.ExpiresAt = now.Add(p.IssueSkew+tick), farthest.Add(tick) },
			pawl.ReasonLifetime,
		},
		{"valid from the leeway", func(g *pawl.Grant) { g.NotBefore = now.Add(t.leeway()) }, ""},
		{"valid from a tick past the leeway", func(g *pawl.Grant) { g.NotBefore = now.Add(t.leeway() + tick) }, pawl.ReasonNotYetValid},
	} {
		g := t.grant()
		b.change(&g)
		a := t.admission(g)
		if b.reason != "" {
			t.wantRefused("A4", t.a, a, b.reason)
			t.absent("A4", a.OperationID)
			continue
		}
		if got, err := t.admit(t.a, a); err != nil || !got.Fresh {
			t.fail("A4", "%s: fresh %v, error %v, want admitted", b.what, got.Fresh, err)
		}
	}
}

// expireAt makes a grant of the usual lifetime that ends then.
func expireAt(end time.Time) func(*pawl.Grant) {
	return func(g *pawl.Grant) { g.IssuedAt, g.ExpiresAt = end.Add(-life), end }
}

// storeDecides is C-A18: deadlines are those of the store's clock, which the
// case reads from the store, whatever the process's says [A4].
func storeDecides(t *Trial) {
	half := t.c.offset.Abs() / 2
	valid := t.admission(t.grantUntil(t.now().Add(half)))
	if got, err := t.admit(t.a, valid); err != nil || !got.Fresh {
		t.fail("A4", "%v before the expiry on the store's clock: fresh %v, error %v, want admitted", half, got.Fresh, err)
	}
	over := t.admission(t.grantUntil(t.now().Add(-half)))
	t.wantRefused("A4", t.a, over, pawl.ReasonExpired)
	t.absent("A4", over.OperationID)
}

func notYetValid(t *Trial) {
	g := t.grant()
	g.IssuedAt = t.now().Add(time.Minute)
	t.wantRefused("A4", t.a, t.admission(g), pawl.ReasonNotYetValid)
	g = t.grant()
	g.NotBefore = t.now().Add(time.Minute)
	t.wantRefused("A4", t.a, t.admission(g), pawl.ReasonNotYetValid)
	g = t.grant()
	g.ExpiresAt = t.now().Add(365 * 24 * time.Hour)
	t.wantRefused("A4", t.a, t.admission(g), pawl.ReasonLifetime)
	g = t.grant()
	g.IssuedAt = g.ExpiresAt.Add(-t.timings.MaxGrantLifetime - time.Minute)
	t.wantRefused("A4", t.a, t.admission(g), pawl.ReasonLifetime)
}

// impossibleTimes is C-B7 as far as a store sees it: malformed or not valid,
// nothing written, and the right request still succeeds [A9].
func impossibleTimes(t *Trial) {
	right := t.grant()
	for what, spoil := range map[string]func(*pawl.Grant){
		"no expiry":          func(g *pawl.Grant) { g.ExpiresAt = time.Time{} },
		"no issue time":      func(g *pawl.Grant) { g.IssuedAt = time.Time{} },
		"expiry in 2^50 s":   func(g *pawl.Grant) { g.ExpiresAt = time.Unix(1<<50, 0) },
		"expiry in 2^62 s":   func(g *pawl.Grant) { g.ExpiresAt = time.Unix(1<<62, 0) },
		"expiry in ms":       func(g *pawl.Grant) { g.ExpiresAt = time.Unix(g.ExpiresAt.UnixMilli(), 0) },
		"expiry in 1970":     func(g *pawl.Grant) { g.ExpiresAt = time.Unix(60, 0) },
		"no lifetime":        func(g *pawl.Grant) { g.ExpiresAt = g.IssuedAt },
		"negative lifetime":  func(g *pawl.Grant) { g.ExpiresAt = g.IssuedAt.Add(-time.Second) },
		"valid from 2^62 s":  func(g *pawl.Grant) { g.NotBefore = time.Unix(1<<62, 0) },
		"issued in 9999":     func(g *pawl.Grant) { g.IssuedAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) },
		"issued before 2000": func(g *pawl.Grant) { g.IssuedAt = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		g := right
		spoil(&g)
		a := t.admission(g)
		if _, err := t.admit(t.a, a); !ofClass(err, pawl.ErrInvalid, pawl.ErrRefused) {
			t.fail("A9", "%s: %v, want malformed or refused", what, err)
		}
		t.absent("A9", a.OperationID)
	}
	if got, err := t.admit(t.a, t.admission(right)); err != nil || !got.Fresh {
		t.fail("A9", "the right grant after wrong ones: fresh %v, error %v, want admitted", got.Fresh, err)
	}
}

func leewayPolicies(t *Trial) {
	unknown := t.grant()
	unknown.LeewayPolicy = "never-heard-of"
	t.wantRefused("A4", t.a, t.admission(unknown), pawl.ReasonLeewayUnknown)
	g := t.grantUntil(t.now().Add(-20 * time.Second))
	t.wantRefused("A4", t.a, t.admission(g), pawl.ReasonExpired)
	g.LeewayPolicy = "long"
	if got, err := t.admit(t.a, t.admission(g)); err != nil || !got.Fresh {
		t.fail("A4", "expired 20 s ago under a policy of 30 s: fresh %v, error %v, want admitted", got.Fresh, err)
	}
}

// storedDeadline: the row's expiry counts, whatever the request says [A5].
func storedDeadline(t *Trial) {
	issued, err := t.a.Issue(t.ctx, t.issuance(pawl.FormStored))
	if err != nil {
		t.stop("A2", "issuing a stored grant: %v", err)
	}
	t.advance(life + t.leeway() + time.Second)
	g := issued.Grant
	g.IssuedAt, g.ExpiresAt = t.now(), t.now().Add(life)
	a := t.admission(g)
	t.wantRefused("A4", t.a, a, pawl.ReasonExpired)
	t.absent("A4", a.OperationID)
}

// otherRealm is C-A24: a grant whose audience is another store is not valid
// here [A1].
func otherRealm(t *Trial) {
	g := t.grant()
	for _, realm := range []string{"elsewhere", "", t.facts.Realm + " "} {
		g.Realm = realm
		a := t.admission(g)
		t.wantRefused("A1", t.a, a, pawl.ReasonRealm)
		t.absent("A1", a.OperationID)
	}
	g.Realm = t.facts.Realm
	if got, err := t.admit(t.a, t.admission(g)); err != nil || !got.Fresh {
		t.fail("A1", "the same grant for this realm: fresh %v, error %v, want admitted", got.Fresh, err)
	}
}
