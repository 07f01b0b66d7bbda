package pgtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pawl-go/pawl/internal/pgtest"
)

// bench is a table behind a proxy.
type bench struct {
	proxy  *pgtest.Proxy
	dsn    string    // through the proxy
	direct *pgx.Conn // past it
}

func newBench(t *testing.T) bench {
	t.Helper()
	s := pgtest.Shared(t, pgtest.Newest(t))
	dsn := s.Database(t)
	b := bench{proxy: pgtest.StartProxy(t, s.Addr()), direct: open(t, dsn)}
	b.dsn = pgtest.Via(t, dsn, b.proxy.Addr())
	run(t, b.direct, "CREATE TABLE spent (n int PRIMARY KEY)")
	return b
}

const spend = "INSERT INTO spent VALUES ($1)"

// others counts the sessions of the bench, but for the direct one, for which a condition holds.
const others = `
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND `

// await waits until another session is as the condition says.
func (b bench) await(t *testing.T, condition string) {
	t.Helper()
	b.poll(t, others+condition, func(sessions int) bool { return sessions > 0 })
}

// settled waits until there is no other session, and says whether a row is there.
func (b bench) settled(t *testing.T, n int) bool {
	t.Helper()
	b.poll(t, others+"true", func(sessions int) bool { return sessions == 0 })
	return query[bool](t, b.direct, "SELECT EXISTS (SELECT FROM spent WHERE n = $1)", n)
}

func (b bench) poll(t *testing.T, sql string, enough func(sessions int) bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !enough(query[int](t, b.direct, sql)) {
		<-ticker.C
	}
}

func TestProxyPassesWhatMeetsNoFault(t *testing.T) {
	b := newBench(t)
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		conn := open(t, b.dsn+"&default_query_exec_mode="+mode)
		for range 2 {
			if got := query[int](t, conn, "SELECT $1::int + 1", 41); got != 42 {
				t.Errorf("%s: got %d, want 42", mode, got)
			}
		}
	}
	conn := open(t, b.dsn)
	rows := pgx.CopyFromSlice(1000, func(i int) ([]any, error) { return []any{i}, nil })
	if n, err := conn.CopyFrom(t.Context(), pgx.Identifier{"spent"}, []string{"n"}, rows); n != 1000 || err != nil {
		t.Errorf("CopyFrom: %d rows and %v, want 1000 and no error", n, err)
	}
	var refused *pgconn.PgError
	if _, err := conn.Exec(t.Context(), spend, 1); !errors.As(err, &refused) || refused.Code != "23505" {
		t.Errorf("a duplicate: got %v, want SQLSTATE 23505", err)
	}
	if got := b.proxy.Conns(); got != 6 {
		t.Errorf("Conns() = %d, want 6", got)
	}
}

func TestProxyLosesTheAnswer(t *testing.T) {
	b := newBench(t)
	for n, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		conn := open(t, b.dsn+"&default_query_exec_mode="+mode)
		lost := b.proxy.Inject(pgtest.Fault{Match: pgtest.Containing("into SPENT"), Action: pgtest.LoseAnswer})
		if _, err := conn.Exec(t.Context(), spend, n); err == nil {
			t.Errorf("%s: got an answer that was to be lost", mode)
		}
		lost.Await(t)
		if lost.Answered() != 1 || !b.settled(t, n) {
			t.Errorf("%s: the server answered %d times; want one answer and the row", mode, lost.Answered())
		}
	}
}

func TestProxyLosesTheAnswerOfACommit(t *testing.T) {
	b := newBench(t)
	conn := open(t, b.dsn)
	lost := b.proxy.Inject(pgtest.Fault{Match: pgtest.Commit(), Action: pgtest.LoseAnswer})
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), spend, 1); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("the commit was answered")
	}
	lost.Await(t)
	if !b.settled(t, 1) {
		t.Error("the commit was lost with its answer")
	}
}

func TestProxyCutsBeforeTheServerSees(t *testing.T) {
	b := newBench(t)
	conn := open(t, b.dsn)
	run(t, conn, spend, 1)
	cut := b.proxy.Inject(pgtest.Fault{
		Match: pgtest.Nth(2, func(s pgtest.Statement) bool { return s.SQL == spend && s.Conn == 1 }), Action: pgtest.CutBefore,
	})
	run(t, conn, spend, 2)
	if _, err := conn.Exec(t.Context(), spend, 3); err == nil {
		t.Error("a statement that was cut succeeded")
	}
	cut.Await(t)
	if !b.settled(t, 2) || b.settled(t, 3) {
		t.Error("want the second row and not the third")
	}
}

func TestProxyCutsBetweenStatementsOfOneBatch(t *testing.T) {
	b := newBench(t)
	conn := open(t, b.dsn)
	b.proxy.Inject(pgtest.Fault{Match: pgtest.Nth(2, pgtest.Containing(spend)), Action: pgtest.CutBefore})
	var batch pgx.Batch
	batch.Queue(spend, 1)
	batch.Queue(spend, 2)
	if err := conn.SendBatch(t.Context(), &batch).Close(); err == nil {
		t.Error("a batch that was cut succeeded")
	}
	if b.settled(t, 1) || b.settled(t, 2) {
		t.Error("half a batch was committed")
	}
}

func TestProxyCutsAfterTheServerHasIt(t *testing.T) {
	b := newBench(t)
	client, err := open(t, b.dsn).PgConn().Hijack() // pgx itself would ask the server to cancel
	if err != nil {
		t.Fatal(err)
	}
	cut := b.proxy.Inject(pgtest.Fault{Match: pgtest.Containing("INSERT"), Action: pgtest.CutAfter, Delay: time.Millisecond})
	client.Frontend.Send(&pgproto3.Query{String: "INSERT INTO spent VALUES (1)"})
	if err := client.Frontend.Flush(); err != nil {
		t.Fatal(err)
	}
	if message, err := client.Frontend.Receive(); err == nil {
		t.Errorf("got %T after the cut", message)
	}
	cut.Await(t)
	if !b.settled(t, 1) {
		t.Error("the server had the whole request and did not do it")
	}
}

func TestProxyMutesTheAnswer(t *testing.T) {
	b := newBench(t)
	conn := open(t, b.dsn)
	muted := b.proxy.Inject(pgtest.Fault{Match: pgtest.Containing(spend), Action: pgtest.MuteAnswer})
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), spend, 1)
		done <- err
	}()
	muted.Await(t)
	if !query[bool](t, b.direct, "SELECT EXISTS (SELECT FROM spent)") {
		t.Error("the server answered before it committed")
	}
	select {
	case err := <-done:
		t.Errorf("a muted connection said something: %v", err)
	default:
	}
	b.proxy.CutAll()
	if err := <-done; err == nil {
		t.Error("got an answer that was to be muted")
	}
}

func TestProxyHoldsRequestAndAnswer(t *testing.T) {
	b := newBench(t)
	conn := open(t, b.dsn)
	request := b.proxy.Inject(pgtest.Fault{Match: pgtest.Containing(spend), Action: pgtest.HoldRequest})
	answer := b.proxy.Inject(pgtest.Fault{Match: pgtest.Containing(spend), Action: pgtest.HoldAnswer})
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), spend, 1)
		done <- err
	}()
	const there = "SELECT EXISTS (SELECT FROM spent)"
	request.Await(t)
	if query[bool](t, b.direct, there) {
		t.Error("the server had a request that was held")
	}
	request.Release()
	answer.Await(t)
	if !query[bool](t, b.direct, there) {
		t.Error("the server answered before it committed")
	}
	select {
	case err := <-done:
		t.Errorf("the client had an answer that was held: %v", err)
	default:
	}
	answer.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}

	b.proxy.Inject(pgtest.Fault{Match: pgtest.Containing(spend), Action: pgtest.HoldAnswer, Delay: time.Millisecond})
	run(t, conn, spend, 2)
}

// A client that gives up sends a request to cancel, which the proxy passes on.
func TestProxyPassesARequestToCancel(t *testing.T) {
	b := newBench(t)
	conn := open(t, b.dsn)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, "SELECT pg_sleep(600)")
		done <- err
	}()
	b.await(t, "wait_event = 'PgSleep'")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the caller's own cancellation", err)
	}
	b.settled(t, 0)
	if got := b.proxy.Cancels(); got == 0 {
		t.Error("no request to cancel was counted")
	}
}

// A client that is gone before the answer does not change what the fault is about: the server has the statement.
func TestProxyOutlivesItsClient(t *testing.T) {
	b := newBench(t)
	client, err := open(t, b.dsn).PgConn().Hijack() // pgx itself would ask the server to cancel
	if err != nil {
		t.Fatal(err)
	}
	lost := b.proxy.Inject(pgtest.Fault{Match: pgtest.Containing("INSERT"), Action: pgtest.LoseAnswer})
	lock, err := b.direct.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "LOCK TABLE spent"); err != nil {
		t.Fatal(err)
	}
	client.Frontend.Send(&pgproto3.Query{String: "INSERT INTO spent VALUES (1)"})
	if err := client.Frontend.Flush(); err != nil {
		t.Fatal(err)
	}
	b.await(t, "wait_event_type = 'Lock'")
	if err := client.Conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := lock.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost.Await(t)
	if lost.Answered() != 1 || !b.settled(t, 1) {
		t.Error("want the server's answer and the row")
	}
}

func TestProxyRefusesFreezesAndRestores(t *testing.T) {
	b := newBench(t)
	conn := open(t, b.dsn)
	b.proxy.Refuse()
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a connection outlived Refuse")
	}
	if _, err := pgx.Connect(t.Context(), b.dsn); err == nil {
		t.Error("a new connection outlived Refuse")
	}
	b.proxy.Restore()
	conn = open(t, b.dsn)

	b.proxy.Freeze()
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), spend, 1)
		done <- err
	}()
	if query[bool](t, b.direct, "SELECT EXISTS (SELECT FROM spent)") {
		t.Error("a statement passed a frozen proxy")
	}
	b.proxy.Restore()
	if err := <-done; err != nil {
		t.Errorf("after Restore: %v", err)
	}
	b.proxy.CutAll()
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a connection outlived CutAll")
	}
}

// Quick enough to lose an answer many hundred times in a test.
func TestProxyLosesAnswersByTheHundred(t *testing.T) {
	const rounds = 200
	b := newBench(t)
	every := b.proxy.Inject(pgtest.Fault{Match: pgtest.Containing(spend), Action: pgtest.LoseAnswer, Every: true})
	for n := range rounds {
		conn := open(t, b.dsn)
		if _, err := conn.Exec(t.Context(), spend, n); err == nil {
			t.Fatalf("round %d: got an answer that was to be lost", n)
		}
	}
	if every.Count() != rounds || every.Answered() != rounds {
		t.Errorf("lost %d answers of %d, want %d", every.Answered(), every.Count(), rounds)
	}
	if got := query[int](t, b.direct, "SELECT count(*) FROM spent"); got != rounds {
		t.Errorf("%d rows, want %d", got, rounds)
	}
}
