package demo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// creditKind is the kind of effect that the support service has grants for.
const creditKind pawl.Kind = "credit.create"

// callTimeout is how long an instance waits for the provider.
const callTimeout = 2500 * time.Millisecond

// application is what the agent sends to apply a credit.
type application struct {
	Grant       string          `json:"grant"` // the supervisor's signed token
	OperationID string          `json:"operation_id"`
	Credit      json.RawMessage `json:"credit"` // what the agent asks for; the grant says what is approved
}

// answer is what the agent is told.
type answer struct {
	Code      int    `json:"-"`
	Operation string `json:"operation_id,omitempty"`
	Status    string `json:"status,omitempty"`
	Credit    string `json:"credit,omitempty"`
	Error     string `json:"error,omitempty"`
}

// record is where an instance keeps which grants were used, and what it does
// about a grant that is good.
type record interface {
	apply(ctx context.Context, agent string, a application) answer
	status(ctx context.Context, agent, operation string) answer
	close() error
}

// serveInstance is one instance of the support service.
func serveInstance(ctx context.Context, c config, w Wiring, t *teller) error {
	verifier, err := w.Trust(c.Realm, c.Keys)
	if err != nil {
		return err
	}
	api := &billing.Client{BaseURL: c.Billing, HTTP: newClient()}
	var r record = newLocalRecord(verifier, api, w.Now, t.tell)
	if !c.Local {
		store, err := w.Open(ctx, c.Store, c.Realm, demoTimings())
		if err != nil {
			return err
		}
		if r, err = newPawlRecord(ctx, store, verifier, api, c.Name, t.tell); err != nil {
			return errors.Join(err, store.Close())
		}
	}
	err = serveHTTP(ctx, support(r), t)
	return errors.Join(err, r.close())
}

// agentHeader names the signed-in agent. In a deployment the session does; here
// there is one agent and nobody to lie to.
const agentHeader = "Support-Agent"

// support is the service's API.
func support(r record) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /credits", func(w http.ResponseWriter, q *http.Request) {
		var a application
		got := answer{Code: http.StatusBadRequest, Error: "malformed-request"}
		if json.NewDecoder(http.MaxBytesReader(w, q.Body, 64<<10)).Decode(&a) == nil {
			got = r.apply(q.Context(), q.Header.Get(agentHeader), a)
		}
		writeJSON(w, got.Code, got)
	})
	mux.HandleFunc("GET /operations/{id}", func(w http.ResponseWriter, q *http.Request) {
		got := r.status(q.Context(), q.Header.Get(agentHeader), q.PathValue("id"))
		writeJSON(w, got.Code, got)
	})
	return mux
}

// creditDetails are the details of a credit.
type creditDetails struct {
	Account  string `json:"account"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

func readDetails(d pawl.Details) (c creditDetails, err error) {
	return c, json.Unmarshal(d.JSON(), &c)
}

func (c creditDetails) details() (pawl.Details, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return pawl.Details{}, err
	}
	return pawl.ParseDetails(raw)
}
