package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// RunQueueWait is how long the living threads of a process have waited for a CPU, in nanoseconds; -1 unknown.
// Source: the second field of /proc/PID/task/TID/schedstat.
func RunQueueWait(pid int) int64 {
	if pid <= 0 {
		return -1
	}
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
	if len(files) == 0 {
		return -1
	}
	sum := int64(0)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		fields := strings.Fields(string(text))
		if len(fields) < 2 {
			return -1
		}
		wait, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return -1
		}
		sum += wait
	}
	return sum
}
