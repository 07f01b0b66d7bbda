package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"

	"github.com/pawl-go/pawl/internal/failpoint"
)

// engine is all that this package knows of the library that carries SQLite, so
// that tests can put another under it.
type engine struct {
	driver string                                        // name in database/sql
	dsn    func(path string, pragmas [][2]string) string // of a file that exists: it is never created
	code   func(error) (int, bool)                       // extended result code of an error of the engine
}

// modernc is SQLite translated to Go, with SQLite's own layer over files.
func modernc() engine {
	return engine{
		driver: "sqlite",
		dsn: func(path string, pragmas [][2]string) string {
			q := url.Values{"mode": {"rw"}}
			for _, p := range pragmas {
				q.Add("_pragma", p[0]+"("+p[1]+")")
			}
			slashed := filepath.ToSlash(path)
			if !strings.HasPrefix(slashed, "/") {
				slashed = "/" + slashed // a drive letter
			}
			return (&url.URL{Scheme: "file", Path: slashed, RawQuery: q.Encode()}).String()
		},
		code: func(err error) (int, bool) {
			e, ok := errors.AsType[*sqlite.Error](err)
			if !ok {
				return 0, false
			}
			return e.Code(), true
		},
	}
}

// Result codes of SQLite: the primary code is the low byte of an extended one.
const (
	codeBusy       = 5
	codeLocked     = 6
	codeNoMemory   = 7
	codeReadOnly   = 8
	codeInterrup   = 9
	codeIO         = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeProtocol   = 15
	codeConstraint = 19
	codeAuth       = 23
	codeNotADB     = 26

	codePrimaryKey = 1555 // SQLITE_CONSTRAINT_PRIMARYKEY
	codeUnique     = 2067 // SQLITE_CONSTRAINT_UNIQUE
)

// primary returns the primary result code of an error, 0 where the engine did
// not speak.
func (e engine) primary(err error) int {
	code, ok := e.code(err)
	if !ok {
		return 0
	}
	return code & 0xff
}

// busy reports whether another connection held the lock: nothing was written.
func (e engine) busy(err error) bool {
	p := e.primary(err)
	return p == codeBusy || p == codeProtocol
}

// taken reports whether an insert met the primary key or the unique index [A7].
func (e engine) taken(err error) bool {
	code, _ := e.code(err)
	return code == codePrimaryKey || code == codeUnique
}

// lost reports whether an error leaves the transaction, or what became of it,
// in doubt: the connection is then given up, and nobody in the transaction is
// told anything definite.
func (e engine) lost(err error) bool {
	switch e.primary(err) {
	case codeBusy, codeLocked, codeNoMemory, codeReadOnly, codeInterrup, codeIO, codeCorrupt, codeFull,
		codeCantOpen, codeProtocol, codeAuth, codeNotADB:
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, errNoTransaction) ||
		errors.Is(err, failpoint.ErrInjected)
}

// unreachable reports whether an error says that the store could not be asked,
// as against that a statement was wrong, which is a defect.
func (e engine) unreachable(err error) bool {
	if errors.Is(err, errUnconfirmed) {
		return true
	}
	switch e.primary(err) {
	case codeCorrupt, codeNotADB, codeAuth:
		return false // asking again will not help: alarm
	}
	return e.lost(err) || errors.Is(err, errMoved) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// pragmas are set on every connection; [session.settings] reads them back [A11].
func pragmas(patience time.Duration, readOnly bool) [][2]string {
	list := [][2]string{
		{"busy_timeout", strconv.FormatInt(patience.Milliseconds(), 10)},
		{"synchronous", "FULL"},        // every commit is on the disk before it is answered [A3]
		{"fullfsync", "ON"},            // and there, on systems that tell the two apart
		{"checkpoint_fullfsync", "ON"}, // the same for what a checkpoint moves
		{"foreign_keys", "ON"},         // an operation's log goes with it
		{"trusted_schema", "OFF"},      // the file may hold a caller's own schema
	}
	if readOnly {
		list = append(list, [2]string{"query_only", "ON"})
	}
	return list
}
