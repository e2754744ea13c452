package commands

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/perf"
	"relaybench/harness/result"
	"relaybench/store"
)

// profileView is how a profile is looked at.
type profileView struct {
	focus string
	base  string
	to    string
	most  int // rows; 0: all
}

// profileViewFlags are the names of its flags.
var profileViewFlags = []string{"focus", "base", "to", "number"}

// bindProfileView binds the flags of the view profile.
func bindProfileView(fs *pflag.FlagSet) *profileView {
	v := &profileView{}
	fs.StringVar(&v.focus, "focus", "", "of a profile: only samples in whose stack a function matches `REGEX`")
	fs.StringVar(&v.base, "base", "", "of a profile: what grew and what shrank since that of another `REPORT`")
	fs.StringVar(&v.to, "to", "", "of a profile: write it as FILE.pb.gz and `FILE`.html, as test --perf does")
	fs.IntVarP(&v.most, "number", "n", 25, "of a profile: list `N` functions; 0: all")
	pathFlag(fs, "to", anyPath)
	offer(fs, "base", reportValues)
	return v
}

// check says why the flags are of no use for another view.
func (v *profileView) check(fs *pflag.FlagSet, view string) error {
	if v.most < 0 {
		return usageError(fmt.Errorf("-n %d is no number of rows", v.most), "")
	}
	if v.base != "" && v.to != "" {
		return usageError(errors.New("--base and --to exclude each other: files are of one profile"), "")
	}
	for _, name := range profileViewFlags {
		if view != "profile" && fs.Changed(name) {
			return usageError(fmt.Errorf("--%s is of the view profile", name), "show REPORT profile")
		}
	}
	return nil
}

// showProfile shows where the relay spent its CPU time.
func (s *Session) showProfile(db *store.DB, r *store.Report, v profileView) error {
	data, err := profileOf(r)
	if err != nil {
		return err
	}
	if v.to != "" {
		path, err := s.profilePath(v.to)
		if err != nil {
			return err
		}
		if err := writeProfile(r, path); err != nil {
			return err
		}
		if s.format == Text {
			return s.tellProfile(r, path)
		}
		files := table.Record()
		files.Field("pprof", "", table.Text(path+pprofFile))
		files.Field("flame_graph", "", table.Text(path+flameFile))
		return s.print(files)
	}
	if v.base != "" {
		base, err := db.Get(v.base)
		if err != nil {
			return err
		}
		if base.Result == nil {
			return fmt.Errorf("report %s has no result", base.ID)
		}
		return s.showGrowth(base, r, v)
	}
	top, err := perf.TopOf(data, v.focus)
	if err != nil {
		return focusError(err)
	}
	each, known := perSend(r)
	t := &table.Table{Columns: []table.Column{{Key: "self_percent", Head: "self", Right: true}, {Key: "total_percent", Head: "total", Right: true},
		{Key: "self_ns", Head: "a send", Right: true}, {Key: "total_ns", Head: "total a send", Right: true}, {Key: "function", Wrap: true},
		{Key: "whole_stacks_percent", Data: true}, {Key: "lost_samples", Data: true}}}
	p := r.Result.Profile
	for _, row := range cut(top.Rows, v.most) {
		self, total := row.Self/top.Total, row.Total/top.Total
		t.Add(shareCell(self), shareCell(total), table.Float(self*each, known).As(span(self*each)), table.Float(total*each, known).As(span(total*each)),
			table.Text(row.Name), shareCell(wholeShare(p)), table.Uint(p.Lost))
	}
	if s.format != Text {
		return s.print(t)
	}
	lines := profileNotes(r)
	if known {
		lines = append(lines, fmt.Sprintf("a send costs the relay %s of CPU; of it, by share:", span(each)))
	}
	if v.focus != "" {
		lines = append(lines, fmt.Sprintf("%s of samples have a function in their stack that matches %q: below are these alone", percent(top.Kept/top.Total), v.focus))
	}
	return s.printFunctions(lines, t, len(top.Rows), v.most)
}

// printFunctions prints what is to be known of some functions, those that are
// listed of all, and how many are not.
func (s *Session) printFunctions(lines []string, t *table.Table, all, most int) error {
	for _, l := range lines {
		if err := s.printf("%s\n", s.wrap(table.Clean(l))); err != nil {
			return err
		}
	}
	if err := s.printf("\n"); err != nil {
		return err
	}
	if err := s.print(t); err != nil {
		return err
	}
	return s.moreFunctions(all, most)
}

// moreFunctions says how many were not listed.
func (s *Session) moreFunctions(all, most int) error {
	if most == 0 || all <= most {
		return nil
	}
	return s.say("and %s more functions: -n 0 lists all\n", count(all-most))
}

func cut[T any](rows []T, most int) []T {
	if most > 0 && len(rows) > most {
		return rows[:most]
	}
	return rows
}

// shareCell is a share, in percent for programs.
func shareCell(share float64) table.Cell {
	return table.Float(100*share, true).As(percent(share))
}

// perSend is what a handled send costs the relay, in nanoseconds of CPU.
func perSend(r *store.Report) (float64, bool) {
	return store.FindMetric("cpu-per-envelope").Of(r)
}

// focusError is the error of a focus that is no regular expression.
func focusError(err error) error {
	if strings.HasPrefix(err.Error(), "error parsing regexp") {
		return usageError(fmt.Errorf("--focus: %w", err), "")
	}
	return err
}

// wholeShare is the share of samples whose stack is whole.
func wholeShare(p *result.Profile) float64 {
	if p.Samples == 0 {
		return 0
	}
	return float64(p.Whole) / float64(p.Samples)
}

// profileNotes are what has to be known of the profile of a report that has one.
func profileNotes(r *store.Report) []string {
	p := r.Result.Profile
	if len(p.Data) == 0 {
		return []string{"no profile was made: " + p.Failed}
	}
	m := perf.Means{Event: p.Event}
	by := fmt.Sprintf("perf %s: %s samples in %.1f s, %d a second of CPU by %s, call graph %s, %s lost",
		p.Perf, count(p.Samples), float64(p.Took)/1e9, p.Freq, p.Event, p.CallGraph, count(p.Lost))
	if m.Clock() {
		by += "; there are no cycles to count on this machine, as in most virtual ones"
	}
	if m.UserOnly() {
		by += "; without the kernel's part, which this user may not see"
	}
	lines := []string{by}
	whole := fmt.Sprintf("complete stacks: %s (%s of %s)", percent(wholeShare(p)), count(p.Whole), count(p.Samples))
	if wholeShare(p) < 0.9 {
		whole += "; the others lack their outer callers, whose totals are too small"
	}
	if p.CallGraph == perf.FP && wholeShare(p) < 0.5 {
		whole += fmt.Sprintf("; fp needs a relay that was built with RUSTFLAGS='-C force-frame-pointers=yes', %s does not", perf.Dwarf)
	}
	lines = append(lines, whole+"; of so many samples a share of 10% is uncertain by "+uncertain(p.Samples))
	if share := drained(&r.Result.Relay); share > 0.1 {
		lines = append(lines, fmt.Sprintf("%s of the relay's CPU was used in the drain, which is not in the profile", percent(share)))
	}
	if p.Cut > 0 {
		lines = append(lines, fmt.Sprintf("%s samples of rare stacks are kept without their callers", count(p.Cut)))
	}
	if p.Failed != "" {
		lines = append(lines, "not all of it: "+p.Failed)
	}
	return lines
}

// uncertain is how far off a share of 10% of so many samples may be, in 19 of 20 profiles.
func uncertain(samples uint64) string {
	return fmt.Sprintf("±%.1f points", 100*1.96*math.Sqrt(0.1*0.9/float64(max(samples, 1))))
}

// drained is the share of a relay's CPU that it used after the load; 0 where it is not known.
func drained(r *result.RelayRun) float64 {
	if !r.CPUKnown || r.CPUDrain <= r.CPUStart {
		return 0
	}
	return float64(r.CPUDrain-r.CPULoad) / float64(r.CPUDrain-r.CPUStart)
}

// showGrowth shows what grew and what shrank from one profile to another.
func (s *Session) showGrowth(base, r *store.Report, v profileView) error {
	var data [2][]byte
	var tops [2]perf.Top
	scale, each := [2]float64{}, true // what a whole is worth
	for i, one := range []*store.Report{base, r} {
		var err error
		if data[i], err = profileOf(one); err != nil {
			return err
		}
		if tops[i], err = perf.TopOf(data[i], v.focus); err != nil {
			return focusError(err)
		}
		ns, known := perSend(one)
		scale[i], each = ns, each && known
	}
	if !each {
		scale = [2]float64{1, 1}
	}
	grown, err := perf.Difference(data[0], data[1], scale, v.focus)
	if err != nil {
		return err
	}
	slices.SortStableFunc(grown.Rows, func(a, b perf.Row) int { return cmp.Compare(math.Abs(b.Self), math.Abs(a.Self)) })
	shares := [2]map[string]perf.Row{{}, {}}
	for i := range tops {
		for _, row := range tops[i].Rows {
			shares[i][row.Name] = perf.Row{Self: row.Self / tops[i].Total, Total: row.Total / tops[i].Total}
		}
	}
	t := &table.Table{Columns: []table.Column{
		{Key: "self_change_ns", Head: "self", Right: true}, {Key: "total_change_ns", Head: "total", Right: true},
		{Key: "base_self_percent", Head: "self was", Right: true}, {Key: "self_percent", Head: "is", Right: true},
		{Key: "base_total_percent", Head: "total was", Right: true}, {Key: "total_percent", Head: "is", Right: true}, {Key: "function", Wrap: true},
		{Key: "base_whole_stacks_percent", Data: true}, {Key: "whole_stacks_percent", Data: true}}}
	signed := func(v float64) string {
		text := span(v)
		if !each {
			text = percent(v)
		}
		if v > 0 {
			text = "+" + text
		}
		return text
	}
	if !each {
		t.Columns[0].Key, t.Columns[1].Key = "self_change_share", "total_change_share"
	}
	for _, row := range cut(grown.Rows, v.most) {
		was, is := shares[0][row.Name], shares[1][row.Name]
		t.Add(table.Float(row.Self, true).As(signed(row.Self)), table.Float(row.Total, true).As(signed(row.Total)), shareCell(was.Self), shareCell(is.Self),
			shareCell(was.Total), shareCell(is.Total), table.Text(row.Name), shareCell(wholeShare(base.Result.Profile)), shareCell(wholeShare(r.Result.Profile)))
	}
	if s.format != Text {
		return s.print(t)
	}
	var lines []string
	for i, one := range []*store.Report{base, r} {
		p := one.Result.Profile
		line := fmt.Sprintf("%s %s: %s samples by %s, call graph %s, %s lost, complete stacks %s", [2]string{"was", "is"}[i], one.ID, count(p.Samples), p.Event, p.CallGraph, count(p.Lost), percent(wholeShare(p)))
		line += ", a share of 10% uncertain by " + uncertain(p.Samples)
		if share := drained(&one.Result.Relay); share > 0.1 {
			line += fmt.Sprintf(", %s of the CPU was used in the drain and is not in it", percent(share))
		}
		if each {
			line += ", " + span(scale[i]) + " of CPU a send"
		}
		if v.focus != "" {
			line += fmt.Sprintf("; %s of samples match %q", percent(tops[i].Kept/tops[i].Total), v.focus)
		}
		lines = append(lines, line)
	}
	if each {
		lines = append(lines, "self and total: CPU a send, what grew and what shrank")
	} else {
		lines = append(lines, "self and total: shares of each profile, for what a send costs is not known of both")
	}
	if store.GroupKey(store.VariablesOf(base), store.BuildVariables()...) != store.GroupKey(store.VariablesOf(r), store.BuildVariables()...) {
		lines = append(lines, fmt.Sprintf("the two differ in more than the relay's build: diff %s %s says in what", base.ID, r.ID))
	}
	return s.printFunctions(lines, t, len(grown.Rows), v.most)
}
