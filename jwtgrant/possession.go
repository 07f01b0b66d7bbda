package jwtgrant

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

// proofType is the typ of a proof of possession (RFC 9449).
const proofType = "dpop+jwt"

// How far a proof's issue time may be from the filter's wall clock. It is a
// freshness of the proof, not of the grant.
const (
	proofAge  = time.Minute
	proofSkew = 5 * time.Second
)

// Proof is a proof of possession as it came with a request: the JWT from the
// DPoP header, and what the server knows of the request it came with.
type Proof struct {
	JWT    string
	Method string // of the request, such as POST
	URL    string // the one the client called, as the server is known outside; query and fragment do not count
}

// String hides the proof, so that it does not reach a log by accident [S2].
func (p Proof) String() string { return "proof of possession" }

// GoString hides the proof as String does.
func (p Proof) GoString() string { return "jwtgrant.Proof{hidden}" }

// BoundVerifier is a verifier for tokens that are bound to their holder's key.
type BoundVerifier interface {
	pawl.Verifier
	// VerifyWithProof is Verify with the proof that a bound token needs. A bearer
	// token needs none, and the proof is then not looked at. Errors as Verify;
	// ErrRefused with pawl.ReasonPossession for a proof that does not hold.
	VerifyWithProof(ctx context.Context, token string, p Proof) (pawl.Grant, error)
}

var (
	_ BoundVerifier         = (*Verifier)(nil)
	_ pawl.IssuanceVerifier = (*Verifier)(nil)
)

// VerifyWithProof implements [BoundVerifier]. The proof must be signed by the
// very key that the token names, for this token, method and URL, and be fresh.
// Whether it has been used before is not asked: a repeated proof comes with the
// same grant, which is admitted once whoever presents it [A2].
func (v *Verifier) VerifyWithProof(ctx context.Context, token string, p Proof) (pawl.Grant, error) {
	grant, bound, err := v.verify(ctx, token)
	if err != nil {
		return pawl.Grant{}, err
	}
	if bound == "" {
		return grant, nil
	}
	if p.JWT == "" {
		return pawl.Grant{}, noPossession("the grant is bound to a key, and no proof was given")
	}
	if err := v.checkProof(p, token, bound); err != nil {
		return pawl.Grant{}, err
	}
	return grant, nil
}

// VerifyIssuance implements pawl.IssuanceVerifier: it is Verify without the proof
// of possession. It permits nothing but a revocation [R2]. Errors as Verify.
func (v *Verifier) VerifyIssuance(ctx context.Context, token string) (pawl.Grant, error) {
	grant, _, err := v.verify(ctx, token)
	return grant, err
}

// proofKey is the key of a context's proof.
type proofKey struct{}

// ContextWithProof returns a context that brings the proof of one request to the
// verifier, through a gate that knows nothing of proofs.
func ContextWithProof(ctx context.Context, p Proof) context.Context {
	return context.WithValue(ctx, proofKey{}, p)
}

func noPossession(note string) error { return refused(pawl.ReasonPossession, note) }

func (v *Verifier) checkProof(p Proof, token string, bound Thumbprint) error {
	s, err := parse(p.JWT, proofType)
	if err != nil {
		return badProof(err)
	}
	key, usable, err := parseKey(s.header["jwk"])
	if err != nil || !usable {
		return noPossession("the proof does not bring a usable public key")
	}
	if key.Thumbprint() != bound {
		return noPossession("the proof is by another key than the grant is bound to")
	}
	if err := s.verify(key); err != nil {
		return badProof(err)
	}
	if _, err := s.claims.id("jti", true); err != nil {
		return badProof(err)
	}
	if method, ok := s.claims.text("htm"); !ok || p.Method == "" || method != p.Method {
		return noPossession("the proof is for another method")
	}
	address, _ := s.claims.text("htu")
	if called, ok := target(p.URL); !ok || !isTarget(address, called) {
		return noPossession("the proof is for another address")
	}
	if hash, ok := s.claims.text("ath"); !ok || hash != tokenHash(token) {
		return noPossession("the proof is for another token")
	}
	issued, err := s.claims.seconds("iat", true)
	if err != nil {
		return badProof(err)
	}
	if age := v.now().Sub(issued); age > proofAge || age < -proofSkew {
		return noPossession("the proof is too old, or from the future")
	}
	return nil
}

// badProof makes whatever is wrong with a proof one answer: the grant cannot be
// used without possession.
func badProof(err error) error {
	note := "the proof does not hold"
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		note = "proof: " + e.Note
	}
	return noPossession(note)
}

func tokenHash(token string) string {
	digest := sha256.Sum256([]byte(token))
	return encode(digest[:])
}

// target returns an address as RFC 9449 compares it: without query and fragment,
// scheme and host in lower case, no default port, and / for no path.
func target(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" {
		return "", false
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	default:
		return "", false
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return scheme + "://" + host + path, true
}

func isTarget(address, want string) bool {
	got, ok := target(address)
	return ok && got == want
}

// Prove returns the proof that a holder sends along with a token that is bound to
// its key, for one request. The thumbprint to bind to is that of Public. Errors:
// ErrInvalid for an address that is none, and as signing.
func (k SigningKey) Prove(token, method, address string, now time.Time) (string, error) {
	called, ok := target(address)
	if !ok {
		return "", malformed("the address is no http or https URL")
	}
	claims, err := json.Marshal(struct {
		ID       string `json:"jti"`
		Method   string `json:"htm"`
		Address  string `json:"htu"`
		IssuedAt int64  `json:"iat"`
		Token    string `json:"ath"`
	}{pawl.NewOperationID().String(), method, called, now.Unix(), tokenHash(token)})
	if err != nil {
		return "", malformed("the proof cannot be written as JSON")
	}
	embedded := k.public.jwk()
	embedded.KeyID, embedded.Use = "", ""
	return k.sign(proofType, claims, &embedded)
}
