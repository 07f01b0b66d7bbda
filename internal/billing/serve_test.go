package billing_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/internal/billing"
)

// fileVariable makes the test binary a provider process on the named file.
const fileVariable = "PAWL_BILLING_TEST_FILE"

func TestMain(m *testing.M) {
	if file := os.Getenv(fileVariable); file != "" {
		fmt.Fprintln(os.Stderr, provide(file))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// provide serves until it is killed, and says where on standard output.
func provide(file string) error {
	p, err := billing.New(&billing.Options{File: file, Now: time.Now, Control: true})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", ln.Addr())
	return p.Serve(context.Background(), ln)
}

// spawn starts a provider process; the returned function kills it and waits for its end.
func spawn(t *testing.T, file string) (*billing.Client, func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fileVariable+"="+file)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed, and says so
	})
	t.Cleanup(kill)
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &billing.Client{BaseURL: strings.TrimSpace(url), HTTP: newHTTPClient(t)}, kill
}

// Killed in the middle of many calls, again and again: what was answered is on the books once, and
// its key is still remembered.
func TestKilledProviderKeepsWhatItAnswered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "books.jsonl")
	answered := make(map[string]string) // id by key
	for round := range 4 {
		client, kill := spawn(t, file)
		type result struct {
			key, id string
			err     error
		}
		const workers, each, enough = 4, 50, 40
		results := make(chan result)
		for w := range workers {
			go func() {
				for i := range each {
					key := fmt.Sprintf("k-%d-%d-%d", round, w, i)
					id, err := client.Create(t.Context(), key, "acc_1", "0.10", "USD")
					results <- result{key, id, err}
				}
			}()
		}
		good := 0
		for range workers * each {
			r := <-results
			if r.err == nil {
				answered[r.key], good = r.id, good+1
			} else if errors.Is(r.err, billing.ErrDeclined) {
				t.Errorf("%s: %v", r.key, r.err)
			}
			if good == enough {
				kill()
			}
		}
	}
	client, _ := spawn(t, file)
	b, err := client.Books(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byKey := make(map[string]string)
	for _, c := range b.Credits {
		if byKey[c.Reference] != "" {
			t.Errorf("two credits under %s", c.Reference)
		}
		byKey[c.Reference] = c.ID
	}
	for key, id := range answered {
		if byKey[key] != id {
			t.Errorf("%s: answered %s, on the books %q", key, id, byKey[key])
		}
	}
	for key, id := range byKey {
		if again, err := client.Create(t.Context(), key, "acc_1", "0.10", "USD"); again != id || err != nil {
			t.Errorf("%s: again %s %v, want %s", key, again, err, id)
		}
	}
}

// serving runs Serve on a free port until the returned function stops it.
func serving(t *testing.T, opts billing.Options) (rig, func() error) {
	t.Helper()
	p := open(t, opts)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, ln) }()
	url := "http://" + ln.Addr().String()
	stop := func() error {
		cancel()
		return <-ended
	}
	return rig{p, &billing.Client{BaseURL: url, HTTP: newHTTPClient(t)}, url}, stop
}

func TestServeLetsCallsFinish(t *testing.T) {
	r, stop := serving(t, billing.Options{
		Grace:  time.Minute,
		Faults: []billing.Fault{{HoldBefore: "g", HoldAfter: "done"}},
	})
	call := inFlight(t.Context(), r.client, "k1", "250.00")
	await(t, r.Provider, "g", 1)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for { // until the stop has begun
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	r.Release("g")
	await(t, r.Provider, "done", 1)
	r.Release("done")
	if id, err := call(); err != nil {
		t.Errorf("the call in flight: %s %v", id, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := r.client.Create(t.Context(), "k2", "acc_1", "250.00", "USD"); err == nil {
		t.Error("answered after the stop")
	}
	wantCredits(t, r.Books(), "k1", 1, 1)
}

func TestServeDropsWhatOutlastsTheGrace(t *testing.T) {
	r, stop := serving(t, billing.Options{
		Grace: time.Nanosecond,
		Faults: []billing.Fault{
			{Key: "before", HoldBefore: "g"},
			{Key: "after", HoldAfter: "g"},
			{Key: "cut", HoldBefore: "g", Do: billing.CutBefore},
		},
	})
	before := inFlight(t.Context(), r.client, "before", "250.00")
	after := inFlight(t.Context(), r.client, "after", "250.00")
	cut := inFlight(t.Context(), r.client, "cut", "250.00")
	await(t, r.Provider, "g", 3)
	if err := stop(); err != nil {
		t.Error(err)
	}
	for _, call := range []func() (string, error){before, after, cut} {
		if id, err := call(); err == nil {
			t.Errorf("got %s", id)
		}
	}
	for key, want := range map[string]int{"before": 0, "after": 1, "cut": 0} {
		wantCredits(t, r.Books(), key, want, 1)
	}
}

func TestServeReportsABrokenListener(t *testing.T) {
	p := open(t, billing.Options{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Serve(t.Context(), ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
