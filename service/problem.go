package service

import (
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"strconv"

	"github.com/pawl-go/pawl"
)

// Problem is a problem document (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Retry says that the same request may be sent again as it is.
	Retry bool `json:"retry,omitempty"`
	// Disposition tells what became of an outcome that was refused at the owner's
	// door and went to the evidence door [M3].
	Disposition pawl.Disposition `json:"disposition,omitempty"`
}

// problemKind is one stable problem name with its page.
type problemKind struct {
	name, title, meaning string
	status               int
}

// problems are all problem names: those of [pawl.Reason.Public] and those of
// HTTP itself. docs/errors.md is checked against this table.
func problems() []problemKind {
	return []problemKind{
		{"malformed-request", "The request is malformed", "Nothing ran and nothing was written. Fix the request.", 400},
		{"not-authenticated", "No valid bearer token", "Send a valid token in the Authorization header.", 401},
		{"not-permitted", "The credential does not permit this", "The credential lacks the role, or is limited to other tenants, kinds or issuers.", 403},
		{"grant-not-valid", "The grant is not valid for this", "The grant is not authentic, not for this caller, intent or store, or past its deadline. Nothing was written; the right request still succeeds.", 403},
		{"issuance-not-proven", "Nothing proves that this grant was issued", "Present the signed grant, or revoke a grant that was issued here.", 403},
		{"precheck-refused", "The effect's own check refused", "Nothing was spent.", 409},
		{"grant-not-available", "The grant is not available", "It was used or withdrawn, or the operation id belongs to another operation. Nothing ran.", 409},
		{"fenced", "Not the owner any more", "Another owner, a final outcome, or the end of the lease or of the submission deadline came first.", 409},
		{"lock-mismatch", "The lock does not match", "The key is reserved for another intent or authority. Nothing ran.", 409},
		{"request-mismatch", "The request id was used for other content", "Use a new request id for a new grant.", 409},
		{"not-resolvable", "The operation cannot be resolved now", "A person resolves unknown, needs_reconciliation or conflict, and only while no lease is live.", 409},
		{"rate-limited", "Too many requests of this sort", "Wait and repeat the request.", 429},
		{"not-found", "Not found", "It does not exist, or it is not yours; the two cannot be told apart.", 404},
		{"method-not-allowed", "The method is not allowed here", "Use one of the methods in the Allow header.", 405},
		{"not-confirmed", "The admission is not confirmed", "Nothing ran. It may or may not have been committed: repeat the request with the same operation id.", 503},
		{"unavailable", "The store cannot be asked now", "Repeat the request.", 503},
		{"misconfigured", "The server is not configured for this", "An operator must change the configuration.", 500},
		{"defect", "A defect in the server", "It was logged. Whether anything happened is not known.", 500},
	}
}

func problemNamed(name string) problemKind {
	all := problems()
	for _, p := range all {
		if p.name == name {
			return p
		}
	}
	return all[len(all)-1]
}

// fail answers with the problem document of an error. Callers get the stable
// name [S2]; the note of a malformed request is safe to show, for it names
// members and never values.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	row, known := pawl.Row(err)
	name := "defect"
	if known {
		name = pawl.ReasonOf(err).Public(row.Class)
	}
	kind := problemNamed(name)
	p := Problem{Type: "/problems/" + name, Title: kind.title, Status: kind.status, Detail: kind.meaning, Retry: row.Retry}
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Class == pawl.ErrInvalid && e.Note != "" {
		p.Detail = e.Note
	}
	if d, ok := errors.AsType[*fencedError](err); ok {
		p.Disposition = d.disposition
	}
	s.note(r, name, err)
	writeProblem(w, p)
}

// failAs answers with a problem of HTTP itself.
func failAs(w http.ResponseWriter, name string) {
	kind := problemNamed(name)
	writeProblem(w, Problem{Type: "/problems/" + name, Title: kind.title, Status: kind.status, Detail: kind.meaning})
}

func writeProblem(w http.ResponseWriter, p Problem) {
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(`{"type":"/problems/defect","status":500}`)
	}
	writeBody(w, p.Status, "application/problem+json", body)
}

func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that hung up has lost its answer, nothing else
}

// fencedError carries what became of an outcome at the evidence door.
type fencedError struct {
	err         error
	disposition pawl.Disposition
}

func (e *fencedError) Error() string { return e.err.Error() }
func (e *fencedError) Unwrap() error { return e.err }

const problemPage = `<!doctype html><meta charset="utf-8"><title>{{.Title}}</title>
<h1>{{.Title}}</h1><p><code>/problems/{{.Name}}</code>, HTTP {{.Status}}</p><p>{{.Meaning}}</p>
`

// problem serves the page of a problem's type.
func (s *Server) problem(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	kind := problemNamed(name)
	if kind.name != name {
		failAs(w, "not-found")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	_ = s.page.Execute(w, map[string]any{
		"Title": kind.title, "Name": kind.name, "Status": kind.status, "Meaning": kind.meaning,
	})
}

func parsePage() (*template.Template, error) { return template.New("problem").Parse(problemPage) }
