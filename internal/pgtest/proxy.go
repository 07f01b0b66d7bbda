package pgtest

import (
	"net"
	"sync"
	"testing"
)

// Proxy stands between clients and a server and understands as much of PostgreSQL's protocol as it takes to do faults
// to single statements. It does not speak TLS. Messages of COPY and of replication pass as they are.
type Proxy struct {
	target   string
	listener net.Listener
	serving  sync.WaitGroup

	mu         sync.Mutex
	links      map[*link]struct{}
	injections []*Injection
	conns      int
	cancels    int
	refusing   bool
	thawed     chan struct{} // closed while messages flow
	closed     bool
}

// StartProxy runs a proxy in front of a server or pooler at an address, for as long as the test. [Via] gives the
// connection string that goes through it.
func StartProxy(tb testing.TB, addr string) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", loopback(0))
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{target: addr, listener: listener, links: map[*link]struct{}{}, thawed: make(chan struct{})}
	close(p.thawed)
	p.serving.Go(p.accept)
	tb.Cleanup(func() {
		p.close()
		if tb.Failed() || tb.Skipped() {
			return
		}
		for _, i := range p.injections {
			if i.count == 0 {
				tb.Error("an injected fault never took place")
			}
		}
	})
	return p
}

// Addr is the proxy's host and port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Conns says how many connections came, requests to cancel left out.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns
}

// Cancels says how many requests to cancel a statement came. They are passed on.
func (p *Proxy) Cancels() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cancels
}

// CutAll cuts every connection there is. New ones are let through.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Refuse cuts every connection and closes new ones at once, as if no server ran.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	p.refusing = true
	p.mu.Unlock()
	p.CutAll()
}

// Freeze keeps every message from here on, in both directions, as a network that has gone silent. Connections stay and
// new ones are taken, but nothing goes through.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thawed:
		p.thawed = make(chan struct{})
	default: // frozen already
	}
}

// Restore ends Refuse and Freeze. Kept messages go on.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = false
	p.thaw()
}

// thaw lets messages flow; the caller holds the mutex.
func (p *Proxy) thaw() {
	select {
	case <-p.thawed:
	default:
		close(p.thawed)
	}
}

// flow is closed while messages may pass.
func (p *Proxy) flow() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.thawed
}

// close ends all connections and returns when no goroutine of the proxy is left.
func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.thaw()
	_ = p.listener.Close()
	for l := range p.links {
		l.cut()
	}
	p.mu.Unlock()
	p.serving.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed: the test is over
		}
		l := newLink(p, client)
		p.mu.Lock()
		if p.closed || p.refusing {
			p.mu.Unlock()
			l.cut()
			continue
		}
		p.links[l] = struct{}{}
		p.mu.Unlock()
		p.serving.Go(func() {
			l.run()
			p.mu.Lock()
			delete(p.links, l)
			p.mu.Unlock()
		})
	}
}

// admit numbers a connection that begins a session.
func (p *Proxy) admit() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns++
	return p.conns
}

func (p *Proxy) noteCancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancels++
}
