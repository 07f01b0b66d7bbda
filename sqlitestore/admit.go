package sqlitestore

import (
	"context"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/failpoint"
)

// Admit implements pawl.Store.
func (s *Store) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	if err := a.Validate(); err != nil {
		return pawl.Admitted{}, err // [A9]
	}
	return write(ctx, s, pawl.ErrNotConfirmed, func(t *txn) (pawl.Admitted, error) { return t.admit(a) })
}

// admit claims the grant and records the operation. It runs in a savepoint: an
// error of either statement undoes both [A2].
func (t *txn) admit(a pawl.Admission) (pawl.Admitted, error) {
	if err := failpoint.Hit(failpoint.AdmitBegun); err != nil {
		return pawl.Admitted{}, err
	}
	a.Grant = wholeTimes(a.Grant)
	claimed, err := t.claim("admit_claim", claimArgs(a, t.store.realm)...)
	if err != nil {
		return pawl.Admitted{}, err
	}
	if !claimed {
		return t.notClaimed(a)
	}
	if err := failpoint.Hit(failpoint.AdmitClaimed); err != nil {
		return pawl.Admitted{}, err
	}
	op := wholeMicroseconds(a.NewOperation(t.now))
	if err := t.insert(op); t.engine.taken(err) {
		return pawl.Admitted{}, t.operationTaken(a, err)
	} else if err != nil {
		return pawl.Admitted{}, err
	}
	return t.fresh(op), failpoint.Hit(failpoint.AdmitRecorded)
}

// notClaimed explains an admission that the claim refused, or finds that it is
// this very operation's [A8]. Nothing was written [A10].
func (t *txn) notClaimed(a pawl.Admission) (pawl.Admitted, error) {
	f, err := t.findings(a)
	if err != nil {
		return pawl.Admitted{}, err
	}
	already, err := a.Judge(f)
	if err != nil {
		return pawl.Admitted{}, err
	}
	if !already {
		return pawl.Admitted{}, errDisagree
	}
	return t.joined(*f.Operation), nil
}

// operationTaken explains why an operation was not recorded [A7]: the id is
// another's, or the grant key has an operation although its claim is gone. A
// uniqueness that is neither, of a caller's own trigger for example, is cause, a
// defect. The caller's savepoint undoes the claim that this admission made.
func (t *txn) operationTaken(a pawl.Admission, cause error) error {
	r, err := t.operation(a.OperationID)
	if err != nil {
		return err
	}
	if r != nil {
		return &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonOperationTaken}
	}
	of, err := ids(t.asker, "find_operation_of_grant", keyArgs(a.Grant.Key)...)
	if err != nil {
		return err
	}
	if len(of) > 0 {
		return &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonUsed}
	}
	return cause
}

// findings reads what explains a refusal, in the transaction that refused.
func (t *txn) findings(a pawl.Admission) (pawl.Findings, error) {
	f := pawl.Findings{Now: t.now, Realm: t.store.realm, Policy: t.policy, IssuedNotBefore: t.epoch.IssuedNotBefore}
	if a.Grant.Form == pawl.FormStored {
		row, err := t.grant(a.Grant.Key)
		if err != nil {
			return f, err
		}
		if row != nil {
			f.Grant.Row = &row.grant
		}
	}
	h, err := t.holder(a.Grant.Key)
	if err != nil {
		return f, err
	}
	f.Grant.Claimed, f.Grant.ClaimedBy = h.held, h.operationID()
	r, err := t.operation(a.OperationID)
	if r != nil {
		f.Operation = &r.op
	}
	return f, err
}

// insert writes the record of a new operation.
func (t *txn) insert(op pawl.Operation) error {
	var issuer, namespace, grantID any
	if k := op.Grant; !k.IsZero() {
		issuer, namespace, grantID = k.Issuer, k.Namespace, k.ID
	}
	_, err := t.write("insert_operation",
		named("operation_id", op.ID[:]), named("issuer", issuer), named("namespace", namespace),
		named("grant_id", grantID), named("kind", string(op.Intent.Kind)),
		named("details", string(op.Intent.Details.JSON())),
		named("authority", op.Caller.Authority), named("principal", op.Caller.Principal),
		named("tenant", op.Caller.Tenant), named("scopes", strings.Join(op.Caller.Scopes, "\n")),
		named("generation", op.Caller.Generation),
		named("fingerprint", op.Lock.Fingerprint[:]), named("binding", op.Lock.Binding[:]),
		named("created_at", micros(op.CreatedAt)), named("submit_by", micros(op.SubmitBy)),
		named("status", int64(op.Status)), named("fence", int64(op.Fence)),
		named("owned_since", micros(op.OwnedSince)), named("lease_until", micros(op.LeaseUntil)),
	)
	return err
}

func claimArgs(a pawl.Admission, realm string) []any {
	g, fingerprint := a.Grant, a.Intent.Fingerprint()
	return []any{
		named("form", int64(g.Form)), named("issuer", g.Key.Issuer), named("namespace", g.Key.Namespace),
		named("grant_id", g.Key.ID), named("operation_id", a.OperationID[:]),
		named("realm", g.Realm), named("store_realm", realm), named("leeway_policy", g.LeewayPolicy),
		named("issued_at", microsOrNull(g.IssuedAt)), named("not_before", microsOrNull(g.NotBefore)),
		named("expires_at", microsOrNull(g.ExpiresAt)),
		named("principal", a.Caller.Principal), named("tenant", a.Caller.Tenant),
		named("authority", a.Caller.Authority), named("fingerprint", fingerprint[:]),
	}
}

// fresh is the answer to whom the operation is now owned by.
func (t *txn) fresh(op pawl.Operation) pawl.Admitted {
	return pawl.Admitted{Fresh: true, Operation: op.Clone(), Owner: op.OwnerOf(t.store.secret, t.now)}
}

// joined carries the token of an attempt that may observe and never own [O1].
func (t *txn) joined(op pawl.Operation) pawl.Admitted {
	return pawl.Admitted{Operation: op, Owner: pawl.Owner{Token: t.store.secret.Mint(op, 0)}}
}
