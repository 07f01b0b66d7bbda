package pawl

import (
	"context"
	"errors"
	"log/slog"
	"slices"
)

// Request presents a grant for one operation. Everything in it is a claim: who
// and what the grant is for is told by the grant [A5].
type Request struct {
	// Token is a signed grant. Exactly one of Token and Stored is given.
	Token string
	// Stored names a stored grant; it never names a token's grant.
	Stored GrantKey

	// OperationID names the operation. A retry repeats it [A8].
	OperationID OperationID
	// SealedOperationID is the issuer's form of the operation id, where the gate
	// requires it; OperationID may then be left zero.
	SealedOperationID string

	Kind Kind
	// Details are one JSON object. The gate reads and copies them before anything
	// else, so that later changes to the slice change nothing.
	Details []byte
	Caller  Caller

	// Issuers are the limits of the presenter's credential; empty: all. A grant of
	// another issuer is refused with ReasonOutsideLimits before admission.
	Issuers []string
}

// String tells only what a log may hold [S2].
func (r Request) String() string {
	return "request for operation " + r.OperationID.String() + " of kind " + string(r.Kind)
}

// GoString hides token and details as String does.
func (r Request) GoString() string { return "pawl.Request{" + r.String() + "}" }

// LogValue implements slog.LogValuer as String.
func (r Request) LogValue() slog.Value { return slog.StringValue(r.String()) }

// ReservedRequest asks for one operation under an idempotency key, without a
// grant [B1].
type ReservedRequest struct {
	Scope   KeyScope
	Key     string
	Kind    Kind
	Details []byte // as in Request
	Caller  Caller
}

// admission turns a request into what a store is asked, in the order of the
// execution boundary: shape, verification, caller and intent. Nothing is written
// for a request that fails here [A9].
func (g *Gate) admission(ctx context.Context, r Request) (Admission, error) {
	asked, caller, err := g.asked(r.Kind, r.Details, r.Caller)
	if err != nil {
		return Admission{}, err
	}
	if err := g.checkRequest(r); err != nil {
		return Admission{}, err
	}
	grant, err := g.grant(ctx, r)
	if err != nil {
		return Admission{}, err
	}
	if len(r.Issuers) > 0 && !slices.Contains(r.Issuers, grant.Key.Issuer) {
		return Admission{}, refused(ReasonOutsideLimits)
	}
	id, err := g.operationID(r, grant.Key)
	if err != nil {
		return Admission{}, err
	}
	intent, err := g.intent(ctx, grant, asked)
	if err != nil {
		return Admission{}, err
	}
	kt := g.timings.For(intent.Kind)
	a := Admission{
		Grant: grant, OperationID: id, Intent: intent, Caller: caller,
		Lease: kt.ExecutionLease, SubmissionWindow: kt.SubmissionWindow,
	}
	return a, a.Validate()
}

// reservation is admission for a key.
func (g *Gate) reservation(r ReservedRequest) (Reservation, error) {
	intent, caller, err := g.asked(r.Kind, r.Details, r.Caller)
	if err != nil {
		return Reservation{}, err
	}
	kt := g.timings.For(intent.Kind)
	v := Reservation{
		Scope: r.Scope, Key: r.Key, Intent: intent, Caller: caller,
		Lease: kt.ExecutionLease, SubmissionWindow: kt.SubmissionWindow,
	}
	return v, v.Validate()
}

// asked reads intent and caller into memory of their own.
func (g *Gate) asked(k Kind, raw []byte, c Caller) (Intent, Caller, error) {
	details, err := ParseDetails(raw)
	if err != nil {
		return Intent{}, Caller{}, err
	}
	intent := Intent{Kind: k, Details: details}
	if err := intent.Validate(); err != nil {
		return Intent{}, Caller{}, err
	}
	if err := c.Validate(); err != nil {
		return Intent{}, Caller{}, err
	}
	if g.needsGen && c.Generation == "" {
		return Intent{}, Caller{}, invalid(ReasonGenerationEmpty, "the caller has no generation")
	}
	return intent, c.Normalised(), nil
}

// checkRequest reports a request that names its grant or its operation not at
// all, or twice.
func (g *Gate) checkRequest(r Request) error {
	switch {
	case r.Token == "" && r.Stored.IsZero():
		return invalid(ReasonMissing, "neither a token nor a stored grant")
	case r.Token != "" && !r.Stored.IsZero():
		return invalid(ReasonMalformed, "both a token and a stored grant")
	case g.sealed == nil && r.SealedOperationID != "":
		return invalid(ReasonMalformed, "a sealed operation id, which nobody opens here")
	case g.sealed == nil && r.OperationID.IsZero():
		return invalid(ReasonReservedID, "operation id is the nil UUID")
	case g.sealed != nil && r.SealedOperationID == "":
		return invalid(ReasonMissing, "the sealed operation id is missing")
	case r.Token == "":
		return r.Stored.Validate()
	}
	return nil
}

// grant verifies a token, or names a stored grant for the store to look at.
func (g *Gate) grant(ctx context.Context, r Request) (Grant, error) {
	if r.Token == "" {
		return Grant{Form: FormStored, Key: r.Stored}, nil
	}
	return g.verify(ctx, r.Token, ErrNotConfirmed)
}

// verify asks the verifier. Where it cannot tell, the answer is of the class
// lost: the caller may repeat its call.
func (g *Gate) verify(ctx context.Context, token string, lost Class) (Grant, error) {
	if g.verifier == nil {
		return Grant{}, refused(ReasonIssuerUnknown)
	}
	return verified(ctx, g.verifier.Verify, token, lost)
}

// proveIssue verifies a token for its revocation alone: whoever revokes a grant
// that is bound to its holder's key does not hold that key [R2].
func (g *Gate) proveIssue(ctx context.Context, token string) (Grant, error) {
	prover, ok := g.verifier.(IssuanceVerifier)
	if !ok {
		return g.verify(ctx, token, ErrUnavailable)
	}
	return verified(ctx, prover.VerifyIssuance, token, ErrUnavailable)
}

func verified(ctx context.Context, verify func(context.Context, string) (Grant, error), token string, lost Class) (Grant, error) {
	grant, err := verify(ctx, token)
	if err != nil && (errors.Is(err, ErrUnavailable) || stopped(err)) {
		return Grant{}, &Error{Class: lost, Reason: ReasonUnreachable, Note: "the grant could not be verified now", Cause: plain(err)}
	}
	if err != nil {
		return Grant{}, err
	}
	if grant.Form != FormToken {
		return Grant{}, errors.New("pawl: the verifier returned a grant that is no token")
	}
	return grant, nil
}

// operationID returns the id of the operation: the issuer's where ids are sealed.
func (g *Gate) operationID(r Request, key GrantKey) (OperationID, error) {
	if g.sealed == nil {
		return r.OperationID, nil
	}
	id, err := g.sealed.Open(r.SealedOperationID, key)
	if err != nil || id.IsZero() || (!r.OperationID.IsZero() && r.OperationID != id) {
		return OperationID{}, refused(ReasonSealedID)
	}
	return id, nil
}

// intent returns what will run. Without a matcher that is what was asked, which
// must equal what was granted: for a token Validate compares, for a stored grant
// the store's own statement does. With a matcher it is what was granted. Whom the
// grant is for is compared there too.
func (g *Gate) intent(ctx context.Context, grant Grant, asked Intent) (Intent, error) {
	match := g.matchers[asked.Kind]
	if match == nil {
		return asked, nil
	}
	if grant.Form == FormStored {
		row, err := g.storedGrant(ctx, grant.Key)
		if err != nil {
			return Intent{}, err
		}
		grant = row
	}
	if grant.Intent.Kind != asked.Kind || !match(grant.Intent.Details, asked.Details) {
		return Intent{}, refused(ReasonIntent)
	}
	return grant.Intent, nil
}

// storedGrant reads the immutable row of a stored grant. The admission rests on
// the store's statement and not on this read: a row cannot change, only be gone.
func (g *Gate) storedGrant(ctx context.Context, key GrantKey) (Grant, error) {
	ctx, cancel := g.asking(ctx)
	defer cancel()
	row, err := g.book.Grant(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && row.Grant.Form != FormStored:
		return Grant{}, refused(ReasonGrantUnknown)
	case err != nil && again(err):
		return Grant{}, notConfirmed(err)
	}
	return row.Grant, err
}

// notConfirmed is the answer for a grant that could not be asked about: nothing
// ran, and the same operation id may be tried again [A6].
func notConfirmed(cause error) error {
	reason := ReasonOf(cause)
	if reason == "" {
		reason = ReasonUnreachable
	}
	if stopped(cause) {
		reason = ReasonCancelled
	}
	return &Error{Class: ErrNotConfirmed, Reason: reason, Cause: plain(cause)}
}

// plain returns an error as a cause, unless it has a class: one error must not
// be of two.
func plain(err error) error {
	if _, classed := Row(err); classed {
		return nil
	}
	return err
}

// stopped reports whether an error is only that somebody stopped waiting.
func stopped(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// again reports whether a call outside admission may be repeated as it is.
func again(err error) bool { return errors.Is(err, ErrUnavailable) || stopped(err) }
