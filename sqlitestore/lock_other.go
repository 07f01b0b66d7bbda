//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package sqlitestore

import (
	"errors"
	"os"
)

func tryLock(*os.File) error { return errors.ErrUnsupported }
