package service

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/pawl-go/pawl"
)

// Role is what a credential may do.
type Role string

// The roles.
const (
	RoleIssue    Role = "issue"    // issue grants
	RoleExecute  Role = "execute"  // admit, reserve, own, read as a caller
	RoleEvidence Role = "evidence" // report outcomes without having taken part
	RoleRevoke   Role = "revoke"   // withdraw grants [R4]
	RoleOperate  Role = "operate"  // read everything within the limits, resolve
	RoleAudit    Role = "audit"    // read everything within the limits
)

// Roles returns every role.
func Roles() []Role {
	return []Role{RoleIssue, RoleExecute, RoleEvidence, RoleRevoke, RoleOperate, RoleAudit}
}

// Credential is whom a bearer token stands for. The zero value has no role and
// may do nothing. An empty list of Tenants, Kinds or Issuers is no limit.
type Credential struct {
	Name    string // kept as who did it, in logs and records; at most pawl.MaxID bytes
	Roles   []Role
	Tenants []string
	Kinds   []pawl.Kind
	Issuers []string
}

// Has reports whether the credential has one of the roles.
func (c Credential) Has(any ...Role) bool {
	return slices.ContainsFunc(any, func(r Role) bool { return slices.Contains(c.Roles, r) })
}

func allows[T comparable](limits []T, v T) bool {
	return len(limits) == 0 || slices.Contains(limits, v)
}

func (c Credential) allowsTenant(t string) bool   { return allows(c.Tenants, t) }
func (c Credential) allowsKind(k pawl.Kind) bool  { return allows(c.Kinds, k) }
func (c Credential) allowsIssuer(iss string) bool { return allows(c.Issuers, iss) }

// covers reports whether an operation lies within the limits. A reservation has
// no issuer: a credential limited to issuers does not cover it.
func (c Credential) covers(o pawl.Operation) bool {
	return c.allowsTenant(o.Caller.Tenant) && c.allowsKind(o.Intent.Kind) && c.allowsIssuer(o.Grant.Issuer)
}

func (c Credential) limited() bool { return len(c.Tenants)+len(c.Kinds)+len(c.Issuers) > 0 }

// Authenticator turns a bearer token into a credential. An error that is
// pawl.ErrUnavailable is answered 503, any other one 401.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Credential, error)
}

// TokenHash is SHA-256 over a static bearer token: what a configuration holds
// instead of the token. Tokens must be random, of at least 16 bytes.
type TokenHash [sha256.Size]byte

// HashToken returns the hash of a token.
func HashToken(token string) TokenHash { return sha256.Sum256([]byte(token)) }

// StaticTokens authenticates tokens by their hashes. The look-up compares hashes,
// so its time tells nothing about the tokens.
type StaticTokens map[TokenHash]Credential

// Authenticate implements Authenticator.
func (s StaticTokens) Authenticate(_ context.Context, token string) (Credential, error) {
	c, ok := s[HashToken(token)]
	if !ok || token == "" {
		return Credential{}, errors.New("service: unknown token")
	}
	return c, nil
}
