package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-go/pawl"
)

// safe is an error that says nothing was sent.
type safe struct{ error }

func (safe) SafeToRetry() bool { return true }

// TestFates walks the table of outcomes: what is certain not to have been
// committed, what may have been, and what is a defect [A6, A7].
func TestFates(t *testing.T) {
	server := func(severity, code string) *pgconn.PgError {
		return &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: severity, Code: code}
	}
	rule := func(name string) error {
		e := server("ERROR", "23505")
		e.ConstraintName = name
		return e
	}
	revalidated := server("ERROR", "0A000")
	revalidated.Routine = "RevalidateCachedQuery"
	for _, tc := range []struct {
		name string
		err  error
		want fate
	}{
		{"no connection", &pgconn.ConnectError{}, fateNothing},
		{"nothing was sent", safe{errors.New("busy")}, fateNothing},
		{"commit answered with rollback", pgx.ErrTxCommitRollback, fateNothing},
		{"our commit answered with rollback", errRolledBack, fateNothing},
		{"a replica", errReplica, fateNothing},
		{"serialization failure", server("ERROR", "40001"), fateNothing},
		{"deadlock", server("ERROR", "40P01"), fateNothing},
		{"lock not available", server("ERROR", "55P03"), fateNothing},
		{"statement timeout or cancel", server("ERROR", "57014"), fateNothing},
		{"disk full", server("ERROR", "53100"), fateNothing},
		{"too many connections", server("ERROR", "53300"), fateNothing},
		{"read-only after a fail-over", server("ERROR", "25006"), fateNothing},
		{"failed transaction", server("ERROR", "25P02"), fateNothing},
		{"input or output error", server("ERROR", "58030"), fateNothing},
		{"transaction timeout", server("FATAL", "25P04"), fateNothing},
		{"plan revalidated", revalidated, fateNothing},

		{"operation id taken", rule("operations_pkey"), fateViolation},
		{"grant of another operation", rule("operations_grant"), fateViolation},

		{"named statement unknown", server("ERROR", "26000"), fateUnfit},
		{"named statement known", server("ERROR", "42P05"), fateUnfit},

		{"another unique rule", rule("operations_extra"), fateDefect},
		{"check violated", server("ERROR", "23514"), fateDefect},
		{"not null violated", server("ERROR", "23502"), fateDefect},
		{"no such table", server("ERROR", "42P01"), fateDefect},
		{"no right", server("ERROR", "42501"), fateDefect},
		{"bad text", server("ERROR", "22021"), fateDefect},
		{"raised by a trigger", server("ERROR", "P0001"), fateDefect},
		{"not supported", server("ERROR", "0A000"), fateDefect},
		{"internal", server("ERROR", "XX000"), fateDefect},

		{"completion unknown", server("ERROR", "40003"), fateUnknown},
		{"connection exception", server("ERROR", "08006"), fateUnknown},
		{"terminated by an administrator", server("FATAL", "57P01"), fateUnknown},
		{"crash shutdown", server("FATAL", "57P02"), fateUnknown},
		{"a fatal violation", server("FATAL", "23505"), fateUnknown},
		{"panic", server("PANIC", "XX000"), fateUnknown},
		{"end of file", io.ErrUnexpectedEOF, fateUnknown},
		{"network", &net.OpError{Op: "read", Err: errors.New("reset")}, fateUnknown},
		{"deadline", context.DeadlineExceeded, fateUnknown},
		{"connection closed", pgconn.ErrConnClosed, fateUnknown},
	} {
		if got := fateOf(tc.err); got != tc.want {
			t.Errorf("%s: fate %d, want %d", tc.name, got, tc.want)
		}
		if got := fateOf(fmt.Errorf("wrapped: %w", tc.err)); got != tc.want {
			t.Errorf("%s, wrapped: fate %d, want %d", tc.name, got, tc.want)
		}
	}
}

// TestAnswers: every fate but a defect and an unfit deployment has the class of a
// lost answer; a defect has none [A6, A7].
func TestAnswers(t *testing.T) {
	refusal := &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonUsed}
	for _, tc := range []struct {
		err   error
		class error
	}{
		{io.ErrUnexpectedEOF, pawl.ErrNotConfirmed},
		{&pgconn.ConnectError{}, pawl.ErrNotConfirmed},
		{&pgconn.PgError{Severity: "ERROR", Code: "57014"}, pawl.ErrNotConfirmed},
		{errReplica, pawl.ErrNotConfirmed},
		{&pgconn.PgError{Severity: "ERROR", Code: "26000"}, pawl.ErrMisconfigured},
		{errors.Join(refusal, io.EOF), pawl.ErrRefused},
	} {
		if got := answer(tc.err, pawl.ErrNotConfirmed); !errors.Is(got, tc.class) {
			t.Errorf("%v: %v, want %v", tc.err, got, tc.class)
		}
	}
	if err := answer(nil, pawl.ErrUnavailable); err != nil {
		t.Errorf("no error: %v", err)
	}
	broken := &pgconn.PgError{
		Severity: "ERROR", Code: "23514", Message: "row secret-7f3a violates", Detail: "Failing row contains (secret-7f3a)",
		ConstraintName: "some_check", TableName: "operations",
	}
	err := answer(broken, pawl.ErrNotConfirmed)
	if row, classed := pawl.Row(err); classed || row.Exit != 1 {
		t.Errorf("a violated check has the class %s, want none", row.Name)
	}
	for _, want := range []string{"23514", "some_check", "operations"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "secret-7f3a") { // [S2]
		t.Errorf("the error quotes a row: %s", text)
	}
}
