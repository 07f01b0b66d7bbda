package pgstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"hash/crc64"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"github.com/pawl-go/pawl"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// schemaVersion is the version of the tables that this code is written for: the
// number of the last migration. It works on a newer one too, as long as that says
// so: a migration only adds, and takes away a release later.
const schemaVersion = 1

// versionTable is where goose keeps which migrations were applied.
const versionTable = "schema_migrations"

// migration is one file of migrations/, for one schema.
type migration struct {
	version int64
	sql     string
}

// migrations reads the files in order. Their names begin with their number.
func migrations(schema string) ([]migration, error) {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, file := range files {
		raw, err := fs.ReadFile(migrationFiles, file)
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(path.Base(file), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("pgstore: migration %s has no number", file)
		}
		all = append(all, migration{version, inSchema(string(raw), schema)})
	}
	return all, nil
}

// Migrate makes or upgrades the tables and, on first use, the store in them: its
// identity, realm and policy, as Open with the same options would. Any number of
// processes may do so at once: one does and the others wait. It needs a direct
// connection, because a transaction pooler gives a session's lock to nobody in
// particular, and the right to create the schema, or the schema itself.
//
// Errors: ErrMisconfigured for what must be changed first, ErrUnavailable where
// the server could not be asked; anything else is the migration's own failure,
// after which nothing of it is left.
func Migrate(ctx context.Context, dsn string, o *Options) error {
	s, err := o.resolve()
	if err != nil {
		return err
	}
	texts, err := loadStatements(s.Schema)
	if err != nil {
		return err
	}
	config, err := parse(dsn)
	if err != nil {
		return err
	}
	conn, err := connect(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing depends on a clean goodbye
	store := &Store{settings: s, sql: texts}
	if err := store.migrate(ctx, conn); err != nil {
		return err
	}
	return answer(store.agree(ctx, conn), pawl.ErrUnavailable)
}

// forMigration lets nothing that a role's defaults say end a migration halfway.
func forMigration(base *pgx.ConnConfig) *pgx.ConnConfig {
	config := base.Copy()
	for name, value := range map[string]string{
		"application_name": "pawl migrate", "statement_timeout": "0", "idle_in_transaction_session_timeout": "0",
		"default_transaction_isolation": "read committed", "default_transaction_read_only": "off",
		"client_min_messages": "warning", "lock_timeout": "0",
	} {
		config.RuntimeParams[name] = value
	}
	return config
}

func (s *Store) migrate(ctx context.Context, conn *pgx.Conn) error {
	err := s.fit(ctx, conn)
	if s.server.pooled {
		return misconfigured("migrations need a direct connection; this one goes through a pooler")
	}
	switch {
	case err == nil:
		return nil // the tables are there and of a version that this code knows
	case !errors.Is(err, errNoTables) && !errors.Is(err, errOldTables):
		return answer(err, pawl.ErrUnavailable)
	}
	db := stdlib.OpenDB(*forMigration(conn.Config()))
	defer db.Close()
	provider, err := s.provider(db)
	if err != nil {
		return err
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return answer(wanting(err, "to make the tables", "let the owner of the schema run pawl migrate"), pawl.ErrUnavailable)
	}
	for _, r := range results {
		s.log.InfoContext(ctx, "schema migrated", "schema", s.Schema, "version", r.Source.Version)
	}
	return nil
}

// provider runs the migrations under a lock of the whole database, named after
// the schema, and makes the schema itself under that lock.
func (s *Store) provider(db *sql.DB) (*goose.Provider, error) {
	all, err := migrations(s.Schema)
	if err != nil {
		return nil, err
	}
	var steps []*goose.Migration
	for _, m := range all {
		steps = append(steps, goose.NewGoMigration(m.version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, m.sql)
			return err
		}}, nil))
	}
	name := quoted(s.Schema) + "." + versionTable
	table, err := database.NewStore(database.DialectPostgres, name)
	if err != nil {
		return nil, err
	}
	id := int64(crc64.Checksum([]byte("pawl/"+s.Schema), crc64.MakeTable(crc64.ECMA)) >> 1)
	const period, attempts = 1, 300 // seconds
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(id), lock.WithLockTimeout(period, attempts))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectCustom, db, nil,
		goose.WithStore(gooseTable{table, s.Schema}), goose.WithSessionLocker(locker),
		goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true), goose.WithSlog(s.log))
}

// gooseTable is goose's table of versions, in a schema that may have to be made
// first. It is asked under the lock.
type gooseTable struct {
	database.Store
	schema string
}

// CreateVersionTable implements database.Store.
func (t gooseTable) CreateVersionTable(ctx context.Context, db database.DBTxConn) error {
	var there bool
	if err := db.QueryRowContext(ctx, "SELECT to_regnamespace($1) IS NOT NULL", quoted(t.schema)).Scan(&there); err != nil {
		return err
	}
	if !there { // CREATE SCHEMA IF NOT EXISTS wants the right to even where there is one
		if _, err := db.ExecContext(ctx, "CREATE SCHEMA "+quoted(t.schema)); err != nil {
			return err
		}
	}
	return t.Store.CreateVersionTable(ctx, db)
}

// TableExists implements database.StoreExtender.
func (t gooseTable) TableExists(ctx context.Context, db database.DBTxConn) (there bool, err error) {
	err = db.QueryRowContext(ctx, "SELECT to_regclass($1) IS NOT NULL", t.Tablename()).Scan(&there)
	return there, err
}

// MigrationSQL is what Migrate would run on a schema whose tables have the version
// after (0: none), as plain SQL in one transaction, for those who let nobody but
// themselves change a schema. The store in the tables is made by the first Open
// whose role may write them.
func MigrationSQL(schema string, after int) (string, error) {
	s, err := (&Options{Schema: schema}).resolve()
	if err != nil {
		return "", err
	}
	all, err := migrations(s.Schema)
	if err != nil {
		return "", err
	}
	if after < 0 || after > schemaVersion {
		return "", malformed("there is no such version of the tables")
	}
	var b strings.Builder
	table := quoted(s.Schema) + "." + versionTable
	b.WriteString("BEGIN;\n\n")
	if after == 0 {
		fmt.Fprintf(&b, "CREATE SCHEMA IF NOT EXISTS %s;\n", quoted(s.Schema))
		fmt.Fprintf(&b, "CREATE TABLE %s (\n    id integer PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,\n"+
			"    version_id bigint NOT NULL,\n    is_applied boolean NOT NULL,\n    tstamp timestamp NOT NULL DEFAULT now()\n);\n", table)
		fmt.Fprintf(&b, "INSERT INTO %s (version_id, is_applied) VALUES (0, true);\n\n", table)
	}
	for _, m := range all {
		if m.version > int64(after) {
			fmt.Fprintf(&b, "%s\nINSERT INTO %s (version_id, is_applied) VALUES (%d, true);\n\n", strings.TrimSpace(m.sql), table, m.version)
		}
	}
	b.WriteString("COMMIT;\n")
	return b.String(), nil
}

// The two states of a schema that a migration can help.
const (
	errNoTables  = constError("there are no tables")
	errOldTables = constError("the tables are of an older version")
)

// knownSchema reads which version the tables have and refuses one that this code
// does not know, older or newer.
func (s *Store) knownSchema(ctx context.Context, conn *pgx.Conn) error {
	var version, minReader int
	err := pgxSession{conn}.run(ctx, step{sql: s.sql[stmtSchemaState], each: func(scan scanner) error {
		return scan(&version, &minReader)
	}})
	switch {
	case err != nil:
		return wanting(err, "to read the tables", "see docs/stores/postgres.md for the roles")
	case version < schemaVersion:
		return misconfigured("the schema %s has version %d of the tables and this code needs %d: run pawl migrate: %w",
			s.Schema, version, schemaVersion, errOldTables)
	case minReader > schemaVersion:
		return misconfigured("the schema %s has version %d of the tables, which needs a newer pawl: this one knows %d and %d is the oldest",
			s.Schema, version, schemaVersion, minReader)
	}
	return nil
}

//go:embed roles.sql
var rolesFile string

// RolesSQL makes the roles of the least rights, as plain SQL for the owner of a
// schema: one each to read, admit, recover, issue, purge and keep. The names are
// the file's; a cluster with several stores must change them.
func RolesSQL(schema string) (string, error) {
	s, err := (&Options{Schema: schema}).resolve()
	if err != nil {
		return "", err
	}
	text := strings.ReplaceAll(rolesFile, "SCHEMA "+defaultSchema, "SCHEMA "+quoted(s.Schema))
	return inSchema(text, s.Schema), nil
}
