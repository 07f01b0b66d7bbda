package pawl_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// vectors is testdata/vectors.json, which says how its bytes are laid out.
type vectors struct {
	About        string            `json:"about"`
	Layout       map[string]string `json:"layout"`
	Fingerprints []struct {
		Name        string    `json:"name"`
		Kind        pawl.Kind `json:"kind"`
		Details     string    `json:"details"`
		Canonical   string    `json:"canonical"`
		Fingerprint string    `json:"fingerprint"`
	} `json:"fingerprints"`
	Bindings []struct {
		Name       string   `json:"name"`
		Authority  string   `json:"authority"`
		Principal  string   `json:"principal"`
		Tenant     string   `json:"tenant"`
		Generation string   `json:"generation"`
		Scopes     []string `json:"scopes"`
		Bytes      string   `json:"bytes"`
		Binding    string   `json:"binding"`
	} `json:"bindings"`
	ReservationIDs []struct {
		Name        string `json:"name"`
		Scope       string `json:"scope"`
		Authority   string `json:"authority"`
		Principal   string `json:"principal"`
		Tenant      string `json:"tenant"`
		Key         string `json:"key"`
		Bytes       string `json:"bytes"`
		OperationID string `json:"operation_id"`
	} `json:"reservation_ids"`
	OwnerTokens []tokenVector `json:"owner_tokens"`
}

type tokenVector struct {
	Name        string          `json:"name"`
	Secret      string          `json:"secret"`
	OperationID string          `json:"operation_id"`
	Created     int64           `json:"created_micros"`
	Fence       uint64          `json:"fence"`
	Since       int64           `json:"since_micros"`
	Bytes       string          `json:"bytes"`
	Token       pawl.OwnerToken `json:"token"`
}

// operation is the record as it stands when the vector's owner owns it.
func (v tokenVector) operation(t *testing.T) pawl.Operation {
	t.Helper()
	return pawl.Operation{
		ID: operationID(t, v.OperationID), CreatedAt: time.UnixMicro(v.Created), Fence: v.Fence, OwnedSince: time.UnixMicro(v.Since),
	}
}

func readVectors(t *testing.T) (v vectors) {
	t.Helper()
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if len(v.Fingerprints) < 8 || len(v.Bindings) < 7 || len(v.ReservationIDs) < 7 || len(v.OwnerTokens) < 6 {
		t.Fatalf("vectors are missing: %d, %d, %d, %d", len(v.Fingerprints), len(v.Bindings), len(v.ReservationIDs), len(v.OwnerTokens))
	}
	return v
}

// distinct fails where two vectors that must differ do not.
func distinct(t *testing.T, seen map[string]string, name, value string) {
	t.Helper()
	if other, ok := seen[value]; ok {
		t.Errorf("%q and %q are the same", other, name)
	}
	seen[value] = name
}

// What is compared wherever intents are does not depend on how they were
// written, and differs for whatever differs.
func TestCase_CB11_FingerprintVectors(t *testing.T) {
	seen := map[string]string{}
	for _, v := range readVectors(t).Fingerprints {
		d, err := pawl.ParseDetails([]byte(v.Details))
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if got := string(d.JSON()); got != v.Canonical {
			t.Errorf("%s: canonical form %s, want %s", v.Name, got, v.Canonical)
		}
		i := pawl.Intent{Kind: v.Kind, Details: d}
		if got := i.Fingerprint().String(); got != v.Fingerprint {
			t.Errorf("%s: fingerprint %s, want %s", v.Name, got, v.Fingerprint)
		}
		distinct(t, seen, v.Name, v.Fingerprint)
		again, err := pawl.ParseDetails(d.JSON())
		if err != nil || again != d {
			t.Errorf("%s: the canonical form is not read as itself: %v", v.Name, err)
		}
	}
}

// The binding compares who holds the authority [M5], whatever the order of the
// scopes, and no two lists of fields have one encoding.
func TestBindingVectors(t *testing.T) {
	seen := map[string]string{}
	for _, v := range readVectors(t).Bindings {
		if got := digestOf(t, v.Bytes); got != v.Binding {
			t.Errorf("%s: the vector's bytes hash to %s and not to %s", v.Name, got, v.Binding)
		}
		c := pawl.Caller{
			Authority: v.Authority, Principal: v.Principal, Tenant: v.Tenant, Generation: v.Generation, Scopes: v.Scopes,
		}
		if got := c.Binding().String(); got != v.Binding {
			t.Errorf("%s: binding %s, want %s", v.Name, got, v.Binding)
		}
		if !strings.HasPrefix(v.Name, "scopes in another order") {
			distinct(t, seen, v.Name, v.Binding)
		}
	}
}

// The same key of two tenants, principals or authorities never meets [B2].
func TestReservationIDVectors(t *testing.T) {
	seen := map[string]string{}
	for _, v := range readVectors(t).ReservationIDs {
		scope := pawl.ScopePrincipal
		if v.Scope == "tenant" {
			scope = pawl.ScopeTenant
		}
		if scope.String() != v.Scope {
			t.Errorf("%s: scope is written %q, want %q", v.Name, scope, v.Scope)
		}
		id := pawl.ReservationID(scope, pawl.Caller{Authority: v.Authority, Principal: v.Principal, Tenant: v.Tenant}, v.Key)
		if got := id.String(); got != v.OperationID || id.Version() != 8 {
			t.Errorf("%s: id %s of version %d, want %s of version 8", v.Name, got, id.Version(), v.OperationID)
		}
		if got := digestOf(t, v.Bytes); got[:12] != strings.ReplaceAll(v.OperationID, "-", "")[:12] {
			t.Errorf("%s: the vector's bytes hash to %s, which is not of %s", v.Name, got, v.OperationID)
		}
		distinct(t, seen, v.Name, v.OperationID)
	}
	tenant := pawl.ReservationID(pawl.ScopeTenant, pawl.Caller{Principal: "ana", Tenant: "acme"}, "k")
	if tenant != pawl.ReservationID(pawl.ScopeTenant, pawl.Caller{Principal: "bob", Tenant: "acme"}, "k") {
		t.Error("two principals of one tenant have two ids under one key of the tenant")
	}
}

// An owner token proves one operation and one fence of one store [O1].
func TestOwnerTokenVectors(t *testing.T) {
	seen := map[string]string{}
	all := readVectors(t).OwnerTokens
	for _, v := range all {
		secret := secretOf(t, v.Secret)
		if got := secret.Mint(v.operation(t), v.Fence); got != v.Token {
			t.Errorf("%s: token %s, want %s", v.Name, string(got), string(v.Token))
		}
		distinct(t, seen, v.Name, string(v.Token))
		for _, w := range all {
			fence, ok := secretOf(t, w.Secret).Fence(w.operation(t), v.Token)
			mine := v.Secret == w.Secret && v.OperationID == w.OperationID && v.Created == w.Created
			want := v.Fence
			if v.Fence == w.Fence && v.Fence != 0 && v.Since != w.Since {
				want = w.Fence + 1 // an owner of another history
			}
			if ok != mine || ok && fence != want || !ok && fence != 0 {
				t.Errorf("the token of %q proves fence %d, %v to the store of %q", v.Name, fence, ok, w.Name)
			}
		}
	}
}

// A token that is changed in any bit, cut or padded proves nothing [O1].
func TestCase_CA21_ForgedTokens(t *testing.T) {
	v := readVectors(t).OwnerTokens[0]
	secret, op, token := secretOf(t, v.Secret), v.operation(t), string(v.Token)
	forged := []string{"", "x", token + "=", token + "A", token[:len(token)-1], " " + token, token + "\n", strings.ToUpper(token)}
	for i := range token {
		for _, c := range []byte("AZaz09-_") {
			if token[i] != c {
				forged = append(forged, token[:i]+string(c)+token[i+1:])
			}
		}
	}
	for _, f := range forged {
		if fence, ok := secret.Fence(op, pawl.OwnerToken(f)); ok || fence != 0 {
			t.Errorf("%q proves fence %d", f, fence)
		}
	}
	if _, ok := secret.Fence(pawl.Operation{}, secret.Mint(pawl.Operation{}, 1)); ok {
		t.Error("a token of the nil operation proves something")
	}
}

// Distinct bytes are distinct keys [A5].
func TestCase_CB1_DistinctKeys(t *testing.T) {
	keys := map[pawl.GrantKey]bool{}
	for _, k := range []pawl.GrantKey{
		{Issuer: "ab", ID: "c"},
		{Issuer: "a", ID: "bc"},
		{Issuer: "a", Namespace: "b", ID: "c"},
		{Issuer: "ab ", ID: "c"},
		{Issuer: "AB", ID: "c"},
		{Issuer: "ab", ID: "c "},
		{Issuer: "a/b", ID: "c"},
		{Issuer: "a", ID: "b/c"},
		{Issuer: "caf\u00e9", ID: "c"},
		{Issuer: "cafe\u0301", ID: "c"},
	} {
		if err := k.Validate(); err != nil {
			t.Errorf("%q: %v", k, err)
		}
		if keys[k] {
			t.Errorf("%q is another key too", k)
		}
		keys[k] = true
	}
}

// One operation has one spelling.
func TestOperationIDSpelling(t *testing.T) {
	const id = "018f4e3a-7c2b-7def-8abc-0123456789ab"
	for _, ok := range []string{id, strings.ToUpper(id)} {
		if got, err := pawl.ParseOperationID(ok); err != nil || got.String() != id {
			t.Errorf("%s: %v, %v", ok, got, err)
		}
	}
	for _, bad := range []string{
		"", "x", "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + " ",
		"00000000-0000-0000-0000-000000000000", id[:35] + "g",
	} {
		if got, err := pawl.ParseOperationID(bad); err == nil || !got.IsZero() {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func digestOf(t *testing.T, hexBytes string) string {
	t.Helper()
	raw, err := hex.DecodeString(hexBytes)
	if err != nil {
		t.Fatal(err)
	}
	d := sha256.Sum256(raw)
	return hex.EncodeToString(d[:])
}

func secretOf(t *testing.T, hexBytes string) (s pawl.TokenSecret) {
	t.Helper()
	raw, err := hex.DecodeString(hexBytes)
	if err != nil || copy(s[:], raw) != pawl.TokenSecretSize {
		t.Fatalf("%q is no secret: %v", hexBytes, err)
	}
	return s
}

func operationID(t *testing.T, s string) pawl.OperationID {
	t.Helper()
	id, err := pawl.ParseOperationID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
