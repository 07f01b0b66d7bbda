package jwtgrant

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl"
)

// TrustedIssuer is whose grants a verifier accepts. Everything here is the
// verifier's own configuration: nothing of it comes from a token [A5].
type TrustedIssuer struct {
	Name string // compared with iss byte by byte
	Keys KeySource
	// TenantScoped declares that the issuer's ids are unique only within a tenant:
	// the tenant becomes the namespace of its grants' keys. It is never changed
	// while grants of the issuer live, for it would give each a second key.
	TenantScoped bool
	Kinds        []pawl.Kind // for which it may issue; empty: every kind
	Tenants      []string    // for which it may issue; empty: every tenant, and none
}

// VerifierOptions are what a verifier may be told. Nil is all defaults.
type VerifierOptions struct {
	// Timings give MaxGrantLifetime; nil is DefaultTimings. They must be the gate's.
	Timings *pawl.Timings
	// Now is the clock that judges how old a proof of possession is, and nothing
	// else; nil is the wall clock. Grants are judged by the store's clock [A4].
	Now func() time.Time
}

// Verifier turns tokens into grants for one realm. It may be used by many
// goroutines at once. The zero value trusts nobody.
type Verifier struct {
	realm       string
	issuers     map[string]TrustedIssuer
	maxLifetime time.Duration
	now         func() time.Time
}

var _ pawl.Verifier = (*Verifier)(nil)

// Realm returns the realm of the one store whose grants it verifies. A gate on
// another store refuses to start with it [A1].
func (v *Verifier) Realm() string { return v.realm }

// NewVerifier returns a verifier for the store named realm, which trusts exactly
// the issuers given. Errors: ErrMisconfigured for an empty or malformed realm or
// name, two issuers of one name, an issuer without keys, or none at all.
func NewVerifier(realm string, issuers []TrustedIssuer, opts *VerifierOptions) (*Verifier, error) {
	var o VerifierOptions
	if opts != nil {
		o = *opts
	}
	if pawl.CheckID("realm", realm) != nil {
		return nil, misconfigured("the realm is empty or malformed")
	}
	if len(issuers) == 0 {
		return nil, misconfigured("no issuer is trusted")
	}
	lifetime, err := maxLifetime(o.Timings)
	if err != nil {
		return nil, err
	}
	v := &Verifier{realm: realm, issuers: make(map[string]TrustedIssuer, len(issuers)), maxLifetime: lifetime, now: o.Now}
	if v.now == nil {
		v.now = time.Now
	}
	for _, i := range issuers {
		if pawl.CheckID("issuer", i.Name) != nil || i.Keys == nil {
			return nil, misconfigured("a trusted issuer has no name, a malformed one, or no keys")
		}
		if _, twice := v.issuers[i.Name]; twice {
			return nil, misconfigured("two trusted issuers have one name")
		}
		i.Kinds, i.Tenants = slices.Clone(i.Kinds), slices.Clone(i.Tenants)
		v.issuers[i.Name] = i
	}
	return v, nil
}

func maxLifetime(t *pawl.Timings) (time.Duration, error) {
	if t == nil {
		return pawl.DefaultTimings().MaxGrantLifetime, nil
	}
	if t.MaxGrantLifetime <= 0 {
		return 0, misconfigured("MaxGrantLifetime is not positive")
	}
	return t.MaxGrantLifetime, nil
}

// Verify implements pawl.Verifier. It checks type, algorithm, key, signature,
// shape, audience and expiry minus issue time, in this order, and no clock [A4].
// A token bound to its holder's key is refused unless ctx brings a proof that
// holds, see [ContextWithProof].
//
// Errors: ErrInvalid for what is no token or lacks a claim, ErrRefused for what
// is not authentic or not for here, ErrUnavailable when the key cannot be looked
// up now.
func (v *Verifier) Verify(ctx context.Context, token string) (pawl.Grant, error) {
	p, _ := ctx.Value(proofKey{}).(Proof)
	return v.VerifyWithProof(ctx, token, p)
}

// verify does all but the proof of possession: bound is the key that has to give
// it, empty for none.
func (v *Verifier) verify(ctx context.Context, token string) (pawl.Grant, Thumbprint, error) {
	s, err := parse(token, TokenType)
	if err != nil {
		return pawl.Grant{}, "", err
	}
	issuer, err := v.issuer(s)
	if err != nil {
		return pawl.Grant{}, "", err
	}
	key, err := issuer.Keys.Key(ctx, s.kid)
	if err != nil {
		return pawl.Grant{}, "", err
	}
	if err := s.verify(key); err != nil {
		return pawl.Grant{}, "", err
	}
	bound, err := s.claims.boundTo()
	if err != nil {
		return pawl.Grant{}, "", err
	}
	grant, err := v.grant(s.claims, issuer)
	if err != nil {
		return pawl.Grant{}, "", err
	}
	return grant, bound, nil
}

// issuer reads whom the token claims to be from, to know whose keys to try.
func (v *Verifier) issuer(s signed) (TrustedIssuer, error) {
	name, err := s.claims.id("iss", true)
	if err != nil {
		return TrustedIssuer{}, err
	}
	issuer, ok := v.issuers[name]
	if !ok {
		return TrustedIssuer{}, refused(pawl.ReasonIssuerUnknown, "no such issuer is trusted")
	}
	return issuer, nil
}

// grant reads an authentic token's claims and holds them against what is
// trusted here. A partial grant never leaves it.
func (v *Verifier) grant(m members, issuer TrustedIssuer) (pawl.Grant, error) {
	g, err := m.grant()
	if err != nil {
		return pawl.Grant{}, err
	}
	if issuer.TenantScoped {
		g.Key.Namespace = g.Tenant
	}
	if err := g.Validate(); err != nil {
		return pawl.Grant{}, err
	}
	if g.ExpiresAt.Sub(g.IssuedAt) > v.maxLifetime {
		return pawl.Grant{}, invalid(pawl.ReasonLifetime, "the token's lifetime is over the maximum")
	}
	if g.Realm != v.realm {
		return pawl.Grant{}, refused(pawl.ReasonRealm, "the token is for another store")
	}
	if !permits(issuer.Kinds, g.Intent.Kind) || !permits(issuer.Tenants, g.Tenant) {
		return pawl.Grant{}, refused(pawl.ReasonIssuerUnknown, "the issuer is not trusted for this kind or tenant")
	}
	return g, nil
}

func permits[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}
