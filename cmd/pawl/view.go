package main

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/pawl-go/pawl"
)

// operationJSON is an operation as --json prints it, in the names of the API.
type operationJSON struct {
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
	CreatedAt         time.Time       `json:"created_at"`
	SettledAt         *time.Time      `json:"settled_at,omitempty"`
	Result            *string         `json:"result,omitempty"`
	ResultJSON        json.RawMessage `json:"result_json,omitempty"`
	Reason            string          `json:"reason,omitempty"`
	MismatchSeen      bool            `json:"mismatch_seen"`
	ContradictionSeen bool            `json:"contradiction_seen"`
	DivergenceSeen    bool            `json:"divergence_seen"`
	Fence             uint64          `json:"fence"`
	LeaseUntil        time.Time       `json:"lease_until"`
	SubmitBy          time.Time       `json:"submit_by"`
	Observations      uint64          `json:"observations"`
}

func operationAsJSON(o pawl.Operation) operationJSON {
	v := operationJSON{
		ID: o.ID.String(), Kind: o.Intent.Kind, Status: o.Status, Details: o.Intent.Details,
		Authority: o.Caller.Authority, Principal: o.Caller.Principal, Tenant: o.Caller.Tenant,
		Issuer: o.Grant.Issuer, Namespace: o.Grant.Namespace, GrantID: o.Grant.ID,
		CreatedAt: o.CreatedAt.UTC(), Reason: o.Reason, MismatchSeen: o.MismatchSeen,
		ContradictionSeen: o.ContradictionSeen, DivergenceSeen: o.DivergenceSeen,
		Fence: o.Fence, LeaseUntil: o.LeaseUntil.UTC(), SubmitBy: o.SubmitBy.UTC(), Observations: o.Observations,
	}
	if !o.SettledAt.IsZero() {
		at := o.SettledAt.UTC()
		v.SettledAt = &at
	}
	if o.Result != nil {
		b64 := base64.StdEncoding.EncodeToString(o.Result)
		v.Result = &b64
		if json.Valid(o.Result) {
			v.ResultJSON = o.Result
		}
	}
	return v
}

// operationFields is an operation for people.
func operationFields(o pawl.Operation) []field {
	grant := ""
	if !o.Grant.IsZero() {
		grant = o.Grant.ID + " of " + o.Grant.Issuer
	}
	fields := []field{
		{"operation", o.ID.String()},
		{"status", o.Status.String()},
		{"kind", string(o.Intent.Kind)},
		{"details", string(o.Intent.Details.JSON())},
		{"principal", o.Caller.Principal},
		{"tenant", o.Caller.Tenant},
		{"authority", o.Caller.Authority},
		{"grant", grant},
		{"created", when(o.CreatedAt)},
		{"settled", when(o.SettledAt)},
		{"reason", o.Reason},
	}
	if o.Result != nil {
		fields = append(fields, field{"result", string(o.Result)})
	}
	if !o.Status.Final() {
		fields = append(fields, field{"lease until", when(o.LeaseUntil)}, field{"submit by", when(o.SubmitBy)})
	}
	for _, f := range []struct {
		set  bool
		name string
	}{
		{o.MismatchSeen, "mismatch seen"}, {o.ContradictionSeen, "contradiction seen"}, {o.DivergenceSeen, "divergence seen"},
	} {
		if f.set {
			fields = append(fields, field{f.name, "yes: a second effect may exist"})
		}
	}
	return fields
}
