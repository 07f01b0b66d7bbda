package memdb

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-go/pawl"
)

// DB is all that one store holds, behind one lock. Any number of handles share
// it, as processes share a database.
type DB struct {
	mu    sync.Mutex
	clock func() time.Time
	floor time.Time
	meta  Meta

	seq      uint64
	ops      map[pawl.OperationID]*record
	byGrant  map[pawl.GrantKey]pawl.OperationID // the second barrier: one operation for a grant [A7]
	claims   map[pawl.GrantKey]Claim
	grants   map[pawl.GrantKey]*GrantRow
	requests map[request]pawl.GrantKey
}

// Meta is what a store holds once: id and realm never change [A1].
type Meta struct {
	ID     string
	Realm  string
	Secret pawl.TokenSecret
	Policy pawl.Policy
	Epoch  pawl.Epoch
}

type record struct {
	op      pawl.Operation
	seq     uint64
	entries []pawl.Entry
	byKey   map[string]int // index into entries
}

type request struct{ issuer, id string }

// Claim is the one claim of a grant key, by an operation or, where Operation is
// zero, by a revocation. It is the refusal record [A2, R1].
type Claim struct {
	Operation   pawl.OperationID
	At          time.Time
	RetainUntil time.Time
	RevokedBy   string
	Reason      string
}

// GrantRow is the immutable record of an issue [A2].
type GrantRow struct {
	Grant     pawl.Grant
	RequestID string
	Digest    pawl.RequestDigest
	Seq       uint64 // grows with every row of the database
}

// New returns empty tables. An empty realm becomes "memory:" and the store's id.
func New(realm string, p pawl.Policy, clock func() time.Time) *DB {
	id := uuid.Must(uuid.NewV7()).String()
	if realm == "" {
		realm = "memory:" + id
	}
	return &DB{
		clock:    clock,
		meta:     Meta{ID: id, Realm: realm, Secret: pawl.NewTokenSecret(), Policy: p},
		ops:      map[pawl.OperationID]*record{},
		byGrant:  map[pawl.GrantKey]pawl.OperationID{},
		claims:   map[pawl.GrantKey]Claim{},
		grants:   map[pawl.GrantKey]*GrantRow{},
		requests: map[request]pawl.GrantKey{},
	}
}

// Tx is one transaction: it holds the lock of the tables. Now is its time.
type Tx struct {
	Now time.Time
	db  *DB
}

// Update runs f under the lock. There is no roll-back: f decides first and
// writes last, and what it wrote stands also when it returns an error, as a
// refused statement's log entry must.
func (db *DB) Update(f func(*Tx) error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return f(&Tx{Now: db.now(), db: db})
}

// now is the later of the clock and the time floor, and raises the floor: a
// clock that steps back re-opens nothing [P1]. Times have microseconds, as in
// every other store.
func (db *DB) now() time.Time {
	if t := db.clock().UTC().Truncate(time.Microsecond); t.After(db.floor) {
		db.floor = t
	}
	return db.floor
}

// Meta gives access to what the store holds once.
func (tx *Tx) Meta() *Meta { return &tx.db.meta }

func (tx *Tx) next() uint64 {
	tx.db.seq++
	return tx.db.seq
}
