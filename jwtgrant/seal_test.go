package jwtgrant_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

func newSealer(t testing.TB, keys ...byte) *jwtgrant.Sealer {
	t.Helper()
	secrets := make([][]byte, len(keys))
	for i, k := range keys {
		secrets[i] = bytes.Repeat([]byte{k}, jwtgrant.MinSealKey)
	}
	s, err := jwtgrant.NewSealer(secrets[0], secrets[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantNotSealed(t *testing.T, s *jwtgrant.Sealer, name, sealed string, key pawl.GrantKey) {
	t.Helper()
	id, err := s.Open(sealed, key)
	if pawl.ReasonOf(err) != pawl.ReasonSealedID || !id.IsZero() {
		t.Errorf("%s: got %v, error %v, want refused", name, id, err)
	}
}

func TestSealedID(t *testing.T) {
	s, key := newSealer(t, 1), credit(t).Key
	id, sealed := s.Fresh(key)
	if id.Version() != 7 || !strings.HasPrefix(sealed, id.String()+".") {
		t.Errorf("a fresh id is %v, sealed %q", id, sealed)
	}
	if got, err := s.Open(sealed, key); err != nil || got != id {
		t.Errorf("opened %v, error %v, want %v", got, err, id)
	}
	other, _ := s.Fresh(key)
	_, mac, _ := strings.Cut(sealed, ".")
	for name, text := range map[string]string{
		"nothing": "", "an id alone": id.String(), "a dot": ".", "another id": other.String() + "." + mac,
		"in capitals": strings.ToUpper(id.String()) + "." + mac, "a byte more": sealed + "A", "a byte less": sealed[:len(sealed)-1],
		"padded": sealed + "=", "a line end": sealed + "\n", "no code": id.String() + ".",
		"the nil id": s.Seal(pawl.OperationID{}, key), "a reservation's id": s.Seal(pawl.ReservationID(0, pawl.Caller{Principal: "a"}, "k"), key),
	} {
		wantNotSealed(t, s, name, text, key)
	}
	for name, k := range map[string]pawl.GrantKey{
		"another grant": {Issuer: key.Issuer, ID: "grant-2"}, "another issuer": {Issuer: "x", ID: key.ID},
		"another namespace": {Issuer: key.Issuer, Namespace: "acme", ID: key.ID}, "no grant": {},
		"the same bytes, cut elsewhere": {Issuer: key.Issuer + key.ID[:1], ID: key.ID[1:]},
	} {
		wantNotSealed(t, s, name, sealed, k)
	}
	wantNotSealed(t, newSealer(t, 2), "another secret", sealed, key)
	wantNotSealed(t, &jwtgrant.Sealer{}, "no secret", sealed, key)
	wantNotSealed(t, nil, "no sealer", sealed, key)
	if zero := (&jwtgrant.Sealer{}).Seal(id, key); zero != "" {
		t.Errorf("a zero sealer seals %q", zero)
	}
	if _, err := jwtgrant.NewSealer(make([]byte, 31)); err == nil {
		t.Error("a short secret is accepted")
	}
	if _, err := jwtgrant.NewSealer(make([]byte, 32), nil); err == nil {
		t.Error("an empty older secret is accepted")
	}
}

// TestSealVector fixes the layout of the code for other languages.
func TestSealVector(t *testing.T) {
	id := pawl.OperationID(uuid.MustParse("01941f29-7c00-7aaa-8bbb-0123456789ab"))
	got := newSealer(t, 1).Seal(id, pawl.GrantKey{Issuer: "issuer", Namespace: "tenant", ID: "grant-1"})
	if want := "01941f29-7c00-7aaa-8bbb-0123456789ab.OwrwHMnE3rUhZiAvGQYQizdS_XNtfxDCK9WUKfQW2Ys"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNewSecretTakesOver(t *testing.T) {
	key := credit(t).Key
	old, both, next := newSealer(t, 1), newSealer(t, 2, 1), newSealer(t, 2)
	id, sealed := old.Fresh(key)
	if got, err := both.Open(sealed, key); err != nil || got != id {
		t.Errorf("under the older secret: %v", err)
	}
	wantNotSealed(t, next, "under a secret that was dropped", sealed, key)
	if _, err := next.Open(both.Seal(id, key), key); err != nil {
		t.Errorf("under the first secret: %v", err)
	}
}

// TestSealedIDThroughAGate has ids that a caller made up refused before
// admission, with the grant unspent.
func TestSealedIDThroughAGate(t *testing.T) {
	k, s := newKey(t, jwtgrant.EdDSA), newSealer(t, 1)
	b := newBoundary(t, trusting(t, k.Public()), s, noon())
	r := request(signedCredit(t, k, nil))
	b.wantNothing(t, r, invalid, pawl.ReasonMissing)
	madeUp := r
	madeUp.OperationID, madeUp.SealedOperationID = pawl.OperationID{}, pawl.NewOperationID().String()+"."+b64(make([]byte, 32))
	b.wantNothing(t, madeUp, refused, pawl.ReasonSealedID)
	_, foreign := s.Fresh(pawl.GrantKey{Issuer: issuerName, ID: "another"})
	madeUp.SealedOperationID = foreign
	b.wantNothing(t, madeUp, refused, pawl.ReasonSealedID)
	id, sealed := s.Fresh(credit(t).Key)
	r.OperationID, r.SealedOperationID = id, sealed
	b.wantAdmitted(t, r)
}
