package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// tables is one schema on a server, and what the tests do to it behind the
// store's back.
type tables struct {
	dsn    string
	schema string
	clock  bool // the statements read the schema's own clock instead of the server's
	side   *side
}

// side is the connection that the tests look through. A new one each time would
// cost more than what is looked at.
type side struct {
	mu   sync.Mutex
	conn *pgx.Conn
}

// do runs f on the connection, once more on a new one if that is broken.
func (s *side) do(ctx context.Context, dsn string, f func(*pgx.Conn) error) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 2 {
		if s.conn == nil {
			if s.conn, err = pgx.Connect(ctx, withSetting(dsn, "application_name", "side")); err != nil {
				return err
			}
		}
		if err = f(s.conn); err == nil || !s.conn.IsClosed() {
			return err
		}
		s.conn = nil
	}
	return err
}

// close ends the connection, if there is one; the caller holds the mutex or is the
// last.
func (s *side) close(ctx context.Context) error {
	conn := s.conn
	s.conn = nil
	if conn == nil {
		return nil
	}
	return conn.Close(ctx)
}

// newTables makes the tables in a schema of its own. A clock, where one is given,
// takes the place of the server's in every statement: it stands still until it is
// moved. Nothing outside of these tests can put it there.
func newTables(ctx context.Context, dsn string, clock *time.Time) (*tables, error) {
	tb := &tables{dsn: dsn, schema: "s" + strings.ReplaceAll(uuid.NewString(), "-", ""), clock: clock != nil, side: &side{}}
	text, err := MigrationSQL(tb.schema, 0)
	if err != nil {
		return nil, err
	}
	if tb.clock {
		text += clockSQL
	}
	if err := tb.exec(ctx, text); err != nil {
		return nil, err
	}
	if tb.clock {
		err = tb.exec(ctx, fmt.Sprintf("INSERT INTO %s.clock VALUES ('%s')", tb.schema, clock.UTC().Format(time.RFC3339Nano)))
	}
	return tb, err
}

// clockSQL keeps the kinds of the two functions: one tells the time that the
// statement began with, the other the time of the call.
const clockSQL = `
CREATE TABLE @@.clock (now timestamptz NOT NULL);
CREATE FUNCTION @@.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT c.now FROM @@.clock AS c';
CREATE FUNCTION @@.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT c.now FROM @@.clock AS c';
`

// exec runs statements, several of which need no arguments.
func (tb *tables) exec(ctx context.Context, sql string, args ...any) error {
	return tb.side.do(ctx, tb.dsn, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, tb.named(sql), args...)
		return err
	})
}

// named puts the schema's name where a statement says @@.
func (tb *tables) named(sql string) string { return strings.ReplaceAll(sql, "@@", tb.schema) }

func (tb *tables) mustExec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if err := tb.exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// count runs a query that counts.
func (tb *tables) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	err := tb.side.do(t.Context(), tb.dsn, func(conn *pgx.Conn) error {
		return conn.QueryRow(t.Context(), tb.named(sql), args...).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// advance moves the clock, back where d is negative.
func (tb *tables) advance(ctx context.Context, d time.Duration) error {
	return tb.exec(ctx, "UPDATE @@.clock SET now = now + $1::interval", d)
}

func (tb *tables) drop(ctx context.Context) error {
	return errors.Join(tb.exec(ctx, "DROP SCHEMA @@ CASCADE"), tb.side.close(ctx))
}

// texts are the statements as this schema runs them.
func (tb *tables) texts() (statements, error) {
	texts, err := loadStatements(tb.schema)
	if err != nil || !tb.clock {
		return texts, err
	}
	for name, text := range texts {
		texts[name] = tb.onClock(text)
	}
	return texts, nil
}

// onClock makes a statement read the schema's own clock, where it has one.
func (tb *tables) onClock(text string) string {
	if !tb.clock {
		return text
	}
	for _, f := range []string{"statement_timestamp()", "clock_timestamp()"} {
		text = strings.ReplaceAll(text, f, tb.schema+"."+f)
	}
	return text
}

// openWith opens an instance on the tables; edit, where not nil, changes the
// statements first.
func (tb *tables) openWith(ctx context.Context, o Options, dial *gate, edit func(*tables, statements)) (*Store, error) {
	o.Schema = tb.schema
	s, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if dial != nil {
		s.dial = dial.dial
	}
	texts, err := tb.texts()
	if err != nil {
		return nil, err
	}
	if edit != nil {
		edit(tb, texts)
	}
	return open(ctx, tb.dsn, s, texts)
}

// mustOpen opens an instance that the test closes.
func (tb *tables) mustOpen(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := tb.openWith(t.Context(), o, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// mustTables makes tables that go with the test.
func mustTables(t *testing.T, dsn string) *tables {
	t.Helper()
	tb, err := newTables(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.drop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tb
}

// gate is one instance's way to the network, which can be shut.
type gate struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
	shut  bool
}

var errShut = errors.New("the gate is shut")

func (g *gate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return nil, errors.Join(errShut, conn.Close())
	}
	if g.conns == nil {
		g.conns = map[net.Conn]bool{}
	}
	g.conns[conn] = true
	return conn, nil
}

// close cuts every connection and lets none through.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for conn := range g.conns {
		_ = conn.Close()
	}
	clear(g.conns)
}

func (g *gate) open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
	return nil
}

// someGrant is a token for ana, good for an hour, as its verifier would give it.
func someGrant(realm string) pawl.Grant {
	now := time.Now().Truncate(time.Second)
	return pawl.Grant{
		Form: pawl.FormToken, Realm: realm, Subject: "ana", Intent: someIntent(), IssuedAt: now, ExpiresAt: now.Add(time.Hour),
		Key: pawl.GrantKey{Issuer: "issuer", ID: pawl.NewOperationID().String()},
	}
}

func someIntent() pawl.Intent {
	return pawl.Intent{Kind: "credit.create", Details: pawl.StoredDetails(`{"amount":"250.00"}`)}
}

// admissionOf presents a grant under a fresh id.
func admissionOf(g pawl.Grant) pawl.Admission {
	return pawl.Admission{
		Grant: g, OperationID: pawl.NewOperationID(), Intent: g.Intent, Caller: pawl.Caller{Principal: "ana"},
		Lease: 30 * time.Second, SubmissionWindow: 10 * time.Minute,
	}
}

// mustAdmit admits a grant that must be admitted.
func mustAdmit(t *testing.T, s *Store, a pawl.Admission) pawl.Admitted {
	t.Helper()
	got, err := s.Admit(t.Context(), a)
	if err != nil || !got.Fresh {
		t.Fatalf("an admission: fresh %t, error %v, want admitted", got.Fresh, err)
	}
	return got
}

// wantErr checks class and reason; an empty reason is any.
func wantErr(t *testing.T, what string, err error, class pawl.Class, reason pawl.Reason) {
	t.Helper()
	if !errors.Is(err, class) || (reason != "" && pawl.ReasonOf(err) != reason) {
		t.Errorf("%s: %v, want %v (%s)", what, err, class, reason)
	}
}

// eachVersion runs a test on the shared server of every supported version, each
// in a database of its own.
func eachVersion(t *testing.T, f func(t *testing.T, v pgtest.Version, dsn string)) {
	t.Helper()
	for _, v := range pgtest.Versions(t) {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			f(t, v, pgtest.Shared(t, v).Database(t))
		})
	}
}

// as is the connection string with another role.
func as(t *testing.T, dsn, role string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}

// withSetting adds a start-up setting to a connection string.
func withSetting(dsn, name, value string) string {
	return dsn + "&" + name + "=" + url.QueryEscape(value)
}
