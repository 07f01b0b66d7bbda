package jwtgrant

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/canonical"
)

// TokenType is the typ of every grant's header, compared byte by byte.
const TokenType = "pawl-grant+jwt"

// MaxToken is the size of a token in bytes; a larger one is refused unread. The
// largest grant with the largest key fits.
const MaxToken = 32 << 10

// members is one JSON object, read strictly: names exact and each once. The
// values have been checked to be JSON.
type members map[string]json.RawMessage

// signed is a token taken apart. Nothing in it may be trusted before verify has
// returned nil.
type signed struct {
	compact   string
	algorithm Algorithm
	kid       string // empty: none named
	header    members
	claims    members
}

// parse takes a compact token apart. Only the one strict spelling of base64url is
// read: no padding, no line ends, no stray bits. Errors: ErrInvalid for what is
// no token, ErrRefused for a header that no grant has.
func parse(compact, typ string) (signed, error) {
	if compact == "" {
		return signed{}, invalid(pawl.ReasonMissing, "the token is empty")
	}
	if len(compact) > MaxToken {
		return signed{}, invalid(pawl.ReasonTooLarge, "the token is longer than 32 KiB")
	}
	parts := strings.SplitN(compact, ".", 4)
	if len(parts) != 3 {
		return signed{}, malformed("the token does not have three parts")
	}
	header, err := object(parts[0], "header")
	if err != nil {
		return signed{}, err
	}
	claims, err := object(parts[1], "payload")
	if err != nil {
		return signed{}, err
	}
	if _, err := decode(parts[2]); err != nil {
		return signed{}, malformed("the token's signature is not base64url")
	}
	s := signed{compact: compact, header: header, claims: claims}
	return s, s.readHeader(typ)
}

// object decodes one part of a token; what names it in the error.
func object(part, what string) (members, error) {
	raw, err := decode(part)
	if err != nil {
		return nil, malformed("the token's " + what + " is not base64url")
	}
	return parseMembers(raw, "the token's "+what)
}

func parseMembers(raw []byte, what string) (members, error) {
	if canonical.Strict(raw, MaxToken) != nil {
		return nil, malformed(what + " is not one strict JSON object")
	}
	var m members
	if json.Unmarshal(raw, &m) != nil { // cannot be, after Strict; fail closed if it ever is
		return nil, malformed(what + " is not one JSON object")
	}
	return m, nil
}

// encode and decode are base64url without padding, in its one strict spelling.
// The standard decoder skips line ends, which would give one token two spellings.
func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func decode(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, base64.CorruptInputError(0)
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}

// readHeader checks what the header says of how to verify. A header that brings
// its own key or changes what is signed is refused, and so is any extension that
// must be understood (crit): none is.
func (s *signed) readHeader(typ string) error {
	for _, name := range []string{"crit", "b64", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "zip"} {
		if _, has := s.header[name]; has && !(name == "jwk" && typ == proofType) {
			return notAuthentic("the token's header has " + name)
		}
	}
	if got, ok := s.header.text("typ"); !ok || got != typ {
		return notAuthentic("the token is of another type")
	}
	name, _ := s.header.text("alg")
	s.algorithm = Algorithm(name)
	switch s.algorithm {
	case EdDSA, ES256, PS256, RS256:
	default:
		return notAuthentic("the token's algorithm is not one of EdDSA, ES256, PS256, RS256")
	}
	if _, has := s.header["kid"]; !has {
		return nil
	}
	kid, ok := s.header.text("kid")
	if !ok || pawl.CheckID("kid", kid) != nil {
		return notAuthentic("the token's kid is malformed")
	}
	s.kid = kid
	return nil
}

// text returns a member that is a string.
func (m members) text(name string) (value string, ok bool) {
	raw := m[name]
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return value, json.Unmarshal(raw, &value) == nil
}

// verify checks the signature with one key, which must be for the token's
// algorithm: a key never follows what a token says of it.
func (s signed) verify(k PublicKey) error {
	if !slices.Contains(k.algorithms, s.algorithm) {
		return notAuthentic("the token's algorithm is not its key's")
	}
	parsed, err := jose.ParseSignedCompact(s.compact, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(s.algorithm)})
	if err != nil {
		return malformed("the token is no signed JWT")
	}
	payload, err := parsed.Verify(k.key)
	if err != nil {
		return notAuthentic("the token's signature is not its issuer's")
	}
	if part := strings.Split(s.compact, ".")[1]; encode(payload) != part { // what was verified is what was read
		return notAuthentic("the token's signature is of another payload")
	}
	return nil
}
