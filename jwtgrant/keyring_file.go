package jwtgrant

import (
	"crypto"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/pawl-go/pawl/internal/canonical"
)

const (
	ringVersion = 1
	maxRing     = 1 << 20 // bytes of the file; MaxKeys of the largest keys fit
	ringMode    = 0o600   // the owner only
)

// ring is the content of a key ring's file.
type ring struct {
	Version int       `json:"version"`
	Keys    []ringKey `json:"keys"` // in the order they were made
	// published is the public half of them all; nil where there are none.
	published *KeySet
}

type ringKey struct {
	State     KeyState        `json:"state"`
	CreatedAt time.Time       `json:"created_at"`
	Since     time.Time       `json:"since"`
	JWK       jose.JSONWebKey `json:"jwk"` // private while it may sign, else public
}

// readRing reads a file that nobody but its owner may read or write.
func readRing(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, err
		}
		return nil, unreachable("the key ring cannot be opened", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unreachable("the key ring cannot be looked at", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, misconfigured("the key ring may be read or written by others: chmod 600")
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxRing+1))
	if err != nil {
		return nil, unreachable("the key ring cannot be read", err)
	}
	return raw, nil
}

func parseRing(raw []byte) (ring, error) {
	var v ring
	if canonical.Strict(raw, maxRing) != nil || json.Unmarshal(raw, &v) != nil {
		return ring{}, misconfigured("the key ring's file is no key ring")
	}
	if v.Version != ringVersion {
		return ring{}, misconfigured("the key ring's file is of another version")
	}
	active, next := 0, 0
	for _, k := range v.Keys {
		switch k.State {
		case KeyActive:
			active++
		case KeyNext:
			next++
		case KeyRetained:
			continue
		default:
			return ring{}, misconfigured("the key ring has a key of no known state")
		}
		if _, err := k.signing(); err != nil {
			return ring{}, err
		}
	}
	if active > 1 || next > 1 {
		return ring{}, misconfigured("the key ring has two active keys, or two next ones")
	}
	if len(v.Keys) == 0 {
		return v, nil
	}
	var err error
	v.published, err = v.public()
	return v, err
}

// public returns the public half of every key. Errors: ErrMisconfigured.
func (v ring) public() (*KeySet, error) {
	keys := make([]PublicKey, len(v.Keys))
	for i, k := range v.Keys {
		public := k.JWK.Public()
		var err error
		if keys[i], err = NewPublicKey(public.KeyID, public.Key, k.algorithm()); err != nil {
			return nil, err
		}
	}
	return NewKeySet(keys...)
}

func (v ring) clone() ring {
	v.Keys = slices.Clone(v.Keys)
	return v
}

// index returns where the key of a state is, or -1.
func (v ring) index(s KeyState) int {
	return slices.IndexFunc(v.Keys, func(k ringKey) bool { return k.State == s })
}

func (v *ring) add(a Algorithm, s KeyState, now time.Time) (KeyInfo, error) {
	if len(v.Keys) >= MaxKeys {
		return KeyInfo{}, misconfigured("the key ring is full: retire keys")
	}
	if a == "" {
		a = EdDSA
	}
	k, err := GenerateKey(a)
	if err != nil {
		return KeyInfo{}, err
	}
	added := ringKey{
		State: s, CreatedAt: now.UTC(), Since: now.UTC(),
		JWK: jose.JSONWebKey{Key: k.signer, KeyID: k.ID(), Algorithm: string(a), Use: "sig"},
	}
	v.Keys = append(v.Keys, added)
	return added.info(), nil
}

func (v *ring) remove(i int) { v.Keys = slices.Delete(v.Keys, i, i+1) }

func (k ringKey) algorithm() Algorithm { return Algorithm(k.JWK.Algorithm) }

func (k ringKey) info() KeyInfo {
	return KeyInfo{ID: k.JWK.KeyID, Algorithm: k.algorithm(), State: k.State, CreatedAt: k.CreatedAt, Since: k.Since}
}

func (k ringKey) signing() (SigningKey, error) {
	signer, ok := k.JWK.Key.(crypto.Signer)
	if !ok {
		return SigningKey{}, misconfigured("a key of the key ring that should sign has no private half")
	}
	return NewSigningKey(k.JWK.KeyID, signer, k.algorithm())
}

// retain erases the private half.
func (k *ringKey) retain(now time.Time) error {
	public := k.JWK.Public()
	if !public.Valid() {
		return misconfigured("the active key has no public half")
	}
	k.JWK, k.State, k.Since = public, KeyRetained, now.UTC()
	return nil
}

// writeRing replaces the file as a whole, with the lock held: a reader sees the
// old one or the new one, after a crash too. What a crashed writer left is
// overwritten.
func writeRing(path string, v ring) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return misconfigured("the key ring cannot be written as JSON")
	}
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !os.IsNotExist(err) {
		return unreachable("what an interrupted change of the key ring left cannot be removed", err)
	}
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ringMode)
	if err != nil {
		return unreachable("the key ring cannot be written", err)
	}
	_, err = f.Write(append(raw, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return unreachable("the key ring cannot be written", err)
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the new name of a file survive a crash.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" { // where folders cannot be synced
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return unreachable("the key ring's folder cannot be opened", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return unreachable("the key ring's folder cannot be synced", err)
	}
	return nil
}
