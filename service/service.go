package service

import (
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"github.com/pawl-go/pawl"
)

// TokenIssuer signs grants in token form from the rows that the store wrote.
type TokenIssuer interface {
	Sign(g pawl.Grant) (token string, err error)
}

// Options are what a server may be told; nil is all defaults.
type Options struct {
	// Issuer is the name under which this server issues grants. Empty: it issues none.
	Issuer string
	// Signer signs token grants. Nil: stored grants only.
	Signer TokenIssuer
	// RevocationsPerSecond bounds each credential's revocations [R4]; 0 is 10.
	RevocationsPerSecond float64
	Logger               *slog.Logger // nil: nothing is logged
}

// Server is the HTTP API on one gate. Create it with New.
type Server struct {
	gate   *pawl.Gate
	auth   Authenticator
	issuer string
	signer TokenIssuer
	rate   rate.Limit
	logger *slog.Logger
	page   *template.Template
	mux    *http.ServeMux

	mu       sync.Mutex
	limiters map[string]*rate.Limiter // by credential, of which a configuration has a bounded number
}

// New returns the API on a gate. Errors: ErrMisconfigured.
func New(gate *pawl.Gate, auth Authenticator, opts *Options) (*Server, error) {
	if gate == nil || auth == nil {
		return nil, &pawl.Error{Class: pawl.ErrMisconfigured, Reason: pawl.ReasonMissing, Note: "service needs a gate and an authenticator"}
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Issuer != "" {
		if err := pawl.CheckID("issuer", o.Issuer); err != nil {
			return nil, &pawl.Error{Class: pawl.ErrMisconfigured, Reason: pawl.ReasonMalformed, Note: "the issuer's name is malformed"}
		}
	}
	page, err := parsePage()
	if err != nil {
		return nil, err
	}
	s := &Server{
		gate: gate, auth: auth, issuer: o.Issuer, signer: o.Signer, rate: rate.Limit(o.RevocationsPerSecond),
		logger: o.Logger, page: page, mux: http.NewServeMux(), limiters: map[string]*rate.Limiter{},
	}
	if s.rate <= 0 {
		s.rate = 10
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	s.routes()
	return s, nil
}

func (s *Server) routes() {
	s.handle("POST /v1/grants", s.issue, RoleIssue)
	s.handle("POST /v1/admissions", s.admit, RoleExecute)
	s.handle("POST /v1/reservations", s.reserve, RoleExecute)
	s.handle("GET /v1/operations/{id}", s.operation, RoleExecute, RoleAudit, RoleOperate)
	s.handle("GET /v1/operations", s.list, RoleOperate, RoleAudit)
	s.handle("GET /v1/operations/{id}/observations", s.observations, RoleOperate, RoleAudit)
	s.handle("POST /v1/operations/{id}/observations", s.observe, RoleExecute, RoleEvidence)
	s.handle("POST /v1/operations/{id}/submission-checks", s.maySubmit, RoleExecute)
	s.handle("POST /v1/operations/{id}/renewals", s.renew, RoleExecute)
	s.handle("POST /v1/operations/{id}/outcomes", s.record, RoleExecute)
	s.handle("POST /v1/operations/{id}/resolutions", s.resolve, RoleOperate)
	s.handle("POST /v1/takeovers", s.takeOver, RoleExecute)
	s.handle("POST /v1/revocations", s.revoke, RoleRevoke)
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, map[string]string{"status": "ok"}) })
	s.mux.HandleFunc("GET /readyz", s.ready)
	s.mux.HandleFunc("GET /problems/{name}", s.problem)
	s.mux.HandleFunc("/", s.unknown)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// call is one authenticated request's handler. It answers by returning: an error
// becomes a problem document.
type call func(w http.ResponseWriter, r *http.Request, c Credential) error

// handle authenticates before anything of the request is looked at.
func (s *Server) handle(pattern string, h call, roles ...Role) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c, err := s.authenticate(r)
		switch {
		case errors.Is(err, pawl.ErrUnavailable):
			s.fail(w, r, err)
		case err != nil:
			failAs(w, "not-authenticated")
		case !c.Has(roles...):
			failAs(w, "not-permitted")
		default:
			if err := h(w, r, c); err != nil {
				s.fail(w, r, err)
			}
		}
	})
}

func (s *Server) authenticate(r *http.Request) (Credential, error) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Credential{}, errors.New("service: no bearer token")
	}
	return s.auth.Authenticate(r.Context(), token)
}

// ready answers whether the store can be asked now.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if _, err := s.gate.Check(r.Context()); err != nil {
		s.fail(w, r, err)
		return
	}
	answer(w, 200, map[string]string{"status": "ready"})
}

// unknown answers for every path and method without a handler.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost} {
		probe := r.Clone(r.Context())
		probe.Method = m
		if _, pattern := s.mux.Handler(probe); pattern != "/" && pattern != "" {
			allowed = append(allowed, m)
		}
	}
	if allowed == nil {
		failAs(w, "not-found")
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	failAs(w, "method-not-allowed")
}

// answer writes a JSON body.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		failAs(w, "defect")
		return
	}
	writeBody(w, status, "application/json", body)
}

// note logs an error with ids and reasons only [S2].
func (s *Server) note(r *http.Request, problem string, err error) {
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("problem", problem),
		slog.String("reason", string(pawl.ReasonOf(err))),
	}
	switch {
	case problem == "defect":
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", err.Error()))
	case errors.Is(err, pawl.ErrUnavailable), errors.Is(err, pawl.ErrNotConfirmed):
		level = slog.LevelWarn
	}
	s.logger.LogAttrs(r.Context(), level, "request failed", attrs...)
}

// revocationAllowed takes one of a credential's revocations.
func (s *Server) revocationAllowed(c Credential) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.limiters[c.Name]
	if l == nil {
		l = rate.NewLimiter(s.rate, max(1, int(2*s.rate)))
		s.limiters[c.Name] = l
	}
	return l.Allow()
}

// operationID reads the id in the path. A malformed one cannot exist.
func operationID(r *http.Request) (pawl.OperationID, error) {
	return pawl.ParseOperationID(r.PathValue("id"))
}

// within answers "not found" for an operation outside a credential's limits, as
// for one that does not exist [S1].
func (s *Server) within(ctx context.Context, c Credential, id pawl.OperationID) error {
	if !c.limited() {
		return nil
	}
	op, err := s.gate.Status(ctx, id, pawl.AsOperator(), 0)
	if err != nil {
		return err
	}
	if !c.covers(op) {
		return pawl.NotFound()
	}
	return nil
}

func outsideLimits() error {
	return &pawl.Error{Class: pawl.ErrRefused, Reason: pawl.ReasonOutsideLimits}
}
