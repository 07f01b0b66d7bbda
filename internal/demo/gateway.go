package demo

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"
)

// backend is one instance behind the gateway.
type backend struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// gateway is a round-robin gateway with a timeout. It never sends a request
// twice. An instance whose connection broke is left out from then on, as a health
// check would do; one that was only slow is not.
type gateway struct {
	timeout time.Duration
	web     http.RoundTripper
	tell    func(event)

	mu   sync.Mutex
	up   []backend // in turn
	next int
}

func serveGateway(ctx context.Context, c config, t *teller) error {
	if len(c.Instances) == 0 || c.Timeout <= 0 {
		return errors.New("demo: a gateway needs instances and a timeout")
	}
	return serveHTTP(ctx, newGateway(c.Instances, c.Timeout, t.tell), t)
}

func newGateway(instances []backend, timeout time.Duration, tell func(event)) *gateway {
	return &gateway{timeout: timeout, web: newClient().Transport, tell: tell, up: slices.Clone(instances)}
}

// ServeHTTP sends one request to the instance whose turn it is.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, ok := g.turn()
	if !ok {
		http.Error(w, "no instance is up", http.StatusServiceUnavailable)
		return
	}
	target, err := url.Parse(b.URL)
	if err != nil {
		http.Error(w, "the instance has no address", http.StatusInternalServerError)
		return
	}
	g.tell(event{Type: evRouted, Instance: b.Name})
	ctx, cancel := context.WithTimeout(r.Context(), g.timeout)
	defer cancel()
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(target) },
		Transport: g.web,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if r.Context().Err() == nil { // else it is the caller who left
				g.fail(w, b, errors.Is(err, context.DeadlineExceeded))
			}
		},
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// fail answers for an instance that did not.
func (g *gateway) fail(w http.ResponseWriter, b backend, late bool) {
	if late {
		g.tell(event{Type: evTimeout, Instance: b.Name, Text: g.timeout.String()})
		http.Error(w, "gateway timeout", http.StatusGatewayTimeout)
		return
	}
	g.leaveOut(b)
	g.tell(event{Type: evBroken, Instance: b.Name})
	http.Error(w, "bad gateway", http.StatusBadGateway)
}

func (g *gateway) turn() (backend, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.up) == 0 {
		return backend{}, false
	}
	b := g.up[g.next%len(g.up)]
	g.next++
	return b, true
}

func (g *gateway) leaveOut(b backend) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.up = slices.DeleteFunc(g.up, func(x backend) bool { return x == b })
}
