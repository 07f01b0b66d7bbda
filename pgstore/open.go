package pgstore

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-go/pawl"
)

// Open connects to a store, or makes it on first use, and refuses what could not
// keep the promise: a replica, settings that are not in force, a policy other
// than the store's, tables of another version [A1, A11, T1].
//
// dsn is a connection string or URL as pgx and libpq read it; pool_max_conns in
// it is overridden by Options. Errors: ErrMisconfigured for what must be changed
// first, ErrUnavailable where the server could not be asked.
func Open(ctx context.Context, dsn string, o *Options) (*Store, error) {
	s, err := o.resolve()
	if err != nil {
		return nil, err
	}
	texts, err := loadStatements(s.Schema)
	if err != nil {
		return nil, err
	}
	if s.Migrate {
		if err := Migrate(ctx, dsn, o); err != nil {
			return nil, err
		}
	}
	return open(ctx, dsn, s, texts)
}

// open is Open with the statements given: tests give wrong ones.
func open(ctx context.Context, dsn string, o settings, texts statements) (_ *Store, err error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	if o.dial != nil {
		config.ConnConfig.DialFunc = o.dial
	}
	s := &Store{settings: o, sql: texts, patience: patienceFor(o.timings)}
	if err := s.introduce(ctx, config.ConnConfig); err != nil {
		return nil, err
	}
	if s.admissions, err = s.pool(ctx, config, forAdmissions, s.AdmissionConns); err != nil {
		return nil, err
	}
	if s.ordinary, err = s.pool(ctx, config, forTheRest, s.Conns); err != nil {
		s.admissions.Close()
		return nil, err
	}
	facts, err := s.Check(ctx)
	if err == nil {
		err = facts.Err()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.log.InfoContext(ctx, "store opened", "store", s.id, "realm", s.realm, "engine", facts.Engine)
	return s, nil
}

// parse reads the connection string. What is wrong with it is not quoted: it may
// hold a password [S2].
func parse(dsn string) (*pgxpool.Config, error) {
	if strings.TrimSpace(dsn) == "" {
		return nil, misconfigured("there is no connection string")
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, misconfigured("the connection string cannot be read")
	}
	switch config.ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec:
	case pgx.QueryExecModeSimpleProtocol:
		return nil, misconfigured("the simple protocol bounds no admission before PostgreSQL 17 and gives several statements one time: " +
			"take default_query_exec_mode=exec [P1]")
	default:
		return nil, misconfigured("default_query_exec_mode is not cache_statement, cache_describe or exec: the others need two round trips " +
			"on one backend, which a pooler does not promise")
	}
	const connectTimeout = 10 * time.Second
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	return config, nil
}

// introduce asks the server what it is, on a connection of its own with nothing
// pinned, and reads or makes what the store is.
func (s *Store) introduce(ctx context.Context, config *pgx.ConnConfig) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	return asking(ctx, config, func(ctx context.Context, conn *pgx.Conn) error {
		if err := s.fit(ctx, conn); err != nil {
			return err
		}
		return s.agree(ctx, conn)
	})
}

// asking does something on a connection of its own.
func asking(ctx context.Context, config *pgx.ConnConfig, do func(context.Context, *pgx.Conn) error) error {
	conn, err := connect(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing depends on a clean goodbye
	return answer(do(ctx, conn), pawl.ErrUnavailable)
}

// connect opens a connection outside the pools, and tells a deployment that
// refuses from a server that is away. It prepares nothing by name: whether a
// pooler is in between is not known yet.
func connect(ctx context.Context, base *pgx.ConnConfig) (*pgx.Conn, error) {
	config := base.Copy()
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		return conn, nil
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "28000", "28P01", "3D000", "42501", "42704", "08P01":
			return nil, misconfigured("the server refuses the connection%s (SQLSTATE %s)", refusals()[e.Code], e.Code)
		}
	}
	return nil, answer(err, pawl.ErrUnavailable)
}

// refusals are words for what a server refuses a connection for.
func refusals() map[string]string {
	return map[string]string{
		"28000": ": the role is unknown or may not connect from here", "28P01": ": the password is wrong",
		"3D000": ": there is no such database", "42501": ": the role may not connect to the database",
		"42704": ": a setting is unknown to it", "08P01": ": something in between does not let the settings pass",
	}
}

// probed is what a database is, besides its version.
type probed struct {
	recovering, tables bool
	encoding           string
}

// probe learns the server's version, whether a pooler is in between, and what
// the database is.
func (s *Store) probe(ctx context.Context, conn *pgx.Conn) (p probed, err error) {
	var pid uint32
	row := conn.QueryRow(ctx, s.sql[stmtProbe], pgx.QueryExecModeExec)
	err = row.Scan(&s.server.version, &pid, &p.recovering, &p.encoding, &p.tables)
	s.server.pooled = pid != conn.PgConn().PID()
	return p, err
}

// fit tells why a database cannot be used.
func (s *Store) fit(ctx context.Context, conn *pgx.Conn) error {
	found, err := s.probe(ctx, conn)
	if err == nil {
		err = found.unsafe()
	}
	if err == nil {
		err = s.readable(ctx, conn, found)
	}
	return err
}

// unsafe tells why a database may hold no store.
func (p probed) unsafe() error {
	switch {
	case p.recovering:
		return misconfigured("the connection string leads to a replica; the primary decides [A1]")
	case p.encoding != "UTF8":
		return misconfigured("the database's encoding is %s, not UTF8", p.encoding)
	}
	return nil
}

// readable tells why nothing can even be read: the server is too old, or the
// tables are missing or of a version that this code does not know.
func (s *Store) readable(ctx context.Context, conn *pgx.Conn, p probed) error {
	switch {
	case s.server.version < oldestServer:
		return misconfigured("the server's version is %d; it must be 15 or later", s.server.version)
	case !p.tables:
		return misconfigured("run pawl migrate, or open with Options.Migrate: %w in the schema %s", errNoTables, s.Schema)
	}
	return s.knownSchema(ctx, conn)
}

// oldestServer is the oldest supported version, as server_version_num.
const oldestServer = 150000

// pool makes one pool, whose connections are pinned and read back.
func (s *Store) pool(ctx context.Context, base *pgxpool.Config, p purpose, conns int) (*pgxpool.Pool, error) {
	config := base.Copy()
	config.MaxConns = int32(conns)
	config.MinConns, config.MinIdleConns = 0, 0
	config.PingTimeout = s.timings.StoreCallTimeout
	config.AfterConnect = s.readBack(p)
	config.ConnConfig.OnNotice = onNotice
	s.pin(config.ConnConfig, p)
	if (s.server.pooled || s.Pins == PinByRole) && config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		// A pooler may hand each transaction to another backend, which knows no statement by name; and only what is
		// pinned keeps a plan that outlives its call from scanning [A11].
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, misconfigured("no pool of connections can be made")
	}
	if err := s.firstConnection(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// pin puts the settings that a purpose needs on connections to come.
func (s *Store) pin(config *pgx.ConnConfig, p purpose) {
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "pawl"
	}
	if s.Pins == PinAtStartup {
		maps.Copy(config.RuntimeParams, s.pins(s.server, p))
	}
}

// firstConnection makes one, so that what a pooler refuses is known at once.
func (s *Store) firstConnection(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	conn, err := pool.Acquire(ctx)
	if err == nil {
		conn.Release()
		return nil
	}
	if errors.Is(err, errReplica) {
		return misconfigured("the connection string leads to a replica; the primary decides [A1]")
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && s.Pins == PinAtStartup {
		switch e.Code {
		case "08P01", "42704", "0A000": // the same connection without pins was let in a moment ago
			return misconfigured("a pooler refuses start-up parameters (SQLSTATE %s): %s", e.Code, pinsFix)
		}
	}
	if e, ok := errors.AsType[*pawl.Error](err); ok && s.Pins == PinAtStartup && s.server.pooled {
		return misconfigured("%s; a pooler keeps start-up parameters from the server: %s", e.Note, pinsFix)
	}
	return answer(err, pawl.ErrUnavailable)
}

const pinsFix = "let it pass them on, or set them with ALTER ROLE and open with PinByRole"
