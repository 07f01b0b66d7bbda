//go:build failpoints

package sqlitestore_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/failpoint"
)

// TestKilledInAdmission kills a process between every two steps of an admission.
// Before the commit nothing is there and the grant is unspent; after it all is,
// and a retry finds the operation [A2, A3, A6].
func TestKilledInAdmission(t *testing.T) {
	for _, point := range failpoint.Admission() {
		t.Run(string(point), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pawl.db")
			s, issued, id := open(t, path, nil), justNow(), pawl.NewOperationID()
			p := begin(t, task{Do: "admit-and-record", Path: path, Issued: issued, Grant: "g", ID: id.String()},
				failpoint.Variable+"="+string(point)+"=kill@1")
			p.dies()
			committed := point == failpoint.CommitAfter
			rows := 0
			if committed {
				rows = 1
			}
			inspect(t, path, rows)
			got, err := s.Admit(t.Context(), presented(s, "g", id, issued))
			if err != nil || got.Fresh == committed || got.Operation.ID != id {
				t.Errorf("the same operation: fresh %v, %v; committed %v", got.Fresh, err, committed)
			}
			if _, err := s.Admit(t.Context(), presented(s, "g", pawl.NewOperationID(), issued)); !errors.Is(err, pawl.ErrRefused) {
				t.Errorf("another operation: %v, want refused", err)
			}
			inspect(t, path, 1)
		})
	}
}

// TestKilledInSettlement kills a process between every two steps of an owner's
// record. The record and its log change together or not at all, and what the
// owner knew is taken to the evidence door afterwards [M1, M3, M4].
func TestKilledInSettlement(t *testing.T) {
	for _, point := range failpoint.Settlement() {
		t.Run(string(point), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pawl.db")
			s, issued, id := open(t, path, nil), justNow(), pawl.NewOperationID()
			passage := "1"
			if point == failpoint.CommitBefore || point == failpoint.CommitAfter {
				passage = "2" // the first commit is the admission's
			}
			p := begin(t, task{Do: "admit-and-record", Path: path, Issued: issued, Grant: "g", ID: id.String()},
				failpoint.Variable+"="+string(point)+"=kill@"+passage)
			admitted := p.hears()
			p.dies()
			want, entries := pawl.StatusAdmitted, 0
			if point == failpoint.CommitAfter {
				want, entries = pawl.StatusSucceeded, 1
			}
			tl, err := s.Log(t.Context(), id, pawl.AsOperator())
			if err != nil || tl.Operation.Status != want || len(tl.Entries) != entries+1 {
				t.Fatalf("%v with %d entries, %v; want %v with %d", tl.Operation.Status, len(tl.Entries), err, want, entries+1)
			}
			a := presented(s, "g", id, issued)
			settled, err := s.Settle(t.Context(), pawl.Evidence{
				ID: id, Lock: a.Lock(), Outcome: pawl.Succeeded("done"), Token: pawl.OwnerToken(admitted.Token),
			})
			if err != nil || settled.Operation.Status != pawl.StatusSucceeded || string(settled.Operation.Result) != "done" {
				t.Errorf("evidence: %v, %v", settled.Operation.Status, err)
			}
		})
	}
}

// TestInjectedErrors: an engine that fails at any point confirms nothing, and
// the store goes on afterwards [A6].
func TestInjectedErrors(t *testing.T) {
	for _, point := range failpoint.Admission() {
		t.Run(string(point), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pawl.db")
			s, issued, id := open(t, path, nil), justNow(), pawl.NewOperationID()
			p := begin(t, task{Do: "admit", Path: path, Issued: issued, Grant: "g", ID: id.String()},
				failpoint.Variable+"="+string(point)+"=error@1")
			if _, confirmed := p.heard(); confirmed {
				t.Error("the admission was confirmed")
			}
			if err := p.cmd.Wait(); err == nil {
				t.Error("the process ended well")
			}
			got, err := s.Admit(t.Context(), presented(s, "g", id, issued))
			if committed := point == failpoint.CommitAfter; err != nil || got.Fresh == committed {
				t.Errorf("the same operation: fresh %v, %v", got.Fresh, err)
			}
			inspect(t, path, 1)
		})
	}
}
