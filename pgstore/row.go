package pgstore

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-go/pawl"
)

// operationRow receives @operation. Everything is a pointer, because some
// statements read a record that may not be there.
type operationRow struct {
	id                                       *uuid.UUID
	issuer, namespace, grantID               *string
	kind, details                            *string
	authority, principal, tenant, generation *string
	scopes                                   *string // as JSON
	fingerprint, binding                     []byte
	createdAt, submitBy                      *time.Time
	status                                   *int64
	result, resultDigest                     []byte
	reason                                   *string
	settledAt                                *time.Time
	fence                                    *int64
	ownedSince, leaseUntil, resumeAt         *time.Time
	takeovers                                *int64
	deferredReason                           *string
	deferredAt                               *time.Time
	mismatch, contradiction, divergence      *bool
	observations, entries, weak              *int64
	erased                                   *bool
}

func (r *operationRow) columns() []any {
	return []any{
		&r.id, &r.issuer, &r.namespace, &r.grantID, &r.kind, &r.details,
		&r.authority, &r.principal, &r.tenant, &r.generation, &r.scopes,
		&r.fingerprint, &r.binding, &r.createdAt, &r.submitBy,
		&r.status, &r.result, &r.resultDigest, &r.reason, &r.settledAt,
		&r.fence, &r.ownedSince, &r.leaseUntil, &r.resumeAt, &r.takeovers, &r.deferredReason, &r.deferredAt,
		&r.mismatch, &r.contradiction, &r.divergence,
		&r.observations, &r.entries, &r.weak, &r.erased,
	}
}

// operation returns the record, after checking what every reader relies on.
func (r *operationRow) operation() (pawl.Operation, error) {
	o := pawl.Operation{
		ID:        pawl.OperationID(*r.id),
		Intent:    pawl.Intent{Kind: pawl.Kind(*r.kind), Details: pawl.StoredDetails(*r.details)},
		Caller:    pawl.Caller{Authority: *r.authority, Principal: *r.principal, Tenant: *r.tenant, Generation: *r.generation},
		CreatedAt: timeOf(r.createdAt), SubmitBy: timeOf(r.submitBy),
		Status: pawl.Status(*r.status), Result: r.result, Reason: *r.reason, SettledAt: timeOf(r.settledAt),
		Fence: uint64(*r.fence), OwnedSince: timeOf(r.ownedSince), LeaseUntil: timeOf(r.leaseUntil), ResumeAt: timeOf(r.resumeAt),
		Takeovers: int(*r.takeovers), MismatchSeen: *r.mismatch, ContradictionSeen: *r.contradiction, DivergenceSeen: *r.divergence,
		Observations: uint64(*r.observations), Entries: uint64(*r.entries), WeakEntries: uint64(*r.weak), Erased: *r.erased,
	}
	if r.issuer != nil {
		o.Grant = pawl.GrantKey{Issuer: *r.issuer, Namespace: *r.namespace, ID: *r.grantID}
	}
	if r.deferredAt != nil {
		o.Deferred = &pawl.DeferredFailure{Reason: *r.deferredReason, At: timeOf(r.deferredAt)}
	}
	copy(o.Lock.Fingerprint[:], r.fingerprint)
	copy(o.Lock.Binding[:], r.binding)
	copy(o.ResultDigest[:], r.resultDigest)
	if err := json.Unmarshal([]byte(*r.scopes), &o.Caller.Scopes); err != nil {
		return pawl.Operation{}, r.broken("its scopes cannot be read")
	}
	if len(o.Caller.Scopes) == 0 {
		o.Caller.Scopes = nil
	}
	return o, r.check(o)
}

// check holds a record that was read to what it was written as [B1].
func (r *operationRow) check(o pawl.Operation) error {
	switch {
	case len(r.fingerprint) != len(o.Lock.Fingerprint) || len(r.binding) != len(o.Lock.Binding):
		return r.broken("its lock is not whole")
	case !o.Status.Valid():
		return r.broken("it has no status")
	case (o.Result != nil) != (o.Status == pawl.StatusSucceeded):
		return r.broken("it has a result without success, or a success without result")
	case !o.Erased && o.Lock.Fingerprint != o.Intent.Fingerprint():
		return r.broken("its lock is not that of its intent")
	}
	return nil
}

func (r *operationRow) broken(why string) error {
	return &defect{what: "the record " + r.id.String() + " is damaged: " + why}
}

// timeOf reads a time that may be null.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// orNull writes a time that may be none.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// digestOrNull writes a digest that may be none.
func digestOrNull(d pawl.ResultDigest) []byte {
	if d == (pawl.ResultDigest{}) {
		return nil
	}
	return d[:]
}

// grantRow receives @grant.
type grantRow struct {
	form                       *int64
	issuer, namespace, id      *string
	subject, tenant, authority *string
	kind, details              *string
	issuedAt, expiresAt        *time.Time
	leewayPolicy               *string
}

func (r *grantRow) columns() []any {
	return []any{
		&r.form, &r.issuer, &r.namespace, &r.id, &r.subject, &r.tenant, &r.authority, &r.kind, &r.details,
		&r.issuedAt, &r.expiresAt, &r.leewayPolicy,
	}
}

func (r *grantRow) grant(realm string) pawl.Grant {
	return pawl.Grant{
		Form: pawl.Form(*r.form), Realm: realm,
		Key:     pawl.GrantKey{Issuer: *r.issuer, Namespace: *r.namespace, ID: *r.id},
		Subject: *r.subject, Tenant: *r.tenant, Authority: *r.authority,
		Intent:   pawl.Intent{Kind: pawl.Kind(*r.kind), Details: pawl.StoredDetails(*r.details)},
		IssuedAt: timeOf(r.issuedAt), ExpiresAt: timeOf(r.expiresAt), LeewayPolicy: *r.leewayPolicy,
	}
}
