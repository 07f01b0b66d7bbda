package sqlitestore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sqlitestore"
)

// TestCase_CA1_TwoProcesses: 200 grants, 50 racers at each, over two processes
// of two handles each on one file [A1, A2, A11].
func TestCase_CA1_TwoProcesses(t *testing.T) {
	const grants, racers = 200, 50
	path := filepath.Join(t.TempDir(), "pawl.db")
	open(t, path, nil)
	do := task{Do: "race", Path: path, Issued: justNow(), Grants: grants, Racers: racers / 2}
	both := []*process{begin(t, do), begin(t, do)}
	for _, p := range both {
		p.hears()
	}
	for _, p := range both {
		p.start()
	}
	var admitted, failed []string
	refused := 0
	for i, p := range both {
		r := p.hears()
		p.ends()
		t.Logf("process %d: %d admitted, %d refused", i, len(r.Admitted), r.Refused)
		admitted, failed, refused = append(admitted, r.Admitted...), append(failed, r.Errors...), refused+r.Refused
	}
	slices.Sort(admitted)
	if n := len(slices.Compact(slices.Clone(admitted))); len(admitted) != grants || n != grants {
		t.Errorf("%d admissions of %d grants, want %d of each", len(admitted), n, grants)
	}
	if want := grants*racers - grants; refused != want || len(failed) != 0 {
		t.Errorf("%d refused, want %d; errors: %v", refused, want, failed)
	}
	inspect(t, path, grants)
}

// inspect reads the file itself: every claim of an operation has its operation,
// every operation of a grant its claim [A2]. want counts them; -1 does not.
func inspect(t *testing.T, path string, want int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	counts := map[string]int{
		"SELECT count(*) FROM pawl_claims":     want,
		"SELECT count(*) FROM pawl_operations": want,
		`SELECT count(*) FROM pawl_claims c LEFT JOIN pawl_operations o USING (operation_id)
		 WHERE o.grant_id IS NOT c.grant_id OR o.issuer IS NOT c.issuer OR o.namespace IS NOT c.namespace`: 0,
		`SELECT count(*) FROM pawl_operations o LEFT JOIN pawl_claims c USING (operation_id)
		 WHERE o.grant_id IS NOT NULL AND c.operation_id IS NULL`: 0,
	}
	for query, want := range counts {
		var got int
		if err := db.QueryRowContext(t.Context(), query).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want >= 0 && got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	var integrity string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&integrity); err != nil || integrity != "ok" {
		t.Errorf("integrity: %q %v", integrity, err)
	}
}

// TestCase_CA6_KilledAfterAdmission: the instance that admitted is killed; the
// grant is refused by an instance that was open all the time and by a new one.
func TestCase_CA6_KilledAfterAdmission(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	b, issued, id := open(t, path, nil), justNow(), pawl.NewOperationID()
	a := begin(t, task{Do: "admit", Path: path, Issued: issued, Grant: "g", ID: id.String()})
	if got := a.hears(); !got.Fresh {
		t.Fatalf("not admitted: %+v", got)
	}
	a.kill()
	for name, s := range map[string]*sqlitestore.Store{"B": b, "a new A": open(t, path, nil)} {
		_, err := s.Admit(t.Context(), presented(s, "g", pawl.NewOperationID(), issued))
		if !errors.Is(err, pawl.ErrRefused) || pawl.ReasonOf(err) != pawl.ReasonUsed {
			t.Errorf("%s: %v, want refused as used", name, err)
		}
		if op, err := s.Get(t.Context(), id, pawl.AsOperator()); err != nil || op.Status != pawl.StatusAdmitted {
			t.Errorf("%s: the operation is %v, %v", name, op.Status, err)
		}
	}
	inspect(t, path, 1)
}

// TestCase_CA8_KilledBetweenCommitAndReply: an instance is killed between commit
// and reply, again and again. The same operation id then finds the operation,
// another one is refused, and never is there a second admission [A3, A6, A8].
// PAWL_KILLS sets how often; 200 is the full form.
func TestCase_CA8_KilledBetweenCommitAndReply(t *testing.T) {
	kills := 30
	if n, err := strconv.Atoi(os.Getenv("PAWL_KILLS")); err == nil {
		kills = n
	}
	path := filepath.Join(t.TempDir(), "pawl.db")
	s, issued := open(t, path, nil), justNow()
	for n := range kills {
		grant, id := fmt.Sprint("g-", n), pawl.NewOperationID()
		begin(t, task{Do: "admit-and-die", Path: path, Issued: issued, Grant: grant, ID: id.String()}).dies()
		got, err := s.Admit(t.Context(), presented(s, grant, id, issued))
		if err != nil || got.Fresh || got.Operation.ID != id || got.Operation.Status != pawl.StatusAdmitted {
			t.Fatalf("kill %d, the same operation: fresh %v, operation %v, %v", n, got.Fresh, got.Operation.ID, err)
		}
		_, err = s.Admit(t.Context(), presented(s, grant, pawl.NewOperationID(), issued))
		if !errors.Is(err, pawl.ErrRefused) || pawl.ReasonOf(err) != pawl.ReasonUsed {
			t.Fatalf("kill %d, another operation: %v, want refused as used", n, err)
		}
	}
	inspect(t, path, kills)
}

// TestKilledAtAnyMoment: a process that admits in groups is killed at a moment
// of its own; whatever it had confirmed is there, and nothing is there by half
// [A2, A3].
func TestKilledAtAnyMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s, issued := open(t, path, nil), justNow()
	confirmed := 0
	for round := range 8 {
		p := begin(t, task{
			Do: "admit-many", Path: path, Issued: issued, Grant: fmt.Sprint("r", round), Grants: 100_000, Racers: 8,
		})
		for range 1 + rand.IntN(100) {
			got := p.hears()
			if !got.Fresh {
				t.Fatalf("round %d: %+v", round, got)
			}
			id, err := pawl.ParseOperationID(got.ID)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(t.Context(), id, pawl.AsOperator()); err != nil {
				t.Fatalf("round %d: a confirmed operation: %v", round, err)
			}
			confirmed++
		}
		p.kill()
		inspect(t, path, -1)
	}
	t.Logf("%d confirmed admissions", confirmed)
}

// TestTenProcessesOpenAtOnce makes one store of it, whoever comes first [A1].
func TestTenProcessesOpenAtOnce(t *testing.T) {
	for round := range 3 {
		path := filepath.Join(t.TempDir(), fmt.Sprint("pawl-", round, ".db"))
		var all []*process
		for range 10 {
			all = append(all, begin(t, task{Do: "open", Path: path}))
		}
		for _, p := range all {
			p.hears()
		}
		for _, p := range all {
			p.start()
		}
		var stores []string
		for _, p := range all {
			stores = append(stores, p.hears().StoreID)
			p.ends()
		}
		if slices.Sort(stores); len(slices.Compact(stores)) != 1 {
			t.Errorf("ten processes made several stores: %v", stores)
		}
		inspect(t, path, 0)
	}
}

// TestHandlesComeAndGo: a process that opens and closes further handles keeps
// the locks of the one it has. Without them another process that comes and goes
// takes itself for the last, removes the log, and what is admitted afterwards is
// in a file that nobody else sees [A1].
func TestHandlesComeAndGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s, issued := open(t, path, nil), justNow()
	if _, err := s.Admit(t.Context(), presented(s, "first", pawl.NewOperationID(), issued)); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path, nil).Close(); err != nil {
		t.Fatal(err)
	}
	visitor := begin(t, task{Do: "open", Path: path})
	visitor.hears()
	visitor.start()
	visitor.hears()
	visitor.ends()
	if _, err := s.Admit(t.Context(), presented(s, "g", pawl.NewOperationID(), issued)); err != nil {
		t.Fatal(err)
	}
	again := begin(t, task{Do: "race", Path: path, Issued: issued, Grants: 1, Racers: 2})
	again.hears()
	again.start()
	again.hears()
	again.ends()
	inspect(t, path, 3) // "first", "g" and the race's own
	other := begin(t, task{Do: "admit", Path: path, Issued: issued, Grant: "g", ID: pawl.NewOperationID().String()})
	if got, admitted := other.heard(); admitted {
		t.Errorf("admitted again in another process: %+v", got)
	}
	if err := other.cmd.Wait(); err == nil {
		t.Error("the other process was not refused")
	}
}
