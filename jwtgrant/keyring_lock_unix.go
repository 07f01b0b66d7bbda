//go:build unix

package jwtgrant

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockWait is how long a change waits for another one; each takes milliseconds.
const lockWait = 10 * time.Second

// lockRing takes the lock of a key ring, which ends with its holder's process. It
// is a file of its own, for the ring's file is replaced.
func lockRing(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, unreachable("the key ring's folder cannot be made", err)
	}
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, ringMode)
	if err != nil {
		return nil, unreachable("the key ring's lock cannot be opened", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil // closing releases it
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, unreachable("the key ring cannot be locked", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			f.Close()
			return nil, unreachable("the key ring is locked by another process", ctx.Err())
		}
	}
}
