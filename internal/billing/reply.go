package billing

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Codes of the provider's problem documents, in their "code" member.
const (
	codeInvalid     = "invalid_request"
	codeMismatch    = "idempotency_mismatch"
	codeInProgress  = "in_progress"
	codeDeclined    = "declined"
	codeInternal    = "internal_error"
	codeUnavailable = "unavailable"
	codeNoLookup    = "lookup_unavailable"
)

// problem is the RFC 9457 document of every answer that is not a success.
type problem struct {
	Title       string `json:"title"`
	Status      int    `json:"status"`
	Code        string `json:"code"`
	DeclineCode string `json:"decline_code,omitempty"`
}

// reply is an answer as bytes: what a key remembers and a replay repeats exactly.
type reply struct {
	Status   int             `json:"status"`
	Body     json.RawMessage `json:"body"`
	replayed bool
}

func problemReply(status int, code, title string) reply {
	return jsonReply(status, problem{Title: title, Status: status, Code: code})
}

func declinedReply(code string) reply {
	return jsonReply(http.StatusPaymentRequired, problem{
		Title: "the credit was declined and will not be made", Status: http.StatusPaymentRequired,
		Code: codeDeclined, DeclineCode: code,
	})
}

func jsonReply(status int, v any) reply {
	body, err := json.Marshal(v)
	if err != nil { // no value of this package can fail to marshal
		return reply{Status: http.StatusInternalServerError, Body: json.RawMessage(`{}`)}
	}
	return reply{Status: status, Body: body}
}

// head writes the status and headers; length is what the answer will claim to be.
func (a reply) head(w http.ResponseWriter, length int) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if a.Status >= http.StatusBadRequest {
		h.Set("Content-Type", "application/problem+json")
	}
	if a.Status == http.StatusConflict {
		h.Set("Retry-After", "1")
	}
	if a.replayed {
		h.Set(headerReplayed, "true")
	}
	h.Set("Content-Length", fmt.Sprint(length))
	w.WriteHeader(a.Status)
}

func (a reply) write(w http.ResponseWriter) {
	a.head(w, len(a.Body))
	_, _ = w.Write(a.Body) // the caller may have left; the books do not care
}
