package main

import (
	"context"
	"os"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

// issuerFlags name the issuer that a command issues as.
type issuerFlags struct {
	IssuerName string `name:"issuer" env:"PAWL_ISSUER" help:"Issuer of the grant; pawl-dev with --dev."`
	Keys       string `env:"PAWL_KEYS" type:"path" help:"Key ring of the issuer, for token grants; see pawl keys."`
}

// authority issues as one issuer.
type authority struct {
	name string
	sign func(pawl.Grant) (string, error)
}

func (f issuerFlags) authority(ctx context.Context, env environment, st store, sf storeFlags) (authority, error) {
	timings, err := sf.timings()
	if err != nil {
		return authority{}, err
	}
	if f.IssuerName == "" || f.IssuerName == devIssuer {
		if !sf.Dev {
			return authority{}, usage("name the issuer with --issuer (or use --dev)")
		}
		return devIssue(ctx, env, st, sf, timings)
	}
	a := authority{name: f.IssuerName, sign: func(pawl.Grant) (string, error) {
		return "", usage("a token is signed with a key ring: --keys, or --form stored")
	}}
	if f.Keys == "" {
		return a, nil
	}
	ring, err := jwtgrant.OpenKeyRing(f.Keys, nil)
	if err != nil {
		return authority{}, err
	}
	issuer, err := jwtgrant.NewIssuer(f.IssuerName, ring, &jwtgrant.IssuerOptions{Timings: timings})
	if err != nil {
		return authority{}, err
	}
	a.sign = issuer.Sign
	return a, nil
}

func devIssue(ctx context.Context, env environment, st store, sf storeFlags, timings *pawl.Timings) (authority, error) {
	address, err := sf.address(env)
	if err != nil {
		return authority{}, err
	}
	facts, err := st.Check(ctx)
	if err != nil {
		return authority{}, err
	}
	issuer, _, err := devAuthority(ctx, env, address, facts.Realm, timings)
	if err != nil {
		return authority{}, err
	}
	return authority{name: devIssuer, sign: issuer.Sign}, nil
}

// trustFlags name the issuers whose tokens a command accepts.
type trustFlags struct {
	Trust []string `env:"PAWL_TRUST" placeholder:"ISSUER=FILE" help:"Issuer whose tokens are accepted, with its public key set (JWKS) or its key ring; repeatable."`
}

// verifier trusts the issuers named, and pawl-dev with --dev. Without any it is
// nil: no token is trusted, and stored grants remain.
func (f trustFlags) verifier(ctx context.Context, env environment, st store, sf storeFlags, timings *pawl.Timings) (pawl.Verifier, error) {
	var trusted []jwtgrant.TrustedIssuer
	for _, t := range f.Trust {
		name, path, ok := strings.Cut(t, "=")
		if !ok || name == devIssuer {
			return nil, usage("--trust is ISSUER=FILE, and not for " + devIssuer)
		}
		keys, err := publicKeys(path)
		if err != nil {
			return nil, err
		}
		trusted = append(trusted, jwtgrant.TrustedIssuer{Name: name, Keys: keys})
	}
	if sf.Dev {
		address, err := sf.address(env)
		if err != nil {
			return nil, err
		}
		ring, err := devKeys(ctx, env, address)
		if err != nil {
			return nil, err
		}
		trusted = append(trusted, jwtgrant.TrustedIssuer{Name: devIssuer, Keys: ring})
	}
	if trusted == nil {
		return nil, nil
	}
	facts, err := st.Check(ctx)
	if err != nil {
		return nil, err
	}
	return jwtgrant.NewVerifier(facts.Realm, trusted, &jwtgrant.VerifierOptions{Timings: timings})
}

// publicKeys reads a public key set, as pawl keys public prints it, or a key ring
// on the issuer's own machine.
func publicKeys(path string) (jwtgrant.KeySource, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonMissing, "the keys cannot be read: %w", err)
	}
	if set, err := jwtgrant.ParseKeySet(raw); err == nil {
		return set, nil
	}
	return jwtgrant.OpenKeyRing(path, nil)
}

// gate is a gate without effects: the command admits for others to perform.
func (f trustFlags) gate(ctx context.Context, env environment, st store, sf storeFlags) (*pawl.Gate, error) {
	timings, err := sf.timings()
	if err != nil {
		return nil, err
	}
	verifier, err := f.verifier(ctx, env, st, sf, timings)
	if err != nil {
		return nil, err
	}
	return pawl.New(ctx, st, verifier, &pawl.Config{Timings: timings, Name: "pawl", Logger: sf.logger(env)})
}
