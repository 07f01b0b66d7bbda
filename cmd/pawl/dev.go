package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"path/filepath"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/jwtgrant"
)

// devIssuer is the issuer that only --dev trusts.
const devIssuer = "pawl-dev"

// devKeyPath is beside an SQLite store, so that servers sharing the file share
// the key; else in the data directory.
func devKeyPath(env environment, a storeAddress) (string, error) {
	const name = "pawl-dev.keys"
	if a.scheme == "sqlite" {
		return filepath.Join(filepath.Dir(a.rest), name), nil
	}
	dir, err := dataDir(env)
	return filepath.Join(dir, name), err
}

// devToken is the bearer token with every role: PAWL_DEV_TOKEN, or made now.
func devToken(env environment) (token string, made bool) {
	if token := env.get("PAWL_DEV_TOKEN"); token != "" {
		return token, false
	}
	b := make([]byte, 24)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b), true
}

// devKeys is the development key ring, made on first use.
func devKeys(ctx context.Context, env environment, a storeAddress) (*jwtgrant.KeyRing, error) {
	path, err := devKeyPath(env, a)
	if err != nil {
		return nil, err
	}
	ring, err := jwtgrant.OpenKeyRing(path, nil)
	if err != nil {
		return nil, err
	}
	_, err = ring.Ensure(ctx, jwtgrant.EdDSA)
	return ring, err
}

// devAuthority is the issuer pawl-dev and a verifier that trusts it alone.
func devAuthority(ctx context.Context, env environment, a storeAddress, realm string, timings *pawl.Timings) (*jwtgrant.Issuer, *jwtgrant.Verifier, error) {
	ring, err := devKeys(ctx, env, a)
	if err != nil {
		return nil, nil, err
	}
	issuer, err := jwtgrant.NewIssuer(devIssuer, ring, &jwtgrant.IssuerOptions{Timings: timings})
	if err != nil {
		return nil, nil, err
	}
	verifier, err := jwtgrant.NewVerifier(realm, []jwtgrant.TrustedIssuer{{Name: devIssuer, Keys: ring}},
		&jwtgrant.VerifierOptions{Timings: timings})
	return issuer, verifier, err
}
