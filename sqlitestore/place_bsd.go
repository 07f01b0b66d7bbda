//go:build darwin || freebsd

package sqlitestore

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// placeOf reads what a folder stands on; these systems say themselves whether a
// file system is local.
func placeOf(folder string) (place, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return place{}, misconfigured("the folder %s cannot be read: %w", folder, err)
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	free := uint64(max(st.Bavail, 0)) * uint64(st.Bsize)
	return place{name: name, known: true, remote: uint64(st.Flags)&unix.MNT_LOCAL == 0, free: free}, nil
}

// linked reports whether a file has more names than one.
func linked(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}
