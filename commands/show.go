package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/result"
	"relaybench/harness/variable"
	"relaybench/store"
)

// view is one way to look at a report.
type view struct {
	name string
	help string
	show func(*Session, *store.Report) error // nil: of the profile, which has flags
	// match shows a part of it, of what has a pattern in it; nil: it has no parts.
	match func(s *Session, r *store.Report, pattern string) error
}

// views are the ways to look at a report.
var views = []view{
	{name: "summary", help: "what ran and how it went, on a screen", show: (*Session).showSummary},
	{name: "ledger", help: "where every send and item went", show: (*Session).showLedger},
	{name: "latency", help: "all distributions of times", show: (*Session).showLatency},
	{name: "timers", help: "the relay's own timers, counters and gauges, of a run with --statsd on; with a PATTERN, those that have it in their name or tags",
		show: func(s *Session, r *store.Report) error { return s.showTimers(r, "") }, match: (*Session).showTimers},
	{name: "samples", help: "second by second", show: (*Session).showSamples},
	{name: "profile", help: "where the relay spent its CPU time, of a run with --perf"},
	{name: "config", help: "the relay's effective config", show: (*Session).showConfig},
	{name: "host", help: "the machine", show: (*Session).showHost},
	{name: "log", help: "the relay's last log lines, its warnings and errors counted", show: (*Session).showLog},
}

var showCommand = command{
	name:    "show",
	summary: "a report: its summary, or one view of it",
	detail:  viewHelp(),
	args: []arg{{name: "REPORT", help: reportHelp, values: reportValues},
		{name: "VIEW", help: strings.Join(viewNames(), ", "), optional: true, values: fixedValues(viewNames()...)},
		{name: "PATTERN", help: "of timers: a part of a name or tag", optional: true, values: patternValues}},
	examples: []string{"show last", "show last ledger", "show last --json", "show last timers event_processing", "show last profile --focus uaparser", "show last profile --base last-1"},
	table:    true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		profile := bindProfileView(fs)
		return func(_ context.Context, args []string) (Code, error) {
			shown := views[0]
			if len(args) > 1 {
				i := slices.IndexFunc(views, func(v view) bool { return v.name == args[1] })
				if i < 0 {
					return Fine, usageError(fmt.Errorf("unknown view %q", args[1]),
						didYouMean(variable.Nearest(args[1], viewNames()), "the views are "+strings.Join(viewNames(), ", ")))
				}
				shown = views[i]
			}
			if len(args) > 2 && shown.match == nil {
				return Fine, usageError(fmt.Errorf("view %s takes no pattern, as %q", shown.name, args[2]), "")
			}
			if err := profile.check(fs, shown.name); err != nil {
				return Fine, err
			}
			if absent, err := s.bench.absent(); absent || err != nil {
				if err == nil {
					err = fmt.Errorf("no report %q: no run was made here yet", args[0])
				}
				return Fine, err
			}
			db, err := s.bench.open()
			if err != nil {
				return Fine, err
			}
			r, err := db.Get(args[0])
			if err != nil {
				return Fine, err
			}
			if r.Result == nil {
				return Fine, fmt.Errorf("report %s has no result", r.ID)
			}
			if shown.show == nil {
				return Fine, s.showProfile(db, r, *profile)
			}
			if len(args) > 2 {
				return Fine, shown.match(s, r, args[2])
			}
			return Fine, shown.show(s, r)
		}
	},
}

func viewNames() []string {
	var names []string
	for _, v := range views {
		names = append(names, v.name)
	}
	return names
}

func viewHelp() string {
	var b strings.Builder
	b.WriteString("VIEW is one of")
	for _, v := range views {
		fmt.Fprintf(&b, "\n  %-8s %s", v.name, v.help)
	}
	return b.String() + "\nThe summary is shown where none is named; as JSON it is all that is derived from the report."
}

func (s *Session) showSummary(r *store.Report) error {
	return s.printReport(r, store.MarksOf(r), false)
}

func (s *Session) showLedger(r *store.Report) error {
	l := result.LedgerOf(r.Result)
	switch s.format {
	case JSON:
		return s.printJSON(newLedgerJSON(l))
	case CSV:
		return s.print(ledgerRows(l))
	}
	if err := s.print(ledgerText(l)); err != nil {
		return err
	}
	for _, n := range ledgerNotes(l) {
		if err := s.printf("%s\n", s.wrap(n)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) showLatency(r *store.Report) error {
	rows := spans(r, true)
	if err := s.print(latencyTable(rows, true)); err != nil || s.format != Text {
		return err
	}
	l := result.LedgerOf(r.Result)
	for _, n := range append(fewNotes(rows), notSentNote(&l.Total.Sends)) {
		if n == "" {
			continue
		}
		if err := s.printf("%s\n", s.wrap(n)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) showSamples(r *store.Report) error {
	t := &table.Table{Columns: []table.Column{
		{Key: "at_ns", Head: "at", Right: true}, {Key: "step"}, {Key: "due", Data: true}, {Key: "sent", Right: true},
		{Key: "accepted", Data: true}, {Key: "refused", Right: true}, {Key: "failed", Right: true}, {Key: "arrived", Right: true},
		{Key: "outcomes", Data: true}, {Key: "backlog", Right: true},
		{Key: "relay_cpu_ns", Head: "relay CPU", Right: true}, {Key: "relay_rss_bytes", Head: "RSS", Right: true}, {Key: "threads", Data: true},
		{Key: "harness_cpu_ns", Head: "own CPU", Right: true}, {Key: "harness_rss_bytes", Head: "own RSS", Right: true},
		{Key: "late_max_ns", Head: "late", Right: true}, {Key: "open", Right: true},
	}}
	seen := func(v int64, text func(float64) string) table.Cell {
		return table.Float(float64(v), v >= 0).As(text(float64(v)))
	}
	for _, x := range r.Result.Samples {
		step := "load"
		if x.Draining {
			step = "drain"
		}
		t.Add(table.Int(x.At).As(fmt.Sprintf("%.1f s", time.Duration(x.At).Seconds())), table.Text(step),
			counted(x.Due), counted(x.Sent), counted(x.Accepted), counted(x.Refused), counted(x.Failed), counted(x.Arrived), counted(x.Outcomes),
			table.Int(x.Backlog), seen(x.RelayCPU, span), seen(x.RelayRSS, byteSize), seen(int64(x.Threads), figures),
			seen(x.HarnessCPU, span), table.Float(float64(x.HarnessRSS), x.HarnessRSS > 0).As(byteSize(float64(x.HarnessRSS))),
			table.Int(x.LateMax).As(span(float64(x.LateMax))), table.Int(x.Open))
	}
	return s.print(t)
}

func (s *Session) showConfig(r *store.Report) error {
	t := table.Record()
	t.Field("hash", "hash, without what the run owns", optional(r.Result.Relay.ConfigHash))
	t.Field("yaml", "yaml", optional(r.Result.Relay.Config))
	if s.format != Text {
		return s.print(t)
	}
	if r.Result.Relay.Config == "" {
		return s.printf("the relay's config is not known\n")
	}
	return s.printf("# hash, without what the run owns: %s\n%s\n", r.Result.Relay.ConfigHash, strings.TrimRight(cleanLines(r.Result.Relay.Config), "\n"))
}

func (s *Session) showHost(r *store.Report) error {
	t := hostRecord(r.Provenance.Host)
	benchFields(t, r.Provenance.Bench)
	return s.print(t)
}

// hostRecord is what is known of a machine, and its load before a run.
func hostRecord(h result.Host) *table.Table {
	t := hostFacts(h)
	t.Field("load1", "load average before", table.Float(h.Load1, h.OS != ""))
	return t
}

// hostFacts is what is known of a machine.
func hostFacts(h result.Host) *table.Table {
	t := table.Record()
	t.Field("name", "name", optional(h.Name))
	t.Field("cpu", "CPU", optional(h.CPU))
	t.Field("cpus", "CPUs", table.Float(float64(h.CPUs), h.CPUs > 0))
	t.Field("memory_bytes", "memory", table.Float(float64(h.Memory), h.Memory > 0).As(byteSize(float64(h.Memory))))
	t.Field("os", "system", optional(h.OS))
	t.Field("kernel", "kernel", optional(h.Kernel))
	t.Field("distribution", "distribution", optional(h.Distribution))
	t.Field("virtualisation", "virtualisation", optional(h.Virtualisation))
	t.Field("governor", "governor", optional(h.Governor))
	t.Field("cgroup_cpus", "CPUs of the cgroup", table.Float(h.CgroupCPU, h.CgroupCPU > 0))
	t.Field("cgroup_memory_bytes", "memory of the cgroup", table.Float(float64(h.CgroupMemory), h.CgroupMemory > 0).As(byteSize(float64(h.CgroupMemory))))
	whole := func(n int) table.Cell { return table.Float(float64(n), n > 0) }
	t.Field("uname", "uname", optional(h.Uname))
	t.Field("release", "release", optional(h.Release))
	t.Field("sockets", "sockets", whole(h.Sockets))
	t.Field("cores", "cores", whole(h.Cores))
	t.Field("threads", "threads", whole(h.Threads))
	t.Field("turbo", "turbo", optional(h.Turbo))
	return t
}

// benchFields are what is known of relaybench itself.
func benchFields(t *table.Table, b result.Bench) {
	t.Field("relaybench", "relaybench", optional(b.Version))
	t.Field("relaybench_revision", "its revision", optional(b.Revision))
	t.Field("payload", "its payloads' version", table.Int(b.Payload))
	t.Field("go", "Go", optional(b.Go))
	t.Field("relaybench_sha256", "its sha256", optional(b.SHA256))
}

func (s *Session) showLog(r *store.Report) error {
	run := r.Result.Relay
	if s.format != Text {
		t := &table.Table{Columns: []table.Column{{Key: "level"}, {Key: "count"}, {Key: "text"}}}
		for _, m := range run.Messages {
			t.Add(table.Text(m.Level), table.Uint(m.Count), table.Text(m.Text))
		}
		for _, l := range run.Log {
			t.Add(table.Cell{}, table.Cell{}, table.Text(l))
		}
		return s.print(t)
	}
	for _, m := range run.Messages {
		if err := s.printf("%s × %s: %s\n", count(m.Count), table.Clean(m.Level), table.Clean(m.Text)); err != nil {
			return err
		}
	}
	if len(run.Messages) > 0 && len(run.Log) > 0 {
		if err := s.printf("\n"); err != nil {
			return err
		}
	}
	for _, l := range run.Log {
		if err := s.printf("%s\n", table.Clean(l)); err != nil {
			return err
		}
	}
	if len(run.Log) == 0 {
		return s.printf("no log lines were kept\n")
	}
	return nil
}

// optional is a text that is not known where it is empty.
func optional(text string) table.Cell {
	if text == "" {
		return table.Cell{}
	}
	return table.Text(text)
}

// cleanLines cleans a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(table.Clean(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}
