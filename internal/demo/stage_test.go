package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
	"github.com/pawl-go/pawl/memstore"
)

// wiring has a store that lives in this process: enough for one instance.
func wiring(s supervisor) Wiring {
	return Wiring{
		Now: time.Now,
		Open: func(_ context.Context, _ Address, realm string, t *pawl.Timings) (pawl.Store, error) {
			return memstore.New(&memstore.Options{Realm: realm, Timings: t})
		},
		Trust: func(string, json.RawMessage) (pawl.Verifier, error) { return s.verifier, nil },
	}
}

// served is one part that runs in this process, on pipes.
type served struct {
	in    io.WriteCloser
	log   *eventLog
	ended chan error
}

func serveHere(t *testing.T, w Wiring, part string, c config) served {
	t.Helper()
	fromStage, in := io.Pipe()
	out, toStage := io.Pipe()
	s := served{in: in, log: newEventLog(), ended: make(chan error, 1)}
	go func() {
		err := Serve(t.Context(), part, fromStage, toStage, w)
		_ = toStage.Close()
		s.ended <- err
	}()
	go func() { // ends with the part
		for dec := json.NewDecoder(out); ; {
			var e event
			if dec.Decode(&e) != nil {
				return
			}
			e.who = c.Name
			s.log.add(e)
		}
	}()
	if err := json.NewEncoder(in).Encode(c); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s served) url(t *testing.T) string {
	t.Helper()
	e, err := s.log.await(bounded(t), "a part to listen", func(e event) bool { return e.Type == evListening })
	if err != nil {
		t.Fatal(err)
	}
	return e.URL
}

// stop closes standard input, which must end the part.
func (s served) stop(t *testing.T) {
	t.Helper()
	_ = s.in.Close()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Error(err)
		}
	case <-bounded(t).Done():
		t.Fatal("a part outlives its standard input")
	}
}

// TestPartsTogether runs provider, instance and gateway as the demo does, and
// ends each by the end of its standard input.
func TestPartsTogether(t *testing.T) {
	s := newSupervisor(t)
	w := wiring(s)
	provider := serveHere(t, w, PartProvider, config{Name: nameProvider})
	api := &billing.Client{BaseURL: provider.url(t), HTTP: newClient()}
	instance := serveHere(t, w, PartInstance, config{Name: nameA, Billing: api.BaseURL, Realm: realmName, Keys: s.keys})
	gate := serveHere(t, w, PartGateway, config{
		Name: nameGateway, Timeout: time.Minute, Instances: []backend{{nameA, instance.url(t)}},
	})
	o := &Options{Now: time.Now}
	st := &stage{o: o, log: newEventLog(), web: newClient(), door: gate.url(t), grant: s.issue(t, time.Now()), billing: api}
	op := pawl.NewOperationID()
	for range 2 {
		got, err := st.apply(bounded(t), op)
		if err != nil || got.Code != 200 || got.Status != "succeeded" {
			t.Fatalf("answered %+v, %v", got, err)
		}
	}
	if err := st.readBooks(bounded(t)); err != nil || st.result.Credits != 1 || st.result.Total != amount {
		t.Errorf("the books: %+v, %v", st.result.RunReport, err)
	}
	if _, err := provider.log.await(bounded(t), "the credit", by(nameProvider, evCredited)); err != nil {
		t.Error(err)
	}
	gate.stop(t)
	instance.stop(t)
	provider.stop(t)
}

// TestProviderTellsReplays: a known key is no second credit.
func TestProviderTellsReplays(t *testing.T) {
	provider := serveHere(t, wiring(newSupervisor(t)), PartProvider, config{Name: nameProvider})
	api := &billing.Client{BaseURL: provider.url(t), HTTP: newClient()}
	for _, key := range []string{"k1", "k1", "k2"} {
		if _, err := api.Create(bounded(t), key, account, amount, currency); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := provider.log.await(bounded(t), "a replay", by(nameProvider, evReplayed)); err != nil {
		t.Error(err)
	}
	_, err := provider.log.await(bounded(t), "the second credit", func(e event) bool { return e.Type == evCredited && e.Key == "k2" })
	if err != nil {
		t.Error(err)
	}
	provider.stop(t)
}

// TestServeRefuses what it cannot be.
func TestServeRefuses(t *testing.T) {
	s := newSupervisor(t)
	broken := wiring(s)
	broken.Open = func(context.Context, Address, string, *pawl.Timings) (pawl.Store, error) {
		return nil, &pawl.Error{Class: pawl.ErrUnavailable, Reason: pawl.ReasonUnreachable}
	}
	for name, tt := range map[string]struct {
		part, in string
		w        Wiring
	}{
		"no wiring":           {PartGateway, `{}`, Wiring{}},
		"no configuration":    {PartProvider, ``, wiring(s)},
		"an unknown part":     {"till", `{}`, wiring(s)},
		"a lonely gateway":    {PartGateway, `{}`, wiring(s)},
		"a store that is not": {PartInstance, `{"realm":"r"}`, broken},
	} {
		var out bytes.Buffer
		if err := Serve(t.Context(), tt.part, strings.NewReader(tt.in), &out, tt.w); err == nil {
			t.Errorf("%s: served", name)
		}
	}
}

// TestLogNoticesTheBroken: nobody waits for a process that is gone.
func TestLogNoticesTheBroken(t *testing.T) {
	l := newEventLog()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.await(ctx, "godot", by(nameA, evNoted)); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "godot") {
		t.Errorf("a wait that ends: %v", err)
	}
	l.add(event{who: nameA, Type: evEnded, Text: "gone"})
	if _, err := l.await(t.Context(), "godot", by(nameA, evNoted)); err == nil || !strings.Contains(err.Error(), "instance A broke off: gone") {
		t.Errorf("a process that ended: %v", err)
	}
	l.add(event{who: nameA, Type: evNoted})
	if _, err := l.await(t.Context(), "godot", by(nameA, evNoted)); err != nil {
		t.Errorf("what was said before still counts: %v", err)
	}
}

// TestChildEndsByItself: a process that is no part of the demo says what is no
// event and ends; both are noticed.
func TestChildEndsByItself(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Now: time.Now, Command: func(string) []string { return []string{self, "-test.run=^$", "-test.v"} }}
	log := newEventLog()
	p, err := startChild(o, PartGateway, config{Name: nameGateway}, log)
	if err != nil {
		t.Skipf("it ended before it could be configured: %v", err)
	}
	select {
	case <-p.done:
	case <-bounded(t).Done():
		t.Fatal("it does not end")
	}
	for _, kind := range []eventType{evFailed, evEnded} {
		if !slices.ContainsFunc(log.story(), by(nameGateway, kind)) {
			t.Errorf("nobody is told %q", kind)
		}
	}
	stopAll([]*child{p}, false)
	if p.cmd.ProcessState == nil {
		t.Error("it was not waited for")
	}
	o.Command = func(string) []string { return []string{"/nonexistent/pawl"} }
	if _, err := startChild(o, PartGateway, config{}, log); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a binary that is not there: %v", err)
	}
}

// TestBrokenClaims: whatever the books or an answer say otherwise is a problem,
// and shown as one.
func TestBrokenClaims(t *testing.T) {
	for _, p := range plans("sqlite") {
		right := RunReport{Store: p.store, Incident: p.incident, Credits: p.credits, Total: p.total}
		fewer, dearer := right, right
		fewer.Credits--
		dearer.Total = "1000.00"
		for _, r := range []RunReport{fewer, dearer} {
			if (&stage{plan: p, result: result{RunReport: r}}).asClaimed() == nil {
				t.Errorf("%s/%s takes %d credits, %s", p.store, p.incident, r.Credits, r.Total)
			}
		}
		if err := (&stage{plan: p, result: result{RunReport: right}}).asClaimed(); err != nil {
			t.Errorf("%s/%s: %v", p.store, p.incident, err)
		}
	}
	if want("it", answer{Code: 409, Error: "x"}, spent) == nil || want("it", answer{Code: 200, Status: "failed"}, pending, succeeded) == nil {
		t.Error("a wrong answer is taken")
	}
	idle := plan{play: func(context.Context, *stage) error { return nil }, credits: 1, total: "250.00"}
	if r := (&stage{plan: idle, log: newEventLog()}).run(t.Context()); r.Problem == "" {
		t.Error("a run without a credit ends as claimed")
	}
	var out strings.Builder
	s := newScreen(&Options{Out: &out, Colour: true})
	s.show(1, result{RunReport: RunReport{Credits: 2, Total: "500.00", Problem: "two of them"}})
	s.closing(Report{Runs: []RunReport{{Store: "sqlite", Incident: "retry", Problem: "two of them"}}})
	for _, text := range []string{"NOT AS CLAIMED: two of them", "Not every run ended as claimed: sqlite/retry", "\x1b[31m"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%q is not shown:\n%s", text, out.String())
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	if _, err := Run(t.Context(), &Options{}); err == nil {
		t.Error("ran without options")
	}
	s := newSupervisor(t)
	away := errors.New("away")
	o := &Options{
		Command: func(string) []string { return nil }, Now: time.Now, Issuer: s.issuer, Keys: s.keys, Store: "sqlite",
		Place: func(context.Context, string, string, *pawl.Timings) (Address, error) { return Address{}, away },
		Open:  wiring(s).Open,
	}
	if _, err := Run(t.Context(), o); !errors.Is(err, away) {
		t.Errorf("no store to be had: %v", err)
	}
	o.Incidents = []string{"flood"}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "flood") {
		t.Errorf("an unknown incident: %v", err)
	}
}
