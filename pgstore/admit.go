package pgstore

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/failpoint"
)

// Admit implements pawl.Store: one statement, one round trip [A2]. Only a
// refusal costs a second one, which explains it.
func (s *Store) Admit(ctx context.Context, a pawl.Admission) (pawl.Admitted, error) {
	if err := a.Validate(); err != nil {
		return pawl.Admitted{}, err // [A9]
	}
	return call(ctx, s, s.admissions, pawl.ErrNotConfirmed, func(ctx context.Context, on session) (pawl.Admitted, error) {
		if err := failpoint.Hit(failpoint.AdmitBegun); err != nil {
			return pawl.Admitted{}, err
		}
		got, err := s.admit(ctx, on, a)
		if err == nil {
			err = failpoint.Hit(failpoint.CommitAfter) // between them lies one statement, which nothing can stop in
		}
		return got, err
	})
}

// tries bounds how often an admission is put again after the state that refused
// it was gone when it was read.
const tries = 3

func (s *Store) admit(ctx context.Context, on session, a pawl.Admission) (pawl.Admitted, error) {
	for range tries {
		got, err := s.admitOnce(ctx, on, a)
		if got.Fresh || (err != nil && violated(err) == "") {
			return got, err
		}
		got, err = s.explain(ctx, on, a, violated(err))
		if err != nil || !got.Operation.ID.IsZero() {
			return got, err
		}
	}
	return pawl.Admitted{}, &pawl.Error{
		Class: pawl.ErrNotConfirmed, Reason: pawl.ReasonUnreachable, Note: "nothing was written: the record changes while it is read",
	}
}

// admitOnce puts the admission. Zero rows leave Fresh false: not admitted.
func (s *Store) admitOnce(ctx context.Context, on session, a pawl.Admission) (got pawl.Admitted, err error) {
	st := s.admitStored(a)
	if a.Grant.Form == pawl.FormToken {
		st = s.admitToken(a)
	}
	st.each = func(scan scanner) error {
		var created, submitBy, lease time.Time
		if err := scan(&created, &submitBy, &lease); err != nil {
			return err
		}
		got = s.fresh(a.NewOperation(created.UTC()), submitBy, lease)
		return nil
	}
	err = on.run(ctx, st)
	if err != nil {
		got = pawl.Admitted{} // a row without an acknowledged commit is no admission [A3]
	}
	return got, err
}

func (s *Store) admitToken(a pawl.Admission) step {
	g := a.Grant
	args := []any{
		g.Key.Issuer, g.Key.Namespace, g.Key.ID, g.Realm, g.LeewayPolicy, g.IssuedAt, orNull(g.NotBefore), g.ExpiresAt,
	}
	return step{sql: s.sql[stmtAdmitToken], args: append(args, s.operationArgs(a.OperationID, a.Intent, a.Caller, a.Lease, a.SubmissionWindow)...)}
}

func (s *Store) admitStored(a pawl.Admission) step {
	k := a.Grant.Key
	args := []any{k.Issuer, k.Namespace, k.ID}
	return step{sql: s.sql[stmtAdmitStored], args: append(args, s.operationArgs(a.OperationID, a.Intent, a.Caller, a.Lease, a.SubmissionWindow)...)}
}

// operationArgs are the arguments that all three statements which make an
// operation have in common, in their order.
func (s *Store) operationArgs(id pawl.OperationID, i pawl.Intent, c pawl.Caller, lease, window time.Duration) []any {
	lock := pawl.LockOf(i, c)
	scopes := c.Normalised().Scopes
	if scopes == nil {
		scopes = []string{}
	}
	return []any{
		uuid.UUID(id), string(i.Kind), string(i.Details.JSON()), c.Authority, c.Principal, c.Tenant, c.Generation, scopes,
		lock.Fingerprint[:], lock.Binding[:], lease, window, s.uuid,
	}
}

func (s *Store) fresh(op pawl.Operation, submitBy, lease time.Time) pawl.Admitted {
	op.SubmitBy, op.LeaseUntil = submitBy.UTC(), lease.UTC() // as written, in the server's precision
	return pawl.Admitted{Fresh: true, Operation: op, Owner: op.OwnerOf(s.secret, op.CreatedAt)}
}

// joined carries the token of an attempt that may observe and never own [O1].
func (s *Store) joined(op pawl.Operation) pawl.Admitted {
	return pawl.Admitted{Operation: op, Owner: pawl.Owner{Token: s.secret.Mint(op, 0)}}
}

// explain tells why nothing was admitted: already admitted for this very
// operation, refused, or a session that may admit nothing. Neither an operation
// nor an error means that the reason is gone by now.
func (s *Store) explain(ctx context.Context, on session, a pawl.Admission, rule string) (pawl.Admitted, error) {
	f, session, err := s.findings(ctx, on, a.Grant.Key, a.OperationID)
	if err != nil {
		return pawl.Admitted{}, err
	}
	if err := s.unfit(&session, forAdmissions); err != nil {
		return pawl.Admitted{}, err // [A11] what such a session reads explains nothing
	}
	already, err := a.Judge(f)
	switch {
	case err != nil:
		return pawl.Admitted{}, err
	case already:
		return s.joined(*f.Operation), nil // [A8]
	}
	switch rule {
	case rulePerID:
		return pawl.Admitted{}, &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonOperationTaken} // [A7]
	case rulePerGrant:
		return pawl.Admitted{}, &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonUsed} // [A7]
	}
	return pawl.Admitted{}, nil
}

// findings reads what an admission or a reservation is judged on. A zero key is
// a reservation's.
func (s *Store) findings(ctx context.Context, on session, k pawl.GrantKey, id pawl.OperationID) (f pawl.Findings, session inForce, err error) {
	var issuer, namespace, grantID *string
	if !k.IsZero() {
		issuer, namespace, grantID = &k.Issuer, &k.Namespace, &k.ID
	}
	err = on.run(ctx, step{
		sql: s.sql[stmtFindings], args: []any{issuer, namespace, grantID, uuid.UUID(id)},
		each: func(scan scanner) (err error) {
			f, session, err = scanFindings(scan)
			return err
		},
	})
	return f, session, err
}

func scanFindings(scan scanner) (f pawl.Findings, session inForce, err error) {
	var notBefore *time.Time
	var policy storedPolicy
	var grant grantRow
	var claimedBy *uuid.UUID
	var exists bool
	var row operationRow
	dest := []any{&f.Now, &f.Realm, &notBefore}
	dest = append(dest, policy.columns()...)
	dest = append(dest, session.columns()...)
	dest = append(dest, grant.columns()...)
	dest = append(dest, &f.Grant.Claimed, &claimedBy, &exists)
	dest = append(dest, row.columns()...)
	if err := scan(dest...); err != nil {
		return f, session, err
	}
	stored, err := policy.agreed()
	if err != nil {
		return f, session, err
	}
	f.Now, f.Policy, f.IssuedNotBefore = f.Now.UTC(), stored.Policy, timeOf(notBefore)
	if grant.issuer != nil {
		g := grant.grant(f.Realm)
		f.Grant.Row = &g
	}
	if claimedBy != nil {
		f.Grant.ClaimedBy = pawl.OperationID(*claimedBy)
	}
	if exists {
		op, err := row.operation()
		if err != nil {
			return f, session, err
		}
		f.Operation = &op
	}
	return f, session, nil
}

// Reserve implements pawl.Store.
func (s *Store) Reserve(ctx context.Context, r pawl.Reservation) (pawl.Admitted, error) {
	if err := r.Validate(); err != nil {
		return pawl.Admitted{}, err // [A9]
	}
	return call(ctx, s, s.admissions, pawl.ErrNotConfirmed, func(ctx context.Context, on session) (pawl.Admitted, error) {
		return s.reserve(ctx, on, r)
	})
}

func (s *Store) reserve(ctx context.Context, on session, r pawl.Reservation) (got pawl.Admitted, err error) {
	for range tries {
		err := on.run(ctx, step{
			sql: s.sql[stmtReserve], args: s.operationArgs(r.OperationID(), r.Intent, r.Caller, r.Lease, r.SubmissionWindow),
			each: func(scan scanner) error {
				var created, submitBy, lease time.Time
				if err := scan(&created, &submitBy, &lease); err != nil {
					return err
				}
				got = s.fresh(r.NewOperation(created.UTC()), submitBy, lease)
				return nil
			},
		})
		if err != nil {
			return pawl.Admitted{}, err
		}
		if got.Fresh {
			return got, nil
		}
		f, session, err := s.findings(ctx, on, pawl.GrantKey{}, r.OperationID())
		if err == nil {
			err = s.unfit(&session, forAdmissions) // [A11]
		}
		if err != nil {
			return pawl.Admitted{}, err
		}
		if f.Operation != nil {
			if err := r.Join(*f.Operation); err != nil {
				return pawl.Admitted{}, err // [B1]
			}
			return s.joined(*f.Operation), nil
		}
	}
	return pawl.Admitted{}, &pawl.Error{
		Class: pawl.ErrNotConfirmed, Reason: pawl.ReasonUnreachable, Note: "nothing was written: the record changes while it is read",
	}
}
