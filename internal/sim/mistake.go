package sim

// Mistake is one thing that a world does wrong. The zero value is no mistake;
// only tests make any.
type Mistake uint8

// The mistakes.
const (
	NoMistake Mistake = iota

	AdmitInTwoSteps       // looks for a use that is left, then claims it [A2]
	AdmitWithoutBound     // an admission may last for ever [P1]
	PurgeWithoutMargin    // refusal records go at retain_until [P1]
	ReleaseOnUnknown      // an unknown outcome gives the grant back
	RetryExecutes         // a joined attempt performs the effect [A8]
	RunUnconfirmed        // a lost answer to an admission counts as a yes [A6]
	ClaimAlone            // a claim is written without its operation [A2]
	RevokeOverClaim       // a revocation overwrites a claim [R1]
	ForgetReservation     // a reservation goes before its key's lifetime is over [B3]
	JoinRewritesLock      // a joined reservation brings its own lock [B1]
	TakeOverWithOldFence  // a change of owner does not move the fence [O2]
	TakeOverLiveLease     // recovery does not wait for the end of the lease [O2]
	DoorWithoutFence      // the owner's door does not compare the fence [O1]
	SubmitAfterDeadline   // creates after the submission deadline [O5]
	SubmitWithoutOwnClock // the owner does not measure its own time [O5]
	CallOutlastsDeadline  // a pause after the check moves the end of the call [O5]
	KeyWithoutCall        // the provider's keys need not outlast the call itself [T1]
	CreateWithoutContract // recovery creates again at a provider that states nothing [E5]
	NotFoundIsFailed      // a look-up that finds nothing is a failure [E2]
	SilenceIsSuccess      // a call without an answer is taken for a success [E1]
	UnknownOverFinal      // a late "unknown" overwrites a final status [M1]
	FailureUnderLease     // a failure is applied under another's live lease [M1]
	SuccessReplacesResult // a second success replaces the result [M1]
	EvidenceForAnyLock    // the lock of evidence is not compared [M1]
	SettlementKeepsFence  // a final outcome through the evidence door leaves the owner in office [M2]
	SettlementClearsFlags // a final outcome clears the flags [M7]
	DropRefusedSuccess    // a refused owner drops its success [M3]
	RecoverAdmittedOnly   // recovery does not look at unknown [E5]
	PurgeOpenOperation    // an operation that is not settled is deleted by time [P3]
	lastMistake           = PurgeOpenOperation
)

// Mistakes returns all of them.
func Mistakes() (all []Mistake) {
	for m := NoMistake + 1; m <= lastMistake; m++ {
		all = append(all, m)
	}
	return all
}

// String returns the name, as testdata has it.
func (m Mistake) String() string {
	if m > lastMistake {
		return "invalid"
	}
	return [...]string{
		"none", "admit-in-two-steps", "admit-without-bound", "purge-without-margin", "release-on-unknown", "retry-executes",
		"run-unconfirmed", "claim-alone", "revoke-over-claim", "forget-reservation", "join-rewrites-lock", "take-over-with-old-fence",
		"take-over-live-lease", "door-without-fence", "submit-after-deadline", "submit-without-own-clock",
		"call-outlasts-deadline", "key-without-call", "create-without-contract", "not-found-is-failed", "silence-is-success",
		"unknown-over-final", "failure-under-lease", "success-replaces-result", "evidence-for-any-lock",
		"settlement-keeps-fence", "settlement-clears-flags", "drop-refused-success", "recover-admitted-only", "purge-open-operation",
	}[m]
}
