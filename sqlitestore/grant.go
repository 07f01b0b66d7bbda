package sqlitestore

import (
	"context"
	"database/sql"
	"time"

	"github.com/pawl-go/pawl"
)

// Issue implements pawl.Store.
func (s *Store) Issue(ctx context.Context, i pawl.Issuance) (pawl.Issued, error) {
	if err := i.Validate(); err != nil {
		return pawl.Issued{}, err
	}
	return write(ctx, s, pawl.ErrUnavailable, func(t *txn) (pawl.Issued, error) { return t.issue(i) })
}

func (t *txn) issue(i pawl.Issuance) (pawl.Issued, error) {
	digest := i.Digest()
	there, err := t.findGrant("find_request", named("issuer", i.Issuer), named("request_id", i.RequestID))
	if err != nil {
		return pawl.Issued{}, err
	}
	if there != nil {
		if there.digest != digest {
			return pawl.Issued{}, &pawl.Error{Class: pawl.ErrMismatch, Reason: pawl.ReasonRequestMismatch}
		}
		return pawl.Issued{Grant: there.grant, Again: true}, nil
	}
	if i.Lifetime > t.policy.MaxGrantLifetime {
		return pawl.Issued{}, &pawl.Error{
			Class: pawl.ErrInvalid, Reason: pawl.ReasonLifetime, Note: "lifetime is over the policy's",
		}
	}
	if _, ok := t.policy.Leeways[i.LeewayPolicy]; !ok {
		return pawl.Issued{}, &pawl.Error{Class: pawl.ErrInvalid, Reason: pawl.ReasonLeewayUnknown}
	}
	g := i.Grant(t.store.realm, t.now)
	fingerprint := g.Intent.Fingerprint()
	_, err = t.write("insert_grant", append(keyArgs(g.Key), // an id in use is a defect of whoever chose it [A7]
		named("form", int64(g.Form)), named("request_id", i.RequestID), named("request_digest", digest[:]),
		named("subject", g.Subject), named("tenant", g.Tenant), named("authority", g.Authority),
		named("kind", string(g.Intent.Kind)), named("details", string(g.Intent.Details.JSON())),
		named("fingerprint", fingerprint[:]), named("issued_at", micros(g.IssuedAt)),
		named("expires_at", micros(g.ExpiresAt)), named("leeway_policy", g.LeewayPolicy),
	)...)
	return pawl.Issued{Grant: g}, err
}

// Revoke implements pawl.Store.
func (s *Store) Revoke(ctx context.Context, r pawl.Revocation) (pawl.RevocationState, error) {
	if err := r.Validate(); err != nil {
		return "", err
	}
	return write(ctx, s, pawl.ErrUnavailable, func(t *txn) (pawl.RevocationState, error) { return t.revoke(r) })
}

// revoke claims the grant's key, as an admission would, under the same lock [R1].
func (t *txn) revoke(r pawl.Revocation) (pawl.RevocationState, error) {
	row, err := t.grant(r.Key)
	if err != nil {
		return "", err
	}
	if row == nil && r.Proof == nil && !r.ProvenElsewhere {
		return "", &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonNotProven} // [R2]
	}
	if r.Proof != nil && r.Proof.Realm != t.store.realm {
		return "", &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonRealm} // [A1]
	}
	h, err := t.holder(r.Key)
	if err != nil {
		return "", err
	}
	switch {
	case h.held && h.operation == nil:
		return pawl.AlreadyRevoked, nil
	case h.held:
		return pawl.AlreadyAdmitted, nil
	}
	var issued *pawl.Grant
	if row != nil {
		issued = &row.grant
	}
	retain, expired := t.policy.RevocationRetention(issued, r.Proof, t.now) // [R3]
	if expired {
		return pawl.GrantExpired, nil
	}
	return pawl.Revoked, t.withdraw(r.Key, timeOf(micros(retain)), r.By, r.Reason)
}

// withdraw writes the refusal record of a revocation.
func (t *txn) withdraw(k pawl.GrantKey, retain time.Time, by, reason string) error {
	claimed, err := t.claim("insert_revocation", append(keyArgs(k), named("now", micros(t.now)),
		named("retain_until", micros(retain)), named("revoked_by", by), named("reason", reason))...)
	if err == nil && !claimed {
		return errChanged
	}
	return err
}

// RevokeIntent implements pawl.GrantBook.
func (s *Store) RevokeIntent(ctx context.Context, r pawl.IntentRevocation) (int, error) {
	if err := r.Validate(); err != nil {
		return 0, err
	}
	fingerprint := r.Intent.Fingerprint()
	return write(ctx, s, pawl.ErrUnavailable, func(t *txn) (int, error) {
		var found []*grantRow
		err := t.each("list_intent_grants", func(rows *sql.Rows) error {
			row := &grantRow{realm: t.store.realm}
			found = append(found, row)
			if err := rows.Scan(row.dest()...); err != nil {
				return err
			}
			return row.read()
		}, named("issuer", r.Issuer), named("subject", r.Subject), named("tenant", r.Tenant),
			named("fingerprint", fingerprint[:]), named("now", micros(t.now)))
		if err != nil {
			return 0, err
		}
		for _, row := range found {
			retain, _ := t.policy.RevocationRetention(&row.grant, nil, t.now) // [R3]
			if err := t.withdraw(row.grant.Key, timeOf(micros(retain)), r.By, r.Reason); err != nil {
				return 0, err
			}
		}
		return len(found), nil
	})
}

// Grant implements pawl.GrantBook.
func (s *Store) Grant(ctx context.Context, k pawl.GrantKey) (pawl.GrantRecord, error) {
	return read(ctx, s, func(a asker) (pawl.GrantRecord, error) {
		found, err := s.grants(a, "find_grant_record", append(keyArgs(k), named("clock", s.opts.hooks.time()))...)
		if err != nil {
			return pawl.GrantRecord{}, err
		}
		if len(found) == 0 {
			return pawl.GrantRecord{}, pawl.NotFound()
		}
		return found[0].GrantRecord, nil
	})
}

// Grants implements pawl.GrantBook.
func (s *Store) Grants(ctx context.Context, f pawl.GrantFilter) (pawl.GrantPage, error) {
	limit, before, err := pageOf(f.Limit, f.Cursor)
	if err != nil {
		return pawl.GrantPage{}, err
	}
	var state, subject any
	switch f.State {
	case "":
	case pawl.GrantStateIssued, pawl.GrantStateUsed, pawl.GrantStateRevoked, pawl.GrantStateExpired:
		state = string(f.State)
	default:
		return pawl.GrantPage{}, malformed("no such state of a grant")
	}
	if f.Subject != "" {
		subject = f.Subject
	}
	return read(ctx, s, func(a asker) (page pawl.GrantPage, err error) {
		found, err := s.grants(a, "list_grants",
			named("before", before), named("issuers", choice(f.Issuers)), named("tenants", choice(f.Tenants)),
			named("kinds", choice(f.Kinds)), named("subject", subject), named("state", state),
			named("clock", s.opts.hooks.time()), named("limit", int64(limit)+1),
		)
		if len(found) > limit {
			found = found[:limit]
			page.Next = cursor(found[limit-1].place)
		}
		for _, r := range found {
			page.Grants = append(page.Grants, r.GrantRecord)
		}
		return page, err
	})
}

// placedGrant is a grant with its place in the order of issue.
type placedGrant struct {
	pawl.GrantRecord
	place int64
}

// grants reads grants with what became of them.
func (s *Store) grants(a asker, name string, args ...any) (found []placedGrant, err error) {
	err = a.each(name, func(rows *sql.Rows) error {
		var g placedGrant
		var h holder
		var state string
		row := &grantRow{realm: s.id.realm}
		dest := append([]any{&g.place}, row.dest()...)
		if err := rows.Scan(append(append(dest, h.dest()...), &state)...); err != nil {
			return err
		}
		if err := row.read(); err != nil {
			return err
		}
		g.Grant, g.RequestID, g.State = row.grant, row.requestID, pawl.GrantRecordState(state)
		if h.at != nil && h.operation == nil {
			g.RevokedAt = timeOf(*h.at)
		}
		if h.by != nil && h.reason != nil {
			g.RevokedBy, g.Reason = *h.by, *h.reason
		}
		g.Operation = h.operationID()
		found = append(found, g)
		return nil
	}, args...)
	return found, err
}
