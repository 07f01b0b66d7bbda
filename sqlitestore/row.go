package sqlitestore

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

// Times are stored as microseconds since 1970, durations as microseconds: whole
// ones, so that a decision of the statements and one of the rule never differ.

func micros(t time.Time) int64 { return t.UnixMicro() }

func microsOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func timeOf(us int64) time.Time { return time.UnixMicro(us).UTC() }

func timeUnlessZero(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return timeOf(us)
}

func timeOrZero(us *int64) time.Time {
	if us == nil {
		return time.Time{}
	}
	return timeOf(*us)
}

func duration(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// record is one row of pawl_operations as it is scanned.
type record struct {
	op    pawl.Operation
	rowID int64

	id, fingerprint, binding, digest   []byte
	issuer, namespace, grantID         *string
	kind, details, scopes              string
	createdAt, submitBy                int64
	status, fence, takeovers           int64
	settledAt, resumeAt, deferredAt    *int64
	ownedSince, leaseUntil             int64
	deferredReason                     *string
	observations, entries, weakEntries int64
}

// dest lists where the columns go, in the order of every statement that reads
// whole records.
func (r *record) dest() []any {
	o := &r.op
	return []any{
		&r.rowID, &r.id, &r.issuer, &r.namespace, &r.grantID, &r.kind, &r.details,
		&o.Caller.Authority, &o.Caller.Principal, &o.Caller.Tenant, &r.scopes, &o.Caller.Generation,
		&r.fingerprint, &r.binding,
		&r.createdAt, &r.submitBy, &r.status, &o.Result, &r.digest, &o.Reason, &r.settledAt,
		&r.fence, &r.ownedSince, &r.leaseUntil, &r.resumeAt, &r.takeovers, &r.deferredReason, &r.deferredAt,
		&o.MismatchSeen, &o.ContradictionSeen, &o.DivergenceSeen,
		&r.observations, &r.entries, &r.weakEntries, &o.Erased,
	}
}

// read makes the operation of what was scanned, and checks what the type
// promises: a row that breaks it is a defect, never acted upon.
func (r *record) read() error {
	o := &r.op
	if !fill(o.ID[:], r.id) || !fill(o.Lock.Fingerprint[:], r.fingerprint) || !fill(o.Lock.Binding[:], r.binding) {
		return errSize
	}
	if r.digest != nil && !fill(o.ResultDigest[:], r.digest) {
		return errSize
	}
	if r.issuer != nil && r.namespace != nil && r.grantID != nil {
		o.Grant = pawl.GrantKey{Issuer: *r.issuer, Namespace: *r.namespace, ID: *r.grantID}
	}
	o.Intent = pawl.Intent{Kind: pawl.Kind(r.kind), Details: pawl.StoredDetails(r.details)}
	if r.scopes != "" {
		o.Caller.Scopes = strings.Split(r.scopes, "\n")
	}
	o.Status, o.Fence, o.Takeovers = pawl.Status(r.status), uint64(r.fence), int(r.takeovers)
	o.CreatedAt, o.SubmitBy, o.SettledAt = timeOf(r.createdAt), timeOf(r.submitBy), timeOrZero(r.settledAt)
	o.OwnedSince, o.LeaseUntil, o.ResumeAt = timeOf(r.ownedSince), timeOf(r.leaseUntil), timeOrZero(r.resumeAt)
	if r.deferredAt != nil && r.deferredReason != nil {
		o.Deferred = &pawl.DeferredFailure{Reason: *r.deferredReason, At: timeOf(*r.deferredAt)}
	}
	o.Observations, o.Entries, o.WeakEntries = uint64(r.observations), uint64(r.entries), uint64(r.weakEntries)
	if o.Result == nil && o.Status == pawl.StatusSucceeded {
		o.Result = []byte{} // the driver makes nothing of an empty blob; the schema allows no NULL here
	}
	if !o.Status.Valid() || o.Lock != lockOf(*o) {
		return fmt.Errorf("operation %v is not what was written", o.ID)
	}
	return nil
}

// lockOf is what the lock of an operation must be; of an erased one the details
// are gone and the fingerprint remains.
func lockOf(o pawl.Operation) pawl.Lock {
	l := pawl.LockOf(o.Intent, o.Caller)
	if o.Erased {
		l.Fingerprint = o.Lock.Fingerprint
	}
	return l
}

// fill copies a value of exactly the size it must have.
func fill(dst, src []byte) bool { return copy(dst, src) == len(dst) && len(src) == len(dst) }

func digestOf(o pawl.Operation) any {
	if o.Status != pawl.StatusSucceeded {
		return nil
	}
	return o.ResultDigest[:]
}

func deferredReason(o pawl.Operation) any {
	if o.Deferred == nil {
		return nil
	}
	return o.Deferred.Reason
}

func deferredAt(o pawl.Operation) any {
	if o.Deferred == nil {
		return nil
	}
	return micros(o.Deferred.At)
}

// wholeMicroseconds is the operation as it will be read back.
func wholeMicroseconds(o pawl.Operation) pawl.Operation {
	for _, t := range []*time.Time{
		&o.CreatedAt, &o.SubmitBy, &o.SettledAt, &o.OwnedSince, &o.LeaseUntil, &o.ResumeAt,
	} {
		if !t.IsZero() {
			*t = timeOf(t.UnixMicro())
		}
	}
	return o
}

// wholeTimes is the grant as the statements see it.
func wholeTimes(g pawl.Grant) pawl.Grant {
	for _, t := range []*time.Time{&g.IssuedAt, &g.NotBefore, &g.ExpiresAt} {
		if !t.IsZero() {
			*t = timeOf(t.UnixMicro())
		}
	}
	return g
}

// grantRow is one row of pawl_grants as it is scanned.
type grantRow struct {
	grant     pawl.Grant
	requestID string
	digest    pawl.RequestDigest

	realm               string // every row is of this store's realm
	form                int64
	rawDigest           []byte
	kind, details       string
	issuedAt, expiresAt int64
}

func (r *grantRow) dest() []any {
	g := &r.grant
	return []any{
		&g.Key.Issuer, &g.Key.Namespace, &g.Key.ID, &r.form, &r.requestID, &r.rawDigest, &g.Subject, &g.Tenant,
		&g.Authority, &r.kind, &r.details, &r.issuedAt, &r.expiresAt, &g.LeewayPolicy,
	}
}

func (r *grantRow) read() error {
	if !fill(r.digest[:], r.rawDigest) {
		return errSize
	}
	r.grant.Form, r.grant.Realm = pawl.Form(r.form), r.realm
	r.grant.Intent = pawl.Intent{Kind: pawl.Kind(r.kind), Details: pawl.StoredDetails(r.details)}
	r.grant.IssuedAt, r.grant.ExpiresAt = timeOf(r.issuedAt), timeOf(r.expiresAt)
	return nil
}

// holder is who holds a grant key: an operation, or a revocation.
type holder struct {
	held      bool
	operation []byte // NULL of a revocation
	at        *int64
	by        *string
	reason    *string
}

func (h *holder) dest() []any { return []any{&h.operation, &h.at, &h.by, &h.reason} }

// operationID is zero for a revocation.
func (h *holder) operationID() (id pawl.OperationID) {
	copy(id[:], h.operation)
	return id
}
