package jwtgrant

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/pawl-go/pawl"
)

// MinSealKey is the least size of a sealing key in bytes.
const MinSealKey = 32

// Sealer makes and opens sealed operation ids: an id that the issuer has
// authenticated for one grant, so that nobody else can name an operation under
// it. Issuer and gate share its keys. The zero value opens nothing.
type Sealer struct{ keys [][]byte }

var _ pawl.IDSealer = (*Sealer)(nil)

// NewSealer returns a sealer that seals with the first key and opens what any of
// them sealed, so that a key can be replaced: first add the new one last
// everywhere, then move it first, then drop the old. Keys are random and of at
// least MinSealKey bytes. Errors: ErrMisconfigured.
func NewSealer(key []byte, older ...[]byte) (*Sealer, error) {
	s := &Sealer{}
	for _, k := range append([][]byte{key}, older...) {
		if len(k) < MinSealKey {
			return nil, misconfigured("a sealing key is shorter than 32 bytes")
		}
		s.keys = append(s.keys, append([]byte(nil), k...))
	}
	return s, nil
}

// Fresh returns a new operation id, a UUIDv7, with its sealed form for one grant.
func (s *Sealer) Fresh(key pawl.GrantKey) (pawl.OperationID, string) {
	id := pawl.NewOperationID()
	return id, s.Seal(id, key)
}

// Seal returns the sealed form of an id for one grant: the id, a dot, and in
// base64url HMAC-SHA256 over the fields "pawl/sealed-id/v1", the 16 bytes of the
// id, issuer, namespace and grant id, each as its length in 8 bytes, big-endian,
// and its bytes. A zero Sealer returns "", which nobody opens.
func (s *Sealer) Seal(id pawl.OperationID, key pawl.GrantKey) string {
	if s == nil || len(s.keys) == 0 {
		return ""
	}
	return id.String() + "." + encode(seal(s.keys[0], id, key))
}

// Open implements pawl.IDSealer. It takes the one spelling that Seal writes. Ids
// of reservations are none an issuer seals [B2]. Errors: ErrRefused with
// pawl.ReasonSealedID, whatever is wrong.
func (s *Sealer) Open(sealed string, key pawl.GrantKey) (pawl.OperationID, error) {
	name, mac, _ := strings.Cut(sealed, ".")
	id, err := pawl.ParseOperationID(name)
	got, notBase64 := decode(mac)
	if err != nil || notBase64 != nil || id.String() != name || id.Version() == 8 || s == nil {
		return pawl.OperationID{}, notSealed()
	}
	for _, k := range s.keys {
		if hmac.Equal(got, seal(k, id, key)) {
			return id, nil
		}
	}
	return pawl.OperationID{}, notSealed()
}

func notSealed() error {
	return refused(pawl.ReasonSealedID, "the operation id is not one that the issuer sealed for this grant")
}

func seal(secret []byte, id pawl.OperationID, key pawl.GrantKey) []byte {
	h := hmac.New(sha256.New, secret)
	for _, field := range []string{"pawl/sealed-id/v1", string(id[:]), key.Issuer, key.Namespace, key.ID} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		h.Write([]byte(field))
	}
	return h.Sum(nil)
}
