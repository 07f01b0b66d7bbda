package sqlitestore

import (
	"errors"
	"fmt"

	"github.com/pawl-go/pawl"
)

var (
	_ error = (*kept)(nil)
	_ error = fault("")
)

// fault is an error of this package's own that is matched by value.
type fault string

// Error implements error.
func (f fault) Error() string { return "sqlitestore: " + string(f) }

const (
	// errMoved: the file under the store's path is no longer the one it opened.
	errMoved = fault("the file was moved, deleted or replaced while open")
	// errUnconfirmed: the commit was not acknowledged; it may have happened.
	errUnconfirmed = fault("the commit was not confirmed")
	// errNoTransaction: the transaction was ended by something else.
	errNoTransaction = fault("the transaction is gone")
	// errChanged: a record was not as it had been read, under the write lock.
	errChanged = fault("a record changed under the write lock")
	// errSize: an id or digest is not as long as its kind.
	errSize = fault("an id, lock or digest in the file has the wrong size")
	// errDisagree: the admission statement refused what the rule allows.
	errDisagree = fault("the admission statement and the rule disagree")
)

// kept is an answer that is an error although what was written stands: a
// refused statement is logged too [M1].
type kept struct{ answer error }

// Error implements error.
func (k *kept) Error() string { return k.answer.Error() }

// Unwrap returns the answer.
func (k *kept) Unwrap() error { return k.answer }

// explain gives an error its class. class is that of an answer that could not be
// had: ErrNotConfirmed for admissions, else ErrUnavailable. What has no class is
// a defect and stays one [A7].
func (e engine) explain(err error, class pawl.Class) error {
	if err == nil {
		return nil
	}
	if k, ok := errors.AsType[*kept](err); ok {
		return k.answer
	}
	if _, ok := errors.AsType[*pawl.Error](err); ok {
		return err
	}
	if e.unreachable(err) {
		return e.unanswered(err, class)
	}
	return fmt.Errorf("sqlitestore: %w", err)
}

// unbegun gives its class to an error of a whole transaction. A connection that
// is not set as it must be admits nothing [A11].
func (e engine) unbegun(err error, class pawl.Class) error {
	if _, ok := errors.AsType[*pawl.Error](err); ok || e.unreachable(err) {
		return e.unanswered(err, class)
	}
	return fmt.Errorf("sqlitestore: %w", err)
}

// unanswered is the error of whoever was in a transaction that did not end well.
func (e engine) unanswered(err error, class pawl.Class) error {
	note := "the store did not answer"
	if code, ok := e.code(err); ok {
		note = fmt.Sprintf("sqlite result code %d", code)
		if e.busy(err) {
			note += ": another process held the write lock all the time"
		}
	}
	return &pawl.Error{Class: class, Reason: pawl.ReasonUnreachable, Note: note, Cause: err}
}

func cancelled(class pawl.Class, cause error) error {
	return &pawl.Error{Class: class, Reason: pawl.ReasonCancelled, Cause: cause}
}

func closed(class pawl.Class) error {
	return &pawl.Error{Class: class, Reason: pawl.ReasonClosed}
}

func malformed(note string) error {
	return &pawl.Error{Class: pawl.ErrInvalid, Reason: pawl.ReasonMalformed, Note: note}
}

func misconfigured(format string, args ...any) error {
	return pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonUnsafeStore, format, args...)
}
