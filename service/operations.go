package service

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawl-go/pawl"
)

// maxWait bounds the wait of a status call.
const maxWait = 60 * time.Second

// operation reads one operation: an executor as the caller in the headers, an
// auditor or operator as itself, or as that caller where it names one [S1].
func (s *Server) operation(w http.ResponseWriter, r *http.Request, c Credential) error {
	id, err := operationID(r)
	if err != nil {
		return err
	}
	q, err := query(r, []string{"wait"}, nil)
	if err != nil {
		return err
	}
	wait, err := waitOf(q)
	if err != nil {
		return err
	}
	as, operator, err := viewer(r, c)
	if err != nil {
		return err
	}
	if err := s.within(r.Context(), c, id); err != nil {
		return err
	}
	op, err := s.gate.Status(r.Context(), id, as, wait)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, ViewOperation(op, operator))
	return nil
}

// viewer is as whom a credential reads.
func viewer(r *http.Request, c Credential) (as pawl.Viewer, operator bool, err error) {
	var caller pawl.Caller
	for name, to := range map[string]*string{
		"Pawl-Principal": &caller.Principal, "Pawl-Tenant": &caller.Tenant, "Pawl-Authority": &caller.Authority,
	} {
		if *to, err = identity(r, name); err != nil {
			return as, false, err
		}
	}
	if caller.Principal == "" {
		if c.Has(RoleAudit, RoleOperate) && caller.Tenant == "" && caller.Authority == "" {
			return pawl.AsOperator(), true, nil
		}
		return as, false, malformed(pawl.ReasonMissing, "the header Pawl-Principal is missing")
	}
	if err := caller.Validate(); err != nil {
		return as, false, err
	}
	return pawl.AsCaller(caller), false, nil
}

// identity reads one header of a caller's identity, percent-encoded: HTTP trims
// blanks and has no place for other bytes, and distinct bytes are distinct callers
// [A5]. A header that is sent twice is malformed rather than half read.
func identity(r *http.Request, name string) (string, error) {
	values := r.Header.Values(name)
	if len(values) == 0 {
		return "", nil
	}
	v, err := url.PathUnescape(values[0])
	if err != nil || len(values) > 1 {
		return "", malformed(pawl.ReasonMalformed, "the header "+name+" is sent twice or is not percent-encoded")
	}
	return v, nil
}

// query reads the query strictly: no parameter that the call does not have, and
// only those of many more than once. A mistyped filter must not become no filter.
func query(r *http.Request, once, many []string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, malformed(pawl.ReasonMalformed, "the query cannot be read")
	}
	for name, values := range q {
		if slices.Contains(many, name) || slices.Contains(once, name) && len(values) == 1 {
			continue
		}
		return nil, malformed(pawl.ReasonMalformed, "the query has a parameter that is unknown here, or one more than once")
	}
	return q, nil
}

func waitOf(q url.Values) (time.Duration, error) {
	raw := q.Get("wait")
	if raw == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(raw)
	if err != nil || d < 0 || d > maxWait {
		return 0, malformed(pawl.ReasonMalformed, "wait is not a duration of 0 to 60 s")
	}
	return d, nil
}

// list reads a page of operations, within the limits of the credential.
func (s *Server) list(w http.ResponseWriter, r *http.Request, c Credential) error {
	f, err := filterOf(r, c)
	if err != nil {
		return err
	}
	page, err := s.gate.List(r.Context(), f)
	if err != nil {
		return err
	}
	views := make([]OperationView, 0, len(page.Operations))
	for _, o := range page.Operations {
		views = append(views, ViewOperation(o, true))
	}
	answer(w, http.StatusOK, struct {
		Operations []OperationView `json:"operations"`
		Next       string          `json:"next,omitempty"`
	}{views, page.Next})
	return nil
}

// filterOf intersects what is asked for with the limits.
func filterOf(r *http.Request, c Credential) (f pawl.Filter, err error) {
	q, err := query(r, []string{"cursor", "limit"}, []string{"status", "kind", "tenant"})
	if err != nil {
		return f, err
	}
	f = pawl.Filter{Cursor: q.Get("cursor"), Issuers: c.Issuers, Kinds: c.Kinds, Tenants: c.Tenants}
	for _, name := range q["status"] {
		status, err := pawl.ParseStatus(name)
		if err != nil {
			return f, err
		}
		f.Statuses = append(f.Statuses, status)
	}
	if kinds := q["kind"]; len(kinds) > 0 {
		f.Kinds = nil
		for _, k := range kinds {
			if err := pawl.Kind(k).Validate(); err != nil {
				return f, err
			}
			if !c.allowsKind(pawl.Kind(k)) {
				return f, outsideLimits()
			}
			f.Kinds = append(f.Kinds, pawl.Kind(k))
		}
	}
	if tenants, ok := q["tenant"]; ok {
		for _, t := range tenants {
			if !c.allowsTenant(t) {
				return f, outsideLimits()
			}
		}
		f.Tenants = tenants
	}
	if raw := q.Get("limit"); raw != "" {
		if f.Limit, err = strconv.Atoi(raw); err != nil || f.Limit < 1 || f.Limit > pawl.MaxPage {
			return f, malformed(pawl.ReasonMalformed, "limit is not 1 to 1000")
		}
	}
	return f, nil
}

// observations reads everything that was said about one operation.
func (s *Server) observations(w http.ResponseWriter, r *http.Request, c Credential) error {
	id, err := operationID(r)
	if err != nil {
		return err
	}
	if err := s.within(r.Context(), c, id); err != nil {
		return err
	}
	log, err := s.gate.Log(r.Context(), id, pawl.AsOperator())
	if err != nil {
		return err
	}
	views := make([]entryView, 0, len(log.Entries))
	for _, e := range log.Entries {
		views = append(views, viewEntry(e))
	}
	answer(w, http.StatusOK, struct {
		Operation OperationView `json:"operation"`
		Entries   []entryView   `json:"observations"`
		NotKept   uint64        `json:"counted_only,omitempty"`
	}{ViewOperation(log.Operation, true), views, log.NotKept})
	return nil
}

type observationBody struct {
	Token   string         `json:"token"`
	Kind    pawl.Kind      `json:"kind"`
	Details jsontext.Value `json:"details"`
	Caller  callerBody     `json:"caller"`
	Outcome outcomeBody    `json:"outcome"`
}

// observe is the evidence door: with a token by anybody who took part, without
// one by the role evidence. A stranger hears "not found".
func (s *Server) observe(w http.ResponseWriter, r *http.Request, c Credential) error {
	id, err := operationID(r)
	if err != nil {
		return err
	}
	body, err := read[observationBody](w, r, maxResultBody)
	if err != nil {
		return err
	}
	e, err := body.evidence(id, c)
	if err != nil {
		return err
	}
	if err := s.within(r.Context(), c, id); err != nil {
		return err
	}
	got, err := s.gate.Settle(r.Context(), e)
	if err != nil {
		return err
	}
	view := struct {
		Disposition pawl.Disposition `json:"disposition"`
		Operation   *OperationView   `json:"operation,omitempty"`
	}{Disposition: got.Disposition}
	if got.Disposition != pawl.Mismatched {
		v := ViewOperation(got.Operation, false)
		view.Operation = &v
	}
	answer(w, http.StatusOK, view)
	return nil
}

func (b observationBody) evidence(id pawl.OperationID, c Credential) (pawl.Evidence, error) {
	details, err := pawl.ParseDetails(b.Details)
	if err != nil {
		return pawl.Evidence{}, err
	}
	intent, caller := pawl.Intent{Kind: b.Kind, Details: details}, b.Caller.caller()
	if err := intent.Validate(); err != nil {
		return pawl.Evidence{}, err
	}
	if err := caller.Validate(); err != nil {
		return pawl.Evidence{}, err
	}
	out, err := b.Outcome.outcome()
	if err != nil {
		return pawl.Evidence{}, err
	}
	e := pawl.Evidence{
		ID: id, Lock: pawl.LockOf(intent, caller), Outcome: out, Token: pawl.OwnerToken(b.Token), Source: c.Name,
		Trusted: b.Token == "" && c.Has(RoleEvidence),
	}
	return e, e.Validate()
}

type ownerBody struct {
	OwnerToken string `json:"owner_token"`
}

// owned reads an owner's call: its operation and its body.
func owned[T any](s *Server, w http.ResponseWriter, r *http.Request, c Credential, limit int64) (id pawl.OperationID, body T, err error) {
	if id, err = operationID(r); err != nil {
		return id, body, err
	}
	if body, err = read[T](w, r, limit); err != nil {
		return id, body, err
	}
	return id, body, s.within(r.Context(), c, id)
}

// maySubmit answers no with the reason, rather than with an error: it is what
// the caller asked. A stranger hears "not found".
func (s *Server) maySubmit(w http.ResponseWriter, r *http.Request, c Credential) error {
	id, body, err := owned[ownerBody](s, w, r, c, maxBody)
	if err != nil {
		return err
	}
	view := struct {
		MaySubmit bool   `json:"may_submit"`
		Reason    string `json:"reason,omitempty"`
	}{}
	permit, err := s.gate.MaySubmit(r.Context(), id, pawl.OwnerToken(body.OwnerToken))
	switch {
	case errors.Is(err, pawl.ErrFenced):
		view.Reason = string(pawl.ReasonOf(err))
	case err != nil:
		return err
	default:
		view.MaySubmit = permit.Granted
	}
	answer(w, http.StatusOK, view)
	return nil
}

func (s *Server) renew(w http.ResponseWriter, r *http.Request, c Credential) error {
	id, body, err := owned[ownerBody](s, w, r, c, maxBody)
	if err != nil {
		return err
	}
	owner, err := s.gate.Renew(r.Context(), id, pawl.OwnerToken(body.OwnerToken))
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]ownerView{"owner": viewOwner(owner)})
	return nil
}

type recordBody struct {
	OwnerToken string      `json:"owner_token"`
	Outcome    outcomeBody `json:"outcome"`
}

// record is the owner's door. A definite outcome that is refused there has gone
// to the evidence door, and the problem document says what became of it [M3].
func (s *Server) record(w http.ResponseWriter, r *http.Request, c Credential) error {
	id, body, err := owned[recordBody](s, w, r, c, maxResultBody)
	if err != nil {
		return err
	}
	out, err := body.Outcome.outcome()
	if err != nil {
		return err
	}
	got, err := s.gate.Record(r.Context(), pawl.Statement{ID: id, Token: pawl.OwnerToken(body.OwnerToken), Outcome: out})
	if err != nil {
		return &fencedError{err: err, disposition: got.Disposition}
	}
	answer(w, http.StatusOK, map[string]OperationView{"operation": ViewOperation(got.Operation, false)})
	return nil
}

type resolutionBody struct {
	Status     string         `json:"status"`
	Result     *string        `json:"result"`
	ResultJSON jsontext.Value `json:"result_json"`
	Note       string         `json:"note"`
}

// resolve is a person's decision; who it was is the credential [M8].
func (s *Server) resolve(w http.ResponseWriter, r *http.Request, c Credential) error {
	id, body, err := owned[resolutionBody](s, w, r, c, maxResultBody)
	if err != nil {
		return err
	}
	out, err := outcomeBody{Status: body.Status, Result: body.Result, ResultJSON: body.ResultJSON}.outcome()
	if err != nil {
		return err
	}
	if out.Verdict() == pawl.VerdictFailed {
		out = pawl.Failed(body.Note)
	}
	op, err := s.gate.Resolve(r.Context(), pawl.Resolution{ID: id, Outcome: out, By: c.Name, Note: body.Note})
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]OperationView{"operation": ViewOperation(op, true)})
	return nil
}

type takeOverBody struct {
	Kinds []pawl.Kind `json:"kinds"`
	Limit int         `json:"limit"`
}

type takenOverView struct {
	Operation OperationView `json:"operation"`
	Owner     ownerView     `json:"owner"`
	Deferred  *deferredView `json:"deferred,omitempty"`
}

// deferredView is a failure that the new owner reads first.
type deferredView struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	At     string `json:"at"`
}

// takeOver makes the caller the owner of stalled operations within its limits [O2].
func (s *Server) takeOver(w http.ResponseWriter, r *http.Request, c Credential) error {
	body, err := read[takeOverBody](w, r, maxBody)
	if err != nil {
		return err
	}
	kinds := body.Kinds
	for _, k := range kinds {
		if err := k.Validate(); err != nil {
			return err
		}
		if !c.allowsKind(k) {
			return outsideLimits()
		}
	}
	if len(kinds) == 0 {
		kinds = c.Kinds
	}
	taken, err := s.gate.TakeOver(r.Context(), pawl.TakeOverRequest{
		Kinds: kinds, Tenants: c.Tenants, Issuers: c.Issuers, Limit: body.Limit, By: c.Name,
	})
	if err != nil {
		return err
	}
	views := make([]takenOverView, 0, len(taken))
	for _, t := range taken {
		v := takenOverView{Operation: ViewOperation(t.Operation, false), Owner: viewOwner(t.Owner)}
		if d := t.Operation.Deferred; d != nil {
			v.Deferred = &deferredView{Status: "failed", Reason: d.Reason, At: stamp(d.At)}
		}
		views = append(views, v)
	}
	answer(w, http.StatusOK, map[string][]takenOverView{"operations": views})
	return nil
}
