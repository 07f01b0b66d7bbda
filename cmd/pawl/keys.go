package main

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-go/pawl/jwtgrant"
)

// keysCommand manages an issuer's key ring.
type keysCommand struct {
	New    keysNewCommand    `cmd:"" help:"Make a key: the first signs at once, a later one after rotate."`
	List   keysListCommand   `cmd:"" help:"List the keys."`
	Rotate keysRotateCommand `cmd:"" help:"Sign with the next key; the old one goes on verifying."`
	Retire keysRetireCommand `cmd:"" help:"Accept no more of what a key signed."`
	Public keysPublicCommand `cmd:"" help:"Print the public key set (JWKS), for those who verify."`
}

// ringFlags name a key ring.
type ringFlags struct {
	Ring string `arg:"" type:"path" help:"File of the key ring; mode 0600."`
}

func (f ringFlags) open() (*jwtgrant.KeyRing, error) { return jwtgrant.OpenKeyRing(f.Ring, nil) }

// keyJSON is a key as --json prints it; never the key itself.
type keyJSON struct {
	ID        string             `json:"id"`
	Algorithm jwtgrant.Algorithm `json:"algorithm"`
	State     jwtgrant.KeyState  `json:"state"`
	CreatedAt time.Time          `json:"created_at"`
	Since     time.Time          `json:"since"`
}

func printKeys(env environment, asJSON bool, infos ...jwtgrant.KeyInfo) error {
	views := make([]keyJSON, 0, len(infos))
	var rows [][]string
	for _, k := range infos {
		views = append(views, keyJSON{k.ID, k.Algorithm, k.State, k.CreatedAt.UTC(), k.Since.UTC()})
		rows = append(rows, []string{k.ID, string(k.Algorithm), string(k.State), when(k.CreatedAt), when(k.Since)})
	}
	if asJSON {
		return writeJSON(env.out, map[string]any{"keys": views})
	}
	return writeTable(env.out, []string{"KEY", "ALGORITHM", "STATE", "CREATED", "SINCE"}, rows)
}

type keysNewCommand struct {
	ringFlags
	jsonFlag
	Algorithm string `enum:"EdDSA,ES256,PS256,RS256" default:"EdDSA" help:"EdDSA, ES256, PS256 or RS256."`
}

// Run makes a key.
func (c *keysNewCommand) Run(ctx context.Context, env environment) error {
	ring, err := c.open()
	if err != nil {
		return err
	}
	info, err := ring.New(ctx, jwtgrant.Algorithm(c.Algorithm))
	if err != nil {
		return err
	}
	return printKeys(env, c.JSON, info)
}

type keysListCommand struct {
	ringFlags
	jsonFlag
}

// Run lists the keys, the oldest first.
func (c *keysListCommand) Run(env environment) error {
	ring, err := c.open()
	if err != nil {
		return err
	}
	infos, err := ring.List()
	if err != nil {
		return err
	}
	return printKeys(env, c.JSON, infos...)
}

type keysRotateCommand struct {
	ringFlags
	jsonFlag
	Force bool `help:"Rotate although no next key was published: a new one signs at once, and verifiers elsewhere refuse it until they read the set again."`
}

// Run makes the next key the one that signs.
func (c *keysRotateCommand) Run(ctx context.Context, env environment) error {
	ring, err := c.open()
	if err != nil {
		return err
	}
	infos, err := ring.List()
	if err != nil {
		return err
	}
	next := slices.ContainsFunc(infos, func(k jwtgrant.KeyInfo) bool { return k.State == jwtgrant.KeyNext })
	if !next && !c.Force {
		return usage("there is no next key: pawl keys new, publish the set, then rotate (or --force, for a key that leaked)")
	}
	info, err := ring.Rotate(ctx)
	if err != nil {
		return err
	}
	return printKeys(env, c.JSON, info)
}

type keysRetireCommand struct {
	ringFlags
	jsonFlag
	ID    string        `arg:"" help:"Id of the key."`
	Grace time.Duration `default:"24h1m" help:"How long a retained key must have been so: the longest life of a grant with skew and leeway; 0 for a key that leaked."`
}

// Run removes a key.
func (c *keysRetireCommand) Run(ctx context.Context, env environment) error {
	ring, err := c.open()
	if err != nil {
		return err
	}
	info, err := ring.Retire(ctx, c.ID, c.Grace)
	if err != nil {
		return err
	}
	return printKeys(env, c.JSON, info)
}

type keysPublicCommand struct{ ringFlags }

// Run prints the public set.
func (c *keysPublicCommand) Run(env environment) error {
	ring, err := c.open()
	if err != nil {
		return err
	}
	set, err := ring.Public()
	if err != nil {
		return err
	}
	return writeJSON(env.out, set)
}
