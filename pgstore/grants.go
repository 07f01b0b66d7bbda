package pgstore

import (
	"context"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-go/pawl"
)

// Issue implements pawl.Store.
func (s *Store) Issue(ctx context.Context, i pawl.Issuance) (pawl.Issued, error) {
	if err := i.Validate(); err != nil {
		return pawl.Issued{}, err
	}
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (pawl.Issued, error) {
		for range tries {
			got, err := s.issueOnce(ctx, on, i)
			if err != nil || got.Grant.Form != 0 {
				return got, err
			}
		}
		return pawl.Issued{}, errMoving()
	})
}

// errMoving: what stood in the way of a write was gone each time it was read.
func errMoving() error {
	return &pawl.Error{
		Class: pawl.ErrUnavailable, Reason: pawl.ReasonUnreachable, Note: "nothing was written: the record changes while it is read",
	}
}

// issueOnce writes the row, or tells why not. Neither a grant nor an error means
// that the reason is gone by now.
func (s *Store) issueOnce(ctx context.Context, on session, i pawl.Issuance) (pawl.Issued, error) {
	digest, fingerprint := i.Digest(), i.Intent.Fingerprint()
	var row grantRow
	err := s.write(ctx, on, step{
		sql: s.sql[stmtIssueGrant],
		args: []any{
			i.Issuer, i.Namespace, i.GrantID, int16(i.Form), i.RequestID, digest[:], i.Subject, i.Tenant, i.Authority,
			string(i.Intent.Kind), string(i.Intent.Details.JSON()), fingerprint[:], i.Lifetime, i.LeewayPolicy,
		},
		each: func(scan scanner) error { return scan(row.columns()...) },
	})
	switch {
	case err == nil && row.form != nil:
		return pawl.Issued{Grant: row.grant(s.realm)}, nil
	case err != nil && !isDuplicate(err, ruleGrant):
		return pawl.Issued{}, err
	}
	// The same request may be known, also where its twin got to the grant's key first.
	got, unknown := s.issuedBefore(ctx, on, i)
	if unknown == nil && got.Grant.Form == 0 {
		return got, err
	}
	return got, unknown
}

// issuedBefore reads what a request made before, or why a new one makes nothing.
func (s *Store) issuedBefore(ctx context.Context, on session, i pawl.Issuance) (pawl.Issued, error) {
	var policy storedPolicy
	var known []byte
	var row grantRow
	err := on.run(ctx, step{sql: s.sql[stmtRequestGrant], args: []any{i.Issuer, i.RequestID}, each: func(scan scanner) error {
		return scan(append(append(policy.columns(), &known), row.columns()...)...)
	}})
	if err != nil {
		return pawl.Issued{}, err
	}
	if row.form != nil {
		if digest := i.Digest(); string(known) != string(digest[:]) {
			return pawl.Issued{}, &pawl.Error{Class: pawl.ErrMismatch, Reason: pawl.ReasonRequestMismatch}
		}
		return pawl.Issued{Grant: row.grant(s.realm), Again: true}, nil
	}
	stored, err := policy.agreed()
	if err != nil {
		return pawl.Issued{}, err
	}
	if i.Lifetime > stored.MaxGrantLifetime {
		return pawl.Issued{}, &pawl.Error{Class: pawl.ErrInvalid, Reason: pawl.ReasonLifetime, Note: "lifetime is over the policy's"}
	}
	if _, ok := stored.Leeways[i.LeewayPolicy]; !ok {
		return pawl.Issued{}, &pawl.Error{Class: pawl.ErrInvalid, Reason: pawl.ReasonLeewayUnknown}
	}
	return pawl.Issued{}, nil
}

// write runs one writing statement in a transaction of its own, after reading
// that the session may write [A11].
func (s *Store) write(ctx context.Context, on session, steps ...step) error {
	var f inForce
	all := append([]step{{sql: beginSQL}, s.sessionStep(&f)}, steps...)
	if err := on.run(ctx, all...); err != nil {
		rollBack(ctx, on)
		return err
	}
	if err := s.unfit(&f, forTheRest); err != nil {
		rollBack(ctx, on)
		return err
	}
	return transaction(ctx, on, nil)
}

// Revoke implements pawl.Store. It claims the same key as an admission [R1].
func (s *Store) Revoke(ctx context.Context, r pawl.Revocation) (pawl.RevocationState, error) {
	if err := r.Validate(); err != nil {
		return "", err
	}
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (pawl.RevocationState, error) {
		for range tries {
			state, err := s.revokeOnce(ctx, on, r)
			if err != nil || state != "" {
				return state, err
			}
		}
		return "", errMoving()
	})
}

// revokeOnce decides in the transaction that writes. Neither a state nor an error
// means that what claimed the key is gone by now.
func (s *Store) revokeOnce(ctx context.Context, on session, r pawl.Revocation) (pawl.RevocationState, error) {
	f, err := s.revocable(ctx, on, r)
	if err != nil || f.state != "" {
		rollBack(ctx, on)
		return f.state, err
	}
	k := r.Key
	written := false
	steps := []step{{
		sql: s.sql[stmtRevokeGrant], args: []any{k.Issuer, k.Namespace, k.ID, f.retain, r.By, r.Reason},
		each: func(scanner) error { written = true; return nil },
	}, {
		sql: s.sql[stmtRetainRevocation], args: []any{k.Issuer, k.Namespace, k.ID}, // [R3]
	}}
	if err := on.run(ctx, steps...); err != nil {
		rollBack(ctx, on)
		return "", err
	}
	if written {
		return pawl.Revoked, transaction(ctx, on, nil)
	}
	state, err := s.claimant(ctx, on, k)
	rollBack(ctx, on)
	return state, err
}

// revocationFindings are what a revocation rests on; state is set where nothing
// is to be written.
type revocationFindings struct {
	state  pawl.RevocationState
	retain time.Time
}

// revocable reads and judges in a transaction that it begins.
func (s *Store) revocable(ctx context.Context, on session, r pawl.Revocation) (f revocationFindings, err error) {
	var now time.Time
	var realm string
	var policy storedPolicy
	var session inForce
	var expiry *time.Time
	var leeway *string
	var claimed bool
	var claimant *uuid.UUID
	dest := append([]any{&now, &realm}, policy.columns()...)
	dest = append(append(dest, session.columns()...), &expiry, &leeway, &claimed, &claimant)
	k := r.Key
	err = on.run(ctx, step{sql: beginSQL}, step{
		sql: s.sql[stmtRevocationFindings], args: []any{k.Issuer, k.Namespace, k.ID},
		each: func(scan scanner) error { return scan(dest...) },
	})
	if err == nil {
		err = s.unfit(&session, forTheRest) // [A11]
	}
	if err != nil {
		return f, err
	}
	stored, err := policy.agreed()
	if err != nil {
		return f, err
	}
	var row *pawl.Grant
	if expiry != nil {
		row = &pawl.Grant{ExpiresAt: timeOf(expiry), LeewayPolicy: *leeway}
	}
	switch {
	case row == nil && r.Proof == nil && !r.ProvenElsewhere:
		return f, &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonNotProven} // [R2]
	case r.Proof != nil && r.Proof.Realm != realm:
		return f, &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonRealm} // [A1]
	case claimed:
		f.state = stateOf(claimant)
		return f, nil
	}
	retain, expired := stored.RevocationRetention(row, r.Proof, now) // [R3]
	if f.retain = retain; expired {
		f.state = pawl.GrantExpired
	}
	return f, nil
}

func stateOf(claimant *uuid.UUID) pawl.RevocationState {
	if claimant == nil {
		return pawl.AlreadyRevoked
	}
	return pawl.AlreadyAdmitted
}

// claimant reads who claims a key by now; "" is nobody.
func (s *Store) claimant(ctx context.Context, on session, k pawl.GrantKey) (state pawl.RevocationState, err error) {
	err = on.run(ctx, step{sql: s.sql[stmtClaimedBy], args: []any{k.Issuer, k.Namespace, k.ID}, each: func(scan scanner) error {
		var claimant *uuid.UUID
		if err := scan(&claimant); err != nil {
			return err
		}
		state = stateOf(claimant)
		return nil
	}})
	return state, err
}

// Grant implements pawl.GrantBook.
func (s *Store) Grant(ctx context.Context, k pawl.GrantKey) (pawl.GrantRecord, error) {
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (rec pawl.GrantRecord, err error) {
		err = on.run(ctx, step{sql: s.sql[stmtGetGrant], args: []any{k.Issuer, k.Namespace, k.ID}, each: func(scan scanner) (err error) {
			_, rec, err = scanGrantRecord(scan)
			return err
		}})
		if err == nil && rec.State == "" {
			err = pawl.NotFound()
		}
		return rec, err
	})
}

func scanGrantRecord(scan scanner) (seq int64, rec pawl.GrantRecord, err error) {
	var realm string
	var claimed, over bool
	var claimant *uuid.UUID
	var at *time.Time
	var by, reason *string
	var row grantRow
	dest := append([]any{&seq, &realm, &rec.RequestID, &claimed, &claimant, &at, &by, &reason, &over}, row.columns()...)
	if err := scan(dest...); err != nil {
		return 0, rec, err
	}
	rec.Grant, rec.State = row.grant(realm), pawl.GrantStateIssued
	switch { // a used or revoked grant stays so
	case claimant != nil:
		rec.State, rec.Operation = pawl.GrantStateUsed, pawl.OperationID(*claimant)
	case claimed:
		rec.State, rec.RevokedBy, rec.RevokedAt, rec.Reason = pawl.GrantStateRevoked, *by, timeOf(at), *reason
	case over:
		rec.State = pawl.GrantStateExpired
	}
	return seq, rec, nil
}

// Grants implements pawl.GrantBook.
func (s *Store) Grants(ctx context.Context, f pawl.GrantFilter) (pawl.GrantPage, error) {
	limit, err := pageLimit(f.Limit)
	if err != nil {
		return pawl.GrantPage{}, err
	}
	switch f.State {
	case "", pawl.GrantStateIssued, pawl.GrantStateUsed, pawl.GrantStateRevoked, pawl.GrantStateExpired:
	default:
		return pawl.GrantPage{}, malformed("no such state of a grant")
	}
	before, err := seqOf(f.Cursor)
	if err != nil {
		return pawl.GrantPage{}, err
	}
	args := []any{
		listed(f.Issuers, itself), listed(f.Tenants, itself), listed(f.Kinds, kindName), textOrNull(f.Subject),
		textOrNull(string(f.State)), before, limit + 1,
	}
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (page pawl.GrantPage, err error) {
		var seqs []int64
		err = on.run(ctx, step{sql: s.sql[stmtListGrants], args: args, each: func(scan scanner) error {
			seq, rec, err := scanGrantRecord(scan)
			seqs, page.Grants = append(seqs, seq), append(page.Grants, rec)
			return err
		}})
		if len(page.Grants) > limit {
			page.Grants = page.Grants[:limit]
			page.Next = cursor(strconv.FormatInt(seqs[limit-1], 10))
		}
		return page, err
	})
}

func seqOf(text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, malformed("no such cursor")
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return nil, malformed("no such cursor")
	}
	return &n, nil
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// RevokeIntent implements pawl.GrantBook.
func (s *Store) RevokeIntent(ctx context.Context, r pawl.IntentRevocation) (int, error) {
	if err := r.Validate(); err != nil {
		return 0, err
	}
	fingerprint := r.Intent.Fingerprint()
	return call(ctx, s, s.ordinary, pawl.ErrUnavailable, func(ctx context.Context, on session) (int, error) {
		var revoked int
		err := s.write(ctx, on, step{
			sql: s.sql[stmtRevokeIntent], args: []any{r.Issuer, r.Subject, r.Tenant, fingerprint[:], r.By, r.Reason},
			each: func(scan scanner) error { revoked++; return nil },
		})
		return revoked, err
	})
}
