package service

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-go/pawl"
)

// OperationView is an operation as JSON shows it to callers; the members of the last group
// are for operators and auditors only.
type OperationView struct {
	ID                string          `json:"id"`
	Kind              pawl.Kind       `json:"kind"`
	Status            pawl.Status     `json:"status"`
	Details           pawl.Details    `json:"details"`
	Authority         string          `json:"authority,omitempty"`
	Principal         string          `json:"principal"`
	Tenant            string          `json:"tenant"`
	Issuer            string          `json:"issuer,omitempty"`
	Namespace         string          `json:"namespace,omitempty"`
	GrantID           string          `json:"grant_id,omitempty"`
	CreatedAt         string          `json:"created_at"`
	SettledAt         string          `json:"settled_at,omitempty"`
	Result            *string         `json:"result,omitempty"`
	ResultJSON        json.RawMessage `json:"result_json,omitempty"`
	Reason            string          `json:"reason,omitempty"`
	MismatchSeen      bool            `json:"mismatch_seen"`
	ContradictionSeen bool            `json:"contradiction_seen"`
	DivergenceSeen    bool            `json:"divergence_seen"`
	Erased            bool            `json:"erased,omitempty"` // details and result were removed on request

	Fence        *uint64 `json:"fence,omitempty"`
	LeaseUntil   string  `json:"lease_until,omitempty"`
	SubmitBy     string  `json:"submit_by,omitempty"`
	Observations *uint64 `json:"observations,omitempty"`
}

// ViewOperation shows an operation, with the operators' members or without. It
// never holds a token [S2].
func ViewOperation(o pawl.Operation, operator bool) OperationView {
	v := OperationView{
		ID: o.ID.String(), Kind: o.Intent.Kind, Status: o.Status, Details: o.Intent.Details,
		Authority: o.Caller.Authority, Principal: o.Caller.Principal, Tenant: o.Caller.Tenant,
		Issuer: o.Grant.Issuer, Namespace: o.Grant.Namespace, GrantID: o.Grant.ID,
		CreatedAt: stamp(o.CreatedAt), SettledAt: stamp(o.SettledAt), Reason: o.Reason,
		MismatchSeen: o.MismatchSeen, ContradictionSeen: o.ContradictionSeen, DivergenceSeen: o.DivergenceSeen, Erased: o.Erased,
	}
	if o.Result != nil {
		b64 := base64.StdEncoding.EncodeToString(o.Result)
		v.Result = &b64
		if isJSON(o.Result) {
			v.ResultJSON = json.RawMessage(o.Result)
		}
	}
	if operator {
		v.Fence, v.Observations = &o.Fence, &o.Observations
		v.LeaseUntil, v.SubmitBy = stamp(o.LeaseUntil), stamp(o.SubmitBy)
	}
	return v
}

// isJSON is strict: a result that another parser could read otherwise is shown
// as base64 only.
func isJSON(b []byte) bool { return jsontext.Value(b).IsValid() }

// stamp is RFC 3339 in UTC with microseconds; empty for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// ownerView is what an owner is told. Only the answers of admission,
// reservation, takeover and renewal carry the token [O1].
type ownerView struct {
	Fence      uint64 `json:"fence"`
	Token      string `json:"owner_token"`
	LeaseUntil string `json:"lease_until"`
	SubmitBy   string `json:"submit_by"`
}

func viewOwner(o pawl.Owner) ownerView {
	return ownerView{Fence: o.Fence, Token: string(o.Token), LeaseUntil: stamp(o.LeaseUntil), SubmitBy: stamp(o.SubmitBy)}
}

// entryView is one line of an operation's log, for operators and auditors.
type entryView struct {
	Seq           uint64           `json:"seq"`
	Type          pawl.EntryType   `json:"type"`
	At            string           `json:"at"`
	LastAt        string           `json:"last_at"`
	Count         uint64           `json:"count"`
	Fence         uint64           `json:"fence"`
	Source        string           `json:"source,omitempty"`
	Outcome       string           `json:"outcome,omitempty"`
	Disposition   pawl.Disposition `json:"disposition,omitempty"`
	Contradiction bool             `json:"contradiction,omitempty"`
	MismatchOf    string           `json:"mismatch_of,omitempty"`
	ResultDigest  string           `json:"result_sha256,omitempty"`
	Reason        string           `json:"reason,omitempty"`
	LeaseUntil    string           `json:"lease_until,omitempty"`
}

func viewEntry(e pawl.Entry) entryView {
	v := entryView{
		Seq: e.Seq, Type: e.Type, At: stamp(e.At), LastAt: stamp(e.LastAt), Count: e.Count, Fence: e.Fence,
		Source: e.Source, Disposition: e.Disposition, Contradiction: e.Contradiction, MismatchOf: e.MismatchOf,
		Reason: e.Reason, LeaseUntil: stamp(e.LeaseUntil),
	}
	switch e.Type {
	case pawl.EntryOutcome, pawl.EntryEvidence, pawl.EntryResolution:
		v.Outcome = e.Verdict.String()
	}
	if e.Verdict == pawl.VerdictSucceeded {
		v.ResultDigest = e.ResultDigest.String()
	}
	return v
}
