package sqlitestore

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// placeOf reads what a folder stands on.
func placeOf(folder string) (place, error) {
	volume := filepath.VolumeName(folder)
	if strings.HasPrefix(volume, `\\`) {
		return place{name: "a network share", known: true, remote: true}, nil
	}
	root, err := windows.UTF16PtrFromString(volume + `\`)
	if err != nil {
		return place{}, misconfigured("the folder %s cannot be read: %w", folder, err)
	}
	p := place{name: "a local drive", known: true}
	switch windows.GetDriveType(root) {
	case windows.DRIVE_REMOTE:
		p.name, p.remote = "a network drive", true
	case windows.DRIVE_UNKNOWN, windows.DRIVE_NO_ROOT_DIR:
		p.name, p.known = "unknown", false
	}
	if err := windows.GetDiskFreeSpaceEx(root, &p.free, nil, nil); err != nil {
		p.free = 0
	}
	return p, nil
}

func linked(os.FileInfo) bool { return false }
