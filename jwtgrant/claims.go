package jwtgrant

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/canonical"
)

// authorization is RFC 9396's object with the members a grant has. Any other
// member would limit the authority in a way nobody here understands, so it is
// refused.
type authorization struct {
	Type    string          `json:"type"`
	Details json.RawMessage `json:"details"`
}

// payload is the claims as they are signed; absent ones are left out.
type payload struct {
	Issuer         string          `json:"iss"`
	Subject        string          `json:"sub"`
	Audience       string          `json:"aud"`
	ID             string          `json:"jti"`
	IssuedAt       int64           `json:"iat"`
	NotBefore      int64           `json:"nbf,omitempty"`
	ExpiresAt      int64           `json:"exp"`
	Tenant         string          `json:"tenant,omitempty"`
	Authority      string          `json:"authority,omitempty"`
	LeewayPolicy   string          `json:"leeway_policy,omitempty"`
	Confirmation   *confirmation   `json:"cnf,omitempty"`
	Authorizations []authorization `json:"authorization_details"`
}

type confirmation struct {
	Thumbprint Thumbprint `json:"jkt"`
}

// marshal writes the claims of a grant. Times are whole seconds already.
func marshal(g pawl.Grant, bound Thumbprint) ([]byte, error) {
	p := payload{
		Issuer: g.Key.Issuer, Subject: g.Subject, Audience: g.Realm, ID: g.Key.ID,
		IssuedAt: g.IssuedAt.Unix(), ExpiresAt: g.ExpiresAt.Unix(),
		Tenant: g.Tenant, Authority: g.Authority, LeewayPolicy: g.LeewayPolicy,
		Authorizations: []authorization{{Type: string(g.Intent.Kind), Details: g.Intent.Details.JSON()}},
	}
	if !g.NotBefore.IsZero() {
		p.NotBefore = g.NotBefore.Unix()
	}
	if bound != "" {
		p.Confirmation = &confirmation{Thumbprint: bound}
	}
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false) // escapes would only make the token longer
	if err := w.Encode(p); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// grant reads the claims of a verified token. The namespace is the verifier's to
// add [A5].
func (m members) grant() (g pawl.Grant, err error) {
	g.Form = pawl.FormToken
	texts := []struct {
		name     string
		required bool
		into     *string
	}{
		{"iss", true, &g.Key.Issuer},
		{"sub", true, &g.Subject},
		{"jti", true, &g.Key.ID},
		{"tenant", false, &g.Tenant},
		{"authority", false, &g.Authority},
		{"leeway_policy", false, &g.LeewayPolicy},
	}
	for _, t := range texts {
		if *t.into, err = m.id(t.name, t.required); err != nil {
			return pawl.Grant{}, err
		}
	}
	times := []struct {
		name     string
		required bool
		into     *time.Time
	}{{"iat", true, &g.IssuedAt}, {"nbf", false, &g.NotBefore}, {"exp", true, &g.ExpiresAt}}
	for _, t := range times {
		if *t.into, err = m.seconds(t.name, t.required); err != nil {
			return pawl.Grant{}, err
		}
	}
	if g.Realm, err = m.audience(); err != nil {
		return pawl.Grant{}, err
	}
	if g.Intent, err = m.intent(); err != nil {
		return pawl.Grant{}, err
	}
	return g, nil
}

// id reads an identifier. One that is there and empty is malformed: it is not
// another way to leave it out.
func (m members) id(name string, required bool) (string, error) {
	if _, has := m[name]; !has {
		if required {
			return "", invalid(pawl.ReasonMissing, "the token has no "+name)
		}
		return "", nil
	}
	value, ok := m.text(name)
	if !ok {
		return "", malformed("the token's " + name + " is not a string")
	}
	return value, pawl.CheckID("the token's "+name, value)
}

// seconds reads a time: an integer literal within the years that every store
// holds, so that milliseconds, floats and strings are malformed rather than
// another time.
func (m members) seconds(name string, required bool) (time.Time, error) {
	raw, has := m[name]
	if !has {
		if required {
			return time.Time{}, invalid(pawl.ReasonMissing, "the token has no "+name)
		}
		return time.Time{}, nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	earliest, latest := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	if err != nil || n < earliest || n >= latest {
		return time.Time{}, malformed("the token's " + name + " is not a time in whole seconds")
	}
	return time.Unix(n, 0).UTC(), nil
}

// audience reads the one audience. RFC 7519 lets one be written as a string or
// as a list of one; a grant for two stores could be used in both [A1].
func (m members) audience() (string, error) {
	raw, has := m["aud"]
	if !has {
		return "", invalid(pawl.ReasonMissing, "the token has no aud")
	}
	if raw[0] != '[' {
		return m.id("aud", true)
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return "", malformed("the token's aud is malformed")
	}
	if len(list) != 1 {
		return "", refused(pawl.ReasonRealm, "the token does not have exactly one audience")
	}
	return members{"aud": list[0]}.id("aud", true)
}

// intent reads authorization_details: exactly one object, with exactly the
// members type and details.
func (m members) intent() (pawl.Intent, error) {
	const name = "the token's authorization_details"
	raw, has := m["authorization_details"]
	if !has {
		return pawl.Intent{}, invalid(pawl.ReasonMissing, "the token has no authorization_details")
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) != 1 {
		return pawl.Intent{}, malformed(name + " are not a list of exactly one object")
	}
	var a authorization
	if canonical.Decode(list[0], MaxToken, &a) != nil || a.Details == nil {
		return pawl.Intent{}, malformed(name + " are not exactly one type with its details")
	}
	details, err := pawl.ParseDetails(a.Details)
	if err != nil {
		return pawl.Intent{}, invalid(pawl.ReasonOf(err), name+": the details are not one canonical JSON object of at most 16 KiB")
	}
	i := pawl.Intent{Kind: pawl.Kind(a.Type), Details: details}
	return i, i.Validate()
}

// boundTo reads cnf: empty for a bearer token. A binding of another sort than a
// thumbprint is one that cannot be checked here, and never none.
func (m members) boundTo() (Thumbprint, error) {
	raw, has := m["cnf"]
	if !has {
		return "", nil
	}
	var c confirmation
	if canonical.Decode(raw, MaxToken, &c) != nil {
		return "", refused(pawl.ReasonPossession, "the token's cnf is not exactly one jkt")
	}
	return c.Thumbprint, c.Thumbprint.check()
}

func (t Thumbprint) check() error {
	if digest, err := decode(string(t)); err != nil || len(digest) != 32 {
		return refused(pawl.ReasonPossession, "the token's jkt is not a SHA-256 thumbprint")
	}
	return nil
}
