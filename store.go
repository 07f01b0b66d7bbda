package pawl

import (
	"context"
	"time"
)

// Store is one authoritative store that all instances share [A1]. Each call is
// one atomic operation: one SQL statement or transaction, or one etcd
// transaction. Everything that decides uses the store's clock.
//
// Rules for every implementation, which package storetest checks:
//
//   - Validate the argument first; nothing malformed reaches the engine [A9].
//   - A change happens in one transaction with its log entries, decided by the
//     pure functions of this package (Judge, SettleEvidence, RecordOutcome, …).
//   - A context that ends stops the caller's wait. It never cancels a statement
//     that may commit: that one runs to its end on the store's own time [A3].
//   - Errors are of the classes. Two uniqueness rules of an admission map to
//     refusals; every other violation is a defect, without a class [A7].
//   - Values returned share no memory with the store.
type Store interface {
	// Admit claims the grant's one use and records the operation, or does
	// neither [A2]. Atomic with the deadline check on the store's clock [A4].
	// Errors: ErrInvalid, ErrRefused, ErrNotConfirmed. On a lost answer the
	// admission may have happened: nothing runs, and the same call says which [A6].
	Admit(ctx context.Context, a Admission) (Admitted, error)

	// Reserve records an operation under an idempotency key [B1]. The same lock
	// joins, Fresh being false. Errors: ErrInvalid, ErrMismatch, ErrNotConfirmed.
	Reserve(ctx context.Context, r Reservation) (Admitted, error)

	// Issue writes a grant's immutable row, idempotent by request id. Times are
	// the store's. Errors: ErrInvalid (also a lifetime over the policy's),
	// ErrMismatch (request id used for other content), ErrUnavailable; on a lost
	// answer repeat the call and get the same grant.
	Issue(ctx context.Context, i Issuance) (Issued, error)

	// Revoke claims the grant's key without an operation [R1]. Atomic with the
	// claim it contends for. Errors: ErrInvalid, ErrRefused (ReasonNotProven),
	// ErrUnavailable; on a lost answer repeat the call.
	Revoke(ctx context.Context, r Revocation) (RevocationState, error)

	// Get reads one operation as somebody; execution never rests on it [A3].
	// Errors: ErrNotFound (absent or not the viewer's [S1]), ErrUnavailable.
	Get(ctx context.Context, id OperationID, as Viewer) (Operation, error)

	// List reads operations, newest first. Errors: ErrInvalid, ErrUnavailable.
	List(ctx context.Context, f Filter) (Page, error)

	// Log reads one operation with its log, in order; the admission's entry,
	// [AdmissionEntry], comes first. Errors as Get.
	Log(ctx context.Context, id OperationID, as Viewer) (Timeline, error)

	// MaySubmit confirms, as an acknowledged write, that the owner may send one
	// create call now [O5]. The zero Permit permits nothing. Errors: ErrNotFound,
	// ErrFenced, ErrUnavailable; on a lost answer nothing is sent.
	MaySubmit(ctx context.Context, id OperationID, token OwnerToken) (Permit, error)

	// Renew moves the end of the owner's lease [O3], from the store's time after
	// any wait. Errors: ErrNotFound, ErrFenced, ErrUnavailable; on a lost answer
	// assume the old lease.
	Renew(ctx context.Context, r Renewal) (Owner, error)

	// Record is the owner's door [O1], atomic with its log entry. Errors:
	// ErrInvalid, ErrNotFound, ErrFenced (then the statement is logged as
	// refused), ErrUnavailable. On a lost answer repeat it: the same statement by
	// the same owner is then refused as final, and the record tells.
	Record(ctx context.Context, s Statement) (Operation, error)

	// Settle is the evidence door [M1], atomic with its log entry. Errors:
	// ErrInvalid, ErrNotFound (no proof of taking part, or absent), ErrRefused
	// (a resolution that may not be), ErrUnavailable; idempotent [M4], so on a
	// lost answer repeat it.
	Settle(ctx context.Context, e Evidence) (Settlement, error)

	// TakeOver makes the caller the owner of operations whose lease is over [O2],
	// one winner each, leases from after any wait. It returns at most Limit; an
	// empty answer is no error. Errors: ErrInvalid, ErrUnavailable; on a lost
	// answer the operations are free again when the leases end.
	TakeOver(ctx context.Context, t TakeOver) ([]TakenOver, error)

	// Purge deletes at most one batch of what retention no longer needs [P4], and
	// says why it deletes nothing where it may not [P2]. Errors: ErrInvalid,
	// ErrUnavailable; a batch may be repeated.
	Purge(ctx context.Context, b PurgeBatch) (PurgeReport, error)

	// Check reads the facts of the deployment that the promise rests on.
	// Errors: ErrUnavailable.
	Check(ctx context.Context) (Facts, error)

	// Close waits for calls in flight and frees what the store holds. Calls after
	// it are ErrUnavailable (ErrNotConfirmed for an admission) with ReasonClosed.
	Close() error
}

// GrantBook is the grants' side of a store: the rows that Issue writes.
type GrantBook interface {
	// Grant reads one row. Errors: ErrNotFound, ErrUnavailable.
	Grant(ctx context.Context, k GrantKey) (GrantRecord, error)
	// Grants lists rows, newest first. Errors: ErrInvalid, ErrUnavailable.
	Grants(ctx context.Context, f GrantFilter) (GrantPage, error)
	// RevokeIntent withdraws every unused stored grant of one subject for one
	// intent, in one transaction, and returns how many [R1]. Errors: ErrInvalid,
	// ErrUnavailable; repeat it on a lost answer.
	RevokeIntent(ctx context.Context, r IntentRevocation) (int, error)
}

// Keeper is what an operator does to a store as a whole.
type Keeper interface {
	// RaiseEpoch refuses from now on every grant issued before this moment, the
	// issuers' clock skew included, and returns the new epoch: to be called after
	// a restore from backup [A12]. Errors: ErrUnavailable.
	RaiseEpoch(ctx context.Context) (Epoch, error)
	// Erase removes details and results of one principal's settled operations,
	// the details in the rows of their grants included, and keeps what refusal and
	// audit need; it returns how many. Operations that are not settled are left
	// alone. Errors: ErrInvalid, ErrUnavailable.
	Erase(ctx context.Context, e Erasure) (ErasureReport, error)
}

// Permit is the answer of a submission check. Granted is false in the zero value.
type Permit struct {
	Granted bool
	Fence   uint64
	// Owner's times as of the check; the token is not repeated.
	LeaseUntil time.Time
	SubmitBy   time.Time
	AsOf       time.Time
}

// Renewal asks for a longer lease.
type Renewal struct {
	ID     OperationID
	Token  OwnerToken
	Lease  time.Duration // from the store's time at the write
	Beyond time.Duration // how far past the submission deadline a lease may reach: effect timeout + margin [O3]
}

// Validate reports, as ErrInvalid, what is missing or malformed.
func (r Renewal) Validate() error {
	if r.ID.IsZero() {
		return invalid(ReasonReservedID, "operation id is the nil UUID")
	}
	if r.Lease <= 0 || r.Beyond < 0 {
		return invalid(ReasonMissing, "lease is not positive")
	}
	return nil
}

// Statement is what an owner records at its own door.
type Statement struct {
	ID      OperationID
	Token   OwnerToken
	Outcome Outcome
	Pause   time.Duration // see [RecordOutcome]
}

// Validate reports, as ErrInvalid, what is missing or malformed.
func (s Statement) Validate() error {
	if s.ID.IsZero() {
		return invalid(ReasonReservedID, "operation id is the nil UUID")
	}
	if s.Pause < 0 || (s.Pause > 0 && s.Outcome.Verdict() != VerdictUnknown) {
		return invalid(ReasonMalformed, "only an unknown outcome may pause")
	}
	return nil
}

// TakeOver asks for stalled operations.
type TakeOver struct {
	// Leases are the kinds wanted with the recovery lease of each.
	Leases map[Kind]time.Duration
	// OtherKinds, where positive, wants every kind not in Leases too, with this lease.
	OtherKinds time.Duration
	Tenants    []string // limits of a credential; empty: all
	Issuers    []string // limits of a credential; empty: all. Reservations have no issuer and are then left out
	Limit      int      // 1 to MaxPage
	By         string   // who takes over, for the log
}

// Validate reports, as ErrInvalid, what is missing or malformed.
func (t TakeOver) Validate() error {
	if t.Limit < 1 || t.Limit > MaxPage {
		return invalid(ReasonMalformed, "limit is not 1 to 1000")
	}
	if len(t.Leases) == 0 && t.OtherKinds <= 0 {
		return invalid(ReasonMissing, "no kinds are named")
	}
	for k, lease := range t.Leases {
		if err := k.Validate(); err != nil {
			return err
		}
		if lease <= 0 {
			return invalid(ReasonMissing, "a lease is not positive")
		}
	}
	return checkID("who takes over", t.By)
}

// Lease returns the lease for a kind, and whether the kind is wanted.
func (t TakeOver) Lease(k Kind) (time.Duration, bool) {
	if lease, ok := t.Leases[k]; ok {
		return lease, true
	}
	return t.OtherKinds, t.OtherKinds > 0
}

// TakenOver is one operation with its new owner. Operation.Deferred is what the
// owner must read first.
type TakenOver struct {
	Operation Operation
	Owner     Owner
}

// Filter selects operations, newest first. Empty fields select all.
type Filter struct {
	Statuses []Status
	Kinds    []Kind
	Tenants  []string
	Issuers  []string
	// Principal, where its Principal is not empty, selects one caller's.
	Principal Caller
	Cursor    string
	Limit     int // 1 to MaxPage; 0 is 100
}

// Page is one page of operations. Next is empty on the last one.
type Page struct {
	Operations []Operation
	Next       string
}

// Epoch counts the restores from backup [A12].
type Epoch struct {
	Number          int64
	IssuedNotBefore time.Time // grants issued before this are refused; zero at epoch 0
}

// PurgeBatch asks for one batch. A zero retention is the store's own: what the
// timings it was opened with say.
type PurgeBatch struct {
	Limit int // rows at most, 1 to 10000; 0 is 1000
}

// PurgeReport tells what one batch did.
type PurgeReport struct {
	Refusals   int           // claims and revocations deleted
	Grants     int           // rows of expired grants deleted
	Operations int           // settled operations deleted
	Attempts   int           // log entries deleted
	Results    int           // results cleared
	More       bool          // another batch has work
	Overdue    time.Duration // age past its time of the oldest refusal record left
	Held       string        // why refusal records may not be deleted; empty where they may [P2]
	Stale      int           // non-terminal operations older than every retention: alarmed, never deleted [P3]; counted once there is no More
}

// Add sums two reports; More, Overdue, Held and Stale are those of the later.
func (r PurgeReport) Add(later PurgeReport) PurgeReport {
	later.Refusals += r.Refusals
	later.Grants += r.Grants
	later.Operations += r.Operations
	later.Attempts += r.Attempts
	later.Results += r.Results
	return later
}

// Deleted counts the rows that a batch deleted or cleared.
func (r PurgeReport) Deleted() int {
	return r.Refusals + r.Grants + r.Operations + r.Attempts + r.Results
}

// Erasure names whose settled operations lose details and results.
type Erasure struct {
	Caller Caller // authority, principal and tenant
	By     string
	Reason string
	Limit  int // 1 to MaxPage in one transaction; 0 is MaxPage
}

// Validate reports, as ErrInvalid, what is missing or malformed.
func (e Erasure) Validate() error {
	if err := e.Caller.Validate(); err != nil {
		return err
	}
	if e.Limit < 0 || e.Limit > MaxPage {
		return invalid(ReasonMalformed, "limit is not 1 to 1000")
	}
	if err := checkID("who erases", e.By); err != nil {
		return err
	}
	return CheckNote("reason", e.Reason)
}

// ErasureReport tells what an erasure did.
type ErasureReport struct {
	Erased    int
	Unsettled int  // left alone: not settled yet
	More      bool // call again
}
