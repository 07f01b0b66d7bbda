package pgstore

import (
	"context"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// sized reads how often a heavy test repeats itself: a few times, unless the
// variable says how many.
func sized(t *testing.T, variable string, few int) int {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		return few
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of times", variable, value)
	}
	return n
}

// lossyRig is an instance behind a proxy, and a safe one beside it.
type lossyRig struct {
	proxy     *pgtest.Proxy
	tables    *tables
	far, near *Store
}

func startLossy(t *testing.T, v pgtest.Version) *lossyRig {
	t.Helper()
	server := pgtest.Shared(t, v)
	r := &lossyRig{tables: mustTables(t, server.Database(t)), proxy: pgtest.StartProxy(t, server.Addr())}
	far := *r.tables
	far.dsn = withSetting(pgtest.Via(t, r.tables.dsn, r.proxy.Addr()), "application_name", "far")
	r.far, r.near = far.mustOpen(t, Options{AdmissionConns: 2, Conns: 2}), r.tables.mustOpen(t, Options{})
	return r
}

// quiet waits until nothing of the lossy instance runs on the server any more and
// nothing that was cut is still on its way, so that what is in the tables is what
// became of it.
func (r *lossyRig) quiet(t *testing.T) {
	t.Helper()
	for {
		one, two := r.far.admissions.Stat(), r.far.ordinary.Stat()
		alive := int(one.IdleConns() + two.IdleConns()) // what was cut is not idle, on this side
		waiting := one.AcquiredConns()+one.ConstructingConns()+two.AcquiredConns()+two.ConstructingConns() > 0
		there := r.tables.count(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'far'")
		if !waiting && there <= alive {
			return
		}
	}
}

// faults are what a network does to one statement.
func faults() map[string]pgtest.Fault {
	const moment = 2 * time.Millisecond
	return map[string]pgtest.Fault{
		"the reply of the commit is swallowed": {Action: pgtest.LoseAnswer},
		"the connection is cut before":         {Action: pgtest.CutBefore},
		"the connection is cut after":          {Action: pgtest.CutAfter},
		"the request is delayed":               {Action: pgtest.HoldRequest, Delay: moment},
		"the answer is delayed":                {Action: pgtest.HoldAnswer, Delay: moment},
	}
}

// TestLostAdmissions: whatever the network does to an admission's one statement,
// only a confirmed admission makes an owner, the retry of an unconfirmed one is
// told the truth, and no grant is admitted twice [A2, A6, A8].
func TestLostAdmissions(t *testing.T) {
	versions := pgtest.Versions(t)
	for _, v := range []pgtest.Version{versions[0], versions[len(versions)-1]} {
		for name, fault := range faults() {
			t.Run(v.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				r := startLossy(t, v)
				fault.Match = func(st pgtest.Statement) bool { return createsOperation(st.SQL) }
				for i := range sized(t, "PAWL_FAULTS", 15) {
					r.loseAdmission(t, fault, i%2 == 1)
				}
			})
		}
	}
}

func (r *lossyRig) loseAdmission(t *testing.T, f pgtest.Fault, hurried bool) {
	t.Helper()
	a := admissionOf(someGrant(r.near.realm))
	injected := r.proxy.Inject(f)
	ctx, cancel := t.Context(), func() {}
	if hurried && f.Delay > 0 { // the caller gives up before the network does
		ctx, cancel = context.WithTimeout(t.Context(), f.Delay/2)
	}
	got, err := r.far.Admit(ctx, a)
	cancel()
	injected.Withdraw()
	switch {
	case err == nil && f.Delay == 0:
		t.Fatal("the fault did nothing")
	case err != nil && (!errors.Is(err, pawl.ErrNotConfirmed) || got.Fresh || got.Owner.Token != ""):
		t.Fatalf("a lost admission: fresh %t, %v; want not confirmed and no owner", got.Fresh, err)
	}
	r.quiet(t)
	written := r.tables.count(t, "SELECT count(*) FROM @@.operations AS o JOIN @@.claims AS c ON c.operation_id = o.id WHERE o.id = $1", a.OperationID.String())
	again, errAgain := r.near.Admit(t.Context(), a)
	if errAgain != nil || again.Fresh != (written == 0) {
		t.Fatalf("the retry: fresh %t, %v, with %d written before it; want the truth", again.Fresh, errAgain, written)
	}
	if again.Fresh && got.Fresh {
		t.Fatal("one grant was admitted twice")
	}
	_, err = r.near.Admit(t.Context(), admissionOf(a.Grant))
	wantErr(t, "the grant under another id", err, pawl.ErrRefused, pawl.ReasonUsed)
}

// TestLostOutcomes is the same for an owner's outcome: what was lost can be told
// from the record, and repeating it does no harm [O1, M3].
func TestLostOutcomes(t *testing.T) {
	v := pgtest.Newest(t)
	for name, fault := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startLossy(t, v)
			fault.Match = pgtest.Commit()
			for range sized(t, "PAWL_FAULTS", 10) {
				own := mustAdmit(t, r.near, admissionOf(someGrant(r.near.realm)))
				st := pawl.Statement{ID: own.Operation.ID, Token: own.Owner.Token, Outcome: pawl.Succeeded("done")}
				injected := r.proxy.Inject(fault)
				_, err := r.far.Record(t.Context(), st)
				injected.Withdraw()
				if err == nil && fault.Delay == 0 {
					t.Fatal("the fault did nothing")
				}
				if err != nil && !errors.Is(err, pawl.ErrUnavailable) {
					t.Fatalf("a lost outcome: %v, want unavailable", err)
				}
				r.quiet(t)
				op, err := r.near.Get(t.Context(), st.ID, pawl.AsOperator())
				if err != nil {
					t.Fatal(err)
				}
				_, again := r.near.Record(t.Context(), st)
				if final := op.Status.Final(); final != errors.Is(again, pawl.ErrFenced) || !final && again != nil {
					t.Fatalf("with the record %v the same outcome again: %v", op.Status, again)
				}
				if n := r.tables.count(t, "SELECT count(*) FROM @@.entries WHERE operation_id = $1 AND disposition = 'applied'", st.ID.String()); n != 1 {
					t.Fatalf("the success stands %d times in the log, want once", n)
				}
			}
		})
	}
}

// TestSilentNetwork: a network that says nothing holds a call for as long as its
// caller wants and no longer, and Close is not held for ever [A3].
func TestSilentNetwork(t *testing.T) {
	r := startLossy(t, pgtest.Newest(t))
	a := admissionOf(someGrant(r.near.realm))
	injected := r.proxy.Inject(pgtest.Fault{
		Match: func(st pgtest.Statement) bool { return createsOperation(st.SQL) }, Action: pgtest.MuteAnswer,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.far.Admit(ctx, a)
		done <- err
	}()
	injected.Await(t)
	cancel()
	wantErr(t, "an admission that is not answered", <-done, pawl.ErrNotConfirmed, pawl.ReasonCancelled)
	if n := r.proxy.Cancels(); n != 0 {
		t.Errorf("the caller's leaving cancelled %d statements on the server, want none", n)
	}
	if got, err := r.near.Admit(t.Context(), a); err != nil || got.Fresh {
		t.Errorf("the retry: fresh %t, %v, want already admitted", got.Fresh, err)
	}
	r.proxy.CutAll()
}
