package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// makeData makes the data of a new server. Since initdb takes most of a start, what it made is kept beside the
// installation and copied from then on. No copy to be had, for whatever reason, only costs the time.
func (s *Server) makeData(ctx context.Context, more []string) error {
	args := []string{
		"--username", superuser, "--auth", "trust", "--encoding", "UTF8", "--no-locale",
		"--wal-segsize", "1", // small segments are quick to make and to copy
		"--no-sync", // nothing is at stake yet
	}
	args = append(args, more...)
	sum := sha256.Sum256([]byte(strings.Join(args, "\x00")))
	kept := filepath.Join(s.cache, "data-"+hex.EncodeToString(sum[:8]))
	if err := copyTree(s.data(), kept, copying{own: s.home.account.own}); err == nil {
		return nil
	}
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	cmd := s.home.command(ctx, s.Version.program("initdb"), append(args, "--pgdata", s.data())...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb of PostgreSQL %s: %w: %s", s.Version, err, strings.TrimSpace(string(out)))
	}
	_ = keep(kept, s.data())
	return nil
}

// keep copies new data to where the next server finds it, as a whole or not at all: a test may be killed on the way and
// another may be doing the same.
func keep(kept, data string) error {
	work, err := os.MkdirTemp(filepath.Dir(kept), ".data-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	whole := filepath.Join(work, "data")
	if err := copyTree(whole, data, copying{sync: true}); err != nil {
		return err
	}
	return os.Rename(whole, kept)
}

// copying says how a tree is copied. The zero value copies all of it.
type copying struct {
	leaveOut func(path string) bool // by the path below the root
	own      func(path string) error
	sync     bool // wait until each file is on disk
}

// copyTree copies a tree in which files may come, grow and go meanwhile, as they do in the data of a running server.
// What is gone by the time it is read is left out; the root must be there.
func copyTree(to, from string, c copying) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != from {
			return nil
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if c.leaveOut != nil && c.leaveOut(relative) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		target := filepath.Join(to, relative)
		if entry.IsDir() {
			err = os.Mkdir(target, 0o700)
		} else {
			err = copyFile(target, path, c.sync)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && c.own != nil {
			err = c.own(target)
		}
		return err
	})
}

func copyFile(to, from string, sync bool) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil && sync {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
