package demo

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
	"github.com/pawl-go/pawl/memstore"
)

// TestLocalRecordIsRightInOneProcess: the demo does not win against a straw man.
// Of a hundred requests at once one gets through, whatever their operation ids.
func TestLocalRecordIsRightInOneProcess(t *testing.T) {
	s := newSupervisor(t)
	p, api := newProvider(t)
	var said events
	r := newLocalRecord(s.verifier, api, time.Now, said.tell)
	token := s.issue(t, time.Now())
	codes := make(chan int, 100)
	var racers sync.WaitGroup
	for range 100 {
		racers.Go(func() { codes <- r.apply(bounded(t), agent, request(token, pawl.NewOperationID())).Code })
	}
	racers.Wait()
	close(codes)
	count := map[int]int{}
	for code := range codes {
		count[code]++
	}
	if diff := cmp.Diff(map[int]int{http.StatusOK: 1, http.StatusConflict: 99}, count); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if got := p.Books().Total(account, currency); got != amount {
		t.Errorf("the books show %s, want %s", got, amount)
	}
	if said.count(evNoted) != 1 || said.count(evKnown) != 99 || said.count(evAnswer) != 1 {
		t.Errorf("told of %d notes, %d repetitions, %d answers", said.count(evNoted), said.count(evKnown), said.count(evAnswer))
	}
}

// TestLocalRecordNotesOnce races the map alone, where two that come at once are
// nanoseconds apart.
func TestLocalRecordNotesOnce(t *testing.T) {
	r := newLocalRecord(nil, nil, nil, nil)
	for i := range 5000 {
		k := pawl.GrantKey{Issuer: IssuerName, ID: strconv.Itoa(i)}
		var ready, firsts atomic.Int32
		var racers sync.WaitGroup
		for range 2 {
			racers.Go(func() {
				for ready.Add(1); ready.Load() < 2; {
					runtime.Gosched()
				}
				if r.note(k) {
					firsts.Add(1)
				}
			})
		}
		if racers.Wait(); firsts.Load() != 1 {
			t.Fatalf("round %d: %d were the first", i, firsts.Load())
		}
	}
}

// TestLocalRecordChecksTheGrant: what the grant says is checked, and a request
// refused for it leaves the grant good.
func TestLocalRecordChecksTheGrant(t *testing.T) {
	s, stranger := newSupervisor(t), newSupervisor(t)
	p, api := newProvider(t)
	var said events
	r := newLocalRecord(s.verifier, api, time.Now, said.tell)
	good := request(s.issue(t, time.Now()), pawl.NewOperationID())
	forged, expired, dearer, garbage := good, good, good, good
	forged.Grant = stranger.issue(t, time.Now())
	expired.Grant = s.issue(t, time.Now().Add(-time.Hour))
	dearer.Credit = json.RawMessage(strings.Replace(string(good.Credit), amount, "2500.00", 1))
	garbage.Credit = json.RawMessage(`{"account":1,"account":2}`)
	for name, bad := range map[string]struct {
		by string
		application
	}{
		"forged":         {agent, forged},
		"expired":        {agent, expired},
		"another amount": {agent, dearer},
		"another agent":  {"agent:eve", good},
		"no agent":       {"", good},
		"malformed":      {agent, garbage},
	} {
		if got := r.apply(bounded(t), bad.by, bad.application); got.Code != http.StatusForbidden {
			t.Errorf("%s: answered %d %s, want 403", name, got.Code, got.Error)
		}
	}
	if n := len(p.Books().Credits); n != 0 {
		t.Fatalf("%d credits were made for grants that are not good", n)
	}
	if got := r.apply(bounded(t), agent, good); got.Code != http.StatusOK {
		t.Errorf("the good request was answered %d %s", got.Code, got.Error)
	}
}

func TestLocalRecordWithoutAnswer(t *testing.T) {
	s := newSupervisor(t)
	p, api := newProvider(t)
	if err := p.Inject(billing.Fault{Do: billing.LostAfter}); err != nil {
		t.Fatal(err)
	}
	r := newLocalRecord(s.verifier, api, time.Now, func(event) {})
	token := s.issue(t, time.Now())
	for _, want := range []int{http.StatusBadGateway, http.StatusConflict} {
		if got := r.apply(bounded(t), agent, request(token, pawl.NewOperationID())); got.Code != want {
			t.Errorf("answered %d %s, want %d", got.Code, got.Error, want)
		}
	}
	if got := r.status(bounded(t), agent, pawl.NewOperationID().String()); got.Code != http.StatusNotFound {
		t.Errorf("a status was answered %d", got.Code)
	}
}

func openPawl(t *testing.T, s supervisor, api *billing.Client, said *events) *pawlRecord {
	t.Helper()
	store, err := memstore.New(&memstore.Options{Realm: realmName, Timings: demoTimings()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := newPawlRecord(t.Context(), store, s.verifier, api, nameA, said.tell)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestPawlRecord walks through what an agent can be told.
func TestPawlRecord(t *testing.T) {
	s := newSupervisor(t)
	p, api := newProvider(t)
	var said events
	r := openPawl(t, s, api, &said)
	op, other := pawl.NewOperationID(), pawl.NewOperationID()
	token := s.issue(t, time.Now())
	ctx := bounded(t)

	first := r.apply(ctx, agent, request(token, op))
	done := answer{Code: http.StatusOK, Operation: op.String(), Status: "succeeded", Credit: p.Books().Credits[0].ID}
	if diff := cmp.Diff(done, first); diff != "" {
		t.Errorf("the first request (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name string
		got  answer
		want answer
	}{
		{"the same operation [A8]", r.apply(ctx, agent, request(token, op)), done},
		{"its status [S1]", r.status(ctx, agent, op.String()), done},
		{"another operation [A7]", r.apply(ctx, agent, request(token, other)), answer{Code: 409, Error: "grant-not-available"}},
		{"a stranger [S1]", r.status(ctx, "agent:eve", op.String()), answer{Code: 404, Error: "not-found"}},
		{"an id that is none", r.status(ctx, agent, "x"), answer{Code: 400, Error: "malformed-request"}},
		{"an operation without id", r.apply(ctx, agent, application{Grant: token}), answer{Code: 400, Error: "malformed-request"}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := p.Books().Reference(op.String()); got.Credits != 1 || got.Requests != 1 {
		t.Errorf("%d credits from %d requests under the operation id, want one of one [E1]", got.Credits, got.Requests)
	}
	if said.count(evAdmitted) != 1 || said.count(evJoined) != 1 || said.count(evRecorded) != 1 || said.count(evRefused) != 1 {
		t.Errorf("told: %v", said.all)
	}
}

func TestPawlRecordDeclined(t *testing.T) {
	s := newSupervisor(t)
	p, api := newProvider(t)
	if err := p.Inject(billing.Fault{Do: billing.Decline, Code: "account_closed"}); err != nil {
		t.Fatal(err)
	}
	r := openPawl(t, s, api, &events{})
	op := pawl.NewOperationID()
	got := r.apply(bounded(t), agent, request(s.issue(t, time.Now()), op))
	if diff := cmp.Diff(answer{Code: http.StatusOK, Operation: op.String(), Status: "failed"}, got); diff != "" {
		t.Errorf("a declined credit (-want +got):\n%s", diff)
	}
}

// TestFind: what was found is told from the provider's answer, and nothing is
// learnt from no answer [E2].
func TestFind(t *testing.T) {
	p, api := newProvider(t)
	c := credit{api: api, tell: func(event) {}}
	ctx := bounded(t)
	look := func(reference string) string {
		found, err := c.Find(ctx, pawl.Lookup{Reference: reference})
		if err != nil {
			return "error"
		}
		return found.String()
	}
	if _, err := api.Create(ctx, "op-1", account, amount, currency); err != nil {
		t.Fatal(err)
	}
	if got := look("op-1"); got != "found, succeeded" {
		t.Errorf("a credit that exists: %s", got)
	}
	if got := look("op-2"); got != "nothing found" {
		t.Errorf("a credit that does not exist: %s", got)
	}
	if err := p.Apply(ctx, billing.Control{Settings: &billing.Settings{Lookup: billing.Lookup{Omit: []string{"amount"}}}}); err != nil {
		t.Fatal(err)
	}
	if got := look("op-1"); got != "error" {
		t.Errorf("a credit without its amount: %s", got)
	}
}

// TestSupport holds the API's own refusals.
func TestSupport(t *testing.T) {
	s := newSupervisor(t)
	_, api := newProvider(t)
	h := support(newLocalRecord(s.verifier, api, time.Now, func(event) {}))
	for body, want := range map[string]int{
		`{`:                                 http.StatusBadRequest,
		strings.Repeat("x", 65<<10):         http.StatusBadRequest,
		`{"grant":"none","credit":{"a":1}}`: http.StatusForbidden,
	} {
		if got := do(h, "POST", "/credits", body); got != want {
			t.Errorf("%.20s: answered %d, want %d", body, got, want)
		}
	}
}
