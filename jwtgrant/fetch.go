package jwtgrant

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// NewURLKeys returns the key set behind a URL, which must be https, or http to
// this machine's loopback: whoever can change a key set can issue. client may be
// nil; redirects are not followed, whatever it says. Nothing is read yet. Errors:
// ErrMisconfigured.
func NewURLKeys(address string, client *http.Client, opts *KeyOptions) (*CachedKeys, error) {
	o, err := opts.withDefaults(5*time.Minute, 5*time.Second)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, misconfigured("the address of a key set is no plain URL")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		return nil, misconfigured("the address of a key set is neither https nor http to loopback")
	}
	own := http.Client{}
	if client != nil {
		own = *client
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return newCachedKeys(o, func(ctx context.Context) ([]byte, error) { return fetch(ctx, &own, u.String()) }), nil
}

// loopback knows addresses, and the one name that RFC 6761 reserves for them.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// fetch gets a document of at most MaxKeySet bytes.
func fetch(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, misconfigured("the address of a key set cannot be asked")
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, unreachable("the key set's address does not answer", withoutAddress(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, unreachable("the key set's address answers "+strconv.Itoa(response.StatusCode), nil)
	}
	return readAll(response.Body)
}

// withoutAddress drops the address from an error of net/http: it may hold secrets.
func withoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// readAll reads one byte more than is allowed, so that a document which is too
// large is refused and not cut.
func readAll(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxKeySet+1))
	if err != nil {
		return nil, unreachable("the key set cannot be read to its end", err)
	}
	return raw, nil
}

// NewFileKeys returns the key set in a file, as [KeySet.MarshalJSON] writes it.
// A program that replaces the file does so by renaming a new one over it. Nothing
// is read yet. Errors: ErrMisconfigured.
func NewFileKeys(path string, opts *KeyOptions) (*CachedKeys, error) {
	o, err := opts.withDefaults(10*time.Second, time.Second)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, misconfigured("the file of a key set has no name")
	}
	return newCachedKeys(o, func(context.Context) ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, unreachable("the file of a key set cannot be opened", err)
		}
		defer f.Close()
		return readAll(f)
	}), nil
}
