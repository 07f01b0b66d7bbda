package jwtgrant_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

// kept is the corpus that fuzzing has found and that stays in the repository.
func kept(t testing.TB, target string) int {
	t.Helper()
	files, err := os.ReadDir("testdata/fuzz/" + target)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return len(files)
}

// TestSeeds counts the seeds of the fuzz targets, so that losing them is noticed.
func TestSeeds(t *testing.T) {
	v := readVectors(t)
	for target, want := range map[string]int{"FuzzVerify": 12, "FuzzClaims": 12, "FuzzKeySet": 12, "FuzzProof": 6} {
		if got := kept(t, target); got < want {
			t.Errorf("%s: %d files kept, want at least %d", target, got, want)
		}
	}
	if seeds := len(v.Accepted) + len(v.Refused); seeds < 56 {
		t.Errorf("%d tokens seed the targets, want at least 56", seeds)
	}
}

// checkAnswer holds for every token: a grant or an error, never both, and the
// error is of a class that says what to do.
func checkAnswer(t *testing.T, token string, g pawl.Grant, err error) {
	t.Helper()
	if err != nil {
		if row, known := pawl.Row(err); !known || (row.Class != pawl.ErrInvalid && row.Class != pawl.ErrRefused) {
			t.Fatalf("%q: %v", token, err)
		}
		if g != (pawl.Grant{}) {
			t.Fatalf("%q: a grant beside the error %v", token, err)
		}
		return
	}
	if err := g.Validate(); err != nil {
		t.Fatalf("%q: accepted a grant that is not valid: %v", token, err)
	}
	if strings.ContainsAny(token, "=\r\n ") {
		t.Fatalf("%q: accepted in a second spelling", token)
	}
}

// FuzzVerify gives any text to the verifier. Whatever is accepted is one of the
// tokens that the keys have signed.
func FuzzVerify(f *testing.F) {
	v := readVectors(f)
	verifier := v.verifier(f)
	signed := map[string]bool{}
	for _, a := range v.Accepted {
		f.Add(a.Token)
		signed[a.Token] = true
	}
	for _, r := range v.Refused {
		f.Add(r.Token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		g, err := verifier.Verify(t.Context(), token)
		checkAnswer(t, token, g, err)
		if err == nil && !signed[token] {
			t.Fatalf("accepted %q, which nobody signed", token)
		}
	})
}

// FuzzClaims signs any header and payload with a trusted key, so that what is
// behind the signature is reached. What is accepted is signed again and is the
// same grant.
func FuzzClaims(f *testing.F) {
	v := readVectors(f)
	verifier := v.verifier(f)
	seed := func(token string) {
		parts := strings.Split(token, ".")
		if len(parts) != 3 {
			return
		}
		header, payload := unb64(parts[0]), unb64(parts[1])
		f.Add(header, payload)
	}
	for _, a := range v.Accepted {
		seed(a.Token)
	}
	for _, r := range v.Refused {
		seed(r.Token)
	}
	key, err := jwtgrant.NewSigningKey("key-1", edKey(1), jwtgrant.EdDSA)
	if err != nil {
		f.Fatal(err)
	}
	again := newIssuer(f, key, nil)
	f.Fuzz(func(t *testing.T, header, payload string) {
		token := compact(1, header, payload)
		g, err := verifier.Verify(t.Context(), token)
		checkAnswer(t, "", g, err)
		if err != nil {
			return
		}
		resigned, err := again.Sign(g)
		if err != nil {
			t.Fatalf("%q: accepted, and cannot be signed: %v", payload, err)
		}
		if got, err := verifier.Verify(t.Context(), resigned); err != nil || got != g {
			t.Fatalf("%q: signed again it is another grant, %v", payload, err)
		}
	})
}

// FuzzKeySet reads any document as a key set. What is accepted is written and
// read again as the same.
func FuzzKeySet(f *testing.F) {
	for _, i := range readVectors(f).Issuers {
		f.Add([]byte(i.JWKS))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		set, err := jwtgrant.ParseKeySet(raw)
		if err != nil {
			if row, _ := pawl.Row(err); row.Class != pawl.ErrMisconfigured {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		out, err := set.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		back, err := jwtgrant.ParseKeySet(out)
		if err != nil || len(back.Keys()) != len(set.Keys()) {
			t.Fatalf("%q: written as %q, which is read as %v", raw, out, err)
		}
		for i, k := range set.Keys() {
			if other := back.Keys()[i]; other.ID() != k.ID() || other.Thumbprint() != k.Thumbprint() {
				t.Fatalf("%q: a key changed", raw)
			}
		}
	})
}

// FuzzProof gives any text as a proof for a bound grant. Only the one that the
// holder has signed is accepted.
func FuzzProof(f *testing.F) {
	v := readVectors(f)
	verifier := v.verifier(f)
	signed := map[string]bool{}
	for _, p := range v.Proofs.Holds {
		f.Add(p.Proof)
		signed[p.Proof] = true
	}
	for _, p := range v.Proofs.Fails {
		f.Add(p.Proof)
	}
	f.Fuzz(func(t *testing.T, proof string) {
		_, err := verifier.VerifyWithProof(t.Context(), v.Proofs.Token, jwtgrant.Proof{JWT: proof, Method: v.Proofs.Method, URL: v.Proofs.URL})
		if err == nil && !signed[proof] {
			t.Fatalf("accepted %q", proof)
		}
		if err != nil && pawl.ReasonOf(err) != pawl.ReasonPossession {
			t.Fatalf("%q: %v", proof, err)
		}
	})
}
