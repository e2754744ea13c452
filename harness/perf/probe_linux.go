package perf

import (
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probe opens an event on this process, and closes it again.
// Source: perf_event_open(2).
func probe(event string, lbr bool) error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_CPU_CYCLES, Bits: unix.PerfBitDisabled,
		Sample: 99, Sample_type: unix.PERF_SAMPLE_IP}
	attr.Bits |= unix.PerfBitFreq
	attr.Size = uint32(unsafe.Sizeof(attr))
	name, user := strings.CutSuffix(event, userOnly)
	if name == cpuClock {
		attr.Type, attr.Config = unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK
	}
	if user {
		attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	if lbr {
		attr.Sample_type |= unix.PERF_SAMPLE_BRANCH_STACK
		attr.Branch_sample_type = unix.PERF_SAMPLE_BRANCH_USER | unix.PERF_SAMPLE_BRANCH_CALL_STACK
	}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// cpuModel is the name of this host's CPU.
func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "a CPU of unknown model"
}
