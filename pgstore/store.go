package pgstore

import (
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl"
)

// Store implements pawl.Store, pawl.GrantBook and pawl.Keeper on PostgreSQL.
// Create one with Open. It may be used by many goroutines at once.
type Store struct {
	settings
	sql      statements
	id       string
	uuid     uuid.UUID // the same
	realm    string
	secret   pawl.TokenSecret
	server   server
	patience time.Duration

	admissions *pgxpool.Pool // for claims and operations' creation only
	ordinary   *pgxpool.Pool

	mu       sync.Mutex
	closed   bool
	inFlight sync.WaitGroup
}

var (
	_ pawl.Store     = (*Store)(nil)
	_ pawl.GrantBook = (*Store)(nil)
	_ pawl.Keeper    = (*Store)(nil)
)

// server is what a server said of itself before anything was pinned.
type server struct {
	version int  // such as 180004
	pooled  bool // the backend is not the one that was connected to: a pooler is in between
}

// hasTransactionTimeout: PostgreSQL 17 and later bound whole transactions.
func (v server) hasTransactionTimeout() bool { return v.version >= 170000 }
