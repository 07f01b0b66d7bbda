package pgstore

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl/internal/pgtest"
)

// large are the tables that grow: nothing on the way of an admission, of an owner,
// of recovery or of a purge may read one from end to end.
func large() []string { return []string{"claims", "operations", "grants", "entries"} }

// planned are the statements whose plans are asserted. Erasure is not among them:
// it looks for one principal among all, and is a person's rare request.
func planned() map[statement]bool {
	return map[statement]bool{ // whether it runs on an admission's connection
		stmtAdmitToken: true, stmtAdmitStored: true, stmtReserve: true, stmtFindings: true,
		stmtIssueGrant: false, stmtRequestGrant: false, stmtGetGrant: false, stmtListGrants: false,
		stmtRevocationFindings: false, stmtRevokeGrant: false, stmtRetainRevocation: false, stmtClaimedBy: false, stmtRevokeIntent: false,
		stmtGetOperation: false, stmtListOperations: false, stmtListEntries: false, stmtLockOperation: false, stmtTakeOver: false, stmtWriteChange: false,
		stmtPurgeClaims: false, stmtPurgeGrants: false, stmtLockDueOperations: false, stmtDeleteLogs: false, stmtDeleteOperations: false,
		stmtLockDueLogs: false, stmtPurgeEntries: false, stmtNotePurgedLogs: false, stmtPurgeResults: false, stmtPurgeSummary: false,
	}
}

// TestPlans: no plan scans a large table, whether it was made on empty tables, is
// kept from then while they fill, or is made on full ones [A11].
func TestPlans(t *testing.T) {
	eachVersion(t, func(t *testing.T, _ pgtest.Version, dsn string) {
		tb := mustTables(t, dsn)
		s := tb.mustOpen(t, Options{AdmissionConns: 1, Conns: 1})
		conns := map[bool]*pgxpool.Conn{true: hold(t, s.admissions), false: hold(t, s.ordinary)}
		explain := func(when string) {
			for name, admits := range planned() {
				wantNoScan(t, conns[admits], s.sql, name, when)
			}
		}
		for name, admits := range planned() {
			sql := fmt.Sprintf("PREPARE %s AS %s", name, s.sql[name])
			if _, err := conns[admits].Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		explain("on empty tables")
		tb.mustExec(t, "ANALYZE @@.claims, @@.operations, @@.grants, @@.entries")
		explain("on empty tables that were analysed")
		tb.fill(t, sized(t, "PAWL_ROWS", 5000))
		explain("kept from when the tables were empty")
		for _, table := range large() {
			tb.mustExec(t, "ANALYZE @@."+table)
		}
		explain("on full tables")
	})
}

func hold(t *testing.T, pool *pgxpool.Pool) *pgxpool.Conn {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	return conn
}

func wantNoScan(t *testing.T, conn *pgxpool.Conn, texts statements, name statement, when string) {
	t.Helper()
	arguments := 0
	for _, m := range regexp.MustCompile(`\$(\d+)`).FindAllStringSubmatch(texts[name], -1) {
		n, _ := strconv.Atoi(m[1])
		arguments = max(arguments, n)
	}
	call := "EXPLAIN (COSTS OFF) EXECUTE " + string(name)
	if arguments > 0 {
		call += "(" + strings.TrimSuffix(strings.Repeat("NULL,", arguments), ",") + ")"
	}
	rows, err := conn.Query(t.Context(), call)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, table := range large() {
		if regexp.MustCompile(`Seq Scan on (\w+\.)?` + table + `\b`).MatchString(plan.String()) {
			t.Errorf("%s, %s, scans %s:\n%s", name, when, table, plan.String())
		}
	}
}

// fill puts rows of every sort into the tables: half of the operations are open,
// a tenth of the claims are due.
func (tb *tables) fill(t *testing.T, rows int) {
	t.Helper()
	tb.mustExec(t, fmt.Sprintf(`
INSERT INTO @@.operations (id, issuer, namespace, grant_id, kind, details, authority, principal, tenant, generation, scopes, fingerprint,
       binding, created_at, submit_by, owned_since, lease_until, status, result, result_digest, settled_at, log_due_from, result_due_from)
SELECT gen_random_uuid(), 'issuer', '', 'old-' || n, 'credit.create', '{}', '', 'p' || n %% 1000, '', '', '{}', sha256(n::text::bytea), sha256(''),
       at, at, at, at, CASE WHEN n %% 2 = 0 THEN 60 ELSE 10 END, CASE WHEN n %% 2 = 0 THEN 'r'::bytea END,
       CASE WHEN n %% 2 = 0 THEN sha256('r') END, CASE WHEN n %% 2 = 0 THEN at END, CASE WHEN n %% 2 = 0 THEN at END, CASE WHEN n %% 2 = 0 THEN at END
  FROM (SELECT n, now() - n * interval '1 second' AS at FROM generate_series(1, %[1]d) AS n) AS s;
INSERT INTO @@.claims (issuer, namespace, grant_id, operation_id, claimed_at, retain_until)
SELECT 'issuer', '', grant_id, id, created_at, created_at + interval '1 hour' FROM @@.operations;
INSERT INTO @@.entries (operation_id, key, seq, type, at, last_at, count, fence, source, verdict, disposition, contradiction, mismatch_of, reason)
SELECT id, '1', 1, 'outcome', created_at, created_at, 1, 1, 'owner', 2, 'applied', false, '', '' FROM @@.operations WHERE status = 60;
INSERT INTO @@.grants (issuer, namespace, grant_id, form, request_id, request_digest, subject, tenant, authority, kind, details, fingerprint,
       issued_at, expires_at, leeway_policy)
SELECT issuer, '', grant_id, 2, grant_id, fingerprint, principal, '', '', kind, details, fingerprint, created_at, created_at + interval '1 hour', ''
  FROM @@.operations;
`, rows))
}
