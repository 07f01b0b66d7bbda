package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// replicated is a primary with one standby that every commit waits for.
type replicated struct {
	version          pgtest.Version
	primary, standby *pgtest.Server
	tables           *tables
}

func startReplicated(t *testing.T, v pgtest.Version) *replicated {
	t.Helper()
	primary := pgtest.Start(t, v, nil)
	r := &replicated{version: v, primary: primary, tables: mustTables(t, primary.Superuser())}
	r.standby = pgtest.StartReplica(t, primary, &pgtest.ReplicaOptions{Name: "standby", Synchronous: true})
	return r
}

// options are those of a store that promises to survive the standby's promotion.
func (r *replicated) options() Options { return Options{Replicated: true, AdmissionConns: 2, Conns: 2} }

// hung waits until so many of the store's commits wait for the standby.
func (r *replicated) hung(t *testing.T, n int) {
	t.Helper()
	r.primary.Await(t, fmt.Sprintf(
		"SELECT count(*) = %d FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'pawl'", n))
}

// cancelWaits cancels every commit that waits for the standby.
func (r *replicated) cancelWaits(t *testing.T) {
	t.Helper()
	r.primary.Exec(t, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
}

// up brings the standby back.
func (r *replicated) up(t *testing.T) {
	t.Helper()
	r.standby.Restart(t)
	r.primary.AwaitStreaming(t, "standby", true)
}

// TestCancelledWait: with the standby down, a commit waits; an operator cancels
// the wait, and the server answers success with a warning. That is not confirmed,
// and nothing may run [A3, A6]. The same goes for every write that an owner acts
// on [O5], also where the role would have hidden the warning.
func TestCancelledWait(t *testing.T) {
	versions := pgtest.Versions(t)
	for _, v := range []pgtest.Version{versions[0], versions[len(versions)-1]} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			r := startReplicated(t, v)
			role := r.primary.Role(t, "SUPERUSER")
			r.primary.Exec(t, "ALTER ROLE "+role+" SET client_min_messages = error")
			for name, far := range map[string]*tables{
				"as it is":             r.tables,
				"a role that hides it": {dsn: as(t, r.tables.dsn, role), schema: r.tables.schema, side: &side{}},
			} {
				s, err := far.openWith(t.Context(), r.options(), nil, nil)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				r.cancelled(t, s)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func (r *replicated) cancelled(t *testing.T, s *Store) {
	t.Helper()
	a, res := admissionOf(someGrant(s.realm)), someReservation()
	owner := mustAdmit(t, s, admissionOf(someGrant(s.realm)))
	settled := mustAdmit(t, s, admissionOf(someGrant(s.realm)))
	r.standby.Stop(t)
	var wait sync.WaitGroup
	inFlight := func(f func()) { wait.Go(f) }
	inFlight(func() {
		got, err := s.Admit(t.Context(), a)
		wantErr(t, "an admission whose wait was cancelled", err, pawl.ErrNotConfirmed, pawl.ReasonNotReplicated)
		if got.Fresh || got.Owner.Token != "" {
			t.Error("a cancelled wait made an owner")
		}
	})
	inFlight(func() {
		_, err := s.Reserve(t.Context(), res)
		wantErr(t, "a reservation whose wait was cancelled", err, pawl.ErrNotConfirmed, pawl.ReasonNotReplicated)
	})
	inFlight(func() {
		p, err := s.MaySubmit(t.Context(), owner.Operation.ID, owner.Owner.Token)
		wantErr(t, "a submission check whose wait was cancelled", err, pawl.ErrUnavailable, pawl.ReasonNotReplicated)
		if p.Granted {
			t.Error("a cancelled wait granted a submission")
		}
	})
	inFlight(func() {
		_, err := s.Record(t.Context(), pawl.Statement{ID: settled.Operation.ID, Token: settled.Owner.Token, Outcome: pawl.Succeeded("done")})
		wantErr(t, "an outcome whose wait was cancelled", err, pawl.ErrUnavailable, pawl.ReasonNotReplicated)
	})
	r.hung(t, 4)
	r.cancelWaits(t)
	wait.Wait()
	r.up(t)
	// The retry of the same call says what became of it; nothing runs.
	if got, err := s.Admit(t.Context(), a); err != nil || got.Fresh {
		t.Errorf("the admission again: fresh %t, %v; want already admitted", got.Fresh, err)
	}
	if got, err := s.Reserve(t.Context(), res); err != nil || got.Fresh {
		t.Errorf("the reservation again: fresh %t, %v; want joined", got.Fresh, err)
	}
	if p, err := s.MaySubmit(t.Context(), owner.Operation.ID, owner.Owner.Token); err != nil || !p.Granted {
		t.Errorf("the check again: granted %t, %v", p.Granted, err)
	}
}

// TestWaitLosesItsServer: the connection or the server goes while a commit waits
// for the standby: not confirmed, and after the standby was promoted the grant is
// either known or free, never admitted twice with a confirmation [A3].
func TestWaitLosesItsServer(t *testing.T) {
	r := startReplicated(t, pgtest.Newest(t))
	s := r.tables.mustOpen(t, r.options())
	acknowledged := admissionOf(someGrant(s.realm))
	mustAdmit(t, s, acknowledged)
	r.standby.Stop(t)
	lost := admissionOf(someGrant(s.realm))
	var wait sync.WaitGroup
	wait.Go(func() {
		_, err := s.Admit(t.Context(), lost)
		wantErr(t, "an admission whose server went away", err, pawl.ErrNotConfirmed, "")
	})
	r.hung(t, 1)
	r.primary.Kill(t)
	wait.Wait()
	r.standby.Restart(t)
	r.standby.Promote(t)
	far := *r.tables
	far.dsn = r.standby.Superuser()
	r.standby.Reload(t, map[string]string{"synchronous_standby_names": ""})
	o := r.options()
	_, err := far.openWith(t.Context(), o, nil, nil)
	wantErr(t, "opening a promoted server without a standby", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	o.Replicated, o.AdoptPolicy = false, true
	promoted := far.mustOpen(t, o)
	if got, err := promoted.Admit(t.Context(), acknowledged); err != nil || got.Fresh {
		t.Errorf("what was acknowledged before the promotion: fresh %t, %v; want already admitted", got.Fresh, err)
	}
	if got, err := promoted.Admit(t.Context(), lost); err != nil || !got.Fresh {
		t.Errorf("what was never confirmed and did not arrive: fresh %t, %v; want admitted", got.Fresh, err)
	}
	r.primary.Restart(t) // or what is tidied up afterwards would find nothing
}

// TestCallerLeavesTheWait: a caller that stops waiting gets "not confirmed" and
// cancels nothing: the commit goes on waiting and arrives at the standby [A3].
func TestCallerLeavesTheWait(t *testing.T) {
	r := startReplicated(t, pgtest.Newest(t))
	s := r.tables.mustOpen(t, r.options())
	r.standby.Stop(t)
	a := admissionOf(someGrant(s.realm))
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		_, err := s.Admit(ctx, a)
		wantErr(t, "an admission whose caller left", err, pawl.ErrNotConfirmed, pawl.ReasonCancelled)
	})
	r.hung(t, 1)
	cancel()
	wait.Wait()
	r.hung(t, 1) // still waiting: nobody cancelled it
	if op, err := s.Get(t.Context(), a.OperationID, pawl.AsOperator()); !errors.Is(err, pawl.ErrNotFound) {
		t.Errorf("while its commit waits the operation is %v, %v; want not found", op.Status, err)
	}
	r.up(t)
	r.hung(t, 0)
	if got, err := s.Admit(t.Context(), a); err != nil || got.Fresh {
		t.Errorf("the admission again: fresh %t, %v; want already admitted", got.Fresh, err)
	}
}

// TestReplicatedPolicy: where failover is promised, a session that waits for no
// standby admits nothing, and what is promised is agreed on [A3, A11].
func TestReplicatedPolicy(t *testing.T) {
	r := startReplicated(t, pgtest.Newest(t))
	s := r.tables.mustOpen(t, r.options())
	_, err := r.tables.openWith(t.Context(), Options{}, nil, nil)
	wantErr(t, "opening without the promise", err, pawl.ErrMisconfigured, pawl.ReasonDisagreement)
	for _, commit := range []string{"local", "remote_write", "off"} {
		onEach(t, s.admissions, "SET synchronous_commit = "+commit)
		_, err := s.Admit(t.Context(), admissionOf(someGrant(s.realm)))
		wantErr(t, "an admission with synchronous_commit "+commit, err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
		onEach(t, s.ordinary, "SET synchronous_commit = "+commit)
		_, err = s.Revoke(t.Context(), pawl.Revocation{Key: someGrant("").Key, ProvenElsewhere: true, By: "auditor"})
		wantErr(t, "a revocation with synchronous_commit "+commit, err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	}
	for _, pool := range []string{"on", "remote_apply"} {
		onEach(t, s.admissions, "SET synchronous_commit = "+pool)
		mustAdmit(t, s, admissionOf(someGrant(s.realm)))
	}
	r.primary.Reload(t, map[string]string{"synchronous_standby_names": ""})
	for {
		// A session reads the new setting with its next statement, or the one after.
		_, err := s.Admit(t.Context(), admissionOf(someGrant(s.realm)))
		if err != nil {
			wantErr(t, "an admission with nobody to wait for", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
			break
		}
	}
	f, err := s.Check(t.Context())
	if err != nil || f.Err() == nil {
		t.Errorf("the check finds nothing wrong: %v", err)
	}
	r.primary.Reload(t, map[string]string{"synchronous_standby_names": "standby"})
}

// TestUnpromisedStandby: where failover is not promised, a standby that is waited
// for all the same makes no difference to what an acknowledgement means [A3].
func TestUnpromisedStandby(t *testing.T) {
	r := startReplicated(t, pgtest.Newest(t))
	s := r.tables.mustOpen(t, Options{})
	mustAdmit(t, s, admissionOf(someGrant(s.realm)))
	r.standby.Stop(t)
	var wait sync.WaitGroup
	wait.Go(func() {
		_, err := s.Admit(t.Context(), admissionOf(someGrant(s.realm)))
		wantErr(t, "a cancelled wait", err, pawl.ErrNotConfirmed, pawl.ReasonNotReplicated)
	})
	r.hung(t, 1)
	r.cancelWaits(t)
	wait.Wait()
	r.up(t)
}
