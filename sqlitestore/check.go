package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

const (
	quickCheckUpTo = 64 << 20 // bytes of a file that Check reads through
	leastFree      = 64 << 20 // bytes of free space that are enough for a while
)

// Check implements pawl.Store. It reads the whole file where that is small.
func (s *Store) Check(ctx context.Context) (pawl.Facts, error) {
	facts, err := s.facts(ctx)
	if err != nil {
		return pawl.Facts{}, err
	}
	integrity, err := read(ctx, s, func(a asker) (pawl.Fact, error) { return integrity(a, s.path) })
	if err != nil {
		return pawl.Facts{}, err
	}
	facts.Checks = append(facts.Checks, integrity)
	return facts, nil
}

// facts are what costs nothing to read. The settings are those of the connection
// that writes, read back from it [A11].
func (s *Store) facts(ctx context.Context) (pawl.Facts, error) {
	got, err := write(ctx, s, pawl.ErrUnavailable, func(t *txn) (st state, err error) {
		policy, err := t.policy.Agree(t.policy) // a copy that shares no memory
		return state{opened: true, set: s.writer.session.set, meta: meta{identity: s.id, policy: policy, epoch: t.epoch}, now: t.now}, err
	})
	if err != nil {
		return pawl.Facts{}, err
	}
	if got.place, err = placeOf(s.folder()); err != nil {
		got.place = s.place
	}
	c, err := read(ctx, s, s.opts.readClocks)
	if err != nil {
		return pawl.Facts{}, err
	}
	have, err := read(ctx, s, readSchema)
	if err != nil {
		return pawl.Facts{}, err
	}
	_, differs := got.policy.Agree(s.opts.policy) // another instance may have adopted another since
	return got.facts(append(have.facts(s.fresh), c.fact(s.opts.timings.ClockStepBound)), nil, differs), nil
}

// state is what facts are told from.
type state struct {
	meta
	opened bool // else it may still be set as it must be
	set    settings
	place  place
	now    time.Time
}

func (st state) facts(more []pawl.Fact, pinned, policy error) pawl.Facts {
	facts := pawl.Facts{
		Engine: "sqlite " + st.set.version, StoreID: st.id, Realm: st.realm, Scope: pawl.ScopeHost,
		Clock: "the host's clock, read under the write lock and never going back,", Now: st.now,
		Survives: []string{"a crash of the process", "a crash of the host"},
		Not:      []string{"the loss of the disk", "an older backup put in its place"},
		Epoch:    st.epoch, Policy: st.policy,
	}
	if st.place.volatile {
		facts.Survives, facts.Not = facts.Survives[:1], append([]string{"a crash of the host"}, facts.Not...)
	}
	purge := pawl.Fact{Name: "purge", Value: "inherently safe: one write lock and a clock that never goes back", OK: true}
	facts.Checks = slices.Concat(st.set.facts(st.opened), st.place.facts(), []pawl.Fact{purge}, more, pawl.AgreementFacts(pinned, policy))
	return facts
}

func (s settings) facts(opened bool) []pawl.Fact {
	journal := pawl.MustHold("journal mode", s.journal, s.journal == "wal", "PRAGMA journal_mode = WAL")
	if !journal.OK && !opened {
		journal.Unsafe, journal.Fix = false, "opening the store sets it"
	}
	return []pawl.Fact{
		pawl.MustHold("engine version", s.version, safeVersion(s.version), "build with SQLite 3.51.3 or later"),
		journal,
		pawl.MustHold("synchronous", strconv.Itoa(s.synchronous)+" (FULL is 2)", s.synchronous >= 2, "PRAGMA synchronous = FULL"),
		pawl.MustHold("foreign keys", strconv.Itoa(s.foreignKeys), s.foreignKeys == 1, "PRAGMA foreign_keys = ON"),
	}
}

func (p place) facts() []pawl.Fact {
	kind := pawl.Fact{Name: "file system", Value: p.name, OK: p.known && !p.remote && !p.volatile, Unsafe: p.remote}
	switch {
	case p.remote:
		kind.Fix = "use a local disk, or PostgreSQL: several hosts may share this one"
	case !p.known && !p.remote:
		kind.Fix = "make sure that no other host has it mounted"
	case p.volatile:
		kind.Fix = "it is in memory: use a disk for anything but tests"
	}
	free := pawl.Fact{Name: "free space", Value: strconv.FormatUint(p.free>>20, 10) + " MiB", OK: p.free >= leastFree}
	if p.free == 0 {
		free.Value = "unknown or none"
	}
	if !free.OK {
		free.Fix = "make room: without it nothing is admitted"
	}
	return []pawl.Fact{kind, free}
}

// clocks are the engine's and the floor under it [P1].
type clocks struct{ engine, floor time.Time }

func (o resolved) readClocks(a asker) (c clocks, err error) {
	var engine, floor int64
	_, err = a.one("find_clock", []any{&engine, &floor}, named("clock", o.hooks.time()))
	return clocks{timeOf(engine), timeOf(floor)}, err
}

func (c clocks) fact(step time.Duration) pawl.Fact {
	behind := max(0, c.floor.Sub(c.engine))
	f := pawl.Fact{Name: "clock", Value: fmt.Sprintf("%v behind the time floor", behind), OK: behind <= step}
	if !f.OK {
		f.Fix = "set the host's clock: deadlines are decided by the floor until it is reached"
	}
	return f
}

// integrity lets the engine look through a file that is not too large for it.
func integrity(a asker, path string) (pawl.Fact, error) {
	f := pawl.Fact{Name: "integrity", Fix: "stop all processes and restore a backup, then raise the epoch"}
	info, err := os.Stat(path)
	if err != nil {
		f.Value, f.Unsafe = "the file is gone", true
		return f, nil
	}
	if info.Size() > quickCheckUpTo {
		return pawl.Fact{
			Name: "integrity", Value: "not looked at: the file is large", OK: true,
			Fix: "run PRAGMA quick_check when there is time",
		}, nil
	}
	var wrong []string
	err = a.each("quick_check", func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		wrong = append(wrong, strings.Fields(text)...)
		return err
	})
	if wrong == nil {
		return pawl.Fact{Name: f.Name, Value: "ok", OK: true}, err
	}
	f.Value, f.Unsafe = strings.Join(wrong, " "), true
	return f, err
}
