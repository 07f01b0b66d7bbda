package pawl_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// tokenAdmission is a request that may be admitted at at(0).
func tokenAdmission(t testing.TB) pawl.Admission {
	t.Helper()
	return pawl.Admission{
		Grant: pawl.Grant{
			Form: pawl.FormToken, Key: pawl.GrantKey{Issuer: "support", ID: "g-1"}, Realm: "books",
			Subject: "ana", Tenant: "acme", Authority: "corp", Intent: intentOf(t, "250.00"),
			IssuedAt: at(-60), ExpiresAt: at(840),
		},
		OperationID: pawl.NewOperationID(), Intent: intentOf(t, "250.00"), Caller: ana(),
		Lease: 30 * time.Second, SubmissionWindow: 10 * time.Minute,
	}
}

func findings(a pawl.Admission) pawl.Findings {
	f := pawl.Findings{Now: at(0), Realm: "books", Policy: pawl.DefaultTimings().Policy()}
	if a.Grant.Form == pawl.FormStored {
		row := a.Grant
		f.Grant.Row = &row
	}
	return f
}

func storedAdmission(t testing.TB) pawl.Admission {
	a := tokenAdmission(t)
	a.Grant.Form = pawl.FormStored
	return a
}

// What needs no store is refused before one is asked [A9]: the shape as
// malformed, another caller or intent as refused.
func TestCase_CB4_AdmissionShape(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*pawl.Admission)
		want   pawl.Class
		reason pawl.Reason
	}{
		"nil operation id":    {func(a *pawl.Admission) { a.OperationID = pawl.OperationID{} }, pawl.ErrInvalid, pawl.ReasonReservedID},
		"version 8 [B2]":      {func(a *pawl.Admission) { a.OperationID[6] = 0x80 | a.OperationID[6]&0x0f }, pawl.ErrInvalid, pawl.ReasonReservedID},
		"no intent":           {func(a *pawl.Admission) { a.Intent = pawl.Intent{} }, pawl.ErrInvalid, pawl.ReasonMissing},
		"no details":          {func(a *pawl.Admission) { a.Intent.Details = pawl.Details{} }, pawl.ErrInvalid, pawl.ReasonMissing},
		"no caller":           {func(a *pawl.Admission) { a.Caller = pawl.Caller{} }, pawl.ErrInvalid, pawl.ReasonMissing},
		"no lease":            {func(a *pawl.Admission) { a.Lease = 0 }, pawl.ErrInvalid, pawl.ReasonMissing},
		"no window":           {func(a *pawl.Admission) { a.SubmissionWindow = -1 }, pawl.ErrInvalid, pawl.ReasonMissing},
		"no form":             {func(a *pawl.Admission) { a.Grant.Form = 0 }, pawl.ErrInvalid, pawl.ReasonMissing},
		"no issuer":           {func(a *pawl.Admission) { a.Grant.Key.Issuer = "" }, pawl.ErrInvalid, pawl.ReasonMissing},
		"no grant id":         {func(a *pawl.Admission) { a.Grant.Key.ID = "" }, pawl.ErrInvalid, pawl.ReasonMissing},
		"no subject":          {func(a *pawl.Admission) { a.Grant.Subject = "" }, pawl.ErrInvalid, pawl.ReasonMissing},
		"no expiry":           {func(a *pawl.Admission) { a.Grant.ExpiresAt = time.Time{} }, pawl.ErrInvalid, pawl.ReasonMissing},
		"no issue time":       {func(a *pawl.Admission) { a.Grant.IssuedAt = time.Time{} }, pawl.ErrInvalid, pawl.ReasonMissing},
		"negative lifetime":   {func(a *pawl.Admission) { a.Grant.ExpiresAt = at(-61) }, pawl.ErrInvalid, pawl.ReasonMalformed},
		"expiry of 2^50 s":    {func(a *pawl.Admission) { a.Grant.ExpiresAt = time.Unix(1<<50, 0) }, pawl.ErrInvalid, pawl.ReasonMalformed},
		"foreign namespace":   {func(a *pawl.Admission) { a.Grant.Key.Namespace = "globex" }, pawl.ErrInvalid, pawl.ReasonMalformed},
		"other principal":     {func(a *pawl.Admission) { a.Caller.Principal = "bob" }, pawl.ErrRefused, pawl.ReasonSubject},
		"other tenant":        {func(a *pawl.Admission) { a.Caller.Tenant = "globex" }, pawl.ErrRefused, pawl.ReasonSubject},
		"other authority":     {func(a *pawl.Admission) { a.Caller.Authority = "home" }, pawl.ErrRefused, pawl.ReasonSubject},
		"other amount":        {func(a *pawl.Admission) { a.Intent = intentOf(t, "999.00") }, pawl.ErrRefused, pawl.ReasonIntent},
		"other kind":          {func(a *pawl.Admission) { a.Intent.Kind = "credit.void" }, pawl.ErrRefused, pawl.ReasonIntent},
		"upper-case kind":     {func(a *pawl.Admission) { a.Intent.Kind = "Credit" }, pawl.ErrInvalid, pawl.ReasonMalformed},
		"the right request":   {func(*pawl.Admission) {}, 0, ""},
		"authority left open": {func(a *pawl.Admission) { a.Grant.Authority = "" }, 0, ""},
	} {
		a := tokenAdmission(t)
		c.change(&a)
		err := a.Validate()
		if pawl.ReasonOf(err) != c.reason || (c.want == 0) != (err == nil) || (c.want != 0 && !errors.Is(err, c.want)) {
			t.Errorf("%s: %v, want %v (%s)", name, err, c.want, c.reason)
		}
	}
}

// The part of the rule that needs the store's clock, realm and epoch [A1, A4, A12]:
// the deadline is strict, and so are the bounds on lifetime and issue time.
func TestCase_CB8_TimelyOnTheStoresClock(t *testing.T) {
	policy := pawl.DefaultTimings().Policy() // leeway 5 s, skew 5 s, lifetime a day
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		change func(*pawl.Grant, *pawl.Findings)
		want   pawl.Reason
	}{
		"in time":                      {func(*pawl.Grant, *pawl.Findings) {}, ""},
		"expired 4 s ago":              {func(g *pawl.Grant, _ *pawl.Findings) { g.ExpiresAt = at(-4) }, ""},
		"a moment before the end":      {func(g *pawl.Grant, _ *pawl.Findings) { g.ExpiresAt = at(-5).Add(1) }, ""},
		"exactly at the end":           {func(g *pawl.Grant, _ *pawl.Findings) { g.ExpiresAt = at(-5) }, pawl.ReasonExpired},
		"expired 6 s ago":              {func(g *pawl.Grant, _ *pawl.Findings) { g.ExpiresAt = at(-6) }, pawl.ReasonExpired},
		"lives a whole day":            {func(g *pawl.Grant, _ *pawl.Findings) { g.IssuedAt, g.ExpiresAt = at(0), at(0).Add(day) }, ""},
		"lives a moment more":          {func(g *pawl.Grant, _ *pawl.Findings) { g.IssuedAt, g.ExpiresAt = at(0), at(0).Add(day+1) }, pawl.ReasonLifetime},
		"expires far beyond the skew":  {func(g *pawl.Grant, _ *pawl.Findings) { g.IssuedAt, g.ExpiresAt = at(6), at(6).Add(day) }, pawl.ReasonLifetime},
		"issued ahead within the skew": {func(g *pawl.Grant, _ *pawl.Findings) { g.IssuedAt = at(5) }, ""},
		"issued ahead beyond the skew": {func(g *pawl.Grant, _ *pawl.Findings) { g.IssuedAt = at(5).Add(1) }, pawl.ReasonNotYetValid},
		"not before, within leeway":    {func(g *pawl.Grant, _ *pawl.Findings) { g.NotBefore = at(5) }, ""},
		"not before, beyond leeway":    {func(g *pawl.Grant, _ *pawl.Findings) { g.NotBefore = at(5).Add(1) }, pawl.ReasonNotYetValid},
		"for another realm":            {func(g *pawl.Grant, _ *pawl.Findings) { g.Realm = "other" }, pawl.ReasonRealm},
		"for no realm":                 {func(g *pawl.Grant, _ *pawl.Findings) { g.Realm = "" }, pawl.ReasonRealm},
		"unknown leeway version":       {func(g *pawl.Grant, _ *pawl.Findings) { g.LeewayPolicy = "v9" }, pawl.ReasonLeewayUnknown},
		"issued before the restore":    {func(_ *pawl.Grant, f *pawl.Findings) { f.IssuedNotBefore = at(-59) }, pawl.ReasonBeforeEpoch},
		"issued at the restore":        {func(_ *pawl.Grant, f *pawl.Findings) { f.IssuedNotBefore = at(-60) }, ""},
	} {
		a := tokenAdmission(t)
		f := findings(a)
		f.Policy = policy
		c.change(&a.Grant, &f)
		if err := a.Grant.Timely(f); pawl.ReasonOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The rule of admission for every state of key and operation id [A2, A7, A8].
func TestAdmissionJudgement(t *testing.T) {
	another := pawl.NewOperationID()
	same := func(a pawl.Admission) *pawl.Operation { o := a.NewOperation(at(-1)); return &o }
	for name, c := range map[string]struct {
		setup   func(*pawl.Admission, *pawl.Findings)
		already bool
		want    pawl.Reason
	}{
		"unclaimed": {func(*pawl.Admission, *pawl.Findings) {}, false, ""},
		"claimed for this operation": {func(a *pawl.Admission, f *pawl.Findings) {
			f.Grant.Claimed, f.Grant.ClaimedBy, f.Operation = true, a.OperationID, same(*a)
		}, true, ""},
		"the same, its record archived [P3]": {func(a *pawl.Admission, f *pawl.Findings) {
			f.Grant.Claimed, f.Grant.ClaimedBy = true, a.OperationID
		}, false, pawl.ReasonUsed},
		"claimed for another": {func(_ *pawl.Admission, f *pawl.Findings) {
			f.Grant.Claimed, f.Grant.ClaimedBy = true, another
		}, false, pawl.ReasonUsed},
		"revoked": {func(_ *pawl.Admission, f *pawl.Findings) { f.Grant.Claimed = true }, false, pawl.ReasonRevoked},
		"the id is another grant's": {func(a *pawl.Admission, f *pawl.Findings) {
			f.Operation = same(*a)
			f.Operation.Grant.ID = "g-2"
		}, false, pawl.ReasonOperationTaken},
		"the id is this grant's, unclaimed": {func(a *pawl.Admission, f *pawl.Findings) {
			f.Operation = same(*a)
		}, false, pawl.ReasonOperationTaken},
		"again, by a caller whose generation moved on [M5]": {func(a *pawl.Admission, f *pawl.Findings) {
			f.Grant.Claimed, f.Grant.ClaimedBy, f.Operation = true, a.OperationID, same(*a)
			a.Caller.Generation = "8"
		}, false, pawl.ReasonOperationTaken},
		"again, after expiry": {func(a *pawl.Admission, f *pawl.Findings) {
			f.Grant.Claimed, f.Grant.ClaimedBy, f.Operation = true, a.OperationID, same(*a)
			f.Now = at(100_000)
		}, false, pawl.ReasonExpired},
	} {
		for _, form := range []func(testing.TB) pawl.Admission{tokenAdmission, storedAdmission} {
			a := form(t)
			f := findings(a)
			c.setup(&a, &f)
			already, err := a.Judge(f)
			if already != c.already || pawl.ReasonOf(err) != c.want {
				t.Errorf("%v, %s: already %v, %v; want %v, %q", a.Grant.Form, name, already, err, c.already, c.want)
			}
		}
	}
}

// Of a stored grant everything comes from its row [A5]: without the row, and for
// another subject or intent than the row's, nothing is admitted [A2].
func TestStoredGrantComesFromItsRow(t *testing.T) {
	for name, c := range map[string]struct {
		setup func(*pawl.Admission, *pawl.Findings)
		want  pawl.Reason
	}{
		"as issued":            {func(*pawl.Admission, *pawl.Findings) {}, ""},
		"no row":               {func(_ *pawl.Admission, f *pawl.Findings) { f.Grant.Row = nil }, pawl.ReasonGrantUnknown},
		"a token's logged row": {func(_ *pawl.Admission, f *pawl.Findings) { f.Grant.Row.Form = pawl.FormToken }, pawl.ReasonGrantUnknown},
		"for another":          {func(_ *pawl.Admission, f *pawl.Findings) { f.Grant.Row.Subject = "bob" }, pawl.ReasonSubject},
		"of another tenant":    {func(_ *pawl.Admission, f *pawl.Findings) { f.Grant.Row.Tenant = "globex" }, pawl.ReasonSubject},
		"of another amount":    {func(_ *pawl.Admission, f *pawl.Findings) { f.Grant.Row.Intent = intentOf(t, "1.00") }, pawl.ReasonIntent},
		"expired":              {func(_ *pawl.Admission, f *pawl.Findings) { f.Grant.Row.ExpiresAt = at(-5) }, pawl.ReasonExpired},
		"request claims more":  {func(a *pawl.Admission, _ *pawl.Findings) { a.Grant.ExpiresAt = at(-100) }, ""},
		"request claims Realm": {func(a *pawl.Admission, _ *pawl.Findings) { a.Grant.Realm = "other" }, ""},
		"request claims it all": {func(a *pawl.Admission, _ *pawl.Findings) {
			a.Grant = pawl.Grant{Form: pawl.FormStored, Key: a.Grant.Key}
		}, ""},
	} {
		a := storedAdmission(t)
		f := findings(a)
		c.setup(&a, &f)
		if _, err := a.Judge(f); pawl.ReasonOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The record is what was admitted, and nothing of it can be changed from outside.
func TestNewOperation(t *testing.T) {
	a := tokenAdmission(t)
	a.Caller.Scopes = []string{"refund", "credit", "refund"}
	o := a.NewOperation(at(0))
	a.Caller.Scopes[0] = "changed"
	switch {
	case o.ID != a.OperationID, o.Grant != a.Grant.Key, o.Intent != a.Intent:
		t.Errorf("identity: %+v", o)
	case o.Status != pawl.StatusAdmitted, o.Fence != pawl.FirstFence, o.Takeovers != 0:
		t.Errorf("ownership: %+v", o)
	case !o.LeaseUntil.Equal(at(30)), !o.SubmitBy.Equal(at(600)), !o.CreatedAt.Equal(at(0)):
		t.Errorf("times: %+v", o)
	case strings.Join(o.Caller.Scopes, " ") != "credit refund":
		t.Errorf("scopes: %v", o.Caller.Scopes)
	case o.Lock != pawl.LockOf(a.Intent, o.Caller):
		t.Error("the lock is not that of intent and caller")
	}
	clone := o.Clone()
	clone.Caller.Scopes[0] = "changed"
	if o.Caller.Scopes[0] != "credit" {
		t.Error("a clone shares its scopes")
	}
}

// A key is reserved for one lock: the same joins, another is a mismatch that
// shows nothing [B1].
func TestReservationJoins(t *testing.T) {
	r := pawl.Reservation{Key: "order-17", Intent: intentOf(t, "250.00"), Caller: ana(), Lease: 1, SubmissionWindow: 1}
	o := r.NewOperation(at(0))
	if err := r.Join(o); err != nil || o.ID.Version() != 8 || !o.Grant.IsZero() {
		t.Errorf("the same lock: %v; id of version %d, grant %v", err, o.ID.Version(), o.Grant)
	}
	otherIntent, otherGeneration := r, r
	otherIntent.Intent = intentOf(t, "999.00")
	otherGeneration.Caller.Generation = "8"
	for name, v := range map[string]pawl.Reservation{"other intent": otherIntent, "other generation": otherGeneration} {
		if v.OperationID() != o.ID {
			t.Errorf("%s: another operation id", name)
		}
		if err := v.Join(o); !errors.Is(err, pawl.ErrMismatch) {
			t.Errorf("%s: %v, want mismatch", name, err)
		}
	}
	noTenant := r
	noTenant.Scope, noTenant.Caller.Tenant = pawl.ScopeTenant, ""
	noSuch := r
	noSuch.Scope = 9
	for name, v := range map[string]pawl.Reservation{"a tenant's key without tenant": noTenant, "no such scope": noSuch, "zero": {}} {
		if err := v.Validate(); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%s: %v, want malformed", name, err)
		}
	}
}
