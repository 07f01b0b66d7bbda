package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
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
	integrity, err := read(ctx, s, s.integrity)
	if err != nil {
		return pawl.Facts{}, err
	}
	facts.Checks = append(facts.Checks, integrity)
	return facts, nil
}

// facts are what costs nothing to read. The settings are those of the connection
// that writes, read back from it [A11].
func (s *Store) facts(ctx context.Context) (pawl.Facts, error) {
	type state struct {
		set    settings
		policy pawl.Policy
		epoch  pawl.Epoch
		now    time.Time
	}
	got, err := write(ctx, s, pawl.ErrUnavailable, func(t *txn) (st state, err error) {
		policy, err := t.policy.Agree(t.policy) // a copy that shares no memory
		return state{set: s.writer.session.set, policy: policy, epoch: t.epoch, now: t.now}, err
	})
	if err != nil {
		return pawl.Facts{}, err
	}
	facts := pawl.Facts{
		Engine: "sqlite " + got.set.version, StoreID: s.id.id, Realm: s.id.realm, Scope: pawl.ScopeHost,
		Clock: "the host's clock, read under the write lock and never going back,", Now: got.now,
		Survives: []string{"a crash of the process", "a crash of the host"},
		Not:      []string{"the loss of the disk", "an older backup put in its place"},
		Epoch:    got.epoch, Policy: got.policy,
	}
	place, err := inspect(s.folder())
	if err != nil {
		place = s.place
	}
	if place.volatile {
		facts.Survives, facts.Not = facts.Survives[:1], append([]string{"a crash of the host"}, facts.Not...)
	}
	facts.Checks = append(got.set.facts(), place.facts()...)
	facts.Checks = append(facts.Checks, pawl.Fact{
		Name: "purge", Value: "inherently safe: one write lock and a clock that never goes back", OK: true,
	})
	clock, err := read(ctx, s, s.measureClock)
	if err != nil {
		return pawl.Facts{}, err
	}
	facts.Checks = append(facts.Checks, clock)
	return facts, nil
}

func (s settings) facts() []pawl.Fact {
	return []pawl.Fact{
		{
			Name: "engine version", Value: s.version, OK: safeVersion(s.version), Unsafe: !safeVersion(s.version),
			Fix: "build with SQLite 3.51.3 or later",
		},
		{Name: "journal mode", Value: s.journal, OK: s.journal == "wal", Unsafe: s.journal != "wal"},
		{
			Name: "synchronous", Value: strconv.Itoa(s.synchronous) + " (FULL is 2)",
			OK: s.synchronous >= 2, Unsafe: s.synchronous < 2,
		},
		{Name: "foreign keys", Value: strconv.Itoa(s.foreignKeys), OK: s.foreignKeys == 1, Unsafe: s.foreignKeys != 1},
	}
}

func (p place) facts() []pawl.Fact {
	kind := pawl.Fact{Name: "file system", Value: p.name, OK: p.known && !p.remote && !p.volatile, Unsafe: p.remote}
	switch {
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

// measureClock compares the engine's clock with the floor under it [P1].
func (s *Store) measureClock(a asker) (pawl.Fact, error) {
	var clock, floor int64
	if _, err := a.one("find_clock", []any{&clock, &floor}, named("clock", s.opts.hooks.time())); err != nil {
		return pawl.Fact{}, err
	}
	behind := max(0, timeOf(floor).Sub(timeOf(clock)))
	f := pawl.Fact{
		Name: "clock", Value: fmt.Sprintf("%v behind the time floor", behind),
		OK: behind <= s.opts.timings.ClockStepBound,
	}
	if !f.OK {
		f.Fix = "set the host's clock: deadlines are decided by the floor until it is reached"
	}
	return f, nil
}

// integrity lets the engine look through a file that is not too large for it.
func (s *Store) integrity(a asker) (pawl.Fact, error) {
	f := pawl.Fact{Name: "integrity", Fix: "stop all processes and restore a backup, then raise the epoch"}
	info, err := os.Stat(s.path)
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
	err = a.each("quick_check", func(rows *sql.Rows) error { return rows.Scan(&f.Value) })
	f.OK, f.Unsafe = f.Value == "ok", f.Value != "ok"
	if f.OK {
		f.Fix = ""
	}
	return f, err
}
