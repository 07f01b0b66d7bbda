package pgtest_test

import (
	"testing"

	"github.com/pawl-go/pawl/internal/pgtest"
)

func TestReplicaStreamsHoldsCommitsWhileDownAndIsPromoted(t *testing.T) {
	eachVersion(t, func(t *testing.T, v pgtest.Version) {
		primary := pgtest.Start(t, v, nil)
		primary.Exec(t, "CREATE TABLE log (n int)")
		standby := pgtest.StartReplica(t, primary, &pgtest.ReplicaOptions{Name: "standby", Synchronous: true})
		conn := open(t, primary.Superuser())
		run(t, conn, "INSERT INTO log VALUES (1)")
		standby.AwaitReplay(t, primary)
		if got := standby.Text(t, "SELECT count(*)::text FROM log"); got != "1" {
			t.Errorf("the standby has %s rows, want 1", got)
		}
		if got := standby.Text(t, "SELECT pg_is_in_recovery()::text"); got != "true" {
			t.Errorf("pg_is_in_recovery() = %s on the standby", got)
		}

		standby.Stop(t)
		done := make(chan error, 1)
		go func() {
			_, err := conn.Exec(t.Context(), "INSERT INTO log VALUES (2)")
			done <- err
		}()
		primary.Await(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')")
		select {
		case err := <-done:
			t.Fatalf("a commit did not wait for its standby: %v", err)
		default:
		}
		standby.Restart(t)
		if err := <-done; err != nil {
			t.Errorf("the commit after the standby came back: %v", err)
		}
		primary.AwaitStreaming(t, "standby", true)

		primary.Kill(t)
		standby.Promote(t)
		standby.Exec(t, "INSERT INTO log VALUES (3)")
		if got := standby.Text(t, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM log"); got != "1 2 3" {
			t.Errorf("the promoted standby has rows %q, want 1 2 3", got)
		}
	})
}

// Two standbys, one of them behind a frozen network: a quorum of one goes on, a quorum of two waits.
func TestReplicasMakeAQuorum(t *testing.T) {
	primary := pgtest.Start(t, pgtest.Newest(t), nil)
	proxy := pgtest.StartProxy(t, primary.Addr())
	pgtest.StartReplica(t, primary, &pgtest.ReplicaOptions{Name: "near"})
	pgtest.StartReplica(t, primary, &pgtest.ReplicaOptions{Name: "far", PrimaryAddr: proxy.Addr()})
	primary.Reload(t, map[string]string{"synchronous_standby_names": "ANY 1 (near, far)"})
	primary.AwaitStreaming(t, "far", true)
	proxy.Freeze()
	conn := open(t, primary.Superuser())
	run(t, conn, "CREATE TABLE log (n int)")

	primary.Reload(t, map[string]string{"synchronous_standby_names": "ANY 2 (near, far)"})
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "INSERT INTO log VALUES (1)")
		done <- err
	}()
	primary.Await(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')")
	proxy.Restore()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
