package effect_test

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/examples/effect"
	"github.com/pawl-go/pawl/internal/billing"
	"github.com/pawl-go/pawl/memstore"
)

// TestEffect runs the guide's effect against the provider: a credit, a definite
// refusal, and a look-up that tells the provider's own details.
func TestEffect(t *testing.T) {
	provider, err := billing.New(&billing.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(provider)
	t.Cleanup(func() { server.Close(); _ = provider.Close() })
	credit := effect.Credit{API: &billing.Client{BaseURL: server.URL}}
	timings := effect.Timings()
	store, err := memstore.New(&memstore.Options{Timings: timings})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := pawl.New(t.Context(), store, nil, &pawl.Config{Effects: []pawl.Effect{credit}, Timings: timings})
	if err != nil {
		t.Fatal(err)
	}
	request := pawl.ReservedRequest{
		Key: "click-1", Kind: "credit.create", Caller: pawl.Caller{Principal: "alice"},
		Details: []byte(`{"account":"A-1187","amount":"250.00","currency":"USD"}`),
	}
	op, err := gate.ExecuteReserved(t.Context(), request)
	if err != nil || op.Status != pawl.StatusSucceeded {
		t.Fatalf("got %v, %v", op.Status, err)
	}
	found, err := credit.Find(t.Context(), pawl.Lookup{Reference: op.ID.String()})
	if err != nil || found.String() != "found, succeeded" {
		t.Errorf("find: %v, %v", found, err)
	}
	nothing, err := credit.Find(t.Context(), pawl.Lookup{Reference: pawl.NewOperationID().String()})
	if err != nil || nothing.String() != "nothing found" {
		t.Errorf("find nothing: %v, %v", nothing, err)
	}
	if err := gate.Close(); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestGuide: the guide's code is this package's, byte for byte.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/write-an-effect.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("effect.go")
	if err != nil {
		t.Fatal(err)
	}
	from := strings.Index(string(code), "// Credit creates")
	if from < 0 || !strings.Contains(string(guide), "```go\n"+string(code[from:])+"```") {
		t.Error("the code in the guide is not examples/effect/effect.go from its type on")
	}
}
