// Package host tells what machine a run is made on, and what of it is left.
//
// It must never know the run.
package host

import (
	"context"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"

	"relaybench/harness/result"
)

// Facts reads what this system tells of itself; what it does not tell is the
// zero value. name overrides the system's own name where it is not empty.
func Facts(ctx context.Context, name string) result.Host {
	root := os.DirFS("/")
	h := result.Host{Name: name, CPUs: runtime.NumCPU(), OS: runtime.GOOS, Governor: governor(root)}
	h.CgroupCPU, h.CgroupMemory = cgroupLimits(root)
	if h.Name == "" {
		h.Name, _ = os.Hostname()
	}
	if infos, err := cpu.InfoWithContext(ctx); err == nil && len(infos) > 0 {
		h.CPU = strings.TrimSpace(infos[0].ModelName)
		h.Sockets = sockets(infos)
	}
	h.Cores, _ = cpu.CountsWithContext(ctx, false)
	h.Threads, _ = cpu.CountsWithContext(ctx, true)
	h.Turbo = turbo(root)
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		h.Memory = m.Total
	}
	h.Kernel, _ = host.KernelVersionWithContext(ctx)
	h.Uname = uname(root, h.Kernel)
	h.Distribution, h.Release = distribution(ctx, root)
	if system, role, err := host.VirtualizationWithContext(ctx); err == nil && role == "guest" {
		h.Virtualisation = system
	}
	if l, err := load.AvgWithContext(ctx); err == nil {
		h.Load1 = l.Load1
	}
	return h
}

// distribution is the system's name and version, as in "debian 13", and its name in full where it says one.
//
// Note: where there is an os-release file it is read here, as gopsutil may run lsb_release, which takes its time.
// Source: https://www.freedesktop.org/software/systemd/man/latest/os-release.html.
func distribution(ctx context.Context, root fs.FS) (short, full string) {
	for _, path := range []string{"etc/os-release", "usr/lib/os-release"} {
		text, err := fs.ReadFile(root, path)
		if err != nil {
			continue
		}
		of := map[string]string{}
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				of[key] = strings.Trim(value, `"'`)
			}
		}
		if of["ID"] != "" {
			return strings.TrimSpace(of["ID"] + " " + of["VERSION_ID"]), of["PRETTY_NAME"]
		}
	}
	if runtime.GOOS == "linux" {
		return "", ""
	}
	platform, _, version, err := host.PlatformInformationWithContext(ctx)
	if err != nil {
		return "", ""
	}
	return strings.TrimSpace(platform + " " + version), ""
}

// uname is what the kernel says of itself, without the machine's name, and the architecture.
func uname(root fs.FS, release string) string {
	words := []string{read(root, "proc/sys/kernel/ostype"), release, read(root, "proc/sys/kernel/version")}
	arch, _ := host.KernelArch()
	words = slices.DeleteFunc(append(words, arch), func(w string) bool { return w == "" })
	return strings.Join(words, " ")
}

// sockets is how many packages the CPUs are in; 0 where that is not told.
func sockets(cpus []cpu.InfoStat) int {
	seen := map[string]bool{}
	for i := range cpus {
		if id := cpus[i].PhysicalID; id != "" {
			seen[id] = true
		}
	}
	return len(seen)
}

// turbo says whether the CPUs may run faster than their base frequency: on,
// off, or "" where the kernel has no say in it, as in most virtual machines.
// Source: https://docs.kernel.org/admin-guide/pm/intel_pstate.html (no_turbo), pm/cpufreq.html (boost).
func turbo(root fs.FS) string {
	switch read(root, "sys/devices/system/cpu/intel_pstate/no_turbo") {
	case "0":
		return "on"
	case "1":
		return "off"
	}
	switch read(root, "sys/devices/system/cpu/cpufreq/boost") {
	case "1":
		return "on"
	case "0":
		return "off"
	}
	return ""
}

// governor is the CPUs' frequency governor; several where they differ.
func governor(root fs.FS) string {
	paths, _ := fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	var found []string
	for _, path := range paths {
		if text, err := fs.ReadFile(root, path); err == nil {
			if g := strings.TrimSpace(string(text)); g != "" && !slices.Contains(found, g) {
				found = append(found, g)
			}
		}
	}
	slices.Sort(found)
	return strings.Join(found, ",")
}
