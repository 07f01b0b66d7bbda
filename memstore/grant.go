package memstore

import (
	"context"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
)

// Issue implements pawl.Store.
func (s *Store) Issue(ctx context.Context, i pawl.Issuance) (got pawl.Issued, err error) {
	if err := i.Validate(); err != nil {
		return pawl.Issued{}, err
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		m := tx.Meta()
		if row, ok := tx.GrantOfRequest(i.Issuer, i.RequestID); ok {
			if row.Digest != i.Digest() {
				return &pawl.Error{Class: pawl.ErrMismatch, Reason: pawl.ReasonRequestMismatch}
			}
			got = pawl.Issued{Grant: row.Grant, Again: true}
			return nil
		}
		if i.Lifetime > m.Policy.MaxGrantLifetime {
			return &pawl.Error{Class: pawl.ErrInvalid, Reason: pawl.ReasonLifetime, Note: "lifetime is over the policy's"}
		}
		if _, ok := m.Policy.Leeways[i.LeewayPolicy]; !ok {
			return &pawl.Error{Class: pawl.ErrInvalid, Reason: pawl.ReasonLeewayUnknown}
		}
		g := i.Grant(m.Realm, tx.Now)
		if _, ok := tx.Grant(g.Key); ok {
			return errGrantID()
		}
		tx.PutGrant(memdb.GrantRow{Grant: g, RequestID: i.RequestID, Digest: i.Digest()})
		got = pawl.Issued{Grant: g}
		return nil
	})
	return got, err
}

// Revoke implements pawl.Store. It claims the same key as an admission, under
// the same lock [R1].
func (s *Store) Revoke(ctx context.Context, r pawl.Revocation) (state pawl.RevocationState, err error) {
	if err := r.Validate(); err != nil {
		return "", err
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		m := tx.Meta()
		row, stored := tx.Grant(r.Key)
		if !stored && r.Proof == nil && !r.ProvenElsewhere {
			return &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonNotProven} // [R2]
		}
		if r.Proof != nil && r.Proof.Realm != m.Realm {
			return &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonRealm} // [A1]
		}
		if c, ok := tx.Claim(r.Key); ok {
			state = pawl.AlreadyRevoked
			if !c.Operation.IsZero() {
				state = pawl.AlreadyAdmitted
			}
			return nil
		}
		var issued *pawl.Grant
		if stored {
			issued = &row.Grant
		}
		retain, expired := m.Policy.RevocationRetention(issued, r.Proof, tx.Now) // [R3]
		if expired {
			state = pawl.GrantExpired
			return nil
		}
		tx.PutClaim(r.Key, memdb.Claim{At: tx.Now, RetainUntil: retain, RevokedBy: r.By, Reason: r.Reason}) // [R4]
		state = pawl.Revoked
		return nil
	})
	return state, err
}

// Grant implements pawl.GrantBook.
func (s *Store) Grant(ctx context.Context, k pawl.GrantKey) (rec pawl.GrantRecord, err error) {
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		row, ok := tx.Grant(k)
		if !ok {
			return pawl.NotFound()
		}
		rec = recordOf(tx, row)
		return nil
	})
	return rec, err
}

// Grants implements pawl.GrantBook.
func (s *Store) Grants(ctx context.Context, f pawl.GrantFilter) (page pawl.GrantPage, err error) {
	limit, before, err := pageOf(f.Limit, f.Cursor)
	if err != nil {
		return pawl.GrantPage{}, err
	}
	switch f.State {
	case "", pawl.GrantStateIssued, pawl.GrantStateUsed, pawl.GrantStateRevoked, pawl.GrantStateExpired:
	default:
		return pawl.GrantPage{}, malformed("no such state of a grant")
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		rows := func(yield func(uint64, memdb.GrantRow) bool) {
			for _, row := range tx.Grants() {
				if !yield(row.Seq, row) {
					return
				}
			}
		}
		page.Grants, page.Next = newest(rows, limit, before, func(row memdb.GrantRow) (pawl.GrantRecord, bool) {
			rec, g := recordOf(tx, row), row.Grant
			return rec, among(f.Issuers, g.Key.Issuer) && among(f.Tenants, g.Tenant) && among(f.Kinds, g.Intent.Kind) &&
				(f.Subject == "" || f.Subject == g.Subject) && (f.State == "" || f.State == rec.State)
		})
		return nil
	})
	return page, err
}

// RevokeIntent implements pawl.GrantBook.
func (s *Store) RevokeIntent(ctx context.Context, r pawl.IntentRevocation) (n int, err error) {
	if err := r.Validate(); err != nil {
		return 0, err
	}
	err = s.update(ctx, pawl.ErrUnavailable, func(tx *memdb.Tx) error {
		for _, row := range tx.Grants() {
			g := row.Grant
			if g.Form != pawl.FormStored || g.Key.Issuer != r.Issuer || g.Subject != r.Subject || g.Tenant != r.Tenant ||
				g.Intent.Fingerprint() != r.Intent.Fingerprint() || recordOf(tx, row).State != pawl.GrantStateIssued {
				continue
			}
			tx.PutClaim(g.Key, memdb.Claim{At: tx.Now, RetainUntil: retainRevocation(tx, g), RevokedBy: r.By, Reason: r.Reason})
			n++
		}
		return nil
	})
	return n, err
}

// retainRevocation is until when the refusal of a grant whose row is known must
// live [R3].
func retainRevocation(tx *memdb.Tx, g pawl.Grant) time.Time {
	retain, _ := tx.Meta().Policy.RevocationRetention(&g, nil, tx.Now)
	return retain
}

// recordOf tells what became of a grant: a used or revoked one stays so.
func recordOf(tx *memdb.Tx, row memdb.GrantRow) pawl.GrantRecord {
	rec := pawl.GrantRecord{Grant: row.Grant, RequestID: row.RequestID, State: pawl.GrantStateIssued}
	c, claimed := tx.Claim(row.Grant.Key)
	switch {
	case claimed && c.Operation.IsZero():
		rec.State, rec.RevokedBy, rec.RevokedAt, rec.Reason = pawl.GrantStateRevoked, c.RevokedBy, c.At, c.Reason
	case claimed:
		rec.State, rec.Operation = pawl.GrantStateUsed, c.Operation
	case !deadline(tx, row.Grant).After(tx.Now):
		rec.State = pawl.GrantStateExpired
	}
	return rec
}

// deadline is expiry + leeway: at it, a grant is over [A4].
func deadline(tx *memdb.Tx, g pawl.Grant) time.Time {
	return tx.Meta().Policy.RefusalRetention(g.ExpiresAt, g.LeewayPolicy, tx.Now)
}
