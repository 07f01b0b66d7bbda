package jwtgrant_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

const (
	realm      = "store-eu"
	issuerName = "https://issuer.example"
)

// noon is a moment that no test's outcome depends on: nothing here judges a
// grant by a clock [A4].
func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func details(t testing.TB, raw string) pawl.Details {
	t.Helper()
	d, err := pawl.ParseDetails([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// credit is the grant most tests start from.
func credit(t testing.TB) pawl.Grant {
	t.Helper()
	return pawl.Grant{
		Form: pawl.FormToken, Key: pawl.GrantKey{Issuer: issuerName, ID: "grant-1"}, Realm: realm,
		Subject: "alice", Tenant: "acme", Authority: "https://login.example",
		Intent:   pawl.Intent{Kind: "credit.create", Details: details(t, `{"account":"c-17","amount":"250.00"}`)},
		IssuedAt: noon(), NotBefore: noon().Add(time.Second), ExpiresAt: noon().Add(time.Hour), LeewayPolicy: "2026",
	}
}

func newKey(t testing.TB, a jwtgrant.Algorithm) jwtgrant.SigningKey {
	t.Helper()
	k, err := jwtgrant.GenerateKey(a)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newIssuer(t testing.TB, k jwtgrant.SigningKeys, o *jwtgrant.IssuerOptions) *jwtgrant.Issuer {
	t.Helper()
	i, err := jwtgrant.NewIssuer(issuerName, k, o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// trusting returns a verifier that trusts the one issuer with these keys.
func trusting(t testing.TB, keys ...jwtgrant.PublicKey) *jwtgrant.Verifier {
	t.Helper()
	set, err := jwtgrant.NewKeySet(keys...)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jwtgrant.NewVerifier(realm, []jwtgrant.TrustedIssuer{{Name: issuerName, Keys: set}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sameGrant(t *testing.T, got, want pawl.Grant) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pawl.Details{})); diff != "" {
		t.Errorf("grant differs (-want +got):\n%s", diff)
	}
}

// TestSignedAndVerified takes a grant through each algorithm and its public key
// set, as another process would get it.
func TestSignedAndVerified(t *testing.T) {
	for _, a := range []jwtgrant.Algorithm{jwtgrant.EdDSA, jwtgrant.ES256, jwtgrant.PS256, jwtgrant.RS256} {
		t.Run(string(a), func(t *testing.T) {
			k := newKey(t, a)
			token, err := newIssuer(t, k, nil).Sign(credit(t))
			if err != nil {
				t.Fatal(err)
			}
			own, err := jwtgrant.NewKeySet(k.Public())
			if err != nil {
				t.Fatal(err)
			}
			published, err := json.Marshal(own)
			if err != nil {
				t.Fatal(err)
			}
			set, err := jwtgrant.ParseKeySet(published)
			if err != nil {
				t.Fatal(err)
			}
			got, err := trusting(t, set.Keys()...).Verify(t.Context(), token)
			if err != nil {
				t.Fatal(err)
			}
			sameGrant(t, got, credit(t))
		})
	}
}
