package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-go/pawl"
)

// fate says what is known of a statement that failed.
type fate uint8

const (
	// fateUnknown: it may have been committed.
	fateUnknown fate = iota
	// fateNothing: certainly nothing was committed, and the cause passes.
	fateNothing
	// fateViolation: certainly nothing was committed, and one of the two uniqueness
	// rules of an admission is why [A7].
	fateViolation
	// fateUnfit: certainly nothing was committed, and the deployment is why.
	fateUnfit
	// fateDefect: certainly nothing was committed, and it would fail again.
	fateDefect
)

// fateOf tells what became of a statement from its error alone: by type and
// SQLSTATE, never by text.
func fateOf(err error) fate {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		if _, connecting := errors.AsType[*pgconn.ConnectError](err); connecting {
			return fateNothing
		}
		return fateOfServer(server)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return fateNothing
	}
	if pgconn.SafeToRetry(err) || errors.Is(err, pgx.ErrTxCommitRollback) || errors.Is(err, errRolledBack) || errors.Is(err, errReplica) {
		return fateNothing
	}
	return fateUnknown
}

// errRolledBack: a COMMIT was answered with ROLLBACK.
const errRolledBack = constError("the commit was answered with a rollback")

// constError is an error that nobody can replace.
type constError string

// Error implements error.
func (e constError) Error() string { return string(e) }

// fateOfServer reads the server's own word. An ERROR undid its statement: once a
// commit has begun, nothing raises one any more. What ends the session may have
// come after the commit, unless it is a timeout of the transaction itself.
func fateOfServer(e *pgconn.PgError) fate {
	if severity(e) != "ERROR" {
		if e.Code == "25P04" { // transaction_timeout aborts the transaction
			return fateNothing
		}
		return fateUnknown
	}
	switch e.Code {
	case "23505":
		if e.ConstraintName == rulePerID || e.ConstraintName == rulePerGrant {
			return fateViolation
		}
		return fateDefect
	case "40003": // statement_completion_unknown
		return fateUnknown
	case "25006", "25P02", "25P03", "25P04", "55P03", "55006":
		return fateNothing
	case "26000", "42P05": // a named statement that another backend has, or has not
		return fateUnfit
	case "0A000":
		if e.Routine == "RevalidateCachedQuery" { // a migration changed what a cached plan returns
			return fateNothing
		}
		return fateDefect
	}
	switch e.Code[:min(2, len(e.Code))] {
	case "08":
		return fateUnknown
	case "40", "53", "57", "58":
		return fateNothing
	}
	return fateDefect
}

// The two uniqueness rules of an admission [A7].
const (
	rulePerID    = "operations_pkey"
	rulePerGrant = "operations_grant"
)

// ruleGrant is the key of issued grants: an issuer's, not an admission's.
const ruleGrant = "grants_key"

// isDuplicate reports whether a statement was undone by a uniqueness rule.
func isDuplicate(err error, rule string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "23505" && e.ConstraintName == rule
}

func severity(e *pgconn.PgError) string {
	if e.SeverityUnlocalized != "" {
		return e.SeverityUnlocalized
	}
	return e.Severity
}

// violated returns the name of the rule that a statement broke, or "".
func violated(err error) string {
	if fateOf(err) != fateViolation {
		return ""
	}
	e, _ := errors.AsType[*pgconn.PgError](err)
	return e.ConstraintName
}

// answer turns an error of the engine into one of Pawl's: lost is the class of an
// answer that could not be had. What is a defect keeps no class [A7].
func answer(err error, lost pawl.Class) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return e
	}
	if d, ok := errors.AsType[*defect](err); ok {
		return d
	}
	if errors.Is(err, errNoStore) {
		return misconfigured("the tables hold no store: restore a backup, or pawl migrate makes a new one")
	}
	if code(err) == codeNoRight {
		return misconfigured("the role lacks a right: %s (docs/stores/postgres.md has the roles)", defectOf(err).what)
	}
	switch fateOf(err) {
	case fateDefect, fateViolation:
		return defectOf(err)
	case fateUnfit:
		return misconfigured("prepared statements do not outlive a transaction (SQLSTATE %s): %s", code(err), poolerFix)
	case fateNothing:
		return &pawl.Error{Class: lost, Reason: pawl.ReasonUnreachable, Note: "nothing was written: " + describe(err)}
	}
	return &pawl.Error{Class: lost, Reason: pawl.ReasonUnreachable, Note: "the answer was lost: " + describe(err)}
}

const poolerFix = "a pooler is in between; connect with default_query_exec_mode=cache_describe"

// describe names an error without the words of the server's detail, which quote
// rows [S2].
func describe(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return severity(e) + " SQLSTATE " + e.Code
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, errReplica):
		return errReplica.Error()
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return "no connection" + whyNot(err)
	}
	return "connection lost"
}

// whyNot tells why there is no connection, without names and addresses.
func whyNot(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return ": the host's name leads nowhere"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return ": nobody listens there"
	}
	return ""
}

func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// defect is a failure that would come again: it belongs to no class, is never
// retried and never called unavailable [A7].
type defect struct {
	what       string
	code       string
	table      string
	constraint string
}

// Error implements error. It quotes no row and no argument [S2].
func (d *defect) Error() string {
	var b strings.Builder
	b.WriteString("pgstore: ")
	b.WriteString(d.what)
	for _, part := range []struct{ name, value string }{{"SQLSTATE", d.code}, {"constraint", d.constraint}, {"table", d.table}} {
		if part.value != "" {
			fmt.Fprintf(&b, ", %s %s", part.name, part.value)
		}
	}
	return b.String()
}

// defectOf keeps of a server's error what quotes nobody: the message only where
// it is about names and rights.
func defectOf(err error) *defect {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return &defect{what: "the statement failed"}
	}
	d := &defect{what: "the statement failed", code: e.Code, table: e.TableName, constraint: e.ConstraintName}
	if strings.HasPrefix(e.Code, "42") || strings.HasPrefix(e.Code, "0A") {
		d.what = e.Message
	}
	return d
}
