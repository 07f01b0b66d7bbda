package sqlitestore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/pawl-go/pawl"
)

// Inspect reads the facts of a store that [Open] may refuse, and changes nothing
// that is told from it; the engine may move what a crash left in the log into the
// file. What Open would refuse is Unsafe among them, all of it and not only what
// comes first. Where the file system is one that several hosts may share, the
// file is not opened: only that is told.
//
// Errors, where there is nothing to tell: ErrMisconfigured for a file that is
// missing, that cannot be used or that holds no store of this version,
// ErrUnavailable where it could not be asked now.
func Inspect(ctx context.Context, path string, o *Options) (_ pawl.Facts, err error) {
	opts, err := o.resolve()
	if err != nil {
		return pawl.Facts{}, err
	}
	if path, err = realPath(path); err != nil {
		return pawl.Facts{}, err
	}
	info, err := existing(path)
	if err != nil {
		return pawl.Facts{}, err
	}
	var st state
	if st.place, err = placeOf(filepath.Dir(path)); err != nil {
		return pawl.Facts{}, err
	}
	if st.place.remote || linked(info) {
		return pawl.Facts{Engine: "sqlite", Scope: pawl.ScopeHost, Checks: append(st.place.facts(), fileFacts(info)...)}, nil
	}
	session, err := openSession(ctx, opts.engine, path, opts.timings.StoreCallTimeout)
	if err != nil {
		return pawl.Facts{}, opts.engine.openError(err)
	}
	defer func() { err = errors.Join(err, session.close()) }()
	st.set = session.set
	var have schema
	if st.meta, have, err = opts.storeIn(session.asker, path); err != nil {
		return pawl.Facts{}, err
	}
	facts, err := opts.inspected(ctx, session, st, have, path, info)
	return facts, opts.engine.openError(err)
}

// existing tells of a file that must be there.
func existing(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, misconfigured("there is no file %s; pawl migrate makes a store", path)
	case err != nil:
		return nil, misconfigured("%s cannot be read: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, misconfigured("%s cannot be used: it is no file", path)
	}
	return info, nil
}

// inspected reads what else a store in the file tells.
func (o resolved) inspected(ctx context.Context, on *session, st state, have schema, path string, info os.FileInfo) (pawl.Facts, error) {
	c, err := o.readClocks(on.asker)
	if err != nil {
		return pawl.Facts{}, err
	}
	st.now = c.engine
	if c.floor.After(st.now) {
		st.now = c.floor
	}
	want, err := o.engine.freshSchema(ctx)
	if err != nil {
		return pawl.Facts{}, err
	}
	whole, err := integrity(on.asker, path)
	if err != nil {
		return pawl.Facts{}, err
	}
	more := append(append(have.facts(want), fileFacts(info)...), o.writable(on), c.fact(o.timings.ClockStepBound), whole)
	_, differs := o.nextPolicy(st.policy)
	return st.facts(more, o.pinned(st.identity), differs), nil
}

// writable asks for the write lock and gives it back.
func (o resolved) writable(on *session) pawl.Fact {
	err := on.do(begin)
	if err == nil {
		err = on.do(rollback)
	}
	switch {
	case err == nil:
		return pawl.MustHold("write lock", "free", true, "")
	case o.engine.busy(err):
		return pawl.Fact{Name: "write lock", Value: "held by another process now", OK: true}
	}
	return pawl.MustHold("write lock", "this user may not write the file", false, "give the file, its folder and its companions to the user that runs Pawl")
}

// fileFacts are of the file's own names and rights.
func fileFacts(info os.FileInfo) []pawl.Fact {
	names := pawl.MustHold("names of the file", "one", !linked(info), "remove its other names: the log would stand beside one of them only")
	if linked(info) {
		names.Value = "several (hard links)"
	}
	mode := pawl.Fact{Name: "file mode", Value: info.Mode().Perm().String(), OK: info.Mode().Perm()&0o077 == 0 || runtime.GOOS == "windows"}
	if !mode.OK {
		mode.Fix = "chmod 600: others of this host may read or change it"
	}
	return []pawl.Fact{names, mode}
}
