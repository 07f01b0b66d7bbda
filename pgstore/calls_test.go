package pgstore

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// everyCall makes every call of the store once, each with an answer that it must
// have.
func everyCall(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	a := admissionOf(someGrant(s.realm))
	own := mustAdmit(t, s, a)
	id := own.Operation.ID
	again, err := s.Admit(ctx, a)
	must("the admission again", err)
	if again.Fresh {
		t.Error("admitted twice")
	}
	_, err = s.Admit(ctx, admissionOf(a.Grant))
	wantErr(t, "the grant again", err, pawl.ErrRefused, pawl.ReasonUsed)
	issued := mustIssue(t, s)
	mustAdmit(t, s, admissionOf(issued.Grant))
	unused := mustIssue(t, s)
	n, err := s.RevokeIntent(ctx, pawl.IntentRevocation{Issuer: "issuer", Subject: "ana", Intent: someIntent(), By: "auditor"})
	must("revoking an intent", err)
	if n != 1 {
		t.Errorf("%d grants were revoked, want 1", n)
	}
	record, err := s.Grant(ctx, unused.Grant.Key)
	must("a grant", err)
	if record.State != pawl.GrantStateRevoked || record.RevokedBy != "auditor" {
		t.Errorf("the grant is %s by %q, want revoked by auditor", record.State, record.RevokedBy)
	}
	_, err = s.Grants(ctx, pawl.GrantFilter{State: pawl.GrantStateUsed})
	must("grants", err)
	other := someGrant(s.realm)
	state, err := s.Revoke(ctx, pawl.Revocation{Key: other.Key, Proof: &other, By: "auditor", Reason: "lost"})
	must("a revocation", err)
	if state != pawl.Revoked {
		t.Errorf("a revocation: %s", state)
	}
	r := someReservation()
	_, err = s.Reserve(ctx, r)
	must("a reservation", err)
	_, err = s.Reserve(ctx, r)
	must("the reservation again", err)
	_, err = s.MaySubmit(ctx, id, own.Owner.Token)
	must("a submission check", err)
	_, err = s.Renew(ctx, pawl.Renewal{ID: id, Token: own.Owner.Token, Lease: time.Minute})
	must("a renewal", err)
	_, err = s.Record(ctx, pawl.Statement{ID: id, Token: own.Owner.Token, Outcome: pawl.Unknown("timeout"), Pause: time.Microsecond})
	must("an outcome", err)
	taken, err := s.TakeOver(ctx, pawl.TakeOver{
		Leases: map[pawl.Kind]time.Duration{someIntent().Kind: time.Minute}, Tenants: []string{""}, Issuers: []string{"issuer"}, Limit: 10, By: "recovery",
	})
	must("a takeover", err)
	if len(taken) != 1 {
		t.Errorf("%d operations were taken over, want 1", len(taken))
	}
	_, err = s.Settle(ctx, pawl.Evidence{ID: id, Lock: own.Operation.Lock, Outcome: pawl.Succeeded("done\x00"), Token: own.Owner.Token})
	must("evidence", err)
	everyRead(t, s, id)
}

func everyRead(t *testing.T, s *Store, id pawl.OperationID) {
	t.Helper()
	ctx := t.Context()
	op, err := s.Get(ctx, id, pawl.AsCaller(pawl.Caller{Principal: "ana"}))
	if err != nil || op.Status != pawl.StatusSucceeded || string(op.Result) != "done\x00" {
		t.Errorf("an operation: %v %q, %v", op.Status, op.Result, err)
	}
	page, err := s.List(ctx, pawl.Filter{
		Statuses: []pawl.Status{pawl.StatusSucceeded, pawl.StatusAdmitted}, Kinds: []pawl.Kind{someIntent().Kind},
		Tenants: []string{""}, Issuers: []string{"issuer"}, Principal: pawl.Caller{Principal: "ana"}, Limit: 1,
	})
	if err != nil || len(page.Operations) != 1 || page.Next == "" {
		t.Errorf("a page: %d operations, next %q, %v", len(page.Operations), page.Next, err)
	}
	if tl, err := s.Log(ctx, id, pawl.AsOperator()); err != nil || len(tl.Entries) < 4 {
		t.Errorf("a log: %d entries, %v", len(tl.Entries), err)
	}
	if _, err := s.Purge(ctx, pawl.PurgeBatch{}); err != nil {
		t.Errorf("a purge: %v", err)
	}
	if e, err := s.Erase(ctx, pawl.Erasure{Caller: pawl.Caller{Principal: "ana"}, By: "officer", Reason: "asked"}); err != nil || e.Erased < 1 {
		t.Errorf("an erasure: %d, %v", e.Erased, err)
	}
	if _, err := s.Check(ctx); err != nil {
		t.Errorf("a check: %v", err)
	}
}
