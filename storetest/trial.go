package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
)

const (
	lease  = 30 * time.Second // of every admission that does not say otherwise
	window = 10 * time.Minute
	life   = time.Hour // of every grant that does not say otherwise

	// marker stands in every details and result, and may stand in no error [S2].
	marker = "confidential-7f3a"

	// most is how many violations of one clause in one case are kept: a race
	// repeats itself.
	most = 20
)

// Trial is one case being tried on one deployment. Its methods that take calls
// of the store may be used by many goroutines; those that end the case on
// failure (must, open) only by the case's own.
type Trial struct {
	ctx     context.Context
	h       Harness
	c       Case
	d       *Deployment
	timings pawl.Timings
	sizes   Sizes

	a     pawl.Store // the first instance
	facts pawl.Facts // as it told them at the start

	issuer string
	kind   pawl.Kind
	caller pawl.Caller
	intent pawl.Intent

	moved bool // the case has moved the clock

	mu         sync.Mutex
	violations []Violation
	failed     map[string]int // by clause
	opened     []pawl.Store
}

// given is how a case ends that cannot go on.
type given struct{ err error }

func newTrial(ctx context.Context, h Harness, c Case, d *Deployment, timings pawl.Timings) *Trial {
	id := pawl.NewOperationID().String()
	short := id[24:]
	return &Trial{
		ctx: ctx, h: h, c: c, d: d, timings: timings, sizes: h.Sizes.orSmall(), failed: map[string]int{},
		issuer: "issuer-" + id,
		kind:   pawl.Kind("kind." + short),
		caller: pawl.Caller{
			Principal: "ana-" + short, Tenant: "tenant-" + short, Scopes: []string{"write", "credit"}, Generation: "1",
		},
		intent: pawl.Intent{Kind: pawl.Kind("kind." + short), Details: details("250.00")},
	}
}

// details returns parameters that carry the marker.
func details(amount string) pawl.Details {
	d, err := pawl.ParseDetails([]byte(`{"amount":"` + amount + `","memo":"` + marker + `"}`))
	if err != nil {
		panic(err) // a constant of this package
	}
	return d
}

func (t *Trial) start() (err error) {
	if t.a, err = t.d.Open(t.ctx); err != nil {
		return err
	}
	t.opened = append(t.opened, t.a)
	t.facts, err = t.a.Check(t.ctx)
	return err
}

// do runs a case. A harness's failure is its error; a store's that makes going
// on pointless is a violation already.
func (t *Trial) do(run func(*Trial)) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case given:
			err = r.err
		default:
			panic(r)
		}
	}()
	run(t)
	return nil
}

func (t *Trial) close() error {
	var errs []error
	for _, s := range t.opened {
		errs = append(errs, s.Close())
	}
	if t.d.Close != nil {
		errs = append(errs, t.d.Close())
	}
	return errors.Join(errs...)
}

// fail reports a violation and goes on.
func (t *Trial) fail(clause, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed[clause]++; t.failed[clause] <= most {
		t.violations = append(t.violations, Violation{Clause: clause, Case: t.c.ID, Msg: fmt.Sprintf(format, args...)})
	}
}

// stop reports a violation after which the case cannot go on.
func (t *Trial) stop(clause, format string, args ...any) {
	t.fail(clause, format, args...)
	panic(given{})
}

// must ends the case when the harness failed.
func (t *Trial) must(err error) {
	if err != nil {
		panic(given{err})
	}
}

// open returns another instance.
func (t *Trial) open() pawl.Store {
	s, err := t.d.Open(t.ctx)
	t.must(err)
	t.opened = append(t.opened, s)
	return s
}

// doomed opens an instance that dies: kill abandons it as if its process had
// ended, where the harness can, and else leaves it open and unasked.
func (t *Trial) doomed() (s pawl.Store, kill func()) {
	s, err := t.d.Open(t.ctx)
	t.must(err)
	if t.d.Kill == nil {
		t.opened = append(t.opened, s)
		return s, func() {}
	}
	return s, func() { t.must(t.d.Kill(t.ctx, s)) }
}

// reopen closes every instance and returns a new one: what one knew only in
// memory is gone.
func (t *Trial) reopen() pawl.Store {
	for _, s := range t.opened {
		t.must(s.Close())
	}
	t.opened = nil
	t.a = t.open()
	return t.a
}

// advance moves the store's clock.
func (t *Trial) advance(d time.Duration) {
	t.must(t.d.Advance(t.ctx, d))
	t.moved = true
}

// now is the store's time, exactly.
func (t *Trial) now() time.Time {
	f, err := t.a.Check(t.ctx)
	t.must(err)
	return f.Now
}

// about is the store's time to within what the case has taken so far: good
// enough for a grant that lives an hour, and it asks only where the clock moved.
func (t *Trial) about() time.Time {
	if t.moved {
		return t.now()
	}
	return t.facts.Now
}

// grant returns a fresh token-form grant for the trial's caller and intent,
// valid from just now for life.
func (t *Trial) grant() pawl.Grant {
	return t.grantUntil(t.about().Add(life))
}

func (t *Trial) grantUntil(expiry time.Time) pawl.Grant {
	return pawl.Grant{
		Form: pawl.FormToken, Key: pawl.GrantKey{Issuer: t.issuer, ID: pawl.NewOperationID().String()},
		Realm: t.facts.Realm, Subject: t.caller.Principal, Tenant: t.caller.Tenant, Intent: t.intent,
		IssuedAt: expiry.Add(-life), ExpiresAt: expiry,
	}
}

// admission asks for a grant with a fresh operation id.
func (t *Trial) admission(g pawl.Grant) pawl.Admission {
	return pawl.Admission{
		Grant: g, OperationID: pawl.NewOperationID(), Intent: g.Intent,
		Caller: pawl.Caller{
			Principal: g.Subject, Tenant: g.Tenant, Authority: g.Authority,
			Scopes: t.caller.Scopes, Generation: t.caller.Generation,
		},
		Lease: lease, SubmissionWindow: window,
	}
}

// issuance asks for a grant's row for the trial's caller and intent.
func (t *Trial) issuance(f pawl.Form) pawl.Issuance {
	return pawl.Issuance{
		RequestID: "request-" + pawl.NewOperationID().String(), Form: f, Issuer: t.issuer,
		Subject: t.caller.Principal, Tenant: t.caller.Tenant, Intent: t.intent,
		Lifetime: life, GrantID: pawl.NewOperationID().String(),
	}
}

// reservation asks for a fresh key.
func (t *Trial) reservation() pawl.Reservation {
	return pawl.Reservation{
		Key: "key-" + pawl.NewOperationID().String(), Intent: t.intent, Caller: t.caller,
		Lease: lease, SubmissionWindow: window,
	}
}

// admitted admits a fresh grant and returns what its owner holds; it ends the
// case where that fails.
func (t *Trial) admitted() pawl.Admitted {
	return t.mustAdmit(t.a, t.admission(t.grant()))
}

func (t *Trial) mustAdmit(s pawl.Store, a pawl.Admission) pawl.Admitted {
	got, err := t.admit(s, a)
	if err != nil || !got.Fresh {
		t.stop("A2", "a valid admission of an unused grant: fresh %v, error %v, want fresh", got.Fresh, err)
	}
	return got
}

// get reads an operation as an operator; it ends the case where that fails.
func (t *Trial) get(id pawl.OperationID) pawl.Operation {
	op, err := t.a.Get(t.ctx, id, pawl.AsOperator())
	if err != nil {
		t.stop("S1", "reading operation %s as an operator: %v", id, err)
	}
	return op
}

// log reads an operation's log as an operator.
func (t *Trial) log(id pawl.OperationID) pawl.Timeline {
	tl, err := t.a.Log(t.ctx, id, pawl.AsOperator())
	if err != nil {
		t.stop("S1", "reading the log of operation %s as an operator: %v", id, err)
	}
	return tl
}

// absent reports a violation of clause where an operation exists.
func (t *Trial) absent(clause string, id pawl.OperationID) {
	if _, err := t.a.Get(t.ctx, id, pawl.AsOperator()); !errors.Is(err, pawl.ErrNotFound) {
		t.fail(clause, "operation %s: %v, want not found: nothing may have been written", id, err)
	}
}

// same reports a violation of clause where a record is not what it was before.
func (t *Trial) same(clause, what string, before pawl.Operation) {
	if diff := differ(before, t.get(before.ID)); diff != "" {
		t.fail(clause, "%s changed the record (-before +after):\n%s", what, diff)
	}
}

// differ returns in what two values differ, or nothing. Most are equal to the
// bit, which is told fast.
func differ[T any](a, b T) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b, equalDetails())
}

// equalDetails compares what hides its content.
func equalDetails() cmp.Option {
	return cmp.Comparer(func(a, b pawl.Details) bool { return string(a.JSON()) == string(b.JSON()) })
}

// wantClass reports a violation where err is not of the class, and, where
// reasons are given, of one of them.
func (t *Trial) wantClass(clause, what string, err error, c pawl.Class, reasons ...pawl.Reason) {
	t.clean(err)
	if !errors.Is(err, c) {
		t.fail(clause, "%s: %v, want %v", what, err, c)
		return
	}
	for _, r := range reasons {
		if pawl.ReasonOf(err) == r {
			return
		}
	}
	if len(reasons) > 0 {
		t.fail(clause, "%s: reason %q, want %v", what, pawl.ReasonOf(err), reasons)
	}
}

// clean reports an error that shows what errors may not [S2].
func (t *Trial) clean(err error) {
	if err == nil {
		return
	}
	for _, word := range []string{marker, "SELECT ", "INSERT ", "UPDATE ", "syntax error"} {
		if strings.Contains(err.Error(), word) {
			t.fail("S2", "an error shows %q: %v", word, err)
		}
	}
}

// race makes n calls at once, released together in any order, and waits for all.
func race(n int, call func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for _, i := range rand.Perm(n) {
		done.Go(func() {
			ready.Done()
			<-start
			call(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}
