package billing

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"unicode"
	"unicode/utf8"
)

const (
	maxBody    = 16 << 10 // bytes of a request body
	maxKey     = 255      // bytes of an idempotency key
	maxAccount = 255      // bytes of an account

	headerKey      = "Idempotency-Key"
	headerReplayed = "Idempotent-Replayed"
)

// params are what a create call asks for; two calls are the same request when these are equal, byte
// for byte.
type params struct {
	Account  string `json:"account"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

func (p params) valid() error {
	switch {
	case p.Account == "" || len(p.Account) > maxAccount || !printable(p.Account):
		return errors.New("account must be 1 to 255 bytes of printable text")
	case !currencyCode(p.Currency):
		return errors.New("currency must be three capital letters")
	}
	_, err := parseAmount(p.Amount)
	return err
}

// createCall is one create request as it arrived; an empty key means the caller sent none.
type createCall struct {
	key string
	params
}

// readCreate reads a create request whole before anything else happens, so that a caller who hangs
// up later cannot interrupt the work.
func readCreate(w http.ResponseWriter, r *http.Request) (createCall, error) {
	key, err := keyOf(r.Header)
	if err != nil {
		return createCall{}, err
	}
	c := createCall{key: key}
	if err := readJSON(w, r, &c.params); err != nil {
		return createCall{}, err
	}
	return c, c.valid()
}

// readJSON decodes exactly one JSON value with known members only.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return errors.New("the body could not be read or is larger than 16 KiB")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return errors.New("the body is not the expected JSON object; amounts are strings")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body holds more than one JSON value")
	}
	return nil
}

// keyOf reads the idempotency key, bare or as the quoted string of the IETF draft. A header that is
// there and unusable is an error: treating it as absent would drop the protection asked for.
func keyOf(h http.Header) (string, error) {
	values := h.Values(headerKey)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if n := len(key); n >= 2 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1]
	}
	if len(values) > 1 || !validKey(key) {
		return "", errors.New("Idempotency-Key must be one value of 1 to 255 visible ASCII characters")
	}
	return key, nil
}

func validKey(key string) bool {
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return key != "" && len(key) <= maxKey
}

func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

func currencyCode(s string) bool {
	for i := range len(s) {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return len(s) == 3
}

// word reports whether s can be a machine-readable code; anything else from the wire is not passed on.
func word(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
