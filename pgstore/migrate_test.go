package pgstore

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// TestMigrationFiles: the code is written for the last migration, and each of them
// says which version it makes.
func TestMigrationFiles(t *testing.T) {
	all, err := migrations("elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range all {
		if m.version != int64(i+1) {
			t.Errorf("migration %d has the number %d", i+1, m.version)
		}
		if strings.Contains(m.sql, defaultSchema+".") {
			t.Errorf("migration %d: the schema's name was not replaced", m.version)
		}
		if !regexp.MustCompile(fmt.Sprintf(`schema_state [^;]*\b%d\b`, m.version)).MatchString(m.sql) {
			t.Errorf("migration %d does not say its version in schema_state", m.version)
		}
	}
	if len(all) != schemaVersion {
		t.Errorf("%d migrations, and the code is written for version %d", len(all), schemaVersion)
	}
	if _, err := MigrationSQL("no good", 0); err == nil {
		t.Error("a schema with a blank was taken")
	}
	if _, err := MigrationSQL("pawl", schemaVersion+1); err == nil {
		t.Error("a version that there is not was taken")
	}
}

// TestMigrate: nothing is made unless asked; Migrate makes the tables once,
// whoever asks; printed and run migrations make the same tables.
func TestMigrate(t *testing.T) {
	eachVersion(t, func(t *testing.T, _ pgtest.Version, dsn string) {
		ctx := t.Context()
		printed := mustTables(t, dsn)
		run := &tables{dsn: dsn, schema: "run", side: &side{}}
		_, err := run.openWith(ctx, Options{}, nil, nil)
		wantErr(t, "opening without tables", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				if err := Migrate(ctx, dsn, &Options{Schema: "run", Realm: "here"}); err != nil {
					t.Errorf("migrating at once: %v", err)
				}
			})
		}
		wait.Wait()
		if diff := cmp.Diff(run.catalogue(t), printed.catalogue(t)); diff != "" {
			t.Errorf("printed and run migrations differ (-run +printed):\n%s", diff)
		}
		s := run.mustOpen(t, Options{Realm: "here"})
		again, err := Open(ctx, dsn, &Options{Schema: "run", Migrate: true})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if again.id != s.id || again.realm != "here" {
			t.Errorf("opened %s of %s, want %s of here", again.id, again.realm, s.id)
		}
		if err := Migrate(ctx, dsn, &Options{Schema: printed.schema}); err != nil {
			t.Errorf("migrating what was migrated by hand: %v", err)
		}
		reserved, err := Open(ctx, dsn, &Options{Schema: "user", Migrate: true})
		if err != nil {
			t.Fatalf("a schema whose name is a reserved word: %v", err)
		}
		defer reserved.Close()
		everyCall(t, reserved)
	})
}

// catalogue lists columns, constraints and indexes of a schema.
func (tb *tables) catalogue(t *testing.T) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), tb.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), `
SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '') || ' ' || coalesce(collation_name, '')
  FROM information_schema.columns WHERE table_schema = $1
UNION ALL SELECT conname || ' ' || pg_get_constraintdef(c.oid) FROM pg_constraint AS c
  JOIN pg_namespace AS n ON n.oid = connamespace WHERE nspname = $1 AND contype <> 'n'
UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = $1 ORDER BY 1`, tb.schema)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], tb.schema, "SCHEMA")
	}
	slices.Sort(lines)
	return lines
}

// TestExpandThenContract: an older binary works on tables that a newer one has
// expanded, all calls of it, and refuses those that were contracted beyond it. It
// refuses tables older than itself too.
func TestExpandThenContract(t *testing.T) {
	eachVersion(t, func(t *testing.T, _ pgtest.Version, dsn string) {
		tb := mustTables(t, dsn)
		open := tb.mustOpen(t, Options{})
		mustAdmit(t, open, admissionOf(someGrant(open.realm)))
		next := schemaVersion + 1
		tb.mustExec(t, fmt.Sprintf(`
			ALTER TABLE @@.operations ADD COLUMN colour text NOT NULL DEFAULT 'none';
			ALTER TABLE @@.claims ADD COLUMN colour text;
			ALTER TABLE @@.meta ADD COLUMN colour text;
			ALTER TABLE @@.entries ADD COLUMN colour text NOT NULL DEFAULT 'none';
			CREATE TABLE @@.colours (name text);
			UPDATE @@.schema_state SET version = %d`, next))
		everyCall(t, open) // one that was open before
		late := tb.mustOpen(t, Options{})
		everyCall(t, late) // and one that comes later
		if err := Migrate(t.Context(), dsn, &Options{Schema: tb.schema}); err != nil {
			t.Errorf("an older pawl migrate on newer tables: %v, want nothing done", err)
		}
		tb.mustExec(t, fmt.Sprintf("UPDATE @@.schema_state SET min_reader = %d", next))
		_, err := tb.openWith(t.Context(), Options{}, nil, nil)
		wantErr(t, "tables that need a newer pawl", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
		if err := Migrate(t.Context(), dsn, &Options{Schema: tb.schema}); err == nil {
			t.Error("migrating tables that need a newer pawl: no error")
		}
		tb.mustExec(t, fmt.Sprintf("UPDATE @@.schema_state SET min_reader = 0, version = %d", schemaVersion-1))
		_, err = tb.openWith(t.Context(), Options{}, nil, nil)
		wantErr(t, "tables older than this pawl", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	})
}

// TestPolicyStandsInTheStore: a new leeway version is added by the owner and then
// holds for all; adopting another policy is deliberate, and never shortens what
// living grants rest on [A11, T1].
func TestPolicyStandsInTheStore(t *testing.T) {
	tb := mustTables(t, pgtest.Shared(t, pgtest.Newest(t)).Database(t))
	tb.mustOpen(t, Options{})
	more := pawl.DefaultTimings()
	more.Leeways["v2"] = 2 * more.Leeways[""]
	added := tb.mustOpen(t, Options{Timings: &more})
	old := tb.mustOpen(t, Options{})
	g := someGrant(old.realm)
	g.LeewayPolicy = "v2"
	mustAdmit(t, old, admissionOf(g)) // the store's leeway, not the instance's
	f, err := old.Check(t.Context())
	if err != nil || cmp.Diff(more.Leeways, f.Policy.Leeways) != "" {
		t.Errorf("leeways are %v, %v; want %v", f.Policy.Leeways, err, more.Leeways)
	}
	other := pawl.DefaultTimings()
	other.PurgeMargin, other.MaxGrantLifetime = 2*other.PurgeMargin, 2*other.MaxGrantLifetime
	_, err = tb.openWith(t.Context(), Options{Timings: &other}, nil, nil)
	wantErr(t, "another policy", err, pawl.ErrMisconfigured, pawl.ReasonDisagreement)
	adopted := tb.mustOpen(t, Options{Timings: &other, AdoptPolicy: true})
	if f, err := adopted.Check(t.Context()); err != nil || f.Policy.PurgeMargin != other.PurgeMargin || f.Policy.Leeways["v2"] == 0 {
		t.Errorf("after adopting: %+v, %v", f.Policy, err)
	}
	_, err = tb.openWith(t.Context(), Options{AdoptPolicy: true}, nil, nil)
	wantErr(t, "a shorter lifetime", err, pawl.ErrMisconfigured, pawl.ReasonDisagreement)
	edited := other.Clone()
	edited.Leeways["v2"]++
	_, err = tb.openWith(t.Context(), Options{Timings: &edited, AdoptPolicy: true}, nil, nil)
	wantErr(t, "an edited leeway", err, pawl.ErrMisconfigured, "")
	if err := added.Close(); err != nil {
		t.Error(err)
	}
}
