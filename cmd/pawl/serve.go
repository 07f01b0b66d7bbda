package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/service"
)

// serveCommand serves the API. Without --dev there is nothing yet that says who
// may call, so it refuses.
type serveCommand struct {
	storeFlags
	Listen string `env:"PAWL_LISTEN" default:"127.0.0.1:7295" help:"Address; port 0 prints the one it got. With --dev loopback only."`
}

// Run serves until a signal, then lets calls in flight finish.
func (c *serveCommand) Run(ctx context.Context, env environment) error {
	if !c.Dev {
		return &pawl.Error{
			Class: pawl.ErrMisconfigured, Reason: pawl.ReasonMissing,
			Note: "serve needs --dev: callers and keys from a configuration are not served by this version",
		}
	}
	address, err := c.address(env)
	if err != nil {
		return err
	}
	timings, err := c.timings()
	if err != nil {
		return err
	}
	listener, err := listenLoopback(ctx, c.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	st, err := c.openAt(ctx, env, address, timings)
	if err != nil {
		return err
	}
	err = c.serve(ctx, env, st, address, timings, listener)
	return errors.Join(err, st.Close())
}

func (c *serveCommand) serve(ctx context.Context, env environment, st store, a storeAddress, timings *pawl.Timings, l net.Listener) error {
	facts, err := st.Check(ctx)
	if err != nil {
		return err
	}
	issuer, verifier, err := devAuthority(ctx, env, a, facts.Realm, timings)
	if err != nil {
		return err
	}
	log := c.logger(env)
	gate, err := pawl.New(ctx, st, verifier, &pawl.Config{Timings: timings, Name: "pawl-serve", Logger: log})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(env.err, "development server, loopback only; store %s\n", a)
	token, made := devToken(env)
	if made {
		_, _ = fmt.Fprintf(env.err, "development token (every role): %s\n", token)
	}
	api, err := service.New(gate, service.StaticTokens{
		service.HashToken(token): {Name: "dev", Roles: service.Roles()},
	}, &service.Options{Issuer: devIssuer, Signer: issuer, Logger: log})
	if err != nil {
		return err
	}
	running := make(chan error, 1)
	background, stop := context.WithCancel(ctx)
	go func() { running <- gate.Run(background) }()
	err = serveHTTP(ctx, env, l, loopbackOnly(api))
	stop()
	return errors.Join(err, <-running, gate.Close())
}

// serveHTTP prints the first line and serves until ctx ends.
func serveHTTP(ctx context.Context, env environment, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	first, err := json.Marshal(struct {
		URL     string  `json:"url"`
		Console *string `json:"console"`
	}{URL: "http://" + l.Addr().String()})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(env.out, "%s\n", first)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}

// listenLoopback refuses any address that is not this host alone.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usage("--listen is HOST:PORT, such as 127.0.0.1:7295")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonMalformed, "--dev listens on loopback only, not on %q", host)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonUnreachable, "cannot listen on %s (choose another with --listen): %w", address, err)
	}
	return l, nil
}

// loopbackOnly refuses requests that a browser was talked into: another Host
// (DNS rebinding) or another Origin.
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			http.Error(w, "the development server answers to loopback names only", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			u, err := url.Parse(origin)
			if err != nil || u.Host != r.Host {
				http.Error(w, "requests from other origins are refused", http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
