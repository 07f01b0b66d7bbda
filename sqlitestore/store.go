// Package sqlitestore is the store in one file on a local disk: one host, any
// number of processes, nothing to run. An acknowledged admission survives the
// end of the process and of the host, and not the loss of the disk.
//
// SQLite lets one connection write at a time, so check and claim happen under
// its write lock: begin immediate, one statement that checks and claims, one
// that records the operation, commit [A2]. In each process one goroutine writes;
// what waits for it shares one commit. The clock that decides is the engine's,
// sampled under the lock, and never goes back: every write raises a floor [P1].
// Refusal records can therefore be purged safely without any bound on an
// admission.
//
// Callers must not assume that the file may be on a network file system (it is
// refused), be copied back from a backup without [Store.RaiseEpoch], or be
// replaced under a running process (writes then fail until it is opened again).
// Nor may other code of the same process open it but through SQLite: a process
// that closes a file loses all its locks on it.
//
// A caller's own tables may stand in the same file: with [Store.BeginTx] an
// admission, the business write and the success are one commit.
package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
)

// Store implements pawl.Store, pawl.GrantBook and pawl.Keeper. Create one with
// [Open]. It may be used by many goroutines at once.
type Store struct {
	opts     resolved
	path     string
	place    place
	fresh    schema // what the migrations make
	id       identity
	writer   *writer
	reads    *sql.DB
	prepared map[string]*sql.Stmt // on reads; fixed after Open

	mu       sync.Mutex
	isClosed bool
	inFlight sync.WaitGroup
}

var (
	_ pawl.Store     = (*Store)(nil)
	_ pawl.GrantBook = (*Store)(nil)
	_ pawl.Keeper    = (*Store)(nil)
)

// Realm returns the store's realm, the audience of every token for it [A1].
func (s *Store) Realm() string { return s.id.realm }

// ID returns the store's id, which an instance may pin with Options.StoreID.
func (s *Store) ID() string { return s.id.id }

// folder is where the file stands.
func (s *Store) folder() string { return filepath.Dir(s.path) }

// Path returns the absolute path of the file.
func (s *Store) Path() string { return s.path }

// Close implements pawl.Store. It waits for calls in flight, transactions of
// BeginTx included, and for what waits to be written. A second Close does
// nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	already := s.isClosed
	s.isClosed = true
	s.mu.Unlock()
	if already {
		<-s.writer.ended
		return nil
	}
	s.inFlight.Wait()
	close(s.writer.queue)
	<-s.writer.ended
	return s.closeReads()
}

func (s *Store) closeReads() error {
	var errs []error
	for _, stmt := range s.prepared {
		errs = append(errs, stmt.Close())
	}
	if s.reads != nil { // Open may have failed before there were any
		errs = append(errs, s.reads.Close())
	}
	return errors.Join(errs...)
}

// enter begins a call, leave ends it.
func (s *Store) enter(class pawl.Class) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return closed(class)
	}
	s.inFlight.Add(1)
	return nil
}

func (s *Store) leave() { s.inFlight.Done() }

// write runs f on the writer's goroutine in a transaction that holds the write
// lock, and waits for the commit. class is that of an answer that cannot be had.
// An error of f undoes what it wrote, unless it is a *kept. When ctx ends the
// caller stops waiting, and a job that has begun runs to its end [A3].
func write[T any](ctx context.Context, s *Store, class pawl.Class, f func(*txn) (T, error)) (T, error) {
	var none, got T
	j := &job{ctx: ctx, class: class, done: make(chan error, 1), run: func(t *txn) (err error) {
		got, err = f(t)
		return err
	}}
	if err := s.submit(j); err != nil {
		return none, err // got may still be written by a job that was left behind
	}
	return got, nil
}

// submit lets a job in and waits for its answer.
func (s *Store) submit(j *job) error {
	if err := s.enter(j.class); err != nil {
		return err
	}
	defer s.leave()
	if err := s.letIn(j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-j.ctx.Done():
	}
	select {
	case err := <-j.done: // both were there: an answer is worth more
		return err
	default:
		return cancelled(j.class, j.ctx.Err())
	}
}

// letIn puts a job into the queue; while that is full the caller waits, at most
// as long as for an answer of the store.
func (s *Store) letIn(j *job) error {
	if err := j.ctx.Err(); err != nil {
		return cancelled(j.class, err)
	}
	select {
	case s.writer.queue <- j:
		return nil
	default:
	}
	patience := time.NewTimer(s.opts.timings.StoreCallTimeout)
	defer patience.Stop()
	select {
	case s.writer.queue <- j:
		return nil
	case <-j.ctx.Done():
		return cancelled(j.class, j.ctx.Err())
	case <-patience.C:
		return &pawl.Error{Class: j.class, Reason: pawl.ReasonUnreachable, Note: "too many calls are waiting"}
	}
}

// read runs f on a connection that cannot write, in one transaction, so that all
// it reads is of one moment. Nothing is ever executed on what it returns [A3].
func read[T any](ctx context.Context, s *Store, f func(asker) (T, error)) (got T, err error) {
	var none T
	if err := s.enter(pawl.ErrUnavailable); err != nil {
		return none, err
	}
	defer s.leave()
	tx, err := s.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err == nil {
		got, err = f(asker{ctx: ctx, prepare: func(name string) (*sql.Stmt, error) { return s.reader(ctx, tx, name) }})
		_ = tx.Rollback() // it wrote nothing
	}
	if err == nil {
		return got, nil
	}
	if cause := ctx.Err(); cause != nil {
		return none, cancelled(pawl.ErrUnavailable, cause)
	}
	return none, s.opts.engine.explain(err, pawl.ErrUnavailable)
}

// readStatements are those that run on connections that cannot write.
func readStatements() []string {
	return []string{
		"find_operation", "list_operations", "list_waiting", "list_entries", "find_grant_record", "list_grants",
		"list_erasable", "count_unsettled", "count_stale", "find_clock", "quick_check",
		"checkpoint", "list_objects",
	}
}

// prepareReads prepares them for all connections of the pool: nothing is
// acquired while a connection is held.
func (s *Store) prepareReads(ctx context.Context) error {
	for _, name := range readStatements() {
		text, err := statementText(name)
		if err != nil {
			return err
		}
		stmt, err := s.reads.PrepareContext(ctx, text)
		if err != nil {
			return fmt.Errorf("preparing %s: %w", name, err)
		}
		s.prepared[name] = stmt
	}
	return nil
}

func (s *Store) reader(ctx context.Context, tx *sql.Tx, name string) (*sql.Stmt, error) {
	stmt, ok := s.prepared[name]
	if !ok {
		return nil, fmt.Errorf("%s is no statement that reads", name)
	}
	return tx.StmtContext(ctx, stmt), nil
}
