package pgtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// link is one client's connection and the proxy's own to the server.
//
// The client's messages form groups, each ended by the message that makes the server say ReadyForQuery: Sync, a simple
// query or a function call. The n-th ReadyForQuery after start-up ends the answer to the n-th group. That is all it takes
// to know when a statement has been answered, and commits are done by then.
type link struct {
	proxy  *Proxy
	client net.Conn
	ctx    context.Context // ends when the link is cut
	end    context.CancelFunc
	left   chan struct{} // closed when the client has gone

	// Of the goroutine that reads the client.
	id         int
	statements int
	prepared   map[string]string // statement name to text
	portals    map[string]string // portal name to text

	mu     sync.Mutex
	server net.Conn           // nil until dialled
	sent   int                // groups read from the client to their end
	faults map[int]*Injection // what the answer to a group is to meet, until it has
	muted  bool
}

// maxMessage bounds what the proxy holds in memory, in bytes.
const maxMessage = 64 << 20

func newLink(p *Proxy, client net.Conn) *link {
	ctx, end := context.WithCancel(context.Background())
	return &link{
		proxy: p, client: client, ctx: ctx, end: end, left: make(chan struct{}),
		prepared: map[string]string{}, portals: map[string]string{}, faults: map[int]*Injection{},
	}
}

// cut closes both connections.
func (l *link) cut() {
	l.end()
	_ = l.client.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// run carries messages until one side ends or the link is cut.
func (l *link) run() {
	defer l.cut()
	in := bufio.NewReader(l.client)
	first, err := l.readStartup(in)
	if err != nil || !l.flow() {
		return
	}
	server, err := l.dial()
	if err != nil {
		return
	}
	if _, err := server.Write(first); err != nil {
		return
	}
	if isCancel(first) {
		l.proxy.noteCancel()
		_, _ = io.Copy(io.Discard, server) // the server closes when it has read the request
		return
	}
	l.id = l.proxy.admit()
	var replies sync.WaitGroup
	replies.Go(func() {
		defer l.cut()
		l.carryReplies(bufio.NewReader(server))
	})
	l.carryRequests(in, server)
	close(l.left)
	if !l.owesAnswer() {
		l.cut()
	}
	replies.Wait()
}

// dial connects to the server, unless the link is cut first.
func (l *link) dial() (net.Conn, error) {
	server, err := (&net.Dialer{}).DialContext(l.ctx, "tcp", l.proxy.target)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.server = server
	l.mu.Unlock()
	if l.ctx.Err() != nil { // cut before the server was known
		l.cut()
	}
	return server, nil
}

// owesAnswer says whether a fault waits for an answer that the server will still give. The link then outlives its
// client, so that a client that gives up early does not change what the fault is about.
func (l *link) owesAnswer() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for group, i := range l.faults {
		if group < l.sent && i.fault.Action != CutAfter {
			return true
		}
	}
	return false
}

// Codes that stand where a start-up packet has the protocol's version.
const (
	codeCancel = 80877102
	codeTLS    = 80877103
	codeGSS    = 80877104
)

func isCancel(packet []byte) bool { return binary.BigEndian.Uint32(packet[4:]) == codeCancel }

// readStartup reads the first packet that matters. A client that offers encryption is told no.
func (l *link) readStartup(in *bufio.Reader) ([]byte, error) {
	for {
		packet, err := readBody(in, nil)
		if err != nil {
			return nil, err
		}
		if len(packet) < 8 {
			return nil, errors.New("a start-up packet without a code")
		}
		switch binary.BigEndian.Uint32(packet[4:]) {
		case codeTLS, codeGSS:
			if _, err := l.client.Write([]byte{'N'}); err != nil {
				return nil, err
			}
		default:
			return packet, nil
		}
	}
}

// readMessage reads one message, whole: type, length, body.
func readMessage(in *bufio.Reader) ([]byte, error) {
	kind, err := in.ReadByte()
	if err != nil {
		return nil, err
	}
	return readBody(in, []byte{kind})
}

func readBody(in *bufio.Reader, message []byte) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size < 4 || size > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes", size)
	}
	message = append(message, length[:]...)
	body := len(message)
	message = append(message, make([]byte, size-4)...)
	_, err := io.ReadFull(in, message[body:])
	return message, err
}

// carryRequests takes the client's messages to the server.
func (l *link) carryRequests(in *bufio.Reader, server io.Writer) {
	var cutAfter *Injection // waits for the end of its group
	for {
		message, err := readMessage(in)
		if !l.flow() || err != nil {
			return
		}
		if l.isMuted() {
			continue
		}
		onAnswer, ok := l.meet(message)
		if !ok {
			return
		}
		if onAnswer != nil && onAnswer.fault.Action == CutAfter {
			cutAfter = onAnswer
		}
		ends := endsGroup(message)
		if ends {
			l.mu.Lock()
			l.sent++
			l.mu.Unlock()
		}
		if _, err := server.Write(message); err != nil {
			return
		}
		if !ends || cutAfter == nil {
			continue
		}
		l.pause(cutAfter.fault.Delay)
		l.cut()
		cutAfter.markReached()
		return
	}
}

func (l *link) isMuted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.muted
}

func endsGroup(message []byte) bool {
	switch message[0] {
	case 'S', 'Q', 'F':
		return true
	default:
		return false
	}
}

// meet does the faults of a statement's request and notes those of its answer. It is not ok when the link is cut.
func (l *link) meet(message []byte) (onAnswer *Injection, ok bool) {
	text, is := l.statement(message)
	if !is {
		return nil, true
	}
	l.statements++
	onRequest, onAnswer := l.proxy.pick(Statement{Conn: l.id, Index: l.statements, SQL: text})
	if onAnswer != nil {
		l.mu.Lock()
		if l.faults[l.sent] == nil {
			l.faults[l.sent] = onAnswer
		}
		l.mu.Unlock()
	}
	if onRequest == nil {
		return onAnswer, true
	}
	if onRequest.fault.Action == CutBefore {
		l.pause(onRequest.fault.Delay)
		l.cut()
		onRequest.markReached()
		return nil, false
	}
	onRequest.markReached()
	return onAnswer, l.hold(onRequest)
}

// statement is the text of the statement that a message runs, if it runs one. Others it learns from.
func (l *link) statement(message []byte) (text string, is bool) {
	body := message[5:]
	switch message[0] {
	case 'Q':
		return string(bytes.TrimRight(body, "\x00")), true
	case 'P':
		var m pgproto3.Parse
		if m.Decode(body) == nil {
			l.prepared[m.Name] = m.Query
		}
	case 'B':
		var m pgproto3.Bind
		if m.Decode(body) == nil {
			l.portals[m.DestinationPortal] = l.prepared[m.PreparedStatement]
		}
	case 'E':
		var m pgproto3.Execute
		if m.Decode(body) == nil {
			return l.portals[m.Portal], true
		}
	}
	return "", false
}

// carryReplies takes the server's messages to the client, but for those of a group whose answer meets a fault.
func (l *link) carryReplies(in *bufio.Reader) {
	group := -1 // start-up, whose end is a ReadyForQuery too
	var held []byte
	for {
		message, err := readMessage(in)
		if !l.flow() {
			return
		}
		if err != nil {
			l.serverGone()
			return
		}
		fault := l.fault(group)
		switch {
		case fault == nil:
			if _, err := l.client.Write(message); err != nil && !l.owesAnswer() {
				return
			}
		case fault.fault.Action == HoldAnswer:
			held = append(held, message...)
		}
		if message[0] != 'Z' {
			continue
		}
		if fault != nil && !l.answered(fault, group, held) {
			return
		}
		held = nil
		group++
	}
}

// fault is what the answer to a group meets.
func (l *link) fault(group int) *Injection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.faults[group]
}

// answered does the fault of an answer that has come in full, and says whether the link goes on.
func (l *link) answered(i *Injection, group int, held []byte) bool {
	i.markAnswered()
	l.mu.Lock()
	delete(l.faults, group)
	l.muted = i.fault.Action == MuteAnswer
	l.mu.Unlock()
	switch i.fault.Action {
	case LoseAnswer:
		i.markReached()
		l.pause(i.fault.Delay)
		return false
	case MuteAnswer:
		i.markReached()
		select {
		case <-l.left:
		case <-l.ctx.Done():
		}
		return false
	case HoldAnswer:
		i.markReached()
		if !l.hold(i) {
			return false
		}
		_, err := l.client.Write(held)
		return err == nil
	default: // CutAfter: the other goroutine cuts
		return true
	}
}

// serverGone ends the link because the server did, and marks the faults whose answer cannot come any more.
func (l *link) serverGone() {
	l.cut()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.faults {
		i.markReached()
	}
}

// hold waits for the release of a held message, and says whether the link still stands.
func (l *link) hold(i *Injection) bool {
	var timeout <-chan time.Time
	if i.fault.Delay > 0 {
		timer := time.NewTimer(i.fault.Delay)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-l.ctx.Done():
		return false
	case <-i.released:
		return true
	case <-timeout:
		return true
	}
}

// pause lets a delay pass, or less if the link is cut.
func (l *link) pause(delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-l.ctx.Done():
	case <-timer.C:
	}
}

// flow waits until messages may pass, and says whether the link still stands.
func (l *link) flow() bool {
	select {
	case <-l.ctx.Done():
		return false
	case <-l.proxy.flow():
		return l.ctx.Err() == nil
	}
}
