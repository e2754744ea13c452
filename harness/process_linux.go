package harness

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// processCPU is the CPU time that a process has used, in nanoseconds, by its
// own clock: it counts threads that have ended, and has no ticks.
// Source: clock_getcpuclockid(3): the id of a process's clock is (^pid << 3) | 2.
func processCPU(pid int) (ns int64, ok bool) {
	if pid <= 0 {
		return 0, false
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, false
	}
	return ts.Nano(), true
}

// processMemory is a process's resident memory and its high-water mark in bytes, and its threads.
//
// Note: by hand, not procfs, whose reading leaves 10 KB of garbage. It is read each second of a load, in which no collector runs.
// Source: proc_pid_status(5).
func processMemory(pid int) (rss, peak int64, threads int, ok bool) {
	if pid <= 0 {
		return 0, 0, 0, false
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, 0, false
	}
	defer unix.Close(fd)
	var text [8 << 10]byte
	n, err := unix.Read(fd, text[:])
	if err != nil {
		return 0, 0, 0, false
	}
	for rest := text[:n]; len(rest) > 0; { // bytes.Lines would put the text on the heap
		var l []byte
		l, rest, _ = bytes.Cut(rest, []byte("\n"))
		name, value, _ := bytes.Cut(l, []byte(":"))
		value, _, _ = bytes.Cut(bytes.TrimSpace(value), []byte(" "))
		switch string(name) {
		case "VmRSS":
			rss = number(value) << 10
		case "VmHWM":
			peak = number(value) << 10
		case "Threads":
			threads = int(number(value))
		}
	}
	return rss, peak, threads, rss > 0 // a process that has ended and was not waited for has no memory
}

func number(text []byte) int64 {
	n, _ := strconv.ParseInt(string(text), 10, 64)
	return n
}

// resetPeak makes a process's high-water mark its present use.
// Source: proc_pid_clear_refs(5), value 5.
func resetPeak(pid int) bool {
	return pid > 0 && os.WriteFile("/proc/"+strconv.Itoa(pid)+"/clear_refs", []byte("5"), 0) == nil
}

// tick is the unit of CPU times in /proc: USER_HZ, which is 100 on every Linux that Go runs on.
const tick = 1e9 / 100

// othersCPU is the CPU time of each process of the system that is no thread of
// the kernel and neither one of own nor a descendant of one, by pid. One of 0 is none.
func othersCPU(own ...int) map[int]int64 {
	procs, err := procfs.AllProcs()
	if err != nil {
		return nil
	}
	parent := make(map[int]int, len(procs))
	cpu := make(map[int]int64, len(procs))
	for _, p := range procs {
		st, err := p.Stat()
		if err != nil {
			continue
		}
		parent[p.PID] = st.PPID
		cpu[p.PID] = int64(st.UTime+st.STime) * tick
	}
	const kthreadd = 2
	for pid := range cpu {
		for p, depth := pid, 0; p > 0 && depth < 64; p, depth = parent[p], depth+1 {
			if p == kthreadd || slices.Contains(own, p) {
				delete(cpu, pid)
				break
			}
		}
	}
	return cpu
}

// checkFiles says when a process of a run may not open the files that it needs.
//
// Note: Go raises its own soft limit to the hard one, but gives the programs
// that it starts the old one back, unless the limit is set by hand, as here: a
// relay with many connections needs it as much.
func checkFiles(need int) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return nil // unknown: the connections will tell
	}
	if need > usualFiles && uint64(need) <= l.Max {
		l.Cur = max(l.Cur, l.Max)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
			return fmt.Errorf("raise the limit of open files to %d: %w", l.Cur, err)
		}
	}
	return enoughFiles(need, l.Cur)
}
