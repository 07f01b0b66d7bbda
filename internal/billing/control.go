package billing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Control changes a running provider; it is also the body of POST /_control. The parts are applied
// in the order of the fields, after all of them were found valid.
type Control struct {
	// Settings replace all settings in force.
	Settings *Settings `json:"settings,omitempty"`
	// ClearFaults drops every fault rule before Faults are added after those that remain.
	ClearFaults bool    `json:"clear_faults,omitempty"`
	Faults      []Fault `json:"faults,omitempty"`
	// Advance moves the provider's clock forward and prunes keys.
	Advance time.Duration `json:"advance_ns,omitempty"`
	// Release opens these gates for good.
	Release []string `json:"release,omitempty"`
	// Await returns only when enough requests have come to a gate.
	Await *Await `json:"await,omitempty"`
}

// Await names a gate and how many requests must have come to it since the provider started.
type Await struct {
	Gate     string `json:"gate"`
	Requests int    `json:"requests"`
}

// Apply makes the changes, all or none, and then awaits if asked to. It fails on a change that makes
// no sense, when the clock's advance cannot be written to the file, and when ctx ends or the provider
// stops during the wait.
func (p *Provider) Apply(ctx context.Context, c Control) error {
	if err := p.change(c); err != nil {
		return err
	}
	for _, name := range c.Release {
		p.gates.release(name)
	}
	if c.Await != nil {
		return p.gates.await(ctx, p.stop, c.Await.Gate, c.Await.Requests)
	}
	return nil
}

func (p *Provider) change(c Control) error {
	bad := []error{validFaults(c.Faults)}
	var set Settings
	if c.Settings != nil {
		s, err := c.Settings.complete()
		set = s
		bad = append(bad, err)
	}
	if c.Advance < 0 {
		bad = append(bad, errors.New("billing: the clock only goes forward"))
	}
	if c.Await != nil && (c.Await.Gate == "" || c.Await.Requests < 1) {
		bad = append(bad, errors.New("billing: await needs a gate and at least one request"))
	}
	if err := errors.Join(bad...); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.Advance > 0 {
		if err := p.journal.append(event{Kind: kindClock, Offset: p.offset + c.Advance}); err != nil {
			return fmt.Errorf("billing: advance the clock: %w", err)
		}
		p.offset += c.Advance
	}
	if c.Settings != nil {
		p.set = set
	}
	if c.ClearFaults {
		p.rules.clear()
	}
	p.rules.add(c.Faults)
	p.keys.pruneAll(p.clock(), p.set.Retention)
	return nil
}

// Inject adds fault rules after those in force.
func (p *Provider) Inject(faults ...Fault) error {
	return p.change(Control{Faults: faults})
}

// Advance moves the provider's clock forward; keys whose retention is over are forgotten.
func (p *Provider) Advance(d time.Duration) error {
	return p.change(Control{Advance: d})
}

// Release opens a gate for good: what is held there goes on, what comes later passes.
func (p *Provider) Release(gate string) {
	p.gates.release(gate)
}

// Await returns once n requests in all have come to a gate; it fails when ctx ends first.
func (p *Provider) Await(ctx context.Context, gate string, n int) error {
	return p.Apply(ctx, Control{Await: &Await{Gate: gate, Requests: n}})
}

func (p *Provider) serveControl(w http.ResponseWriter, r *http.Request) {
	var c Control
	err := readJSON(w, r, &c)
	if err == nil {
		err = p.Apply(r.Context(), c)
	}
	if err != nil {
		problemReply(http.StatusBadRequest, codeInvalid, err.Error()).write(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
