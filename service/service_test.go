package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/service"
)

// TestAdmissionShapes walks one grant of each form through the answers of an
// admission [A2, A8]: the table of calls in docs/contract.md.
func TestAdmissionShapes(t *testing.T) {
	for _, form := range []string{"token", "stored"} {
		t.Run(form, func(t *testing.T) {
			g := newRig(t, nil)
			grant, id := g.grant(form, "r1"), pawl.NewOperationID().String()
			first := g.post("/v1/admissions", admission(grant, id, alice))
			if first.status != 201 || first.text("outcome") != "admitted" || first.text("operation", "status") != "admitted" ||
				first.text("owner", "owner_token") == "" || first.member("owner", "fence") != 1.0 {
				t.Fatalf("first: %d %s", first.status, first.raw)
			}
			again := g.post("/v1/admissions", admission(grant, id, alice))
			if again.status != 200 || again.text("outcome") != "already_admitted" || again.member("owner") != nil ||
				again.text("attempt_token") == "" {
				t.Fatalf("[A8] again: %d %s", again.status, again.raw)
			}
			other := g.post("/v1/admissions", admission(grant, pawl.NewOperationID().String(), alice))
			if other.status != 409 || other.problem() != "grant-not-available" {
				t.Fatalf("[A2] other id: %d %s", other.status, other.raw)
			}
		})
	}
}

// TestCase_CA25_LostReplyOfIssue: a repeated issue is one grant; other content
// under the same request id is refused.
func TestCase_CA25_LostReplyOfIssue(t *testing.T) {
	g := newRig(t, nil)
	if a, b := g.grant("stored", "same"), g.grant("stored", "same"); a != b {
		t.Errorf("got grants %s and %s, want one", a, b)
	}
	r := g.post("/v1/grants", `{"request_id":"same","subject":"bob","kind":"credit.create","details":{},"lifetime_seconds":9,"form":"stored"}`)
	if r.status != 409 || r.problem() != "request-mismatch" {
		t.Errorf("other content: %d %s", r.status, r.raw)
	}
}

// TestMalformed covers C-B5, C-B6, C-B7, C-B8 and C-B12 over the wire: 400,
// nothing written, no text of an engine [A9].
func TestMalformed(t *testing.T) {
	g := newRig(t, nil)
	grant := g.grant("stored", "r")
	good := admission(grant, pawl.NewOperationID().String(), alice)
	swap := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the template has no %s", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	bad := map[string]string{
		"C-B5 NUL in an id":            swap(`"alice"`, `"ali\u0000ce"`),
		"C-B5 control character":       swap(`"alice"`, `"ali\u0007ce"`),
		"C-B5 invalid UTF-8":           swap(`"alice"`, "\"ali\xffce\""),
		"C-B5 lone surrogate":          swap(`"alice"`, `"ali\ud800ce"`),
		"C-B5 empty principal":         swap(`"alice"`, `""`),
		"C-B5 empty issuer":            swap(`"issuer":"shop"`, `"issuer":""`),
		"C-B6 id of 256 bytes":         swap(`"alice"`, `"`+strings.Repeat("a", 256)+`"`),
		"C-B6 a megabyte":              swap(`"alice"`, `"`+strings.Repeat("a", 1<<20)+`"`),
		"C-B12 inexact number":         swap(`"250.00"`, `9007199254740993`),
		"C-B12 number out of range":    swap(`"250.00"`, `1e400`),
		"C-B12 duplicate member":       swap(`"amount":"250.00"`, `"amount":"250.00","amount":"1.00"`),
		"C-B12 NUL in details":         swap(`"250.00"`, `"\u0000"`),
		"unknown member":               swap(`"kind":`, `"knd":1,"kind":`),
		"name in other letter case":    swap(`"kind":`, `"Kind":`),
		"duplicate member of the body": swap(`"kind":`, `"kind":"credit.create","kind":`),
		"details no object":            swap(details, `[]`),
		"no grant":                     strings.Replace(good, grant, `null`, 1),
		"trailing data":                good + "{}",
		"nil operation id":             admission(grant, "00000000-0000-0000-0000-000000000000", alice),
		"[B2] version-8 id":            admission(grant, "0190f5ad-0000-8000-8000-000000000001", alice),
		"id in braces":                 admission(grant, "{"+pawl.NewOperationID().String()+"}", alice),
		"empty body":                   "",
	}
	for name, body := range bad {
		r := g.post("/v1/admissions", body)
		if r.status != 400 || r.problem() != "malformed-request" || r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
		if strings.Contains(strings.ToUpper(r.raw), "SQL") || strings.Contains(r.raw, "alice") {
			t.Errorf("%s: the answer shows too much: %s", name, r.raw)
		}
	}
	if ops := g.do("all-0123456789abcdef", "GET", "/v1/operations", ""); len(ops.list("operations")) != 0 {
		t.Errorf("[A9] something was written: %s", ops.raw)
	}
	if r := g.post("/v1/admissions", good); r.status != 201 {
		t.Errorf("[A9] the right request no longer succeeds: %d %s", r.status, r.raw)
	}
}

// TestCase_CB4_WrongThenRight: a wrong caller, amount or kind is refused and
// unspent.
func TestCase_CB4_WrongThenRight(t *testing.T) {
	for _, form := range []string{"token", "stored"} {
		g := newRig(t, nil)
		grant, id := g.grant(form, "r"), pawl.NewOperationID().String()
		good := admission(grant, id, alice)
		for name, body := range map[string]string{
			"caller": strings.Replace(good, `"principal":"alice"`, `"principal":"bob"`, 1),
			"tenant": strings.Replace(good, `"tenant":"a"`, `"tenant":"b"`, 1),
			"amount": strings.Replace(good, `250.00`, `250.01`, 1),
			"kind":   strings.Replace(good, `"credit.create"`, `"credit.delete"`, 1),
		} {
			if r := g.post("/v1/admissions", body); r.status != 403 || r.problem() != "grant-not-valid" {
				t.Errorf("%s, %s: %d %s", form, name, r.status, r.raw)
			}
		}
		if r := g.post("/v1/admissions", good); r.status != 201 {
			t.Errorf("%s: %d %s", form, r.status, r.raw)
		}
	}
}

// TestAuthentication: no call without a token, none without its role.
func TestAuthentication(t *testing.T) {
	g := newRig(t, nil)
	id, _ := g.admitted()
	calls := []struct{ method, path string }{
		{"POST", "/v1/grants"},
		{"POST", "/v1/revocations"},
		{"POST", "/v1/operations/" + id + "/resolutions"},
		{"GET", "/v1/operations"},
		{"GET", "/v1/operations/" + id + "/observations"},
	}
	for _, c := range calls {
		if r := g.do("", c.method, c.path, "{}"); r.status != 401 || r.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s %s without a token: %d %s", c.method, c.path, r.status, r.raw)
		}
		if r := g.do("wrong", c.method, c.path, "{}"); r.status != 401 {
			t.Errorf("%s %s with a wrong token: %d %s", c.method, c.path, r.status, r.raw)
		}
		if r := g.do("exec-0123456789abcdef", c.method, c.path, "{}"); r.status != 403 || r.problem() != "not-permitted" {
			t.Errorf("%s %s without the role: %d %s", c.method, c.path, r.status, r.raw)
		}
	}
	if r := g.do("all-0123456789abcdef", "DELETE", "/v1/grants", ""); r.status != 405 || r.header.Get("Allow") != "POST" {
		t.Errorf("DELETE: %d %s", r.status, r.raw)
	}
	if r := g.do("", "GET", "/nowhere", ""); r.status != 404 || r.problem() != "not-found" {
		t.Errorf("unknown path: %d %s", r.status, r.raw)
	}
}

// TestCase_CA27_OutsideLimits: a credential's limits hold on every call and
// reveal nothing.
func TestCase_CA27_OutsideLimits(t *testing.T) {
	g := newRig(t, nil)
	const limited = "tenant-a-0123456789ab"
	id := pawl.NewOperationID().String()
	bob := `{"principal":"bob","tenant":"b"}`
	r := g.post("/v1/reservations", `{"key":"k","kind":"credit.create","details":{},"caller":`+bob+`}`)
	if r.status != 201 {
		t.Fatalf("reserve: %d %s", r.status, r.raw)
	}
	theirs, token := r.text("operation", "id"), r.text("owner", "owner_token")
	for name, r := range map[string]reply{
		"tenant": g.do(limited, "POST", "/v1/reservations", `{"key":"k","kind":"credit.create","details":{},"caller":`+bob+`}`),
		"kind":   g.do(limited, "POST", "/v1/reservations", `{"key":"k","kind":"other","details":{},"caller":`+alice+`}`),
		"admit": g.do(limited, "POST", "/v1/admissions",
			strings.Replace(admission(g.grant("stored", "r"), id, bob), "credit.create", "other", 1)),
		"list": g.do(limited, "GET", "/v1/operations?tenant=b", ""),
		"take": g.do(limited, "POST", "/v1/takeovers", `{"kinds":["other"],"limit":5}`),
	} {
		if r.status != 403 || r.problem() != "not-permitted" {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
	}
	for name, c := range map[string][3]string{
		"read":   {"GET", "/v1/operations/" + theirs, ""},
		"log":    {"GET", "/v1/operations/" + theirs + "/observations", ""},
		"check":  {"POST", "/v1/operations/" + theirs + "/submission-checks", `{"owner_token":"` + token + `"}`},
		"record": {"POST", "/v1/operations/" + theirs + "/outcomes", `{"owner_token":"` + token + `","outcome":{"status":"failed"}}`},
	} {
		absent := strings.Replace(c[1], theirs, pawl.NewOperationID().String(), 1)
		got, none := g.do(limited, c[0], c[1], c[2]), g.do(limited, c[0], absent, c[2])
		if got.status != 404 || got.raw != none.raw {
			t.Errorf("[S1] %s: %d %s, want as for an id that never existed: %s", name, got.status, got.raw, none.raw)
		}
	}
	if r := g.do(limited, "GET", "/v1/operations", ""); len(r.list("operations")) != 0 {
		t.Errorf("list shows another tenant's: %s", r.raw)
	}
}

// TestStatus is [S1]: an operation's own caller reads it, a stranger hears what
// is heard of an id that never existed (C-B15).
func TestStatus(t *testing.T) {
	g := newRig(t, nil)
	id, _ := g.admitted()
	const exec = "exec-0123456789abcdef"
	own := g.do(exec, "GET", "/v1/operations/"+id, "", "Pawl-Principal", "alice", "Pawl-Tenant", "a")
	if own.status != 200 || own.text("status") != "admitted" || own.member("fence") != nil || own.text("details", "amount") != "250.00" {
		t.Fatalf("own: %d %s", own.status, own.raw)
	}
	absent := g.do(exec, "GET", "/v1/operations/"+pawl.NewOperationID().String(), "", "Pawl-Principal", "alice", "Pawl-Tenant", "a")
	for _, h := range [][]string{
		{"Pawl-Principal", "alice", "Pawl-Tenant", "b"},
		{"Pawl-Principal", "alice"},
		{"Pawl-Principal", "mallory", "Pawl-Tenant", "a"},
		{"Pawl-Principal", "alice", "Pawl-Tenant", "a", "Pawl-Authority", "elsewhere"},
	} {
		if r := g.do(exec, "GET", "/v1/operations/"+id, "", h...); r.status != 404 || r.raw != absent.raw {
			t.Errorf("[S1] %v: %d %s, want %s", h, r.status, r.raw, absent.raw)
		}
	}
	if r := g.do(exec, "GET", "/v1/operations/"+id, ""); r.status != 400 {
		t.Errorf("no caller: %d %s", r.status, r.raw)
	}
	if r := g.do(exec, "GET", "/v1/operations/"+id, "", "Pawl-Principal", "alice%20", "Pawl-Tenant", "a"); r.status != 404 {
		t.Errorf("[A5] a caller whose name ends in a blank: %d %s", r.status, r.raw)
	}
	if r := g.do(exec, "GET", "/v1/operations/"+id, "", "Pawl-Principal", "a%6Cice", "Pawl-Tenant", "a"); r.status != 200 {
		t.Errorf("a percent-encoded caller: %d %s", r.status, r.raw)
	}
	for _, q := range []string{"?status=failed;x=1", "?tenant=%zz", "?tenants=b", "?limit=1&limit=2", "?kind=BAD", "?wait=1s"} {
		if r := g.do("all-0123456789abcdef", "GET", "/v1/operations"+q, ""); r.status != 400 {
			t.Errorf("query %s: %d %s", q, r.status, r.raw)
		}
	}
	operator := g.do("all-0123456789abcdef", "GET", "/v1/operations/"+id, "")
	if operator.status != 200 || operator.member("fence") != 1.0 || strings.Contains(operator.raw, "token") {
		t.Errorf("operator: %d %s", operator.status, operator.raw)
	}
	if r := g.do("all-0123456789abcdef", "GET", "/v1/operations/not-an-id", ""); r.status != 400 {
		t.Errorf("malformed id: %d %s", r.status, r.raw)
	}
}

// TestOwnerCalls is C-A21 and the shapes of an owner's calls.
func TestOwnerCalls(t *testing.T) {
	g := newRig(t, nil)
	id, token := g.admitted()
	_, foreign := g.admitted()
	at := "/v1/operations/" + id
	if r := g.post(at+"/submission-checks", `{"owner_token":"`+token+`"}`); r.status != 200 || r.member("may_submit") != true {
		t.Errorf("[O5] check: %d %s", r.status, r.raw)
	}
	if r := g.post(at+"/renewals", `{"owner_token":"`+token+`"}`); r.status != 200 || r.text("owner", "lease_until") == "" {
		t.Errorf("[O3] renewal: %d %s", r.status, r.raw)
	}
	for name, tok := range map[string]string{"C-A21 foreign": foreign, "C-A21 none": "", "C-A21 forged": token[1:] + "A"} {
		for _, call := range []string{"/submission-checks", "/renewals"} {
			if r := g.post(at+call, `{"owner_token":"`+tok+`"}`); r.status != 404 {
				t.Errorf("%s%s: %d %s", name, call, r.status, r.raw)
			}
		}
	}
	r := g.post(at+"/outcomes", `{"owner_token":"`+token+`","outcome":{"status":"succeeded","result":"eyJjcmVkaXQiOiJjcl8xIn0="}}`)
	if r.status != 200 || r.text("operation", "status") != "succeeded" || r.text("operation", "result_json", "credit") != "cr_1" {
		t.Errorf("record: %d %s", r.status, r.raw)
	}
	late := g.post(at+"/outcomes", `{"owner_token":"`+token+`","outcome":{"status":"succeeded","result":"eyJjcmVkaXQiOiJjcl8xIn0="}}`)
	if late.status != 409 || late.problem() != "fenced" || late.text("disposition") != "duplicate" {
		t.Errorf("[M3] late: %d %s", late.status, late.raw)
	}
	if r := g.post(at+"/submission-checks", `{"owner_token":"`+token+`"}`); r.status != 200 || r.member("may_submit") != false {
		t.Errorf("check of a final operation: %d %s", r.status, r.raw)
	}
}

// TestEvidence: the evidence door over the wire, C-E3, C-E14 and the role.
func TestEvidence(t *testing.T) {
	g := newRig(t, nil)
	id, token := g.admitted()
	at := "/v1/operations/" + id + "/observations"
	statement := func(token, amount string) string {
		proof := ""
		if token != "" {
			proof = `"token":"` + token + `",`
		}
		return `{` + proof + `"kind":"credit.create","details":{"account":"A-1187","amount":"` + amount + `"},"caller":` + alice +
			`,"outcome":{"status":"succeeded","result_json":{"credit":"cr_9"}}}`
	}
	if r := g.do("exec-0123456789abcdef", "POST", at, statement("", "250.00")); r.status != 404 {
		t.Errorf("C-E14 no proof: %d %s", r.status, r.raw)
	}
	if r := g.do("exec-0123456789abcdef", "POST", at, statement(token, "1.00")); r.status != 200 ||
		r.text("disposition") != "mismatch" || r.member("operation") != nil {
		t.Errorf("C-E3 mismatch: %d %s", r.status, r.raw)
	}
	if r := g.post(at, statement("", "250.00")); r.status != 200 || r.text("disposition") != "applied" ||
		r.text("operation", "status") != "succeeded" || r.member("operation", "mismatch_seen") != true {
		t.Errorf("[M1] role evidence: %d %s", r.status, r.raw)
	}
	log := g.do("all-0123456789abcdef", "GET", at, "")
	if entries := log.list("observations"); log.status != 200 || len(entries) != 3 {
		t.Errorf("[M9] log: %d %s", log.status, log.raw)
	}
}

// TestRevocation is [R1] and [R2] over the wire, C-C3 included.
func TestRevocation(t *testing.T) {
	g := newRig(t, nil)
	grant := g.grant("token", "r1")
	withToken := `{"token":` + grant + `,"reason":"withdrawn"}`
	for _, want := range []string{"revoked", "already_revoked"} {
		if r := g.post("/v1/revocations", withToken); r.status != 200 || r.text("state") != want {
			t.Errorf("got %d %s, want %s", r.status, r.raw, want)
		}
	}
	if r := g.post("/v1/admissions", admission(grant, pawl.NewOperationID().String(), alice)); r.status != 409 {
		t.Errorf("[R1] revoked grant: %d %s", r.status, r.raw)
	}
	used := g.grant("stored", "r2")
	if r := g.post("/v1/admissions", admission(used, pawl.NewOperationID().String(), alice)); r.status != 201 {
		t.Fatalf("admit: %d %s", r.status, r.raw)
	}
	byKey := strings.TrimSuffix(used, "}") + `,"reason":"too late"}`
	if r := g.post("/v1/revocations", byKey); r.status != 200 || r.text("state") != "already_admitted" {
		t.Errorf("[R1] used grant: %d %s", r.status, r.raw)
	}
	if r := g.post("/v1/revocations", strings.Replace(byKey, `,"reason":"too late"`, "", 1)); r.status != 400 {
		t.Errorf("[R4] no reason: %d %s", r.status, r.raw)
	}
	unknown := `{"issuer":"shop","grant_id":"never","reason":"x"}`
	if r := g.post("/v1/revocations", unknown); r.status != 403 || r.problem() != "issuance-not-proven" {
		t.Errorf("[R2] no proof: %d %s", r.status, r.raw)
	}
	mine, none := g.do("issuer-x-0123456789ab", "POST", "/v1/revocations", byKey), g.do("issuer-x-0123456789ab", "POST", "/v1/revocations", unknown)
	if mine.status != 403 || mine.problem() != "issuance-not-proven" || mine.raw != none.raw {
		t.Errorf("[R2] another issuer's: %s and %s, want the same", mine.raw, none.raw)
	}
}

// TestReservations is [B1] and [B2] over the wire.
func TestReservations(t *testing.T) {
	g := newRig(t, nil)
	body := `{"key":"k","kind":"credit.create","details":{"n":1},"caller":` + alice + `}`
	first, again := g.post("/v1/reservations", body), g.post("/v1/reservations", body)
	if first.status != 201 || first.text("outcome") != "reserved" || again.status != 200 || again.text("outcome") != "joined" {
		t.Fatalf("%d %s, %d %s", first.status, first.raw, again.status, again.raw)
	}
	other := g.post("/v1/reservations", strings.Replace(body, `"n":1`, `"n":2`, 1))
	if other.status != 409 || other.problem() != "lock-mismatch" || strings.Contains(other.raw, first.text("operation", "id")) {
		t.Errorf("[B1] other lock: %d %s", other.status, other.raw)
	}
	neighbour := g.post("/v1/reservations", strings.Replace(body, `"tenant":"a"`, `"tenant":"b"`, 1))
	if neighbour.status != 201 {
		t.Errorf("[B2] another tenant: %d %s", neighbour.status, neighbour.raw)
	}
}

// TestTakeoverAndResolution: an executor takes a stalled operation over, hands it
// to a person, and the person decides [O2].
func TestTakeoverAndResolution(t *testing.T) {
	g := newRig(t, &pawl.Config{Timings: shortLeases()})
	id, _ := g.admitted()
	var taken reply
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for len(taken.list("operations")) == 0 { // until the lease is over on the store's clock
		taken = g.post("/v1/takeovers", `{"limit":10}`)
		if taken.status != 200 {
			t.Fatalf("take over: %d %s", taken.status, taken.raw)
		}
		<-poll.C
	}
	ops := taken.list("operations")
	token := ops[0].(map[string]any)["owner"].(map[string]any)["owner_token"].(string)
	at := "/v1/operations/" + id
	if r := g.post(at+"/submission-checks", `{"owner_token":"`+token+`"}`); r.status != 200 || r.member("may_submit") != false ||
		r.text("reason") != "no_contract" {
		t.Errorf("C-D20: %d %s", r.status, r.raw)
	}
	if r := g.post(at+"/resolutions", `{"status":"failed","note":"n"}`); r.status != 409 || r.problem() != "not-resolvable" {
		t.Errorf("resolve under a live lease: %d %s", r.status, r.raw)
	}
	hand := g.post(at+"/outcomes", `{"owner_token":"`+token+`","outcome":{"status":"needs_reconciliation","reason":"no look-up"}}`)
	if hand.status != 200 || hand.text("operation", "status") != "needs_reconciliation" {
		t.Fatalf("hand over: %d %s", hand.status, hand.raw)
	}
	done := g.post(at+"/resolutions", `{"status":"succeeded","result":"b2s=","note":"seen in the provider's books"}`)
	if done.status != 200 || done.text("operation", "status") != "succeeded" {
		t.Errorf("resolve: %d %s", done.status, done.raw)
	}
}

// TestProblemPages: every problem's type is a page.
func TestProblemPages(t *testing.T) {
	g := newRig(t, nil)
	for _, row := range pawl.Table() {
		name := pawl.Reason("").Public(row.Class)
		if r := g.do("", "GET", "/problems/"+name, ""); r.status != 200 || !strings.Contains(r.raw, name) {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
	}
	if r := g.do("", "GET", "/problems/nothing", ""); r.status != 404 {
		t.Errorf("unknown problem: %d", r.status)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if r := g.do("", "GET", path, ""); r.status != 200 {
			t.Errorf("%s: %d %s", path, r.status, r.raw)
		}
	}
}

// TestZeroValues: a server without authentication cannot be made, and a zero
// credential may do nothing.
func TestZeroValues(t *testing.T) {
	if _, err := service.New(nil, nil, nil); err == nil {
		t.Error("a server without a gate")
	}
	if (service.Credential{}).Has(service.Roles()...) {
		t.Error("the zero credential has a role")
	}
	if _, err := (service.StaticTokens{service.HashToken(""): {}}).Authenticate(t.Context(), ""); err == nil {
		t.Error("the empty token is accepted")
	}
}
