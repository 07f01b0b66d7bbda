package canonical_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/pawl-go/pawl/internal/canonical"
)

// request has a member of every kind that the service's requests have.
type request struct {
	ID      uuid.UUID         `json:"id"`
	Kind    string            `json:"kind"`
	Seconds int64             `json:"seconds"`
	Urgent  bool              `json:"urgent"`
	At      time.Time         `json:"at"`
	Scopes  []string          `json:"scopes"`
	Caller  caller            `json:"caller"`
	Labels  map[string]string `json:"labels"`
	Tenant  *string           `json:"tenant"`
	Outcome *outcome          `json:"outcome"`
	Details jsontext.Value    `json:"details"`
	Extra   jsontext.Value    `json:"extra"`
	Result  json.RawMessage   `json:"result"`
	Any     any               `json:"any"`
}

type caller struct {
	Principal string `json:"principal"`
}

type outcome struct {
	Status string `json:"status"`
}

func TestDecode(t *testing.T) {
	var got request
	body := []byte(`{
		"id": "0197b2c4-0000-7000-8000-000000000001", "kind": "pay", "seconds": 60, "urgent": true,
		"at": "2024-05-01T10:00:00Z", "scopes": ["a", "b"], "caller": {"principal": "p"}, "labels": {"Case": "x"},
		"tenant": null, "outcome": {"status": "failed"}, "details": { "b": 1.0, "a" : "\u00e9" }, "extra": null, "result": null, "any": [null, 1]
	}`)
	if err := canonical.Decode(body, 1<<10, &got); err != nil {
		t.Fatal(err)
	}
	for i := range body {
		body[i] = '#' // raw members must have memory of their own
	}
	want := request{
		ID: uuid.MustParse("0197b2c4-0000-7000-8000-000000000001"), Kind: "pay", Seconds: 60, Urgent: true,
		At: time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC), Scopes: []string{"a", "b"}, Caller: caller{"p"},
		Labels: map[string]string{"Case": "x"}, Outcome: &outcome{"failed"},
		Details: jsontext.Value(`{ "b": 1.0, "a" : "\u00e9" }`), Extra: jsontext.Value("null"), Result: json.RawMessage("null"), Any: []any{nil, 1.0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct {
		name, body string
		want       canonical.Reason
		pointer    string
	}{
		{"unknown member", `{"kind":"a","more":1}`, canonical.ReasonUnknownMember, "/more"},
		{"unknown member below", `{"caller":{"principal":"p","x":1}}`, canonical.ReasonUnknownMember, "/caller/x"},
		{"other letter case", `{"Kind":"a"}`, canonical.ReasonUnknownMember, "/Kind"},
		{"underscore added", `{"ki_nd":"a"}`, canonical.ReasonUnknownMember, "/ki_nd"},
		{"both letter cases", `{"kind":"a","KIND":"b"}`, canonical.ReasonUnknownMember, "/KIND"},
		{"duplicate", `{"kind":"a","kind":"b"}`, canonical.ReasonDuplicate, "/kind"},
		{"duplicate by escape", `{"kind":"a","\u006bind":"b"}`, canonical.ReasonDuplicate, "/kind"},
		{"duplicate in a raw member", `{"details":{"a":1,"a":1}}`, canonical.ReasonDuplicate, "/details/a"},
		{"NUL in a raw member", `{"details":{"a":"\u0000"}}`, canonical.ReasonNUL, "/details/a"},
		{"inexact number in a raw member", `{"details":{"a":9007199254740993}}`, canonical.ReasonNumber, "/details/a"},
		{"invalid UTF-8", "{\"kind\":\"\xff\"}", canonical.ReasonUTF8, "/kind"},
		{"lone surrogate", `{"kind":"\ud800"}`, canonical.ReasonSurrogate, "/kind"},
		{"trailing data", `{"kind":"a"}{}`, canonical.ReasonTrailing, ""},
		{"not an object", `[]`, canonical.ReasonNotObject, ""},
		{"null", `null`, canonical.ReasonNotObject, ""},
		{"string for a number", `{"seconds":"60"}`, canonical.ReasonWrongType, "/seconds"},
		{"fraction for an integer", `{"seconds":60.0}`, canonical.ReasonWrongType, "/seconds"},
		{"exponent for an integer", `{"seconds":6e1}`, canonical.ReasonWrongType, "/seconds"},
		{"integer too large", `{"seconds":1e20}`, canonical.ReasonWrongType, "/seconds"},
		{"number for a string", `{"kind":1}`, canonical.ReasonWrongType, "/kind"},
		{"object for a list", `{"scopes":{}}`, canonical.ReasonWrongType, "/scopes"},
		{"number in a list of strings", `{"scopes":["a",1]}`, canonical.ReasonWrongType, "/scopes/1"},
		{"malformed UUID", `{"id":"x"}`, canonical.ReasonWrongType, "/id"},
		{"malformed time", `{"at":"yesterday"}`, canonical.ReasonWrongType, "/at"},
		{"null string", `{"kind":null}`, canonical.ReasonWrongType, "/kind"},
		{"null number", `{"seconds":null}`, canonical.ReasonWrongType, "/seconds"},
		{"null boolean", `{"urgent":null}`, canonical.ReasonWrongType, "/urgent"},
		{"null UUID", `{"id":null}`, canonical.ReasonWrongType, "/id"},
		{"null time", `{"at":null}`, canonical.ReasonWrongType, "/at"},
		{"null list", `{"scopes":null}`, canonical.ReasonWrongType, "/scopes"},
		{"null in a list", `{"scopes":["a",null]}`, canonical.ReasonWrongType, "/scopes/1"},
		{"null object", `{"caller":null}`, canonical.ReasonWrongType, "/caller"},
		{"null below an object", `{"caller":{"principal":null}}`, canonical.ReasonWrongType, "/caller/principal"},
		{"null below a pointer", `{"outcome":{"status":null}}`, canonical.ReasonWrongType, "/outcome/status"},
		{"null map", `{"labels":null}`, canonical.ReasonWrongType, "/labels"},
		{"null in a map", `{"labels":{"a":null}}`, canonical.ReasonWrongType, "/labels/a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := request{Kind: "before"}
			refused := wantReason(t, canonical.Decode([]byte(test.body), 1<<10, &got), test.want)
			if refused.Pointer != test.pointer {
				t.Errorf("pointer %q, want %q", refused.Pointer, test.pointer)
			}
			if diff := cmp.Diff(request{Kind: "before"}, got); diff != "" {
				t.Errorf("a refused body was written all the same (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeMissingMembers(t *testing.T) {
	got := request{Kind: "before", Scopes: []string{"before"}}
	if err := canonical.Decode([]byte(`{"caller":{}}`), 1<<10, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(request{}, got); diff != "" {
		t.Errorf("missing members (-want +got):\n%s", diff)
	}
}

func TestDecodeLimit(t *testing.T) {
	body := []byte(`{"kind":"a"}`)
	var got request
	if err := canonical.Decode(body, len(body), &got); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	wantReason(t, canonical.Decode(body, len(body)-1, &got), canonical.ReasonTooLarge)
	wantReason(t, canonical.Decode(nil, 0, &got), canonical.ReasonSyntax)
}

// TestDecodeIntoAny is what a framework does that validates before it decodes.
func TestDecodeIntoAny(t *testing.T) {
	var got any
	if err := canonical.Decode([]byte(`{"a":[1,null,{"b":"c"}],"d":null}`), 1<<10, &got); err != nil {
		t.Fatal(err)
	}
	want := any(map[string]any{"a": []any{1.0, nil, map[string]any{"b": "c"}}, "d": nil})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

func TestDecodeNeedsAPointer(t *testing.T) {
	for _, dst := range []any{nil, request{}, (*request)(nil), "text"} {
		err := canonical.Decode([]byte(`{}`), 1<<10, dst)
		var refused *canonical.Error
		if err == nil || errors.As(err, &refused) {
			t.Errorf("into %T: got %v, want an error that does not blame the sender", dst, err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	var into struct {
		Kind    string         `json:"kind"`
		Caller  caller         `json:"caller"`
		Details jsontext.Value `json:"details"`
	}
	for name, body := range map[string]string{
		"no null":   `{"kind":"payment","caller":{"principal":"user-1"},"details":{"amount":"12.50","to":"GB33BUKB20201555555555"}}`,
		"with null": `{"kind":"payment","caller":{"principal":"user-1"},"details":{"amount":"12.50","to":null}}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := canonical.Decode([]byte(body), 1<<10, &into); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
