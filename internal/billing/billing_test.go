package billing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/billing"
)

// rig is a provider on a real listener with a client that keeps connections alive.
type rig struct {
	*billing.Provider
	client *billing.Client
	url    string
}

func start(t *testing.T, opts *billing.Options) rig {
	t.Helper()
	p, err := billing.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(p)
	web := newHTTPClient(t)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
	return rig{p, &billing.Client{BaseURL: srv.URL, HTTP: web}, srv.URL}
}

// newHTTPClient has a pool of its own, so that which connection is reused depends on nothing else.
func newHTTPClient(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// answer is an HTTP reply as a test wants to see it.
type answer struct {
	status   int
	replayed bool
	body     string
	code     string
	decline  string
	id       string
}

// post sends a create as any HTTP client would; an empty key sends no header.
func post(t *testing.T, url, key, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/credits", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return do(t, req)
}

func do(t *testing.T, req *http.Request) answer {
	t.Helper()
	res, err := newHTTPClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		ID      string `json:"id"`
		Code    string `json:"code"`
		Decline string `json:"decline_code"`
	}
	_ = json.Unmarshal(raw, &doc) // not every answer is JSON; the status tells
	return answer{
		status: res.StatusCode, replayed: res.Header.Get("Idempotent-Replayed") == "true",
		body: string(raw), code: doc.Code, decline: doc.Decline, id: doc.ID,
	}
}

const credit250 = `{"account":"acc_1","amount":"250.00","currency":"USD"}`

// wantCredits checks the books: how many credits exist under a key and how many requests came.
func wantCredits(t *testing.T, b billing.Books, key string, credits, requests int) {
	t.Helper()
	if got := b.Reference(key); got.Credits != credits || got.Requests != requests {
		t.Errorf("key %s: got %d credits from %d requests, want %d from %d",
			key, got.Credits, got.Requests, credits, requests)
	}
}

// inFlight starts a create in the background and returns a function that waits for its end.
func inFlight(ctx context.Context, c *billing.Client, key, amount string) func() (string, error) {
	type result struct {
		id  string
		err error
	}
	done := make(chan result, 1)
	go func() {
		id, err := c.Create(ctx, key, "acc_1", amount, "USD")
		done <- result{id, err}
	}()
	return func() (string, error) {
		r := <-done
		return r.id, r.err
	}
}

func inject(t *testing.T, p *billing.Provider, faults ...billing.Fault) {
	t.Helper()
	if err := p.Inject(faults...); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, p *billing.Provider, gate string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := p.Await(ctx, gate, n); err != nil {
		t.Fatal(err)
	}
}
