package pgtest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// ReplicaOptions says how a standby differs from the usual one. The zero value is the usual one.
type ReplicaOptions struct {
	// Name is the standby's application name and slot, in lower-case letters, digits and underscores. Empty makes one up.
	Name string
	// Synchronous makes the primary wait for this standby alone: commits there hang while it is down. For other
	// arrangements set synchronous_standby_names with [Server.Reload].
	Synchronous bool
	// Config holds settings of postgresql.conf for the standby.
	Config map[string]string
	// PrimaryAddr is where the standby finds the primary; empty is the primary itself. A proxy's address makes it
	// possible to hold the stream.
	PrimaryAddr string
}

// StartReplica runs a streaming standby of a server that belongs to the test, and returns when it streams. It is a
// [Server] that can be stopped, killed and restarted. It ends before its primary. The options may be nil.
func StartReplica(tb testing.TB, primary *Server, o *ReplicaOptions) *Server {
	tb.Helper()
	primary.mustBeOwn(tb, "replicated")
	var options ReplicaOptions
	if o != nil {
		options = *o
	}
	if options.Name == "" {
		options.Name = unique()
	}
	if options.PrimaryAddr == "" {
		options.PrimaryAddr = primary.Addr()
	}
	s, err := prepare(primary.Version)
	if err != nil {
		tb.Fatal(err)
	}
	s.cleanUpAfter(tb)
	tb.Cleanup(func() { primary.forget(tb, s, &options) })
	if err := s.replicate(tb.Context(), primary, &options); err != nil {
		tb.Fatal(err)
	}
	return s
}

// replicate copies the primary, starts the copy as a standby and waits until it streams.
func (s *Server) replicate(ctx context.Context, primary *Server, o *ReplicaOptions) error {
	// The slot keeps the log that the standby needs, from before the copy and while the standby is down.
	err := primary.exec(ctx, "postgres", "SELECT pg_create_physical_replication_slot($1, true)", o.Name)
	if err != nil {
		return err
	}
	if err := s.copyFrom(ctx, primary); err != nil {
		return fmt.Errorf("copying the primary: %w", err)
	}
	if err := s.configureStandby(o); err != nil {
		return err
	}
	if err := s.launch(ctx); err != nil {
		return err
	}
	if !o.Synchronous {
		return primary.await(ctx, streaming, o.Name, "streaming", "async,sync,potential,quorum")
	}
	if err := primary.reload(ctx, map[string]string{"synchronous_standby_names": o.Name}); err != nil {
		return err
	}
	return primary.await(ctx, streaming, o.Name, "streaming", "sync,quorum")
}

// streaming asks a primary whether a standby of that name streams and counts as one of the listed kinds.
const streaming = `
SELECT EXISTS (
  SELECT FROM pg_stat_replication
   WHERE application_name = $1 AND state = $2 AND sync_state = ANY (string_to_array($3, ',')))`

// AwaitStreaming returns when a standby that was started with that name streams from this primary, as after
// [Server.Restart] of the standby; with synchronous, when the primary also counts on it.
func (s *Server) AwaitStreaming(tb testing.TB, name string, synchronous bool) {
	tb.Helper()
	kinds := "async,sync,potential,quorum"
	if synchronous {
		kinds = "sync,quorum"
	}
	s.Await(tb, streaming, name, "streaming", kinds)
}

// AwaitReplay returns when a standby has replayed all that the primary had written at the time of the call.
func (s *Server) AwaitReplay(tb testing.TB, primary *Server) {
	tb.Helper()
	position := primary.Text(tb, "SELECT pg_current_wal_insert_lsn()::text")
	s.Await(tb, "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", position)
}

// Promote makes a standby a primary and returns when it takes writes. The old primary is not told: if it runs, there
// are two.
func (s *Server) Promote(tb testing.TB) {
	tb.Helper()
	s.mustBeOwn(tb, "promoted")
	s.Exec(tb, "SELECT pg_promote(wait => true)")
	s.Await(tb, "SELECT NOT pg_is_in_recovery()")
}

// forget undoes on the primary what a standby needed, so that nothing waits for it any more.
func (s *Server) forget(tb testing.TB, standby *Server, o *ReplicaOptions) {
	tb.Helper()
	s.cleanUp(tb, func(ctx context.Context) error {
		if o.Synchronous {
			if err := s.reload(ctx, map[string]string{"synchronous_standby_names": ""}); err != nil {
				return err
			}
		}
		if standby.process != nil {
			standby.process.kill()
			standby.process = nil
		}
		if err := standby.home.killAll(); err != nil {
			return err
		}
		const idle = "SELECT NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1 AND active)"
		if err := s.await(ctx, idle, o.Name); err != nil {
			return err
		}
		const drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1"
		return s.exec(ctx, "postgres", drop, o.Name)
	})
}

// copyFrom makes a base backup through the server's own functions: the packages bring no pg_basebackup.
func (s *Server) copyFrom(ctx context.Context, primary *Server) error {
	conn, err := primary.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SELECT pg_backup_start('pgtest', fast => true)"); err != nil {
		return err
	}
	if err := copyTree(s.data(), primary.data(), copying{leaveOut: leftOut, own: s.home.account.own}); err != nil {
		return err
	}
	var label string
	err = conn.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)").Scan(&label)
	if err != nil {
		return err
	}
	return s.home.write(s.data("backup_label"), label)
}

// leftOut says what a base backup does without: what belongs to the running primary, and the log, which the standby
// fetches from the slot.
func leftOut(path string) bool {
	switch path {
	case "postmaster.pid", "postmaster.opts", "postgresql.auto.conf":
		return true
	}
	switch filepath.Dir(path) {
	case "pg_wal":
		return !strings.HasSuffix(path, "archive_status")
	case "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans":
		return true
	}
	return strings.HasPrefix(filepath.Base(path), "pgsql_tmp")
}

// configureStandby rewrites the copied settings and marks the data as a standby's.
func (s *Server) configureStandby(o *ReplicaOptions) error {
	host, port, found := strings.Cut(o.PrimaryAddr, ":")
	if !found {
		return fmt.Errorf("%q is not a host and a port", o.PrimaryAddr)
	}
	settings := map[string]string{
		"primary_conninfo": fmt.Sprintf(
			"host=%s port=%s user=%s application_name=%s sslmode=disable", host, port, superuser, o.Name),
		"primary_slot_name":            o.Name,
		"wal_retrieve_retry_interval":  "100ms",
		"wal_receiver_status_interval": "1s",
		"hot_standby":                  "on",
		"synchronous_standby_names":    "",
	}
	for name, value := range o.Config {
		settings[name] = value
	}
	if err := s.configure(settings); err != nil {
		return err
	}
	// ALTER SYSTEM on the primary is the primary's own: its file was not copied.
	if err := s.home.write(s.data("postgresql.auto.conf"), ""); err != nil {
		return err
	}
	return s.home.write(s.data("standby.signal"), "")
}
