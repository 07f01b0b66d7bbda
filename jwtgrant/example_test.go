package jwtgrant_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
	"github.com/pawl-go/pawl/memstore"
)

// The whole way of a grant: keys, issue, verification and admission, revocation.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pawl-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	// The issuer's keys, in a file that only its owner may read.
	ring, err := jwtgrant.OpenKeyRing(filepath.Join(dir, "support-keys.json"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := ring.Ensure(ctx, jwtgrant.EdDSA); err != nil {
		fmt.Println(err)
		return
	}
	issuer, err := jwtgrant.NewIssuer("https://support.example", ring, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	// The store, and a gate that trusts this issuer and nobody else.
	store, err := memstore.New(&memstore.Options{Realm: "billing-eu"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	verifier, err := jwtgrant.NewVerifier("billing-eu", []jwtgrant.TrustedIssuer{
		{Name: "https://support.example", Keys: ring, Kinds: []pawl.Kind{"credit.create"}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	gate, err := pawl.New(ctx, store, verifier, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	// Issue: the store writes the grant, then it is signed.
	approved := []byte(`{"account":"c-17","amount":"250.00"}`)
	first, err := issue(ctx, gate, issuer, "ticket-4711", approved)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := issue(ctx, gate, issuer, "ticket-4712", approved)
	if err != nil {
		fmt.Println(err)
		return
	}

	// Use: once, for exactly what was approved.
	ask := func(token string, details []byte) {
		got, err := gate.Admit(ctx, pawl.Request{
			Token: token, OperationID: pawl.NewOperationID(), Kind: "credit.create", Details: details,
			Caller: pawl.Caller{Principal: "ana"},
		})
		if err != nil {
			fmt.Println("refused:", pawl.ReasonOf(err))
			return
		}
		fmt.Println("admitted:", got.Fresh)
	}
	ask(first, []byte(`{"account":"c-17","amount":"999.00"}`))
	ask(first, approved)
	ask(first, approved)

	// Revoke: the token proves that it was issued.
	revocation := pawl.RevokeRequest{Token: second, By: "security", Reason: "ticket closed"}
	state, _, err := gate.Revoke(ctx, revocation)
	fmt.Println(state, err)
	ask(second, approved)
	// Output:
	// refused: wrong_intent
	// admitted: true
	// refused: used
	// revoked <nil>
	// refused: revoked
}

// issue writes a grant for ana and signs it. Repeat it with the same request id
// when an answer is lost: it is the same grant.
func issue(ctx context.Context, gate *pawl.Gate, issuer *jwtgrant.Issuer, requestID string, approved []byte) (string, error) {
	details, err := pawl.ParseDetails(approved)
	if err != nil {
		return "", err
	}
	issued, err := gate.Issue(ctx, pawl.Issuance{
		RequestID: requestID,
		Form:      pawl.FormToken,
		Issuer:    issuer.Name(),
		GrantID:   pawl.NewOperationID().String(),
		Subject:   "ana",
		Intent:    pawl.Intent{Kind: "credit.create", Details: details},
		Lifetime:  15 * time.Minute,
	})
	if err != nil {
		return "", err
	}
	return issuer.Sign(issued.Grant)
}

// An issuer that has no store signs by itself.
func ExampleIssuer_Issue() {
	key, err := jwtgrant.GenerateKey(jwtgrant.ES256)
	if err != nil {
		fmt.Println(err)
		return
	}
	issuer, err := jwtgrant.NewIssuer("https://support.example", key, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	details, err := pawl.ParseDetails([]byte(`{"account":"c-17","amount":"250.00"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	token, grant, err := issuer.Issue("billing-eu", time.Now(), pawl.Issuance{
		Subject:  "ana",
		Intent:   pawl.Intent{Kind: "credit.create", Details: details},
		Lifetime: 15 * time.Minute,
	})
	fmt.Println(token != "", grant.ExpiresAt.Sub(grant.IssuedAt), err)
	// Output: true 15m0s <nil>
}

// A verifier on another machine reads the issuer's public keys from a URL.
func ExampleNewURLKeys() {
	ctx := context.Background()
	key, err := jwtgrant.GenerateKey(jwtgrant.EdDSA)
	if err != nil {
		fmt.Println(err)
		return
	}
	public, err := jwtgrant.NewKeySet(key.Public())
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(public)
	}))
	defer server.Close()

	keys, err := jwtgrant.NewURLKeys(server.URL+"/keys.json", nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := keys.Refresh(ctx); err != nil { // at start, to find a wrong address early
		fmt.Println(err)
		return
	}
	_, err = keys.Key(ctx, key.ID())
	fmt.Println(err)
	_, err = keys.Key(ctx, "another")
	fmt.Println(errors.Is(err, pawl.ErrUnavailable)) // asked a moment ago: nobody can tell yet
	// Output:
	// <nil>
	// true
}

// A key is published before it signs, and goes on verifying after it has.
func ExampleKeyRing_Rotate() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pawl-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ring, err := jwtgrant.OpenKeyRing(filepath.Join(dir, "support-keys.json"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	old, err := ring.New(ctx, jwtgrant.EdDSA)
	if err != nil {
		fmt.Println(err)
		return
	}

	next, err := ring.New(ctx, jwtgrant.EdDSA) // publish ring.Public(), and wait for the verifiers to read it
	if err != nil {
		fmt.Println(err)
		return
	}
	active, err := ring.Rotate(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	t := pawl.DefaultTimings()
	grace := t.MaxGrantLifetime + t.IssueSkew + t.Leeways[""]
	_, err = ring.Retire(ctx, old.ID, grace)
	fmt.Println(old.State, next.State, active.ID == next.ID, errors.Is(err, pawl.ErrRefused))
	_, err = ring.Retire(ctx, old.ID, 0) // the key leaked: what it signed is refused from now on
	fmt.Println(err)
	// Output:
	// active next true true
	// <nil>
}

// A grant that is bound to its holder's key is worth nothing to a thief.
func ExampleVerifier_VerifyWithProof() {
	ctx := context.Background()
	issuerKey, err := jwtgrant.GenerateKey(jwtgrant.EdDSA)
	if err != nil {
		fmt.Println(err)
		return
	}
	holder, err := jwtgrant.GenerateKey(jwtgrant.ES256)
	if err != nil {
		fmt.Println(err)
		return
	}
	issuer, verifier, grant, err := bindable(issuerKey)
	if err != nil {
		fmt.Println(err)
		return
	}

	token, err := issuer.SignBound(grant, holder.Public().Thumbprint())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = verifier.Verify(ctx, token)
	fmt.Println(pawl.ReasonOf(err))

	// The holder sends this along, in the header DPoP.
	proof, err := holder.Prove(token, "POST", "https://pay.example/v1/credits", time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	// The server says what it was asked.
	_, err = verifier.VerifyWithProof(ctx, token, jwtgrant.Proof{
		JWT: proof, Method: "POST", URL: "https://pay.example/v1/credits",
	})
	fmt.Println(err)
	// Output:
	// possession
	// <nil>
}

// bindable returns an issuer, a verifier that trusts it, and a grant to sign.
func bindable(key jwtgrant.SigningKey) (*jwtgrant.Issuer, *jwtgrant.Verifier, pawl.Grant, error) {
	keys, err := jwtgrant.NewKeySet(key.Public())
	if err != nil {
		return nil, nil, pawl.Grant{}, err
	}
	issuer, err := jwtgrant.NewIssuer("https://support.example", key, nil)
	if err != nil {
		return nil, nil, pawl.Grant{}, err
	}
	verifier, err := jwtgrant.NewVerifier("billing-eu", []jwtgrant.TrustedIssuer{{Name: issuer.Name(), Keys: keys}}, nil)
	if err != nil {
		return nil, nil, pawl.Grant{}, err
	}
	details, err := pawl.ParseDetails([]byte(`{}`))
	if err != nil {
		return nil, nil, pawl.Grant{}, err
	}
	_, grant, err := issuer.Issue("billing-eu", time.Now(), pawl.Issuance{
		Subject: "ana", Intent: pawl.Intent{Kind: "credit.create", Details: details}, Lifetime: time.Minute,
	})
	return issuer, verifier, grant, err
}

// Issuer and gate share a secret, so that operation ids are the issuer's.
func ExampleSealer() {
	sealer, err := jwtgrant.NewSealer([]byte("32 random bytes, kept as a secret"))
	if err != nil {
		fmt.Println(err)
		return
	}
	grant := pawl.GrantKey{Issuer: "https://support.example", ID: "ticket-4711"}
	id, sealed := sealer.Fresh(grant) // the issuer hands out sealed with the token

	opened, err := sealer.Open(sealed, grant) // what the gate does: pawl.Config{SealedIDs: sealer}
	fmt.Println(opened == id, err)
	_, err = sealer.Open(pawl.NewOperationID().String(), grant)
	fmt.Println(pawl.ReasonOf(err))
	// Output:
	// true <nil>
	// sealed_id
}
