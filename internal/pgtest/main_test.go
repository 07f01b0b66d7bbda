package pgtest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl/internal/pgtest"
)

// abandonVariable makes this test binary the child that starts a server and then lives until it is killed.
const abandonVariable = "PAWL_PGTEST_ABANDON"

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// open connects to a server and closes the connection with the test, whatever became of it.
func open(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// query runs a statement that returns one value.
func query[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (value T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// run runs a statement that must succeed.
func run(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// eachVersion runs a test on every installed version.
func eachVersion(t *testing.T, test func(*testing.T, pgtest.Version)) {
	t.Helper()
	for _, v := range pgtest.Versions(t) {
		t.Run(fmt.Sprintf("PostgreSQL %s", v), func(t *testing.T) { test(t, v) })
	}
}
