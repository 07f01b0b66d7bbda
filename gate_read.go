package pawl

import (
	"context"
	"errors"
	"slices"
	"time"
)

// The pauses between two looks of a waiting Status.
const (
	firstLook   = 25 * time.Millisecond
	longestLook = 500 * time.Millisecond
)

// Status reads one operation as somebody, also after its grant has expired [S1].
// With a wait it looks again until the status is final, the wait is over or ctx
// ends, and answers with what it saw last. Errors: ErrNotFound (absent or not the
// viewer's), ErrUnavailable.
func (g *Gate) Status(ctx context.Context, id OperationID, as Viewer, wait time.Duration) (Operation, error) {
	watch, look := startStopwatch(), firstLook
	op, err := g.get(ctx, id, as)
	if err != nil {
		return Operation{}, err
	}
	for !op.Status.Final() {
		left := wait - watch.elapsed()
		if left <= 0 || !pauseFor(ctx, min(look, left)) {
			break
		}
		look = min(2*look, longestLook)
		if later, err := g.get(ctx, id, as); err == nil {
			op = later
		}
	}
	return op, nil
}

func (g *Gate) get(ctx context.Context, id OperationID, as Viewer) (Operation, error) {
	asking, cancel := g.asking(ctx)
	defer cancel()
	return g.store.Get(asking, id, as)
}

// Log reads one operation with everything that was said about it [M9]. Errors as
// Status.
func (g *Gate) Log(ctx context.Context, id OperationID, as Viewer) (Timeline, error) {
	asking, cancel := g.asking(ctx)
	defer cancel()
	return g.store.Log(asking, id, as)
}

// List reads operations, newest first, for an operator. Errors: ErrInvalid,
// ErrUnavailable.
func (g *Gate) List(ctx context.Context, f Filter) (Page, error) {
	asking, cancel := g.asking(ctx)
	defer cancel()
	return g.store.List(asking, f)
}

// Check reads the facts of the deployment that the promise rests on. Errors:
// ErrUnavailable.
func (g *Gate) Check(ctx context.Context) (Facts, error) {
	asking, cancel := g.asking(ctx)
	defer cancel()
	return g.store.Check(asking)
}

// Issue writes a grant: a stored one, or the issuance log's row of a token that
// its caller signs from the answer. Errors: ErrInvalid, ErrMismatch,
// ErrUnavailable; repeat it on a lost answer and get the same grant.
func (g *Gate) Issue(ctx context.Context, i Issuance) (Issued, error) {
	asking, cancel := g.asking(ctx)
	defer cancel()
	return g.store.Issue(asking, i)
}

// RevokeRequest asks to withdraw a grant. Exactly one of Token and Key is given.
type RevokeRequest struct {
	Token  string   // the signed grant, which proves its own issue [R2]
	Key    GrantKey // of a grant whose issue the store can prove
	By     string   // who revokes; at most MaxID bytes
	Reason string   // why; at most MaxReason bytes

	// Issuers, Tenants and Kinds are the limits of the revoker's credential; empty:
	// all. Outside them the answer is ErrRefused with ReasonNotProven, whether the
	// grant exists or not [R2].
	Issuers []string
	Tenants []string
	Kinds   []Kind
}

// String tells only what a log may hold [S2].
func (r RevokeRequest) String() string { return "revocation by " + r.By }

// GoString hides the token as String does.
func (r RevokeRequest) GoString() string { return "pawl.RevokeRequest{" + r.String() + "}" }

// Revoke withdraws a grant that was not admitted yet; after admission it changes
// nothing and says so [R1]. The caller has authorised it and limits its rate [R4].
// It returns the grant's key, which of a token its verifier tells. Errors:
// ErrInvalid, ErrRefused (not authentic, or issue not proven), ErrUnavailable;
// repeat it on a lost answer.
func (g *Gate) Revoke(ctx context.Context, r RevokeRequest) (RevocationState, GrantKey, error) {
	v := Revocation{Key: r.Key, By: r.By, Reason: r.Reason}
	if (r.Token == "") == r.Key.IsZero() {
		return "", GrantKey{}, invalid(ReasonMalformed, "a revocation names a grant by its token or by its key")
	}
	if r.Token != "" {
		grant, err := g.proveIssue(ctx, r.Token)
		if err != nil {
			return "", GrantKey{}, err
		}
		v.Key, v.Proof = grant.Key, &grant
	}
	if err := v.Validate(); err != nil {
		return "", GrantKey{}, err
	}
	if err := g.mayRevoke(ctx, r, v); err != nil {
		return "", GrantKey{}, err
	}
	asking, cancel := g.asking(ctx)
	defer cancel()
	state, err := g.store.Revoke(asking, v)
	return state, v.Key, err
}

// mayRevoke holds a revocation against the limits of its credential. What a grant
// is for is told by its proof or by its immutable row.
func (g *Gate) mayRevoke(ctx context.Context, r RevokeRequest, v Revocation) error {
	if len(r.Issuers) > 0 && !slices.Contains(r.Issuers, v.Key.Issuer) {
		return refused(ReasonNotProven)
	}
	if len(r.Tenants) == 0 && len(r.Kinds) == 0 {
		return nil
	}
	var grant Grant
	switch {
	case v.Proof != nil:
		grant = *v.Proof
	case g.book == nil:
		return refused(ReasonNotProven)
	default:
		asking, cancel := g.asking(ctx)
		defer cancel()
		row, err := g.book.Grant(asking, v.Key)
		if errors.Is(err, ErrNotFound) {
			return refused(ReasonNotProven)
		}
		if err != nil {
			return err
		}
		grant = row.Grant
	}
	if len(r.Tenants) > 0 && !slices.Contains(r.Tenants, grant.Tenant) ||
		len(r.Kinds) > 0 && !slices.Contains(r.Kinds, grant.Intent.Kind) {
		return refused(ReasonNotProven)
	}
	return nil
}

// Purge deletes one batch of what retention no longer needs [P4] and says why it
// deletes nothing where it may not [P2]. Run does it by itself. Errors: ErrInvalid,
// ErrUnavailable.
func (g *Gate) Purge(ctx context.Context, b PurgeBatch) (PurgeReport, error) {
	watch := startStopwatch()
	report, err := g.store.Purge(ctx, b)
	g.tell(ctx, Event{
		Type: EventPurge, Count: report.Deleted(), Elapsed: watch.elapsed(), Note: report.Held, Reason: ReasonOf(err), Err: err,
	})
	return report, err
}
