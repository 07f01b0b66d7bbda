package billing

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// failure is a constant error.
type failure string

// Error returns the text.
func (f failure) Error() string { return string(f) }

const errStopping = failure("billing: the provider is stopping")

const readHeaderTimeout = 10 * time.Second

// Provider is the billing provider: an [http.Handler] with books. Its methods may be called from
// any goroutine.
type Provider struct {
	now     func() time.Time
	grace   time.Duration
	mux     *http.ServeMux
	gates   gates
	stop    chan struct{} // closed when work in flight must be dropped
	active  sync.WaitGroup
	journal *journal // nil keeps books in memory

	mu       sync.Mutex // guards what follows
	stopped  bool
	offset   time.Duration
	set      Settings
	rules    rules
	keys     keyTable
	ledger   ledger
	requests map[Call]map[string]int // well-formed calls that arrived, by key
}

// New makes a provider; opts may be nil. It fails on options that make no sense and on a file that
// cannot be opened or is damaged. Close it when done.
func New(opts *Options) (*Provider, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	set, err := o.Settings.complete()
	if err := errors.Join(err, validFaults(o.Faults)); err != nil {
		return nil, err
	}
	if o.Grace < 0 {
		return nil, errors.New("billing: the grace is negative")
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.Now == nil {
		o.Now = func() time.Time { return time.Unix(0, 0).UTC() }
	}
	p := &Provider{
		now: o.Now, grace: o.Grace, mux: http.NewServeMux(), stop: make(chan struct{}),
		set: set, rules: rules{seed: o.Seed}, keys: make(keyTable),
		requests: map[Call]map[string]int{CallCreate: {}, CallLookup: {}},
	}
	p.rules.add(o.Faults)
	if o.File != "" {
		if err := p.load(o.File); err != nil {
			return nil, err
		}
	}
	p.mux.HandleFunc("POST /credits", p.serveCreate)
	p.mux.HandleFunc("GET /credits", p.serveLookup)
	p.mux.HandleFunc("GET /books", p.serveBooks)
	if o.Control {
		p.mux.HandleFunc("POST /_control", p.serveControl)
	}
	return p, nil
}

// load opens the file and replays its events.
func (p *Provider) load(path string) error {
	j, events, err := openJournal(path)
	if err != nil {
		return err
	}
	p.journal = j
	for _, e := range events {
		p.offset = max(p.offset, e.Offset)
		if e.Kind == kindCredit {
			amount, err := parseAmount(e.Credit.Amount)
			if err != nil {
				return errors.Join(fmt.Errorf("billing: the books are damaged: %w", err), j.close())
			}
			p.ledger.add(record{Credit: *e.Credit, at: e.Made, amount: amount})
		}
		if e.Kept {
			over := make(chan struct{})
			close(over)
			p.keys[e.Key] = &entry{params: *e.Asked, at: e.Seen, over: over, reply: e.Reply}
		}
	}
	p.keys.pruneAll(p.clock(), p.set.Retention)
	return nil
}

// clock is the provider's time; the lock is held.
func (p *Provider) clock() time.Time { return p.now().Add(p.offset) }

// ServeHTTP answers one request. It does not heed the request's context: like a real provider it
// goes on working when the caller has left.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		problemReply(http.StatusServiceUnavailable, codeUnavailable, "the provider is stopping").write(w)
		return
	}
	p.active.Add(1)
	p.mu.Unlock()
	defer p.active.Done()
	p.mux.ServeHTTP(w, r)
}

// Books returns what really happened so far.
func (p *Provider) Books() Books {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ledger.books(p.requests[CallCreate])
}

func (p *Provider) serveBooks(w http.ResponseWriter, _ *http.Request) {
	jsonReply(http.StatusOK, p.Books()).write(w)
}

// Serve answers on a listener until ctx ends, then lets calls in flight finish within the grace,
// drops the rest and closes the provider. It returns nil after such a stop; no handler is running
// then.
func (p *Provider) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{Handler: p, ReadHeaderTimeout: readHeaderTimeout}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	select {
	case err := <-ended:
		_ = srv.Close()
		return errors.Join(fmt.Errorf("billing: serve: %w", err), p.Close())
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.grace)
	defer cancel()
	_ = srv.Shutdown(grace) // fails only when the grace is over, and then the rest is dropped
	_ = srv.Close()
	<-ended
	return p.Close()
}

// halt turns new requests away and ends every hold, delay and wait.
func (p *Provider) halt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		p.stopped = true
		close(p.stop)
	}
}

// Close turns new requests away, drops those held or delayed as a crash would (before their effect:
// no effect; after: no answer), waits for all handlers and closes the file. Closing again is an
// error only if the file says so.
func (p *Provider) Close() error {
	p.halt()
	p.active.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.journal
	if j == nil || errors.Is(j.broken, errStopping) {
		return nil
	}
	j.broken = errStopping
	return j.close()
}
