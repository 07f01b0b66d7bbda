package jwtgrant_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

// secret stands in every claim that a test makes up, so that an error which
// repeats a claim is found [S2].
const secret = "5ecre7"

// edKey is a fixed key, so that tokens in files stay the same. It is written with
// nothing of the package under test.
func edKey(n byte) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte{'p', 'a', 'w', 'l', n})
	return ed25519.NewKeyFromSeed(seed[:])
}

// publicKey is the fixed key n under the id "key-n".
func publicKey(t testing.TB, n byte) jwtgrant.PublicKey {
	t.Helper()
	k, err := jwtgrant.NewPublicKey(fmt.Sprintf("key-%d", n), edKey(n).Public(), jwtgrant.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func b64(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// compact signs any header and payload, whatever they say, with the fixed key n.
func compact(n byte, header, payload string) string {
	input := b64([]byte(header)) + "." + b64([]byte(payload))
	return input + "." + b64(ed25519.Sign(edKey(n), []byte(input)))
}

// compactHMAC signs with a public key as the secret, for readers that let the
// header choose what a key is.
func compactHMAC(key crypto.PublicKey, header, payload string) string {
	input := b64([]byte(header)) + "." + b64([]byte(payload))
	m := hmac.New(sha256.New, key.(ed25519.PublicKey))
	m.Write([]byte(input))
	return input + "." + b64(m.Sum(nil))
}

// literal is a claim as it is written.
type literal = json.RawMessage

// fields are the members of an object; nil leaves one out.
type fields map[string]any

func (f fields) with(changes fields) string {
	all := maps.Clone(f)
	for name, value := range changes {
		if value == nil {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err) // a test's own literal is no JSON
	}
	return string(raw)
}

func goodHeader() fields {
	return fields{"alg": "EdDSA", "typ": jwtgrant.TokenType, "kid": "key-1"}
}

func goodClaims() fields {
	return fields{
		"iss": issuerName, "sub": "alice-" + secret, "aud": realm, "jti": "grant-" + secret,
		"iat": noon().Unix(), "exp": noon().Unix() + 3600,
		"authorization_details": literal(`[{"type":"credit.create","details":{"amount":"250.00","to":"` + secret + `"}}]`),
	}
}

// forged is a token of the trusted issuer with some claims changed.
func forged(changes fields) string {
	return compact(1, goodHeader().with(nil), goodClaims().with(changes))
}

// wantRefusal checks class and reason of an error, that no grant came with it,
// and that it repeats nothing of the token.
func wantRefusal(t *testing.T, token string, got pawl.Grant, err error, class pawl.Class, reason pawl.Reason) {
	t.Helper()
	if !errors.Is(err, class) || pawl.ReasonOf(err) != reason {
		t.Errorf("got error %v, want class %v with reason %s", err, class, reason)
	}
	if got != (pawl.Grant{}) {
		t.Errorf("a grant came with an error: %v", got.Key)
	}
	if err == nil {
		return
	}
	text := fmt.Sprintf("%v %+v", err, err)
	for part := range strings.SplitSeq(token, ".") {
		if len(part) > 8 && strings.Contains(text, part) {
			t.Errorf("the error repeats the token: %s", text)
		}
	}
	if strings.Contains(text, secret) {
		t.Errorf("the error repeats a claim: %s", text)
	}
}

func unb64(part string) string {
	raw, _ := base64.RawURLEncoding.DecodeString(part) // what is no base64url seeds nothing
	return string(raw)
}
