package pgstore

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// statement names one file of sql/.
type statement string

// The statements. Each file says what it does and which clauses it carries.
const (
	stmtProbe        statement = "probe"
	stmtSchemaState  statement = "schema_state"
	stmtSession      statement = "session"
	stmtWriteSession statement = "write_session"

	stmtGetMeta      statement = "get_meta"
	stmtLockMeta     statement = "lock_meta"
	stmtCreateMeta   statement = "create_meta"
	stmtCreateSecret statement = "create_secret"
	stmtGetSecret    statement = "get_secret"
	stmtAddLeeway    statement = "add_leeway"
	stmtAdoptPolicy  statement = "adopt_policy"
	stmtRaiseEpoch   statement = "raise_epoch"

	stmtAdmitToken  statement = "admit_token"
	stmtAdmitStored statement = "admit_stored"
	stmtReserve     statement = "reserve"
	stmtFindings    statement = "findings"

	stmtIssueGrant         statement = "issue_grant"
	stmtRequestGrant       statement = "request_grant"
	stmtGetGrant           statement = "get_grant"
	stmtListGrants         statement = "list_grants"
	stmtRevocationFindings statement = "revocation_findings"
	stmtRevokeGrant        statement = "revoke_grant"
	stmtRetainRevocation   statement = "retain_revocation"
	stmtClaimedBy          statement = "claimed_by"
	stmtRevokeIntent       statement = "revoke_intent"

	stmtGetOperation   statement = "get_operation"
	stmtListOperations statement = "list_operations"
	stmtListEntries    statement = "list_entries"
	stmtLockOperation  statement = "lock_operation"
	stmtTakeOver       statement = "take_over"
	stmtWriteChange    statement = "write_change"

	stmtPurgeClaims       statement = "purge_claims"
	stmtPurgeGrants       statement = "purge_grants"
	stmtLockDueOperations statement = "lock_due_operations"
	stmtDeleteLogs        statement = "delete_logs"
	stmtDeleteOperations  statement = "delete_operations"
	stmtLockDueLogs       statement = "lock_due_logs"
	stmtPurgeEntries      statement = "purge_entries"
	stmtNotePurgedLogs    statement = "note_purged_logs"
	stmtPurgeResults      statement = "purge_results"
	stmtPurgeSummary      statement = "purge_summary"
	stmtEraseOperations   statement = "erase_operations"
	stmtCountErasable     statement = "count_erasable"

	stmtDeployment statement = "deployment"
)

// statements are the texts of all files for one schema.
type statements map[statement]string

// partPrefix begins the names of files that are no statement but a list of
// columns which several statements read: "@policy" stands for part_policy.sql.
const partPrefix = "part_"

// loadStatements reads the files for a schema, whose name needs no quotes in it.
func loadStatements(schema string) (statements, error) {
	files, err := fs.Glob(sqlFiles, "sql/*.sql")
	if err != nil {
		return nil, err
	}
	texts := statements{}
	var parts []string
	for _, file := range files {
		raw, err := fs.ReadFile(sqlFiles, file)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(path.Base(file), ".sql")
		text := withoutComments(string(raw))
		if part, ok := strings.CutPrefix(name, partPrefix); ok {
			parts = append(parts, "@"+part, text)
			continue
		}
		texts[statement(name)] = text
	}
	insert := strings.NewReplacer(parts...)
	for name, text := range texts {
		text = inSchema(insert.Replace(text), schema)
		if i := strings.IndexByte(text, '@'); i >= 0 {
			return nil, fmt.Errorf("pgstore: statement %s names a part that is not there", name)
		}
		texts[name] = text
	}
	return texts, nil
}

// inSchema puts the schema's name where the files say pawl.
func inSchema(text, schema string) string {
	return strings.ReplaceAll(text, defaultSchema+".", quoted(schema)+".")
}

// quoted is an identifier in quotes, which a reserved word needs.
func quoted(schema string) string { return `"` + schema + `"` }

// withoutComments leaves out what the server need not read each time. No string
// in a statement holds two hyphens; a test sees to that.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "--")
		if code = strings.TrimRight(code, " \n"); code != "" {
			b.WriteString(code + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
