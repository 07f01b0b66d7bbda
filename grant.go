package pawl

import (
	"context"
	"time"
)

// Form says how a grant exists. The zero value is no form and never valid.
type Form uint8

// The forms. Both claim the same key in the same table [A2].
const (
	FormToken  Form = iota + 1 // self-contained and signed; the store may hold no row of it
	FormStored                 // a row written at issue; without the row nothing is admitted
)

// String returns the wire name.
func (f Form) String() string {
	switch f {
	case FormToken:
		return "token"
	case FormStored:
		return "stored"
	}
	return "invalid"
}

// ParseForm reads a wire name.
func ParseForm(name string) (Form, error) {
	for _, f := range []Form{FormToken, FormStored} {
		if f.String() == name {
			return f, nil
		}
	}
	return 0, invalid(ReasonMalformed, "no such form of a grant")
}

// Grant is one-time authority for exactly one intent, as verified: every field
// comes from the signed token or the stored row, none from a request [A5].
type Grant struct {
	Form      Form
	Key       GrantKey
	Realm     string // audience: the one store that may admit it [A1]
	Subject   string // the principal it is for
	Tenant    string // the subject's tenant; must equal the caller's
	Authority string // the subject's authentication issuer; empty: the issuer does not tell them apart
	Intent    Intent
	IssuedAt  time.Time
	NotBefore time.Time // zero: none
	ExpiresAt time.Time
	// LeewayPolicy is the version of the leeway the grant was issued under; ""
	// is the first one.
	LeewayPolicy string
}

// Validate reports, as ErrInvalid, what is missing or malformed. It reads no
// clock: the store's decides [A4].
func (g Grant) Validate() error {
	if g.Form != FormToken && g.Form != FormStored {
		return invalid(ReasonMissing, "grant has no form")
	}
	if err := g.Key.Validate(); err != nil {
		return err
	}
	if err := checkID("grant subject", g.Subject); err != nil {
		return err
	}
	optional := []struct{ what, value string }{
		{"grant tenant", g.Tenant}, {"grant authority", g.Authority}, {"grant leeway policy", g.LeewayPolicy},
	}
	for _, o := range optional {
		if err := checkOptionalID(o.what, o.value); err != nil {
			return err
		}
	}
	if g.Key.Namespace != "" && g.Key.Namespace != g.Tenant {
		return invalid(ReasonMalformed, "grant namespace is not its tenant")
	}
	if err := g.Intent.Validate(); err != nil {
		return err
	}
	return g.checkTimes()
}

func (g Grant) checkTimes() error {
	if g.IssuedAt.IsZero() || g.ExpiresAt.IsZero() {
		return invalid(ReasonMissing, "grant has no issue time or no expiry")
	}
	if !inRange(g.IssuedAt) || !inRange(g.ExpiresAt) || (!g.NotBefore.IsZero() && !inRange(g.NotBefore)) {
		return invalid(ReasonMalformed, "grant has a time out of range")
	}
	if !g.ExpiresAt.After(g.IssuedAt) {
		return invalid(ReasonMalformed, "grant expires before it is issued")
	}
	return nil
}

// inRange keeps times where every engine can add days to them: 2000 to 9000.
func inRange(t time.Time) bool { y := t.UTC().Year(); return y >= 2000 && y < 9000 }

// PermitsCaller reports, as ErrRefused, whether the grant is for this caller.
func (g Grant) PermitsCaller(c Caller) error {
	if g.Subject != c.Principal || g.Tenant != c.Tenant || (g.Authority != "" && g.Authority != c.Authority) {
		return &Error{Class: ErrRefused, Reason: ReasonSubject}
	}
	return nil
}

// Verifier turns a presented token into a grant. It checks signature, shape,
// audience and lifetime (expiry minus issue time); whether the grant has
// expired is for the store's clock to say, so a verifier may not be stricter
// [A4]. Errors: ErrInvalid for what is no token or lacks a claim, ErrRefused
// for what is not authentic or not for here, ErrUnavailable when a key set
// cannot be read; never a partial Grant beside a nil error.
type Verifier interface {
	Verify(ctx context.Context, token string) (Grant, error)
}

// IssuanceVerifier is a Verifier that can prove the issue of a grant alone:
// as Verify, without the possession that a bound grant needs for its use. What
// it returns permits nothing but a revocation [R2], and a gate asks it for
// nothing else.
type IssuanceVerifier interface {
	VerifyIssuance(ctx context.Context, token string) (Grant, error)
}
