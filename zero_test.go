package pawl_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// Whoever forgets to say claims nothing, permits nothing and admits nothing: the
// zero value of every type fails closed.
func TestZeroValuesFailClosed(t *testing.T) {
	var secret pawl.TokenSecret
	open := recordIn(t, pawl.StatusAdmitted)
	never := func(err error) bool { return err != nil }
	for name, closed := range map[string]bool{
		"Outcome is unknown":                     pawl.Outcome{}.Verdict() == pawl.VerdictUnknown && !pawl.Outcome{}.Verdict().Definite(),
		"Outcome has no result":                  pawl.Outcome{}.Result() == nil,
		"Admitted is not fresh":                  !pawl.Admitted{}.Fresh,
		"Permit grants nothing":                  !pawl.Permit{}.Granted,
		"Found is no answer":                     pawl.Found{}.String() == "no answer",
		"FoundEffect needs details":              pawl.FoundEffect(pawl.Details{}, pawl.Succeeded("x")).String() == "no answer",
		"FoundEffect needs a definite outcome":   fmt.Sprint(pawl.FoundEffect(open.Intent.Details, pawl.Outcome{})) == "no answer",
		"Viewer sees nothing":                    !pawl.Viewer{}.Sees(open) && !pawl.Viewer{}.Sees(pawl.Operation{}),
		"AsCaller of nobody sees nothing":        !pawl.AsCaller(pawl.Caller{}).Sees(pawl.Operation{}),
		"Status is none":                         !pawl.Status(0).Valid() && !pawl.Status(0).Open() && !pawl.Status(0).Final(),
		"Form is none":                           never(pawl.Grant{}.Validate()) && pawl.Form(0).String() == "invalid",
		"ProviderContract states nothing":        !pawl.ProviderContract{}.Stated(),
		"Inequality does not hold":               !pawl.Inequality{}.Holds(),
		"Timings are not valid":                  never(pawl.Timings{}.Validate()),
		"KindTimings are not valid":              never(func() error { t := pawl.DefaultTimings(); t.Default = pawl.KindTimings{}; return t.Validate() }()),
		"Policy agrees with nobody":              never(func() error { _, err := pawl.Policy{}.Agree(pawl.DefaultTimings().Policy()); return err }()),
		"Facts are unsafe":                       never(pawl.Facts{}.Err()) && errors.Is(pawl.Facts{}.Err(), pawl.ErrMisconfigured),
		"Admission is malformed":                 errors.Is(pawl.Admission{}.Validate(), pawl.ErrInvalid),
		"Reservation is malformed":               errors.Is(pawl.Reservation{}.Validate(), pawl.ErrInvalid),
		"Issuance is malformed":                  errors.Is(pawl.Issuance{}.Validate(), pawl.ErrInvalid),
		"Revocation is malformed":                errors.Is(pawl.Revocation{}.Validate(), pawl.ErrInvalid),
		"IntentRevocation is malformed":          errors.Is(pawl.IntentRevocation{}.Validate(), pawl.ErrInvalid),
		"Evidence is malformed":                  errors.Is(pawl.Evidence{}.Validate(), pawl.ErrInvalid),
		"Statement is malformed":                 errors.Is(pawl.Statement{}.Validate(), pawl.ErrInvalid),
		"Renewal is malformed":                   errors.Is(pawl.Renewal{}.Validate(), pawl.ErrInvalid),
		"TakeOver is malformed":                  errors.Is(pawl.TakeOver{}.Validate(), pawl.ErrInvalid),
		"Erasure is malformed":                   errors.Is(pawl.Erasure{}.Validate(), pawl.ErrInvalid),
		"Resolution is malformed":                errors.Is(pawl.Resolution{}.Validate(), pawl.ErrInvalid),
		"Caller is malformed":                    errors.Is(pawl.Caller{}.Validate(), pawl.ErrInvalid),
		"GrantKey is malformed":                  errors.Is(pawl.GrantKey{}.Validate(), pawl.ErrInvalid),
		"Intent is malformed":                    errors.Is(pawl.Intent{}.Validate(), pawl.ErrInvalid),
		"Kind is malformed":                      errors.Is(pawl.Kind("").Validate(), pawl.ErrInvalid),
		"OwnerToken proves nothing":              func() bool { _, ok := secret.Fence(open, ""); return !ok }(),
		"a grant of no time is late":             never(pawl.Grant{}.Timely(pawl.Findings{})),
		"an admission of nothing is refused":     never(func() error { _, err := pawl.Admission{}.Judge(pawl.Findings{}); return err }()),
		"KeyScope is the principal":              pawl.KeyScope(0) == pawl.ScopePrincipal,
		"an unclassed error is a defect":         func() bool { row, ok := pawl.Row(errors.New("x")); return !ok && row.Exit == 1 && row.HTTP == 500 }(),
		"an operation of nobody is not owned":    never(pawl.Operation{}.CheckOwner(0, true)) && never(pawl.Operation{}.CheckOwner(1, true)),
		"an operation of no time is not sent":    never(pawl.Operation{}.CheckSubmit(1, true, at(0))),
		"an operation of no status is not taken": !pawl.Operation{}.CanTakeOver(at(0)),
	} {
		if !closed {
			t.Errorf("zero values: %s: does not hold", name)
		}
	}
}

// Nothing secret reaches a log by accident [S2]: tokens, details and results are
// not told by formatting the values that hold them.
func TestNothingSecretIsPrinted(t *testing.T) {
	const secret = "s3cret"
	d := details(t, `{"card":"`+secret+`"}`)
	for name, v := range map[string]any{
		"owner token":     pawl.OwnerToken(secret),
		"owner":           pawl.Owner{Token: secret},
		"details":         d,
		"intent":          pawl.Intent{Kind: "x", Details: d},
		"outcome":         pawl.Succeeded(secret),
		"found":           pawl.FoundEffect(d, pawl.Succeeded(secret)),
		"request":         pawl.Request{Token: secret, Details: []byte(secret), SealedOperationID: secret},
		"revoke request":  pawl.RevokeRequest{Token: secret},
		"submission":      pawl.Submission{Details: d},
		"look-up":         pawl.Lookup{Details: d},
		"proposal":        pawl.Proposal{Details: d},
		"error with note": &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonPrecheck, Cause: errors.New(secret)},
	} {
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		for _, text := range []string{fmt.Sprint(v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), fmt.Sprintf("%s", v), log.String()} {
			if name == "error with note" && strings.HasPrefix(text, "&pawl.Error{") {
				continue // %#v of an error is for a debugger; no code of ours does it
			}
			if strings.Contains(text, secret) {
				t.Errorf("%s is printed: %s", name, text)
			}
		}
	}
}

// Limits hold at the edge and one past it.
func TestCase_CB6_Limits(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	detailsOf := func(n int) error {
		_, err := pawl.ParseDetails([]byte(`{"x":"` + x(n-8) + `"}`))
		return err
	}
	scopes := func(n int) (s []string) {
		for i := range n {
			s = append(s, fmt.Sprint("scope-", i))
		}
		return s
	}
	for name, c := range map[string]struct{ edge, past error }{
		"issuer":    {pawl.GrantKey{Issuer: x(255), ID: "g"}.Validate(), pawl.GrantKey{Issuer: x(256), ID: "g"}.Validate()},
		"namespace": {pawl.GrantKey{Issuer: "i", Namespace: x(255), ID: "g"}.Validate(), pawl.GrantKey{Issuer: "i", Namespace: x(256), ID: "g"}.Validate()},
		"grant id":  {pawl.GrantKey{Issuer: "i", ID: x(255)}.Validate(), pawl.GrantKey{Issuer: "i", ID: x(2700)}.Validate()},
		"1 MB":      {nil, pawl.GrantKey{Issuer: "i", ID: x(1 << 20)}.Validate()},
		"principal": {pawl.Caller{Principal: x(255)}.Validate(), pawl.Caller{Principal: x(256)}.Validate()},
		"tenant":    {pawl.Caller{Principal: "p", Tenant: x(255)}.Validate(), pawl.Caller{Principal: "p", Tenant: x(8000)}.Validate()},
		"scope":     {pawl.Caller{Principal: "p", Scopes: []string{x(255)}}.Validate(), pawl.Caller{Principal: "p", Scopes: []string{x(256)}}.Validate()},
		"scopes":    {pawl.Caller{Principal: "p", Scopes: scopes(64)}.Validate(), pawl.Caller{Principal: "p", Scopes: scopes(65)}.Validate()},
		"kind":      {pawl.Kind(x(64)).Validate(), pawl.Kind(x(65)).Validate()},
		"note":      {pawl.CheckNote("note", x(1024)), pawl.CheckNote("note", x(1025))},
		"details":   {detailsOf(pawl.MaxDetails), detailsOf(pawl.MaxDetails + 1)},
	} {
		if c.edge != nil {
			t.Errorf("%s at the limit: %v", name, c.edge)
		}
		if !errors.Is(c.past, pawl.ErrInvalid) {
			t.Errorf("%s past the limit: %v, want malformed", name, c.past)
		}
	}
	if got := pawl.Failed(x(2000)).Reason(); len(got) != pawl.MaxReason {
		t.Errorf("a reason of 2000 bytes becomes one of %d, want %d", len(got), pawl.MaxReason)
	}
}

// Identifiers and notes that no store could hold are malformed before one is
// asked; whatever an owner says as its reason is made one that is not.
func TestCase_CB5_MalformedText(t *testing.T) {
	for _, bad := range []string{"", "a\x00b", "a\nb", "a\tb", "a\u0085b", "a\x7fb", "a\xffb", "\xed\xa0\x80"} {
		if err := pawl.CheckID("id", bad); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("id %q: %v, want malformed", bad, err)
		}
	}
	for _, bad := range []string{"a\x00b", "a\rb", "a\x1bb", "a\xffb"} {
		if err := pawl.CheckNote("note", bad); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("note %q: %v, want malformed", bad, err)
		}
		for _, out := range []pawl.Outcome{pawl.Failed(bad), pawl.Unknown(bad), pawl.NeedsReconciliation(bad)} {
			if err := pawl.CheckNote("reason", out.Reason()); err != nil {
				t.Errorf("reason %q of %v: %v", bad, out, err)
			}
		}
	}
	for _, ok := range []string{"a b", " a", "a/b", "A", "é", "日本", "\u00a0"} {
		if err := pawl.CheckID("id", ok); err != nil {
			t.Errorf("id %q: %v", ok, err)
		}
	}
	if err := pawl.CheckNote("note", "two\nlines\tand a tab"); err != nil {
		t.Errorf("a note of two lines: %v", err)
	}
}

// Numbers that a double cannot hold, duplicate members, lone surrogates and NUL
// are malformed; an amount as text is kept exactly.
func TestCase_CB12_Details(t *testing.T) {
	for _, bad := range []string{
		"", "null", "[]", "1", `"x"`, `{`, `{} x`, `{"a":9007199254740993}`, `{"a":1e400}`, `{"a":1,"a":2}`, `{"a":"\u0000"}`,
		`{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `{"a":1,}`, `{'a':1}`,
	} {
		if d, err := pawl.ParseDetails([]byte(bad)); !errors.Is(err, pawl.ErrInvalid) || !d.IsZero() {
			t.Errorf("%s: %v, %v; want malformed", bad, d, err)
		}
	}
	if got := string(details(t, `{"amount":"9007199254740993.10"}`).JSON()); got != `{"amount":"9007199254740993.10"}` {
		t.Errorf("an amount as text became %s", got)
	}
	raw := []byte(`{"amount":"250.00"}`)
	d, err := pawl.ParseDetails(raw)
	if err != nil {
		t.Fatal(err)
	}
	copy(raw, `{"amount":"999.99"}`)
	d.JSON()[3] = 'X'
	if got := string(d.JSON()); got != `{"amount":"250.00"}` {
		t.Errorf("the caller's slice is shared: %s", got)
	}
}

// How long a refusal must be remembered [R3]: to the trusted deadline, and
// without one for the longest any grant may live.
func TestRefusalRetention(t *testing.T) {
	p := pawl.DefaultTimings().Policy()
	p.Leeways["v2"] = time.Minute
	for name, c := range map[string]struct {
		expires time.Time
		leeway  string
		want    time.Time
	}{
		"trusted expiry":          {at(100), "", at(105)},
		"under another leeway":    {at(100), "v2", at(160)},
		"leeway no longer known":  {at(100), "v9", at(160)},
		"expiry not known at all": {time.Time{}, "", at(0).Add(24*time.Hour + 5*time.Second + time.Minute)},
	} {
		if got := p.RefusalRetention(c.expires, c.leeway, at(0)); !got.Equal(c.want) {
			t.Errorf("%s: until %v, want %v", name, got, c.want)
		}
	}
}
