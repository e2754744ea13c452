package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/perf"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/store"
)

// profileFlags are the flags of test by which the relay is profiled, and what was typed for them.
type profileFlags struct {
	fs         *pflag.FlagSet
	file       *string
	callGraphs *string
	freq       *int
}

// profileFlagNames are their names.
var profileFlagNames = []string{"perf", "call-graph", "perf-freq"}

func bindProfile(fs *pflag.FlagSet) profileFlags {
	f := profileFlags{fs: fs}
	f.file = fs.String("perf", "", "profile the relay with Linux's perf from the load's start to its end, and write FILE.pb.gz for pprof and FILE.html, a flame graph; of several runs `FILE`-REPORT.pb.gz and so on. show REPORT profile lists the functions")
	f.callGraphs = fs.String("call-graph", "", "how callers are found, `HOW`: dwarf (from copies of the stack; so it is where nothing is said, but for the stand-in), fp (needs a relay with frame pointers), lbr (needs an Intel CPU, and no virtual machine); lbr,dwarf: the first of them that works here")
	f.freq = fs.Int("perf-freq", 0, fmt.Sprintf("samples a second of CPU, `N` up to %d; 0: %d with dwarf, else %d", plan.MaxProfileFreq, perf.DefaultFreq(perf.Dwarf), perf.DefaultFreq(perf.FP)))
	pathFlag(fs, "perf", anyPath)
	offer(fs, "call-graph", fixedValues(perf.CallGraphs...))
	return f
}

// set puts into a plan's values how the relay is profiled, if it is, and gives
// the path that files are named by. It sees whether it can be done on this host.
func (f profileFlags) set(ctx context.Context, s *Session, v *plan.Values) (path string, err error) {
	if !f.fs.Changed("perf") {
		for _, name := range profileFlagNames[1:] {
			if f.fs.Changed(name) {
				return "", usageError(fmt.Errorf("--%s is of a profile, and none is asked for", name), "--perf FILE profiles the relay")
			}
		}
		return "", nil
	}
	ref, err := s.inUse()
	if err != nil {
		return "", err
	}
	form := ref.form()
	if form == relay.FormNone || form == relay.FormURL {
		return "", usageError(fmt.Errorf("--perf: the relay in use is %s, which is no process that is started here", table.Clean(ref.What)), "relay use PATH")
	}
	if form == relay.FormImage {
		return "", usageError(fmt.Errorf("--perf: %s runs in a container, and what tells its functions' names is in there, and gone with it", table.Clean(ref.What)), "relay use PATH takes a binary, which can be profiled")
	}
	graphs := []string{perf.Dwarf}
	if form == relay.FormStandIn { // Go keeps frame pointers, and has nothing that perf could unwind by otherwise
		graphs = []string{perf.FP}
	}
	if f.fs.Changed("call-graph") {
		graphs = strings.Split(*f.callGraphs, ",")
	}
	for _, g := range graphs {
		if !slices.Contains(perf.CallGraphs, g) {
			return "", usageError(fmt.Errorf("--call-graph %q: expected %s, or several of them by preference", g, oneOf(perf.CallGraphs)), "")
		}
	}
	if *f.freq < 0 || *f.freq > plan.MaxProfileFreq {
		return "", usageError(fmt.Errorf("--perf-freq %d is not between 1 and %d samples a second", *f.freq, plan.MaxProfileFreq), "")
	}
	if path, err = s.profilePath(*f.file); err != nil {
		return "", err
	}
	means, err := s.bench.findPerf(ctx, graphs...)
	if err != nil {
		return "", fmt.Errorf("--perf: %w", err)
	}
	freq := *f.freq
	if freq == 0 {
		freq = perf.DefaultFreq(means.CallGraph)
	}
	v.Knobs["profiled"] = []string{plan.Profile{CallGraph: means.CallGraph, Freq: freq}.String()}
	return path, nil
}

// The files of a profile.
const (
	pprofFile = ".pb.gz"
	flameFile = ".html"
)

// profilePath is the path that the files of a profile are named by: FILE, whose ending may be one of theirs.
func (s *Session) profilePath(typed string) (string, error) {
	for _, ending := range []string{pprofFile, flameFile} {
		typed = strings.TrimSuffix(typed, ending)
	}
	if typed == "" || strings.HasSuffix(typed, "/") {
		return "", usageError(fmt.Errorf("%q names no file", typed), "the files of a profile are FILE.pb.gz and FILE.html")
	}
	return s.newFile(typed, pprofFile, flameFile)
}

// errNoProfile says that a report has none.
var errNoProfile = errors.New("no profile was made in this run: test … --perf FILE makes one")

// profileOf is the profile of a report, for pprof.
func profileOf(r *store.Report) ([]byte, error) {
	p := r.Result.Profile
	switch {
	case p == nil:
		return nil, fmt.Errorf("report %s: %w", r.ID, errNoProfile)
	case len(p.Data) == 0:
		return nil, fmt.Errorf("report %s: its profile failed: %s", r.ID, table.Clean(p.Failed))
	case p.Samples == 0:
		return nil, fmt.Errorf("report %s: no sample was taken", r.ID)
	}
	return p.Data, nil
}

// writeProfile writes the files of a report's profile.
func writeProfile(r *store.Report, path string) error {
	data, err := profileOf(r)
	if err != nil {
		return err
	}
	page, err := perf.Flame(data, "report "+r.ID)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		ending string
		data   []byte
	}{{pprofFile, data}, {flameFile, page}} {
		if err := store.NewFile(path+f.ending, func(w io.Writer) error { _, err := w.Write(f.data); return err }); err != nil {
			return fmt.Errorf("write %q: %w", path+f.ending, err)
		}
	}
	return nil
}

// tellProfile says which files were written of a profile.
func (s *Session) tellProfile(r *store.Report, path string) error {
	return s.say("%s\n", s.wrap(fmt.Sprintf("profile: %s for go tool pprof -http=:, and %s, a flame graph; show %s profile lists the functions", table.Clean(path+pprofFile), table.Clean(path+flameFile), r.ID)))
}
