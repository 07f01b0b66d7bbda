package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/pawl-go/pawl"
)

// The parts, each a process of its own.
const (
	PartProvider = "provider"
	PartInstance = "instance"
	PartGateway  = "gateway"
)

// Wiring is what a process is made of that this package must not choose: stores,
// keys and the wall clock are the binary's. All of it is required.
type Wiring struct {
	// Now is the wall clock: it dates events, and is the clock of the local record
	// and of the provider. What Pawl decides, it decides on the store's.
	Now func() time.Time
	// Open opens the store at an address, with this realm and these timings.
	Open func(ctx context.Context, a Address, realm string, t *pawl.Timings) (pawl.Store, error)
	// Trust returns the verifier that an instance of a realm uses: it trusts the one
	// issuer of the demo, whose public key set is keys.
	Trust func(realm string, keys json.RawMessage) (pawl.Verifier, error)
}

// Address names the store of a run. It may hold a password, so it travels on
// standard input and is never printed.
type Address struct {
	URL    string `json:"url"` // sqlite:PATH or postgres://…
	Schema string `json:"schema,omitempty"`
}

// config is what the stage tells a process.
type config struct {
	Name string `json:"name"`

	Answer time.Duration `json:"answer_ns,omitempty"` // provider: how long an answer takes after the credit
	Hold   bool          `json:"hold,omitempty"`      // provider: answers never leave

	Timeout   time.Duration `json:"timeout_ns,omitempty"` // gateway: how long it waits for an instance
	Instances []backend     `json:"instances,omitempty"`  // gateway

	Billing string          `json:"billing,omitempty"` // instance: the provider's address
	Local   bool            `json:"local,omitempty"`   // instance: the record is a map in the process
	Store   Address         `json:"store,omitzero"`    // instance: else the record is Pawl's
	Realm   string          `json:"realm,omitempty"`
	Keys    json.RawMessage `json:"keys,omitempty"`
}

// Serve is one process of the demo: it reads its configuration from in, tells
// what happens on out, and stops when in ends. Signals do not stop it: a terminal
// sends them to the stage and its processes alike, and the stage decides. The
// error has been told on out already.
func Serve(ctx context.Context, part string, in io.Reader, out io.Writer, w Wiring) error {
	if w.Now == nil || w.Open == nil || w.Trust == nil {
		return errors.New("demo: the wiring is incomplete")
	}
	t := newTeller(out, w.Now)
	var c config
	if err := json.NewDecoder(in).Decode(&c); err != nil {
		return fmt.Errorf("demo: a part is started by the demo, which configures it on standard input: %w", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() {
		err := serve(ctx, part, c, w, t)
		if err != nil {
			t.tell(event{Type: evFailed, Text: err.Error()})
		}
		ended <- err
	}()
	_, _ = io.Copy(io.Discard, in) // the end of the stage, or its word to stop
	stop()
	return <-ended
}

func serve(ctx context.Context, part string, c config, w Wiring, t *teller) error {
	switch part {
	case PartProvider:
		return serveProvider(ctx, c, w.Now, t)
	case PartInstance:
		return serveInstance(ctx, c, w, t)
	case PartGateway:
		return serveGateway(ctx, c, t)
	}
	return fmt.Errorf("demo: there is no part %q", part)
}

// listen takes a free port of this machine's own.
func listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", "127.0.0.1:0")
}

// stopGrace is how long a server lets requests finish when it is stopped.
const stopGrace = time.Second

// serveHTTP tells its address and serves until ctx ends.
func serveHTTP(ctx context.Context, h http.Handler, t *teller) error {
	l, err := listen(ctx)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.tell(event{Type: evListening, URL: "http://" + l.Addr().String()})
	select {
	case err := <-ended:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if server.Shutdown(grace) != nil {
		_ = server.Close() // what is still in flight has nobody to answer to
	}
	<-ended
	return nil
}

// newClient returns a client that opens a connection for each request and knows
// no proxy: a request goes to one process, once.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the caller may have left
}
