// Package failpoint lets tests stop a process between any two steps of an
// admission and of a settlement [A2, M1]. Without the build tag failpoints a
// [Hit] compiles to nothing. With it, the environment variable PAWL_FAILPOINTS
// says what happens where:
//
//	PAWL_FAILPOINTS="admit.claimed=kill,commit.after=pause:/tmp/here@3"
//
// A point is name=action, optionally with @n for only the n-th passage, counted
// from 1. The actions:
//
//	kill        the process ends at once, as by kill -9: nothing is flushed
//	error       Hit returns ErrInjected
//	pause:PATH  the file PATH is created; the process goes on when it is gone
//
// An unknown name or action ends the process with a message, so that a test
// cannot pass because of a typing error.
package failpoint

// Variable is the environment variable that sets points.
const Variable = "PAWL_FAILPOINTS"

// Name is the name of a point.
type Name string

// The points, in the order in which a store passes them.
const (
	// AdmitBegun: the write lock is held, nothing of the admission is written.
	AdmitBegun Name = "admit.begun"
	// AdmitClaimed: the grant is claimed, the operation is not recorded.
	AdmitClaimed Name = "admit.claimed"
	// AdmitRecorded: claim and operation are written, not committed.
	AdmitRecorded Name = "admit.recorded"

	// SettleBegun: the write lock is held, the record is not read.
	SettleBegun Name = "settle.begun"
	// SettleDecided: the record is read and the change decided, nothing is written.
	SettleDecided Name = "settle.decided"
	// SettleRecorded: the record is changed, its log entries are not written.
	SettleRecorded Name = "settle.recorded"
	// SettleLogged: record and log are written, not committed.
	SettleLogged Name = "settle.logged"

	// CommitBefore: all is written, the commit has not begun.
	CommitBefore Name = "commit.before"
	// CommitAfter: the commit is acknowledged, nobody has been answered.
	CommitAfter Name = "commit.after"
)

// Admission returns the points between every two steps of an admission.
func Admission() []Name {
	return []Name{AdmitBegun, AdmitClaimed, AdmitRecorded, CommitBefore, CommitAfter}
}

// Settlement returns the points between every two steps of a settlement, through
// either door.
func Settlement() []Name {
	return []Name{SettleBegun, SettleDecided, SettleRecorded, SettleLogged, CommitBefore, CommitAfter}
}

// Names returns every point once.
func Names() []Name {
	return append([]Name{AdmitBegun, AdmitClaimed, AdmitRecorded}, Settlement()...)
}

// injected is the type of ErrInjected, which as a constant nobody can replace.
type injected string

// Error implements error.
func (e injected) Error() string { return string(e) }

// ErrInjected is what Hit returns for the action error. A store treats it as a
// failure of its engine.
const ErrInjected = injected("failpoint: injected error")
