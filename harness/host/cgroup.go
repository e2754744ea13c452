package host

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// noLimit is from where on a limit of memory is none: version 1 has no other word for it.
const noLimit = 1 << 60

// cgroupLimits are the CPUs and the bytes of memory that this process's
// cgroups, or those above them, allow; 0: no limit, or no cgroup to be seen.
// Source: https://docs.kernel.org/admin-guide/cgroup-v2.html, and for version 1
// https://docs.kernel.org/scheduler/sched-bwc.html, admin-guide/cgroup-v1/memory.html.
func cgroupLimits(root fs.FS) (cpus float64, memory uint64) {
	allow := func(quota, period string) {
		q, err1 := strconv.ParseFloat(quota, 64)
		p, err2 := strconv.ParseFloat(period, 64)
		if err1 == nil && err2 == nil && q > 0 && p > 0 && (cpus == 0 || q/p < cpus) {
			cpus = q / p
		}
	}
	for _, at := range levels(root, "") {
		quota, period, _ := strings.Cut(read(root, path.Join(at, "cpu.max")), " ")
		allow(quota, period)
	}
	for _, at := range levels(root, "cpu") {
		allow(read(root, path.Join(at, "cpu.cfs_quota_us")), read(root, path.Join(at, "cpu.cfs_period_us")))
	}
	for _, m := range memoryLimits(root) {
		if memory == 0 || m.most < memory {
			memory = m.most
		}
	}
	return cpus, memory
}

// memoryLimit is a limit of memory, and where it is told how much of it is used.
type memoryLimit struct {
	most  uint64
	at    string // the cgroup's folder
	used  string // a file there
	cache string // how the line of memory.stat begins that tells the cache of files not lately used
}

// memoryLimits are the limits of memory that hold for this process.
func memoryLimits(root fs.FS) (all []memoryLimit) {
	for _, v := range []struct{ controller, most, used, cache string }{
		{"", "memory.max", "memory.current", "inactive_file "},
		{"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
	} {
		for _, at := range levels(root, v.controller) {
			if most, err := strconv.ParseUint(read(root, path.Join(at, v.most)), 10, 64); err == nil && most > 0 && most < noLimit {
				all = append(all, memoryLimit{most, at, v.used, v.cache})
			}
		}
	}
	return all
}

// levels are the folders of this process's cgroup and of those above it, as far
// as they can be seen: of version 2, or of a controller of version 1.
func levels(root fs.FS, controller string) (all []string) {
	dir, mount, top := "", "", ""
	for l := range strings.Lines(read(root, "proc/self/cgroup")) {
		// 0::/a, or 4:cpu,cpuacct:/a
		if f := strings.SplitN(strings.TrimSpace(l), ":", 3); len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) {
			dir = path.Join("/", f[2])
		}
	}
	for l := range strings.Lines(read(root, "proc/self/mountinfo")) {
		// 30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw
		// 31 23 0:27 /docker/a /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu,cpuacct
		before, after, _ := strings.Cut(strings.TrimSpace(l), " - ")
		f, of := strings.Fields(before), strings.Fields(after)
		if len(f) < 5 || len(of) < 3 {
			continue
		}
		if controller == "" && of[0] == "cgroup2" || controller != "" && of[0] == "cgroup" && slices.Contains(strings.Split(of[2], ","), controller) {
			mount, top = strings.TrimPrefix(f[4], "/"), f[3]
		}
	}
	if mount == "" || dir == "" {
		return nil
	}
	if below, is := strings.CutPrefix(dir, top); is && top != "/" { // a container sees the host's path, and its own folder
		dir = path.Join("/", below)
	}
	for ; ; dir = path.Dir(dir) {
		if all = append(all, path.Join(mount, dir)); dir == "/" {
			return all
		}
	}
}

// read is a file's text without its last newline; "" where it cannot be read.
func read(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
