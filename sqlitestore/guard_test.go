package sqlitestore_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/pawl-go/pawl"
)

// TestSchemaHoldsTheRules: whoever reaches the file by another way than this
// package is held to what the contract says never changes.
func TestSchemaHoldsTheRules(t *testing.T) {
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	a := presented(s, "g", pawl.NewOperationID(), justNow())
	got, err := s.Admit(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Record(ctx, pawl.Statement{ID: a.OperationID, Token: got.Owner.Token, Outcome: pawl.Succeeded("done")}); err != nil {
		t.Fatal(err)
	}
	issued, err := s.Issue(ctx, pawl.Issuance{
		RequestID: "r", Form: pawl.FormStored, Issuer: "issuer", Subject: "ana", Intent: a.Intent, Lifetime: time.Hour, GrantID: "stored",
	})
	if err != nil || issued.Again {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", s.Path()+"?_pragma=busy_timeout(2000)&_pragma=foreign_keys(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const constraint = 19 // SQLITE_CONSTRAINT, whichever
	for clause, statements := range map[string][]string{
		"A1": {
			"UPDATE pawl_meta SET realm = 'other'", "UPDATE pawl_meta SET store_id = 'other'",
			"UPDATE pawl_meta SET token_secret = zeroblob(32)", "INSERT INTO pawl_meta SELECT 2, 'x', 'x', token_secret, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1 FROM pawl_meta",
		},
		"A2": {"UPDATE pawl_grants SET expires_at = expires_at + 1", "UPDATE pawl_grants SET subject = 'eve'"},
		"A4": {"UPDATE pawl_leeways SET leeway = 1"},
		"A7": {
			"INSERT INTO pawl_claims SELECT issuer, namespace, grant_id, zeroblob(16), claimed_at, retain_until, NULL, NULL FROM pawl_claims",
		},
		"A10": {"UPDATE pawl_claims SET retain_until = retain_until + 1", "UPDATE pawl_claims SET operation_id = zeroblob(16)"},
		"A12": {"UPDATE pawl_meta SET epoch = -1"},
		"B1": {
			"UPDATE pawl_operations SET fingerprint = zeroblob(32)", "UPDATE pawl_operations SET binding = zeroblob(32)",
			"UPDATE pawl_operations SET principal = 'eve'", "UPDATE pawl_operations SET grant_id = 'other'",
			"UPDATE pawl_operations SET submit_by = submit_by + 1",
		},
		"M1": {
			"UPDATE pawl_operations SET status = 50, result = NULL, result_digest = NULL", "UPDATE pawl_operations SET result = x'01'",
			"UPDATE pawl_operations SET result = NULL", "UPDATE pawl_operations SET settled_at = NULL",
			"UPDATE pawl_operations SET status = 61",
		},
		"M7": {"UPDATE pawl_operations SET mismatch_seen = 2"},
		"O1": {"UPDATE pawl_operations SET fence = fence - 1"},
		"P1": {"UPDATE pawl_meta SET time_floor = time_floor - 1"},
	} {
		for _, statement := range statements {
			_, err := db.ExecContext(ctx, statement)
			if refusal, ok := errors.AsType[*sqlite.Error](err); !ok || refusal.Code()&0xff != constraint {
				t.Errorf("[%s] not refused by a constraint: %s: %v", clause, statement, err)
			}
		}
	}
}

// A record that is not what was written is a defect, for everybody who reads it
// in order to act.
func TestTamperedRecord(t *testing.T) {
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	a := presented(s, "g", pawl.NewOperationID(), justNow())
	got, err := s.Admit(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, s.Path(), `DROP TRIGGER pawl_operations_fixed; UPDATE pawl_operations SET details = '{"amount":"9999.00"}'`)
	_, errGet := s.Get(ctx, a.OperationID, pawl.AsOperator())
	_, errAdmit := s.Admit(ctx, a)
	_, errSubmit := s.MaySubmit(ctx, a.OperationID, got.Owner.Token)
	for call, err := range map[string]error{"Get": errGet, "Admit": errAdmit, "MaySubmit": errSubmit} {
		if _, classed := pawl.Row(err); err == nil || classed {
			t.Errorf("%s: %v, want a defect", call, err)
		}
	}
}

// A full disk confirms nothing and is no end: with room again the store goes on
// [A6]. The limit on pages is the engine's, set on the connection that writes.
func TestDiskIsFull(t *testing.T) {
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	tx, err := s.BeginTx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.ExecContext(ctx, "PRAGMA max_page_count = 1") // the engine makes it the present size
	if err := errors.Join(err, tx.Commit()); err != nil {
		t.Fatal(err)
	}
	full := false
	for n := 0; n < 200 && !full; n++ {
		a := admission(s, "credit.create", time.Hour)
		_, err := s.Admit(ctx, a)
		if full = err != nil; !full {
			continue
		}
		if !errors.Is(err, pawl.ErrNotConfirmed) || pawl.ReasonOf(err) != pawl.ReasonUnreachable {
			t.Errorf("%v, want ErrNotConfirmed as unreachable", err)
		}
		if got, err := s.Admit(ctx, a); err != nil || !got.Fresh {
			t.Errorf("with room again: fresh %v, %v", got.Fresh, err)
		}
	}
	if !full {
		t.Error("the disk never filled")
	}
	inspect(t, s.Path(), -1)
}

// Cursors that this store did not make are malformed.
func TestForeignCursors(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	for _, cursor := range []string{"x", "AQ", "AAAAAAAAAAAB", "AQAAAAAAAAAA", "Af__________", "AgAAAAAAAAAB", "AQAAAAAAAAABAA", "AQAAAAAAAAAB="} {
		if _, err := s.List(t.Context(), pawl.Filter{Cursor: cursor}); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("List with cursor %q: %v", cursor, err)
		}
		if _, err := s.Grants(t.Context(), pawl.GrantFilter{Cursor: cursor}); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("Grants with cursor %q: %v", cursor, err)
		}
	}
	if _, err := s.List(t.Context(), pawl.Filter{Cursor: "AQAAAAAAAAAB"}); err != nil {
		t.Errorf("a cursor: %v", err)
	}
}
