package service

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/canonical"
)

// Bytes of a request's body. Details may arrive with other spelling than their
// canonical form; a result is bounded so that one far over pawl.MaxResult can
// still be reported and is then kept as size and digest.
const (
	maxBody       = 256 << 10
	maxResultBody = 16 << 20
)

// read decodes a body strictly: exact names, nothing unknown, nothing twice.
func read[T any](w http.ResponseWriter, r *http.Request, limit int64) (v T, err error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return v, malformed(pawl.ReasonTooLarge, "the body is too large")
		}
		return v, malformed(pawl.ReasonMalformed, "the body could not be read")
	}
	return readBytes[T](raw, int(limit))
}

// readBytes is read for a member that was kept raw.
func readBytes[T any](raw []byte, limit int) (v T, err error) {
	if err := canonical.Decode(raw, limit, &v); err != nil {
		bad, ok := errors.AsType[*canonical.Error](err)
		if !ok {
			return v, err
		}
		note := "the body is not accepted: " + bad.Error()
		if bad.Pointer != "" {
			note += ", member " + bad.Pointer
		}
		return v, malformed(pawl.ReasonMalformed, note)
	}
	return v, nil
}

func malformed(r pawl.Reason, note string) error {
	return &pawl.Error{Class: pawl.ErrInvalid, Reason: r, Note: note}
}

// callerBody is whom an executor acts for.
type callerBody struct {
	Principal  string   `json:"principal"`
	Tenant     string   `json:"tenant"`
	Authority  string   `json:"authority"`
	Scopes     []string `json:"scopes"`
	Generation string   `json:"generation"`
}

func (c callerBody) caller() pawl.Caller {
	return pawl.Caller{
		Authority: c.Authority, Principal: c.Principal, Tenant: c.Tenant, Scopes: c.Scopes, Generation: c.Generation,
	}
}

// outcomeBody is what happened. A result is base64, or any JSON value, whose
// bytes are kept as they were sent.
type outcomeBody struct {
	Status     string         `json:"status"`
	Result     *string        `json:"result"`
	ResultJSON jsontext.Value `json:"result_json"`
	Reason     string         `json:"reason"`
}

// outcome reads an outcome. There is no default: a missing status is malformed
// rather than unknown, for whoever writes requests by hand means something.
func (b outcomeBody) outcome() (pawl.Outcome, error) {
	verdict, err := pawl.ParseVerdict(b.Status)
	if err != nil {
		return pawl.Outcome{}, malformed(pawl.ReasonMalformed, "outcome status is not one of succeeded, failed, unknown, needs_reconciliation")
	}
	if err := pawl.CheckNote("reason", b.Reason); err != nil {
		return pawl.Outcome{}, err
	}
	hasResult := b.Result != nil || b.ResultJSON != nil
	if verdict != pawl.VerdictSucceeded && hasResult {
		return pawl.Outcome{}, malformed(pawl.ReasonMalformed, "only a success has a result")
	}
	if b.Result != nil && b.ResultJSON != nil {
		return pawl.Outcome{}, malformed(pawl.ReasonMalformed, "result and result_json are both given")
	}
	switch verdict {
	case pawl.VerdictSucceeded:
		if b.Reason != "" {
			return pawl.Outcome{}, malformed(pawl.ReasonMalformed, "a success has no reason")
		}
		return b.success()
	case pawl.VerdictFailed:
		return pawl.Failed(b.Reason), nil
	case pawl.VerdictNeedsReconciliation:
		return pawl.NeedsReconciliation(b.Reason), nil
	default:
		return pawl.Unknown(b.Reason), nil
	}
}

func (b outcomeBody) success() (pawl.Outcome, error) {
	if b.Result == nil {
		return pawl.Succeeded([]byte(b.ResultJSON)), nil
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(*b.Result)
	if err != nil || strings.ContainsAny(*b.Result, "\r\n") {
		return pawl.Outcome{}, malformed(pawl.ReasonMalformed, "result is not base64; use result_json for a JSON value")
	}
	return pawl.Succeeded(raw), nil
}
