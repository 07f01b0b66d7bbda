package demo

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func do(h http.Handler, method, path, body string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code
}

func instanceOf(t *testing.T, name string, h http.HandlerFunc) backend {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return backend{name, srv.URL}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// wait answers only when its caller has left, which a server notices once the
// body is read.
func wait(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestGatewayTakesTurns(t *testing.T) {
	var said events
	g := newGateway([]backend{
		instanceOf(t, nameA, status(201)), instanceOf(t, nameB, status(202)),
	}, time.Minute, said.tell)
	var got []int
	for range 4 {
		got = append(got, do(g, "POST", "/credits", "{}"))
	}
	if diff := cmp.Diff([]int{201, 202, 201, 202}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if said.count(evRouted) != 4 {
		t.Errorf("told of %d requests", said.count(evRouted))
	}
}

// TestGatewayGivesUp: a slow instance stays in turn, for nothing says that it is
// down.
func TestGatewayGivesUp(t *testing.T) {
	var said events
	g := newGateway([]backend{instanceOf(t, nameA, wait), instanceOf(t, nameB, status(202))}, 20*time.Millisecond, said.tell)
	if got := do(g, "POST", "/credits", "{}"); got != http.StatusGatewayTimeout {
		t.Fatalf("a slow instance: %d, want 504", got)
	}
	g.timeout = time.Minute
	if got := do(g, "POST", "/credits", "{}"); got != 202 {
		t.Errorf("the other instance: %d", got)
	}
	if b, ok := g.turn(); !ok || b.Name != nameA {
		t.Errorf("next in turn is %q", b.Name)
	}
	if said.count(evTimeout) != 1 || said.count(evBroken) != 0 {
		t.Errorf("told: %v", said.all)
	}
}

// TestGatewayLeavesOut: a request is never sent twice, and an instance that hung
// up is left out.
func TestGatewayLeavesOut(t *testing.T) {
	var said events
	g := newGateway([]backend{instanceOf(t, nameA, hangUp), instanceOf(t, nameB, status(202))}, time.Minute, said.tell)
	var got []int
	for range 3 {
		got = append(got, do(g, "POST", "/credits", "{}"))
	}
	if diff := cmp.Diff([]int{502, 202, 202}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	g.leaveOut(g.up[0])
	if got := do(g, "POST", "/credits", "{}"); got != http.StatusServiceUnavailable {
		t.Errorf("without instances: %d, want 503", got)
	}
}

func TestGatewayCallerLeaves(t *testing.T) {
	var said events
	g := newGateway([]backend{instanceOf(t, nameA, wait)}, time.Minute, said.tell)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	if len(g.up) != 1 || said.count(evBroken) != 0 {
		t.Error("an instance is blamed for a caller who left")
	}
}
