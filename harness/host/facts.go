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
	}
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		h.Memory = m.Total
	}
	h.Kernel, _ = host.KernelVersionWithContext(ctx)
	h.Distribution = distribution(ctx, root)
	if system, role, err := host.VirtualizationWithContext(ctx); err == nil && role == "guest" {
		h.Virtualisation = system
	}
	if l, err := load.AvgWithContext(ctx); err == nil {
		h.Load1 = l.Load1
	}
	return h
}

// distribution is the system's name and version, as in "debian 13".
//
// Note: where there is an os-release file it is read here, as gopsutil may run lsb_release, which takes its time.
// Source: https://www.freedesktop.org/software/systemd/man/latest/os-release.html.
func distribution(ctx context.Context, root fs.FS) string {
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
			return strings.TrimSpace(of["ID"] + " " + of["VERSION_ID"])
		}
	}
	if runtime.GOOS == "linux" {
		return ""
	}
	platform, _, version, err := host.PlatformInformationWithContext(ctx)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(platform + " " + version)
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
