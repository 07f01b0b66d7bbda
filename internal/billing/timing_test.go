package billing_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/internal/billing"
)

// serve calls the handler in this goroutine, inside a synctest bubble where no socket may be. A
// connection that the server would close without an answer gives status 0.
func serve(p *billing.Provider, key string) (rec *httptest.ResponseRecorder) {
	req := httptest.NewRequest(http.MethodPost, "/credits", strings.NewReader(credit250))
	req.Header.Set("Idempotency-Key", key)
	rec = httptest.NewRecorder()
	defer func() {
		if gone := recover(); gone != nil {
			if gone != http.ErrAbortHandler {
				panic(gone)
			}
			rec.Code = 0
		}
	}()
	p.ServeHTTP(rec, req)
	return rec
}

func bubble(t *testing.T, opts billing.Options, f func(t *testing.T, p *billing.Provider)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts.Now = time.Now // the bubble's clock
		p, err := billing.New(&opts)
		if err != nil {
			t.Fatal(err)
		}
		f(t, p)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestWaitersHearTheFirstReply(t *testing.T) {
	opts := billing.Options{
		Settings: billing.Settings{Concurrency: billing.ConcurrencyWait},
		Faults:   []billing.Fault{{Times: 1, DelayBefore: time.Second}},
	}
	bubble(t, opts, func(t *testing.T, p *billing.Provider) {
		began := time.Now()
		got := make(chan *httptest.ResponseRecorder)
		for range 5 {
			go func() { got <- serve(p, "k1") }()
			synctest.Wait() // the first is delayed, the others wait for it
		}
		bodies, replays := make(map[string]int), 0
		for range 5 {
			rec := <-got
			bodies[rec.Body.String()]++
			if rec.Header().Get("Idempotent-Replayed") != "" {
				replays++
			}
		}
		if len(bodies) != 1 || replays != 4 || time.Since(began) != time.Second {
			t.Errorf("got %v, %d replays, after %v", bodies, replays, time.Since(began))
		}
		wantCredits(t, p.Books(), "k1", 1, 5)
	})
}

func TestAWaiterPerformsWhatTheFirstDropped(t *testing.T) {
	opts := billing.Options{
		Settings: billing.Settings{Concurrency: billing.ConcurrencyWait},
		Faults:   []billing.Fault{{Times: 1, DelayBefore: time.Second, Do: billing.DropBefore}},
	}
	bubble(t, opts, func(t *testing.T, p *billing.Provider) {
		first, second := make(chan int), make(chan int)
		go func() { first <- serve(p, "k1").Code }()
		synctest.Wait()
		go func() { second <- serve(p, "k1").Code }()
		if a, b := <-first, <-second; a != 0 || b != http.StatusCreated {
			t.Errorf("first %d, second %d", a, b)
		}
		wantCredits(t, p.Books(), "k1", 1, 2)
	})
}

// The effect happens between the two delays, and the key is in flight only before it.
func TestDelaysSurroundTheEffect(t *testing.T) {
	fault := billing.Fault{Times: 1, DelayBefore: time.Second, DelayAfter: time.Second}
	bubble(t, billing.Options{Faults: []billing.Fault{fault}}, func(t *testing.T, p *billing.Provider) {
		first := make(chan int)
		go func() { first <- serve(p, "k1").Code }()
		for _, step := range []struct{ credits, status int }{
			{0, http.StatusConflict}, // 0.5 s
			{1, http.StatusCreated},  // 1.5 s: a replay, although the first is still unanswered
		} {
			time.Sleep(500 * time.Millisecond) // the bubble's clock: order, not waiting
			synctest.Wait()
			if got := len(p.Books().Credits); got != step.credits {
				t.Errorf("got %d credits, want %d", got, step.credits)
			}
			if got := serve(p, "k1").Code; got != step.status {
				t.Errorf("got %d, want %d", got, step.status)
			}
			time.Sleep(500 * time.Millisecond)
		}
		if got := <-first; got != http.StatusCreated {
			t.Errorf("first: %d", got)
		}
	})
}

func TestTrickleTakesAnIntervalPerByte(t *testing.T) {
	fault := billing.Fault{Do: billing.TrickleAfter, Interval: time.Second}
	bubble(t, billing.Options{Faults: []billing.Fault{fault}}, func(t *testing.T, p *billing.Provider) {
		began := time.Now()
		rec := serve(p, "k1")
		if want := time.Duration(rec.Body.Len()) * time.Second; time.Since(began) != want || rec.Code != http.StatusCreated {
			t.Errorf("got %d after %v, want 201 after %v", rec.Code, time.Since(began), want)
		}
	})
}

func TestRetentionAndLagOnARunningClock(t *testing.T) {
	opts := billing.Options{Settings: billing.Settings{
		Retention: time.Hour, Lookup: billing.Lookup{Lag: time.Minute},
	}}
	bubble(t, opts, func(t *testing.T, p *billing.Provider) {
		serve(p, "k1")
		found := func() bool {
			rec := httptest.NewRecorder()
			p.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/credits?reference=k1", nil))
			return strings.Contains(rec.Body.String(), `"cr_`)
		}
		time.Sleep(time.Minute - 1)
		if found() {
			t.Error("visible before its lag")
		}
		time.Sleep(time.Nanosecond)
		if !found() {
			t.Error("not visible after its lag")
		}
		time.Sleep(59 * time.Minute)
		serve(p, "k1")
		wantCredits(t, p.Books(), "k1", 2, 2)
	})
}

// Close returns only when no handler is left, whatever that handler waits for.
func TestCloseWaitsForHandlers(t *testing.T) {
	bubble(t, billing.Options{}, func(t *testing.T, p *billing.Provider) {
		body, send := io.Pipe()
		go func() {
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/credits", body))
		}()
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- p.Close() }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Errorf("closed while a request was being read: %v", err)
			return
		default:
		}
		_ = send.Close()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// Close drops what is held as a crash would, on both sides of the effect, and waits for it.
func TestCloseDropsWhatIsHeld(t *testing.T) {
	faults := []billing.Fault{
		{Key: "before", HoldBefore: "g"},
		{Key: "after", HoldAfter: "g"},
		{Key: "slow", DelayAfter: time.Hour},
		{Key: "waits", HoldBefore: "g"},
	}
	opts := billing.Options{Faults: faults, Settings: billing.Settings{Concurrency: billing.ConcurrencyWait}}
	bubble(t, opts, func(t *testing.T, p *billing.Provider) {
		codes := make(chan int, 5)
		for _, key := range []string{"before", "after", "slow", "waits", "waits"} {
			go func() { codes <- serve(p, key).Code }()
		}
		synctest.Wait()
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if got := <-codes; got != 0 {
				t.Errorf("a dropped call got status %d", got)
			}
		}
		for key, want := range map[string]int{"before": 0, "after": 1, "slow": 1, "waits": 0} {
			if got := p.Books().Reference(key).Credits; got != want {
				t.Errorf("%s: got %d credits, want %d", key, got, want)
			}
		}
		if got := serve(p, "late").Code; got != http.StatusServiceUnavailable {
			t.Errorf("after Close: %d", got)
		}
		if err := p.Await(t.Context(), "never", 1); err == nil {
			t.Error("awaited a gate of a closed provider")
		}
	})
}
