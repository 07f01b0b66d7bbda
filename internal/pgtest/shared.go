package pgtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// brokerVariable is the environment variable by which a test finds the owner of the shared servers. Processes that a
// test starts inherit it, and so share the servers too.
const brokerVariable = "PAWL_PGTEST_BROKER"

// broker owns the shared servers of one test binary: it starts each when it is first asked for, and ends all.
type broker struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu      sync.Mutex
	servers map[int]*sharedServer
}

type sharedServer struct {
	once   sync.Once
	server *Server
	err    error
}

// answer is what the broker says: where the server is, or why there is none.
type answer struct {
	Port  int    `json:"port"`
	Error string `json:"error,omitempty"`
}

// Main runs the tests of a package whose tests call [Shared], and returns the exit status:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
// It owns the shared servers and ends them after the last test. A server starts when a test first asks for it.
func Main(m interface{ Run() int }) int {
	b, err := newBroker()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	code := m.Run()
	if err := b.close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	return code
}

// newBroker listens on a socket name of the kernel, which leaves no file, and publishes it in the environment.
func newBroker() (*broker, error) {
	address := "@pawl-pgtest-" + uuid.NewString()
	listener, err := net.Listen("unix", address)
	if err != nil {
		return nil, err
	}
	if err := os.Setenv(brokerVariable, address); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	b := &broker{listener: listener, servers: map[int]*sharedServer{}}
	b.serving.Go(b.accept)
	return b, nil
}

func (b *broker) close() error {
	errs := []error{b.listener.Close()}
	b.serving.Wait()
	for _, s := range b.servers {
		if s.server != nil {
			errs = append(errs, s.server.discard())
		}
	}
	return errors.Join(errs...)
}

func (b *broker) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return // closed: the tests are over
		}
		b.serving.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			b.serve(conn)
		})
	}
}

// serve answers one question: a major version and the folder of its installation, a line each.
func (b *broker) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	major, _ := in.ReadString('\n')
	native, err := in.ReadString('\n')
	if err != nil {
		return // the one who asked has gone
	}
	v := Version{native: strings.TrimSpace(native)}
	if v.Major, err = strconv.Atoi(strings.TrimSpace(major)); err != nil {
		return
	}
	reply := answer{}
	if s, err := b.server(v); err != nil {
		reply.Error = err.Error()
	} else {
		reply.Port = s.port
	}
	_ = json.NewEncoder(conn).Encode(reply)
}

// server starts the version's server once, however many ask at the same time.
func (b *broker) server(v Version) (*Server, error) {
	b.mu.Lock()
	s := b.servers[v.Major]
	if s == nil {
		s = &sharedServer{}
		b.servers[v.Major] = s
	}
	b.mu.Unlock()
	s.once.Do(func() { s.server, s.err = start(context.Background(), v, nil) })
	return s.server, s.err
}

// Shared is the version's server that all tests of the package share; [Main] must run them. Tests keep to databases and
// roles of their own, and cannot kill, reconfigure or replicate it. A check for leaked goroutines begins after the
// call.
func Shared(tb testing.TB, v Version) *Server {
	tb.Helper()
	address := os.Getenv(brokerVariable)
	if address == "" {
		tb.Fatal("no shared server: TestMain must call pgtest.Main")
	}
	reply, err := ask(tb.Context(), address, v)
	if err != nil {
		tb.Fatalf("asking for a shared server: %v", err)
	}
	if reply.Error != "" {
		tb.Fatal(reply.Error)
	}
	return &Server{Version: v, port: reply.Port, shared: true}
}

func ask(ctx context.Context, address string, v Version) (reply answer, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", address)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%d\n%s\n", v.Major, v.native); err != nil {
		return answer{}, err
	}
	err = json.NewDecoder(conn).Decode(&reply)
	return reply, err
}
