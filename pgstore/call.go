package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl"
)

// call runs f on one connection of the pool, on the store's own time: the
// caller's context ends the caller's wait and never a statement [A3]. lost is
// the class of an answer that could not be had.
func call[T any](ctx context.Context, s *Store, p *pgxpool.Pool, lost pawl.Class, f func(context.Context, session) (T, error)) (T, error) {
	var zero T
	if !s.enter() {
		return zero, &pawl.Error{Class: lost, Reason: pawl.ReasonClosed}
	}
	conn, err := s.acquire(ctx, p, lost)
	if err != nil {
		s.leave()
		return zero, err
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() { // Close waits for it
		defer s.leave()
		defer conn.Release()
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience)
		defer cancel()
		pg := conn.Conn().PgConn()
		forgetNotice(pg)
		value, err := f(own, pgxSession{conn.Conn()})
		if err == nil && unreplicated(pg) {
			err = &pawl.Error{Class: lost, Reason: pawl.ReasonNotReplicated}
		}
		if err != nil {
			value, err = zero, answer(err, lost)
		}
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select { // an answer that is there already is worth more than "cancelled"
	case r := <-done:
		return r.value, r.err
	default:
		return zero, cancelled(lost, ctx)
	}
}

func cancelled(lost pawl.Class, ctx context.Context) error {
	return &pawl.Error{Class: lost, Reason: pawl.ReasonCancelled, Cause: context.Cause(ctx)}
}

// acquire waits for a connection as long as the caller does. Nothing has been
// sent yet, so the caller's context may end it.
func (s *Store) acquire(ctx context.Context, p *pgxpool.Pool, lost pawl.Class) (*pgxpool.Conn, error) {
	if ctx.Err() != nil {
		return nil, cancelled(lost, ctx)
	}
	waiting, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	conn, err := p.Acquire(waiting)
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, cancelled(lost, ctx)
	}
	return nil, answer(err, lost)
}

// enter counts a call in, unless the store is closed.
func (s *Store) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.inFlight.Add(1)
	return true
}

func (s *Store) leave() { s.inFlight.Done() }

// Close implements pawl.Store. It waits for statements in flight, also those
// whose callers are gone; each ends by the server's bounds, or with the longest
// declared wait for a standby. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.inFlight.Wait()
	s.admissions.Close()
	s.ordinary.Close()
	return nil
}

// noticeKey is where a connection keeps that a notice came.
const noticeKey = "pawl.unreplicated"

// onNotice watches for the one notice that matters: the wait for a standby was
// cancelled, so that the commit which is about to be acknowledged may be lost
// with this server [A3]. The message is in the server's language; where it comes
// from in the server's source is not.
func onNotice(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" || (n.File == "syncrep.c" && (n.Code == "01000" || n.Code == "57P01")) {
		c.CustomData()[noticeKey] = true
	}
}

func forgetNotice(c *pgconn.PgConn) { delete(c.CustomData(), noticeKey) }

func unreplicated(c *pgconn.PgConn) bool { return c.CustomData()[noticeKey] != nil }

// patienceFor is how long a call may live after its caller is gone: longer than
// everything that bounds it elsewhere, so that the server's word comes first.
func patienceFor(t pawl.Timings) time.Duration {
	const slack = 10 * time.Second
	return max(t.AdmissionBound, callLimit) + t.ReplicationWaitBound + slack
}
