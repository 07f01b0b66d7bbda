package sqlitestore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sqlitestore"
)

// TestCase_CA7_PathsThatCannotBe: each refuses to open with its reason, and
// makes no store anywhere; once it can be reached, it opens [A1, A6].
func TestCase_CA7_PathsThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct{ path, says string }{
		"none":          {"", "no path"},
		"memory":        {":memory:", "memstore"},
		"URI":           {"file:pawl.db?mode=memory", "plain path"},
		"no folder":     {filepath.Join(dir, "absent", "pawl.db"), "make it first"},
		"folder a file": {filepath.Join(write("file", ""), "pawl.db"), "cannot be used"},
		"a folder":      {dir, "cannot be used"},
		"no database":   {write("text", strings.Repeat("not a database ", 100)), "cannot be used"},
	} {
		s, err := sqlitestore.Open(t.Context(), c.path, nil)
		if !errors.Is(err, pawl.ErrMisconfigured) || s != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want ErrMisconfigured saying %q", name, err, c.says)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "absent"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, filepath.Join(dir, "absent", "pawl.db"), nil)
	if _, err := s.Admit(t.Context(), presented(s, "g", pawl.NewOperationID(), justNow())); err != nil {
		t.Error(err)
	}
}

// A folder or file without permission is refused, unless root opens it, whom
// permissions do not bind.
func TestCase_CA7_NotWritable(t *testing.T) {
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		t.Log("permissions do not bind this user: a file that cannot be opened is tested by a folder in its place")
	} else {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlitestore.Open(t.Context(), filepath.Join(dir, "pawl.db"), nil); !errors.Is(err, pawl.ErrMisconfigured) {
			t.Errorf("a folder that cannot be written: %v", err)
		}
	}
	path := filepath.Join(t.TempDir(), "pawl.db")
	if err := os.Mkdir(path+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitestore.Open(t.Context(), path, nil); !errors.Is(err, pawl.ErrMisconfigured) {
		t.Errorf("a lock file that cannot be made: %v", err)
	}
}

// What the file is to others: nobody but its owner reads it, and it has one name.
func TestFileModeAndNames(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes and links are those of Unix")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "pawl.db")
	s := open(t, path, nil)
	if _, err := s.Admit(t.Context(), presented(s, "g", pawl.NewOperationID(), justNow())); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", info.Name(), mode)
		}
	}
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if other := open(t, link, nil); other.Path() != s.Path() || other.ID() != s.ID() {
		t.Errorf("a symbolic link is store %s at %s, want %s at %s", other.ID(), other.Path(), s.ID(), s.Path())
	}
	hard := filepath.Join(dir, "hard.db")
	if err := os.Link(path, hard); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitestore.Open(t.Context(), hard, nil); !errors.Is(err, pawl.ErrMisconfigured) {
		t.Errorf("a hard link: %v, want ErrMisconfigured", err)
	}
}

// TestReplacedFile: a file deleted or replaced under an open store confirms
// nothing more; what would be written would be lost [A3, A6].
func TestReplacedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s := open(t, path, nil)
	refuses := func(what string) {
		t.Helper()
		_, err := s.Admit(t.Context(), presented(s, what, pawl.NewOperationID(), justNow()))
		if !errors.Is(err, pawl.ErrNotConfirmed) {
			t.Errorf("%s: %v, want ErrNotConfirmed", what, err)
		}
		if _, err := s.RaiseEpoch(t.Context()); !errors.Is(err, pawl.ErrUnavailable) {
			t.Errorf("%s, another call: %v, want ErrUnavailable", what, err)
		}
	}
	moved := path + ".moved"
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	refuses("moved away")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses("replaced")
	if err := os.Rename(moved, path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Admit(t.Context(), presented(s, "back", pawl.NewOperationID(), justNow())); err != nil {
		t.Errorf("back in its place: %v", err)
	}
}

// TestCase_CA24_Pinned: another file than the pinned store, another realm, and a
// new file where a store is pinned, refuse to open [A1].
func TestCase_CA24_Pinned(t *testing.T) {
	dir := t.TempDir()
	one := open(t, filepath.Join(dir, "one.db"), &sqlitestore.Options{Realm: "here"})
	two := open(t, filepath.Join(dir, "two.db"), nil)
	if want := "sqlite:" + two.ID(); two.Realm() != want {
		t.Errorf("a realm nobody named is %q, want %q", two.Realm(), want)
	}
	for name, c := range map[string]struct {
		path string
		o    sqlitestore.Options
		ok   bool
	}{
		"the pinned store":        {one.Path(), sqlitestore.Options{StoreID: one.ID(), Realm: "here"}, true},
		"nothing said":            {one.Path(), sqlitestore.Options{}, true},
		"another store":           {two.Path(), sqlitestore.Options{StoreID: one.ID()}, false},
		"another realm":           {two.Path(), sqlitestore.Options{Realm: "here"}, false},
		"no store yet and pinned": {filepath.Join(dir, "three.db"), sqlitestore.Options{StoreID: one.ID()}, false},
	} {
		s, err := sqlitestore.Open(t.Context(), c.path, &c.o)
		if c.ok != (err == nil) || (err != nil && !errors.Is(err, pawl.ErrMisconfigured)) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			s.Close()
		}
	}
	a := presented(one, "g", pawl.NewOperationID(), justNow())
	if _, err := two.Admit(t.Context(), a); !errors.Is(err, pawl.ErrRefused) || pawl.ReasonOf(err) != pawl.ReasonRealm {
		t.Errorf("a grant for another realm: %v", err)
	}
}

// A schema of a later program is left alone.
func TestNewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	open(t, path, nil).Close()
	execute(t, path, "INSERT INTO pawl_migrations (version_id, is_applied) VALUES (2, 1)")
	if _, err := sqlitestore.Open(t.Context(), path, nil); !errors.Is(err, pawl.ErrMisconfigured) {
		t.Errorf("a newer schema: %v, want ErrMisconfigured", err)
	}
}

func execute(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(2000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// An operator replaces the policy in the store deliberately; who has another one
// then refuses to open [A11]. What grants rest on is never shortened.
func TestAdoptPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	open(t, path, nil).Close()
	longer, shorter := pawl.DefaultTimings(), pawl.DefaultTimings()
	longer.MaxGrantLifetime *= 2
	longer.Leeways["v2"] = time.Minute
	shorter.MaxGrantLifetime /= 2
	try := func(ts pawl.Timings, adopt bool) error {
		s, err := sqlitestore.Open(t.Context(), path, &sqlitestore.Options{Timings: &ts, AdoptPolicy: adopt})
		if err != nil {
			return err
		}
		f, err := s.Check(t.Context())
		if diff := cmp.Diff(ts.Policy(), f.Policy); diff != "" {
			t.Errorf("the policy in force (-want +got):\n%s", diff)
		}
		return errors.Join(err, s.Close())
	}
	for _, step := range []struct {
		what  string
		ts    pawl.Timings
		adopt bool
		want  error
	}{
		{"a longer lifetime, not adopted", longer, false, pawl.ErrMisconfigured},
		{"a longer lifetime, adopted", longer, true, nil},
		{"the former one", pawl.DefaultTimings(), false, pawl.ErrMisconfigured},
		{"a shorter lifetime, adopted", shorter, true, pawl.ErrMisconfigured},
		{"the adopted one", longer, false, nil},
	} {
		if err := try(step.ts, step.adopt); !errors.Is(err, step.want) || (err == nil) != (step.want == nil) {
			t.Errorf("%s: %v, want %v", step.what, err, step.want)
		}
	}
}

// A running instance decides by the policy that another one changed [A11].
func TestPolicyOfOthersIsSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s := open(t, path, nil)
	more := pawl.DefaultTimings()
	more.Leeways["v2"] = time.Minute
	a := presented(s, "g", pawl.NewOperationID(), justNow())
	a.Grant.LeewayPolicy = "v2"
	if _, err := s.Admit(t.Context(), a); pawl.ReasonOf(err) != pawl.ReasonLeewayUnknown {
		t.Errorf("a policy nobody has: %v", err)
	}
	open(t, path, &sqlitestore.Options{Timings: &more})
	if _, err := s.Admit(t.Context(), a); err != nil {
		t.Errorf("a policy that another instance brought: %v", err)
	}
}

// The report names the facts that the promise rests on [A1].
func TestCheck(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	f, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Err(); err != nil || f.Scope != pawl.ScopeHost || f.PurgeHeld != "" || !strings.HasPrefix(f.Engine, "sqlite 3.") {
		t.Errorf("%v: scope %v, purge held %q, engine %q", err, f.Scope, f.PurgeHeld, f.Engine)
	}
	names := map[string]bool{}
	for _, c := range f.Checks {
		names[c.Name] = true
		if !c.OK {
			t.Logf("%s: %s (%s)", c.Name, c.Value, c.Fix)
		}
	}
	for _, name := range []string{
		"engine version", "journal mode", "synchronous", "foreign keys", "file system", "free space", "purge", "clock", "integrity",
	} {
		if !names[name] {
			t.Errorf("no fact %q", name)
		}
	}
	t.Log(f.Promise())
}

// Malformed options are refused before any file is touched.
func TestOptions(t *testing.T) {
	broken := pawl.DefaultTimings()
	broken.PurgeMargin = 0
	dir := t.TempDir()
	for name, c := range map[string]struct {
		o    sqlitestore.Options
		want error
	}{
		"timings":   {sqlitestore.Options{Timings: &broken}, pawl.ErrMisconfigured}, // [T1]
		"realm":     {sqlitestore.Options{Realm: "a\x00b"}, pawl.ErrInvalid},
		"store id":  {sqlitestore.Options{StoreID: strings.Repeat("x", 256)}, pawl.ErrInvalid},
		"TxTimeout": {sqlitestore.Options{TxTimeout: -1}, pawl.ErrInvalid},
	} {
		if _, err := sqlitestore.Open(t.Context(), filepath.Join(dir, "pawl.db"), &c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("files were made: %v %v", left, err)
	}
}

// A store is looked at as it stands, and nothing in it or beside it changes [A11].
func TestInspectChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	if _, err := sqlitestore.Inspect(t.Context(), path, nil); !errors.Is(err, pawl.ErrMisconfigured) {
		t.Errorf("no file: %v, want ErrMisconfigured", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking made a file: %v", err)
	}
	s := open(t, path, nil)
	other := pawl.DefaultTimings()
	other.PurgeMargin *= 2
	o := sqlitestore.Options{Timings: &other, StoreID: pawl.NewOperationID().String()}
	for range 2 {
		f, err := sqlitestore.Inspect(t.Context(), path, &o)
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
	}
	seen, err := sqlitestore.Inspect(t.Context(), path, nil)
	if err != nil || seen.Err() != nil || seen.StoreID != s.ID() || seen.Policy.PurgeMargin != pawl.DefaultTimings().PurgeMargin {
		t.Errorf("the good store: %+v, %v", seen, err)
	}
}

// What is no store, or not as the migrations make one, is told and refused, and
// nothing panics [A7, A11].
func TestNoStoreOrNotWhole(t *testing.T) {
	for name, c := range map[string]struct {
		sql, says string
		existing  bool // refused only by who makes nothing
	}{
		"an empty file":             {"", "holds no store", true},
		"another program's file":    {"CREATE TABLE t (a)", "holds no store", true},
		"no store in the tables":    {"DELETE FROM pawl_meta", "no store in them", true},
		"the second barrier gone":   {"DROP INDEX pawl_operations_one_per_grant", "pawl_operations_one_per_grant is missing", false},
		"the second barrier weaker": {"DROP INDEX pawl_operations_one_per_grant; CREATE INDEX pawl_operations_one_per_grant ON pawl_operations (issuer, namespace, grant_id)", "pawl_operations_one_per_grant is another", false},
		"a trigger gone":            {"DROP TRIGGER pawl_claims_never_edited", "pawl_claims_never_edited is missing", false},
		"a table gone":              {"DROP TABLE pawl_entries", "", false},
		"a newer schema":            {"INSERT INTO pawl_migrations (version_id, is_applied) VALUES (99, 1)", "version 99", false},
	} {
		path := filepath.Join(t.TempDir(), "pawl.db")
		if c.sql == "" || strings.HasPrefix(c.sql, "CREATE") {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		} else if s, err := sqlitestore.Open(t.Context(), path, nil); err != nil || s.Close() != nil {
			t.Fatal(err)
		}
		if c.sql != "" {
			execute(t, path, c.sql)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := sqlitestore.Inspect(t.Context(), path, nil)
		if err == nil {
			err = f.Err()
		}
		if !errors.Is(err, pawl.ErrMisconfigured) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: looked at: %v, want ErrMisconfigured that says %q", name, err, c.says)
		}
		s, err := sqlitestore.Open(t.Context(), path, &sqlitestore.Options{Existing: c.existing})
		if err == nil {
			t.Errorf("%s: opened, %v", name, s.Close())
		} else if c.says != "" && (!errors.Is(err, pawl.ErrMisconfigured) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: opened: %v, want ErrMisconfigured that says %q", name, err, c.says)
		}
		if after, err := os.ReadFile(path); err != nil || c.existing && !bytes.Equal(before, after) {
			t.Errorf("%s: the file changed; %v", name, err)
		}
	}
}

// Another policy that was adopted while an instance runs is in that one's report
// [A11].
func TestAdoptedBehindItsBack(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	longer := pawl.DefaultTimings()
	longer.PurgeMargin *= 2
	open(t, s.Path(), &sqlitestore.Options{AdoptPolicy: true, Timings: &longer})
	if f, err := s.Check(t.Context()); err != nil || !errors.Is(f.Err(), pawl.ErrMisconfigured) {
		t.Errorf("%v, %v", err, f.Err())
	}
}

// A deadline that passes at any moment of opening leaves an error and nothing
// else behind; the end of the tests looks for what was left running.
func TestOpenRunsOutOfTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	open(t, path, nil)
	for patience := range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(patience)*100*time.Microsecond)
		s, err := sqlitestore.Open(ctx, path, nil)
		cancel()
		if err == nil {
			err = s.Close()
		} else if errors.Is(err, pawl.ErrUnavailable) {
			err = nil
		}
		if err != nil {
			t.Errorf("after %d00 µs: %v, want ErrUnavailable", patience, err)
		}
	}
}

// A caller's own tables in the file are the caller's affair, and keep nobody from
// opening or checking the store.
func TestCallersOwnTables(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	execute(t, s.Path(), `CREATE TABLE parts (p CHECK (p > 0)); PRAGMA ignore_check_constraints = 1; INSERT INTO parts VALUES (-1);
		PRAGMA writable_schema = 1;
		CREATE TABLE customers (name TEXT COLLATE NOCASE); CREATE INDEX customers_name ON customers (name);
		UPDATE sqlite_schema SET sql = replace(sql, 'NOCASE', 'german') WHERE name = 'customers'`)
	again := open(t, s.Path(), &sqlitestore.Options{Existing: true})
	for name, check := range map[string]func() (pawl.Facts, error){
		"checked":   func() (pawl.Facts, error) { return again.Check(t.Context()) },
		"inspected": func() (pawl.Facts, error) { return sqlitestore.Inspect(t.Context(), s.Path(), nil) },
	} {
		if f, err := check(); err != nil || f.Err() != nil {
			t.Errorf("%s: %v, %v", name, err, f.Err())
		}
	}
	execute(t, s.Path(), "PRAGMA ignore_check_constraints = 1; INSERT INTO pawl_leeways VALUES ('damaged', -5)")
	if f, err := again.Check(t.Context()); err != nil || !strings.Contains(fmt.Sprint(f.Err()), "pawl_leeways") {
		t.Errorf("a damaged table of the store: %v, %v", err, f.Err())
	}
}

// Who makes nothing leaves nothing, not even a lock's file.
func TestExistingLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	_, err := sqlitestore.Open(t.Context(), filepath.Join(dir, "no.db"), &sqlitestore.Options{Existing: true})
	if !errors.Is(err, pawl.ErrMisconfigured) || !strings.Contains(err.Error(), "there is no file") {
		t.Errorf("%v, want ErrMisconfigured", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := sqlitestore.Inspect(t.Context(), dir, nil); !errors.Is(err, pawl.ErrMisconfigured) || !strings.Contains(err.Error(), "no file") {
		t.Errorf("a folder: %v, want ErrMisconfigured", err)
	}
}
