package pawl_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
)

// refusedWith notes an error that is not of a class and reason.
func (w *world) refusedWith(what string, err error, c pawl.Class, r pawl.Reason) {
	w.t.Helper()
	if !errors.Is(err, c) || pawl.ReasonOf(err) != r {
		w.wrongf("%s: %v, want %v (%s)", what, err, c, r)
	}
}

// Two executors paused just before the effect: the effect runs once, and its
// claim came first [A2, E4].
func pausedBeforeTheEffect(w *world) {
	a, b := w.instance(), w.instance()
	r := w.request()
	resume := make(chan struct{})
	w.bank.before = func(_ context.Context, s pawl.Submission) error {
		if op := w.op(s.OperationID); op.Status != pawl.StatusAdmitted || op.Grant != r.Stored {
			w.wrongf("the effect runs under a record that says %v of grant %v", op.Status, op.Grant)
		}
		<-resume
		return nil
	}
	second := r
	second.OperationID = pawl.NewOperationID()
	var answers sync.WaitGroup
	admitted, refused := 0, 0
	var mu sync.Mutex
	for i, g := range []instance{a, b} {
		answers.Go(func() {
			_, err := g.Execute(w.t.Context(), []pawl.Request{r, second}[i])
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				admitted++
			case pawl.ReasonOf(err) == pawl.ReasonUsed:
				refused++
			default:
				w.wrongf("%v", err)
			}
		})
	}
	synctest.Wait()
	close(resume)
	answers.Wait()
	if sent := w.bank.effects(r.OperationID) + w.bank.effects(second.OperationID); sent != 1 || admitted != 1 || refused != 1 {
		w.wrongf("%d effects, %d admitted, %d refused; want one each", sent, admitted, refused)
	}
}

func TestCase_CA3_PausedBeforeTheEffect(t *testing.T) {
	play(t, pausedBeforeTheEffect)
}

// The reply of the admission is lost after its commit: nothing runs; the same id
// gets the status, another is refused; after expiry the retry is refused while the
// status still answers [A6, A8, S1].
func lostReply(w *world) {
	g := w.instance()
	r := w.request()
	g.handle.after = on("Admit", func(context.Context) error { return away(pawl.ErrNotConfirmed) })
	_, err := g.Execute(w.t.Context(), r)
	w.refusedWith("the lost reply", err, pawl.ErrNotConfirmed, pawl.ReasonUnreachable)
	w.expectEffects(r.OperationID, 0)
	g.handle.after = nil
	op, err := g.Execute(w.t.Context(), r)
	if err != nil || op.Status != pawl.StatusAdmitted {
		w.wrongf("the retry: %v, %v; want the operation, admitted", op.Status, err)
	}
	w.expectEffects(r.OperationID, 0) // a retry never executes
	stranger := r
	stranger.OperationID = pawl.NewOperationID()
	_, err = g.Execute(w.t.Context(), stranger)
	w.refusedWith("another operation id", err, pawl.ErrRefused, pawl.ReasonUsed)
	time.Sleep(15*time.Minute + 5*time.Second)
	_, err = g.Execute(w.t.Context(), r)
	w.refusedWith("the retry after expiry", err, pawl.ErrRefused, pawl.ReasonExpired)
	if op, err := g.Status(w.t.Context(), r.OperationID, pawl.AsCaller(ana()), 0); err != nil || op.ID != r.OperationID {
		w.wrongf("the status after expiry: %v, %v", op.ID, err)
	}
	_, err = g.Status(w.t.Context(), r.OperationID, pawl.AsCaller(pawl.Caller{Principal: "bob", Tenant: "acme"}), 0)
	w.refusedWith("a stranger's look", err, pawl.ErrNotFound, pawl.ReasonAbsent)
	w.expectEffects(r.OperationID, 0)
}

func TestCase_CA8_LostReply(t *testing.T) { play(t, lostReply) }

// The caller cancels at every point of an admission: nothing runs unless it was
// confirmed, and afterwards everything works [A3, A6].
func TestCase_CA9_CancelledEverywhere(t *testing.T) {
	for _, point := range []string{"at once", "Precheck", "Admit before", "Admit after", "MaySubmit before", "Submit", "Record before"} {
		t.Run(point, func(t *testing.T) {
			play(t, func(w *world) { cancelledAt(w, point) })
		})
	}
}

func cancelledAt(w *world, point string) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	var over atomic.Bool
	reached := func(here string) {
		if here == point && !over.Load() {
			cancel()
		}
	}
	g := w.instance(func(c *pawl.Config) {
		c.Effects = []pawl.Effect{checked{w.bank, func(context.Context, pawl.Proposal) error {
			reached("Precheck")
			return nil
		}}}
	})
	at := func(when string) func(context.Context, string) error {
		return func(_ context.Context, call string) error {
			reached(call + " " + when)
			return nil
		}
	}
	g.handle.before, g.handle.after = at("before"), at("after")
	w.bank.before = func(ctx context.Context, _ pawl.Submission) error {
		reached("Submit")
		time.Sleep(time.Second)
		return ctx.Err() // the caller's cancellation must not reach the call
	}
	reached("at once")
	r := w.request()
	op, err := g.Execute(ctx, r)
	time.Sleep(2 * time.Second)
	confirmed := !slices.Contains([]string{"at once", "Precheck", "Admit before"}, point)
	if confirmed {
		if err != nil || op.ID != r.OperationID {
			w.wrongf("confirmed, and the answer is %v, %v", op.ID, err)
		}
		w.expect(r.OperationID, pawl.StatusSucceeded)
		w.expectEffects(r.OperationID, 1)
	} else {
		if !errors.Is(err, pawl.ErrNotConfirmed) {
			w.wrongf("%v, want not confirmed", err)
		}
		w.expectEffects(r.OperationID, 0)
	}
	over.Store(true)
	op, err = g.Execute(w.t.Context(), r)
	if err != nil || op.Status != pawl.StatusSucceeded {
		w.wrongf("afterwards: %v, %v", op.Status, err)
	}
	w.expectEffects(r.OperationID, 1)
}

// checked is an effect with a check of its own.
type checked struct {
	pawl.Effect
	check func(context.Context, pawl.Proposal) error
}

// Precheck implements pawl.Prechecker.
func (c checked) Precheck(ctx context.Context, p pawl.Proposal) error { return c.check(ctx, p) }

// Two identical submits five milliseconds apart: one is admitted, the other sees
// the same operation as pending [A8].
func TestCase_CA19_DoubleSubmit(t *testing.T) {
	play(t, func(w *world) {
		a, b := w.instance(), w.instance()
		r := w.request()
		w.bank.before = func(context.Context, pawl.Submission) error { time.Sleep(time.Second); return nil }
		var first sync.WaitGroup
		first.Go(func() {
			if op, err := a.Execute(w.t.Context(), r); err != nil || op.Status != pawl.StatusSucceeded {
				w.wrongf("the first: %v, %v", op.Status, err)
			}
		})
		time.Sleep(5 * time.Millisecond)
		op, err := b.Execute(w.t.Context(), r)
		if err != nil || op.ID != r.OperationID || op.Status != pawl.StatusAdmitted {
			w.wrongf("the second: %v %v, %v; want the same operation, pending", op.ID, op.Status, err)
		}
		first.Wait()
		w.expectEffects(r.OperationID, 1)
	})
}

// Five concurrent calls share one grant with five operation ids: one admitted,
// four refused [A7].
func TestCase_CA20_FiveOperationIDs(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance()
		token, _ := w.sign()
		var calls sync.WaitGroup
		var mu sync.Mutex
		ran, refused := 0, 0
		for range 5 {
			calls.Go(func() {
				op, err := g.Execute(w.t.Context(), pawl.Request{
					Token: token, OperationID: pawl.NewOperationID(), Kind: credit, Details: []byte(`{"amount":"250.00"}`), Caller: ana(),
				})
				mu.Lock()
				defer mu.Unlock()
				if err == nil && op.Status == pawl.StatusSucceeded {
					ran++
				} else if pawl.ReasonOf(err) == pawl.ReasonUsed {
					refused++
				}
			})
		}
		calls.Wait()
		if ran != 1 || refused != 4 || w.operations() != 1 {
			w.wrongf("%d ran, %d refused, %d operations; want 1, 4, 1", ran, refused, w.operations())
		}
	})
}

// The client hangs up at every point of the effect: the call finishes under its
// own timeout and is recorded [E4].
func TestCase_CD13_ClientHangsUp(t *testing.T) {
	for _, point := range []string{"on the way in", "on the way back", "at the timeout"} {
		t.Run(point, func(t *testing.T) {
			play(t, func(w *world) { clientHangsUp(w, point) })
		})
	}
}

func clientHangsUp(w *world, point string) {
	g := w.instance()
	r := w.request()
	ctx, cancel := context.WithCancel(w.t.Context())
	want := pawl.StatusSucceeded
	hangUp := func() { cancel(); time.Sleep(9 * time.Second) }
	switch point {
	case "on the way in":
		w.bank.before = func(ctx context.Context, _ pawl.Submission) error { hangUp(); return ctx.Err() }
	case "on the way back":
		w.bank.after = func(ctx context.Context, _ pawl.Submission, id string) (pawl.Outcome, error) {
			hangUp()
			return pawl.Succeeded(id), ctx.Err()
		}
	default:
		want = pawl.StatusUnknown
		w.bank.before = func(ctx context.Context, _ pawl.Submission) error { cancel(); <-ctx.Done(); return ctx.Err() }
	}
	began := time.Now()
	op, err := g.Execute(ctx, r)
	if err != nil || op.ID != r.OperationID || op.Status != pawl.StatusAdmitted || time.Since(began) != 0 {
		w.wrongf("the caller gets %v %v, %v after %v; want the operation as admitted, at once", op.ID, op.Status, err, time.Since(began))
	}
	time.Sleep(10 * time.Second) // the effect timeout
	synctest.Wait()
	w.expect(r.OperationID, want)
}

// What is not definite is unknown [E1]; the record says so, and that is all the
// caller hears of it.
func TestCase_CD14_NotDefiniteIsUnknown(t *testing.T) {
	type reply func(context.Context, pawl.Submission, string) (pawl.Outcome, error)
	for name, answer := range map[string]reply{
		"panic":          func(context.Context, pawl.Submission, string) (pawl.Outcome, error) { panic("secret") },
		"panic with nil": func(context.Context, pawl.Submission, string) (pawl.Outcome, error) { panic(nil) },
		"error": func(context.Context, pawl.Submission, string) (pawl.Outcome, error) {
			return pawl.Outcome{}, errors.New("secret")
		},
		"success and an error": func(context.Context, pawl.Submission, string) (pawl.Outcome, error) {
			return pawl.Succeeded("x"), errors.New("secret")
		},
		"failure and an error": func(context.Context, pawl.Submission, string) (pawl.Outcome, error) {
			return pawl.Failed("x"), errors.New("secret")
		},
		"the zero outcome": func(context.Context, pawl.Submission, string) (pawl.Outcome, error) { return pawl.Outcome{}, nil },
		"unknown": func(context.Context, pawl.Submission, string) (pawl.Outcome, error) {
			return pawl.Unknown("pending"), nil
		},
		"a person shall decide": func(context.Context, pawl.Submission, string) (pawl.Outcome, error) {
			return pawl.NeedsReconciliation("eh"), nil
		},
		"goexit": func(context.Context, pawl.Submission, string) (pawl.Outcome, error) {
			runtime.Goexit()
			return pawl.Succeeded("x"), nil
		},
		"timeout": func(ctx context.Context, _ pawl.Submission, _ string) (pawl.Outcome, error) {
			<-ctx.Done()
			return pawl.Outcome{}, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				g := w.instance()
				r := w.request()
				w.bank.after = answer
				op, err := g.Execute(w.t.Context(), r)
				want := pawl.StatusUnknown
				if name == "goexit" {
					want = pawl.StatusAdmitted // nothing could be recorded; recovery's
				}
				if err != nil || op.Status != want || op.Result != nil {
					w.wrongf("%v %q, %v; want %v", op.Status, op.Result, err, want)
				}
				if rec := w.expect(r.OperationID, want); rec.Reason == "secret" || rec.Reason == "" && want == pawl.StatusUnknown {
					w.wrongf("the record's reason is %q", rec.Reason)
				}
				op, err = g.Execute(w.t.Context(), r)
				if err != nil || op.Status != want || w.bank.calls(r.OperationID) != 1 {
					w.wrongf("the retry: %v, %v, %d calls; want the same and one call", op.Status, err, w.bank.calls(r.OperationID))
				}
			})
		})
	}
}

// A definite refusal by the provider: failed, and the grant stays spent [E1].
func refusedByProvider(w *world) {
	g := w.instance()
	r := w.request()
	w.bank.after = func(context.Context, pawl.Submission, string) (pawl.Outcome, error) {
		return pawl.Failed("declined"), nil
	}
	op, err := g.Execute(w.t.Context(), r)
	if err != nil || op.Status != pawl.StatusFailed || op.Reason != "declined" {
		w.wrongf("%v %q, %v; want failed, declined", op.Status, op.Reason, err)
	}
	again := r
	again.OperationID = pawl.NewOperationID()
	_, err = g.Execute(w.t.Context(), again)
	w.refusedWith("the grant again", err, pawl.ErrRefused, pawl.ReasonUsed)
	if n := w.bank.calls(r.OperationID) + w.bank.calls(again.OperationID); n != 1 {
		w.wrongf("%d calls, want one", n)
	}
}

func TestCase_CD15_RefusedByProvider(t *testing.T) { play(t, refusedByProvider) }

// The record cannot be written, three times, while the process stays up: the
// caller hears "pending", recovery finds the effect, and there is no second one.
func recordingFails(w *world) {
	w.state()
	a, b := w.instance(), w.instance()
	r := w.request()
	a.handle.before = func(_ context.Context, call string) error {
		if call == "Record" || call == "Settle" {
			return away(pawl.ErrUnavailable)
		}
		return nil
	}
	op, err := a.Execute(w.t.Context(), r)
	if err != nil || op.Status != pawl.StatusAdmitted {
		w.wrongf("the caller gets %v, %v; want pending", op.Status, err)
	}
	time.Sleep(time.Minute)
	w.wants(b, pawl.RecoveryReport{TakenOver: 1, Settled: 1})
	w.expect(r.OperationID, pawl.StatusSucceeded)
	if n := w.bank.calls(r.OperationID); n != 1 {
		w.wrongf("%d create calls, want one", n)
	}
}

func TestCase_CD7_RecordingFails(t *testing.T) { play(t, recordingFails) }

// A success that is known in one process only is delivered as soon as the store
// is back, also where no look-up could find it [M3].
func successIsNotLost(w *world) {
	w.effect = func(e pawl.Effect) pawl.Effect { return blind{e} }
	a := w.instance()
	r := w.request()
	back := time.Now().Add(5 * time.Minute)
	a.handle.before = func(_ context.Context, call string) error {
		if (call == "Record" || call == "Settle") && time.Now().Before(back) {
			return away(pawl.ErrUnavailable)
		}
		return nil
	}
	if op, err := a.Execute(w.t.Context(), r); err != nil || op.Status != pawl.StatusAdmitted {
		w.wrongf("%v, %v; want pending", op.Status, err)
	}
	time.Sleep(time.Minute)
	w.wants(w.instance(), handedOver()) // nobody can be asked
	time.Sleep(5 * time.Minute)
	if op := w.expect(r.OperationID, pawl.StatusSucceeded); len(op.Result) == 0 {
		w.wrongf("no result")
	}
}

func TestSuccessIsNotLostWithItsStoreAway(t *testing.T) { play(t, successIsNotLost) }

// The answers to recording are lost after their commit: the caller still gets the
// outcome, which is in the record once [M4].
func TestLostAnswerOfARecord(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance()
		r := w.request()
		var once sync.Once
		g.handle.after = on("Record", func(context.Context) (err error) {
			once.Do(func() { err = away(pawl.ErrUnavailable) })
			return err
		})
		op, err := g.Execute(w.t.Context(), r)
		if err != nil || op.Status != pawl.StatusSucceeded || len(op.Result) == 0 {
			w.wrongf("%v %q, %v; want the success", op.Status, op.Result, err)
		}
		w.expectEffects(r.OperationID, 1)
	})
}

// A stop takes nothing new, lets calls in flight finish, records what they say
// and returns in time; what ignores its context is left to recovery [E7].
func stop(w *world) {
	g := w.instance(func(c *pawl.Config) { c.Grace = 10 * time.Second })
	var ids []pawl.OperationID
	w.bank.before = func(ctx context.Context, s pawl.Submission) error {
		switch slices.Index(ids, s.OperationID) {
		case 0:
			time.Sleep(time.Hour) // sleeps past everything
		case 1:
			<-ctx.Done() // needs the whole of its timeout
			return ctx.Err()
		default:
			time.Sleep(5 * time.Second)
		}
		return nil
	}
	for range 50 {
		r := w.request()
		ids = append(ids, r.OperationID)
		go func() { _, _ = g.Execute(w.t.Context(), r) }()
		synctest.Wait()
	}
	began := time.Now()
	err := g.Close()
	if took := time.Since(began); took > 20*time.Second || !errors.Is(err, pawl.ErrUnavailable) {
		w.wrongf("the stop took %v and says %v; want it in time, and one left", took, err)
	}
	for i, id := range ids {
		want := pawl.StatusSucceeded
		if i < 2 {
			want = []pawl.Status{pawl.StatusAdmitted, pawl.StatusUnknown}[i]
		}
		w.expect(id, want)
	}
	_, err = g.Execute(w.t.Context(), w.request())
	w.refusedWith("a closed gate", err, pawl.ErrNotConfirmed, pawl.ReasonClosed)
	if w.operations() != 50 {
		w.wrongf("a closed gate admitted something")
	}
	time.Sleep(time.Hour)
	w.expect(ids[0], pawl.StatusSucceeded) // its late word was taken as evidence
	w.gates = nil
}

func TestCase_CD12_Stop(t *testing.T) { play(t, stop) }

// The answer to an admission comes late, with too little of the lease left: the
// owner counts from before it asked, and sends nothing [O5].
func TestLateAnswerToAnAdmission(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance()
		r := w.request()
		g.handle.after = on("Admit", func(context.Context) error { time.Sleep(29 * time.Second); return nil })
		if op, err := g.Execute(w.t.Context(), r); err != nil || op.Status != pawl.StatusAdmitted {
			w.wrongf("%v, %v; want pending", op.Status, err)
		}
		if n := w.bank.calls(r.OperationID); n != 0 {
			w.wrongf("%d create calls with a second of the lease left", n)
		}
	})
}

// A stop that comes between the submission check and the call stops the call [E7].
func TestStopBeforeTheCall(t *testing.T) {
	play(t, func(w *world) {
		g := w.instance(func(c *pawl.Config) { c.Grace = time.Second })
		r := w.request()
		g.handle.after = on("MaySubmit", func(context.Context) error { time.Sleep(2 * time.Second); return nil })
		go func() { _, _ = g.Execute(w.t.Context(), r) }()
		synctest.Wait()
		if err := g.Close(); err != nil {
			w.wrongf("close: %v", err)
		}
		w.expect(r.OperationID, pawl.StatusAdmitted)
		if n := w.bank.calls(r.OperationID); n != 0 {
			w.wrongf("%d create calls after the stop", n)
		}
	})
}
