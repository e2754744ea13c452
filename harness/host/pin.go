package host

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"relaybench/harness/variable"
)

// Allowed are the CPUs that this process was allowed to run on when that was
// first asked, which is before [Pin] has changed it.
func Allowed() (variable.CPUs, error) { return allowed() }

// CheckCPUs says why not all of some CPUs can be had.
func CheckCPUs(cpus variable.CPUs) error {
	if len(cpus) == 0 {
		return nil
	}
	may, err := Allowed()
	if err != nil {
		return err
	}
	return checkCPUs(cpus, online(os.DirFS("/"), may), may)
}

func checkCPUs(cpus, online, may variable.CPUs) error {
	if off := cpus.Without(online); len(off) > 0 {
		return fmt.Errorf("%s not online: this machine has %s", named(off, "is", "are"), online.List())
	}
	if no := cpus.Without(may); len(no) > 0 {
		return fmt.Errorf("%s not allowed to relaybench, whose own affinity or cpuset has %s", named(no, "is", "are"), may.List())
	}
	return nil
}

// named are CPUs in words, with the verb that goes with one or many.
func named(cpus variable.CPUs, one, many string) string {
	if len(cpus) == 1 {
		return "CPU " + cpus.List() + " " + one
	}
	return "CPUs " + cpus.List() + " " + many
}

// online are the CPUs that are online; else where the system does not tell.
func online(root fs.FS, otherwise variable.CPUs) variable.CPUs {
	if c, err := variable.ParseCPUs(read(root, "sys/devices/system/cpu/online")); err == nil {
		return c
	}
	return otherwise
}

// Cores are the cores that two lists of CPUs share without sharing the CPU:
// the threads of each (SMT siblings), as in 0,4. What one of them does slows the other.
func Cores(a, b variable.CPUs) []string { return cores(os.DirFS("/"), a, b) }

func cores(root fs.FS, a, b variable.CPUs) (shared []string) {
	for _, n := range a {
		threads, err := variable.ParseCPUs(read(root, path.Join("sys/devices/system/cpu/cpu"+strconv.Itoa(n), "topology/thread_siblings_list")))
		if err != nil {
			continue
		}
		others := threads.And(b).Without(variable.CPUs{n})
		if core := threads.List(); len(others) > 0 && !slices.Contains(shared, core) {
			shared = append(shared, core)
		}
	}
	return shared
}

// CPUsOf are the CPUs that any thread of a process may run on; none where that is not told.
// Source: Cpus_allowed_list of proc_pid_status(5).
func CPUsOf(pid int) variable.CPUs { return cpusOf(os.DirFS("/"), pid) }

func cpusOf(root fs.FS, pid int) (all variable.CPUs) {
	paths, _ := fs.Glob(root, "proc/"+strconv.Itoa(pid)+"/task/*/status")
	for _, p := range paths {
		for l := range strings.Lines(read(root, p)) {
			if list, is := strings.CutPrefix(l, "Cpus_allowed_list:"); is {
				if c, err := variable.ParseCPUs(strings.TrimSpace(list)); err == nil {
					all = append(all, c...)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
