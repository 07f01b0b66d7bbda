package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/pgtest"
)

// server is one `pawl serve --dev` in this process.
type server struct {
	t   *testing.T
	url string
}

const devTestToken = "test-token-of-the-development-server"

// startServer runs the command until the test ends; its first line is JSON.
func startServer(t *testing.T, store string) *server {
	t.Helper()
	return startServerIn(t, t.TempDir(), store)
}

// startServerIn keeps the data directory, where the development key is that
// servers without a file share.
func startServerIn(t *testing.T, data, store string) *server {
	t.Helper()
	out, in := io.Pipe()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan int, 1)
	var logs bytes.Buffer
	go func() {
		ended <- runFor(ctx, []string{"serve", "--dev", "--store", store, "--listen", "127.0.0.1:0"}, environment{
			in: strings.NewReader(""), out: in, err: &logs,
			get: func(name string) string {
				return map[string]string{"PAWL_DEV_TOKEN": devTestToken, "XDG_DATA_HOME": data}[name]
			}, now: time.Now,
		})
		_ = in.Close()
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("serve exited with %d: %s", code, logs.String())
		}
	})
	var first struct {
		URL     string  `json:"url"`
		Console *string `json:"console"`
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &first) != nil || first.URL == "" {
		t.Fatalf("first line: %q, %v", line, err)
	}
	return &server{t: t, url: first.URL}
}

func (s *server) post(path, body string, header ...string) (int, map[string]any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+devTestToken)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	v := map[string]any{}
	_ = json.NewDecoder(resp.Body).Decode(&v)
	return resp.StatusCode, v
}

// TestServe_TwoOnOneFile: two servers share the store and the development key:
// what one issues the other admits, once [A1].
func TestServe_TwoOnOneFile(t *testing.T) {
	twoServers(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
}

// TestServe_TwoOnPostgres: the same on one PostgreSQL, whose schema they make.
func TestServe_TwoOnPostgres(t *testing.T) {
	twoServers(t, pgtest.Shared(t, pgtest.Newest(t)).Database(t))
}

func twoServers(t *testing.T, store string) {
	t.Helper()
	data := t.TempDir()
	a, b := startServerIn(t, data, store), startServerIn(t, data, store)
	status, grant := a.post("/v1/grants",
		`{"request_id":"r","subject":"alice","kind":"k","details":{},"lifetime_seconds":60,"form":"token"}`)
	if status != 201 {
		t.Fatalf("issue: %d %v", status, grant)
	}
	body := func(id string) string {
		return `{"grant":"` + grant["token"].(string) + `","operation_id":"` + id + `","kind":"k","details":{},"caller":{"principal":"alice"}}`
	}
	id := pawl.NewOperationID().String()
	if status, v := b.post("/v1/admissions", body(id)); status != 201 {
		t.Errorf("first: %d %v", status, v)
	}
	if status, v := a.post("/v1/admissions", body(id)); status != 200 || v["outcome"] != "already_admitted" {
		t.Errorf("[A8] the same on the other server: %d %v", status, v)
	}
	if status, v := a.post("/v1/admissions", body(pawl.NewOperationID().String())); status != 409 {
		t.Errorf("[A2] another operation: %d %v", status, v)
	}
}

// TestServe_Loopback: a browser that was talked into it gets nowhere.
func TestServe_Loopback(t *testing.T) {
	s := startServer(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	for name, header := range map[string][]string{
		"rebinding": {"Host", "evil.example"},
		"origin":    {"Origin", "http://evil.example"},
	} {
		if status, v := s.post("/v1/admissions", "{}", header...); status != http.StatusForbidden {
			t.Errorf("%s: %d %v", name, status, v)
		}
	}
}
