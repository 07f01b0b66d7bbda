package jwtgrant

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/pawl-go/pawl"
)

// Algorithm is a signature algorithm by its JOSE name. All are asymmetric: a
// verifier that could also sign would be an issuer.
type Algorithm string

// The algorithms. EdDSA is Ed25519 and the default for new keys; RS256 is for
// issuers that have nothing better.
const (
	EdDSA Algorithm = "EdDSA"
	ES256 Algorithm = "ES256"
	PS256 Algorithm = "PS256"
	RS256 Algorithm = "RS256"
)

// Sizes of RSA keys in bits: what may be trusted at least, and what may cost a
// verifier its time at most.
const (
	minRSABits = 2048
	maxRSABits = 8192
	newRSABits = 3072
)

// fitting returns the algorithms of a key's type; none for a type that is not used.
func fitting(key crypto.PublicKey) []Algorithm {
	switch k := key.(type) {
	case ed25519.PublicKey:
		if len(k) == ed25519.PublicKeySize {
			return []Algorithm{EdDSA}
		}
	case *ecdsa.PublicKey:
		if k != nil && k.Curve == elliptic.P256() {
			return []Algorithm{ES256}
		}
	case *rsa.PublicKey:
		if k != nil && k.N != nil && k.N.BitLen() >= minRSABits && k.N.BitLen() <= maxRSABits {
			return []Algorithm{PS256, RS256}
		}
	}
	return nil
}

// PublicKey verifies an issuer's tokens. The zero value verifies nothing.
type PublicKey struct {
	id         string
	key        crypto.PublicKey
	algorithms []Algorithm
}

// NewPublicKey returns a key under the id that tokens name in their kid; an
// empty id becomes the key's RFC 7638 thumbprint. The key must be Ed25519, P-256
// or RSA of 2048 to 8192 bits. An empty algorithm means each that fits the type.
// Errors: ErrMisconfigured.
func NewPublicKey(id string, key crypto.PublicKey, a Algorithm) (PublicKey, error) {
	fits := fitting(key)
	if fits == nil {
		return PublicKey{}, misconfigured("a key is neither Ed25519 nor P-256 nor RSA of 2048 to 8192 bits")
	}
	if a != "" {
		if !slices.Contains(fits, a) {
			return PublicKey{}, misconfigured("a key does not fit its algorithm")
		}
		fits = []Algorithm{a}
	}
	if id == "" {
		digest, err := (&jose.JSONWebKey{Key: key}).Thumbprint(crypto.SHA256)
		if err != nil {
			return PublicKey{}, misconfigured("a key has no thumbprint")
		}
		id = encode(digest)
	}
	if pawl.CheckID("key id", id) != nil {
		return PublicKey{}, misconfigured("a key's id is malformed")
	}
	return PublicKey{id: id, key: key, algorithms: fits}, nil
}

// ID returns the id that tokens name in their kid.
func (k PublicKey) ID() string { return k.id }

// KeySource finds the public keys of one issuer.
type KeySource interface {
	// Key returns the key that kid names. An empty kid is that of a token which
	// names none: it stands for the only key there is, and for none where there are
	// several. Errors: ErrRefused for a key that is not the issuer's, ErrUnavailable
	// where that cannot be told now, ErrMisconfigured.
	Key(ctx context.Context, kid string) (PublicKey, error)
}

// SigningKey is a private key under its id, with the one algorithm it signs
// with. The zero value signs nothing.
type SigningKey struct {
	public PublicKey
	signer crypto.Signer
}

// NewSigningKey returns a key that signs with the algorithm a; signer may be a
// key in memory or in a security module. Ids are as in [NewPublicKey]. Errors:
// ErrMisconfigured.
func NewSigningKey(id string, signer crypto.Signer, a Algorithm) (SigningKey, error) {
	if signer == nil || a == "" {
		return SigningKey{}, misconfigured("a signing key or its algorithm is missing")
	}
	public, err := NewPublicKey(id, signer.Public(), a)
	if err != nil {
		return SigningKey{}, err
	}
	return SigningKey{public: public, signer: signer}, nil
}

// GenerateKey makes a key in memory; its id is its thumbprint. Errors:
// ErrMisconfigured for an algorithm that is not one of the four.
func GenerateKey(a Algorithm) (SigningKey, error) {
	var signer crypto.Signer
	var err error
	switch a {
	case EdDSA:
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	case ES256:
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case PS256, RS256:
		signer, err = rsa.GenerateKey(rand.Reader, newRSABits)
	default:
		return SigningKey{}, misconfigured("no such signature algorithm")
	}
	if err != nil {
		return SigningKey{}, err
	}
	return NewSigningKey("", signer, a)
}

// ID returns the id that tokens signed with the key name in their kid.
func (k SigningKey) ID() string { return k.public.id }

// Algorithm returns the algorithm it signs with, "" for the zero value.
func (k SigningKey) Algorithm() Algorithm {
	if len(k.public.algorithms) != 1 {
		return ""
	}
	return k.public.algorithms[0]
}

// Public returns the key that verifies what this one signs.
func (k SigningKey) Public() PublicKey { return k.public }

// SigningKey implements [SigningKeys] with the key itself.
func (k SigningKey) SigningKey() (SigningKey, error) {
	if k.signer == nil {
		return SigningKey{}, misconfigured("there is no signing key")
	}
	return k, nil
}

// String tells the id only, so that a key does not reach a log by accident [S2].
func (k SigningKey) String() string { return "signing key " + k.public.id }

// GoString hides the key as String does.
func (k SigningKey) GoString() string { return "jwtgrant.SigningKey{" + k.public.id + "}" }

// SigningKeys tells which key to sign with now. Errors: ErrMisconfigured where
// there is none, ErrUnavailable where that cannot be told now.
type SigningKeys interface {
	SigningKey() (SigningKey, error)
}

var (
	_ SigningKeys = SigningKey{}
	_ KeySource   = (*KeySet)(nil)
)
