package jwtgrant

import (
	"context"
	"crypto"
	"encoding/json"
	"maps"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/pawl-go/pawl/internal/canonical"
)

// Limits of a key set: what a document from outside may cost.
const (
	MaxKeySet = 256 << 10 // bytes of the document
	MaxKeys   = 100       // keys in it
)

// KeySet is a fixed set of an issuer's public keys, each under an id of its own.
// The zero value has none and refuses everything. It may be used by many
// goroutines at once.
type KeySet struct{ keys map[string]PublicKey }

// NewKeySet returns a set. Errors: ErrMisconfigured for no keys, too many, a zero
// one, or two under one id.
func NewKeySet(keys ...PublicKey) (*KeySet, error) {
	if len(keys) == 0 {
		return nil, misconfigured("a key set has no usable key")
	}
	if len(keys) > MaxKeys {
		return nil, misconfigured("a key set has more than 100 keys")
	}
	set := &KeySet{keys: make(map[string]PublicKey, len(keys))}
	for _, k := range keys {
		if k.id == "" || len(k.algorithms) == 0 {
			return nil, misconfigured("a key set has a zero key")
		}
		if _, twice := set.keys[k.id]; twice {
			return nil, misconfigured("a key set has two keys under one id")
		}
		set.keys[k.id] = k
	}
	return set, nil
}

// ParseKeySet reads a JWK set (RFC 7517). Keys of other types and keys that are
// not for signatures are passed over, as the RFC says. A key without an id gets
// its thumbprint. A set that holds a private key is refused as a whole: it is no
// longer only the issuer that can sign. Errors: ErrMisconfigured.
func ParseKeySet(raw []byte) (*KeySet, error) {
	if canonical.Strict(raw, MaxKeySet) != nil {
		return nil, misconfigured("a key set is not one strict JSON object of at most 256 KiB")
	}
	var document map[string]json.RawMessage
	var members []json.RawMessage
	if json.Unmarshal(raw, &document) != nil || json.Unmarshal(document["keys"], &members) != nil {
		return nil, misconfigured("a key set has no list of keys")
	}
	var keys []PublicKey
	for _, member := range members {
		k, usable, err := parseKey(member)
		if err != nil {
			return nil, err
		}
		if usable {
			keys = append(keys, k)
		}
	}
	return NewKeySet(keys...)
}

// parseKey reads one JWK; usable is false for one to pass over.
func parseKey(raw json.RawMessage) (k PublicKey, usable bool, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return PublicKey{}, false, nil
	}
	for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "priv"} {
		if _, has := members[private]; has {
			return PublicKey{}, false, misconfigured("a key set holds a private key")
		}
	}
	if operations, limited := members["key_ops"]; limited {
		var names []string
		if json.Unmarshal(operations, &names) != nil || !slices.Contains(names, "verify") {
			return PublicKey{}, false, nil
		}
	}
	var parsed jose.JSONWebKey
	if json.Unmarshal(raw, &parsed) != nil || !parsed.Valid() || (parsed.Use != "" && parsed.Use != "sig") {
		return PublicKey{}, false, nil
	}
	k, err = NewPublicKey(parsed.KeyID, parsed.Key, Algorithm(parsed.Algorithm))
	return k, err == nil, nil
}

// Key implements [KeySource]. Errors: ErrRefused.
func (s *KeySet) Key(_ context.Context, kid string) (PublicKey, error) {
	if s == nil {
		return PublicKey{}, notAuthentic("no keys are known")
	}
	if kid == "" {
		if len(s.keys) != 1 {
			return PublicKey{}, notAuthentic("the token names no key, and its issuer has several")
		}
		for _, only := range s.keys {
			return only, nil
		}
	}
	k, ok := s.keys[kid]
	if !ok {
		return PublicKey{}, notAuthentic("the token names a key that its issuer does not have")
	}
	return k, nil
}

// Keys returns the keys in the order of their ids.
func (s *KeySet) Keys() []PublicKey {
	ids := slices.Sorted(maps.Keys(s.keys))
	keys := make([]PublicKey, len(ids))
	for i, id := range ids {
		keys[i] = s.keys[id]
	}
	return keys
}

// MarshalJSON implements json.Marshaler: the public JWK set, in the order of the
// keys' ids, for others to verify with.
func (s *KeySet) MarshalJSON() ([]byte, error) {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range s.Keys() {
		set.Keys = append(set.Keys, k.jwk())
	}
	return json.Marshal(set)
}

func (k PublicKey) jwk() jose.JSONWebKey {
	j := jose.JSONWebKey{Key: k.key, KeyID: k.id, Use: "sig"}
	if len(k.algorithms) == 1 {
		j.Algorithm = string(k.algorithms[0])
	}
	return j
}

// Thumbprint is the RFC 7638 SHA-256 thumbprint of a key, in base64url: what a
// bound token names in cnf.jkt.
type Thumbprint string

// Thumbprint returns the thumbprint of the key, "" of the zero value.
func (k PublicKey) Thumbprint() Thumbprint {
	digest, err := (&jose.JSONWebKey{Key: k.key}).Thumbprint(crypto.SHA256)
	if err != nil {
		return ""
	}
	return Thumbprint(encode(digest))
}
