package pgstore

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/pgtest"
	"github.com/pawl-go/pawl/storetest"
)

// variant is the store with one statement wrong, and a case of the suite that must
// notice.
type variant struct {
	name      string
	statement statement
	cut, put  string // what is replaced by what
	cases     []string
}

func variants() []variant {
	const deadline = "AND $8::timestamptz + s.leeway > statement_timestamp()"
	conflict := "ON CONFLICT (issuer, namespace, grant_id) DO NOTHING"
	return []variant{
		{"no deadline", stmtAdmitToken, deadline, "", []string{"C-B8"}},
		{"a deadline that is not strict", stmtAdmitToken, deadline, strings.Replace(deadline, ">", ">=", 1), []string{"A4-strict"}},
		{"no leeway", stmtAdmitToken, deadline, strings.Replace(deadline, "+ s.leeway ", "", 1), []string{"C-B8"}},
		{"a lifetime over the policy's", stmtAdmitToken, "AND $8::timestamptz <= $6::timestamptz + s.max_grant_lifetime", "", []string{"C-B7", "A4-strict"}},
		{"issued in the future", stmtAdmitToken, "AND $6::timestamptz <= statement_timestamp() + s.issue_skew", "", []string{"A4-future"}},
		{"not valid yet", stmtAdmitToken, "$7::timestamptz <= statement_timestamp() + s.leeway", "true", []string{"A4-future"}},
		{"any realm", stmtAdmitToken, "WHERE s.realm = $4::text", "WHERE $4::text IS NOT NULL", []string{"C-A24"}},
		{"no epoch", stmtAdmitToken, "AND (s.issued_not_before IS NULL OR $6::timestamptz >= s.issued_not_before)", "", []string{"C-A23"}},
		{"losers fail", stmtAdmitToken, conflict, "", []string{"C-A2"}},
		{"anybody's stored grant", stmtAdmitStored, "AND g.subject = $8::text AND g.tenant = $9::text", "", []string{"A2-stored", "C-B4", "C-A27"}},
		{"a stored grant for anything", stmtAdmitStored, "AND g.fingerprint = $12::bytea", "", []string{"A2-stored", "C-B4"}},
		{"a stored grant without end", stmtAdmitStored, "AND g.expires_at + l.leeway > statement_timestamp()", "", []string{"A4-stored"}},
		{"a reservation fails", stmtReserve, "ON CONFLICT (id) DO NOTHING", "", []string{"B1-join"}},
		{"a record without lock", stmtLockOperation, "FOR UPDATE", "", []string{"O2-race", "C-E4", "C-E5", "C-E10"}},
		{"takeovers without lock", stmtTakeOver, "FOR UPDATE SKIP LOCKED", "", []string{"C-D4", "O2-race"}},
		{"entries that are not counted", stmtWriteChange, "SET count = e.count + 1, last_at = excluded.last_at", "SET count = e.count", []string{"M6-counts"}},
		{"the margin is forgotten", stmtPurgeClaims, "- (SELECT m.purge_margin FROM pawl.meta AS m)", "", []string{"C-C5"}},
		{"retention from creation", stmtLockDueOperations, "o.settled_at < ", "o.created_at < ", []string{"C-C9"}},
		{"non-terminal operations go", stmtLockDueOperations, "o.settled_at < ", "coalesce(o.settled_at, o.created_at) < ", []string{"C-C10"}},
		{"a revocation overwrites a claim", stmtRevokeGrant, conflict, "ON CONFLICT (issuer, namespace, grant_id) DO UPDATE SET operation_id = NULL, revoked_by = excluded.revoked_by", []string{"C-C2", "C-C1"}},
	}
}

// TestSuiteCatches: each wrong statement is caught by the suite. A suite that
// cannot fail proves nothing.
func TestSuiteCatches(t *testing.T) {
	v := pgtest.Newest(t)
	dsn := pgtest.Shared(t, v).Database(t)
	for _, w := range variants() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := &rig{t: t, version: v, dsn: dsn, edit: func(tb *tables, texts statements) { w.apply(t, tb, texts) }}
			h := storetest.Harness{Name: w.name, Deploy: r.deploy}
			for _, id := range w.cases {
				report, err := storetest.Check(t.Context(), h, caseOf(t, id))
				if err != nil {
					t.Fatal(err)
				}
				if len(report.Violations) > 0 {
					t.Logf("caught: %v", report.Violations[0])
					return
				}
			}
			t.Errorf("none of %v notices", w.cases)
		})
	}
}

// apply makes the statement wrong. What it looks for must be there.
func (w variant) apply(t *testing.T, tb *tables, texts statements) {
	here := func(text string) string { return tb.onClock(inSchema(text, tb.schema)) }
	if !strings.Contains(texts[w.statement], here(w.cut)) {
		t.Errorf("%s does not say %q", w.statement, w.cut)
	}
	texts[w.statement] = strings.Replace(texts[w.statement], here(w.cut), here(w.put), 1)
}

func caseOf(t *testing.T, id string) storetest.Case {
	t.Helper()
	for _, c := range storetest.Cases() {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("the suite has no case %s", id)
	return storetest.Case{}
}
