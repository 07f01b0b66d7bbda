package sqlitestore

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/pawl-go/pawl"
)

// fileLock lets one process at a time make or upgrade the file beside it. The
// lock goes with the process that holds it, however that ends.
type fileLock struct{ f *os.File }

// errHeld: another process has the lock.
const errHeld = fault("another process is opening the store")

// lockFile waits for the lock until ctx ends.
func lockFile(ctx context.Context, path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, misconfigured("the folder cannot be written: %w", err)
	}
	retry := time.NewTicker(2 * time.Millisecond)
	defer retry.Stop()
	for {
		err := tryLock(f)
		if err == nil {
			return &fileLock{f}, nil
		}
		if !errors.Is(err, errHeld) {
			return nil, errors.Join(misconfigured("the file system has no locks: %w", err), f.Close())
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, errors.Join(cancelled(pawl.ErrUnavailable, ctx.Err()), f.Close())
		}
	}
}

// unlock leaves the file: deleting it would let two processes hold two locks.
func (l *fileLock) unlock() error { return l.f.Close() }
