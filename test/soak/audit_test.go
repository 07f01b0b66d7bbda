//go:build unix && !failpoints

package soak

import (
	"fmt"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// heard is one answer that a customer got.
type heard struct {
	id    pawl.OperationID
	reply reply
	// must says what the answer had to be; empty is either.
	must expectation
}

type expectation string

const (
	mustReport expectation = "report" // the operation as it stands
	mustRefuse expectation = "refuse" // the grant is spent
)

// file is what is known of one grant when all is over.
type file struct {
	trial
	ids     []pawl.OperationID // under which it was presented
	answers []heard
}

// evidence is everything there is to judge by.
type evidence struct {
	files      []file
	operations []pawl.Operation
	books      billing.Books
	stated     bool     // the provider's contract was stated to the workers
	alarms     []string // what workers called a defect or suspicious
}

// charge is what can be wrong.
type charge string

const (
	chargeEffects    charge = "two effects"       // more than one credit for a grant
	chargeStray      charge = "stray effect"      // a credit that no operation answers for, or another than was approved
	chargeAdmissions charge = "admissions"        // not exactly one operation for a grant
	chargeOpen       charge = "not ended"         // neither succeeded, failed nor needs_reconciliation
	chargeSuccess    charge = "false success"     // no credit, or another than the record names
	chargeFailure    charge = "false failure"     // a credit, or no refusal of the provider's
	chargeFlag       charge = "flag"              // mismatch, contradiction or divergence was seen
	chargeAnswer     charge = "wrong answer"      // a customer was told what the record does not say, or refused what was its own
	chargeCreate     charge = "unstated contract" // recovery created without a stated contract
	chargeAlarm      charge = "alarm"
)

// finding is one breach.
type finding struct {
	charge charge
	text   string
}

func (f finding) String() string { return string(f.charge) + ": " + f.text }

// audit holds operations, answers and credits against each other [A2, A8, E5, M1, M7].
func audit(e evidence) (found []finding) {
	charge := func(c charge, format string, args ...any) {
		found = append(found, finding{c, fmt.Sprintf(format, args...)})
	}
	operations := map[pawl.OperationID]pawl.Operation{}
	for _, op := range e.operations {
		operations[op.ID] = op
	}
	credits := map[string][]billing.Credit{} // by account
	for _, c := range e.books.Credits {
		credits[c.Account] = append(credits[c.Account], c)
	}
	known := 0
	for _, f := range e.files {
		known += len(credits[f.account])
		mine := f.operationsIn(operations)
		if len(mine) != 1 {
			charge(chargeAdmissions, "%s has %d operations", f.account, len(mine))
		}
		found = append(found, f.auditCredits(credits[f.account], mine)...)
		for _, op := range mine {
			found = append(found, f.auditOperation(op, credits[f.account])...)
		}
		for _, a := range f.answers {
			found = append(found, f.auditAnswer(a, operations)...)
		}
	}
	if known != len(e.books.Credits) {
		charge(chargeStray, "%d credits are of no account of ours", len(e.books.Credits)-known)
	}
	for _, r := range e.books.References {
		if !e.stated && r.Requests > 1 {
			charge(chargeCreate, "%d create calls under %s", r.Requests, r.Reference)
		}
	}
	for _, text := range e.alarms {
		charge(chargeAlarm, "%s", text)
	}
	return found
}

func (f file) operationsIn(all map[pawl.OperationID]pawl.Operation) (mine []pawl.Operation) {
	for _, id := range f.ids {
		if op, ok := all[id]; ok {
			mine = append(mine, op)
		}
	}
	return mine
}

// auditCredits judges what the provider holds for one grant.
func (f file) auditCredits(credits []billing.Credit, mine []pawl.Operation) (found []finding) {
	if len(credits) > 1 {
		found = append(found, finding{chargeEffects, fmt.Sprintf("%s has %d credits", f.account, len(credits))})
	}
	for _, c := range credits {
		answered := slices.ContainsFunc(mine, func(op pawl.Operation) bool { return op.ID.String() == c.Reference })
		if !answered || c.Amount != f.amount || c.Currency != currency {
			found = append(found, finding{chargeStray, fmt.Sprintf("%s: %s %s under %s", f.account, c.Amount, c.Currency, c.Reference)})
		}
	}
	return found
}

// auditOperation judges one record.
func (f file) auditOperation(op pawl.Operation, credits []billing.Credit) (found []finding) {
	charge := func(c charge, format string, args ...any) {
		found = append(found, finding{c, fmt.Sprintf("operation %v of %s: ", op.ID, f.account) + fmt.Sprintf(format, args...)})
	}
	switch op.Status {
	case pawl.StatusSucceeded:
		if len(credits) == 0 || credits[0].ID != string(op.Result) || credits[0].Reference != op.ID.String() {
			charge(chargeSuccess, "succeeded with %q, and the books show %v", op.Result, credits)
		}
	case pawl.StatusFailed:
		if len(credits) > 0 || !f.declined {
			charge(chargeFailure, "failed, the provider refused: %t, and the books show %v", f.declined, credits)
		}
	case pawl.StatusNeedsReconciliation: // either is possible; a person finds out which
	default:
		charge(chargeOpen, "%v", op.Status)
	}
	if op.MismatchSeen || op.ContradictionSeen || op.DivergenceSeen {
		charge(chargeFlag, "mismatch %t, contradiction %t, divergence %t", op.MismatchSeen, op.ContradictionSeen, op.DivergenceSeen)
	}
	return found
}

// auditAnswer judges what one customer was told. A final status, once told, stays.
func (f file) auditAnswer(a heard, all map[pawl.OperationID]pawl.Operation) (found []finding) {
	charge := func(format string, args ...any) {
		found = append(found, finding{chargeAnswer, fmt.Sprintf("%s: ", f.account) + fmt.Sprintf(format, args...)})
	}
	refused := !a.reply.report()
	switch {
	case refused && a.reply.Reason != pawl.ReasonUsed:
		charge("operation %v was refused as %s", a.id, a.reply.Reason)
	case refused && a.must == mustReport:
		charge("operation %v was refused, though it is the grant's own", a.id)
	case !refused && a.must == mustRefuse:
		charge("operation %v was let in with a spent grant: %s", a.id, a.reply.Status)
	}
	op, ok := all[a.id]
	if refused == ok {
		charge("operation %v was answered %+v, and is recorded: %t", a.id, a.reply, ok)
	}
	final := a.reply.Status == pawl.StatusSucceeded.String() || a.reply.Status == pawl.StatusFailed.String()
	if ok && final && (op.Status.String() != a.reply.Status || string(op.Result) != a.reply.Result) {
		charge("operation %v was told to be %s (%s) and is %v (%s)", a.id, a.reply.Status, a.reply.Result, op.Status, op.Result)
	}
	return found
}
