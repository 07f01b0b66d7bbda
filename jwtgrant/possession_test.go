package jwtgrant_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

// atNoon returns a verifier whose wall clock, which judges proofs, shows noon.
func atNoon(t testing.TB, keys ...jwtgrant.PublicKey) *jwtgrant.Verifier {
	t.Helper()
	set, err := jwtgrant.NewKeySet(keys...)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jwtgrant.NewVerifier(realm, []jwtgrant.TrustedIssuer{{Name: issuerName, Keys: set}},
		&jwtgrant.VerifierOptions{Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const (
	called = "https://pay.example/v1/admissions"
	method = "POST"
)

func TestBoundGrant(t *testing.T) {
	for _, a := range []jwtgrant.Algorithm{jwtgrant.EdDSA, jwtgrant.ES256, jwtgrant.PS256} {
		t.Run(string(a), func(t *testing.T) {
			k, holder := newKey(t, jwtgrant.EdDSA), newKey(t, a)
			v := atNoon(t, k.Public())
			token, err := newIssuer(t, k, nil).SignBound(credit(t), holder.Public().Thumbprint())
			if err != nil {
				t.Fatal(err)
			}
			got, err := v.Verify(t.Context(), token)
			wantRefusal(t, token, got, err, refused, pawl.ReasonPossession)

			proof, err := holder.Prove(token, method, called+"?x=1#y", noon())
			if err != nil {
				t.Fatal(err)
			}
			p := jwtgrant.Proof{JWT: proof, Method: method, URL: "HTTPS://PAY.example:443/v1/admissions?other=1"}
			got, err = v.VerifyWithProof(t.Context(), token, p)
			if err != nil {
				t.Fatal(err)
			}
			sameGrant(t, got, credit(t))
			through, err := v.Verify(jwtgrant.ContextWithProof(t.Context(), p), token)
			if err != nil || through != got {
				t.Errorf("with the proof in the context: %v", err)
			}
			if proven, err := v.VerifyIssuance(t.Context(), token); err != nil || proven != got {
				t.Errorf("proof of issue: %v", err)
			}
		})
	}
}

// proofClaims and proofHeader are of a proof that holds for token.
func proofClaims(token string) fields {
	hash := sha256.Sum256([]byte(token))
	return fields{"jti": "p-" + secret, "htm": method, "htu": called, "iat": noon().Unix(), "ath": b64(hash[:])}
}

func proofHeader(n byte) fields {
	return fields{"alg": "EdDSA", "typ": "dpop+jwt", "jwk": literal(`{"kty":"OKP","crv":"Ed25519","x":"` + b64(edKey(n)[32:]) + `"}`)}
}

func TestProofs(t *testing.T) {
	k := newKey(t, jwtgrant.EdDSA)
	v := atNoon(t, k.Public())
	holder, err := jwtgrant.NewPublicKey("", edKey(7).Public(), "")
	if err != nil {
		t.Fatal(err)
	}
	i := newIssuer(t, k, nil)
	token, err := i.SignBound(credit(t), holder.Thumbprint())
	if err != nil {
		t.Fatal(err)
	}
	claims := func(changes fields) string {
		return compact(7, proofHeader(7).with(nil), proofClaims(token).with(changes))
	}
	header := func(changes fields) string {
		return compact(7, proofHeader(7).with(changes), proofClaims(token).with(nil))
	}
	private := literal(`{"kty":"OKP","crv":"Ed25519","x":"` + b64(edKey(7)[32:]) + `","d":"` + b64(edKey(7)[:32]) + `"}`)
	for name, proof := range map[string]string{
		"by another key":             compact(8, proofHeader(8).with(nil), proofClaims(token).with(nil)),
		"by another key, in my name": compact(8, proofHeader(7).with(nil), proofClaims(token).with(nil)),
		"for another token":          claims(fields{"ath": b64(make([]byte, 32))}),
		"for no token":               claims(fields{"ath": nil}),
		"for another method":         claims(fields{"htm": "GET"}),
		"method in small letters":    claims(fields{"htm": "post"}),
		"for no method":              claims(fields{"htm": nil}),
		"for another path":           claims(fields{"htu": called + "/"}),
		"for another host":           claims(fields{"htu": strings.Replace(called, "pay", "api", 1)}),
		"for another port":           claims(fields{"htu": strings.Replace(called, ".example", ".example:444", 1)}),
		"for another scheme":         claims(fields{"htu": strings.Replace(called, "https", "http", 1)}),
		"for no address":             claims(fields{"htu": nil}),
		"no jti":                     claims(fields{"jti": nil}),
		"empty jti":                  claims(fields{"jti": ""}),
		"no iat":                     claims(fields{"iat": nil}),
		"iat a float":                claims(fields{"iat": float64(noon().Unix()) + 0.5}),
		"too old":                    claims(fields{"iat": noon().Unix() - 61}),
		"from the future":            claims(fields{"iat": noon().Unix() + 6}),
		"a private key":              header(fields{"jwk": private}),
		"no key":                     header(fields{"jwk": nil}),
		"a symmetric key":            header(fields{"jwk": literal(`{"kty":"oct","k":"c2VjcmV0"}`)}),
		"another typ":                header(fields{"typ": "jwt"}),
		"typ of a grant":             header(fields{"typ": jwtgrant.TokenType}),
		"alg none":                   header(fields{"alg": "none"}),
		"HS256":                      compactHMAC(edKey(7).Public(), proofHeader(7).with(fields{"alg": "HS256"}), proofClaims(token).with(nil)),
		"crit":                       header(fields{"crit": literal(`["x"]`)}),
		"the token itself":           token,
		"no JWT":                     "x",
		"nothing":                    "",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := v.VerifyWithProof(t.Context(), token, jwtgrant.Proof{JWT: proof, Method: method, URL: called})
			wantRefusal(t, token+"."+proof, got, err, refused, pawl.ReasonPossession)
		})
	}
	for name, proof := range map[string]string{
		"as it should be": claims(nil), "the oldest": claims(fields{"iat": noon().Unix() - 60}), "the youngest": claims(fields{"iat": noon().Unix() + 5}),
	} {
		if _, err := v.VerifyWithProof(t.Context(), token, jwtgrant.Proof{JWT: proof, Method: method, URL: called}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, p := range map[string]jwtgrant.Proof{
		"no method": {JWT: claims(fields{"htm": ""}), URL: called}, "no address": {JWT: claims(fields{"htu": ""}), Method: method},
		"no plain address": {JWT: claims(fields{"htu": "pay:x"}), Method: method, URL: "pay:x"},
	} {
		got, err := v.VerifyWithProof(t.Context(), token, p)
		wantRefusal(t, name, got, err, refused, pawl.ReasonPossession)
	}
}

// TestOtherBindings has tokens bound in ways that cannot be checked here: never
// bearer tokens.
func TestOtherBindings(t *testing.T) {
	v := trusting(t, publicKey(t, 1))
	rows := []refusal{}
	for _, cnf := range []string{
		`{}`, `null`, `"x"`, `[]`, `{"jkt":""}`, `{"jkt":null}`, `{"jkt":1}`, `{"jkt":"AAAA"}`, `{"kid":"x"}`,
		`{"x5t#S256":"` + b64(make([]byte, 32)) + `"}`, `{"jkt":"` + b64(make([]byte, 32)) + `","x":1}`,
		`{"jkt":"` + b64(make([]byte, 32)) + `="}`, `{"jkt":"` + b64(make([]byte, 33)) + `"}`, `{"jkt":"` + b64(make([]byte, 32)) + `"}`,
	} {
		rows = append(rows, refusal{cnf, forged(fields{"cnf": literal(cnf)}), refused, pawl.ReasonPossession})
	}
	testRefusals(t, v, rows)
}

// TestBoundToMore has a token that is bound to the holder's key and to something
// else, which nobody here can check: the proof for the one is not enough.
func TestBoundToMore(t *testing.T) {
	v := atNoon(t, publicKey(t, 1))
	holder, err := jwtgrant.NewSigningKey("", edKey(7), jwtgrant.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	jkt := `"jkt":"` + string(holder.Public().Thumbprint()) + `"`
	for cnf, ok := range map[string]bool{`{` + jkt + `}`: true, `{` + jkt + `,"x5t#S256":"` + b64(make([]byte, 32)) + `"}`: false} {
		token := forged(fields{"cnf": literal(cnf)})
		proof, err := holder.Prove(token, method, called, noon())
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.VerifyWithProof(t.Context(), token, jwtgrant.Proof{JWT: proof, Method: method, URL: called})
		if ok && err != nil {
			t.Errorf("%s: %v", cnf, err)
		}
		if !ok {
			wantRefusal(t, token, got, err, refused, pawl.ReasonPossession)
		}
	}
}

// TestBearerWithProof has a token that needs no proof: one that came along does
// not matter.
func TestBearerWithProof(t *testing.T) {
	v := trusting(t, publicKey(t, 1))
	if _, err := v.VerifyWithProof(t.Context(), forged(nil), jwtgrant.Proof{JWT: "x"}); err != nil {
		t.Error(err)
	}
}

// TestBoundGrantThroughAGate takes a stolen token and then the holder's own
// request through the execution boundary.
func TestBoundGrantThroughAGate(t *testing.T) {
	k, holder := newKey(t, jwtgrant.EdDSA), newKey(t, jwtgrant.ES256)
	b := newBoundary(t, atNoon(t, k.Public()), nil, noon())
	g := credit(t)
	g.LeewayPolicy, g.NotBefore = "", time.Time{}
	token, err := newIssuer(t, k, nil).SignBound(g, holder.Public().Thumbprint())
	if err != nil {
		t.Fatal(err)
	}
	b.wantNothing(t, request(token), refused, pawl.ReasonPossession)
	proof, err := holder.Prove(token, method, called, noon())
	if err != nil {
		t.Fatal(err)
	}
	ctx := jwtgrant.ContextWithProof(t.Context(), jwtgrant.Proof{JWT: proof, Method: method, URL: called})
	if got, err := b.gate.Admit(ctx, request(token)); err != nil || !got.Fresh {
		t.Errorf("with the proof: fresh %v, error %v", got.Fresh, err)
	}
	if _, err := b.gate.Admit(ctx, request(token)); !errors.Is(err, pawl.ErrRefused) {
		t.Errorf("the same proof again: %v", err)
	}
}

// TestBoundGrantIsRevokedByItsToken has somebody revoke who does not hold the
// holder's key [R2].
func TestBoundGrantIsRevokedByItsToken(t *testing.T) {
	k, holder := newKey(t, jwtgrant.EdDSA), newKey(t, jwtgrant.ES256)
	b := newBoundary(t, atNoon(t, k.Public()), nil, noon())
	g := credit(t)
	g.LeewayPolicy, g.NotBefore = "", time.Time{}
	token, err := newIssuer(t, k, nil).SignBound(g, holder.Public().Thumbprint())
	if err != nil {
		t.Fatal(err)
	}
	state, key, err := b.gate.Revoke(t.Context(), pawl.RevokeRequest{Token: token, By: "operator", Reason: "stolen"})
	if err != nil || state != pawl.Revoked || key != g.Key {
		t.Errorf("got %q of %v, error %v, want revoked", state, key, err)
	}
	proof, err := holder.Prove(token, method, called, noon())
	if err != nil {
		t.Fatal(err)
	}
	ctx := jwtgrant.ContextWithProof(t.Context(), jwtgrant.Proof{JWT: proof, Method: method, URL: called})
	if _, err := b.gate.Admit(ctx, request(token)); pawl.ReasonOf(err) != pawl.ReasonRevoked {
		t.Errorf("the holder, afterwards: %v", err)
	}
}

func TestProveNeedsAnAddress(t *testing.T) {
	for _, address := range []string{"", "/v1", "ftp://x/", "https://user@x/", "mailto:x"} {
		if proof, err := newKey(t, jwtgrant.EdDSA).Prove("t", method, address, noon()); !errors.Is(err, pawl.ErrInvalid) || proof != "" {
			t.Errorf("%q: %v", address, err)
		}
	}
}
