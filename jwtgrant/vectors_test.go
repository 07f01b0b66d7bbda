package jwtgrant_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

const vectorsFile = "testdata/vectors.json"

// vectors are the golden tokens, usable from other languages. test/jose makes
// them and checks that it would make them again.
type vectors struct {
	Realm   string `json:"realm"`
	Issuers []struct {
		Name         string          `json:"name"`
		TenantScoped bool            `json:"tenant_scoped"`
		JWKS         json.RawMessage `json:"jwks"`
	} `json:"issuers"`
	Accepted []struct {
		Name  string      `json:"name"`
		Token string      `json:"token"`
		Grant vectorGrant `json:"grant"`
	} `json:"accepted"`
	Refused []struct {
		Name   string      `json:"name"`
		Token  string      `json:"token"`
		Error  string      `json:"error"`
		Reason pawl.Reason `json:"reason"`
	} `json:"refused"`
	Proofs struct {
		Token  string        `json:"token"`
		Method string        `json:"method"`
		URL    string        `json:"url"`
		Now    int64         `json:"now"`
		Holds  []vectorProof `json:"holds"`
		Fails  []vectorProof `json:"fails"`
	} `json:"proofs"`
}

type vectorProof struct {
	Name  string `json:"name"`
	Proof string `json:"proof"`
}

type vectorGrant struct {
	Issuer       string    `json:"issuer"`
	Namespace    string    `json:"namespace"`
	GrantID      string    `json:"grant_id"`
	Realm        string    `json:"realm"`
	Subject      string    `json:"subject"`
	Tenant       string    `json:"tenant"`
	Authority    string    `json:"authority"`
	Kind         pawl.Kind `json:"kind"`
	Details      string    `json:"details"`
	Fingerprint  string    `json:"fingerprint"`
	IssuedAt     int64     `json:"issued_at"`
	NotBefore    int64     `json:"not_before"`
	ExpiresAt    int64     `json:"expires_at"`
	LeewayPolicy string    `json:"leeway_policy"`
}

func vectorOf(g pawl.Grant) vectorGrant {
	v := vectorGrant{
		Issuer: g.Key.Issuer, Namespace: g.Key.Namespace, GrantID: g.Key.ID, Realm: g.Realm, Subject: g.Subject,
		Tenant: g.Tenant, Authority: g.Authority, Kind: g.Intent.Kind, Details: string(g.Intent.Details.JSON()),
		Fingerprint: g.Intent.Fingerprint().String(), IssuedAt: g.IssuedAt.Unix(), ExpiresAt: g.ExpiresAt.Unix(),
		LeewayPolicy: g.LeewayPolicy,
	}
	if !g.NotBefore.IsZero() {
		v.NotBefore = g.NotBefore.Unix()
	}
	return v
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	raw, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Accepted) < 9 || len(v.Refused) < 47 || len(v.Proofs.Holds) < 1 || len(v.Proofs.Fails) < 6 {
		t.Fatalf("vectors are missing: %d accepted, %d refused, %d and %d proofs",
			len(v.Accepted), len(v.Refused), len(v.Proofs.Holds), len(v.Proofs.Fails))
	}
	return v
}

// verifier returns the one the vectors are for.
func (v vectors) verifier(t testing.TB) *jwtgrant.Verifier {
	t.Helper()
	var trusted []jwtgrant.TrustedIssuer
	for _, i := range v.Issuers {
		set, err := jwtgrant.ParseKeySet(i.JWKS)
		if err != nil {
			t.Fatal(err)
		}
		trusted = append(trusted, jwtgrant.TrustedIssuer{Name: i.Name, Keys: set, TenantScoped: i.TenantScoped})
	}
	made, err := jwtgrant.NewVerifier(v.Realm, trusted, &jwtgrant.VerifierOptions{
		Now: func() time.Time { return time.Unix(v.Proofs.Now, 0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestVectors(t *testing.T) {
	v := readVectors(t)
	verifier := v.verifier(t)
	for _, a := range v.Accepted {
		got, err := verifier.Verify(t.Context(), a.Token)
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
			continue
		}
		if diff := cmp.Diff(a.Grant, vectorOf(got)); diff != "" {
			t.Errorf("%s: grant differs (-want +got):\n%s", a.Name, diff)
		}
	}
	for _, r := range v.Refused {
		got, err := verifier.Verify(t.Context(), r.Token)
		row, _ := pawl.Row(err)
		if row.Name != r.Error || pawl.ReasonOf(err) != r.Reason || got != (pawl.Grant{}) {
			t.Errorf("%s: got error %v, want %s with reason %s", r.Name, err, r.Error, r.Reason)
		}
	}
}

func TestProofVectors(t *testing.T) {
	v := readVectors(t)
	verifier := v.verifier(t)
	check := func(p vectorProof) error {
		_, err := verifier.VerifyWithProof(t.Context(), v.Proofs.Token,
			jwtgrant.Proof{JWT: p.Proof, Method: v.Proofs.Method, URL: v.Proofs.URL})
		return err
	}
	for _, p := range v.Proofs.Holds {
		if err := check(p); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	for _, p := range v.Proofs.Fails {
		if err := check(p); pawl.ReasonOf(err) != pawl.ReasonPossession {
			t.Errorf("%s: got error %v, want no possession", p.Name, err)
		}
	}
}
