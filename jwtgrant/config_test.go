package jwtgrant_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

func wantMisconfigured(t *testing.T, name string, err error) {
	t.Helper()
	if !errors.Is(err, pawl.ErrMisconfigured) || pawl.ReasonOf(err) != pawl.ReasonUnsafeKeys {
		t.Errorf("%s: got error %v, want misconfigured", name, err)
	}
}

func TestVerifierIsConfiguredOrNotMade(t *testing.T) {
	set, err := jwtgrant.NewKeySet(publicKey(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	one := jwtgrant.TrustedIssuer{Name: issuerName, Keys: set}
	for name, row := range map[string]struct {
		realm   string
		issuers []jwtgrant.TrustedIssuer
		opts    *jwtgrant.VerifierOptions
	}{
		"no realm":            {"", []jwtgrant.TrustedIssuer{one}, nil},
		"malformed realm":     {"a\nb", []jwtgrant.TrustedIssuer{one}, nil},
		"nobody trusted":      {realm, nil, nil},
		"no name":             {realm, []jwtgrant.TrustedIssuer{{Keys: set}}, nil},
		"no keys":             {realm, []jwtgrant.TrustedIssuer{{Name: issuerName}}, nil},
		"one name twice":      {realm, []jwtgrant.TrustedIssuer{one, one}, nil},
		"no maximum lifetime": {realm, []jwtgrant.TrustedIssuer{one}, &jwtgrant.VerifierOptions{Timings: &pawl.Timings{}}},
	} {
		v, err := jwtgrant.NewVerifier(row.realm, row.issuers, row.opts)
		wantMisconfigured(t, name, err)
		if v != nil {
			t.Errorf("%s: there is a verifier", name)
		}
	}
	for name, i := range map[string]struct {
		name string
		keys jwtgrant.SigningKeys
		opts *jwtgrant.IssuerOptions
	}{
		"no name": {"", newKey(t, jwtgrant.EdDSA), nil}, "no keys": {issuerName, nil, nil},
		"no maximum lifetime": {issuerName, newKey(t, jwtgrant.EdDSA), &jwtgrant.IssuerOptions{Timings: &pawl.Timings{}}},
	} {
		_, err := jwtgrant.NewIssuer(i.name, i.keys, i.opts)
		wantMisconfigured(t, name, err)
	}
}

// TestZeroValues fail closed.
func TestZeroValues(t *testing.T) {
	var v jwtgrant.Verifier
	if _, err := v.Verify(t.Context(), forged(nil)); !errors.Is(err, pawl.ErrRefused) {
		t.Errorf("a zero verifier: %v", err)
	}
	var set jwtgrant.KeySet
	for _, kid := range []string{"", "key-1"} {
		if _, err := set.Key(t.Context(), kid); !errors.Is(err, pawl.ErrRefused) {
			t.Errorf("a zero key set: %v", err)
		}
	}
	_, err := newIssuer(t, jwtgrant.SigningKey{}, nil).Sign(credit(t))
	wantMisconfigured(t, "a zero signing key", err)
	_, err = jwtgrant.SigningKey{}.Prove("token", "GET", called, noon())
	wantMisconfigured(t, "a zero holder's key", err)
	_, err = jwtgrant.NewKeySet(jwtgrant.PublicKey{})
	wantMisconfigured(t, "a zero public key", err)
	if got := (jwtgrant.PublicKey{}).Thumbprint(); got != "" {
		t.Errorf("a zero key's thumbprint is %q", got)
	}
}

func TestKeysThatFitNothing(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	bits := func(n uint) *rsa.PublicKey { return &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), n-1), E: 65537} }
	for name, row := range map[string]struct {
		key crypto.PublicKey
		a   jwtgrant.Algorithm
	}{
		"nothing": {nil, ""}, "a symmetric key": {[]byte("secret"), ""}, "a private key": {edKey(1), ""}, "another curve": {curve.Public(), ""},
		"a short RSA key": {bits(2047), ""}, "a long RSA key": {bits(8193), ""}, "an empty RSA key": {&rsa.PublicKey{}, ""},
		"a cut key": {ed25519.PublicKey("short"), ""}, "no pointer": {(*ecdsa.PublicKey)(nil), ""},
		"EdDSA with P-256": {good.Public(), jwtgrant.EdDSA}, "ES256 with Ed25519": {edKey(1).Public(), jwtgrant.ES256},
		"HS256": {edKey(1).Public(), "HS256"}, "none": {edKey(1).Public(), "none"}, "RS256 with P-256": {good.Public(), jwtgrant.RS256},
		"PS512": {bits(2048), "PS512"},
	} {
		_, err := jwtgrant.NewPublicKey("k", row.key, row.a)
		wantMisconfigured(t, name, err)
	}
	for _, id := range []string{"a\nb", strings.Repeat("k", 256)} {
		_, err := jwtgrant.NewPublicKey(id, edKey(1).Public(), "")
		wantMisconfigured(t, "a malformed id", err)
	}
	_, err = jwtgrant.NewSigningKey("k", nil, jwtgrant.EdDSA)
	wantMisconfigured(t, "no signer", err)
	_, err = jwtgrant.NewSigningKey("k", edKey(1), "")
	wantMisconfigured(t, "no algorithm", err)
	_, err = jwtgrant.GenerateKey("HS256")
	wantMisconfigured(t, "a symmetric algorithm", err)
}

// TestKeyKeepsItsAlgorithm has an RSA key, whose type fits two algorithms: where
// it is for one of them, the other is refused, signed by the very key or not.
func TestKeyKeepsItsAlgorithm(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, signed := range []jwtgrant.Algorithm{jwtgrant.PS256, jwtgrant.RS256} {
		k, err := jwtgrant.NewSigningKey("k", private, signed)
		if err != nil {
			t.Fatal(err)
		}
		token, err := newIssuer(t, k, nil).Sign(credit(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range []jwtgrant.Algorithm{"", jwtgrant.PS256, jwtgrant.RS256} {
			public, err := jwtgrant.NewPublicKey("k", private.Public(), declared)
			if err != nil {
				t.Fatal(err)
			}
			got, err := trusting(t, public).Verify(t.Context(), token)
			if declared == "" || declared == signed {
				if err != nil {
					t.Errorf("%s under a key for %q: %v", signed, declared, err)
				}
				continue
			}
			wantRefusal(t, token, got, err, refused, pawl.ReasonSignature)
		}
	}
}

// TestSaltOfPS256 checks as strictly as others do: RFC 7518 wants a salt of the
// digest's size.
func TestSaltOfPS256(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	k, err := jwtgrant.NewSigningKey("k", private, jwtgrant.PS256)
	if err != nil {
		t.Fatal(err)
	}
	token, err := newIssuer(t, k, nil).Sign(credit(t))
	if err != nil {
		t.Fatal(err)
	}
	end := strings.LastIndex(token, ".")
	digest := sha256.Sum256([]byte(token[:end]))
	options := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
	if err := rsa.VerifyPSS(&private.PublicKey, crypto.SHA256, digest[:], []byte(unb64(token[end+1:])), options); err != nil {
		t.Error(err)
	}
}

// TestNothingIsSignedThatWouldBeRefused asks for tokens that no verifier of this
// realm accepts.
func TestNothingIsSignedThatWouldBeRefused(t *testing.T) {
	i := newIssuer(t, newKey(t, jwtgrant.EdDSA), nil)
	for name, change := range map[string]func(*pawl.Grant){
		"a stored grant":              func(g *pawl.Grant) { g.Form = pawl.FormStored },
		"no form":                     func(g *pawl.Grant) { g.Form = 0 },
		"another issuer":              func(g *pawl.Grant) { g.Key.Issuer = "other" },
		"a namespace":                 func(g *pawl.Grant) { g.Key.Namespace = g.Tenant },
		"no id":                       func(g *pawl.Grant) { g.Key.ID = "" },
		"a long id":                   func(g *pawl.Grant) { g.Key.ID = strings.Repeat("x", 256) },
		"no subject":                  func(g *pawl.Grant) { g.Subject = "" },
		"no realm":                    func(g *pawl.Grant) { g.Realm = "" },
		"a control character":         func(g *pawl.Grant) { g.Tenant = "a\tb" },
		"invalid UTF-8":               func(g *pawl.Grant) { g.Subject = "a\xff" },
		"a noncharacter":              func(g *pawl.Grant) { g.Subject = "a\uffff" },
		"no kind":                     func(g *pawl.Grant) { g.Intent.Kind = "" },
		"no details":                  func(g *pawl.Grant) { g.Intent.Details = pawl.Details{} },
		"details not as they say":     func(g *pawl.Grant) { g.Intent.Details = pawl.StoredDetails(`{ "a": 1.0 }`) },
		"details that are not JSON":   func(g *pawl.Grant) { g.Intent.Details = pawl.StoredDetails(`{`) },
		"no expiry":                   func(g *pawl.Grant) { g.ExpiresAt = time.Time{} },
		"expiry before issue":         func(g *pawl.Grant) { g.ExpiresAt = g.IssuedAt.Add(-time.Second) },
		"a long life":                 func(g *pawl.Grant) { g.ExpiresAt = g.IssuedAt.Add(24*time.Hour + time.Second) },
		"half a second":               func(g *pawl.Grant) { g.IssuedAt = g.IssuedAt.Add(time.Second / 2) },
		"half a second of not-before": func(g *pawl.Grant) { g.NotBefore = g.NotBefore.Add(time.Second / 2) },
		"the year 9000":               func(g *pawl.Grant) { g.IssuedAt = g.IssuedAt.AddDate(7000, 0, 0); g.ExpiresAt = g.IssuedAt.Add(1) },
	} {
		g := credit(t)
		change(&g)
		token, err := i.Sign(g)
		if !errors.Is(err, pawl.ErrInvalid) || token != "" {
			t.Errorf("%s: got a token %v, error %v, want invalid", name, token != "", err)
		}
	}
	for _, holder := range []jwtgrant.Thumbprint{"", "x", jwtgrant.Thumbprint(b64(make([]byte, 31)))} {
		if token, err := i.SignBound(credit(t), holder); !errors.Is(err, pawl.ErrInvalid) || token != "" {
			t.Errorf("bound to %q: %v", holder, err)
		}
	}
}

// brokenSigner signs nothing, or something else.
type brokenSigner struct {
	crypto.Signer
	err error
}

func (b brokenSigner) Sign(r io.Reader, _ []byte, o crypto.SignerOpts) ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.Signer.Sign(r, []byte("something else"), o)
}

func TestFaultySigner(t *testing.T) {
	for class, signer := range map[pawl.Class]brokenSigner{
		pawl.ErrUnavailable: {edKey(1), errors.New("the module is away")}, pawl.ErrMisconfigured: {edKey(1), nil},
	} {
		k, err := jwtgrant.NewSigningKey("", signer, jwtgrant.EdDSA)
		if err != nil {
			t.Fatal(err)
		}
		if token, err := newIssuer(t, k, nil).Sign(credit(t)); !errors.Is(err, class) || token != "" {
			t.Errorf("got a token %v, error %v, want %v", token != "", err, class)
		}
	}
}

func TestIssueWithoutAStore(t *testing.T) {
	k := newKey(t, jwtgrant.EdDSA)
	i := newIssuer(t, k, &jwtgrant.IssuerOptions{TenantScoped: true})
	ask := pawl.Issuance{Subject: "alice", Tenant: "acme", Intent: credit(t).Intent, Lifetime: time.Minute}
	token, g, err := i.Issue(realm, noon().Add(time.Second/3), ask)
	if err != nil {
		t.Fatal(err)
	}
	if !g.IssuedAt.Equal(noon()) || !g.ExpiresAt.Equal(noon().Add(time.Minute)) || g.Key.Namespace != "acme" || g.Key.ID == "" {
		t.Errorf("issued %+v", g)
	}
	set, err := jwtgrant.NewKeySet(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	v, err := jwtgrant.NewVerifier(realm, []jwtgrant.TrustedIssuer{{Name: issuerName, Keys: set, TenantScoped: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Verify(t.Context(), token); err != nil || got.Key != g.Key {
		t.Errorf("verified %v, error %v", got.Key, err)
	}
	for name, change := range map[string]func(*pawl.Issuance){
		"no lifetime":      func(a *pawl.Issuance) { a.Lifetime = 0 },
		"half a second":    func(a *pawl.Issuance) { a.Lifetime = time.Second / 2 },
		"too long":         func(a *pawl.Issuance) { a.Lifetime = 25 * time.Hour },
		"a stored grant":   func(a *pawl.Issuance) { a.Form = pawl.FormStored },
		"another's name":   func(a *pawl.Issuance) { a.Issuer = "other" },
		"no subject":       func(a *pawl.Issuance) { a.Subject = "" },
		"another's tenant": func(a *pawl.Issuance) { a.Namespace = "globex" },
	} {
		wrong := ask
		change(&wrong)
		if token, _, err := i.Issue(realm, noon(), wrong); !errors.Is(err, pawl.ErrInvalid) || token != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLargestGrant has every field at its limit, full of characters that JSON
// escapes, under the largest key: its token is within MaxToken.
func TestLargestGrant(t *testing.T) {
	full := strings.Repeat(`"`, pawl.MaxID)
	g := credit(t)
	g.Key.ID, g.Subject, g.Tenant, g.Authority, g.LeewayPolicy = full, full, full, full, full
	g.Intent.Kind = pawl.Kind(strings.Repeat("k", pawl.MaxKind))
	g.Intent.Details = details(t, `{"a":"`+strings.Repeat("a", pawl.MaxDetails-8)+`"}`)
	key, err := jwtgrant.NewSigningKey(full, edKey(1), jwtgrant.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	token, err := newIssuer(t, key, nil).Sign(g)
	if err != nil {
		t.Fatal(err)
	}
	const largestSignature = 8192 / 8 * 4 / 3
	if size := len(token) + largestSignature; size > jwtgrant.MaxToken {
		t.Errorf("the largest token may have %d bytes", size)
	}
}

// TestSecretsAreNotPrinted prints what holds keys in every way.
func TestSecretsAreNotPrinted(t *testing.T) {
	k, err := jwtgrant.NewSigningKey("key-1", edKey(1), jwtgrant.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	p := jwtgrant.Proof{JWT: secret}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, k); text != "signing key key-1" && text != "jwtgrant.SigningKey{key-1}" {
			t.Errorf("%s prints %s", format, text)
		}
		if text := fmt.Sprintf(format, p); strings.Contains(text, secret) {
			t.Errorf("%s prints %s", format, text)
		}
	}
}
