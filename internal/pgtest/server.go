package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// superuser is the role that owns every server.
const superuser = "postgres"

// serverLog is the name of a server's log in its home.
const serverLog = "server.log"

// Options says how a server differs from the usual one. The zero value is the usual one.
type Options struct {
	// Config holds settings of postgresql.conf, in PostgreSQL's own spelling: {"fsync": "off"}.
	Config map[string]string
	// InitdbArgs follow the usual arguments of initdb and win over them. Settings belong in Config.
	InitdbArgs []string
}

// Server is one PostgreSQL server, a primary or a standby. It keeps its port for life, restarts included, so a
// connection string stays true.
type Server struct {
	// Version is what the server runs.
	Version Version

	home    *home
	cache   string // the folder of the installation, where new data is kept to be copied
	port    int
	release func() error // gives the port back
	process *process     // nil while stopped and in a handle to a shared server
	shared  bool
}

// Start runs a server that belongs to the test alone: it may be killed, reconfigured and replicated. The options may be
// nil. Servers that were made with the same arguments of initdb have the same system identifier, since all but the
// first are copies.
func Start(tb testing.TB, v Version, o *Options) *Server {
	tb.Helper()
	s, err := start(tb.Context(), v, o)
	if err != nil {
		tb.Fatal(err)
	}
	s.cleanUpAfter(tb)
	return s
}

// cleanUpAfter ends the server with the test, and shows its log if the test failed.
func (s *Server) cleanUpAfter(tb testing.TB) {
	tb.Helper()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the end of the log of PostgreSQL %s on port %d:\n%s", s.Version, s.port, s.home.tail(serverLog))
		}
		if err := s.discard(); err != nil {
			tb.Error(err)
		}
	})
}

// start makes and starts a server. An error leaves nothing behind.
func start(ctx context.Context, v Version, o *Options) (_ *Server, err error) {
	if o == nil {
		o = &Options{}
	}
	s, err := prepare(v)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.discard())
		}
	}()
	if err := s.makeData(ctx, o.InitdbArgs); err != nil {
		return nil, err
	}
	if err := s.configure(o.Config); err != nil {
		return nil, err
	}
	return s, s.launch(ctx)
}

// prepare takes a home and a port for a server to come.
func prepare(v Version) (*Server, error) {
	h, err := newHome()
	if err != nil {
		return nil, err
	}
	s := &Server{Version: v, home: h, cache: filepath.Dir(v.native)}
	native, err := h.reachable(v.native)
	if err != nil {
		return nil, errors.Join(err, h.remove())
	}
	s.Version.native = native
	if s.port, s.release, err = reservePort(); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	return s, nil
}

// discard ends the server at once and removes all that is its own.
func (s *Server) discard() error {
	if s.process != nil {
		s.process.kill()
		s.process = nil
	}
	return errors.Join(s.home.remove(), s.release())
}

func (s *Server) data(name ...string) string {
	return s.home.path(append([]string{"data"}, name...)...)
}

// configFile holds all settings of the rig, apart from what initdb wrote and what ALTER SYSTEM writes.
const configFile = "pawl.conf"

// configure writes the settings: those every server has, then the caller's.
func (s *Server) configure(settings map[string]string) error {
	all := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": s.home.dir,
		"cluster_name":            s.home.marker(), // the mark in the titles of the server's processes
		"fsync":                   "on",            // a store refuses anything else
		"max_connections":         "200",
		"shared_buffers":          "16MB",
		"max_wal_size":            "256MB",
		"max_worker_processes":    "4",
		"jit":                     "off",
		"log_checkpoints":         "off",
		"log_line_prefix":         "%m [%p] ",
		"log_timezone":            "UTC",
		"timezone":                "UTC",
		"lc_messages":             "C",
		// Shared memory in files of the data directory, not in /dev/shm, where a killed server would leave it.
		"dynamic_shared_memory_type": "mmap",
	}
	if s.Version.Major >= 18 {
		all["io_method"] = "sync" // no worker processes
	}
	maps.Copy(all, settings)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(all[name], "'", "''"))
	}
	if err := s.home.write(s.data(configFile), b.String()); err != nil {
		return err
	}
	conf, err := os.OpenFile(s.data("postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = conf.WriteString("\ninclude '" + configFile + "'\n")
	return errors.Join(err, conf.Close())
}

// launch starts the server and waits until it answers. Somebody outside the rig may have taken the port since it was
// found free; the server then gets another one, unless it had been running on this one already.
func (s *Server) launch(ctx context.Context) error {
	const tries = 5
	for try := 1; ; try++ {
		err := s.launchOnce(ctx)
		if err == nil || try == tries || ctx.Err() != nil || portFree(s.port) {
			return err
		}
		if err := s.release(); err != nil {
			return err
		}
		if s.port, s.release, err = reservePort(); err != nil {
			s.release = func() error { return nil }
			return err
		}
	}
}

func (s *Server) launchOnce(ctx context.Context) error {
	p, err := s.home.start(serverLog, s.Version.program("postgres"), "-D", s.data(), "-p", strconv.Itoa(s.port))
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, p); err != nil {
		p.kill()
		return errors.Join(
			fmt.Errorf("PostgreSQL %s does not start: %w; the end of its log:\n%s", s.Version, err, s.home.tail(serverLog)),
			s.home.killAll())
	}
	s.process = p
	return nil
}

// awaitReady connects until the server lets it.
func (s *Server) awaitReady(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		conn, err := s.connect(ctx, superuser)
		if err == nil {
			return true, conn.Close(ctx)
		}
		if !p.running() {
			return false, fmt.Errorf("%w; the process ended", err)
		}
		return false, nil
	})
}

// DataDir is the server's data directory. A shared server shows none.
func (s *Server) DataDir() string {
	if s.shared {
		return ""
	}
	return s.data()
}

// Addr is the server's host and port.
func (s *Server) Addr() string { return loopback(s.port) }

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Kill ends every process of the server at once, as a crash of its host would; what it had flushed is on disk, what it
// had not is lost. When Kill returns, nothing of the server runs.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.mustBeOwn(tb, "killed")
	if s.process == nil {
		return
	}
	s.process.kill()
	s.process = nil
	if err := s.home.killAll(); err != nil {
		tb.Fatal(err)
	}
}

// Stop shuts the server down in good order: sessions are ended, the log is flushed and sent to standbys.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.mustBeOwn(tb, "stopped")
	if s.process == nil {
		return
	}
	err := s.process.stop(patience)
	s.process = nil
	if err != nil {
		tb.Fatal(errors.Join(err, s.home.killAll()))
	}
}

// Restart starts the server on its data and its port, and waits until it answers. A running one is stopped first.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.Stop(tb)
	if err := s.launchOnce(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// mustBeOwn keeps a test from what would end or change a server that others use.
func (s *Server) mustBeOwn(tb testing.TB, what string) {
	tb.Helper()
	if s.shared {
		tb.Fatalf("a shared server may not be %s: use pgtest.Start", what)
	}
}
