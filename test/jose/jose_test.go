package jose_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

const (
	realm      = "store-eu"
	issuerName = "https://issuer.example"
	approved   = `{"amount":"250.00","n":1.5,"to":"Café <&> Zürich"}`
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// missing skips the test, or fails it where nothing may be missing.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("PAWL_REQUIRE_ALL") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

func node(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		missing(t, "Node.js is not installed")
	}
	return path
}

// joseFolder is where setup puts the package.
func joseFolder(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("PAWL_CACHE")
	if cache == "" {
		top, err := filepath.Abs("../..")
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(top, ".cache")
	}
	dir := filepath.Join(cache, "jose", "package")
	if _, err := os.Stat(filepath.Join(dir, "package.json")); err != nil {
		missing(t, "npm's jose is not installed: run test/jose/setup")
	}
	return dir
}

// script runs one with ask on its standard input and reads its answer.
func script(t *testing.T, name string, ask, answer any) {
	t.Helper()
	c := exec.CommandContext(t.Context(), node(t), name)
	c.Env = append(os.Environ(), "PAWL_JOSE="+joseFolder(t))
	in, err := json.Marshal(ask)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	c.Stdin, c.Stderr = bytes.NewReader(in), &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatalf("%s answers %q: %v", name, out, err)
	}
}

func grant(t *testing.T, id string) pawl.Grant {
	t.Helper()
	details, err := pawl.ParseDetails([]byte(approved))
	if err != nil {
		t.Fatal(err)
	}
	return pawl.Grant{
		Form: pawl.FormToken, Key: pawl.GrantKey{Issuer: issuerName, ID: id}, Realm: realm, Subject: "alice", Tenant: "acme",
		Intent: pawl.Intent{Kind: "credit.create", Details: details}, IssuedAt: noon(), ExpiresAt: noon().Add(time.Hour),
	}
}

// verified is what verify.mjs says of one token.
type verified struct {
	Claims struct {
		Iss, Sub, Aud, Jti, Tenant string
		Iat, Exp                   int64
		Details                    []struct {
			Type    string
			Details json.RawMessage
		} `json:"authorization_details"`
	}
	Error string
}

// question is what verify.mjs is asked.
type question struct {
	JWKS   json.RawMessage `json:"jwks"`
	Issuer string          `json:"issuer"`
	Realm  string          `json:"realm"`
	Now    int64           `json:"now"`
	Tokens []string        `json:"tokens"`
}

// TestTheyVerifyOurs has tokens of every algorithm and a published key set
// verified by the other implementation, and two that it must not accept.
func TestTheyVerifyOurs(t *testing.T) {
	ask := question{Issuer: issuerName, Realm: realm, Now: noon().Unix() + 60}
	var public []jwtgrant.PublicKey
	for _, a := range []jwtgrant.Algorithm{jwtgrant.EdDSA, jwtgrant.ES256, jwtgrant.PS256, jwtgrant.RS256} {
		k, err := jwtgrant.GenerateKey(a)
		if err != nil {
			t.Fatal(err)
		}
		public = append(public, k.Public())
		ask.Tokens = append(ask.Tokens, sign(t, k))
	}
	stranger, err := jwtgrant.GenerateKey(jwtgrant.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	good := ask.Tokens[0]
	ask.Tokens = append(ask.Tokens, sign(t, stranger), good[:len(good)-8]+"AAAAAAAA")
	set, err := jwtgrant.NewKeySet(public...)
	if err != nil {
		t.Fatal(err)
	}
	if ask.JWKS, err = json.Marshal(set); err != nil {
		t.Fatal(err)
	}
	var answers []verified
	script(t, "verify.mjs", ask, &answers)
	if len(answers) != 6 {
		t.Fatalf("%d answers to 6 tokens", len(answers))
	}
	for i, a := range answers[:4] {
		c := a.Claims
		if a.Error != "" || c.Iss != issuerName || c.Aud != realm || c.Jti != "grant-1" || c.Sub != "alice" || c.Tenant != "acme" ||
			c.Iat != noon().Unix() || c.Exp != noon().Unix()+3600 || len(c.Details) != 1 || c.Details[0].Type != "credit.create" {
			t.Errorf("token %d: got %+v", i, a)
			continue
		}
		if got, err := pawl.ParseDetails(c.Details[0].Details); err != nil || got != grant(t, "").Intent.Details {
			t.Errorf("token %d: details %s, error %v", i, c.Details[0].Details, err)
		}
	}
	if answers[4].Error != "ERR_JWKS_NO_MATCHING_KEY" || answers[5].Error != "ERR_JWS_SIGNATURE_VERIFICATION_FAILED" {
		t.Errorf("forged tokens: got %q and %q", answers[4].Error, answers[5].Error)
	}
}

func sign(t *testing.T, k jwtgrant.SigningKey) string {
	t.Helper()
	i, err := jwtgrant.NewIssuer(issuerName, k, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := i.Sign(grant(t, "grant-1"))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestWeVerifyTheirs has tokens of every algorithm, a key set and a proof of
// possession made by the other implementation.
func TestWeVerifyTheirs(t *testing.T) {
	const method, url = "POST", "https://pay.example/v1/admissions"
	ask := map[string]any{
		"issuer": issuerName, "realm": realm, "iat": noon().Unix(), "exp": noon().Unix() + 3600, "subject": "alice", "tenant": "acme",
		"kind": "credit.create", "details": json.RawMessage(approved), "request": map[string]string{"method": method, "url": url},
	}
	var made struct {
		JWKS   json.RawMessage
		Tokens []struct{ ID, Token string }
		Bound  struct{ Token, Proof string }
	}
	script(t, "sign.mjs", ask, &made)
	set, err := jwtgrant.ParseKeySet(made.JWKS)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jwtgrant.NewVerifier(realm, []jwtgrant.TrustedIssuer{{Name: issuerName, Keys: set}}, &jwtgrant.VerifierOptions{Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Tokens) != 4 {
		t.Fatalf("%d tokens, want 4", len(made.Tokens))
	}
	for _, m := range made.Tokens {
		got, err := v.Verify(t.Context(), m.Token)
		if err != nil {
			t.Errorf("%s: %v", m.ID, err)
			continue
		}
		if diff := cmp.Diff(grant(t, m.ID), got, cmp.AllowUnexported(pawl.Details{})); diff != "" {
			t.Errorf("%s: grant differs (-want +got):\n%s", m.ID, diff)
		}
	}
	if _, err := v.Verify(t.Context(), made.Bound.Token); pawl.ReasonOf(err) != pawl.ReasonPossession {
		t.Errorf("the bound token without a proof: %v", err)
	}
	if _, err := v.VerifyWithProof(t.Context(), made.Bound.Token, jwtgrant.Proof{JWT: made.Bound.Proof, Method: method, URL: url}); err != nil {
		t.Errorf("the bound token with its proof: %v", err)
	}
}

// TestVectorsAreTheScripts makes the golden vectors again: they are what the
// script makes, which shares nothing with the Go code.
func TestVectorsAreTheScripts(t *testing.T) {
	want, err := os.ReadFile("../../jwtgrant/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := exec.CommandContext(t.Context(), node(t), "vectors.mjs").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("jwtgrant/testdata/vectors.json is not what vectors.mjs prints")
	}
}
