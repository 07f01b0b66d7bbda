package pgstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// withRoles makes tables, the roles of RolesSQL under names of their own, and a
// login for each, by the role's short name.
func withRoles(t *testing.T, v pgtest.Version, dsn string) map[string]*tables {
	t.Helper()
	server := pgtest.Shared(t, v)
	tb := mustTables(t, dsn)
	tb.mustOpen(t, Options{}) // makes the store
	prefix := server.Role(t)
	text, err := RolesSQL(tb.schema)
	if err != nil {
		t.Fatal(err)
	}
	tb.mustExec(t, strings.ReplaceAll(text, "pawl_", prefix+"_"))
	logins := map[string]*tables{}
	for _, name := range []string{"reader", "admission", "recovery", "issue", "purge", "keeper"} {
		login := server.Role(t)
		tb.mustExec(t, "GRANT "+prefix+"_"+name+" TO "+login)
		logins[name] = &tables{dsn: as(t, dsn, login), schema: tb.schema, side: &side{}}
	}
	t.Cleanup(func() {
		for _, name := range []string{"admission", "recovery", "issue", "purge", "keeper", "reader"} {
			if err := tb.exec(context.Background(), "DROP OWNED BY "+prefix+"_"+name+"; DROP ROLE "+prefix+"_"+name); err != nil {
				t.Error(err)
			}
		}
	})
	return logins
}

// wantNoRight: a missing right is a fault of the deployment; asking again would
// not help.
func wantNoRight(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, pawl.ErrMisconfigured) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("%s: %v, want no right", what, err)
	}
}

// TestLeastRights: each role of docs/stores/postgres.md can do what it is for, and
// nothing of what the others are for [R4].
func TestLeastRights(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		logins := withRoles(t, v, dsn)
		ctx := t.Context()
		stores := map[string]*Store{}
		for name, login := range logins {
			stores[name] = login.mustOpen(t, Options{AdmissionConns: 1, Conns: 1})
		}
		a := admissionOf(someGrant(stores["admission"].realm))
		own := mustAdmit(t, stores["admission"], a)
		for name, s := range stores {
			admits := name == "admission"
			if _, err := s.Get(ctx, a.OperationID, pawl.AsOperator()); err != nil {
				t.Errorf("%s reads: %v", name, err)
			}
			_, err := s.Admit(ctx, admissionOf(someGrant(s.realm)))
			allowed(t, name+" admits", admits, err)
			_, err = s.Reserve(ctx, someReservation())
			allowed(t, name+" reserves", admits, err)
			_, err = s.Settle(ctx, pawl.Evidence{ID: a.OperationID, Lock: own.Operation.Lock, Trusted: true})
			allowed(t, name+" settles", name == "recovery", err)
			if name != "purge" && name != "keeper" { // these may lock what they find, and find nothing
				_, err = s.TakeOver(ctx, pawl.TakeOver{OtherKinds: time.Minute, Limit: 1, By: "recovery"})
				allowed(t, name+" takes over", name == "recovery", err)
			}
			_, err = s.Issue(ctx, pawl.Issuance{
				RequestID: name, Form: pawl.FormStored, Issuer: "issuer", Subject: "ana", Intent: someIntent(),
				Lifetime: time.Hour, GrantID: pawl.NewOperationID().String(),
			})
			allowed(t, name+" issues", name == "issue", err)
			_, err = s.Purge(ctx, pawl.PurgeBatch{})
			allowed(t, name+" purges", name == "purge", err)
			if name != "keeper" { // whose turn comes last: it ends the grants of before
				_, err = s.RaiseEpoch(ctx)
				allowed(t, name+" raises the epoch", false, err)
			}
			_, err = s.Erase(ctx, pawl.Erasure{Caller: pawl.Caller{Principal: "nobody"}, By: "officer"})
			allowed(t, name+" erases", name == "keeper", err)
		}
		g := someGrant("")
		_, err := stores["issue"].Revoke(ctx, pawl.Revocation{Key: g.Key, ProvenElsewhere: true, By: "auditor"})
		allowed(t, "issue revokes", true, err)
		if p, err := stores["recovery"].MaySubmit(ctx, a.OperationID, own.Owner.Token); err != nil || !p.Granted {
			t.Errorf("an owner in another process: granted %t, %v", p.Granted, err)
		}
		_, err = stores["keeper"].RaiseEpoch(ctx)
		allowed(t, "keeper raises the epoch", true, err)
		wantColumnsOutOfReach(t, logins["recovery"])
		wantNoDDL(t, logins["admission"])
	})
}

func allowed(t *testing.T, what string, want bool, err error) {
	t.Helper()
	if want && err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if !want {
		wantNoRight(t, what, err)
	}
}

// wantColumnsOutOfReach: who settles can never change what was admitted [B1].
func wantColumnsOutOfReach(t *testing.T, recovery *tables) {
	t.Helper()
	for _, column := range []string{"details", "fingerprint", "binding", "principal", "submit_by", "created_at", "kind"} {
		err := recovery.exec(t.Context(), "UPDATE @@.operations SET "+column+" = "+column)
		if err == nil {
			t.Errorf("the recovery role may change %s", column)
		}
	}
	conn, err := pgx.Connect(t.Context(), recovery.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), recovery.named("DELETE FROM @@.claims")); err == nil {
		t.Error("the recovery role may delete refusal records")
	}
}

// wantNoDDL: once migrated, nothing at run time needs the right to change a schema.
func wantNoDDL(t *testing.T, login *tables) {
	t.Helper()
	if err := login.exec(t.Context(), "CREATE TABLE @@.mine ()"); err == nil {
		t.Error("the admission role may make tables")
	}
	s, err := login.openWith(t.Context(), Options{Migrate: true}, nil, nil)
	if err != nil {
		t.Fatalf("opening with nothing to migrate: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
