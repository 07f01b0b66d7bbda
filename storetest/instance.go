package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl"
)

func instanceCases() []Case {
	return []Case{
		{ID: "A1-facts", Title: "scope, id and realm are said, once for all instances", Clauses: clauses("A1"), run: factsAgree},
		{ID: "A11-disagree", Title: "an instance configured otherwise refuses to start", Clauses: clauses("A11"), Needs: []Power{PowerConfigure}, run: disagreeing},
		{ID: "A6-closed", Title: "a closed instance admits nothing", Clauses: clauses("A6"), run: closedInstance},
	}
}

// factsAgree: a store that does not say what it promises may not be used [A1].
func factsAgree(t *Trial) {
	f := t.facts
	if err := f.Err(); err != nil {
		t.fail("A1", "the store is unsafe: %v", err)
	}
	if f.StoreID == "" || f.Realm == "" || f.Engine == "" || f.Clock == "" || f.Now.IsZero() {
		t.fail("A1", "the facts lack id, realm, engine, clock or time: %+v", f)
	}
	if len(f.Survives) == 0 && len(f.Not) == 0 {
		t.fail("A1", "the store says neither what an admission survives nor what it does not")
	}
	if _, err := f.Policy.Agree(t.timings.Policy()); err != nil {
		t.fail("A11", "the policy in force is not the one opened with: %v", err)
	}
	for range 2 {
		other, err := t.open().Check(t.ctx)
		if err != nil || other.StoreID != f.StoreID || other.Realm != f.Realm || other.Scope != f.Scope {
			t.fail("A1", "another instance says %s of %s, %v (%v); want %s of %s, %v",
				other.StoreID, other.Realm, other.Scope, err, f.StoreID, f.Realm, f.Scope)
		}
		t.reopen()
	}
}

// disagreeing: what must agree stands in the store [A11].
func disagreeing(t *Trial) {
	for what, change := range map[string]func(*pawl.Timings){
		"another margin":        func(ts *pawl.Timings) { ts.PurgeMargin += time.Second },
		"another bound":         func(ts *pawl.Timings) { ts.AdmissionBound += time.Second },
		"a longer lifetime":     func(ts *pawl.Timings) { ts.MaxGrantLifetime += time.Hour },
		"another skew":          func(ts *pawl.Timings) { ts.IssueSkew += time.Second },
		"an edited leeway":      func(ts *pawl.Timings) { ts.Leeways[""] += time.Second },
		"another key lifetime":  func(ts *pawl.Timings) { ts.KeyLifetime -= time.Minute },
		"timings that break T1": func(ts *pawl.Timings) { ts.PurgeMargin = 0 },
	} {
		ts := t.timings.Clone()
		change(&ts)
		s, err := t.d.OpenConfigured(t.ctx, ts)
		if s != nil && err == nil {
			t.opened = append(t.opened, s)
		}
		if !errors.Is(err, pawl.ErrMisconfigured) {
			t.fail("A11", "opening with %s: %v, want misconfigured", what, err)
		}
	}
	same, err := t.d.OpenConfigured(t.ctx, t.timings.Clone())
	if err != nil {
		t.stop("A11", "opening with the same timings: %v", err)
	}
	t.opened = append(t.opened, same)
	if got, err := t.admit(same, t.admission(t.grant())); err != nil || !got.Fresh {
		t.fail("A11", "an instance configured alike: fresh %v, error %v, want admitted", got.Fresh, err)
	}
}

// closedInstance: not confirmed, and other instances go on [A6].
func closedInstance(t *Trial) {
	s := t.open()
	if err := s.Close(); err != nil {
		t.fail("A6", "closing: %v", err)
	}
	a := t.admission(t.grant())
	got, err := s.Admit(t.ctx, a)
	t.checkAdmitted(got, err, a.NewOperation(got.Operation.CreatedAt), a.Lease)
	t.wantClass("A6", "an admission by a closed instance", err, pawl.ErrNotConfirmed, pawl.ReasonClosed)
	r := t.reservation()
	_, err = s.Reserve(t.ctx, r)
	t.wantClass("A6", "a reservation by a closed instance", err, pawl.ErrNotConfirmed, pawl.ReasonClosed)
	calls := map[string]func(context.Context) error{
		"a status": func(ctx context.Context) error { _, err := s.Get(ctx, a.OperationID, pawl.AsOperator()); return err },
		"a list":   func(ctx context.Context) error { _, err := s.List(ctx, pawl.Filter{}); return err },
		"an issue": func(ctx context.Context) error { _, err := s.Issue(ctx, t.issuance(pawl.FormStored)); return err },
		"a check":  func(ctx context.Context) error { _, err := s.Check(ctx); return err },
		"a purge":  func(ctx context.Context) error { _, err := s.Purge(ctx, pawl.PurgeBatch{}); return err },
		"a takeover": func(ctx context.Context) error {
			_, err := s.TakeOver(ctx, pawl.TakeOver{OtherKinds: lease, Limit: 1, By: "recovery"})
			return err
		},
	}
	for what, call := range calls {
		t.wantClass("A6", what+" by a closed instance", call(t.ctx), pawl.ErrUnavailable, pawl.ReasonClosed)
	}
	t.absent("A6", a.OperationID)
	t.mustAdmit(t.a, a)
}
