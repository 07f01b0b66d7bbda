package sqlitestore

import "slices"

// place is the file system that a store stands on.
type place struct {
	name     string // such as "ext4"; "unknown 0x…" for one that is not in the table
	known    bool
	remote   bool   // several hosts may have it mounted at once [A1]
	volatile bool   // gone when the host restarts
	free     uint64 // bytes; 0 where it could not be read
}

// refuse says why a store may not stand here.
func (p place) refuse(path string) error {
	if !p.remote {
		return nil
	}
	return misconfigured("%s is on %s, which several hosts may share: SQLite's locks and shared memory do not hold "+
		"there; use a local disk, or pgstore", path, p.name)
}

// classifyFUSE judges a file system in user space by its kind in the table of
// mounts; one without a kind could be anything.
func classifyFUSE(kind string) place {
	if kind == "" {
		return place{name: "a file system in user space of no known kind", remote: true}
	}
	return place{name: kind, known: kind == "fuseblk" || remoteFUSE(kind), remote: remoteFUSE(kind)}
}

// remoteFUSE are file systems in user space of which another host may be the
// other end. virtiofs is one: the machine's host shares it with the machine.
func remoteFUSE(kind string) bool {
	return slices.Contains([]string{
		"virtiofs", "fuse.sshfs", "fuse.s3fs", "fuse.s3ql", "fuse.rclone", "fuse.gcsfuse", "fuse.blobfuse",
		"fuse.blobfuse2", "fuse.mount-s3", "fuse.goofys", "fuse.juicefs", "fuse.glusterfs", "fuse.ceph",
		"fuse.ceph-fuse", "fuse.mfs", "fuse.moosefs", "fuse.lizardfs", "fuse.seaweedfs", "fuse.beegfs", "fuse.davfs",
		"fuse.davfs2", "fuse.curlftpfs", "fuse.nfs", "fuse.smbnetfs", "fuse.grpcfuse", "fuse.osxfs", "fuse.vmhgfs-fuse",
		"fuse.quobyte", "fuse.xtreemfs", "fuse.dokan", "fuse.litefs",
	}, kind)
}
