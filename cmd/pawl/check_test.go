package main

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/pgtest"
)

// TestCheck_Transcripts: pawl check against a good deployment, seven that are bad
// in one way and one that is so in all that go together, word for word in
// testdata/check; PAWL_UPDATE=1 writes them anew. Each bad one exits with 78 and
// shows the whole report, each bad fact with what to change [A11].
func TestCheck_Transcripts(t *testing.T) {
	server := pgtest.Shared(t, pgtest.Newest(t))
	migrated := func(t *testing.T) string {
		t.Helper()
		dsn := server.Database(t)
		if code, _, log := pawlRun(t, time.Now, "migrate", "--store", dsn); code != 0 {
			t.Fatalf("migrate: %d %s", code, log)
		}
		return dsn
	}
	// pinned is a role with every setting an admission needs, and one changed.
	pinned := func(t *testing.T, change string) string {
		t.Helper()
		dsn, role := migrated(t), server.Role(t, "SUPERUSER")
		for _, set := range []string{
			"transaction_timeout = '5s'", "client_min_messages = warning", "synchronous_commit = on", "TimeZone = 'UTC'",
			"default_transaction_isolation = 'read committed'", "default_transaction_read_only = off", change,
		} {
			if set != "" {
				server.Exec(t, "ALTER ROLE "+role+" SET "+set)
			}
		}
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.User(role)
		return u.String()
	}
	ahead := func() time.Time { return time.Now().Add(time.Minute) }
	for name, run := range map[string]func(t *testing.T) (int, string, string){
		"good": func(t *testing.T) (int, string, string) { return pawlRun(t, time.Now, "check", "--store", migrated(t)) },
		"replica": func(t *testing.T) (int, string, string) {
			primary := pgtest.Start(t, pgtest.Newest(t), nil)
			if code, _, log := pawlRun(t, time.Now, "migrate", "--store", primary.Superuser()); code != 0 {
				t.Fatalf("migrate: %d %s", code, log)
			}
			replica := pgtest.StartReplica(t, primary, nil)
			replica.AwaitReplay(t, primary)
			return pawlRun(t, time.Now, "check", "--store", replica.Superuser())
		},
		"no-bound": func(t *testing.T) (int, string, string) {
			return pawlRun(t, time.Now, "check", "--pins", "role", "--store", pinned(t, "transaction_timeout = 0"))
		},
		"asynchronous-commit": func(t *testing.T) (int, string, string) {
			return pawlRun(t, time.Now, "check", "--pins", "role", "--store", pinned(t, "synchronous_commit = off"))
		},
		"repeatable-read": func(t *testing.T) (int, string, string) {
			return pawlRun(t, time.Now, "check", "--pins", "role", "--store", pinned(t, "default_transaction_isolation = 'repeatable read'"))
		},
		"missing-constraint": func(t *testing.T) (int, string, string) {
			dsn := migrated(t)
			u, err := url.Parse(dsn)
			if err != nil {
				t.Fatal(err)
			}
			server.ExecIn(t, strings.TrimPrefix(u.Path, "/"), "ALTER TABLE pawl.claims DROP CONSTRAINT claims_key")
			return pawlRun(t, time.Now, "check", "--store", dsn)
		},
		"clock": func(t *testing.T) (int, string, string) { return pawlRun(t, ahead, "check", "--store", migrated(t)) },
		"everything": func(t *testing.T) (int, string, string) {
			dsn := pinned(t, "transaction_timeout = 0")
			u, err := url.Parse(dsn)
			if err != nil {
				t.Fatal(err)
			}
			for setting, value := range map[string]string{
				"synchronous_commit": "off", "default_transaction_isolation": "serializable", "client_min_messages": "error",
			} {
				server.Exec(t, "ALTER ROLE "+u.User.Username()+" SET "+setting+" = "+value)
			}
			server.ExecIn(t, strings.TrimPrefix(u.Path, "/"), "DROP INDEX pawl.operations_grant")
			return pawlRun(t, ahead, "check", "--pins", "role", "--timing", "purge_margin=60s", "--store", dsn)
		},
		"disagreement": func(t *testing.T) (int, string, string) {
			return pawlRun(t, time.Now, "check", "--timing", "purge_margin=60s", "--timing", "issue_skew=6s", "--store", migrated(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, log := run(t)
			if want := map[bool]int{true: 0, false: 78}[name == "good"]; code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			transcript(t, filepath.Join("testdata", "check", name+".txt"), out+log)
		})
	}
}

// pawlRun runs the command in this process.
func pawlRun(t *testing.T, now func() time.Time, args ...string) (code int, out, log string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, environment{
		in: strings.NewReader(""), out: &stdout, err: &stderr, get: func(string) string { return "" }, now: now,
	})
	return code, stdout.String(), stderr.String()
}

// transcript compares with a file, what differs from run to run being masked.
func transcript(t *testing.T, path, got string) {
	t.Helper()
	for _, mask := range []struct{ pattern, with string }{
		{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "ID"},
		{`postgres \d+\.\d+( \([^)]*\))?`, "postgres VERSION"},
		{`within [0-9.]+m?s of`, "within DURATION of"},
		{`(1m0s|59s) from the store's`, "ABOUT 1m0s from the store's"},
		{`role_[0-9a-z_]+|pawl_[0-9a-f]{16}`, "ROLE"},
		{`[ \t]+`, " "},
		{`(?m) $`, ""},
	} {
		got = regexp.MustCompile(mask.pattern).ReplaceAllString(got, mask.with)
	}
	if os.Getenv("PAWL_UPDATE") == "1" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
}
