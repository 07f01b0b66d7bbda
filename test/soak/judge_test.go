//go:build unix && !failpoints

package soak

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// caseFile is a run of three grants in which everything is as it should be: one succeeded, one failed, one waits for a
// person.
func caseFile() evidence {
	e := evidence{stated: true}
	add := func(account string, declined bool, status pawl.Status, credit string) {
		id, other := pawl.NewOperationID(), pawl.NewOperationID()
		op := pawl.Operation{ID: id, Status: status}
		said := reply{Code: http.StatusOK, Operation: id.String(), Status: status.String()}
		if credit != "" {
			op.Result, said.Result = []byte(credit), credit
			e.books.Credits = append(e.books.Credits, billing.Credit{
				ID: credit, Account: account, Amount: "5.00", Currency: currency, Reference: id.String(),
			})
		}
		e.operations = append(e.operations, op)
		e.books.References = append(e.books.References, billing.ReferenceTotal{Reference: id.String(), Requests: 1})
		e.files = append(e.files, file{
			trial: trial{account: account, amount: "5.00", declined: declined}, ids: []pawl.OperationID{id, other},
			answers: []heard{
				{id, said, mustReport},
				{other, reply{Code: http.StatusConflict, Reason: pawl.ReasonUsed}, mustRefuse},
			},
		})
	}
	add("acc_0", false, pawl.StatusSucceeded, "cr_0")
	add("acc_1", true, pawl.StatusFailed, "")
	add("acc_2", false, pawl.StatusNeedsReconciliation, "")
	return e
}

// TestAudit makes one thing wrong at a time. Each must be charged with exactly what it is.
func TestAudit(t *testing.T) {
	for _, tc := range []struct {
		name string
		harm func(*evidence)
		want string
	}{
		{"nothing", func(*evidence) {}, ""},
		{"an unheard effect of what waits for a person", func(e *evidence) { e.credit(2, "cr_2", "5.00") }, ""},
		{"two credits", func(e *evidence) { e.credit(0, "cr_9", "5.00") }, "two effects"},
		{"a credit under an id that is no operation's", func(e *evidence) {
			e.credit(2, "cr_9", "5.00")
			e.books.Credits[1].Reference = e.files[2].ids[1].String()
		}, "stray effect"},
		{"a credit of another amount", func(e *evidence) { e.credit(2, "cr_9", "50.00") }, "stray effect"},
		{"a credit of nobody's", func(e *evidence) {
			e.credit(2, "cr_9", "5.00")
			e.books.Credits[1].Account = "acc_9"
		}, "stray effect"},
		{"two operations", func(e *evidence) {
			e.operations = append(e.operations, pawl.Operation{ID: e.files[0].ids[1], Status: pawl.StatusNeedsReconciliation})
		}, "admissions, wrong answer"},
		{"an operation that is gone", func(e *evidence) { e.operations = e.operations[:2] }, "admissions, wrong answer"},
		{"still open", func(e *evidence) { e.operations[2].Status = pawl.StatusUnknown }, "not ended"},
		{"in conflict", func(e *evidence) { e.operations[2].Status = pawl.StatusConflict }, "not ended"},
		{"a success without a credit", func(e *evidence) { e.books.Credits = nil }, "false success"},
		{"a success with another credit", func(e *evidence) {
			e.operations[0].Result, e.files[0].answers = []byte("cr_9"), nil
		}, "false success"},
		{"a failure with a credit", func(e *evidence) { e.credit(1, "cr_1", "5.00") }, "false failure"},
		{"a failure that nobody refused", func(e *evidence) { e.files[1].declined = false }, "false failure"},
		{"a mismatch", func(e *evidence) { e.operations[0].MismatchSeen = true }, "flag"},
		{"a contradiction", func(e *evidence) { e.operations[1].ContradictionSeen = true }, "flag"},
		{"a divergence", func(e *evidence) { e.operations[0].DivergenceSeen = true }, "flag"},
		{"told to have failed what succeeded", func(e *evidence) { e.files[0].answers[0].reply.Status = "failed" }, "wrong answer"},
		{"told another result", func(e *evidence) { e.files[0].answers[0].reply.Result = "cr_9" }, "wrong answer"},
		{"a defect", func(e *evidence) { e.files[0].answers[0].reply = reply{Code: http.StatusInternalServerError} }, "wrong answer"},
		{"its own operation refused", func(e *evidence) {
			e.files[0].answers[0].reply = reply{Code: http.StatusConflict, Reason: pawl.ReasonUsed}
		}, "wrong answer"},
		{"refused for a wrong reason", func(e *evidence) { e.files[0].answers[1].reply.Reason = pawl.ReasonExpired }, "wrong answer"},
		{"let in when spent", func(e *evidence) {
			e.files[0].answers[1].reply = reply{Code: http.StatusAccepted, Status: "admitted"}
		}, "wrong answer"},
		{"created again without a contract", func(e *evidence) { e.stated, e.books.References[2].Requests = false, 2 }, "unstated contract"},
		{"created again under a contract", func(e *evidence) { e.books.References[2].Requests = 2 }, ""},
		{"an alarm", func(e *evidence) { e.alarms = []string{"a defect"} }, "alarm"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := caseFile()
			tc.harm(&e)
			if diff := cmp.Diff(tc.want, charges(audit(e))); diff != "" {
				t.Errorf("charges (-want +got):\n%s", diff)
			}
		})
	}
}

// credit adds a credit for the grant of one file.
func (e *evidence) credit(n int, id, amount string) {
	e.books.Credits = append(e.books.Credits, billing.Credit{
		ID: id, Account: e.files[n].account, Amount: amount, Currency: currency, Reference: e.files[n].ids[0].String(),
	})
}
