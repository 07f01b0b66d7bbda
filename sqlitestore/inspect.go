package sqlitestore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-go/pawl"
)

// Inspect reads the facts of a store that [Open] may refuse, and changes nothing
// in it. What Open would refuse is Unsafe among them, all of it and not only what
// comes first. Where the file system is one that several hosts may share, the
// file is not opened: only that is told.
//
// Errors, where nothing can be read: ErrMisconfigured for a file that is missing
// or holds no store of this version, ErrUnavailable where it could not be asked.
func Inspect(ctx context.Context, path string, o *Options) (_ pawl.Facts, err error) {
	opts, err := o.resolve()
	if err != nil {
		return pawl.Facts{}, err
	}
	if path, err = realPath(path); err != nil {
		return pawl.Facts{}, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return pawl.Facts{}, misconfigured("there is no file %s", path)
	}
	var st state
	if st.place, err = placeOf(filepath.Dir(path)); err != nil {
		return pawl.Facts{}, err
	}
	if st.place.remote {
		return pawl.Facts{Engine: "sqlite", Scope: pawl.ScopeHost, Checks: st.place.facts()}, nil
	}
	session, err := openSession(ctx, opts.engine, path, opts.timings.StoreCallTimeout)
	if err != nil {
		return pawl.Facts{}, opts.engine.openError(err)
	}
	defer func() { err = errors.Join(err, session.close()) }()
	st.set = session.set
	found := false
	if st.meta, found, err = readMeta(session.asker); err != nil {
		return pawl.Facts{}, opts.engine.openError(err)
	}
	if !found {
		return pawl.Facts{}, misconfigured("%s holds no store", path)
	}
	c, err := opts.readClocks(session.asker)
	if err != nil {
		return pawl.Facts{}, opts.engine.openError(err)
	}
	st.now = c.engine
	if c.floor.After(st.now) {
		st.now = c.floor
	}
	_, differs := opts.nextPolicy(st.policy)
	return st.facts(c.fact(opts.timings.ClockStepBound), opts.pinned(st.identity), differs), nil
}
