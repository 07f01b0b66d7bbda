package sqlitestore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sqlitestore"
)

// Several tests need processes that share nothing but the file, and that can
// die. They are this test's own binary, started again with a task.

const taskVariable = "PAWL_SQLITESTORE_TASK"

// task is what a process is to do.
type task struct {
	Do     string // open, race, admit, admit-and-die, admit-and-record, admit-many or purge
	Path   string
	Issued time.Time // of every grant
	Grant  string
	ID     string
	Grants int
	Racers int // at each grant
}

// told is what a process tells, one line each.
type told struct {
	Ready    bool
	StoreID  string
	Fresh    bool
	ID       string
	Token    string
	Status   string
	Admitted []string // grants
	Refused  int
	Deleted  int // rows
	Errors   []string
}

func TestMain(m *testing.M) {
	if raw := os.Getenv(taskVariable); raw != "" {
		if err := work(context.Background(), raw); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func work(ctx context.Context, raw string) error {
	var do task
	if err := json.Unmarshal([]byte(raw), &do); err != nil {
		return err
	}
	tell := func(t told) error { return json.NewEncoder(os.Stdout).Encode(t) }
	start := func() error { // once the parent says so
		if err := tell(told{Ready: true}); err != nil {
			return err
		}
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		return err
	}
	switch do.Do {
	case "open":
		if err := start(); err != nil {
			return err
		}
		s, err := sqlitestore.Open(ctx, do.Path, nil)
		if err != nil {
			return err
		}
		return errors.Join(tell(told{StoreID: s.ID()}), s.Close())
	case "race":
		return race(ctx, do, start, tell)
	case "admit", "admit-and-die":
		return admitOne(ctx, do, tell)
	case "admit-and-record":
		return admitAndRecord(ctx, do, tell)
	case "admit-many":
		return admitMany(ctx, do, tell)
	case "purge":
		return purgeAll(ctx, do, tell)
	}
	return fmt.Errorf("no such task: %s", do.Do)
}

// race admits every grant through two handles by many goroutines, each with an
// operation of its own.
func race(ctx context.Context, do task, start func() error, tell func(told) error) error {
	var handles [2]*sqlitestore.Store
	for i := range handles {
		s, err := sqlitestore.Open(ctx, do.Path, nil)
		if err != nil {
			return err
		}
		defer s.Close()
		handles[i] = s
	}
	if err := start(); err != nil {
		return err
	}
	var all told
	var mu sync.Mutex
	for n := range do.Grants {
		var racers sync.WaitGroup
		for r := range do.Racers {
			racers.Go(func() {
				s := handles[r%len(handles)]
				got, err := s.Admit(ctx, presented(s, fmt.Sprint("grant-", n), pawl.NewOperationID(), do.Issued))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && got.Fresh:
					all.Admitted = append(all.Admitted, fmt.Sprint("grant-", n))
				case errors.Is(err, pawl.ErrRefused) && pawl.ReasonOf(err) == pawl.ReasonUsed:
					all.Refused++
				default:
					all.Errors = append(all.Errors, fmt.Sprint(got.Fresh, err))
				}
			})
		}
		racers.Wait()
	}
	return tell(all)
}

// admitOne admits one grant. To die is to be killed between commit and reply.
func admitOne(ctx context.Context, do task, tell func(told) error) error {
	var armed atomic.Bool
	s, err := sqlitestore.OpenHooked(ctx, do.Path, nil, nil, func(end func() error) error {
		err := end()
		if armed.Load() && err == nil {
			if self, err := os.FindProcess(os.Getpid()); err == nil && self.Kill() == nil {
				select {} // the end comes from outside
			}
			return errors.New("this process cannot be killed")
		}
		return err
	})
	if err != nil {
		return err
	}
	armed.Store(do.Do == "admit-and-die")
	id, err := pawl.ParseOperationID(do.ID)
	if err != nil {
		return err
	}
	got, err := s.Admit(ctx, presented(s, do.Grant, id, do.Issued))
	if err != nil {
		return err
	}
	if err := tell(told{Fresh: got.Fresh, ID: got.Operation.ID.String()}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent kills it
	return err
}

// admitAndRecord admits one grant and records the success of its operation.
func admitAndRecord(ctx context.Context, do task, tell func(told) error) error {
	s, err := sqlitestore.Open(ctx, do.Path, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	id, err := pawl.ParseOperationID(do.ID)
	if err != nil {
		return err
	}
	got, err := s.Admit(ctx, presented(s, do.Grant, id, do.Issued))
	if err != nil {
		return err
	}
	if err := tell(told{Fresh: got.Fresh, Token: string(got.Owner.Token)}); err != nil {
		return err
	}
	op, err := s.Record(ctx, pawl.Statement{ID: id, Token: got.Owner.Token, Outcome: pawl.Succeeded("done")})
	if err != nil {
		return err
	}
	return tell(told{Status: op.Status.String()})
}

// admitMany admits one grant after the other and tells each, until it is killed.
func admitMany(ctx context.Context, do task, tell func(told) error) error {
	s, err := sqlitestore.Open(ctx, do.Path, nil)
	if err != nil {
		return err
	}
	for n := range do.Grants {
		var callers sync.WaitGroup
		var mu sync.Mutex
		for c := range do.Racers {
			callers.Go(func() {
				got, err := s.Admit(ctx, presented(s, fmt.Sprint(do.Grant, "-", n, "-", c), pawl.NewOperationID(), do.Issued))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					_ = tell(told{Errors: []string{err.Error()}})
					return
				}
				_ = tell(told{Fresh: got.Fresh, ID: got.Operation.ID.String()})
			})
		}
		callers.Wait()
	}
	return nil
}

// purgeAll purges in small batches and tells each, until it is killed.
func purgeAll(ctx context.Context, do task, tell func(told) error) error {
	s, err := sqlitestore.Open(ctx, do.Path, nil)
	if err != nil {
		return err
	}
	for {
		r, err := s.Purge(ctx, pawl.PurgeBatch{Limit: 20})
		if err != nil {
			return err
		}
		if err := tell(told{Deleted: r.Refusals + r.Operations}); err != nil {
			return err
		}
	}
}

// process is another process at work.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *json.Decoder
	errs  *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	return len(p), nil
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}

// begin starts a process; extra are further environment variables.
func begin(t *testing.T, do task, extra ...string) *process {
	t.Helper()
	raw, err := json.Marshal(do)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0]), errs: &lockedBuffer{}}
	p.cmd.Env = append(append(os.Environ(), taskVariable+"="+string(raw)), extra...)
	p.cmd.Stderr = p.errs
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	p.lines = json.NewDecoder(stdout)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// heard reads one line; false at the end of the process.
func (p *process) heard() (told, bool) {
	var line told
	err := p.lines.Decode(&line)
	return line, err == nil
}

// hears reads one line that must come.
func (p *process) hears() told {
	p.t.Helper()
	line, ok := p.heard()
	if !ok {
		p.t.Fatalf("the process ended: %v: %s", p.cmd.Wait(), p.errs)
	}
	return line
}

// start lets a process begin that waits for its parent.
func (p *process) start() {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, "go\n"); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for a process that must end well.
func (p *process) ends() {
	p.t.Helper()
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("the process ended with %v: %s", err, p.errs)
	}
}

// dies waits for a process that must be killed, or have been.
func (p *process) dies() {
	p.t.Helper()
	for {
		if _, more := p.heard(); !more {
			break
		}
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		p.t.Fatalf("the process was not killed but ended with %v: %s", err, p.errs)
	}
	p.stdin.Close()
}

// kill is kill -9.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.dies()
}

// presented is a token's grant presented for an operation.
func presented(s *sqlitestore.Store, grantID string, id pawl.OperationID, issued time.Time) pawl.Admission {
	intent := pawl.Intent{Kind: "credit.create", Details: pawl.StoredDetails(`{"account":"A-1187","amount":"250.00"}`)}
	return pawl.Admission{
		Grant: pawl.Grant{
			Form: pawl.FormToken, Key: pawl.GrantKey{Issuer: "issuer", ID: grantID}, Realm: s.Realm(), Subject: "ana",
			Intent: intent, IssuedAt: issued, ExpiresAt: issued.Add(time.Hour),
		},
		OperationID: id, Intent: intent, Caller: pawl.Caller{Principal: "ana"},
		Lease: 30 * time.Second, SubmissionWindow: 10 * time.Minute,
	}
}

// justNow is an issue time that every store's clock has reached.
func justNow() time.Time { return time.Now().Add(-time.Second).Truncate(time.Second) }

func open(t *testing.T, path string, o *sqlitestore.Options) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), path, o)
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

// exampleFolder is a folder for an example, which has no testing.T.
func exampleFolder() (dir string, cleanUp func()) {
	dir, err := os.MkdirTemp("", "pawl")
	if err != nil {
		panic(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}
