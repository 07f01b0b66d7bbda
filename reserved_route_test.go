package pawl_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memstore"
)

// webRequest is what defines an HTTP request under an idempotency key. Its
// details are the route, the query and the body without the fields that were
// declared not to define it.
type webRequest struct {
	route, query string
	body         map[string]any
}

func (r webRequest) details(t *testing.T, nonDefining ...string) []byte {
	t.Helper()
	body := map[string]any{}
	for name, v := range r.body {
		body[name] = v
	}
	for _, name := range nonDefining {
		delete(body, name)
	}
	raw, err := json.Marshal(map[string]any{"route": r.route, "query": r.query, "body": body})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestCase_CE11_OneKeyTwoRequests: one key on two routes and with another query is
// a conflict; a body that differs in a declared non-defining field joins [B1].
func TestCase_CE11_OneKeyTwoRequests(t *testing.T) {
	store, err := memstore.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := pawl.New(t.Context(), store, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	reserve := func(r webRequest) (pawl.Admitted, error) {
		return gate.Reserve(t.Context(), pawl.ReservedRequest{
			Key: "k", Kind: "http.request", Details: r.details(t, "sent_at"), Caller: pawl.Caller{Principal: "alice", Tenant: "a"},
		})
	}
	first := webRequest{"POST /credits", "", map[string]any{"amount": "250.00", "sent_at": "10:00"}}
	got, err := reserve(first)
	if err != nil || !got.Fresh {
		t.Fatalf("first: %v, %v", got.Fresh, err)
	}
	for name, r := range map[string]webRequest{
		"another route": {"POST /refunds", "", first.body},
		"another query": {"POST /credits", "dry=1", first.body},
		"another body":  {"POST /credits", "", map[string]any{"amount": "1.00", "sent_at": "10:00"}},
	} {
		if got, err := reserve(r); !errors.Is(err, pawl.ErrMismatch) || !got.Operation.ID.IsZero() {
			t.Errorf("C-E11 %s: %v, %v; want a mismatch that shows nothing", name, got.Fresh, err)
		}
	}
	again, err := reserve(webRequest{"POST /credits", "", map[string]any{"amount": "250.00", "sent_at": "10:05"}})
	if err != nil || again.Fresh || again.Operation.ID != got.Operation.ID {
		t.Errorf("C-E11 non-defining field: fresh %v, %v; want the same operation joined", again.Fresh, err)
	}
	if err := errors.Join(gate.Close(), store.Close()); err != nil {
		t.Error(err)
	}
}
