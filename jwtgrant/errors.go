package jwtgrant

import "github.com/pawl-go/pawl"

// Every note is a constant of this package or the name of a claim or header:
// nothing that a sender wrote gets into an error [S2].

func invalid(r pawl.Reason, note string) error {
	return &pawl.Error{Class: pawl.ErrInvalid, Reason: r, Note: note}
}

func malformed(note string) error { return invalid(pawl.ReasonMalformed, note) }

func refused(r pawl.Reason, note string) error {
	return &pawl.Error{Class: pawl.ErrRefused, Reason: r, Note: note}
}

// notAuthentic is the answer for whatever no trusted key has signed as a grant.
func notAuthentic(note string) error { return refused(pawl.ReasonSignature, note) }

func misconfigured(note string) error {
	return &pawl.Error{Class: pawl.ErrMisconfigured, Reason: pawl.ReasonUnsafeKeys, Note: note}
}

// unreachable says that something outside could not be asked now. The cause is
// for operators; its text stays out of the note, for it may name addresses.
func unreachable(note string, cause error) error {
	return &pawl.Error{Class: pawl.ErrUnavailable, Reason: pawl.ReasonUnreachable, Note: note, Cause: cause}
}
