//go:build unix && !failpoints

package soak

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// onBoth runs a test on each store, both at once: they mostly wait for leases.
func onBoth(t *testing.T, f func(t *testing.T, p place)) {
	long(t)
	t.Parallel()
	for name, found := range map[string]func(*testing.T) place{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, found(t))
		})
	}
}

// customers are orders under way, each waiting for its answer.
type customers struct {
	w       *world
	waiting sync.WaitGroup

	mu      sync.Mutex
	answers map[pawl.OperationID]reply // those that were heard
}

// send sends an order and does not wait. Lost answers are no concern of these tests: the record is.
func (c *customers) send(ctx context.Context, url string, g grant, id pawl.OperationID) {
	c.waiting.Go(func() {
		got, err := c.w.ask(ctx, url, g.order(id))
		if err != nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.answers == nil {
			c.answers = map[pawl.OperationID]reply{}
		}
		c.answers[id] = got
	})
}

// atHold is a grant with the operation that is held at a point.
type atHold struct {
	hold
	grant
}

// held makes a grant and an operation for each point.
func (w *world) held(t *testing.T, points ...point) (all []atHold, holds []hold) {
	t.Helper()
	for i, at := range points {
		h := hold{at, pawl.NewOperationID()}
		all, holds = append(all, atHold{h, w.mustIssue(t, fmt.Sprint("acc_", i))}), append(holds, h)
	}
	return all, holds
}

// awaitHeld waits until the process is held at every point.
func awaitHeld(t *testing.T, p *process, holds []hold) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, h := range holds {
		what := "to come to " + h.String()
		if _, err := p.await(ctx, what, func(s said) bool { return s.Type == saidHeld && s.Text == h.String() }); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) inject(t *testing.T, faults ...billing.Fault) {
	t.Helper()
	if err := w.provider.Inject(faults...); err != nil {
		t.Fatal(err)
	}
}

// awaitAt waits until n calls have come to a gate of the provider.
func (w *world) awaitAt(t *testing.T, gate string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.provider.Await(ctx, gate, n); err != nil {
		t.Fatal(err)
	}
}

// mustUntil waits for a condition that must come.
func mustUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := until(ctx, what, holds); err != nil {
		t.Fatal(err)
	}
}

// expectSpent checks that a grant is refused under another id, and that its own operation is reported [A8].
func (w *world) expectSpent(t *testing.T, p *process, g grant, id pawl.OperationID) {
	t.Helper()
	got, err := w.ask(t.Context(), p.url, g.order(pawl.NewOperationID()))
	if err != nil || got.Reason != pawl.ReasonUsed {
		t.Errorf("%s, another operation: %+v, %v, want refused as used", p.Name, got, err)
	}
	got, err = w.ask(t.Context(), p.url, g.order(id))
	if err != nil || got.Operation != id.String() {
		t.Errorf("%s, the same operation: %+v, %v, want its report", p.Name, got, err)
	}
}

// TestCase_CA6_KilledInstance: an instance is killed after it admitted; the grants are refused by an instance that lived
// all the time and by a new one, whether the operation was finished or not [A1, A2, A3, A8].
func TestCase_CA6_KilledInstance(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		w := newWorld(t, p, terms{Effect: 10 * time.Second}, billing.Settings{})
		all, holds := w.held(t, admitAfter, recordAfter)
		a := w.assign("A")
		a.Idle, a.Hold = true, holds
		b := w.assign("B")
		b.Idle = true
		first, other := w.mustStart(t, a), w.mustStart(t, b)
		sent := customers{w: w}
		for _, x := range all {
			sent.send(t.Context(), first.url, x.grant, x.Operation)
		}
		awaitHeld(t, first, holds)
		first.kill()
		sent.waiting.Wait()
		if !signalled(first.err) || len(sent.answers) != 0 {
			t.Fatalf("the instance ended with %v and answered %v", first.err, sent.answers)
		}
		b.Name = "a new A"
		for _, p := range []*process{other, w.mustStart(t, b)} {
			for _, x := range all {
				w.expectSpent(t, p, x.grant, x.Operation)
			}
		}
		for i, want := range []pawl.Status{pawl.StatusAdmitted, pawl.StatusSucceeded} {
			if op := w.get(t.Context(), all[i].Operation); op.Status != want || op.Takeovers != 0 {
				t.Errorf("killed at %s: %v, taken over %d times, want %v", all[i].At, op.Status, op.Takeovers, want)
			}
		}
	})
}

// TestCase_CD6_KilledAtEveryPoint: one instance is killed while it stands at every point of its work, the provider's side
// of the call included; another settles all of it, with one effect each [E5, O2, M3].
func TestCase_CD6_KilledAtEveryPoint(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		w := newWorld(t, p, terms{Stated: true, Effect: 3 * time.Second}, billing.Settings{})
		all, holds := w.held(t, admitAfter, checkBefore, checkAfter, submitBefore, submitAfter, recordBefore, recordAfter)
		a := w.assign("A")
		a.Idle, a.Hold = true, holds
		victim := w.mustStart(t, a)
		sent := customers{w: w}
		for _, x := range all {
			sent.send(t.Context(), victim.url, x.grant, x.Operation)
		}
		awaitHeld(t, victim, holds)
		w.inject(t, billing.Fault{Account: "acc_sent", Times: 1, HoldBefore: "sent"}, billing.Fault{Account: "acc_made", Times: 1, HoldAfter: "made"})
		for _, at := range []string{"sent", "made"} {
			x := atHold{hold{point(at), pawl.NewOperationID()}, w.mustIssue(t, "acc_"+at)}
			sent.send(t.Context(), victim.url, x.grant, x.Operation)
			w.awaitAt(t, at, 1)
			all = append(all, x)
		}
		victim.kill()
		sent.waiting.Wait()
		if !signalled(victim.err) || len(sent.answers) != 0 {
			t.Fatalf("the instance ended with %v and answered %v", victim.err, sent.answers)
		}
		b := w.mustStart(t, w.assign("B"))
		// The call of the dead stays in flight until recovery has sent another under the same key.
		mustUntil(t, "another create call", func() bool { return w.requests(all[7].Operation) > 1 })
		w.provider.Release("sent")
		for _, x := range all {
			op := w.expectOne(t, x.Operation)
			if x.At != "sent" && w.requests(x.Operation) != 1 {
				t.Errorf("killed at %s: %d create calls", x.At, w.requests(x.Operation))
			}
			if recorded := x.At == recordAfter; recorded != (op.Takeovers == 0) {
				t.Errorf("killed at %s: taken over %d times", x.At, op.Takeovers)
			}
			w.expectSpent(t, b, x.grant, x.Operation)
		}
	})
}

// TestCase_CD1_StoppedPastTheLease: an owner's process is stopped before its submission check, after it, and before its
// create call, until recovery has finished. When it wakes it may not submit; the provider sees one create [O5, O2].
func TestCase_CD1_StoppedPastTheLease(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		w := newWorld(t, p, terms{Stated: true}, billing.Settings{})
		all, holds := w.held(t, checkBefore, checkAfter, submitBefore)
		a := w.assign("A")
		a.Idle, a.Hold = true, holds
		owner := w.mustStart(t, a)
		sent := customers{w: w}
		for _, x := range all {
			sent.send(t.Context(), owner.url, x.grant, x.Operation)
		}
		awaitHeld(t, owner, holds)
		if err := owner.pause(); err != nil {
			t.Fatal(err)
		}
		w.mustStart(t, w.assign("B"))
		for _, x := range all {
			if op := w.expectOne(t, x.Operation); op.Takeovers == 0 {
				t.Errorf("stopped at %s: nobody took over", x.At)
			}
		}
		if err := owner.resume(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for i, x := range all {
			if err := owner.goOn(x.hold); err != nil {
				t.Fatal(err)
			}
			ended, err := owner.await(ctx, "to end the call", func(s said) bool {
				return s.Type == string(pawl.EventSubmit) && s.Operation == x.Operation.String()
			})
			want := []pawl.Reason{pawl.ReasonSuperseded, pawl.ReasonLeaseOver, ""}[i]
			if err != nil || ended.Reason != want || ended.Verdict != pawl.VerdictUnknown.String() {
				t.Errorf("stopped at %s: the owner's call ended as %+v, %v, want reason %q", x.At, ended, err, want)
			}
		}
		sent.waiting.Wait()
		for _, x := range all {
			w.expectOne(t, x.Operation)
			// Between the check and the call no lease can help; there the key is the guard, and the call's own time is over.
			if n := w.requests(x.Operation); n != 1 && x.At != submitBefore {
				t.Errorf("stopped at %s: %d create calls", x.At, n)
			}
		}
	})
}

// TestCase_CD12_Terminated: SIGTERM with 50 calls in flight. Those that end within the grace are recorded; one that sleeps
// past it and one that heeds nothing are left to recovery, and the process ends [E7].
func TestCase_CD12_Terminated(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		const quick = 48
		w := newWorld(t, p, terms{Stated: true, Effect: 8 * time.Second, Grace: 4 * time.Second}, billing.Settings{})
		w.inject(t, billing.Fault{Account: "acc_slow", Times: 1, HoldBefore: "slow"}, billing.Fault{HoldBefore: "quick", Times: quick})
		a := w.assign("A")
		a.Idle = true
		worker := w.mustStart(t, a)
		sent := customers{w: w}
		var ids []pawl.OperationID
		send := func(account string) {
			id := pawl.NewOperationID()
			sent.send(t.Context(), worker.url, w.mustIssue(t, account), id)
			ids = append(ids, id)
		}
		send(deafAccount)
		send("acc_slow")
		w.awaitAt(t, "slow", 1)
		for i := range quick {
			send(fmt.Sprint("acc_", i))
		}
		w.awaitAt(t, "quick", quick)
		mustUntil(t, "the deaf call", func() bool { return w.get(t.Context(), ids[0]).Entries > 0 }) // its submission check is logged
		released := make(chan struct{})
		go func() {
			defer close(released)
			w.refusedWhileClosing(t, worker)
			w.provider.Release("quick")
		}()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		closed, err := worker.quit(ctx)
		<-released
		sent.waiting.Wait()
		if err != nil || closed.Text == "" {
			t.Fatalf("the process ended with %v and left %q, want the deaf call", err, closed.Text)
		}
		for i, id := range ids[2:] {
			op := w.get(t.Context(), id)
			if op.Status != pawl.StatusSucceeded || op.Takeovers != 0 || sent.answers[id].Status != "succeeded" {
				t.Errorf("quick call %d: %v after %d takeovers, its customer heard %+v", i, op.Status, op.Takeovers, sent.answers[id])
			}
		}
		for i, id := range ids[:2] {
			if op := w.get(t.Context(), id); !op.Status.Open() || op.Fence != pawl.FirstFence {
				t.Errorf("call %d that outlasts the grace: %v at fence %d", i, op.Status, op.Fence)
			}
		}
		w.mustStart(t, w.assign("B"))
		mustUntil(t, "another create call", func() bool { return w.requests(ids[1]) > 1 })
		w.provider.Release("slow")
		for _, id := range ids {
			w.expectOne(t, id)
		}
	})
}

// refusedWhileClosing asks a worker that was told to stop until it says that nothing ran, which must be true [A6].
func (w *world) refusedWhileClosing(t *testing.T, p *process) {
	for {
		id := pawl.NewOperationID()
		g, err := w.issue(t.Context(), pawl.FormToken, "acc_late", "250.00")
		if err != nil {
			t.Error(err)
			return
		}
		got, err := w.ask(t.Context(), p.url, g.order(id))
		switch {
		case err == nil && got.Reason == pawl.ReasonClosed:
			if _, err := w.store.Get(t.Context(), id, pawl.AsOperator()); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("an order that was turned away by a closing worker: %v, want not found", err)
			}
			return
		case err != nil:
			t.Errorf("a closing worker gave no answer: %v", err)
			return
		}
	}
}

// TestCase_CD13_ClientHangsUp: the customer hangs up while its call stands at each point; the call goes on under its own
// time and is recorded by its own owner [E4].
func TestCase_CD13_ClientHangsUp(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		w := newWorld(t, p, terms{Effect: 10 * time.Second}, billing.Settings{})
		all, holds := w.held(t, checkBefore, checkAfter, submitBefore, submitAfter, recordBefore, recordAfter)
		a := w.assign("A")
		a.Idle, a.Hold = true, holds
		worker := w.mustStart(t, a)
		w.inject(t, billing.Fault{Account: "acc_sent", HoldBefore: "sent"}, billing.Fault{Account: "acc_made", HoldAfter: "made"})
		sent := customers{w: w}
		calling, hangUp := context.WithCancel(t.Context())
		defer hangUp()
		for _, at := range []string{"sent", "made"} {
			x := atHold{hold{point(at), pawl.NewOperationID()}, w.mustIssue(t, "acc_"+at)}
			all = append(all, x)
		}
		for _, x := range all {
			sent.send(calling, worker.url, x.grant, x.Operation)
		}
		awaitHeld(t, worker, holds)
		w.awaitAt(t, "sent", 1)
		w.awaitAt(t, "made", 1)
		hangUp()
		sent.waiting.Wait()
		if len(sent.answers) != 0 {
			t.Fatalf("answered before the customers hung up: %v", sent.answers)
		}
		for _, h := range holds {
			if err := worker.goOn(h); err != nil {
				t.Fatal(err)
			}
		}
		w.provider.Release("sent")
		w.provider.Release("made")
		for _, x := range all {
			if op := w.expectOne(t, x.Operation); op.Takeovers != 0 || w.requests(x.Operation) != 1 {
				t.Errorf("hung up at %s: %d takeovers, %d create calls", x.At, op.Takeovers, w.requests(x.Operation))
			}
		}
	})
}
