package jwtgrant

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"
	"github.com/pawl-go/pawl"
)

// IssuerOptions are what an issuer may be told. Nil is all defaults.
type IssuerOptions struct {
	// TenantScoped: see [TrustedIssuer], whose declaration must be the same.
	TenantScoped bool
	// Timings give MaxGrantLifetime; nil is DefaultTimings. They must be those of
	// the stores that admit its grants.
	Timings *pawl.Timings
}

// Issuer signs grants in its name. It may be used by many goroutines at once.
type Issuer struct {
	name         string
	keys         SigningKeys
	tenantScoped bool
	timings      *pawl.Timings
}

// NewIssuer returns an issuer that signs with whatever key keys names at the
// time: a [SigningKey], or a [KeyRing] for rotation. Errors: ErrMisconfigured.
func NewIssuer(name string, keys SigningKeys, opts *IssuerOptions) (*Issuer, error) {
	var o IssuerOptions
	if opts != nil {
		o = *opts
	}
	if pawl.CheckID("issuer", name) != nil {
		return nil, misconfigured("the issuer's name is empty or malformed")
	}
	if keys == nil {
		return nil, misconfigured("the issuer has no keys")
	}
	lifetime, err := maxLifetime(o.Timings)
	if err != nil {
		return nil, err
	}
	return &Issuer{name: name, keys: keys, tenantScoped: o.TenantScoped, timings: &pawl.Timings{MaxGrantLifetime: lifetime}}, nil
}

// Name returns the issuer's name, which is iss in its tokens.
func (i *Issuer) Name() string { return i.name }

// Namespace returns the namespace of its grants for a tenant: what
// [pawl.Issuance] and [pawl.GrantKey] need.
func (i *Issuer) Namespace(tenant string) string {
	if i.tenantScoped {
		return tenant
	}
	return ""
}

// Sign writes the token of a grant, usually of the answer of a store's Issue: its
// times are the store's. Signing the same grant again is not another grant. The
// token is verified before it is returned, so that nothing is handed out that
// would be refused. Errors: ErrInvalid for what no verifier would accept,
// ErrMisconfigured and ErrUnavailable for the key.
func (i *Issuer) Sign(g pawl.Grant) (string, error) { return i.sign(g, "") }

// SignBound is Sign for a holder of a key: the token is worth nothing without a
// proof by that key (RFC 9449).
func (i *Issuer) SignBound(g pawl.Grant, holder Thumbprint) (string, error) {
	if holder.check() != nil {
		return "", malformed("the holder's thumbprint is not one of SHA-256")
	}
	return i.sign(g, holder)
}

// Issue makes and signs a grant without a store, at the time now of the caller's
// clock: nothing remembers it, so a lost answer is not repeated but issued anew,
// and it is revoked by the token alone [R2]. Of r, RequestID is not used; an empty
// Form, Issuer, Namespace or GrantID is filled in. Errors as Sign.
func (i *Issuer) Issue(realm string, now time.Time, r pawl.Issuance) (string, pawl.Grant, error) {
	if r.Form == 0 {
		r.Form = pawl.FormToken
	}
	if r.Issuer == "" {
		r.Issuer = i.name
	}
	if r.Namespace == "" {
		r.Namespace = i.Namespace(r.Tenant)
	}
	if r.GrantID == "" {
		r.GrantID = pawl.NewOperationID().String()
	}
	g := r.Grant(realm, now)
	token, err := i.Sign(g)
	if err != nil {
		return "", pawl.Grant{}, err
	}
	return token, g, nil
}

func (i *Issuer) sign(g pawl.Grant, holder Thumbprint) (string, error) {
	if err := i.check(g); err != nil {
		return "", err
	}
	key, err := i.keys.SigningKey()
	if err != nil {
		return "", err
	}
	claims, err := marshal(g, holder)
	if err != nil {
		return "", malformed("the grant cannot be written as claims")
	}
	token, err := key.sign(TokenType, claims, nil)
	if err != nil {
		return "", err
	}
	if err := i.prove(g, holder, token, key); err != nil {
		return "", err
	}
	return token, nil
}

// check reports what cannot be said in a token.
func (i *Issuer) check(g pawl.Grant) error {
	if err := g.Validate(); err != nil {
		return err
	}
	if g.Form != pawl.FormToken {
		return malformed("the grant is not of token form")
	}
	if g.Key.Issuer != i.name || g.Key.Namespace != i.Namespace(g.Tenant) {
		return malformed("the grant is another issuer's, or of another namespace")
	}
	for _, t := range []time.Time{g.IssuedAt, g.NotBefore, g.ExpiresAt} {
		if t.Nanosecond() != 0 {
			return malformed("the grant's times are not whole seconds")
		}
	}
	return pawl.CheckID("realm", g.Realm)
}

// prove verifies what was signed: whatever no verifier would accept is not
// handed out, and neither is what a faulty signer made.
func (i *Issuer) prove(g pawl.Grant, holder Thumbprint, token string, key SigningKey) error {
	set, err := NewKeySet(key.Public())
	if err != nil {
		return err
	}
	trusted := []TrustedIssuer{{Name: i.name, Keys: set, TenantScoped: i.tenantScoped}}
	v, err := NewVerifier(g.Realm, trusted, &VerifierOptions{Timings: i.timings})
	if err != nil {
		return err
	}
	got, bound, err := v.verify(context.Background(), token)
	if errors.Is(err, pawl.ErrRefused) {
		return misconfigured("the signing key's signatures are not its own")
	}
	if err != nil {
		return err
	}
	if !same(got, g) || bound != holder {
		return malformed("the grant does not survive signing")
	}
	return nil
}

// same compares grants; times are moments, whatever their zone.
func same(a, b pawl.Grant) bool {
	moments := a.IssuedAt.Equal(b.IssuedAt) && a.NotBefore.Equal(b.NotBefore) && a.ExpiresAt.Equal(b.ExpiresAt)
	a.IssuedAt, a.NotBefore, a.ExpiresAt = b.IssuedAt, b.NotBefore, b.ExpiresAt
	return moments && a == b
}

// sign writes a compact token. embedded, where not nil, is put into the header as
// the key to verify it with, as a proof of possession needs it.
func (k SigningKey) sign(typ string, payload []byte, embedded *jose.JSONWebKey) (string, error) {
	if k.signer == nil {
		return "", misconfigured("there is no signing key")
	}
	options := (&jose.SignerOptions{}).WithType(jose.ContentType(typ))
	if embedded != nil {
		options = options.WithHeader("jwk", embedded)
	} else {
		options = options.WithHeader("kid", k.public.id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.SignatureAlgorithm(k.Algorithm()), Key: salted{OpaqueSigner: cryptosigner.Opaque(k.signer), signer: k.signer},
	}, options)
	if err != nil {
		return "", misconfigured("the signing key cannot be used")
	}
	s, err := signer.Sign(payload)
	if err != nil {
		return "", unreachable("the signing key did not sign", err)
	}
	compact, err := s.CompactSerialize()
	if err != nil {
		return "", misconfigured("the signed token cannot be written")
	}
	return compact, nil
}

// salted signs PS256 with a salt of the digest's size, as RFC 7518 wants it and as
// others check it; the library alone would take the longest salt that fits.
type salted struct {
	jose.OpaqueSigner
	signer crypto.Signer
}

// SignPayload implements jose.OpaqueSigner.
func (s salted) SignPayload(payload []byte, a jose.SignatureAlgorithm) ([]byte, error) {
	if a != jose.PS256 {
		return s.OpaqueSigner.SignPayload(payload, a)
	}
	digest := sha256.Sum256(payload)
	return s.signer.Sign(rand.Reader, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256})
}
