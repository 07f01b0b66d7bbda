package pgstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

// Check implements pawl.Store. It asks a connection that admissions use, so that
// what it reports is what an admission meets.
func (s *Store) Check(ctx context.Context) (pawl.Facts, error) {
	return call(ctx, s, s.admissions, pawl.ErrUnavailable, func(ctx context.Context, on session) (pawl.Facts, error) {
		d, err := s.readDeployment(ctx, on)
		if err != nil {
			return pawl.Facts{}, err
		}
		stored, err := d.identity.policy.agreed()
		if err != nil {
			return pawl.Facts{}, err
		}
		_, differs := stored.Agree(s.policy.Policy) // another instance may have adopted another since
		return s.facts(d, stored, nil, differs), nil
	})
}

// deployment is what deployment.sql reads.
type deployment struct {
	version           string
	now               time.Time
	fsync, fullPages  bool
	encoding          string
	timeZone          string
	roleDefaults      string // JSON
	pid               uint32
	schema, minReader int
	identity          identity
	unlogged, missing int
	rules             string // JSON
	session           inForce
}

func (s *Store) readDeployment(ctx context.Context, on session) (d deployment, err error) {
	found := false
	var notBefore *time.Time
	dest := []any{
		&d.version, &d.now, &d.fsync, &d.fullPages, &d.encoding, &d.timeZone, &d.roleDefaults, &d.pid, &d.schema, &d.minReader,
		&d.identity.realm, &d.identity.epoch.Number, &notBefore, &d.unlogged, &d.missing, &d.rules,
	}
	dest = append(append(dest, d.identity.policy.columns()...), d.session.columns()...)
	err = on.run(ctx, step{sql: s.sql[stmtDeployment], args: []any{s.Schema}, each: func(scan scanner) error {
		found = true
		return scan(dest...)
	}})
	if err == nil && !found {
		err = errNoStore
	}
	d.identity.epoch.IssuedNotBefore = timeOf(notBefore)
	return d, err
}

// facts are what a deployment says, policy what stands in it, and what an instance
// has against its identity and its policy.
func (s *Store) facts(d deployment, policy agreed, pinned, differs error) pawl.Facts {
	f := pawl.Facts{
		Engine: "postgres " + d.version, StoreID: d.session.storeID.String(), Realm: d.identity.realm, Scope: pawl.ScopeCluster,
		Clock: "the primary's clock", Now: d.now.UTC(), Epoch: d.identity.epoch, Policy: policy.Policy,
		Survives: []string{"a crash and a restart of the server"},
	}
	const promotion = "the promotion of a standby"
	if policy.Replicated {
		f.Survives = append(f.Survives, promotion+" that confirms commits")
		f.Not = []string{promotion + " that does not", "a restore from backup, before the epoch is raised"}
	} else {
		f.Not = []string{"the loss of the server's disk", promotion, "a restore from backup, before the epoch is raised"}
	}
	if !d.session.bounded() {
		f.PurgeHeld = "no finite bound on an admission is in force"
	}
	f.Checks = slices.Concat(s.serverFacts(d), s.sessionFacts(d, policy), s.schemaFacts(d), s.declaredFacts(), pawl.AgreementFacts(pinned, differs))
	return f
}

func (s *Store) serverFacts(d deployment) []pawl.Fact {
	role := "primary"
	if d.session.recovering {
		role = "replica"
	}
	return []pawl.Fact{
		pawl.MustHold("server", role, !d.session.recovering, "connect to the primary, for example with target_session_attrs=read-write"),
		pawl.MustHold("fsync", onOff(d.fsync), d.fsync, "ALTER SYSTEM SET fsync = on"),
		pawl.MustHold("full_page_writes", onOff(d.fullPages), d.fullPages, "ALTER SYSTEM SET full_page_writes = on"),
		pawl.MustHold("encoding", d.encoding, d.encoding == "UTF8", "use a database whose encoding is UTF8"),
		s.connectionFact(),
	}
}

// connectionFact tells whether something stands between: the backend that answers
// is then not the one that was connected to.
func (s *Store) connectionFact() pawl.Fact {
	if s.server.pooled {
		return pawl.Fact{Name: "connection", Value: "through a pooler; no statement is prepared by name", OK: true}
	}
	return pawl.Fact{Name: "connection", Value: "direct", OK: true}
}

func (s *Store) sessionFacts(d deployment, policy agreed) []pawl.Fact {
	f := d.session
	standbys := f.standbys
	if standbys == "" {
		standbys = "none"
	}
	pinned := "start-up parameters"
	if s.Pins == PinByRole {
		pinned = "the role's settings"
	}
	facts := []pawl.Fact{
		pawl.MustHold("transaction_isolation", f.isolation, f.isolation == "read committed", s.pinFix("default_transaction_isolation", "read committed")),
		pawl.MustHold("synchronous_commit", f.commit, safeCommit(f.commit, policy.Replicated), s.pinFix("synchronous_commit", "on")),
		pawl.MustHold("synchronous_standby_names", standbys, !policy.Replicated && !s.Replicated || f.standbys != "",
			standbysFix),
		pawl.MustHold("client_min_messages", f.minMessages, !hidesWarnings(f.minMessages), s.pinFix("client_min_messages", "warning")),
		pawl.MustHold(s.boundName(), f.bound(), f.bounded(), s.pinFix(s.boundName(), policy.AdmissionBound.String())),
		s.purgeFact(d),
		{Name: "pins", Value: pinned, OK: true},
		{Name: "time zone", Value: d.timeZone + "; no verdict depends on it", OK: true},
	}
	var defaults []string
	if json.Unmarshal([]byte(d.roleDefaults), &defaults) == nil && len(defaults) > 0 {
		facts = append(facts, pawl.Fact{Name: "role and database settings", Value: strings.Join(defaults, ", "), OK: true})
	}
	return facts
}

// purgeFact tells whether refusal records can be deleted [P2].
func (s *Store) purgeFact(d deployment) pawl.Fact {
	if d.session.bounded() {
		return pawl.Fact{Name: "purge", Value: "safe: " + s.boundName() + " ends every admission before the margin is over", OK: true}
	}
	return pawl.Fact{Name: "purge", Value: "held: refusal records are kept", Fix: "put " + s.boundName() + " in force"}
}

const standbysFix = "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (…)', and SELECT pg_reload_conf()"

func (s *Store) pinFix(setting, value string) string {
	if s.Pins == PinByRole {
		return fmt.Sprintf("ALTER ROLE … SET %s = '%s'", setting, value)
	}
	return fmt.Sprintf("something between here and the server changes %s after the connection is made", setting)
}

func (s *Store) schemaFacts(d deployment) []pawl.Fact {
	known := fmt.Sprintf("version %d, readable from %d", d.schema, d.minReader)
	facts := []pawl.Fact{
		pawl.MustHold("missing tables", strconv.Itoa(d.missing), d.missing == 0, "restore a backup, then raise the epoch"),
		pawl.MustHold("tables", known, d.schema >= schemaVersion && d.minReader <= schemaVersion, "run pawl migrate, or a newer pawl"),
		pawl.MustHold("logged tables", fmt.Sprintf("%d unlogged", d.unlogged), d.unlogged == 0, "ALTER TABLE … SET LOGGED"),
	}
	var have []string
	if err := json.Unmarshal([]byte(d.rules), &have); err != nil {
		have = nil
	}
	for _, rule := range []string{"claims_key", rulePerID, rulePerGrant, ruleGrant, "grants_request"} {
		value := "in place"
		ok := slices.Contains(have, rule)
		if !ok {
			value = "missing"
		}
		facts = append(facts, pawl.MustHold("unique rule "+rule, value, ok, "make it again as pawl migrate --print shows it"))
	}
	return facts
}

// declaredFacts are what cannot be read from a server.
func (s *Store) declaredFacts() []pawl.Fact {
	declared := func(name string, d time.Duration) pawl.Fact {
		return pawl.Fact{Name: name, Value: d.String(), OK: true, Declared: true}
	}
	return []pawl.Fact{
		{Name: "free space", Value: "not told over SQL: watch it on the server", OK: true},
		declared("longest wait for a standby", s.timings.ReplicationWaitBound),
		declared("largest step of the clock", s.timings.ClockStepBound),
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
