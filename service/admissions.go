package service

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-go/pawl"
)

// maxLifetimeSeconds keeps a lifetime within what a time.Duration holds; the
// store's policy has the real limit.
const maxLifetimeSeconds = 100 * 365 * 24 * 60 * 60

// admissionBody presents a grant: a token, or the key of a stored grant.
type admissionBody struct {
	Grant             jsontext.Value `json:"grant"`
	OperationID       string         `json:"operation_id"`
	SealedOperationID string         `json:"sealed_operation_id"`
	Kind              pawl.Kind      `json:"kind"`
	Details           jsontext.Value `json:"details"`
	Caller            callerBody     `json:"caller"`
}

type keyBody struct {
	Issuer    string `json:"issuer"`
	Namespace string `json:"namespace"`
	GrantID   string `json:"grant_id"`
}

func (k keyBody) key() pawl.GrantKey {
	return pawl.GrantKey{Issuer: k.Issuer, Namespace: k.Namespace, ID: k.GrantID}
}

func (b admissionBody) request() (pawl.Request, error) {
	r := pawl.Request{SealedOperationID: b.SealedOperationID, Kind: b.Kind, Details: b.Details, Caller: b.Caller.caller()}
	if b.OperationID != "" || b.SealedOperationID == "" {
		id, err := pawl.ParseOperationID(b.OperationID)
		if err != nil {
			return r, err
		}
		r.OperationID = id
	}
	switch b.Grant.Kind() {
	case '"':
		token, err := jsontext.AppendUnquote(nil, b.Grant)
		if err != nil || len(token) == 0 {
			return r, malformed(pawl.ReasonMalformed, "grant is not a token")
		}
		r.Token = string(token)
	case '{':
		k, err := readBytes[keyBody](b.Grant, maxBody)
		if err != nil {
			return r, err
		}
		r.Stored = k.key()
		if err := r.Stored.Validate(); err != nil {
			return r, err
		}
	default:
		return r, malformed(pawl.ReasonMissing, "grant is missing")
	}
	return r, nil
}

// claimView is the answer of an admission or a reservation.
type claimView struct {
	Outcome      string        `json:"outcome"`
	Operation    OperationView `json:"operation"`
	Owner        *ownerView    `json:"owner,omitempty"`
	AttemptToken string        `json:"attempt_token,omitempty"`
}

func viewClaim(a pawl.Admitted, fresh, joined string) (status int, v claimView) {
	v = claimView{Outcome: joined, Operation: ViewOperation(a.Operation, false)}
	if !a.Fresh {
		v.AttemptToken = string(a.Owner.Token)
		return http.StatusOK, v
	}
	owner := viewOwner(a.Owner)
	v.Outcome, v.Owner = fresh, &owner
	return http.StatusCreated, v
}

func (s *Server) admit(w http.ResponseWriter, r *http.Request, c Credential) error {
	body, err := read[admissionBody](w, r, maxBody)
	if err != nil {
		return err
	}
	req, err := body.request()
	if err != nil {
		return err
	}
	if !c.allowsKind(req.Kind) || !c.allowsTenant(req.Caller.Tenant) {
		return outsideLimits()
	}
	req.Issuers = c.Issuers
	got, err := s.gate.Admit(r.Context(), req)
	if err != nil {
		return err
	}
	status, view := viewClaim(got, "admitted", "already_admitted")
	answer(w, status, view)
	return nil
}

type reservationBody struct {
	Scope   string         `json:"scope"`
	Key     string         `json:"key"`
	Kind    pawl.Kind      `json:"kind"`
	Details jsontext.Value `json:"details"`
	Caller  callerBody     `json:"caller"`
}

func (b reservationBody) request() (pawl.ReservedRequest, error) {
	r := pawl.ReservedRequest{Key: b.Key, Kind: b.Kind, Details: b.Details, Caller: b.Caller.caller()}
	switch b.Scope {
	case "", pawl.ScopePrincipal.String():
	case pawl.ScopeTenant.String():
		r.Scope = pawl.ScopeTenant
	default:
		return r, malformed(pawl.ReasonMalformed, "scope is not principal or tenant")
	}
	return r, nil
}

func (s *Server) reserve(w http.ResponseWriter, r *http.Request, c Credential) error {
	body, err := read[reservationBody](w, r, maxBody)
	if err != nil {
		return err
	}
	req, err := body.request()
	if err != nil {
		return err
	}
	if !c.allowsKind(req.Kind) || !c.allowsTenant(req.Caller.Tenant) || len(c.Issuers) > 0 {
		return outsideLimits()
	}
	got, err := s.gate.Reserve(r.Context(), req)
	if err != nil {
		return err
	}
	status, view := viewClaim(got, "reserved", "joined")
	answer(w, status, view)
	return nil
}

type grantBody struct {
	RequestID string         `json:"request_id"`
	Subject   string         `json:"subject"`
	Tenant    string         `json:"tenant"`
	Authority string         `json:"authority"`
	Kind      pawl.Kind      `json:"kind"`
	Details   jsontext.Value `json:"details"`
	Lifetime  int64          `json:"lifetime_seconds"`
	Form      string         `json:"form"`
}

type grantView struct {
	Issuer    string `json:"issuer"`
	Namespace string `json:"namespace,omitempty"`
	GrantID   string `json:"grant_id"`
	Token     string `json:"token,omitempty"`
	ExpiresAt string `json:"expires_at"`
}

func (b grantBody) issuance(issuer string) (pawl.Issuance, error) {
	form, err := pawl.ParseForm(b.Form)
	if err != nil {
		return pawl.Issuance{}, malformed(pawl.ReasonMissing, "form is token or stored")
	}
	details, err := pawl.ParseDetails(b.Details)
	if err != nil {
		return pawl.Issuance{}, err
	}
	if b.Lifetime <= 0 || b.Lifetime > maxLifetimeSeconds {
		return pawl.Issuance{}, malformed(pawl.ReasonMalformed, "lifetime_seconds is out of range")
	}
	i := pawl.Issuance{
		RequestID: b.RequestID, Form: form, Issuer: issuer, Subject: b.Subject, Tenant: b.Tenant, Authority: b.Authority,
		Intent: pawl.Intent{Kind: b.Kind, Details: details}, Lifetime: time.Duration(b.Lifetime) * time.Second,
		GrantID: pawl.NewOperationID().String(),
	}
	return i, i.Validate()
}

// issue answers the same request with the same grant; the signature of a token
// may differ, the grant does not.
func (s *Server) issue(w http.ResponseWriter, r *http.Request, c Credential) error {
	body, err := read[grantBody](w, r, maxBody)
	if err != nil {
		return err
	}
	if s.issuer == "" {
		return &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonIssuerUnknown}
	}
	i, err := body.issuance(s.issuer)
	if err != nil {
		return err
	}
	if !c.allowsTenant(i.Tenant) || !c.allowsKind(i.Intent.Kind) || !c.allowsIssuer(i.Issuer) {
		return outsideLimits()
	}
	if i.Form == pawl.FormToken && s.signer == nil {
		return malformed(pawl.ReasonMalformed, "this server issues stored grants only")
	}
	got, err := s.gate.Issue(r.Context(), i)
	if err != nil {
		return err
	}
	v := grantView{
		Issuer: got.Grant.Key.Issuer, Namespace: got.Grant.Key.Namespace, GrantID: got.Grant.Key.ID,
		ExpiresAt: stamp(got.Grant.ExpiresAt),
	}
	if got.Grant.Form == pawl.FormToken {
		if v.Token, err = s.signer.Sign(got.Grant); err != nil {
			return err
		}
	}
	answer(w, http.StatusCreated, v)
	return nil
}

type revocationBody struct {
	Token     string `json:"token"`
	Issuer    string `json:"issuer"`
	Namespace string `json:"namespace"`
	GrantID   string `json:"grant_id"`
	Reason    string `json:"reason"`
}

// revoke answers the same for an issuer outside the credential's limits, whether
// the grant exists or not [R2].
func (s *Server) revoke(w http.ResponseWriter, r *http.Request, c Credential) error {
	body, err := read[revocationBody](w, r, maxBody)
	if err != nil {
		return err
	}
	if body.Reason == "" {
		return malformed(pawl.ReasonMissing, "reason is missing: why is kept with the revocation")
	}
	if !s.revocationAllowed(c) {
		return &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonRateLimited}
	}
	key := keyBody{Issuer: body.Issuer, Namespace: body.Namespace, GrantID: body.GrantID}.key()
	state, _, err := s.gate.Revoke(r.Context(), pawl.RevokeRequest{
		Token: body.Token, Key: key, By: c.Name, Reason: body.Reason, Issuers: c.Issuers, Tenants: c.Tenants, Kinds: c.Kinds,
	})
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]string{"state": string(state)})
	return nil
}
