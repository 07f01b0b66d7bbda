package pgstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// TestOptions: what could not keep the promise is refused before any server is
// asked [A3, T1].
func TestOptions(t *testing.T) {
	broken, odd, instant := pawl.DefaultTimings(), pawl.DefaultTimings(), pawl.DefaultTimings()
	broken.PurgeMargin = 0
	odd.IssueSkew += time.Nanosecond
	instant.AdmissionBound = time.Microsecond
	for name, o := range map[string]*Options{
		"a schema with a quote":          {Schema: `a"b`},
		"a schema in capitals":           {Schema: "Pawl"},
		"a schema of 64 letters":         {Schema: strings.Repeat("a", 64)},
		"timings that break a rule":      {Timings: &broken},
		"half microseconds":              {Timings: &odd},
		"a bound under a millisecond":    {Timings: &instant},
		"asynchronous commits":           {SynchronousCommit: "off"},
		"no such commit":                 {SynchronousCommit: "sometimes"},
		"replicated, but locally":        {Replicated: true, SynchronousCommit: "local"},
		"replicated, but only written":   {Replicated: true, SynchronousCommit: "remote_write"},
		"no connections":                 {Conns: -1},
		"too many admission connections": {AdmissionConns: maxConns + 1},
		"no such pins":                   {Pins: PinByRole + 1},
	} {
		if _, err := o.resolve(); !errors.Is(err, pawl.ErrMisconfigured) {
			t.Errorf("%s: %v, want misconfigured", name, err)
		}
		if _, err := Open(t.Context(), "postgres://127.0.0.1:1/none", o); !errors.Is(err, pawl.ErrMisconfigured) {
			t.Errorf("opening with %s: %v, want misconfigured", name, err)
		}
	}
	if _, err := (&Options{Realm: "a\x00b"}).resolve(); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("a malformed realm: %v, want invalid", err)
	}
	for name, o := range map[string]*Options{
		"none": nil, "defaults": {}, "a schema of 63 letters": {Schema: strings.Repeat("a", 63)},
		"remote_apply": {Replicated: true, SynchronousCommit: "remote_apply"}, "local": {SynchronousCommit: "local"},
	} {
		if _, err := o.resolve(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestConnectionStrings: what cannot be read is refused without quoting it [S2].
func TestConnectionStrings(t *testing.T) {
	for name, dsn := range map[string]string{
		"empty": "", "blank": "  ", "no string": "postgres://user:hunter2@host:port/db",
		"C-A15 the simple protocol": "postgres://u:hunter2@127.0.0.1/db?default_query_exec_mode=simple_protocol",
		"C-A15 two round trips":     "postgres://u:hunter2@127.0.0.1/db?default_query_exec_mode=describe_exec",
	} {
		_, err := Open(t.Context(), dsn, nil)
		if !errors.Is(err, pawl.ErrMisconfigured) {
			t.Errorf("%s: %v, want misconfigured", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error quotes the password: %v", name, err)
		}
	}
}

// TestPins: the bound that a server enforces is never longer than what the store
// allows, and on PostgreSQL 17 the statement's own comes first [A11, P1].
func TestPins(t *testing.T) {
	o, err := (*Options)(nil).resolve()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		version                int
		purpose                purpose
		statement, transaction string
	}{
		{150018, forAdmissions, "5000", ""},
		{160014, forAdmissions, "5000", ""},
		{170010, forAdmissions, "4500", "5000"},
		{180004, forAdmissions, "4500", "5000"},
		{150018, forTheRest, "30000", ""},
		{180004, forTheRest, "27000", "30000"},
	} {
		pins := o.pins(server{version: tc.version}, tc.purpose)
		if pins["statement_timeout"] != tc.statement || pins["transaction_timeout"] != tc.transaction {
			t.Errorf("version %d, purpose %d: statement_timeout %s, transaction_timeout %q; want %s, %q",
				tc.version, tc.purpose, pins["statement_timeout"], pins["transaction_timeout"], tc.statement, tc.transaction)
		}
		if _, sent := pins["transaction_timeout"]; sent && tc.version < 170000 {
			t.Errorf("version %d is sent a setting it does not know", tc.version)
		}
		if pins["client_min_messages"] != "warning" || pins["default_transaction_isolation"] != "read committed" || pins["synchronous_commit"] != "on" {
			t.Errorf("version %d, purpose %d: pins are %v", tc.version, tc.purpose, pins)
		}
	}
	if got := milliseconds(time.Microsecond); got != "1" {
		t.Errorf("a microsecond is %s ms to the server, want 1: 0 would be no bound", got)
	}
}
