package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// The cast: one customer, one agent, and who approves.
const (
	agent      = "agent:dana"
	account    = "acc_2071"
	amount     = "250.00"
	currency   = "USD"
	issuerName = "support-supervisor"
	realmName  = "pawl-demo"

	nameAgent    = "agent"
	nameStage    = "demo"
	nameProvider = "billing"
	nameGateway  = "gateway"
	nameA        = "instance A"
	nameB        = "instance B"
)

// IssuerName is the issuer that instances trust.
const IssuerName = issuerName

// The two durations that make the first incident.
const (
	answerTime     = 1250 * time.Millisecond // the provider's
	gatewayTimeout = time.Second
)

// stage is one run: its processes, what they said, and the agent.
type stage struct {
	o        *Options
	plan     plan
	store    Address
	log      *eventLog
	web      *http.Client
	children []*child
	named    []string // processes for the reader

	billing *billing.Client
	door    string // where the agent's requests go
	grant   string // the supervisor's token, issued once
	result  result
}

// newStage makes what can fail for reasons of the setting.
func newStage(ctx context.Context, o *Options, p plan) (*stage, error) {
	s := &stage{o: o, plan: p, log: newEventLog(), web: newClient()}
	s.result = result{RunReport: RunReport{Store: p.store, Incident: p.incident, Total: "0.00"}, plan: p}
	if p.store != storeMemory {
		a, err := o.Place(ctx, p.incident, realmName, demoTimings())
		if err != nil {
			return nil, err
		}
		s.store = a
	}
	details, err := creditDetails{Account: account, Amount: amount, Currency: currency}.details()
	if err != nil {
		return nil, err
	}
	s.grant, _, err = o.Issuer.Issue(realmName, o.Now(), pawl.Issuance{
		Form: pawl.FormToken, Subject: agent, Intent: pawl.Intent{Kind: creditKind, Details: details}, Lifetime: 15 * time.Minute,
	})
	return s, err
}

// run plays the plan, reads the books and compares. It returns when all
// processes have ended.
func (s *stage) run(ctx context.Context) result {
	bound, cancel := context.WithTimeout(ctx, runBound)
	defer cancel()
	err := s.plan.play(bound, s)
	err = errors.Join(err, s.readBooks(bound))
	stopAll(s.children, bound.Err() != nil)
	if err == nil {
		err = s.asClaimed()
	}
	if err != nil {
		s.result.Problem = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	s.result.story = s.log.story()
	s.result.processes = strings.Join(s.named, ", ")
	return s.result
}

// asClaimed holds the books against the plan.
func (s *stage) asClaimed() error {
	if r := s.result; r.Credits != s.plan.credits || r.Total != s.plan.total {
		return fmt.Errorf("billing's books show %d credits, %s in total; claimed are %d, %s", r.Credits, r.Total, s.plan.credits, s.plan.total)
	}
	return nil
}

// bookLine is one credit in the books.
type bookLine struct{ id, account, amount, key string }

// readBooks asks the provider what really happened.
func (s *stage) readBooks(ctx context.Context) error {
	if s.billing == nil {
		return nil // it did not even start, and that is the error
	}
	books, err := s.billing.Books(ctx)
	if err != nil {
		return fmt.Errorf("the provider's books could not be read: %w", err)
	}
	s.result.Credits = len(books.Credits)
	s.result.Total = books.Total(account, currency)
	for _, c := range books.Credits {
		s.result.books = append(s.result.books, bookLine{short(c.ID), c.Account, c.Amount + " " + c.Currency, short(c.Reference)})
	}
	return nil
}

// start starts a process and waits until it takes requests; it returns its
// address.
func (s *stage) start(ctx context.Context, part string, c config) (*child, string, error) {
	p, err := startChild(s.o, part, c, s.log)
	if err != nil {
		return nil, "", err
	}
	s.children = append(s.children, p)
	s.named = append(s.named, fmt.Sprintf("%s %d", c.Name, p.pid()))
	e, err := s.log.await(ctx, c.Name+" to start", func(e event) bool { return e.pid == p.pid() && e.Type == evListening })
	return p, e.URL, err
}

func (s *stage) startProvider(ctx context.Context, hold bool) error {
	_, url, err := s.start(ctx, PartProvider, config{Name: nameProvider, Answer: answerTime, Hold: hold})
	s.billing = &billing.Client{BaseURL: url, HTTP: s.web}
	if err != nil {
		s.billing = nil
	}
	return err
}

func (s *stage) startInstance(ctx context.Context, name string) (*child, string, error) {
	c := config{
		Name: name, Billing: s.billing.BaseURL, Realm: realmName, Keys: s.o.Keys,
		Local: s.plan.store == storeMemory, Store: s.store,
	}
	if s.o.Separate && !c.Local {
		a, err := s.o.Place(ctx, fmt.Sprintf("%s_%d", s.plan.incident, len(s.children)), realmName, demoTimings())
		if err != nil {
			return nil, "", err
		}
		c.Store = a
	}
	return s.start(ctx, PartInstance, c)
}

// startService starts provider, two instances and the gateway, and returns
// instance A.
func (s *stage) startService(ctx context.Context, hold bool) (*child, error) {
	if err := s.startProvider(ctx, hold); err != nil {
		return nil, err
	}
	a, urlA, err := s.startInstance(ctx, nameA)
	if err != nil {
		return nil, err
	}
	_, urlB, err := s.startInstance(ctx, nameB)
	if err != nil {
		return nil, err
	}
	_, s.door, err = s.start(ctx, PartGateway, config{
		Name: nameGateway, Timeout: gatewayTimeout, Instances: []backend{{nameA, urlA}, {nameB, urlB}},
	})
	return a, err
}

// note adds to the story what the stage itself did.
func (s *stage) note(who string, t eventType, text string) {
	s.log.add(event{At: s.o.Now(), Type: t, Text: text, who: who})
}

// apply is the agent's click: the supervisor's grant, for one operation.
func (s *stage) apply(ctx context.Context, operation pawl.OperationID) (answer, error) {
	body, err := json.Marshal(application{
		Grant: s.grant, OperationID: operation.String(),
		Credit: json.RawMessage(fmt.Sprintf(`{"account":%q,"amount":%q,"currency":%q}`, account, amount, currency)),
	})
	if err != nil {
		return answer{}, err
	}
	return s.ask(ctx, http.MethodPost, "/credits", body)
}

// status asks what became of an operation.
func (s *stage) status(ctx context.Context, operation pawl.OperationID) (answer, error) {
	s.note(nameAgent, evAsk, "asks what became of operation "+short(operation.String()))
	return s.ask(ctx, http.MethodGet, "/operations/"+operation.String(), nil)
}

// ask sends one request of the agent's and tells the answer. A status of the
// gateway's is an answer; no answer at all is an error.
func (s *stage) ask(ctx context.Context, method, path string, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.door+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(agentHeader, agent)
	res, err := s.web.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("the agent got no answer: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return answer{}, fmt.Errorf("the agent's answer broke off: %w", err)
	}
	got := answer{}
	_ = json.Unmarshal(raw, &got) // the gateway's own answers are words
	got.Code = res.StatusCode
	e := event{At: s.o.Now(), Type: evTold, Code: got.Code, Status: got.Status, Credit: got.Credit, Text: got.Error, who: nameAgent}
	if e.Status == "" && e.Text == "" {
		e.Text = http.StatusText(got.Code)
	}
	s.log.add(e)
	return got, nil
}

// brief is an answer in the words of the plans: its code, and status or reason.
func (a answer) brief() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.Code, a.Status+a.Error))
}

// want holds an answer against those that the plan allows.
func want(what string, got answer, allowed ...string) error {
	if slices.Contains(allowed, got.brief()) {
		return nil
	}
	return fmt.Errorf("%s was answered %s, not %s", what, got.brief(), strings.Join(allowed, " or "))
}
