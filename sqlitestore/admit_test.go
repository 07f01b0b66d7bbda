package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sqlitestore"
)

// TestCase_CA11_OtherConstraints: whatever else an insert may violate is a
// defect: no class, so neither refused nor unavailable nor to be retried, and
// nothing is written [A7].
func TestCase_CA11_OtherConstraints(t *testing.T) {
	for name, c := range map[string]struct{ make, undo string }{
		"a trigger on operations": {
			`CREATE TRIGGER broken BEFORE INSERT ON pawl_operations BEGIN SELECT RAISE(ABORT, 'no'); END`, `DROP TRIGGER broken`,
		},
		"a trigger on claims": {
			`CREATE TRIGGER broken BEFORE INSERT ON pawl_claims BEGIN SELECT RAISE(ABORT, 'no'); END`, `DROP TRIGGER broken`,
		},
		"a uniqueness that is not the store's": {
			`CREATE TABLE mine (only INTEGER PRIMARY KEY); INSERT INTO mine VALUES (1);
			 CREATE TRIGGER broken AFTER INSERT ON pawl_operations BEGIN INSERT INTO mine VALUES (1); END`,
			`DROP TRIGGER broken`,
		},
		"a violation found at the commit": {
			`CREATE TABLE parents (id INTEGER PRIMARY KEY);
			 CREATE TABLE mine (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
			 CREATE TRIGGER broken AFTER INSERT ON pawl_operations BEGIN INSERT INTO mine VALUES (1); END`,
			`DROP TRIGGER broken`,
		},
		"an index that is not the store's": {
			`CREATE UNIQUE INDEX broken ON pawl_operations (kind)`, `DROP INDEX broken`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
			if _, err := s.Admit(t.Context(), presented(s, "first", pawl.NewOperationID(), justNow())); err != nil {
				t.Fatal(err)
			}
			execute(t, s.Path(), c.make)
			a := presented(s, "g", pawl.NewOperationID(), justNow())
			_, err := s.Admit(t.Context(), a)
			if row, classed := pawl.Row(err); err == nil || classed {
				t.Fatalf("%v has the class %s, want a defect", err, row.Name)
			}
			execute(t, s.Path(), c.undo)
			inspectClaims(t, s.Path(), "g", 0)
			if got, err := s.Admit(t.Context(), a); err != nil || !got.Fresh {
				t.Errorf("afterwards: fresh %v, %v", got.Fresh, err)
			}
		})
	}
}

func inspectClaims(t *testing.T, path, grantID string, want int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"pawl_claims", "pawl_operations"} {
		var got int
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table+" WHERE grant_id = ?", grantID).Scan(&got)
		if err != nil || got != want {
			t.Errorf("%d rows of grant %s in %s, want %d; %v", got, grantID, table, want, err)
		}
	}
}

// A second operation for a grant key is refused even where the claim is gone,
// and the claim that this admission made is undone [A7].
func TestOneOperationPerGrantWithoutItsClaim(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	if _, err := s.Admit(t.Context(), presented(s, "g", pawl.NewOperationID(), justNow())); err != nil {
		t.Fatal(err)
	}
	execute(t, s.Path(), "DELETE FROM pawl_claims")
	_, err := s.Admit(t.Context(), presented(s, "g", pawl.NewOperationID(), justNow()))
	if !errors.Is(err, pawl.ErrRefused) || pawl.ReasonOf(err) != pawl.ReasonUsed {
		t.Errorf("%v, want refused as used", err)
	}
	db, err := sql.Open("sqlite", s.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var claims int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pawl_claims").Scan(&claims); err != nil || claims != 0 {
		t.Errorf("%d claims, want none; %v", claims, err)
	}
}

// A stored grant that names the authentication issuer of its subject is for that
// one's subject only, whatever other issuers call theirs [A9].
func TestStoredGrantOfAnAuthority(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	a := presented(s, "g", pawl.NewOperationID(), justNow())
	issued, err := s.Issue(t.Context(), pawl.Issuance{
		RequestID: "r", Form: pawl.FormStored, Issuer: "issuer", Subject: "ana", Authority: "idp-1", Intent: a.Intent,
		Lifetime: time.Hour, GrantID: "g",
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Grant = issued.Grant
	for _, c := range []struct {
		authority string
		want      pawl.Reason
	}{{"", pawl.ReasonSubject}, {"idp-2", pawl.ReasonSubject}, {"idp-1", ""}} {
		a.Caller.Authority = c.authority
		if got, err := s.Admit(t.Context(), a); pawl.ReasonOf(err) != c.want || got.Fresh != (err == nil) {
			t.Errorf("authority %q: fresh %v, %v; want reason %q", c.authority, got.Fresh, err, c.want)
		}
	}
}

// hold keeps the write lock from a connection of its own until release.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(2000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() { db.Close() }
}

// TestCase_CA13_WinnerIsUndone: two admissions of one grant share a transaction
// that is not committed. The second saw the first win, and still must not be
// told that the grant is used; afterwards the grant is unspent.
func TestCase_CA13_WinnerIsUndone(t *testing.T) {
	var broken atomic.Bool
	s, err := sqlitestore.OpenHooked(t.Context(), filepath.Join(t.TempDir(), "pawl.db"), nil, nil, func(end func() error) error {
		if broken.Load() {
			return errors.New("the disk is full") // and nothing was committed
		}
		return end()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	broken.Store(true)
	release := hold(t, s.Path())
	first := make(chan error, 1)
	go func() { // the writer waits with this one for the lock, and the others wait for it
		_, err := s.MaySubmit(t.Context(), pawl.NewOperationID(), "")
		first <- err
	}()
	s.AwaitWaiting(t, 0)
	admissions := []pawl.Admission{
		presented(s, "g", pawl.NewOperationID(), justNow()), presented(s, "g", pawl.NewOperationID(), justNow()),
	}
	answers := make(chan error, len(admissions))
	for i, a := range admissions {
		go func() {
			_, err := s.Admit(t.Context(), a)
			answers <- err
		}()
		s.AwaitWaiting(t, i+1)
	}
	release()
	if err := <-first; !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	for range admissions {
		if err := <-answers; !errors.Is(err, pawl.ErrNotConfirmed) {
			t.Errorf("%v, want ErrNotConfirmed", err)
		}
	}
	broken.Store(false)
	inspectClaims(t, s.Path(), "g", 0)
	if got, err := s.Admit(t.Context(), admissions[1]); err != nil || !got.Fresh {
		t.Errorf("the loser, again: fresh %v, %v", got.Fresh, err)
	}
}

// TestCase_CA13_WinnerRollsBack: the loser waited for a transaction of another
// handle that claimed the grant and was rolled back. It is admitted.
func TestCase_CA13_WinnerRollsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	a, b := open(t, path, nil), open(t, path, nil)
	tx, err := a.BeginTx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a.AdmitTx(t.Context(), tx, presented(a, "g", pawl.NewOperationID(), justNow())); err != nil || !got.Fresh {
		t.Fatalf("fresh %v, %v", got.Fresh, err)
	}
	answer := make(chan error, 1)
	go func() {
		got, err := b.Admit(t.Context(), presented(b, "g", pawl.NewOperationID(), justNow()))
		if err == nil && !got.Fresh {
			err = errors.New("not fresh")
		}
		answer <- err
	}()
	b.AwaitWaiting(t, 0)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Errorf("the loser: %v, want admitted", err)
	}
	inspect(t, path, 1)
}

// While another process holds the lock past the store's patience nothing is
// written: not confirmed, or unavailable [A6].
func TestLockedTooLong(t *testing.T) {
	hasty := pawl.DefaultTimings()
	hasty.StoreCallTimeout = 50 * time.Millisecond
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), &sqlitestore.Options{Timings: &hasty})
	release := hold(t, s.Path())
	a := presented(s, "g", pawl.NewOperationID(), justNow())
	if _, err := s.Admit(t.Context(), a); !errors.Is(err, pawl.ErrNotConfirmed) || pawl.ReasonOf(err) != pawl.ReasonUnreachable {
		t.Errorf("%v, want ErrNotConfirmed as unreachable", err)
	}
	if _, err := s.RaiseEpoch(t.Context()); !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	release()
	inspectClaims(t, s.Path(), "g", 0)
	if got, err := s.Admit(t.Context(), a); err != nil || !got.Fresh {
		t.Errorf("afterwards: fresh %v, %v", got.Fresh, err)
	}
}

// TestCase_CA9_CancelledAtEveryStep: the caller goes while its admission waits
// for its turn, for the lock, and for the commit. Each time it is told that
// nothing is confirmed; what had begun runs to its end, and the same operation id
// tells which [A3, A6].
func TestCase_CA9_CancelledAtEveryStep(t *testing.T) {
	var committing atomic.Pointer[chan struct{}]
	s, err := sqlitestore.OpenHooked(t.Context(), filepath.Join(t.TempDir(), "pawl.db"), nil, nil, func(end func() error) error {
		err := end()
		if c := committing.Load(); c != nil {
			*c <- struct{}{} // committed
			<-*c             // and answered later
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cancelled := func(step string, a pawl.Admission, reached func(), after func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() {
			_, err := s.Admit(ctx, a)
			answer <- err
		}()
		reached()
		cancel()
		if err := <-answer; !errors.Is(err, pawl.ErrNotConfirmed) || pawl.ReasonOf(err) != pawl.ReasonCancelled {
			t.Errorf("%s: %v, want ErrNotConfirmed as cancelled", step, err)
		}
		after()
	}
	again := func(step string, a pawl.Admission, fresh bool) {
		t.Helper()
		if got, err := s.Admit(t.Context(), a); err != nil || got.Fresh != fresh {
			t.Errorf("%s, the same again: fresh %v, %v; want fresh %v", step, got.Fresh, err, fresh)
		}
	}

	a := presented(s, "lock", pawl.NewOperationID(), justNow())
	release := hold(t, s.Path())
	cancelled("at the lock", a, func() { s.AwaitWaiting(t, 0) }, func() {
		b := presented(s, "turn", pawl.NewOperationID(), justNow())
		cancelled("waiting for its turn", b, func() { s.AwaitWaiting(t, 1) }, release)
		again("waiting for its turn", b, true) // it had not begun
	})
	again("at the lock", a, false) // it had begun, and ran to its end

	a = presented(s, "commit", pawl.NewOperationID(), justNow())
	c := make(chan struct{})
	committing.Store(&c)
	cancelled("at the commit", a, func() { <-c }, func() {
		committing.Store(nil)
		c <- struct{}{}
	})
	again("at the commit", a, false)
	inspect(t, s.Path(), 3)
}

// What is in the queue when a store is closed is done and answered; what comes
// later is told that it is closed.
func TestCloseFinishesWhatWaits(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	release := hold(t, s.Path())
	answers := make(chan error, 3)
	for i := range cap(answers) {
		go func() {
			_, err := s.Admit(t.Context(), admission(s, "queued", time.Minute))
			answers <- err
		}()
		s.AwaitWaiting(t, i)
	}
	closing := make(chan error, 1)
	go func() { closing <- s.Close() }()
	release()
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if err := <-closing; err != nil {
		t.Error(err)
	}
	if _, err := s.Admit(t.Context(), admission(s, "late", time.Minute)); pawl.ReasonOf(err) != pawl.ReasonClosed {
		t.Errorf("after Close: %v", err)
	}
	inspect(t, s.Path(), 3)
}
