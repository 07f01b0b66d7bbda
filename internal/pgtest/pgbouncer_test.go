package pgtest_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-go/pawl/internal/pgtest"
)

func TestPgBouncerPoolsByTransaction(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version) {
		s := pgtest.Shared(t, v)
		bouncer := pgtest.StartPgBouncer(t, s, map[string]string{"default_pool_size": "1"})
		database := open(t, s.Database(t)).Config().Database
		role := s.Role(t)
		dsn := pgtest.Via(t, s.DSN(role, database), bouncer.Addr()) + "&default_query_exec_mode=exec"

		one, two := open(t, dsn), open(t, dsn)
		if got := query[string](t, one, "SELECT current_user::text"); got != role {
			t.Errorf("current_user = %q, want %q", got, role)
		}
		// One server session serves both clients, which is what sets transaction mode apart.
		a, b := query[int](t, one, "SELECT pg_backend_pid()"), query[int](t, two, "SELECT pg_backend_pid()")
		if a != b {
			t.Errorf("two clients of a pool of one have sessions %d and %d", a, b)
		}
	})
}

func TestPgBouncerRefusesUnknownParameters(t *testing.T) {
	s := pgtest.Shared(t, pgtest.Newest(t))
	strict := pgtest.StartPgBouncer(t, s, nil)
	lax := pgtest.StartPgBouncer(t, s, map[string]string{"ignore_startup_parameters": "statement_timeout"})
	withTimeout := "&statement_timeout=5000&default_query_exec_mode=" + url.QueryEscape("exec")

	_, err := pgx.Connect(t.Context(), pgtest.Via(t, s.Superuser(), strict.Addr())+withTimeout)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		t.Errorf("a start-up parameter through PgBouncer: got %v, want its refusal", err)
	}
	conn := open(t, pgtest.Via(t, s.Superuser(), lax.Addr())+withTimeout)
	if got := query[string](t, conn, "SELECT current_setting('statement_timeout')"); got != "0" {
		t.Errorf("statement_timeout = %q through a pooler that drops it, want 0", got)
	}
}
