package billing

import (
	"net"
	"net/http"
	"time"
)

// exchange is one request on the wire together with the fault that hits it.
type exchange struct {
	w     http.ResponseWriter
	stop  <-chan struct{}
	gates *gates
	fault Fault
	cut   bool // the connection is gone, the work goes on
}

func failedReply() reply {
	return problemReply(http.StatusInternalServerError, codeInternal, "something went wrong")
}

// before plays the part of the fault that precedes the effect. If the call ends there it returns how
// the caller is to hear of it: what the call held must be given up first, or a caller quick to
// repeat it would find itself in flight.
func (x *exchange) before() (end func()) {
	if x.fault.Do == CutBefore {
		if x.cut = x.closeConn(); !x.cut {
			return func() {
				x.plain(problemReply(http.StatusNotImplemented, codeInternal, "this connection cannot be cut"))
			}
		}
	}
	switch {
	case !x.pause(x.fault.HoldBefore, x.fault.DelayBefore), x.fault.Do == DropBefore:
		return x.hangUp
	case x.fault.Do == FailBefore:
		return func() {
			x.plain(problemReply(http.StatusServiceUnavailable, codeUnavailable, "try again later"))
		}
	}
	return nil
}

// finish plays the part that follows the effect and answers, or does not.
func (x *exchange) finish(a reply) {
	if !x.pause(x.fault.HoldAfter, x.fault.DelayAfter) || x.cut {
		x.hangUp()
		return
	}
	switch x.fault.Do {
	case LostAfter:
		x.hangUp()
	case FailAfter:
		x.plain(failedReply())
	case GarbageAfter:
		x.plain(reply{Status: a.Status, Body: []byte("<html>it worked!</html>")})
	case HalfAfter:
		a.head(x.w, len(a.Body))
		_, _ = x.w.Write(a.Body[:len(a.Body)/2])
		_ = http.NewResponseController(x.w).Flush()
		x.hangUp()
	case TrickleAfter:
		x.trickle(a)
	default:
		x.plain(a)
	}
}

// plain answers without a fault, if there is still somebody to answer.
func (x *exchange) plain(a reply) {
	if !x.cut {
		a.write(x.w)
	}
}

// trickle sends the answer one byte at a time.
func (x *exchange) trickle(a reply) {
	a.head(x.w, len(a.Body))
	flush := http.NewResponseController(x.w)
	for i := range a.Body {
		if !x.pause("", x.fault.Interval) {
			x.hangUp()
			return
		}
		if _, err := x.w.Write(a.Body[i : i+1]); err != nil {
			return
		}
		_ = flush.Flush()
	}
}

// pause waits at a gate and then for a delay; false when the provider stopped first.
func (x *exchange) pause(gate string, delay time.Duration) bool {
	if gate != "" {
		select {
		case <-x.gates.arrive(gate):
		case <-x.stop:
			return false
		}
	}
	if delay <= 0 {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.stop:
		return false
	}
}

// hangUp ends the exchange without a (further) answer. Where the connection cannot be taken over,
// the server is made to close it.
func (x *exchange) hangUp() {
	if !x.cut && !x.closeConn() {
		panic(http.ErrAbortHandler)
	}
}

// closeConn takes the connection from the server and closes it, as a reset if the fault says so.
func (x *exchange) closeConn() bool {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return false
	}
	if tcp, ok := conn.(*net.TCPConn); ok && x.fault.Reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
	return true
}
