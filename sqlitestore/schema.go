package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/pawl-go/pawl"
)

// schema is what defines every table, index and trigger of this package, by name.
type schema map[string]string

// facts compare what a file has with what the migrations make: the promise rests on
// the unique ones, and a trigger that is gone is gone for a reason [A7, A11].
func (have schema) facts(want schema) []pawl.Fact {
	const fix = "stop all processes and restore a backup, then raise the epoch: what this kept out may have come in"
	var wrong []pawl.Fact
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have[name] == want[name] {
			continue
		}
		value := name + " is missing"
		if have[name] != "" {
			value = name + " is another"
		}
		wrong = append(wrong, pawl.MustHold("schema", value, false, fix))
	}
	if wrong == nil {
		wrong = []pawl.Fact{{Name: "schema", Value: fmt.Sprintf("%d tables, indexes and triggers in place", len(want)), OK: true}}
	}
	return wrong
}

func readSchema(a asker) (schema, error) {
	found := schema{}
	err := a.each("list_objects", func(rows *sql.Rows) error {
		var name, text string
		err := rows.Scan(&name, &text)
		found[name] = strings.Join(strings.Fields(text), " ")
		return err
	})
	return found, err
}

// freshSchema is what the migrations make of an empty database, which stands in
// memory and is gone afterwards.
func (e engine) freshSchema(ctx context.Context) (_ schema, err error) {
	db, err := sql.Open(e.driver, ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // each has a memory of its own
	p, err := provider(db, nil)
	if err != nil {
		return nil, err
	}
	if _, err := p.Up(ctx); err != nil {
		return nil, err
	}
	text, err := statementText("list_objects")
	if err != nil {
		return nil, err
	}
	stmt, err := db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	return readSchema(asker{ctx: ctx, prepare: func(string) (*sql.Stmt, error) { return stmt, nil }})
}

// provider runs the migrations; options may be nil.
func provider(db *sql.DB, options []goose.ProviderOption) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectSQLite3, db, files,
		append(options, goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))...)
}

// holdsStore tells why a file is no store of this version, nil where it is one. It
// changes nothing.
func (o resolved) holdsStore(ctx context.Context, path string) (err error) {
	session, err := openSession(ctx, o.engine, path, o.timings.StoreCallTimeout)
	if err != nil {
		return o.engine.openError(err)
	}
	defer func() { err = errors.Join(err, session.close()) }()
	_, _, err = o.storeIn(session.asker, path)
	return err
}

// storeIn is holdsStore on a connection; it returns what it read of a store.
func (o resolved) storeIn(a asker, path string) (m meta, found schema, err error) {
	if found, err = readSchema(a); err != nil {
		return meta{}, nil, o.engine.openError(err)
	}
	if found["pawl_meta"] == "" || found[versionTable] == "" {
		return meta{}, nil, misconfigured("%s holds no store; pawl migrate makes one", path)
	}
	var have int64
	if _, err := a.one("find_version", []any{&have}); err != nil {
		return meta{}, nil, o.engine.openError(err)
	}
	want, err := newestVersion()
	switch {
	case err != nil:
		return meta{}, nil, err
	case have > want:
		return meta{}, nil, newerSchema(have, want)
	case have < want:
		return meta{}, nil, misconfigured("the schema has version %d and this program needs %d: run pawl migrate", have, want)
	}
	m, made, err := readMeta(a)
	if err != nil {
		return meta{}, nil, o.engine.openError(err)
	}
	if !made {
		return meta{}, nil, misconfigured("%s has the tables of a store and no store in them: restore a backup, or pawl migrate makes a new one", path)
	}
	return m, found, nil
}

func newerSchema(have, want int64) error {
	return misconfigured("the schema has version %d and this program knows %d: use a newer one", have, want)
}

// newestVersion is the number of the last migration.
func newestVersion() (newest int64, err error) {
	files, err := fs.ReadDir(migrations, "migrations")
	for _, f := range files {
		n, err := goose.NumericComponent(f.Name())
		if err != nil {
			return 0, err
		}
		newest = max(newest, n)
	}
	return newest, err
}
