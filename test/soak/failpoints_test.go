//go:build unix && failpoints

package soak

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
	"github.com/pawl-go/pawl/internal/failpoint"
)

// death is where inside the store a worker dies. passage counts the times that its own work comes there.
type death struct {
	at      failpoint.Name
	passage int
	call    string // of the store
	// void says that nothing of the admission was committed.
	void bool
}

// deaths are the points that a store has in an admission, and those in both changes to the record that an owner makes.
// Each of an admission, a check and a record is one commit.
func deaths(admission, change []failpoint.Name) (all []death) {
	for _, at := range admission {
		all = append(all, death{at, 1, "admission", at != failpoint.CommitAfter})
	}
	for i, call := range []string{"check", "record"} {
		for _, at := range change {
			passage := i + 1
			if at == failpoint.CommitBefore || at == failpoint.CommitAfter {
				passage++ // the first commit is the admission's
			}
			all = append(all, death{at, passage, call, false})
		}
	}
	return all
}

// TestCase_CD6_KilledInsideTheStore: one worker after the other dies at a point inside the store, in an admission, a
// submission check or a record; another settles all of it, with one effect each [A2, A3, O5, M1, E5].
func TestCase_CD6_KilledInsideTheStore(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		killInside(t, onSQLite(t), deaths(failpoint.Admission(), failpoint.Settlement()))
	})
	t.Run("postgres", func(t *testing.T) { // its steps are statements of the server's, within which nothing here can die
		t.Parallel()
		killInside(t, onPostgres(t), deaths(
			[]failpoint.Name{failpoint.AdmitBegun, failpoint.CommitAfter},
			[]failpoint.Name{failpoint.SettleBegun, failpoint.SettleDecided, failpoint.CommitAfter},
		))
	})
}

func killInside(t *testing.T, p place, all []death) {
	w := newWorld(t, p, terms{Stated: true}, billing.Settings{})
	type casualty struct {
		death
		grant
		id pawl.OperationID
	}
	var fallen []casualty
	for i, d := range all {
		x := casualty{d, w.mustIssue(t, fmt.Sprint("acc_", i)), pawl.NewOperationID()}
		a := w.assign(fmt.Sprint("victim ", i))
		a.Idle = true
		setting := fmt.Sprintf("%s=%s=kill@%d", failpoint.Variable, d.at, d.passage)
		victim := w.mustStart(t, a, setting)
		if got, err := w.ask(t.Context(), victim.url, x.order(x.id)); err == nil {
			t.Fatalf("%s in the %s: answered %+v", d.at, d.call, got)
		}
		<-victim.ended
		if !signalled(victim.err) {
			t.Fatalf("%s in the %s: the worker was not killed but ended with %v: %s", d.at, d.call, victim.err, &victim.errs)
		}
		if op := w.get(t.Context(), x.id); op.ID.IsZero() != d.void {
			t.Errorf("%s in the %s: recorded as %v, want nothing: %t", d.at, d.call, op.Status, d.void)
		}
		fallen = append(fallen, x)
	}
	b := w.mustStart(t, w.assign("B"))
	for _, x := range fallen {
		// A retry admits what was not admitted, and reports what was [A6, A8].
		if got, err := w.ask(t.Context(), b.url, x.order(x.id)); err != nil || got.Operation != x.id.String() {
			t.Errorf("%s in the %s, the same operation: %+v, %v", x.at, x.call, got, err)
		}
		op := w.expectOne(t, x.id)
		if n := w.requests(x.id); n != 1 {
			t.Errorf("%s in the %s: %d create calls", x.at, x.call, n)
		}
		recorded := x.call == "record" && x.at == failpoint.CommitAfter
		if (x.void || recorded) != (op.Takeovers == 0) {
			t.Errorf("%s in the %s: taken over %d times", x.at, x.call, op.Takeovers)
		}
		got, err := w.ask(t.Context(), b.url, x.order(pawl.NewOperationID()))
		if err != nil || got.Reason != pawl.ReasonUsed {
			t.Errorf("%s in the %s, another operation: %+v, %v, want refused as used", x.at, x.call, got, err)
		}
	}
}
