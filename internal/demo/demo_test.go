package demo

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
	"github.com/pawl-go/pawl/jwtgrant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTimings holds the demo's durations against the rules [T1], and against the
// incidents: an instance must outwait both provider and gateway.
func TestTimings(t *testing.T) {
	timings := demoTimings()
	if err := timings.Validate(); err != nil {
		t.Fatal(err)
	}
	kt := timings.For(creditKind)
	if !kt.Provider.Stated() {
		t.Error("the provider's contract is not stated")
	}
	if kt.EffectTimeout <= answerTime || answerTime <= gatewayTimeout {
		t.Errorf("the provider answers after %v, the gateway waits %v, an instance %v", answerTime, gatewayTimeout, kt.EffectTimeout)
	}
	if longest := kt.ExecutionLease + kt.RecoveryLease; longest >= runBound {
		t.Errorf("a run is bound to %v, its leases take %v", runBound, longest)
	}
}

// events collects what parts tell.
type events struct {
	mu  sync.Mutex
	all []event
}

func (e *events) tell(v event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, v)
}

func (e *events) count(t eventType) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.all {
		if v.Type == t {
			n++
		}
	}
	return n
}

// supervisor issues grants and says whom instances trust.
type supervisor struct {
	issuer   *jwtgrant.Issuer
	verifier *jwtgrant.Verifier
	keys     json.RawMessage
}

func newSupervisor(t *testing.T) supervisor {
	t.Helper()
	key, err := jwtgrant.GenerateKey(jwtgrant.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := jwtgrant.NewIssuer(IssuerName, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := jwtgrant.NewKeySet(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := jwtgrant.NewVerifier(realmName, []jwtgrant.TrustedIssuer{{Name: IssuerName, Keys: set}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return supervisor{issuer, verifier, keys}
}

// issue signs a grant for the demo's credit, issued at a time.
func (s supervisor) issue(t *testing.T, at time.Time) string {
	t.Helper()
	details, err := creditDetails{account, amount, currency}.details()
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := s.issuer.Issue(realmName, at, pawl.Issuance{
		Form: pawl.FormToken, Subject: agent, Intent: pawl.Intent{Kind: creditKind, Details: details}, Lifetime: 15 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// request is the agent's, for the credit that was approved.
func request(token string, op pawl.OperationID) application {
	return application{
		Grant: token, OperationID: op.String(),
		Credit: json.RawMessage(`{"account":"` + account + `","amount":"` + amount + `","currency":"` + currency + `"}`),
	}
}

// newProvider is a provider on a real listener.
func newProvider(t *testing.T) (*billing.Provider, *billing.Client) {
	t.Helper()
	p, err := billing.New(&billing.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(p)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
	return p, &billing.Client{BaseURL: srv.URL, HTTP: newClient()}
}

// bounded is a context for what must not take long.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
