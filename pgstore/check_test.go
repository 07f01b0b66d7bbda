package pgstore

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// TestGoodDeployment: the report says what is promised, on which clock, and what
// an acknowledged admission survives and does not [A1, A3].
func TestGoodDeployment(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		s := mustTables(t, dsn).mustOpen(t, Options{Realm: "billing-eu"})
		f, err := s.Check(t.Context())
		if err != nil || f.Err() != nil {
			t.Fatalf("check: %v, %v", err, f.Err())
		}
		if !strings.HasPrefix(f.Engine, "postgres "+v.String()+".") || f.Scope != pawl.ScopeCluster || f.PurgeHeld != "" {
			t.Errorf("engine %q, scope %v, held %q", f.Engine, f.Scope, f.PurgeHeld)
		}
		promise := f.Promise()
		for _, words := range []string{"billing-eu", "cluster", "primary's clock", "restart", "promotion of a standby"} {
			if !strings.Contains(promise, words) {
				t.Errorf("the promise does not speak of %q: %s", words, promise)
			}
		}
		for _, name := range []string{
			"server", "fsync", "full_page_writes", "encoding", "connection", "transaction_isolation", "synchronous_commit",
			"synchronous_standby_names", "client_min_messages", s.boundName(), "time zone", "tables", "logged tables",
			"unique rule claims_key", "unique rule operations_pkey", "unique rule operations_grant",
			"longest wait for a standby", "largest step of the clock",
		} {
			if !slices.ContainsFunc(f.Checks, func(c pawl.Fact) bool { return c.Name == name && c.OK && c.Value != "" }) {
				t.Errorf("nothing is said of %s", name)
			}
		}
	})
}

// TestBadDeployments: each refuses to start, naming the fact and what to change
// [A11].
func TestBadDeployments(t *testing.T) {
	v := pgtest.Newest(t)
	server := pgtest.Shared(t, v)
	for name, tc := range map[string]struct {
		sql, fact string
	}{
		"the claims' key is gone":       {"ALTER TABLE @@.claims DROP CONSTRAINT claims_key", "claims_key"},
		"the claims' key is another":    {"ALTER TABLE @@.claims DROP CONSTRAINT claims_key, ADD CONSTRAINT claims_key UNIQUE (grant_id)", "claims_key"},
		"the operations' key is gone":   {"ALTER TABLE @@.operations DROP CONSTRAINT operations_pkey", "operations_pkey"},
		"the second barrier is gone":    {"DROP INDEX @@.operations_grant", "operations_grant"},
		"the second barrier is another": {"DROP INDEX @@.operations_grant; CREATE INDEX operations_grant ON @@.operations (issuer)", "operations_grant"},
		"claims do not survive a crash": {"ALTER TABLE @@.claims SET UNLOGGED", "logged tables"},
	} {
		tb := mustTables(t, server.Database(t))
		open := tb.mustOpen(t, Options{})
		tb.mustExec(t, tc.sql)
		f, err := open.Check(t.Context())
		if err != nil || !errors.Is(f.Err(), pawl.ErrMisconfigured) || !strings.Contains(f.Err().Error(), tc.fact) {
			t.Errorf("%s: check: %v, %v", name, err, f.Err())
		}
		_, err = tb.openWith(t.Context(), Options{}, nil, nil)
		wantErr(t, name, err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	}
}

// TestUnsafeServer: a server that may lose what it acknowledged is refused [A3].
func TestUnsafeServer(t *testing.T) {
	for setting, value := range map[string]string{"fsync": "off", "full_page_writes": "off"} {
		server := pgtest.Start(t, pgtest.Newest(t), &pgtest.Options{Config: map[string]string{setting: value}})
		tb := mustTables(t, server.Superuser())
		_, err := tb.openWith(t.Context(), Options{}, nil, nil)
		wantErr(t, setting+" "+value, err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
		if err != nil && !strings.Contains(err.Error(), setting) {
			t.Errorf("%s %s: %v does not say so", setting, value, err)
		}
	}
}

// TestForeignEncoding: ids are UTF-8, byte by byte [A5].
func TestForeignEncoding(t *testing.T) {
	server := pgtest.Shared(t, pgtest.Newest(t))
	tb, err := newTables(t.Context(), server.Database(t, "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tb.openWith(t.Context(), Options{}, nil, nil)
	wantErr(t, "a database in SQL_ASCII", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
}

// TestRoleDefaultsAreShown: what the pins are over is in the report.
func TestRoleDefaultsAreShown(t *testing.T) {
	server := pgtest.Shared(t, pgtest.Newest(t))
	tb := mustTables(t, server.Database(t))
	role := server.Role(t, "SUPERUSER")
	server.Exec(t, "ALTER ROLE "+role+" SET default_transaction_isolation = serializable")
	far := *tb
	far.dsn = as(t, tb.dsn, role)
	f, err := far.mustOpen(t, Options{}).Check(t.Context())
	if err != nil || !slices.ContainsFunc(f.Checks, func(c pawl.Fact) bool {
		return c.OK && c.Value == "default_transaction_isolation=serializable"
	}) {
		t.Errorf("checks are %+v, %v", f.Checks, err)
	}
}

// TestInspectChangesNothing: a deployment is looked at as it stands, before there
// is a store in it and after its policy was another [A11].
func TestInspectChangesNothing(t *testing.T) {
	server := pgtest.Shared(t, pgtest.Newest(t))
	dsn := server.Database(t)
	if _, err := Inspect(t.Context(), dsn, nil); !errors.Is(err, pawl.ErrMisconfigured) || !strings.Contains(err.Error(), "pawl migrate") {
		t.Errorf("a database without tables: %v, want ErrMisconfigured and what to do", err)
	}
	tb := mustTables(t, dsn)
	tb.mustOpen(t, Options{})
	other := pawl.DefaultTimings()
	other.PurgeMargin *= 2
	o := Options{Schema: tb.schema, Timings: &other, StoreID: pawl.NewOperationID().String()}
	for range 2 {
		f, err := Inspect(t.Context(), tb.dsn, &o)
		if err != nil {
			t.Fatal(err)
		}
		var unsafe []string
		for _, u := range f.Unsafe() {
			unsafe = append(unsafe, u.Value)
		}
		if len(unsafe) != 2 || !strings.Contains(unsafe[0], "is pinned") || !strings.Contains(unsafe[1], "PurgeMargin is 30s in the store and 1m0s here") {
			t.Errorf("unsafe are %q, want the pinned id and the margin", unsafe)
		}
		if f.Policy.PurgeMargin != pawl.DefaultTimings().PurgeMargin {
			t.Errorf("the store's margin is %v", f.Policy.PurgeMargin)
		}
	}
	if f, err := Inspect(t.Context(), tb.dsn, &Options{Schema: tb.schema}); err != nil || f.Err() != nil {
		t.Errorf("the good deployment: %v, %v", err, f.Err())
	}
}

// TestOthersSettingsAreNotShown: a database's defaults may hold anything [S2].
func TestOthersSettingsAreNotShown(t *testing.T) {
	server := pgtest.Shared(t, pgtest.Newest(t))
	tb := mustTables(t, server.Database(t))
	tb.mustExec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET app.secret = %L', current_database(), 'of-another-program'); END $$`)
	f, err := tb.mustOpen(t, Options{}).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Checks {
		if strings.Contains(c.Value, "of-another-program") {
			t.Errorf("%s: %s", c.Name, c.Value)
		}
	}
}

// TestAdoptedBehindItsBack: an instance that runs while another adopts a policy is
// reported as one that disagrees [A11], and deletes no reservation before the
// key's new lifetime is over [B3]. Nothing is adopted under which the adopting
// instance could not start.
func TestAdoptedBehindItsBack(t *testing.T) {
	tb := mustTables(t, pgtest.Shared(t, pgtest.Newest(t)).Database(t))
	s := tb.mustOpen(t, Options{})
	_, err := tb.openWith(t.Context(), Options{AdoptPolicy: true, Replicated: true}, nil, nil)
	wantErr(t, "a promise that no standby keeps", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	if f, err := s.Check(t.Context()); err != nil || f.Err() != nil {
		t.Errorf("after a refused adoption: %v, %v", err, f.Err())
	}
	longer := pawl.DefaultTimings()
	longer.PurgeMargin *= 2
	tb.mustOpen(t, Options{AdoptPolicy: true, Timings: &longer})
	if f, err := s.Check(t.Context()); err != nil || !errors.Is(f.Err(), pawl.ErrMisconfigured) {
		t.Errorf("after an adoption behind its back: %v, %v", err, f.Err())
	}
}

// TestExistingMakesNothing: empty tables do not become a store by being opened to
// look after one [A1].
func TestExistingMakesNothing(t *testing.T) {
	tb := mustTables(t, pgtest.Shared(t, pgtest.Newest(t)).Database(t))
	_, err := tb.openWith(t.Context(), Options{Existing: true}, nil, nil)
	wantErr(t, "empty tables", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	if n := tb.count(t, "SELECT count(*) FROM @@.meta"); n != 0 {
		t.Errorf("%d stores were made", n)
	}
	tb.mustOpen(t, Options{})
	tb.mustOpen(t, Options{Existing: true})
}
