package billing_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-go/pawl/internal/billing"
)

// naive does what most programs do with net/http: bytes in, header set, keep-alive on.
func naive(t *testing.T, web *http.Client, url, key string) error {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/credits", strings.NewReader(credit250))
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := web.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// The provider cuts a kept-alive connection after reading the request and works on. Go's transport
// re-sends what it takes for repeatable [E1]; if the provider does not treat concurrent keys
// atomically, that is a second credit which no submission check has seen [O5].
func TestCase_CD18_ADroppedConnectionIsNotASecondCreate(t *testing.T) {
	for _, row := range []struct {
		name              string
		send              func(t *testing.T, r rig) error
		requests, credits int
		wantErr           bool
	}{
		{"C-D18 naive client sends twice", func(t *testing.T, r rig) error {
			return naive(t, r.client.HTTP, r.url, "k1")
		}, 2, 2, false},
		{"C-D18 this client sends once", func(t *testing.T, r rig) error {
			_, err := r.client.Create(t.Context(), "k1", "acc_1", "250.00", "USD")
			return err
		}, 1, 1, true},
	} {
		for _, reset := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s reset=%v", row.name, reset), func(t *testing.T) {
				r := start(t, &billing.Options{
					Settings: billing.Settings{Concurrency: billing.ConcurrencyRacy},
					Faults: []billing.Fault{{
						Key: "k1", Times: 1, Do: billing.CutBefore, Reset: reset, HoldBefore: "before", HoldAfter: "after",
					}},
				})
				if _, err := r.client.Create(t.Context(), "warm", "acc_1", "1.00", "USD"); err != nil {
					t.Fatal(err)
				}
				if err := row.send(t, r); (err != nil) != row.wantErr || errors.Is(err, billing.ErrDeclined) {
					t.Errorf("got %v", err)
				}
				r.Release("before") // the first request was in flight all the while
				await(t, r.Provider, "after", 1)
				wantCredits(t, r.Books(), "k1", row.credits, row.requests)
			})
		}
	}
}

// fixed is a server with one answer, and it counts.
func fixed(t *testing.T, status int, header, value, body string) (*billing.Client, *atomic.Int32) {
	t.Helper()
	var calls atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		if header != "" {
			w.Header().Set(header, value)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(srv.Close)
	return &billing.Client{BaseURL: srv.URL + "/", HTTP: newHTTPClient(t)}, &calls
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		c, calls := fixed(t, status, "Location", "/elsewhere", "")
		c.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
		_, err := c.Create(t.Context(), "k1", "acc_1", "250.00", "USD")
		if got, ok := errors.AsType[*billing.ReplyError](err); !ok || got.Status != status || calls.Load() != 1 {
			t.Errorf("create %d: %v, %d calls", status, err, calls.Load())
		}
		if _, found, err := c.Find(t.Context(), "k1"); found || err == nil || calls.Load() != 2 {
			t.Errorf("find %d: %v %v, %d calls", status, found, err, calls.Load())
		}
	}
}

// Answers that look like something and are not: none is a credit, none is definite.
func TestAnswersThatSayNothing(t *testing.T) {
	const good = `{"id":"cr_1","account":"acc_1","amount":"250.00","currency":"USD","reference":"k1"}`
	if c, _ := fixed(t, 201, "", "", good); c != nil {
		if id, err := c.Create(t.Context(), "k1", "acc_1", "250.00", "USD"); id != "cr_1" || err != nil {
			t.Fatalf("the good one: %q %v", id, err)
		}
	}
	for name, row := range map[string]struct {
		status int
		body   string
	}{
		"200":             {200, good},
		"202":             {202, good},
		"empty":           {201, ""},
		"not JSON":        {201, "<html>"},
		"no id":           {201, strings.Replace(good, "cr_1", "", 1)},
		"other amount":    {201, strings.Replace(good, "250.00", "25.00", 1)},
		"other account":   {201, strings.Replace(good, "acc_1", "acc_2", 1)},
		"other currency":  {201, strings.Replace(good, "USD", "EUR", 1)},
		"other reference": {201, strings.Replace(good, "k1", "k2", 1)},
		"too large":       {201, good + strings.Repeat(" ", 64<<10)},
		"proxy 402":       {402, "<html>Payment Required</html>"},
		"402, other code": {402, `{"code":"quota","decline_code":"account_closed"}`},
		"402, no reason":  {402, `{"code":"declined"}`},
		"402, odd reason": {402, `{"code":"declined","decline_code":"Dear customer, ..."}`},
		"400, declined":   {400, `{"code":"declined","decline_code":"account_closed"}`},
		"500, declined":   {500, `{"code":"declined","decline_code":"account_closed"}`},
		"404":             {404, ""},
		"409":             {409, `{"code":"in_progress"}`},
		"422":             {422, `{"code":"idempotency_mismatch"}`},
	} {
		c, calls := fixed(t, row.status, "", "", row.body)
		id, err := c.Create(t.Context(), "k1", "acc_1", "250.00", "USD")
		if id != "" || err == nil || errors.Is(err, billing.ErrDeclined) || calls.Load() != 1 {
			t.Errorf("%s: %q %v, %d calls", name, id, err, calls.Load())
		}
		if strings.Contains(fmt.Sprint(err), "customer") || strings.Contains(fmt.Sprint(err), "html") {
			t.Errorf("%s: the provider's text is in %q", name, err)
		}
	}
	for name, body := range map[string]string{
		"empty": "", "not JSON": "<html>", "another object": `{}`, "null list": `{"credits":null}`, "null": `null`,
		"other reference": `{"credits":[` + strings.Replace(good, "k1", "k2", 1) + `]}`,
		"bad amount":      `{"credits":[` + strings.Replace(good, "250.00", "1e3", 1) + `]}`,
		"too large":       `{"credits":[` + good + `]` + strings.Repeat(" ", 64<<10) + `}`,
	} {
		c, _ := fixed(t, 200, "", "", body)
		if _, found, err := c.Find(t.Context(), "k1"); found || err == nil {
			t.Errorf("find, %s: %v %v", name, found, err)
		}
	}
}

// An answer without end is given up at the cap, not read until memory is full.
func TestEndlessAnswerIsCutShort(t *testing.T) {
	var cut atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		chunk := make([]byte, 1<<20)
		for range 256 { // far more than the sockets between the two can hold
			if _, err := w.Write(chunk); err != nil {
				cut.Store(true)
				return
			}
		}
	}))
	c := &billing.Client{BaseURL: srv.URL, HTTP: newHTTPClient(t)}
	if _, err := c.Create(t.Context(), "k1", "acc_1", "250.00", "USD"); err == nil {
		t.Error("no error")
	}
	srv.Close() // waits for the handler
	if !cut.Load() {
		t.Error("the whole answer was read")
	}
}

func TestReplyErrorKeepsTheCode(t *testing.T) {
	r := start(t, nil)
	post(t, r.url, "k1", credit250)
	_, err := r.client.Create(t.Context(), "k1", "acc_1", "9.00", "USD")
	if got, ok := errors.AsType[*billing.ReplyError](err); !ok || *got != (billing.ReplyError{Status: 422, Code: "idempotency_mismatch"}) {
		t.Errorf("got %v", err)
	}
}

func TestBadArgumentsAreNotSent(t *testing.T) {
	c, calls := fixed(t, 201, "", "", "")
	for _, row := range [][4]string{
		{"", "acc_1", "250.00", "USD"},
		{"a b", "acc_1", "250.00", "USD"},
		{strings.Repeat("k", 256), "acc_1", "250.00", "USD"},
		{"k1", "", "250.00", "USD"},
		{"k1", "acc_1", "-1.00", "USD"},
		{"k1", "acc_1", "250.00", "dollars"},
	} {
		if _, err := c.Create(t.Context(), row[0], row[1], row[2], row[3]); err == nil || errors.Is(err, billing.ErrDeclined) {
			t.Errorf("%q: %v", row, err)
		}
	}
	if calls.Load() != 0 {
		t.Errorf("%d calls were sent", calls.Load())
	}
	for _, base := range []string{"", "127.0.0.1", "http://[::1", "http://127.0.0.1:1"} {
		c := &billing.Client{BaseURL: base}
		if _, err := c.Create(t.Context(), "k1", "acc_1", "250.00", "USD"); err == nil {
			t.Errorf("base %q: no error", base)
		}
	}
}
