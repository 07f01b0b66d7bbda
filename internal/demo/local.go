package demo

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/billing"
)

// localRecord is the record many services have: an atomic map in the process.
// It is a right implementation of "once in this process, while it lives": it
// checks signature, issuer, audience, caller, amount and expiry, and of any number
// of requests at once in this process exactly one gets through.
type localRecord struct {
	verifier pawl.Verifier
	api      *billing.Client
	now      func() time.Time
	tell     func(event)
	used     sync.Map // pawl.GrantKey
}

func newLocalRecord(v pawl.Verifier, api *billing.Client, now func() time.Time, tell func(event)) *localRecord {
	return &localRecord{verifier: v, api: api, now: now, tell: tell}
}

// apply checks the grant, marks it as used, and calls the provider. Like the
// gate it goes on when its caller has left. The idempotency key is made for this
// request, because the record is thought to see to it that there is only one.
func (l *localRecord) apply(ctx context.Context, agent string, a application) answer {
	grant, err := l.check(ctx, agent, a)
	if err != nil {
		l.tell(event{Type: evInvalid, Text: err.Error()})
		return answer{Code: http.StatusForbidden, Error: "grant-not-valid"}
	}
	if !l.note(grant.Key) {
		l.tell(event{Type: evKnown})
		return answer{Code: http.StatusConflict, Error: "grant-not-available"}
	}
	l.tell(event{Type: evNoted})
	credit, err := readDetails(grant.Intent.Details)
	if err != nil {
		return answer{Code: http.StatusInternalServerError, Error: "defect"}
	}
	key := pawl.NewOperationID().String()
	l.tell(event{Type: evSending, Key: key, Text: ", made for this request"})
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	id, err := l.api.Create(calling, key, credit.Account, credit.Amount, credit.Currency)
	if err != nil {
		l.tell(event{Type: evInvalid, Text: "billing gave no definite answer"})
		return answer{Code: http.StatusBadGateway, Error: "no-answer"}
	}
	l.tell(event{Type: evAnswer, Credit: id})
	return answer{Code: http.StatusOK, Status: "succeeded", Credit: id}
}

// note notes a grant as used and reports whether it was not before: one atomic
// step for everybody in this process.
func (l *localRecord) note(k pawl.GrantKey) (first bool) {
	_, before := l.used.LoadOrStore(k, true)
	return !before
}

// check does all that can be known of a grant without knowing of its use.
func (l *localRecord) check(ctx context.Context, agent string, a application) (pawl.Grant, error) {
	grant, err := l.verifier.Verify(ctx, a.Grant)
	if err != nil {
		return pawl.Grant{}, err
	}
	if err := grant.PermitsCaller(pawl.Caller{Principal: agent}); err != nil {
		return pawl.Grant{}, err
	}
	asked, err := pawl.ParseDetails(a.Credit)
	if err != nil {
		return pawl.Grant{}, err
	}
	if grant.Intent != (pawl.Intent{Kind: creditKind, Details: asked}) {
		return pawl.Grant{}, errors.New("the grant is for something else")
	}
	if !l.now().Before(grant.ExpiresAt) {
		return pawl.Grant{}, errors.New("the grant has expired")
	}
	return grant, nil
}

// status knows nothing: the record holds grants, not what became of them.
func (*localRecord) status(context.Context, string, string) answer {
	return answer{Code: http.StatusNotFound, Error: "not-found"}
}

func (*localRecord) close() error { return nil }
