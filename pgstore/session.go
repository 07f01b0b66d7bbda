package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// purpose says what a connection is for.
type purpose uint8

const (
	forAdmissions purpose = iota
	forTheRest
)

// pins are the settings that Pawl depends on, in the server's own spelling, as
// they travel with the start-up of a connection [A11].
func (s *settings) pins(v server, p purpose) map[string]string {
	pins := map[string]string{
		"client_min_messages":           "warning", // the notice of a cancelled wait must arrive [A3]
		"default_transaction_isolation": "read committed",
		"default_transaction_read_only": "off",
		"synchronous_commit":            s.SynchronousCommit,
		"lock_timeout":                  "0", // a loser waits and gets zero rows; the bound ends the wait
		"search_path":                   "pg_catalog",
		"TimeZone":                      "UTC",
		"DateStyle":                     "ISO",
		"jit":                           "off",
		// Planning again each time costs more than the rest of an admission. A plan that is kept must not have
		// been made to scan a table because that was empty at the time.
		"plan_cache_mode": "force_generic_plan",
		"enable_seqscan":  "off",
	}
	bound := s.policy.AdmissionBound
	if p == forTheRest {
		bound = callLimit
		pins["idle_in_transaction_session_timeout"] = milliseconds(bound)
	}
	pins["statement_timeout"] = milliseconds(bound)
	if v.hasTransactionTimeout() {
		pins["transaction_timeout"] = milliseconds(bound)
		pins["statement_timeout"] = milliseconds(bound - bound/10) // comes first and spares the session
	}
	return pins
}

// milliseconds is a duration in the server's unit, rounded down and never 0,
// which would be no bound.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}

// inForce are the settings of one session as the server reads them, at the time
// of one statement.
type inForce struct {
	storeID         uuid.UUID
	replicated      bool  // what the store demands
	admissionMicros int64 // and the bound that it allows
	recovering      bool
	isolation       string
	minMessages     string
	commit          string
	standbys        string
	boundMicros     int64
}

// columns are the destinations of @session.
func (f *inForce) columns() []any {
	return []any{
		&f.storeID, &f.replicated, &f.admissionMicros,
		&f.recovering, &f.isolation, &f.minMessages, &f.commit, &f.standbys, &f.boundMicros,
	}
}

// bounded reports whether the server bounds an admission of this session [P1].
func (f *inForce) bounded() bool {
	return f.boundMicros >= 1000 && f.boundMicros <= f.admissionMicros
}

func (f *inForce) bound() string {
	if f.boundMicros == 0 {
		return "none"
	}
	return (time.Duration(f.boundMicros) * time.Microsecond).String()
}

// faults names what is wrong with a session. The admission statements decide;
// this explains them, and is all that guards a write that is no admission.
func (s *Store) faults(f *inForce, p purpose) []string {
	var faults []string
	fault := func(fix, format string, args ...any) {
		faults = append(faults, fmt.Sprintf(format, args...)+" ("+fix+")")
	}
	if f.isolation != "read committed" {
		fault(s.pinFix("default_transaction_isolation", "read committed"),
			"transaction_isolation is %s, not read committed", f.isolation)
	}
	if hidesWarnings(f.minMessages) {
		fault(s.pinFix("client_min_messages", "warning"),
			"client_min_messages is %s, which hides the warning of a cancelled wait", f.minMessages)
	}
	if !safeCommit(f.commit, f.replicated) {
		fault(s.pinFix("synchronous_commit", "on"), "synchronous_commit is %s", f.commit)
	}
	if f.replicated && f.standbys == "" {
		fault(standbysFix, "synchronous_standby_names is empty although the store promises to survive a fail-over")
	}
	if limit := time.Duration(f.admissionMicros) * time.Microsecond; p == forAdmissions && !f.bounded() {
		fault(s.pinFix(s.boundName(), limit.String()),
			"the bound on an admission is %s, not over 0 and at most %v", f.bound(), limit)
	}
	return faults
}

// errReplica: the server is recovering. Once a store is open that is a fail-over
// under way, so the call may be repeated.
const errReplica = constError("the server is a replica")

// hidesWarnings reports whether a session is told of nothing but errors.
func hidesWarnings(minMessages string) bool {
	switch minMessages {
	case "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning":
		return false
	}
	return true
}

// unfit returns why a session may not be used for a purpose: ErrMisconfigured
// naming every fault, or nil [A1, A11].
func (s *Store) unfit(f *inForce, p purpose) error {
	if f.recovering {
		return errReplica
	}
	if f.storeID == uuid.Nil {
		return misconfigured("the database has no store any more")
	}
	if id := f.storeID.String(); id != s.id {
		return misconfigured("this is the store %s, not %s", id, s.id)
	}
	if faults := s.faults(f, p); faults != nil {
		return misconfigured("this session may write nothing: %s", strings.Join(faults, "; "))
	}
	return nil
}

// readBack is run on each new connection before it is used: what was pinned must
// be in force, and it must be this store [A1, A11].
func (s *Store) readBack(p purpose) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterDefaultPgType([]uuid.UUID{}, "_uuid") // for the mode that asks no server for types
		var version int
		var f inForce
		row := conn.QueryRow(ctx, s.sql[stmtSession], pgx.QueryExecModeExec)
		if err := row.Scan(append([]any{&version}, f.columns()...)...); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if v := (server{version: version}); v.hasTransactionTimeout() != s.server.hasTransactionTimeout() {
			return misconfigured("the server's version is %d, and was %d when the store was opened: restart", version, s.server.version)
		}
		return s.unfit(&f, p)
	}
}

// sessionStep reads whether a session may write, inside the transaction that does.
func (s *Store) sessionStep(f *inForce) step {
	return step{sql: s.sql[stmtWriteSession], each: func(scan scanner) error {
		return scan(f.columns()...)
	}}
}
