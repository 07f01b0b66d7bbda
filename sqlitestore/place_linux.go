package sqlitestore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Numbers that x/sys has no name for.
const (
	magicCIFS   = 0xff534d42
	magicSMB2   = 0xfe534d42
	magicLustre = 0x0bd00bd0
	magicGFS2   = 0x01161970
	magicOCFS2  = 0x7461636f
	magicGPFS   = 0x47504653
	magicVMHGFS = 0xbacbacbc
	magicVBox   = 0x786f4256
	magicBeeGFS = 0x19830326
	magicPanFS  = 0xaad7aaea
	magicPVFS2  = 0x20030528
	magicACFS   = 0x61636673
	magicBcache = 0xca451a4e
	magicZFS    = 0x2fc12fc1
)

// classify says what a file system's number in statfs means.
func classify(magic uint32) place {
	remote := map[uint32]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", magicCIFS: "CIFS", magicSMB2: "SMB",
		unix.V9FS_MAGIC: "9p", unix.AFS_SUPER_MAGIC: "AFS", unix.AFS_FS_MAGIC: "AFS", unix.CEPH_SUPER_MAGIC: "Ceph",
		unix.CODA_SUPER_MAGIC: "Coda", unix.NCP_SUPER_MAGIC: "NCP", magicLustre: "Lustre", magicGFS2: "GFS2",
		magicOCFS2: "OCFS2", magicGPFS: "GPFS", magicVMHGFS: "a folder of the virtual machine's host",
		magicVBox: "a folder of the virtual machine's host", magicBeeGFS: "BeeGFS", magicPanFS: "PanFS",
		magicPVFS2: "PVFS2", magicACFS: "ACFS",
	}
	local := map[uint32]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.F2FS_SUPER_MAGIC: "f2fs", unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
		unix.RAMFS_MAGIC: "ramfs", unix.REISERFS_SUPER_MAGIC: "reiserfs", unix.ECRYPTFS_SUPER_MAGIC: "ecryptfs",
		magicBcache: "bcachefs", magicZFS: "zfs",
	}
	if name, ok := remote[magic]; ok {
		return place{name: name, known: true, remote: true}
	}
	if name, ok := local[magic]; ok {
		return place{name: name, known: true, volatile: name == "tmpfs" || name == "ramfs"}
	}
	return place{name: fmt.Sprintf("unknown %#x", magic)}
}

// placeOf reads what a folder stands on.
func placeOf(folder string) (place, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return place{}, misconfigured("the folder %s cannot be read: %w", folder, err)
	}
	p := classify(uint32(st.Type)) // the number has 32 bits, its type more on some machines
	if uint32(st.Type) == unix.FUSE_SUPER_MAGIC {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return place{}, misconfigured("the kind of the file system of %s cannot be read: %w", folder, err)
		}
		kind := mountKind(string(mounts), folder)
		p = classifyFUSE(kind)
	}
	p.free = st.Bavail * uint64(st.Bsize)
	return p, nil
}

// mountKind finds the kind of the innermost mount of a folder in the text of
// mountinfo; empty where there is none.
func mountKind(mountinfo, folder string) (kind string) {
	longest := -1
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(rest) < 1 {
			continue
		}
		point := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4])
		rel, err := filepath.Rel(point, folder)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") || len(point) < longest {
			continue
		}
		longest, kind = len(point), rest[0] // of several on one point the last is seen
	}
	return kind
}

// linked reports whether a file has more names than one.
func linked(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}
