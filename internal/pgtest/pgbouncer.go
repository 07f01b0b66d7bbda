package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// PgBouncer is a pooler in front of a server, in transaction mode: two transactions of one client may run in two
// sessions, and what a session was told stays behind for the next client.
type PgBouncer struct {
	port int
}

// StartPgBouncer runs a pooler in front of a server for as long as the test. Settings go to its configuration over the
// usual ones, in its own spelling; nil changes nothing. It refuses start-up parameters it does not track, as it does by
// default: {"ignore_startup_parameters": "..."} has it drop them. Every role of the server may connect.
func StartPgBouncer(tb testing.TB, s *Server, settings map[string]string) *PgBouncer {
	tb.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			missing(tb, "pgbouncer is not installed: run test/postgres/setup as root")
		}
	}
	h, err := newHome()
	if err != nil {
		tb.Fatal(err)
	}
	port, release, err := reservePort()
	if err != nil {
		tb.Fatal(errors.Join(err, h.remove()))
	}
	var p *process
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the end of PgBouncer's log:\n%s", h.tail(serverLog))
		}
		if p != nil {
			p.kill()
		}
		if err := errors.Join(h.remove(), release()); err != nil {
			tb.Error(err)
		}
	})
	if err := configurePgBouncer(h, s, port, settings); err != nil {
		tb.Fatal(err)
	}
	if p, err = h.start(serverLog, program, "--quiet", h.path("pgbouncer.ini")); err != nil {
		tb.Fatal(err)
	}
	b := &PgBouncer{port: port}
	if err := b.awaitReady(tb.Context(), s, p); err != nil {
		tb.Fatalf("PgBouncer does not start: %v", err)
	}
	return b
}

// Addr is the pooler's host and port.
func (b *PgBouncer) Addr() string { return loopback(b.port) }

func (b *PgBouncer) awaitReady(ctx context.Context, s *Server, p *process) error {
	config, err := pgx.ParseConfig(s.Superuser())
	if err != nil {
		return err
	}
	config.Port = uint16(b.port)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err == nil {
			return true, conn.Close(ctx)
		}
		if !p.running() {
			return false, fmt.Errorf("%w; the process ended", err)
		}
		return false, nil
	})
}

// configurePgBouncer lets in every role that the server has: PgBouncer asks the server about those it does not know.
func configurePgBouncer(h *home, s *Server, port int, settings map[string]string) error {
	all := map[string]string{
		"listen_addr":       "127.0.0.1",
		"listen_port":       strconv.Itoa(port),
		"unix_socket_dir":   "",
		"auth_type":         "trust",
		"auth_file":         h.path("users.txt"),
		"pool_mode":         "transaction",
		"max_client_conn":   "200",
		"default_pool_size": "20",
	}
	maps.Copy(all, settings)
	var b strings.Builder
	fmt.Fprintf(&b, "[databases]\n* = host=127.0.0.1 port=%d auth_user=%s\n[pgbouncer]\n", s.port, superuser)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s = %s\n", name, all[name])
	}
	return errors.Join(
		h.write(h.path("users.txt"), `"`+superuser+`" ""`+"\n"),
		h.write(h.path("pgbouncer.ini"), b.String()))
}
