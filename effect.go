package pawl

import (
	"context"
	"fmt"
)

// Effect performs one kind of operation at a provider. It is registered by kind
// and never passed as a closure: another process must be able to finish what
// this one began [E1].
//
// What else an effect can do is told by the optional interfaces [Finder] and
// [Prechecker].
type Effect interface {
	// Kind names what the effect performs. It never changes.
	Kind() Kind

	// Submit sends one create call, once, under the idempotency key, and ends
	// when its context ends. It says Succeeded or Failed only where the provider
	// was certain; an error, a panic, a timeout, an outcome beside an error and
	// the zero outcome are all unknown [E1].
	//
	// "Once" needs care with net/http: a request with an Idempotency-Key header is
	// sent again by the transport when a reused connection drops, unless its
	// GetBody is nil, and redirects must not be followed.
	Submit(ctx context.Context, s Submission) (Outcome, error)
}

// Submission is what an effect is asked to perform. All of it comes from the
// operation's record, nothing from a request [E1].
type Submission struct {
	OperationID OperationID
	// IdempotencyKey is the operation id in its canonical form: the same in every
	// attempt, and the reference a look-up finds the effect by.
	IdempotencyKey string
	Kind           Kind
	Details        Details
	Caller         Caller
	// Attempt counts owners: 1 is the first, more are recovery's.
	Attempt int
	// Fence grows with every change of owner. A provider that can refuse a lower
	// one than it has seen closes the gap that no lease can: a pause between the
	// submission check and the call.
	Fence uint64
}

// Finder is an effect whose provider can be asked, by the operation's reference,
// whether the effect exists [E2]. Without it recovery never creates again [E5].
type Finder interface {
	// Find looks the effect up. An error, a panic, a timeout and the zero Found all
	// mean that nothing was learnt. Not found is no proof that there is nothing:
	// the first call may be in flight.
	Find(ctx context.Context, l Lookup) (Found, error)
}

// Lookup names the effect to look up.
type Lookup struct {
	OperationID OperationID
	Reference   string // the idempotency key of every Submission of this operation
	Kind        Kind
	// Caller and Details say where to look, for a provider that wants an account
	// for example. What was found is told from the provider's answer only: details
	// copied from here would call another intent's effect this one's [E2].
	Caller  Caller
	Details Details
}

// Found is what a provider answered to a look-up. The zero value is no answer.
type Found struct {
	answer  lookupAnswer
	details Details
	outcome Outcome
}

type lookupAnswer uint8

const (
	lookupSilent  lookupAnswer = iota // nothing was learnt
	lookupNothing                     // the provider answered and knows no such reference
	lookupEffect                      // the provider answered with what became of it
)

// FoundEffect says that the provider knows the reference: with which details, as
// the provider holds them, and what became of it. An outcome that is not
// definite (a provider's "pending") and missing details mean that nothing was
// learnt: the fingerprint is computed from these details, and one defining field
// less is another fingerprint [E2].
func FoundEffect(details Details, out Outcome) Found {
	if details.IsZero() || !out.Verdict().Definite() {
		return Found{}
	}
	return Found{answer: lookupEffect, details: details, outcome: out}
}

// FoundNothing says that the provider answered and knows no such reference. An
// error status is no such answer.
func FoundNothing() Found { return Found{answer: lookupNothing} }

// String tells the answer only: details and results do not reach a log by
// accident [S2].
func (f Found) String() string {
	switch f.answer {
	case lookupNothing:
		return "nothing found"
	case lookupEffect:
		return "found, " + f.outcome.Verdict().String()
	}
	return "no answer"
}

// GoString hides details and result as String does.
func (f Found) GoString() string { return "pawl.Found{" + f.String() + "}" }

// Prechecker is an effect that can tell, before admission, that the provider
// would refuse: predictable refusals then spend nothing [E4].
type Prechecker interface {
	// Precheck returns nil where nothing speaks against the operation. An error that
	// is ErrUnavailable means that it could not be told: nothing is admitted and
	// the caller may retry. Any other error refuses with ReasonPrecheck and is the
	// cause of what the caller of the Gate sees.
	Precheck(ctx context.Context, p Proposal) error
}

// Proposal is what is about to be admitted.
type Proposal struct {
	OperationID OperationID
	Kind        Kind
	Details     Details
	Caller      Caller
}

// Matcher says whether what was asked for is covered by what was granted, for a
// kind where exact equality is too strict. What was granted is what runs, never
// what was asked. It must be a function of its arguments alone, for a repeated
// request is judged by it again.
type Matcher func(granted, asked Details) bool

// submission returns what the owner of an operation submits.
func (o Operation) submission(fence uint64) Submission {
	return Submission{
		OperationID: o.ID, IdempotencyKey: o.ID.String(), Kind: o.Intent.Kind, Details: o.Intent.Details,
		Caller: o.Caller.Normalised(), Attempt: o.Takeovers + 1, Fence: fence,
	}
}

// submitTo calls an effect and makes everything unknown that is not definite.
// note names what went wrong without the provider's words [S2].
func submitTo(ctx context.Context, e Effect, s Submission) (out Outcome, note string) {
	defer func() {
		if p := recover(); p != nil {
			out, note = Unknown("the effect broke off"), fmt.Sprintf("panic: %T", p)
		}
	}()
	out, err := e.Submit(ctx, s)
	switch {
	case err != nil && ctx.Err() != nil:
		return Unknown("no answer in time"), fmt.Sprintf("%T", err)
	case err != nil:
		return Unknown("no definite answer"), fmt.Sprintf("%T", err)
	case out.Verdict().Definite():
		return out, ""
	case out.Reason() == "":
		return Unknown("no definite answer"), "no outcome"
	}
	return Unknown(out.Reason()), ""
}

// findWith asks a finder and learns nothing from anything but an answer.
func findWith(ctx context.Context, f Finder, l Lookup) (found Found, note string) {
	defer func() {
		if p := recover(); p != nil {
			found, note = Found{}, fmt.Sprintf("panic: %T", p)
		}
	}()
	found, err := f.Find(ctx, l)
	if err != nil {
		return Found{}, fmt.Sprintf("%T", err)
	}
	return found, ""
}
