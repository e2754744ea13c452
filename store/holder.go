package store

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// HeldError says that another process holds the store.
type HeldError struct {
	Path string
	PID  int // 0: unknown
}

func (e *HeldError) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("store %q is held by %s: end it, or name another file with -db", e.Path, by)
}

// holder is the process that holds a lock on the file at path; 0 where the
// system does not tell (only Linux does), or where it is in another PID namespace.
func holder(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	return lockedBy(string(locks), uint64(st.Ino))
}

// lockedBy finds who holds a lock on an inode in the text of /proc/locks, as in
//
//	1: FLOCK  ADVISORY  WRITE 1234 fe:00:262149 0 EOF
//
// A line with "->" waits for the lock above it.
//
// Note: the device before the inode is not compared: on overlayfs and btrfs it
// is not the one that stat gives.
// Source: https://man7.org/linux/man-pages/man5/proc_locks.5.html.
func lockedBy(locks string, inode uint64) int {
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" {
			continue
		}
		if at := strings.LastIndexByte(f[5], ':'); f[5][at+1:] != strconv.FormatUint(inode, 10) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
