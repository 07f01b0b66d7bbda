package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/memdb"
	"github.com/pawl-go/pawl/memstore"
)

// TestGateAgrees plays schedules in the simulator and with real Gates on a real
// store, and wants the same records, the same books at the provider and the same
// number of calls of every sort: the program written here is the Gate's.
func TestGateAgrees(t *testing.T) {
	schedules := uint64(400)
	if testing.Short() {
		schedules = 60
	}
	for seed := range schedules {
		s := drawSchedule(seed)
		want := s.simulate(nil)
		if b := want.w.Broken(); b != nil {
			t.Fatalf("schedule %d: %v", seed, b)
		}
		var got *theatre
		synctest.Test(t, func(t *testing.T) { got = s.perform(t) })
		if diff := cmp.Diff(want.account(), got.account()); diff != "" {
			s.simulate(t.Logf)
			t.Fatalf("schedule %d (-simulator +gate):\n%s", seed, diff)
		}
	}
}

// The comparison has teeth: whatever the Gate's program could do wrong shows in
// some schedule.
func TestGateAgreesOnEveryStep(t *testing.T) {
	for _, m := range []Mistake{
		RetryExecutes, RunUnconfirmed, CreateWithoutContract, NotFoundIsFailed, SilenceIsSuccess,
		DropRefusedSuccess,
	} {
		differs := false
		for seed := uint64(0); seed < 400 && !differs; seed++ {
			right, wrong := drawSchedule(seed), drawSchedule(seed)
			wrong.plan.Mistake = m
			differs = right.simulate(nil).account() != wrong.simulate(nil).account()
		}
		if !differs {
			t.Errorf("no schedule shows %v", m)
		}
	}
}

// accountOf is the result of a schedule, as text: what both must agree on. Words are left out.
func accountOf(records []*pawl.Operation, books []account, calls map[sort]int) string {
	var b strings.Builder
	for i, o := range records {
		if o == nil {
			fmt.Fprintf(&b, "operation %d is not there\n", i)
			continue
		}
		fmt.Fprintf(&b, "operation %d %s, submit by +%v, resume at %d, settled at %d, %d takeovers, result %q\n", i, summary(o),
			o.SubmitBy.Sub(epoch()), stamp(o.ResumeAt), stamp(o.SettledAt), o.Takeovers, o.Result)
		fmt.Fprintf(&b, "  flags %v %v %v, %d observations, %d entries, %d weak\n", o.MismatchSeen, o.ContradictionSeen,
			o.DivergenceSeen, o.Observations, o.Entries, o.WeakEntries)
	}
	for i, a := range books {
		fmt.Fprintf(&b, "books %d: %d effects, made at %v, %d refusals\n", i, a.effects, a.madeAt, a.refused)
	}
	for h := range calmHost + 1 {
		for c := range callFind + 1 {
			if n := calls[sort{h, c}]; n > 0 {
				fmt.Fprintf(&b, "host %d: %v x %d\n", h, c, n)
			}
		}
	}
	return b.String()
}

func (p *player) account() string { return accountOf(p.w.Records(), p.w.books, p.calls) }

// theatre is the real thing: Gates on one store, with a wire to it and to the
// provider on which every call has its fate.
type theatre struct {
	schedule
	db    *memdb.DB
	began time.Time
	gates []*pawl.Gate

	mu    sync.Mutex
	books *World // only its provider is used
	calls map[sort]int
	dead  map[int]bool
	wires sync.WaitGroup
}

// perform plays the schedule inside a bubble, where time passes only when
// everybody waits.
func (s schedule) perform(t *testing.T) *theatre {
	th := &theatre{
		schedule: s, began: time.Now(), books: NewWorld(s.plan), calls: map[sort]int{}, dead: map[int]bool{},
	}
	th.db = memdb.New(realm, s.plan.policy, func() time.Time { return at(th.now()) })
	_ = th.db.Update(func(tx *memdb.Tx) error {
		for _, g := range s.plan.Grants {
			if g.Form == pawl.FormStored {
				tx.PutGrant(memdb.GrantRow{Grant: g, RequestID: g.Key.ID})
			}
		}
		return nil
	})
	for h := range s.plan.Hosts {
		th.gates = append(th.gates, th.gate(t, h))
	}
	var all sync.WaitGroup
	for _, e := range s.events {
		all.Go(func() {
			time.Sleep(e.at)
			th.happen(t, e)
		})
	}
	all.Wait()
	for _, g := range th.gates {
		if err := g.Close(); err != nil {
			t.Errorf("schedule %d: %v", s.seed, err)
		}
	}
	th.wires.Wait()
	return th
}

func (th *theatre) now() time.Duration { return time.Since(th.began) }

func (th *theatre) gate(t *testing.T, host int) *pawl.Gate {
	store, err := memstore.Over(th.db, &memstore.Options{Timings: &th.plan.Timings})
	if err != nil {
		t.Fatal(err)
	}
	bank := bank{th: th, host: host}
	var e pawl.Effect = bank
	if th.plan.Provider.Finds {
		e = findingBank{bank}
	}
	g, err := pawl.New(t.Context(), handle{Store: store, th: th, host: host}, th, &pawl.Config{
		Effects: []pawl.Effect{e}, Timings: &th.plan.Timings, Workers: 1, Jitter: func() float64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// happen does one thing of the schedule.
func (th *theatre) happen(t *testing.T, e planned) {
	ctx, g := t.Context(), th.gates[e.host]
	switch e.kind {
	case MoveAttempt:
		th.execute(ctx, e)
	case MoveStart:
		if !th.isDead(e.host) {
			_, _ = g.RecoverOnce(ctx) // that it may fail is part of the schedule
		}
	case MoveCrash:
		th.mu.Lock()
		th.dead[e.host] = true
		th.mu.Unlock()
	case MoveRevoke:
		_, _, err := g.Revoke(ctx, pawl.RevokeRequest{Token: "0", By: "auditor"})
		if err != nil {
			t.Errorf("revocation: %v", err)
		}
	case MovePurge:
		if _, err := g.Purge(ctx, pawl.PurgeBatch{}); err != nil {
			t.Errorf("purge: %v", err)
		}
	case MoveNotice:
		th.tell(ctx, t, e.who)
	}
}

func (th *theatre) execute(ctx context.Context, e planned) {
	if th.isDead(e.host) {
		return
	}
	g, target := th.gates[e.host], th.plan.Targets[e.who]
	if target.Grant == none {
		_, _ = g.ExecuteReserved(ctx, pawl.ReservedRequest{
			Key: target.reservation.Key, Kind: kind, Details: target.reservation.Intent.Details.JSON(), Caller: ana(),
		})
		return
	}
	r := pawl.Request{
		OperationID: target.ID, Kind: kind, Details: target.admission.Intent.Details.JSON(), Caller: ana(), Token: "0",
	}
	if target.admission.Grant.Form == pawl.FormStored {
		r.Token, r.Stored = "", target.admission.Grant.Key
	}
	_, _ = g.Execute(ctx, r) // what it answers is judged by what it did
}

// tell delivers what the provider has to say, if it has so much to say.
func (th *theatre) tell(ctx context.Context, t *testing.T, i int) {
	th.mu.Lock()
	if i >= len(th.books.notices) {
		th.mu.Unlock()
		return
	}
	n := th.books.notices[i]
	th.mu.Unlock()
	target := th.plan.Targets[n.target]
	_, err := th.gates[calmHost].Settle(context.WithValue(ctx, direct{}, true), pawl.Evidence{
		ID: target.ID, Lock: target.lock, Outcome: n.out, Trusted: true, Source: "provider",
	})
	if err != nil && !errors.Is(err, pawl.ErrNotFound) {
		t.Errorf("notice: %v", err)
	}
}

// direct marks calls that do not go over the wire.
type direct struct{}

func (th *theatre) isDead(host int) bool {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.dead[host]
}

// Verify implements pawl.Verifier.
func (th *theatre) Verify(_ context.Context, token string) (pawl.Grant, error) {
	g := th.plan.Grants[int(token[0]-'0')]
	g.Form = pawl.FormToken
	return g, nil
}

func (th *theatre) account() string {
	records := make([]*pawl.Operation, len(th.plan.Targets))
	_ = th.db.Update(func(tx *memdb.Tx) error {
		for i, t := range th.plan.Targets {
			if op, ok := tx.Operation(t.ID); ok {
				records[i] = &op
			}
		}
		return nil
	})
	return accountOf(records, th.books.books, th.calls)
}
