package pawl

import (
	"crypto/sha256"
	"time"
)

// Issuance asks a store to write a grant: a stored one, or the issuance log's
// row of a token that the caller signs afterwards from the answer. It is
// idempotent by RequestID within the issuer.
type Issuance struct {
	RequestID    string // at most MaxID bytes
	Form         Form
	Issuer       string
	Namespace    string // the tenant, only for an issuer that scopes its ids per tenant
	Subject      string
	Tenant       string
	Authority    string
	Intent       Intent
	Lifetime     time.Duration // whole seconds
	LeewayPolicy string
	// GrantID is the id to give a new grant, a fresh UUIDv7 from [NewOperationID]
	// for example. A repeated request gets the id of the first.
	GrantID string
}

// Validate reports, as ErrInvalid, what is missing or malformed. The store
// checks Lifetime against its policy.
func (i Issuance) Validate() error {
	if err := checkID("request id", i.RequestID); err != nil {
		return err
	}
	if i.Lifetime <= 0 || i.Lifetime%time.Second != 0 {
		return invalid(ReasonMalformed, "lifetime is not a positive number of whole seconds")
	}
	return i.Grant("", time.Unix(1_700_000_000, 0)).Validate()
}

// Grant returns the grant that a store writes at the store time now. Issue time
// and expiry are whole seconds, so that a token states them exactly; the issue
// time is rounded down.
func (i Issuance) Grant(realm string, now time.Time) Grant {
	issued := now.Truncate(time.Second)
	return Grant{
		Form: i.Form, Key: GrantKey{Issuer: i.Issuer, Namespace: i.Namespace, ID: i.GrantID}, Realm: realm,
		Subject: i.Subject, Tenant: i.Tenant, Authority: i.Authority, Intent: i.Intent,
		IssuedAt: issued, ExpiresAt: issued.Add(i.Lifetime), LeewayPolicy: i.LeewayPolicy,
	}
}

// RequestDigest is SHA-256 over the content of a request: the same request id
// with another digest is ErrMismatch with ReasonRequestMismatch.
type RequestDigest [sha256.Size]byte

// Digest returns the digest of the content; GrantID is not part of it.
func (i Issuance) Digest() RequestDigest {
	h := sha256.New()
	f := i.Intent.Fingerprint()
	writeFields(h, "pawl/issuance/v1", i.Form.String(), i.Issuer, i.Namespace, i.Subject, i.Tenant, i.Authority,
		string(f[:]), i.Lifetime.String(), i.LeewayPolicy)
	return RequestDigest(h.Sum(nil))
}

// Issued is the answer of an issuance. Again says that the request was known
// and Grant is the one written then.
type Issued struct {
	Grant Grant
	Again bool
}

// Revocation asks a store to withdraw a grant. It contends for the same key as
// an admission: whichever commits first wins [R1].
type Revocation struct {
	Key GrantKey
	// Proof is the verified signed grant, whose key must be Key. Without it the
	// store looks for the grant's row (stored, or the issuance log); without that
	// the answer is ErrRefused with ReasonNotProven and nothing is written [R2].
	Proof *Grant
	// ProvenElsewhere says that a trustworthy record outside the store proves
	// the issue but does not tell the expiry: the refusal row is then kept from
	// the time of the write for the longest lifetime any grant may have [R3]. It
	// never comes from a request.
	ProvenElsewhere bool
	By              string // who revokes, kept for ever; at most MaxID bytes
	Reason          string // why; at most MaxReason bytes
}

// Validate reports, as ErrInvalid, what is missing or malformed.
func (r Revocation) Validate() error {
	if err := r.Key.Validate(); err != nil {
		return err
	}
	if r.Proof != nil {
		if err := r.Proof.Validate(); err != nil {
			return err
		}
		if r.Proof.Key != r.Key {
			return invalid(ReasonMalformed, "the proof is of another grant")
		}
	}
	if err := checkID("revoker", r.By); err != nil {
		return err
	}
	return CheckNote("reason", r.Reason)
}

// RevocationState is what a revocation found or made.
type RevocationState string

// The states. After admission a revocation changes nothing and says so [R1].
const (
	Revoked         RevocationState = "revoked"
	AlreadyRevoked  RevocationState = "already_revoked"
	AlreadyAdmitted RevocationState = "already_admitted"
	GrantExpired    RevocationState = "expired" // past its deadline; nothing written
)

// RefusalRetention returns until when a refusal record must live [R3]: the
// trusted expiry + leeway, or, where no expiry is known (zero), from the time
// of the write, for the longest lifetime any grant may have. The purge margin
// comes on top at purge.
func (p Policy) RefusalRetention(expiresAt time.Time, leewayPolicy string, written time.Time) time.Time {
	if expiresAt.IsZero() {
		return written.Add(p.MaxGrantLifetime + p.IssueSkew + p.longestLeeway())
	}
	leeway, ok := p.Leeways[leewayPolicy]
	if !ok {
		leeway = p.longestLeeway()
	}
	return expiresAt.Add(leeway)
}

// RevocationRetention returns until when the refusal record of a revocation must
// live, from what is known of the grant: its row, its proof, both or neither
// (nil) [R3]. One key may be known with two expiries, as a token and as a row; the
// later one counts, and never less than the longest life of any grant under the
// key that was issued by now. expired says that everything known is over: then
// there is nothing to refuse.
func (p Policy) RevocationRetention(row, proof *Grant, written time.Time) (retain time.Time, expired bool) {
	retain = p.RefusalRetention(time.Time{}, "", written)
	expired = row != nil || proof != nil
	for _, g := range []*Grant{row, proof} {
		if g == nil {
			continue
		}
		until := p.RefusalRetention(g.ExpiresAt, g.LeewayPolicy, written)
		if until.After(written) {
			expired = false
		}
		if until.After(retain) {
			retain = until
		}
	}
	return retain, expired
}

func (p Policy) longestLeeway() (longest time.Duration) {
	for _, d := range p.Leeways {
		longest = max(longest, d)
	}
	return longest
}

// GrantRecord is a stored grant, or a token's row in the issuance log, with what
// became of it.
type GrantRecord struct {
	Grant     Grant
	RequestID string
	State     GrantRecordState
	Operation OperationID // that used it; zero for none
	RevokedBy string
	RevokedAt time.Time
	Reason    string // of the revocation
}

// GrantRecordState is what became of a grant.
type GrantRecordState string

// The states of a grant's row. A used or revoked grant stays so after expiry.
const (
	GrantStateIssued  GrantRecordState = "issued"
	GrantStateUsed    GrantRecordState = "used"
	GrantStateRevoked GrantRecordState = "revoked"
	GrantStateExpired GrantRecordState = "expired"
)

// GrantFilter selects rows of grants, newest first. Empty fields select all;
// Tenants and Kinds and Issuers, where not empty, are the limits of a
// credential as well as a choice.
type GrantFilter struct {
	Issuers []string
	Tenants []string
	Kinds   []Kind
	Subject string
	State   GrantRecordState
	Cursor  string
	Limit   int // 1 to MaxPage; 0 is 100
}

// GrantPage is one page of grants. Next is empty on the last one.
type GrantPage struct {
	Grants []GrantRecord
	Next   string
}

// IntentRevocation withdraws every unused, unexpired stored grant of one
// subject for one intent.
type IntentRevocation struct {
	Issuer  string
	Subject string
	Tenant  string
	Intent  Intent
	By      string
	Reason  string
}

// Validate reports, as ErrInvalid, what is missing or malformed.
func (r IntentRevocation) Validate() error {
	for _, f := range []struct{ what, value string }{{"issuer", r.Issuer}, {"subject", r.Subject}, {"revoker", r.By}} {
		if err := checkID(f.what, f.value); err != nil {
			return err
		}
	}
	if err := checkOptionalID("tenant", r.Tenant); err != nil {
		return err
	}
	if err := r.Intent.Validate(); err != nil {
		return err
	}
	return CheckNote("reason", r.Reason)
}
