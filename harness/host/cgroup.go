package host

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// cgroupLimits are the CPUs and the bytes of memory that this process's cgroup,
// or one above it, allows; 0: no limit, or no cgroup of version 2 to be seen.
// Source: https://docs.kernel.org/admin-guide/cgroup-v2.html.
func cgroupLimits(root fs.FS) (cpus float64, memory uint64) {
	mount, dir, ok := cgroup(root)
	if !ok {
		return 0, 0
	}
	for ; ; dir = path.Dir(dir) {
		at := path.Join(mount, dir)
		if quota, period, ok := strings.Cut(read(root, path.Join(at, "cpu.max")), " "); ok {
			q, err1 := strconv.ParseFloat(quota, 64)
			p, err2 := strconv.ParseFloat(period, 64)
			if err1 == nil && err2 == nil && q > 0 && p > 0 && (cpus == 0 || q/p < cpus) {
				cpus = q / p
			}
		}
		if m, err := strconv.ParseUint(read(root, path.Join(at, "memory.max")), 10, 64); err == nil && (memory == 0 || m < memory) {
			memory = m
		}
		if dir == "/" {
			return cpus, memory
		}
	}
}

// cgroup is where cgroups of version 2 are mounted, and this process's own below it.
func cgroup(root fs.FS) (mount, dir string, ok bool) {
	for line := range strings.Lines(read(root, "proc/self/cgroup")) {
		if d, is := strings.CutPrefix(strings.TrimSpace(line), "0::"); is {
			dir = path.Join("/", d)
		}
	}
	for line := range strings.Lines(read(root, "proc/self/mountinfo")) {
		// 30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw
		before, after, _ := strings.Cut(line, " - ")
		if f := strings.Fields(before); len(f) > 4 && strings.HasPrefix(after, "cgroup2 ") {
			mount = strings.TrimPrefix(f[4], "/")
		}
	}
	return mount, dir, mount != "" && dir != ""
}

// read is a file's text without its last newline; "" where it cannot be read.
func read(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
