package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// faultySettings are sessions that could not keep the promise, by the one setting
// that each of them lacks.
func faultySettings(v pgtest.Version) map[string][]string {
	bound := "transaction_timeout"
	if v.Major < 17 {
		bound = "statement_timeout"
	}
	return map[string][]string{
		"no bound":                {"SET " + bound + " = 0"},
		"a bound too long":        {"SET " + bound + " = '1h'"},
		"repeatable read":         {"SET default_transaction_isolation = 'repeatable read'"},
		"serializable":            {"SET default_transaction_isolation = serializable"},
		"read uncommitted":        {"SET default_transaction_isolation = 'read uncommitted'"},
		"asynchronous commits":    {"SET synchronous_commit = off"},
		"warnings are not sent":   {"SET client_min_messages = error"},
		"two at once":             {"SET synchronous_commit = off", "SET " + bound + " = 0"},
		"only the other timeouts": {"SET " + bound + " = 0", "SET lock_timeout = '1s'", "SET idle_in_transaction_session_timeout = '1s'"},
	}
}

// onEach runs statements on every connection that a pool holds or could hold.
func onEach(t *testing.T, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	var held []*pgxpool.Conn
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
		for _, sql := range statements {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, conn := range held {
		conn.Release()
	}
}

// TestCase_CA22_SessionLosesASetting: an open instance whose sessions lose one
// setting, as through a pooler, admits nothing from then on, in either form, and
// says why; it never says "used" [A11]. The grant is unspent.
func TestCase_CA22_SessionLosesASetting(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		tb := mustTables(t, dsn)
		safe := tb.mustOpen(t, Options{})
		for name, statements := range faultySettings(v) {
			t.Run(name, func(t *testing.T) {
				s := tb.mustOpen(t, Options{AdmissionConns: 1, Conns: 1})
				onEach(t, s.admissions, statements...)
				token := admissionOf(someGrant(s.realm))
				stored := admissionOf(mustIssue(t, safe).Grant)
				for _, a := range []pawl.Admission{token, stored} {
					_, err := s.Admit(t.Context(), a)
					wantErr(t, "an admission", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
				}
				_, err := s.Reserve(t.Context(), someReservation())
				wantErr(t, "a reservation", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
				for _, a := range []pawl.Admission{token, stored} {
					mustAdmit(t, safe, a)
					_, err = s.Admit(t.Context(), a)
					wantErr(t, "a used grant on an unsafe session", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
				}
			})
		}
		if n := tb.count(t, "SELECT count(*) FROM @@.operations"); n != 2*len(faultySettings(v)) {
			t.Errorf("%d operations, want %d", n, 2*len(faultySettings(v)))
		}
	})
}

// TestCase_CA22_SecondInstance: an instance whose sessions are unsafe from the
// start refuses to start [A11].
func TestCase_CA22_SecondInstance(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		tb := mustTables(t, dsn)
		tb.mustOpen(t, Options{})
		server := pgtest.Shared(t, v)
		for name, statements := range faultySettings(v) {
			role := server.Role(t, "SUPERUSER")
			for _, sql := range safeRole(v) {
				server.Exec(t, "ALTER ROLE "+role+" "+sql)
			}
			far := *tb
			far.dsn = as(t, dsn, role)
			good, err := far.openWith(t.Context(), Options{Pins: PinByRole}, nil, nil)
			if err != nil {
				t.Fatalf("with every setting by role: %v", err)
			}
			if err := good.Close(); err != nil {
				t.Error(err)
			}
			for _, sql := range statements {
				server.Exec(t, "ALTER ROLE "+role+" "+sql)
			}
			s, err := far.openWith(t.Context(), Options{Pins: PinByRole}, nil, nil)
			wantErr(t, name, err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
			if s != nil {
				t.Errorf("%s: opened", name)
			}
			// Pinned over, the same role is safe.
			good, err = far.openWith(t.Context(), Options{}, nil, nil)
			if err != nil {
				t.Fatalf("%s, pinned over: %v", name, err)
			}
			mustAdmit(t, good, admissionOf(someGrant(good.realm)))
			if err := good.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// safeRole are a role's settings under which PinByRole may be used.
func safeRole(v pgtest.Version) []string {
	settings := []string{
		"SET client_min_messages = warning", "SET default_transaction_isolation = 'read committed'",
		"SET synchronous_commit = on", "SET statement_timeout = '5s'",
	}
	if v.Major >= 17 {
		settings = append(settings, "SET transaction_timeout = '5s'")
	}
	return settings
}

// TestCase_CA12_DefaultIsolation: whatever the role's and the database's default,
// the verdicts are those of Read Committed, and nothing fails [A11].
func TestCase_CA12_DefaultIsolation(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		tb := mustTables(t, dsn)
		server := pgtest.Shared(t, v)
		for _, level := range []string{"repeatable read", "serializable", "read uncommitted"} {
			role := server.Role(t, "SUPERUSER")
			server.Exec(t, fmt.Sprintf("ALTER ROLE %s SET default_transaction_isolation = '%s'", role, level))
			tb.mustExec(t, fmt.Sprintf("ALTER DATABASE %s SET default_transaction_isolation = '%s'", databaseOf(t, dsn), level))
			far := *tb
			far.dsn = as(t, dsn, role)
			a, b := far.mustOpen(t, Options{}), far.mustOpen(t, Options{})
			for range 10 {
				race(t, []*Store{a, b}, someGrant(a.realm), 8)
			}
			own := mustAdmit(t, a, admissionOf(someGrant(a.realm)))
			settleAtOnce(t, []*Store{a, b}, own)
			f, err := a.Check(t.Context())
			if err != nil || f.Err() != nil {
				t.Errorf("%s: check: %v, %v", level, err, f.Err())
			}
		}
	})
}

// race admits one grant many times at once and wants one winner and refusals.
func race(t *testing.T, stores []*Store, g pawl.Grant, racers int) {
	t.Helper()
	var wait sync.WaitGroup
	fresh, errs := make([]bool, racers), make([]error, racers)
	for i := range racers {
		wait.Go(func() {
			got, err := stores[i%len(stores)].Admit(t.Context(), admissionOf(g))
			fresh[i], errs[i] = got.Fresh, err
		})
	}
	wait.Wait()
	winners := 0
	for i := range racers {
		if fresh[i] {
			winners++
		} else if !errors.Is(errs[i], pawl.ErrRefused) {
			t.Errorf("a loser: %v, want refused", errs[i])
		}
	}
	if winners != 1 {
		t.Errorf("%d of %d racers were admitted, want 1", winners, racers)
	}
}

// settleAtOnce reports one operation's success and weaker things through several
// instances at once.
func settleAtOnce(t *testing.T, stores []*Store, own pawl.Admitted) {
	t.Helper()
	outcomes := []pawl.Outcome{pawl.Unknown("timeout"), pawl.Succeeded("done"), pawl.Failed("declined"), pawl.Unknown("again")}
	var wait sync.WaitGroup
	for i, out := range outcomes {
		wait.Go(func() {
			_, err := stores[i%len(stores)].Settle(t.Context(), pawl.Evidence{
				ID: own.Operation.ID, Lock: own.Operation.Lock, Outcome: out, Token: own.Owner.Token,
			})
			if err != nil {
				t.Errorf("evidence: %v", err)
			}
		})
	}
	wait.Wait()
	op, err := stores[0].Get(t.Context(), own.Operation.ID, pawl.AsOperator())
	if err != nil || op.Status != pawl.StatusSucceeded || string(op.Result) != "done" {
		t.Errorf("after all evidence: %v %q, %v; want succeeded", op.Status, op.Result, err)
	}
}

// TestCase_CA17_TimeZones: verdicts and leases are the same whatever the session's
// time zone is by default, and in the caller's own transaction whatever it is [A4].
func TestCase_CA17_TimeZones(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		tb := mustTables(t, dsn)
		server := pgtest.Shared(t, v)
		plain := tb.mustOpen(t, Options{})
		for _, zone := range []string{"Asia/Tokyo", "America/Los_Angeles", "Europe/Berlin"} {
			role := server.Role(t, "SUPERUSER")
			server.Exec(t, fmt.Sprintf("ALTER ROLE %s SET timezone = '%s'", role, zone))
			far := *tb
			far.dsn = as(t, dsn, role)
			s := far.mustOpen(t, Options{})
			late, early := someGrant(s.realm), someGrant(s.realm)
			late.IssuedAt, late.ExpiresAt = late.IssuedAt.Add(-2*time.Hour), late.IssuedAt.Add(-10*time.Second)
			early.IssuedAt, early.ExpiresAt = early.IssuedAt.Add(time.Hour), early.ExpiresAt.Add(time.Hour)
			_, err := s.Admit(t.Context(), admissionOf(late))
			wantErr(t, "expired 10 s ago", err, pawl.ErrRefused, pawl.ReasonExpired)
			_, err = s.Admit(t.Context(), admissionOf(early))
			wantErr(t, "issued an hour ahead", err, pawl.ErrRefused, pawl.ReasonNotYetValid)

			a := admissionOf(someGrant(s.realm))
			mustAdmit(t, s, a)
			op, err := plain.Get(t.Context(), a.OperationID, pawl.AsOperator())
			if err != nil || op.LeaseUntil.Sub(op.CreatedAt) != a.Lease || op.SubmitBy.Sub(op.CreatedAt) != a.SubmissionWindow {
				t.Errorf("%s: a lease of %v and a window of %v, %v; want %v and %v", zone, op.LeaseUntil.Sub(op.CreatedAt),
					op.SubmitBy.Sub(op.CreatedAt), err, a.Lease, a.SubmissionWindow)
			}
			if _, err := s.Admit(t.Context(), admissionOf(a.Grant)); !errors.Is(err, pawl.ErrRefused) {
				t.Errorf("%s: a used grant: %v, want refused", zone, err)
			}
		}
	})
}

// TestCase_CA14_PoolOfOne runs the whole flow with recovery and purge on one
// connection for admissions and one for all else, by many at once: no call needs
// a second connection while it holds one.
func TestCase_CA14_PoolOfOne(t *testing.T) {
	tb := mustTables(t, pgtest.Shared(t, pgtest.Newest(t)).Database(t))
	s := tb.mustOpen(t, Options{AdmissionConns: 1, Conns: 1})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 5 {
				wholeFlow(ctx, t, s)
			}
		})
	}
	wait.Wait()
}

func wholeFlow(ctx context.Context, t *testing.T, s *Store) {
	a := admissionOf(someGrant(s.realm))
	own, err := s.Admit(ctx, a)
	if err != nil {
		t.Errorf("an admission: %v", err)
		return
	}
	id := own.Operation.ID
	if _, err := s.MaySubmit(ctx, id, own.Owner.Token); err != nil {
		t.Errorf("a check: %v", err)
	}
	if _, err := s.Record(ctx, pawl.Statement{ID: id, Token: own.Owner.Token, Outcome: pawl.Unknown("timeout"), Pause: time.Microsecond}); err != nil {
		t.Errorf("an outcome: %v", err)
	}
	if _, err := s.TakeOver(ctx, pawl.TakeOver{OtherKinds: time.Minute, Limit: 10, By: "recovery"}); err != nil {
		t.Errorf("a takeover: %v", err)
	}
	if _, err := s.Settle(ctx, pawl.Evidence{ID: id, Lock: own.Operation.Lock, Outcome: pawl.Succeeded("done"), Trusted: true}); err != nil {
		t.Errorf("evidence: %v", err)
	}
	if _, err := s.Purge(ctx, pawl.PurgeBatch{}); err != nil {
		t.Errorf("a purge: %v", err)
	}
	if _, err := s.Log(ctx, id, pawl.AsOperator()); err != nil {
		t.Errorf("a log: %v", err)
	}
	if _, err := s.Check(ctx); err != nil {
		t.Errorf("a check: %v", err)
	}
}

// TestCase_CA16_Replica: a connection string that leads to a replica refuses to
// start [A1].
func TestCase_CA16_Replica(t *testing.T) {
	primary := pgtest.Start(t, pgtest.Newest(t), nil)
	tb := mustTables(t, primary.Superuser())
	tb.mustOpen(t, Options{})
	replica := pgtest.StartReplica(t, primary, nil)
	replica.AwaitReplay(t, primary)
	far := *tb
	far.dsn = replica.Superuser()
	_, err := far.openWith(t.Context(), Options{}, nil, nil)
	wantErr(t, "opening a replica", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	if err != nil && !strings.Contains(err.Error(), "replica") {
		t.Errorf("the reason is not said: %v", err)
	}
}

// TestCase_CA7_Unreachable: a store that cannot be reached at the start is no
// store; nothing else takes its place, and when it is there it opens [A6].
func TestCase_CA7_Unreachable(t *testing.T) {
	server := pgtest.Start(t, pgtest.Newest(t), nil)
	tb := mustTables(t, server.Superuser())
	server.Stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	s, err := tb.openWith(ctx, Options{}, nil, nil)
	wantErr(t, "opening a server that is down", err, pawl.ErrUnavailable, pawl.ReasonUnreachable)
	if s != nil {
		t.Error("something was opened")
	}
	server.Restart(t)
	open := tb.mustOpen(t, Options{})
	mustAdmit(t, open, admissionOf(someGrant(open.realm)))
	server.Stop(t)
	_, err = open.Admit(ctx, admissionOf(someGrant(open.realm)))
	wantErr(t, "an admission while the server is down", err, pawl.ErrNotConfirmed, "")
	server.Restart(t)
	awaitReachable(t, open)
	mustAdmit(t, open, admissionOf(someGrant(open.realm)))
}

// awaitReachable asks until there is an answer: connections of before a restart
// are found to be dead one by one.
func awaitReachable(t *testing.T, s *Store) {
	t.Helper()
	for {
		_, err := s.Check(t.Context())
		if err == nil {
			return
		}
		if !errors.Is(err, pawl.ErrUnavailable) {
			t.Fatal(err)
		}
	}
}

// TestCase_CA24_AnotherDatabase: an instance that pins the store refuses another;
// a connection that comes to lead elsewhere admits nothing; a grant for another
// realm is not valid here [A1].
func TestCase_CA24_AnotherDatabase(t *testing.T) {
	server := pgtest.Shared(t, pgtest.Newest(t))
	one, two := mustTables(t, server.Database(t)), mustTables(t, server.Database(t))
	two.mustExec(t, "ALTER SCHEMA @@ RENAME TO "+one.schema)
	two.schema = one.schema
	first, second := one.mustOpen(t, Options{}), two.mustOpen(t, Options{})
	if first.id == second.id || first.realm == second.realm {
		t.Fatalf("two stores are one: %s, %s", first.id, second.realm)
	}
	_, err := two.openWith(t.Context(), Options{StoreID: first.id}, nil, nil)
	wantErr(t, "opening another store than the pinned one", err, pawl.ErrMisconfigured, pawl.ReasonDisagreement)
	_, err = two.openWith(t.Context(), Options{Realm: first.realm}, nil, nil)
	wantErr(t, "opening another realm", err, pawl.ErrMisconfigured, pawl.ReasonDisagreement)
	if _, err := one.openWith(t.Context(), Options{StoreID: first.id, Realm: first.realm}, nil, nil); err != nil {
		t.Errorf("opening the pinned store: %v", err)
	}
	_, err = second.Admit(t.Context(), admissionOf(someGrant(first.realm)))
	wantErr(t, "a grant for another realm", err, pawl.ErrRefused, pawl.ReasonRealm)

	// The name in the connection string comes to mean another database.
	proxy := pgtest.StartProxy(t, server.Addr())
	far := *one
	far.dsn = pgtest.Via(t, one.dsn, proxy.Addr())
	moved := far.mustOpen(t, Options{AdmissionConns: 1, Conns: 1})
	swap(t, server, one, two)
	proxy.CutAll()
	var got pawl.Admitted
	for {
		if got, err = moved.Admit(t.Context(), admissionOf(someGrant(first.realm))); !errors.Is(err, pawl.ErrNotConfirmed) {
			break
		}
	}
	wantErr(t, "an admission in another database", err, pawl.ErrMisconfigured, pawl.ReasonUnsafeStore)
	if got.Fresh {
		t.Error("another database admitted")
	}
}

// swap exchanges the names of two databases, ending all sessions in them.
func swap(t *testing.T, server *pgtest.Server, one, two *tables) {
	t.Helper()
	a, b := databaseOf(t, one.dsn), databaseOf(t, two.dsn)
	server.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IN ('"+a+"', '"+b+"')")
	server.Await(t, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname IN ('"+a+"', '"+b+"'))")
	for _, sql := range []string{"%[1]s RENAME TO %[1]s_x", "%[2]s RENAME TO %[1]s", "%[1]s_x RENAME TO %[2]s"} {
		server.Exec(t, "ALTER DATABASE "+fmt.Sprintf(sql, a, b))
	}
}

// databaseOf is the name of the database in a connection string.
func databaseOf(t *testing.T, dsn string) string {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return config.ConnConfig.Database
}

// TestCase_CA11_OtherViolations: a constraint that is none of the two is a defect:
// no class, nothing written, not retried [A7].
func TestCase_CA11_OtherViolations(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		for name, sql := range map[string]string{
			"a check":              "ALTER TABLE @@.operations ADD CONSTRAINT broken CHECK (principal <> 'ana')",
			"another unique index": "CREATE UNIQUE INDEX broken ON @@.operations ((1)); INSERT INTO @@.operations SELECT * FROM @@.spare",
			"a trigger": `CREATE FUNCTION @@.broken() RETURNS trigger LANGUAGE plpgsql AS
				$$BEGIN RAISE EXCEPTION 'no'; END$$;
				CREATE TRIGGER broken BEFORE INSERT ON @@.operations FOR EACH ROW EXECUTE FUNCTION @@.broken()`,
			"a missing right": "ALTER TABLE @@.claims RENAME TO elsewhere",
		} {
			tb := mustTables(t, dsn)
			s := tb.mustOpen(t, Options{})
			mustAdmit(t, s, admissionOf(someGrant(s.realm)))
			tb.mustExec(t, "CREATE TABLE @@.spare AS TABLE @@.operations; TRUNCATE @@.operations")
			before := tb.count(t, "SELECT count(*) FROM @@.claims")
			tb.mustExec(t, sql)
			_, err := s.Admit(t.Context(), admissionOf(someGrant(s.realm)))
			if row, classed := pawl.Row(err); err == nil || classed {
				t.Errorf("%s: %v (class %s), want a defect", name, err, row.Name)
			}
			if name == "a missing right" {
				continue
			}
			if n := tb.count(t, "SELECT count(*) FROM @@.claims"); n != before {
				t.Errorf("%s: %d claims were left behind", name, n-before)
			}
		}
	})
}

func mustIssue(t *testing.T, s *Store) pawl.Issued {
	t.Helper()
	got, err := s.Issue(t.Context(), pawl.Issuance{
		RequestID: pawl.NewOperationID().String(), Form: pawl.FormStored, Issuer: "issuer", Subject: "ana",
		Intent: someIntent(), Lifetime: time.Hour, GrantID: pawl.NewOperationID().String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func someReservation() pawl.Reservation {
	return pawl.Reservation{
		Key: pawl.NewOperationID().String(), Intent: someIntent(), Caller: pawl.Caller{Principal: "ana"},
		Lease: 30 * time.Second, SubmissionWindow: 10 * time.Minute,
	}
}
