package sqlitestore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/pressly/goose/v3"

	"github.com/pawl-go/pawl"
)

// migrations are applied in order and never edited once released.
//
//go:embed migrations/*.sql
var migrations embed.FS

const (
	versionTable = "pawl_migrations"
	readers      = 4 // connections that only read
)

// Open opens the store in the file at path, making the file, readable by its
// owner only, where there is none; its folder must exist. Any number of
// processes may open it at once. o may be nil.
//
// Errors: ErrInvalid for malformed options. ErrMisconfigured for a file system
// that is shared between hosts, memory, a folder or file that cannot be used, an
// engine that can lose commits, a schema newer than this program, another store
// than the pinned one, timings that break a rule or disagree with the store's
// [A1, A11, T1]. ErrUnavailable where the file could not be asked now.
func Open(ctx context.Context, path string, o *Options) (*Store, error) {
	opts, err := o.resolve()
	if err != nil {
		return nil, err
	}
	path, err = realPath(path)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts, path: path, prepared: map[string]*sql.Stmt{}}
	if s.place, err = placeOf(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := s.place.refuse(path); err != nil {
		return nil, err
	}
	if s.fresh, err = opts.engine.freshSchema(ctx); err != nil {
		return nil, opts.engine.openError(err)
	}
	w, err := s.start(ctx)
	if err != nil {
		return nil, opts.engine.openError(err)
	}
	s.writer = w
	go w.loop() // ends in Close, which waits for it
	if err := s.startReads(ctx); err != nil {
		return nil, errors.Join(opts.engine.openError(err), s.Close())
	}
	facts, err := s.facts(ctx)
	if err == nil {
		err = facts.Err()
	}
	if err != nil {
		return nil, errors.Join(opts.engine.openError(err), s.Close())
	}
	return s, nil
}

// openError gives its class to what opening met: a file that is none of
// SQLite's or may not be written does not become so by asking again.
func (e engine) openError(err error) error {
	if errors.Is(err, pawl.ErrMisconfigured) {
		return err
	}
	switch e.primary(err) {
	case codeReadOnly, codeCantOpen, codeNotADB, codeCorrupt, codeAuth:
		return misconfigured("the file cannot be used: %w", err)
	}
	return e.explain(err, pawl.ErrUnavailable)
}

// realPath returns the one name of a file: its log and its locks stand beside
// it under that name, so all processes must use the same.
func realPath(path string) (string, error) {
	switch {
	case path == "":
		return "", misconfigured("no path is given")
	case path == ":memory:" || strings.HasPrefix(path, "file:"):
		return "", misconfigured("%q is no plain path of a file; for a store in memory use memstore", path)
	case strings.ContainsRune(path, 0):
		return "", misconfigured("the path has a NUL")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", misconfigured("%w", err)
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", misconfigured("the folder of %s cannot be used; make it first: %w", abs, err)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", misconfigured("%s cannot be used: it is no folder", folder)
	}
	abs = filepath.Join(folder, filepath.Base(abs))
	if target, err := filepath.EvalSymlinks(abs); err == nil {
		abs = target
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", misconfigured("%w", err)
	}
	return abs, nil
}

// start makes or upgrades the file, one process at a time, and returns the
// writer that is to own it.
func (s *Store) start(ctx context.Context) (_ *writer, err error) {
	if s.opts.Existing {
		if _, err := existing(s.path); err != nil {
			return nil, err
		}
	}
	lock, err := lockFile(ctx, s.path+".lock")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.unlock()) }()
	if s.opts.Existing {
		err = s.opts.holdsStore(ctx, s.path)
	}
	if err != nil {
		return nil, err
	}
	file, err := makeFile(s.path)
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		return nil, err
	}
	w := &writer{
		engine: s.opts.engine, path: s.path, file: file, patience: s.opts.timings.StoreCallTimeout, log: s.opts.Logger,
		hooks: s.opts.hooks, queue: make(chan *job, queueLength), ended: make(chan struct{}),
	}
	if w.session, err = openSession(ctx, w.engine, w.path, w.patience); err != nil {
		return nil, err
	}
	if err := s.agree(ctx, w); err != nil {
		w.giveUp()
		return nil, err
	}
	s.id = w.store
	return w, nil
}

// makeFile makes the file where there is none, for its owner only. One that is
// there is never opened but by the engine: this system drops all locks that a
// process has on a file when the process closes it anywhere.
func makeFile(path string) (os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, misconfigured("the file cannot be made: %w", err)
	}
	info, err := existing(path)
	if err != nil {
		return nil, err
	}
	if linked(info) {
		return nil, misconfigured("%s has several names (hard links): its log would stand beside one of them only", path)
	}
	return info, nil
}

// migrate brings the schema to what this program knows. The caller holds the
// lock of the file.
func (s *Store) migrate(ctx context.Context) (err error) {
	list := append(pragmas(s.opts.timings.StoreCallTimeout, false), [2]string{"journal_mode", "WAL"})
	db, err := sql.Open(s.opts.engine.driver, s.opts.engine.dsn(s.path, list))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var version string
	if err := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
		return err
	}
	if !safeVersion(version) {
		return settings{version: version, journal: "wal", synchronous: 2, foreignKeys: 1}.unsafe()
	}
	provider, err := provider(db, []goose.ProviderOption{goose.WithSlog(s.opts.Logger)})
	if err != nil {
		return err
	}
	have, want, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if have > want {
		return newerSchema(have, want)
	}
	if have == want {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrating from version %d to %d: %w", have, want, err)
	}
	return nil
}

// agree makes the store's identity and policy, or holds this instance to those
// that stand in it [A1, A11].
func (s *Store) agree(ctx context.Context, w *writer) error {
	if err := w.session.set.unsafe(); err != nil {
		return err
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	a := w.session.asker
	m, found, err := readMeta(a)
	if err != nil {
		return err
	}
	if found {
		err = s.join(a, m)
	} else {
		err = s.create(a)
	}
	if err != nil {
		return err
	}
	if m, _, err = readMeta(a); err != nil {
		return err
	}
	w.store, w.policy, w.revision = m.identity, m.policy, m.revision
	return w.session.do(commit)
}

func (s *Store) create(a asker) error {
	if s.opts.StoreID != "" {
		return pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonDisagreement,
			"store %s is pinned, and this file holds no store yet", s.opts.StoreID)
	}
	id := uuid.Must(uuid.NewV7()).String()
	realm := s.opts.Realm
	if realm == "" {
		realm = "sqlite:" + id
	}
	secret := pawl.NewTokenSecret()
	args := append(policyArgs(s.opts.policy), named("store_id", id), named("realm", realm),
		named("token_secret", secret[:]), named("clock", s.opts.hooks.time()))
	if _, err := a.exec("insert_meta", args...); err != nil {
		return err
	}
	return putLeeways(a, s.opts.policy)
}

func (s *Store) join(a asker, m meta) error {
	if err := s.opts.pinned(m.identity); err != nil {
		return err
	}
	policy, err := s.opts.nextPolicy(m.policy)
	if err != nil {
		return err
	}
	if samePolicy(policy, m.policy) {
		return nil
	}
	if _, err := a.exec("update_policy", policyArgs(policy)...); err != nil {
		return err
	}
	return putLeeways(a, policy)
}

// pinned tells whether the store is the one that the options name [A1].
func (o resolved) pinned(id identity) error {
	switch {
	case o.StoreID != "" && o.StoreID != id.id:
		return pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonDisagreement, "the store is %s, and %s is pinned", id.id, o.StoreID)
	case o.Realm != "" && o.Realm != id.realm:
		return pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonDisagreement, "the store's realm is %s, not %s", id.realm, o.Realm)
	}
	return nil
}

// nextPolicy is the policy that the store has once this instance is in.
func (o resolved) nextPolicy(stored pawl.Policy) (pawl.Policy, error) {
	if o.AdoptPolicy {
		return stored.Adopt(o.policy)
	}
	return stored.Agree(o.policy)
}

func samePolicy(a, b pawl.Policy) bool {
	_, err := a.Agree(b)
	return err == nil && len(a.Leeways) == len(b.Leeways)
}

func policyArgs(p pawl.Policy) []any {
	return []any{
		named("admission_bound", p.AdmissionBound.Microseconds()), named("purge_margin", p.PurgeMargin.Microseconds()),
		named("max_grant_lifetime", p.MaxGrantLifetime.Microseconds()), named("issue_skew", p.IssueSkew.Microseconds()),
		named("key_lifetime", p.KeyLifetime.Microseconds()),
	}
}

func putLeeways(a asker, p pawl.Policy) error {
	for version, leeway := range p.Leeways {
		_, err := a.exec("insert_leeway", named("version", version), named("leeway", leeway.Microseconds()))
		if err != nil {
			return err
		}
	}
	return nil
}

// startReads opens the pool that cannot write.
func (s *Store) startReads(ctx context.Context) (err error) {
	e := s.opts.engine
	s.reads, err = sql.Open(e.driver, e.dsn(s.path, pragmas(s.opts.timings.StoreCallTimeout, true)))
	if err != nil {
		return err
	}
	s.reads.SetMaxOpenConns(readers)
	s.reads.SetMaxIdleConns(readers)
	return s.prepareReads(ctx)
}
