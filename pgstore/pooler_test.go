package pgstore

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/storetest"
)

// pinnedNames are the settings that Pawl sends at start-up, as a pooler lists
// what it drops.
func pinnedNames(v pgtest.Version) string {
	o, _ := (*Options)(nil).resolve()
	var names []string
	for name := range o.pins(server{version: v.Major * 10000}, forTheRest) {
		names = append(names, name)
	}
	return strings.Join(names, ",")
}

// TestCase_CA15_Pooler connects through PgBouncer in transaction mode: either
// everything passes, or the store is refused at the start with the reason [A11].
func TestCase_CA15_Pooler(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		server := pgtest.Shared(t, v)
		tb := mustTables(t, dsn)
		role := server.Role(t, "SUPERUSER")
		through := func(bouncer *pgtest.PgBouncer) *tables {
			far := *tb
			far.dsn = pgtest.Via(t, as(t, dsn, role), bouncer.Addr())
			return &far
		}
		refusing := through(pgtest.StartPgBouncer(t, server, nil))
		dropping := through(pgtest.StartPgBouncer(t, server, map[string]string{"ignore_startup_parameters": pinnedNames(v)}))

		_, err := refusing.openWith(t.Context(), Options{}, nil, nil)
		wantPoolerRefused(t, "a pooler that refuses start-up parameters", err, "pooler", "PinByRole")
		_, err = dropping.openWith(t.Context(), Options{}, nil, nil)
		wantPoolerRefused(t, "a pooler that drops start-up parameters", err, "pooler", "PinByRole")
		_, err = refusing.openWith(t.Context(), Options{Pins: PinByRole}, nil, nil)
		wantPoolerRefused(t, "a role without the settings", err)

		for _, sql := range safeRole(v) {
			server.Exec(t, "ALTER ROLE "+role+" "+sql)
		}
		late := through(pgtest.StartPgBouncer(t, server, nil)) // its sessions begin with the role's settings
		for _, mode := range []string{"", "cache_describe", "exec"} {
			far := *late
			if mode != "" {
				far.dsn = withSetting(late.dsn, "default_query_exec_mode", mode)
			}
			s := far.mustOpen(t, Options{Pins: PinByRole, AdmissionConns: 4, Conns: 4})
			t.Run("everything passes in mode "+mode, func(t *testing.T) { everyCall(t, s) })
			f, err := s.Check(t.Context())
			if err != nil || f.Err() != nil || !s.server.pooled {
				t.Errorf("check: %v, %v, pooled %t", err, f.Err(), s.server.pooled)
			}
		}
		var wait sync.WaitGroup
		opened := make([]*Store, 6)
		for i := range opened { // so that their transactions meet in each other's sessions
			wait.Go(func() {
				s, err := late.openWith(t.Context(), Options{Pins: PinByRole}, nil, nil)
				if err != nil {
					t.Errorf("opening at once: %v", err)
					return
				}
				opened[i] = s
			})
		}
		wait.Wait()
		if !t.Failed() {
			for range 5 {
				race(t, opened, someGrant(opened[0].realm), 24)
			}
		}
		for _, s := range opened {
			if s != nil && s.Close() != nil {
				t.Error("closing failed")
			}
		}
		_, err = late.openWith(t.Context(), Options{}, nil, nil)
		wantPoolerRefused(t, "pins where the role would do", err, "pooler")
		far := *late
		far.dsn = withSetting(late.dsn, "default_query_exec_mode", "simple_protocol")
		_, err = far.openWith(t.Context(), Options{Pins: PinByRole}, nil, nil)
		wantPoolerRefused(t, "the simple protocol", err, "exec")
		if err := Migrate(t.Context(), late.dsn, &Options{Schema: "elsewhere"}); err == nil || !strings.Contains(err.Error(), "pooler") {
			t.Errorf("migrating through a pooler: %v, want refused", err)
		}
	})
}

func wantPoolerRefused(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	wantErr(t, what, err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	for _, word := range words {
		if err != nil && !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v does not say %q", what, err, word)
		}
	}
}

// TestCase_CA15_LeakedSettings: another client of the pooler changes the session
// that an admission is then given. It admits nothing, says why, and the grant is
// unspent [A11].
func TestCase_CA15_LeakedSettings(t *testing.T) {
	v := pgtest.Newest(t)
	server := pgtest.Shared(t, v)
	tb := mustTables(t, server.Database(t))
	role := server.Role(t, "SUPERUSER")
	for _, sql := range safeRole(v) {
		server.Exec(t, "ALTER ROLE "+role+" "+sql)
	}
	bouncer := pgtest.StartPgBouncer(t, server, map[string]string{"default_pool_size": "1"})
	far := *tb
	far.dsn = pgtest.Via(t, as(t, tb.dsn, role), bouncer.Addr())
	s := far.mustOpen(t, Options{Pins: PinByRole})
	a := admissionOf(someGrant(s.realm))
	leak(t, far.dsn, "SET synchronous_commit = off")
	_, err := s.Admit(t.Context(), a)
	wantErr(t, "an admission on a session that another client changed", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	_, err = s.Revoke(t.Context(), pawl.Revocation{Key: a.Grant.Key, Proof: &a.Grant, By: "auditor"})
	wantErr(t, "a revocation on such a session", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	leak(t, far.dsn, "SET synchronous_commit = on")
	own := mustAdmit(t, s, a)
	leak(t, far.dsn, "SET client_min_messages = error")
	_, err = s.MaySubmit(t.Context(), own.Operation.ID, own.Owner.Token)
	wantErr(t, "a submission check on such a session", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	leak(t, far.dsn, "RESET client_min_messages")
	if p, err := s.MaySubmit(t.Context(), own.Operation.ID, own.Owner.Token); err != nil || !p.Granted {
		t.Errorf("with the setting back: granted %t, %v", p.Granted, err)
	}
}

// leak changes a pooled session for whoever gets it next.
func leak(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

// TestCase_CA15_Modes makes every call in the modes that prepare nothing by name,
// and runs cases of the suite that have statements of their own.
func TestCase_CA15_Modes(t *testing.T) {
	v := pgtest.Newest(t)
	dsn := pgtest.Shared(t, v).Database(t)
	for _, mode := range []string{"exec", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			far := withSetting(dsn, "default_query_exec_mode", mode)
			everyCall(t, mustTables(t, far).mustOpen(t, Options{}))
			r := &rig{t: t, version: v, dsn: far}
			h := storetest.Harness{Name: "pgstore in mode " + mode, Deploy: r.deploy}
			for _, id := range []string{"C-A1", "C-A8", "C-A23", "C-B1", "C-B12", "C-C9", "C-D4", "M1-owner", "P3-log", "P3-erase", "S1-list"} {
				report, err := storetest.Check(t.Context(), h, caseOf(t, id))
				if err != nil {
					t.Fatal(err)
				}
				for _, violation := range report.Violations {
					t.Error(violation)
				}
			}
		})
	}
}
