package jwtgrant_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

const (
	invalid = pawl.ErrInvalid
	refused = pawl.ErrRefused
)

// refusal is a row of the tables: a token and what must be said to it.
type refusal struct {
	name   string
	token  string
	class  pawl.Class
	reason pawl.Reason
}

func testRefusals(t *testing.T, v *jwtgrant.Verifier, rows []refusal) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, err := v.Verify(t.Context(), row.token)
			wantRefusal(t, row.token, got, err, row.class, row.reason)
		})
	}
}

// TestGoodToken makes sure that the tables refuse what they change and nothing
// else: the token they start from is accepted.
func TestGoodToken(t *testing.T) {
	v := trusting(t, publicKey(t, 1), publicKey(t, 2))
	got, err := v.Verify(t.Context(), forged(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := pawl.Grant{
		Form: pawl.FormToken, Key: pawl.GrantKey{Issuer: issuerName, ID: "grant-" + secret}, Realm: realm, Subject: "alice-" + secret,
		Intent:   pawl.Intent{Kind: "credit.create", Details: details(t, `{"amount":"250.00","to":"`+secret+`"}`)},
		IssuedAt: noon(), ExpiresAt: noon().Add(time.Hour),
	}
	sameGrant(t, got, want)
}

func TestCase_CB9_NotAuthentic(t *testing.T) {
	v := trusting(t, publicKey(t, 1), publicKey(t, 2))
	claims := goodClaims().with(nil)
	header := func(changes fields) string { return compact(1, goodHeader().with(changes), claims) }
	none := b64([]byte(goodHeader().with(fields{"alg": "none"}))) + "." + b64([]byte(claims)) + "."
	hs256 := goodHeader().with(fields{"alg": "HS256"})
	ownKey := literal(`{"kty":"OKP","crv":"Ed25519","x":"` + b64(edKey(3)[32:]) + `"}`)
	testRefusals(t, v, []refusal{
		{"alg none", none, refused, pawl.ReasonSignature},
		{"alg none, signed", header(fields{"alg": "none"}), refused, pawl.ReasonSignature},
		{"alg None", header(fields{"alg": "None"}), refused, pawl.ReasonSignature},
		{"no alg", header(fields{"alg": nil}), refused, pawl.ReasonSignature},
		{"alg a number", header(fields{"alg": 1}), refused, pawl.ReasonSignature},
		{"HS256 with the public key", compactHMAC(edKey(1).Public(), hs256, claims), refused, pawl.ReasonSignature},
		{"EdDSA with the public key as secret", compactHMAC(edKey(1).Public(), goodHeader().with(nil), claims), refused, pawl.ReasonSignature},
		{"algorithm of another key type", header(fields{"alg": "ES256"}), refused, pawl.ReasonSignature},
		{"unknown kid", header(fields{"kid": "key-" + secret}), refused, pawl.ReasonSignature},
		{"kid of another key", header(fields{"kid": "key-2"}), refused, pawl.ReasonSignature},
		{"no kid and several keys", header(fields{"kid": nil}), refused, pawl.ReasonSignature},
		{"empty kid", header(fields{"kid": ""}), refused, pawl.ReasonSignature},
		{"kid a number", header(fields{"kid": 1}), refused, pawl.ReasonSignature},
		{"crit", header(fields{"crit": literal(`["exp"]`)}), refused, pawl.ReasonSignature},
		{"crit of an extension", header(fields{"crit": literal(`["x"]`), "x": 1}), refused, pawl.ReasonSignature},
		{"b64", header(fields{"b64": false}), refused, pawl.ReasonSignature},
		{"b64 true", header(fields{"b64": true}), refused, pawl.ReasonSignature},
		{"zip", header(fields{"zip": "DEF"}), refused, pawl.ReasonSignature},
		{"jwk of its own", compact(3, goodHeader().with(fields{"jwk": ownKey}), claims), refused, pawl.ReasonSignature},
		{"jku", header(fields{"jku": "https://issuer.example/jwks"}), refused, pawl.ReasonSignature},
		{"x5u", header(fields{"x5u": "https://issuer.example/x"}), refused, pawl.ReasonSignature},
		{"x5c", header(fields{"x5c": literal(`["MIIB"]`)}), refused, pawl.ReasonSignature},
		{"wrong typ", header(fields{"typ": "JWT"}), refused, pawl.ReasonSignature},
		{"no typ", header(fields{"typ": nil}), refused, pawl.ReasonSignature},
		{"typ of a proof", header(fields{"typ": "dpop+jwt"}), refused, pawl.ReasonSignature},
		{"typ in capitals", header(fields{"typ": "PAWL-GRANT+JWT"}), refused, pawl.ReasonSignature},
		{"two audiences", forged(fields{"aud": []string{realm, "other"}}), refused, pawl.ReasonRealm},
		{"the same audience twice", forged(fields{"aud": []string{realm, realm}}), refused, pawl.ReasonRealm},
		{"no audience in the list", forged(fields{"aud": []string{}}), refused, pawl.ReasonRealm},
	})
}

func TestCase_CA24_AnotherRealm(t *testing.T) {
	v := trusting(t, publicKey(t, 1))
	testRefusals(t, v, []refusal{
		{"another realm", forged(fields{"aud": "store-us"}), refused, pawl.ReasonRealm},
		{"the realm in capitals", forged(fields{"aud": strings.ToUpper(realm)}), refused, pawl.ReasonRealm},
		{"the realm and a blank", forged(fields{"aud": realm + " "}), refused, pawl.ReasonRealm},
		{"another realm in a list", forged(fields{"aud": []string{"store-us"}}), refused, pawl.ReasonRealm},
	})
}

func TestForgedAndForeign(t *testing.T) {
	v := trusting(t, publicKey(t, 1), publicKey(t, 2))
	good := forged(nil)
	parts := strings.Split(good, ".")
	flipped := []byte(parts[2])
	flipped[3] ^= 1
	testRefusals(t, v, []refusal{
		{"signed by a stranger", compact(9, goodHeader().with(nil), goodClaims().with(nil)), refused, pawl.ReasonSignature},
		{"signature changed", parts[0] + "." + parts[1] + "." + string(flipped), refused, pawl.ReasonSignature},
		{"no signature", parts[0] + "." + parts[1] + ".", refused, pawl.ReasonSignature},
		{"signature cut", parts[0] + "." + parts[1] + "." + b64(make([]byte, 60)), refused, pawl.ReasonSignature},
		{"another payload", parts[0] + "." + b64([]byte(goodClaims().with(fields{"jti": "other"}))) + "." + parts[2], refused, pawl.ReasonSignature},
		{"another header", b64([]byte(goodHeader().with(fields{"x": 1}))) + "." + parts[1] + "." + parts[2], refused, pawl.ReasonSignature},
		{"unknown issuer", forged(fields{"iss": "https://" + secret}), refused, pawl.ReasonIssuerUnknown},
		{"issuer with a slash more", forged(fields{"iss": issuerName + "/"}), refused, pawl.ReasonIssuerUnknown},
	})
}

func TestCase_CB7_TimesAndRequiredClaims(t *testing.T) {
	v := trusting(t, publicKey(t, 1))
	rows := []refusal{
		{"no aud", forged(fields{"aud": nil}), invalid, pawl.ReasonMissing},
		{"no iss", forged(fields{"iss": nil}), invalid, pawl.ReasonMissing},
		{"no sub", forged(fields{"sub": nil}), invalid, pawl.ReasonMissing},
		{"no jti", forged(fields{"jti": nil}), invalid, pawl.ReasonMissing},
		{"no exp", forged(fields{"exp": nil}), invalid, pawl.ReasonMissing},
		{"no iat", forged(fields{"iat": nil}), invalid, pawl.ReasonMissing},
		{"no authorization_details", forged(fields{"authorization_details": nil}), invalid, pawl.ReasonMissing},
		{"negative lifetime", forged(fields{"exp": noon().Unix() - 1}), invalid, pawl.ReasonMalformed},
		{"no lifetime", forged(fields{"exp": noon().Unix()}), invalid, pawl.ReasonMalformed},
		{"over-long lifetime", forged(fields{"exp": noon().Unix() + 24*3600 + 1}), invalid, pawl.ReasonLifetime},
	}
	milliseconds := strconv.FormatInt(noon().UnixMilli(), 10)
	for _, value := range []string{
		"1125899906842624" /* 2^50 */, "4611686018427387904" /* 2^62 */, "9223372036854775808" /* 2^63 */, "1e400", "1.5e9",
		`"infinity"`, `"1772366400"`, milliseconds, "1772370000.5", "1772370000.0", "17723700e2", "0", "-1", "946684799", "221845392000",
		"null", "true", "[]", "{}", `"2026-03-01T12:00:00Z"`,
	} {
		for _, claim := range []string{"exp", "iat", "nbf"} {
			raw := strings.Replace(goodClaims().with(fields{claim: "HERE"}), `"HERE"`, value, 1)
			rows = append(rows, refusal{claim + " " + value, compact(1, goodHeader().with(nil), raw), invalid, pawl.ReasonMalformed})
		}
	}
	testRefusals(t, v, rows)
	for name, changes := range map[string]fields{
		"the longest lifetime": {"exp": noon().Unix() + 24*3600},
		"the first moment":     {"iat": 946684800, "exp": 946684801},
		"the last moment":      {"iat": 221845391998, "exp": 221845391999},
	} {
		if _, err := v.Verify(t.Context(), forged(changes)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMalformedClaims has what no store must be asked about [C-B5, C-B6].
func TestMalformedClaims(t *testing.T) {
	v := trusting(t, publicKey(t, 1))
	rows := []refusal{}
	for _, claim := range []string{"sub", "jti", "tenant", "authority", "leeway_policy", "aud"} {
		for name, value := range map[string]any{
			"empty": "", "a number": 1, "null": literal("null"), "a list": literal(`["a","b"]`), "an object": literal("{}"),
			"with NUL": "a\x00b", "with a line end": "a\nb", "with DEL": "a\x7fb", "with U+0085": "a\u0085b",
		} {
			if claim == "aud" && name == "a list" {
				continue // two audiences
			}
			reason := pawl.ReasonMalformed
			if name == "empty" {
				reason = pawl.ReasonMissing
			}
			rows = append(rows, refusal{"C-B5 " + claim + " " + name, forged(fields{claim: value}), invalid, reason})
		}
		rows = append(rows, refusal{"C-B6 " + claim + " of 256 bytes", forged(fields{claim: strings.Repeat("é", 128)}), invalid, pawl.ReasonTooLarge})
	}
	raw := func(from, to string) string {
		return compact(1, goodHeader().with(nil), strings.Replace(goodClaims().with(nil), from, to, 1))
	}
	rows = append(
		rows,
		refusal{"C-B5 invalid UTF-8", raw("alice", "alice\xff"), invalid, pawl.ReasonMalformed},
		refusal{"C-B5 lone surrogate", raw("alice", `alice\ud800`), invalid, pawl.ReasonMalformed},
		refusal{"a claim twice", raw(`"sub"`, `"jti":"x","sub"`), invalid, pawl.ReasonMalformed},
		refusal{"an unknown claim twice", raw(`"sub"`, `"x":1,"x":1,"sub"`), invalid, pawl.ReasonMalformed},
		refusal{"a claim twice, once escaped", raw(`"sub"`, `"\u006ati":"x","sub"`), invalid, pawl.ReasonMalformed},
		refusal{"JTI for jti", raw(`"jti"`, `"JTI"`), invalid, pawl.ReasonMissing},
		refusal{"something after the payload", compact(1, goodHeader().with(nil), goodClaims().with(nil)+"{}"), invalid, pawl.ReasonMalformed},
		refusal{"a list as the payload", compact(1, goodHeader().with(nil), "["+goodClaims().with(nil)+"]"), invalid, pawl.ReasonMalformed},
	)
	testRefusals(t, v, rows)
	longest := strings.Repeat("j", 255)
	if got, err := v.Verify(t.Context(), forged(fields{"jti": longest})); err != nil || got.Key.ID != longest {
		t.Errorf("an id of 255 bytes: %v", err)
	}
}

func TestMalformedIntent(t *testing.T) {
	v := trusting(t, publicKey(t, 1))
	rows := []refusal{}
	for value, reason := range map[string]pawl.Reason{
		`[]`: pawl.ReasonMalformed,
		`{}`: pawl.ReasonMalformed,
		`[{"type":"a","details":{}},{"type":"a","details":{}}]`: pawl.ReasonMalformed,
		`[{"type":"a"}]`:   pawl.ReasonMalformed,
		`[{"details":{}}]`: pawl.ReasonMissing,
		`[{"type":"a","details":{},"actions":["read"]}]`:                                pawl.ReasonMalformed,
		`[{"type":"a","details":{},"locations":["https://a.b"]}]`:                       pawl.ReasonMalformed,
		`[{"Type":"a","details":{}}]`:                                                   pawl.ReasonMalformed,
		`[{"type":null,"details":{}}]`:                                                  pawl.ReasonMalformed,
		`[{"type":"a","details":null}]`:                                                 pawl.ReasonDetails,
		`[{"type":"a","details":[]}]`:                                                   pawl.ReasonDetails,
		`[{"type":"a","details":"{}"}]`:                                                 pawl.ReasonDetails,
		`[{"type":"","details":{}}]`:                                                    pawl.ReasonMissing,
		`[{"type":"A","details":{}}]`:                                                   pawl.ReasonMalformed,
		`[{"type":"a b","details":{}}]`:                                                 pawl.ReasonMalformed,
		`[{"type":"` + strings.Repeat("a", 65) + `","details":{}}]`:                     pawl.ReasonTooLarge,
		`[{"type":"a","details":{"n":9007199254740993}}]`:                               pawl.ReasonMalformed,
		`[{"type":"a","details":{"n":1e400}}]`:                                          pawl.ReasonMalformed,
		`[{"type":"a","details":{"a":1,"a":1}}]`:                                        pawl.ReasonMalformed,
		`[{"type":"a","details":{"a":"\u0000"}}]`:                                       pawl.ReasonMalformed,
		`[{"type":"a","details":{"a":"` + strings.Repeat("a", pawl.MaxDetails) + `"}}]`: pawl.ReasonDetails,
	} {
		payload := strings.Replace(goodClaims().with(fields{"authorization_details": "HERE"}), `"HERE"`, value, 1)
		rows = append(rows, refusal{value[:min(60, len(value))], compact(1, goodHeader().with(nil), payload), invalid, reason})
	}
	testRefusals(t, v, rows)
}

// TestCase_CB10_ReEncoded writes the same claims in other ways. What is accepted
// is the same grant under the same key; what is not is malformed. There is no
// second identity.
func TestCase_CB10_ReEncoded(t *testing.T) {
	v := trusting(t, publicKey(t, 1))
	want, err := v.Verify(t.Context(), forged(nil))
	if err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(goodClaims().with(nil)), "\t", " \n"); err != nil {
		t.Fatal(err)
	}
	claims := goodClaims().with(nil)
	reversed := `{"typ":"` + jwtgrant.TokenType + `","kid":"key-1","alg":"EdDSA"}`
	same := map[string]string{
		"another order in the header":   compact(1, reversed, claims),
		"white space in the header":     compact(1, " {\n\"typ\" : \""+jwtgrant.TokenType+"\",\"kid\":\"key-1\",\"alg\":\"EdDSA\" }\t", claims),
		"an unknown header":             compact(1, goodHeader().with(fields{"cty": "x", "n": 1}), claims),
		"no kid, for there is one key":  compact(1, goodHeader().with(fields{"kid": nil}), claims),
		"white space in the payload":    compact(1, goodHeader().with(nil), indented.String()),
		"another order in the payload":  compact(1, goodHeader().with(nil), `{"exp":`+strconv.FormatInt(noon().Unix()+3600, 10)+","+strings.Replace(claims[1:], `"exp":`+strconv.FormatInt(noon().Unix()+3600, 10)+",", "", 1)),
		"escapes in names and values":   compact(1, goodHeader().with(nil), strings.NewReplacer(`"jti":"g`, `"\u006ati":"\u0067`, `"250.00"`, `"\u003250.00"`).Replace(claims)),
		"unknown claims":                forged(fields{"x": secret, "nonce": 1.5}),
		"the audience as a list of one": forged(fields{"aud": []string{realm}}),
		"details in another order":      forged(fields{"authorization_details": literal(`[ {"details":{"to":"` + secret + `" , "amount":"250.00"},"type":"credit.create"} ]`)}),
	}
	for name, token := range same {
		got, err := v.Verify(t.Context(), token)
		if err != nil || got != want {
			t.Errorf("%s: got grant %v, error %v; want the same grant", name, got.Key, err)
		}
	}
	good := strings.Split(forged(nil), ".")
	padded := func(part string) string { return part + strings.Repeat("=", 4-len(part)%4) }
	std := strings.NewReplacer("-", "+", "_", "/")
	malformed := map[string]string{
		"padded header":     padded(good[0]) + "." + good[1] + "." + good[2],
		"padded payload":    good[0] + "." + padded(good[1]) + "." + good[2],
		"padded signature":  good[0] + "." + good[1] + "." + padded(good[2]),
		"standard base64":   good[0] + "." + good[1] + "." + std.Replace(good[2]) + "+/",
		"a line end":        good[0] + "." + good[1] + "." + good[2] + "\n",
		"a line end inside": good[0] + "." + good[1][:8] + "\r\n" + good[1][8:] + "." + good[2],
		"a blank before":    " " + strings.Join(good, "."),
		"stray bits":        good[0] + "." + good[1] + "." + good[2][:len(good[2])-1] + strayBits(t, good[2]),
		"the JSON form":     `{"protected":"` + good[0] + `","payload":"` + good[1] + `","signature":"` + good[2] + `"}`,
		"four parts":        strings.Join(good, ".") + ".",
		"two parts":         good[0] + "." + good[1],
		"one part":          good[0],
	}
	for name, token := range malformed {
		t.Run(name, func(t *testing.T) {
			got, err := v.Verify(t.Context(), token)
			wantRefusal(t, token, got, err, invalid, pawl.ReasonMalformed)
		})
	}
}

// strayBits returns another last character of a signature that lenient readers
// decode to the same bytes.
func strayBits(t *testing.T, part string) string {
	t.Helper()
	want, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for _, c := range alphabet {
		other := part[:len(part)-1] + string(c)
		if got, err := base64.RawURLEncoding.DecodeString(other); err == nil && other != part && bytes.Equal(got, want) {
			return string(c)
		}
	}
	t.Fatal("no other spelling")
	return ""
}

func TestTokenSize(t *testing.T) {
	v := trusting(t, publicKey(t, 1))
	padTo := func(size int) string {
		bare := len(forged(fields{"pad": ""}))
		token := forged(fields{"pad": strings.Repeat("x", (size-bare)*3/4)})
		for len(token) < size {
			token += "x" // only for what is refused unread
		}
		return token
	}
	testRefusals(t, v, []refusal{
		{"nothing", "", invalid, pawl.ReasonMissing},
		{"one past the limit", padTo(jwtgrant.MaxToken + 1), invalid, pawl.ReasonTooLarge},
		{"1 MB of one letter", strings.Repeat("a", 1<<20), invalid, pawl.ReasonTooLarge},
	})
	token := padTo(jwtgrant.MaxToken - 4)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("a token of %d bytes: %v", len(token), err)
	}
}

// TestKeysOfOneIssuerOnly has a token by a trusted issuer's key in the name of
// another trusted issuer.
func TestKeysOfOneIssuerOnly(t *testing.T) {
	sets := make([]*jwtgrant.KeySet, 2)
	for i := range sets {
		set, err := jwtgrant.NewKeySet(publicKey(t, byte(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		sets[i] = set
	}
	v, err := jwtgrant.NewVerifier(realm, []jwtgrant.TrustedIssuer{
		{Name: issuerName, Keys: sets[0], Kinds: []pawl.Kind{"credit.create"}, Tenants: []string{"", "acme"}},
		{Name: "second", Keys: sets[1], TenantScoped: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	second := func(changes fields) string {
		changes["iss"] = "second"
		return compact(2, goodHeader().with(fields{"kid": "key-2"}), goodClaims().with(changes))
	}
	testRefusals(t, v, []refusal{
		{"by the second in the first's name", compact(2, goodHeader().with(fields{"kid": "key-2"}), goodClaims().with(nil)), refused, pawl.ReasonSignature},
		{"by the second under the first's kid", compact(2, goodHeader().with(nil), goodClaims().with(nil)), refused, pawl.ReasonSignature},
		{"by the first in the second's name", forged(fields{"iss": "second"}), refused, pawl.ReasonSignature},
		{"a kind the issuer may not issue", forged(fields{"authorization_details": literal(`[{"type":"refund","details":{}}]`)}), refused, pawl.ReasonIssuerUnknown},
		{"a tenant the issuer may not issue for", forged(fields{"tenant": "globex"}), refused, pawl.ReasonIssuerUnknown},
	})
	for token, want := range map[string]pawl.GrantKey{
		forged(fields{"tenant": "acme"}): {Issuer: issuerName, ID: "grant-" + secret},
		second(fields{"tenant": "acme"}): {Issuer: "second", Namespace: "acme", ID: "grant-" + secret},
		second(fields{}):                 {Issuer: "second", ID: "grant-" + secret},
	} {
		got, err := v.Verify(t.Context(), token)
		if err != nil || got.Key != want {
			t.Errorf("got key %v, error %v, want %v", got.Key, err, want)
		}
	}
	claimed := second(fields{"tenant": "acme", "namespace": "globex"})
	if got, err := v.Verify(t.Context(), claimed); err != nil || got.Key.Namespace != "acme" {
		t.Errorf("a namespace from the token: got %v, error %v", got.Key, err)
	}
}
