package billing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// ErrDeclined is the one definite answer besides a credit: the provider refused and says that
// nothing happened. Match it with errors.Is; the code is in a [DeclinedError]. Every other error of
// [Client.Create], whatever its text, leaves open whether a credit was made.
const ErrDeclined = failure("billing: declined")

// DeclinedError is an ErrDeclined with the provider's code, such as "account_closed".
type DeclinedError struct{ Code string }

// Error names the code.
func (e *DeclinedError) Error() string { return "billing: declined: " + e.Code }

// Is matches ErrDeclined.
func (e *DeclinedError) Is(target error) bool { return target == error(ErrDeclined) }

// ReplyError is an answer that is neither the one hoped for nor a definite refusal. Code is the
// provider's problem code if it sent one. It is not definite: a 500 may follow an effect, and an
// idempotency_mismatch says that something was done under this key.
type ReplyError struct {
	Status int
	Code   string
}

// Error names status and code, and nothing else of the reply.
func (e *ReplyError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("billing: unexpected answer: status %d %s", e.Status, e.Code))
}

const (
	maxReply = 64 << 10 // bytes of a reply about credits
	maxBooks = 64 << 20 // bytes of the books
)

// Client calls a provider. Every call is sent exactly once and bounded by its context only.
type Client struct {
	// BaseURL of the provider, such as "http://127.0.0.1:8080".
	BaseURL string
	// HTTP is the client to use, nil for http.DefaultClient. Its redirect policy is not used: a
	// redirect is an unexpected answer. Its transport must not re-send on its own account.
	HTTP *http.Client
}

// Create makes a credit under an idempotency key and returns its id. A nil error means that the
// provider answered 201 with exactly the credit asked for. ErrDeclined means that no credit was made
// by this call; any other error means that nobody knows yet [E1].
func (c *Client) Create(ctx context.Context, key, account, amount, currency string) (string, error) {
	ask := params{Account: account, Amount: amount, Currency: currency}
	if !validKey(key) {
		return "", errors.New("billing: a create needs a key of 1 to 255 visible ASCII characters")
	}
	if err := ask.valid(); err != nil {
		return "", fmt.Errorf("billing: not sent: %w", err)
	}
	status, body, err := c.post(ctx, "/credits", key, ask)
	if err != nil {
		return "", err
	}
	if status != http.StatusCreated {
		return "", refusal(status, body)
	}
	var made Credit
	if err := json.Unmarshal(body, &made); err != nil {
		return "", errors.New("billing: the answer to a create is not a credit")
	}
	if want := (Credit{made.ID, account, amount, currency, key}); made.ID == "" || made != want {
		return "", errors.New("billing: the answer to a create is not about the credit asked for")
	}
	return made.ID, nil
}

// Find looks a credit up by the key it was made under. If several were made it returns the first.
// Found is true only for a whole credit with that reference. Not found is no proof: the credit may
// be in flight, or not visible yet. Every error means that nothing was learnt [E2].
func (c *Client) Find(ctx context.Context, reference string) (_ Credit, found bool, _ error) {
	if !validKey(reference) {
		return Credit{}, false, errors.New("billing: a look-up needs a reference of 1 to 255 visible ASCII characters")
	}
	status, body, err := c.get(ctx, "/credits?reference="+url.QueryEscape(reference), maxReply)
	if err != nil {
		return Credit{}, false, err
	}
	if status != http.StatusOK {
		return Credit{}, false, unexpected(status, body)
	}
	var list struct {
		Credits *[]Credit `json:"credits"`
	}
	if err := json.Unmarshal(body, &list); err != nil || list.Credits == nil {
		return Credit{}, false, errors.New("billing: the answer to a look-up is not a list of credits")
	}
	if len(*list.Credits) == 0 {
		return Credit{}, false, nil
	}
	got := (*list.Credits)[0]
	whole := params{got.Account, got.Amount, got.Currency}
	if got.ID == "" || got.Reference != reference || whole.valid() != nil {
		return Credit{}, false, errors.New("billing: the answer to a look-up holds no whole credit of that reference")
	}
	return got, true, nil
}

// Books fetches the provider's books.
func (c *Client) Books(ctx context.Context) (Books, error) {
	status, body, err := c.get(ctx, "/books", maxBooks)
	if err != nil {
		return Books{}, err
	}
	if status != http.StatusOK {
		return Books{}, unexpected(status, body)
	}
	var b Books
	if err := json.Unmarshal(body, &b); err != nil {
		return Books{}, errors.New("billing: the answer is not the books")
	}
	return b, nil
}

// Control changes a provider that serves POST /_control. For tests.
func (c *Client) Control(ctx context.Context, change Control) error {
	status, body, err := c.post(ctx, "/_control", "", change)
	if err != nil {
		return err
	}
	if status != http.StatusNoContent {
		return unexpected(status, body)
	}
	return nil
}

// refusal turns a create's answer into an error. Only the provider's own document makes it definite:
// a 402 of a proxy in between is not the provider's word.
func refusal(status int, body []byte) error {
	var p problem
	if json.Unmarshal(body, &p) == nil && status == http.StatusPaymentRequired &&
		p.Code == codeDeclined && word(p.DeclineCode) {
		return &DeclinedError{Code: p.DeclineCode}
	}
	return unexpected(status, body)
}

func unexpected(status int, body []byte) error {
	var p problem
	if json.Unmarshal(body, &p) != nil || !word(p.Code) {
		p.Code = ""
	}
	return &ReplyError{Status: status, Code: p.Code}
}

func (c *Client) post(ctx context.Context, path, key string, v any) (int, []byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return 0, nil, fmt.Errorf("billing: encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url(path), bytes.NewReader(raw))
	if err != nil {
		return 0, nil, errors.New("billing: the base URL is not valid")
	}
	// With an Idempotency-Key header and a body it can rewind, Go's transport takes the request for
	// repeatable and sends it again when a reused connection drops, behind the caller's back and past
	// its submission check. Without GetBody it cannot [E1].
	req.GetBody = nil
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set(headerKey, key)
	}
	return c.send(req, maxReply)
}

func (c *Client) get(ctx context.Context, path string, limit int64) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url(path), nil)
	if err != nil {
		return 0, nil, errors.New("billing: the base URL is not valid")
	}
	return c.send(req, limit)
}

func (c *Client) url(path string) string { return strings.TrimRight(c.BaseURL, "/") + path }

// send makes one exchange and reads the whole reply, up to a limit in bytes.
func (c *Client) send(req *http.Request, limit int64) (_ int, _ []byte, err error) {
	base := c.HTTP
	if base == nil {
		base = http.DefaultClient
	}
	once := *base
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := once.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("billing: no answer: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return 0, nil, fmt.Errorf("billing: the answer broke off: %w", err)
	}
	if int64(len(body)) > limit {
		return 0, nil, fmt.Errorf("billing: the answer is larger than %d bytes", limit)
	}
	return res.StatusCode, body, nil
}
