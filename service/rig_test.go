package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memstore"
	"github.com/pawl-go/pawl/service"
)

// rig is one server on a memory store, with a credential for each purpose.
type rig struct {
	t     *testing.T
	store *memstore.Store
	url   string
}

// rowVerifier takes "token:ID" for a signed grant: signatures are package
// jwtgrant's affair, this package only passes tokens on.
type rowVerifier struct{ book pawl.GrantBook }

func (v rowVerifier) Verify(ctx context.Context, token string) (pawl.Grant, error) {
	id, ok := strings.CutPrefix(token, "token:")
	if !ok {
		return pawl.Grant{}, &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonSignature}
	}
	row, err := v.book.Grant(ctx, pawl.GrantKey{Issuer: "shop", ID: id})
	return row.Grant, err
}

func (rowVerifier) Sign(g pawl.Grant) (string, error) {
	if g.Form != pawl.FormToken {
		return "", errors.New("not a token")
	}
	return "token:" + g.Key.ID, nil
}

func newRig(t *testing.T, cfg *pawl.Config) *rig {
	t.Helper()
	var timings *pawl.Timings
	if cfg != nil {
		timings = cfg.Timings
	}
	store, err := memstore.New(&memstore.Options{Timings: timings})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := pawl.New(t.Context(), store, rowVerifier{store}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	auth := service.StaticTokens{
		service.HashToken("all-0123456789abcdef"):  {Name: "all", Roles: service.Roles()},
		service.HashToken("exec-0123456789abcdef"): {Name: "exec", Roles: []service.Role{service.RoleExecute}},
		service.HashToken("tenant-a-0123456789ab"): {
			Name: "tenant-a", Roles: service.Roles(), Tenants: []string{"a"}, Kinds: []pawl.Kind{"credit.create"},
		},
		service.HashToken("issuer-x-0123456789ab"): {Name: "issuer-x", Roles: service.Roles(), Issuers: []string{"x"}},
	}
	s, err := service.New(gate, auth, &service.Options{Issuer: "shop", Signer: rowVerifier{}, RevocationsPerSecond: 1000})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.Close()
		if err := gate.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rig{t: t, store: store, url: server.URL}
}

// reply is an answer, decoded.
type reply struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

func (r reply) problem() string {
	s, _ := r.body["type"].(string)
	return strings.TrimPrefix(s, "/problems/")
}

func (r reply) member(path ...string) any {
	var v any = r.body
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

// text is a member that must be a string.
func (r reply) text(path ...string) string { s, _ := r.member(path...).(string); return s }

// list is a member that must be an array.
func (r reply) list(path ...string) []any { l, _ := r.member(path...).([]any); return l }

func (g *rig) do(token, method, path, body string, header ...string) reply {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	r := reply{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(raw, &r.body); err != nil {
			g.t.Fatalf("%s %s: %v in %s", method, path, err, raw)
		}
	}
	return r
}

func (g *rig) post(path, body string) reply {
	g.t.Helper()
	return g.do("all-0123456789abcdef", "POST", path, body)
}

const details = `{"account":"A-1187","amount":"250.00"}`

// grant issues a grant for alice and returns what an admission presents.
func (g *rig) grant(form, request string) string {
	g.t.Helper()
	r := g.post("/v1/grants", `{"request_id":"`+request+`","subject":"alice","tenant":"a","kind":"credit.create","details":`+
		details+`,"lifetime_seconds":900,"form":"`+form+`"}`)
	if r.status != 201 {
		g.t.Fatalf("issue: %d %s", r.status, r.raw)
	}
	if form == "token" {
		return `"` + r.text("token") + `"`
	}
	return `{"issuer":"` + r.text("issuer") + `","grant_id":"` + r.text("grant_id") + `"}`
}

const alice = `{"principal":"alice","tenant":"a"}`

func admission(grant, id, caller string) string {
	return `{"grant":` + grant + `,"operation_id":"` + id + `","kind":"credit.create","details":` + details + `,"caller":` + caller + `}`
}

// admitted admits a fresh grant and returns the operation's id and owner token.
func (g *rig) admitted() (id, token string) {
	g.t.Helper()
	id = pawl.NewOperationID().String()
	r := g.post("/v1/admissions", admission(g.grant("stored", id), id, alice))
	if r.status != 201 {
		g.t.Fatalf("admit: %d %s", r.status, r.raw)
	}
	return id, r.text("owner", "owner_token")
}

// shortLeases are timings under which a lease is over at once in a test.
func shortLeases() *pawl.Timings {
	t := pawl.DefaultTimings()
	t.StoreCallTimeout, t.LeaseMargin, t.RecoveryInterval = 500*time.Millisecond, time.Millisecond, time.Millisecond
	t.ReplicationWaitBound = 0
	t.Default.EffectTimeout, t.Default.FindTimeout = time.Millisecond, time.Millisecond
	t.Default.ExecutionLease, t.Default.RecoveryLease = 1010*time.Millisecond, 1010*time.Millisecond
	return &t
}
