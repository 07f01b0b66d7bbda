package jwtgrant_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
	"pgregory.net/rapid"
)

// anyGrant draws grants that are valid, and some that are not quite.
func anyGrant(t *rapid.T) pawl.Grant {
	good := rapid.StringMatching(`[a-zéΩ\x{1F600}"\\<&> /]{1,20}`)
	id := rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 19).Draw(t, "odd") == 19 {
			return rapid.StringN(0, 20, pawl.MaxID+1).Draw(t, "any")
		}
		return good.Draw(t, "good")
	})
	content := map[string]string{id.Draw(t, "member"): id.Draw(t, "value")}
	raw, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := pawl.ParseDetails(raw) // none where they are malformed
	issued := time.Unix(rapid.Int64Range(946_684_000, 221_845_393_000).Draw(t, "issued"), 0).UTC()
	g := pawl.Grant{
		Form: pawl.FormToken, Key: pawl.GrantKey{Issuer: issuerName, ID: id.Draw(t, "id")}, Realm: realm,
		Subject: id.Draw(t, "subject"), Tenant: id.Draw(t, "tenant"), Authority: id.Draw(t, "authority"),
		LeewayPolicy: id.Draw(t, "policy"), Intent: pawl.Intent{Kind: pawl.Kind(rapid.StringMatching(`[a-z0-9._-]{1,64}`).Draw(t, "kind")), Details: d},
		IssuedAt: issued, ExpiresAt: issued.Add(time.Duration(rapid.SampledFrom([]int64{1, 60, 3600, 86_400, 86_401, 900}).Draw(t, "lifetime")) * time.Second),
	}
	if rapid.Bool().Draw(t, "has nbf") {
		g.NotBefore = issued.Add(time.Minute)
	}
	return g
}

// TestSignedMeansVerified holds for every grant: either it is refused before it
// is signed, as malformed, or every verifier reads back the very same grant.
func TestSignedMeansVerified(t *testing.T) {
	key, err := jwtgrant.NewSigningKey("key-1", edKey(1), jwtgrant.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	i, v := newIssuer(t, key, nil), trusting(t, publicKey(t, 1))
	signed := 0
	rapid.Check(t, func(rt *rapid.T) {
		g := anyGrant(rt)
		token, err := i.Sign(g)
		if err != nil {
			if !errors.Is(err, pawl.ErrInvalid) || token != "" {
				rt.Fatalf("refused with %v", err)
			}
			return
		}
		signed++
		if got, err := v.Verify(t.Context(), token); err != nil || got != g {
			rt.Fatalf("signed, and verified as %+v, %v", got, err)
		}
	})
	if signed < 5 {
		t.Errorf("only %d grants were valid enough to be signed", signed)
	}
	t.Logf("%d grants were signed", signed)
}
