package commands

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"relaybench/commands/table"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/stats"
)

// publication is what reports say, gathered for a page.
type publication struct {
	export
	unreadable  []string
	first, last time.Time // when runs began
	loops       [2]loop   // at a given rate, and flat out
	cells       map[string]*publishedCell
	ordered     []*publishedCell // as they are numbered
	marks       map[string]int   // runs, by mark
	versions    []*versionSeen
	hosts       []*hostSeen
	configs     []*configSeen
	searches    []*searchSeen
	what        map[string]string // what is in each file, by its name
}

// loop is the runs of one sort of load.
type loop struct {
	runs  int
	print finePrints
	c     *store.Collated // a group a cell, of the metrics of the page
	cells []*publishedCell
}

// publishedCell is all runs that are equal in every condition.
type publishedCell struct {
	number     int // from 1
	loop       int
	conditions map[string]string
	ids        []string
	cells      []store.Cell // by store.Metrics
	marks      map[string]int
	print      finePrints
}

// versionSeen is a relay or a relaybench that runs were made with.
type versionSeen struct {
	key  string
	row  []table.Cell
	runs int
}

// hostSeen is a host as reports tell of it, and how busy it was.
type hostSeen struct {
	key         string
	host        result.Host
	runs        int
	least, most float64 // load averages before runs
	file        string
}

type configSeen struct {
	hash, yaml, file string
	runs             int
}

// searchSeen is the steps of one search, as far as they are among the reports.
type searchSeen struct {
	series string
	round  int
	relay  string
	vars   map[string]string
	hunt
	print finePrints
}

// gather reads the reports.
func (p *publication) gather() error {
	p.cells, p.marks, p.what = map[string]*publishedCell{}, map[string]int{}, map[string]string{}
	for i := range p.entries {
		if e := &p.entries[i]; e.Problem != "" {
			p.unreadable = append(p.unreadable, "report "+e.ID+" cannot be read: "+table.Clean(e.Problem))
		} else {
			p.ids = append(p.ids, e.ID)
		}
	}
	if err := p.each(func(r *store.Report) error { p.take(r); return nil }); err != nil {
		return err
	}
	p.order()
	p.name()
	return nil
}

// take adds a report.
func (p *publication) take(r *store.Report) {
	e := store.EntryOf(r)
	if !e.Start.IsZero() && (p.first.IsZero() || e.Start.Before(p.first)) {
		p.first = e.Start
	}
	if e.Start.After(p.last) {
		p.last = e.Start
	}
	conditions := e.Conditions()
	key := store.GroupKey(conditions)
	c := p.cells[key]
	if c == nil {
		c = &publishedCell{conditions: conditions, cells: make([]store.Cell, len(store.Metrics)), marks: map[string]int{}}
		for i := range c.cells {
			c.cells[i] = store.Cell{Metric: &store.Metrics[i], Unfit: map[string]int{}}
		}
		if conditions["rate"] == "max" {
			c.loop = 1
		}
		p.cells[key] = c
		p.loops[c.loop].cells = append(p.loops[c.loop].cells, c)
	}
	c.ids = append(c.ids, r.ID)
	marks := store.MarksOf(r)
	for i := range c.cells {
		m := &c.cells[i]
		v, ok := m.Metric.Of(r)
		if by, unfit := store.Unfit(marks, m.Metric.Name); unfit {
			m.Unfit[by]++
		} else if ok {
			m.Values = append(m.Values, v)
		} else {
			m.Unknown++
		}
	}
	for _, m := range marks {
		c.marks[m.Name]++
		p.marks[m.Name]++
	}
	lines := plainFinePrint(r)
	c.print.add(lines)
	p.loops[c.loop].print.add(lines)
	p.loops[c.loop].runs++
	p.takeVersions(r)
	p.takeHost(r.Provenance.Host)
	p.takeConfig(r)
	p.takeSearch(r, e, lines)
}

// plainFinePrint is the fine print of a report, without its id.
func plainFinePrint(r *store.Report) []string {
	if r.Result == nil {
		return nil
	}
	unnamed := *r
	unnamed.ID = "REPORT"
	return finePrint(&unnamed)
}

var versionColumns = []table.Column{{Key: "what"}, {Key: "version"}, {Key: "branch"}, {Key: "revision"}, {Key: "revision_date"}, {Key: "dirty"}, {Key: "profile"},
	{Key: "compiler"}, {Key: "sha256"}, {Key: "bytes", Right: true}, {Key: "runs", Right: true}}

// takeVersions adds the relay and the relaybench of a report.
func (p *publication) takeVersions(r *store.Report) {
	seen := func(row ...table.Cell) {
		var key strings.Builder
		for _, c := range row {
			key.WriteString(strconv.Quote(c.String()))
		}
		i := slices.IndexFunc(p.versions, func(v *versionSeen) bool { return v.key == key.String() })
		if i < 0 {
			i, p.versions = len(p.versions), append(p.versions, &versionSeen{key: key.String(), row: row})
		}
		p.versions[i].runs++
	}
	b, of := r.Provenance.Bench, r.Provenance.Relay
	what, date, dirty := "relay", table.Cell{}, table.Cell{}
	if of.Form != relay.FormPath {
		what += " (" + of.Form + ")"
	}
	if !of.RevisionDate.IsZero() {
		date = table.Text(of.RevisionDate.UTC().Format(time.RFC3339))
	}
	if of.Revision != "" {
		dirty = table.Bool(of.Dirty)
	}
	seen(table.Text(what), optional(of.Version), optional(of.Branch), optional(of.Revision), date, dirty, optional(of.Profile), optional(of.Rustc), optional(of.SHA256), table.Float(float64(of.Size), of.Size > 0))
	seen(table.Text("relaybench"), optional(b.Version), table.Cell{}, optional(b.Revision), table.Cell{}, table.Cell{}, table.Cell{}, optional(b.Go), optional(b.SHA256), table.Cell{})
}

// takeHost adds the host of a report.
func (p *publication) takeHost(h result.Host) {
	load := h.Load1
	h.Load1 = 0
	key, _ := json.Marshal(h) // of plain values
	i := slices.IndexFunc(p.hosts, func(s *hostSeen) bool { return s.key == string(key) })
	if i < 0 {
		i, p.hosts = len(p.hosts), append(p.hosts, &hostSeen{key: string(key), host: h, least: load, most: load})
	}
	s := p.hosts[i]
	s.runs++
	s.least, s.most = min(s.least, load), max(s.most, load)
}

// takeConfig adds the config of a report: of those with the same hash, which leaves out what the run owns, the first.
func (p *publication) takeConfig(r *store.Report) {
	if r.Result == nil || r.Result.Relay.Config == "" {
		return
	}
	run := &r.Result.Relay
	i := slices.IndexFunc(p.configs, func(c *configSeen) bool { return c.hash == run.ConfigHash })
	if i < 0 {
		i, p.configs = len(p.configs), append(p.configs, &configSeen{hash: run.ConfigHash, yaml: run.Config})
	}
	p.configs[i].runs++
}

// takeSearch adds a report that is a step of a search: one of a series of no known length and no sides.
func (p *publication) takeSearch(r *store.Report, e *store.Entry, print []string) {
	in := r.Provenance.Series
	rate, err := strconv.ParseFloat(r.Plan["rate"], 64)
	if in.ID == "" || in.Of > 0 || in.Side != "" || err != nil || r.Result == nil {
		return
	}
	i := slices.IndexFunc(p.searches, func(s *searchSeen) bool { return s.series == in.ID && s.round == in.Round })
	if i < 0 {
		vars := e.Vars()
		i, p.searches = len(p.searches), append(p.searches, &searchSeen{series: in.ID, round: in.Round, relay: relayWords(vars).String(), vars: vars, hunt: hunt{from: rate}})
	}
	p.searches[i].steps = append(p.searches[i].steps, judgeStep(rate, r))
	p.searches[i].print.add(print)
}

// pageMetrics are those of the page, by loop: flat out, what was accepted stands beside what was forwarded.
var pageMetrics = [...][]string{store.DefaultMetrics, append([]string{"accepted-rate"}, store.DefaultMetrics...)}

// order numbers the cells, by their conditions.
func (p *publication) order() {
	for l := range p.loops {
		of := &p.loops[l]
		var sets []map[string]string
		for _, c := range of.cells {
			sets = append(sets, c.conditions)
		}
		of.c, of.cells = store.Sets(sets), nil
		for _, name := range pageMetrics[l] {
			of.c.Metrics = append(of.c.Metrics, store.FindMetric(name))
		}
		for i := range of.c.Groups {
			c := p.cells[store.GroupKey(of.c.Groups[i].Conditions)]
			var row store.Row
			for j := range c.cells {
				c.cells[j].Summary = stats.Summarize(c.cells[j].Values)
			}
			for _, m := range of.c.Metrics {
				row.Cells = append(row.Cells, c.cells[slices.IndexFunc(c.cells, func(x store.Cell) bool { return x.Metric == m })])
			}
			of.c.Groups[i].Rows = []store.Row{row}
			of.cells, p.ordered = append(of.cells, c), append(p.ordered, c)
			c.number = len(p.ordered)
		}
	}
}

// unfitName is what a file's name may not have.
var unfitName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// name gives each file its name.
func (p *publication) name() {
	file := func(kind, of, ending, what string) string {
		const most = 40
		of = strings.Trim(unfitName.ReplaceAllString(of, "-"), "-.")
		if of = of[:min(len(of), most)]; of == "" {
			of = "unknown"
		}
		name := kind + "-" + of + ending
		for n := 2; p.what[name] != ""; n++ {
			name = fmt.Sprintf("%s-%s-%d%s", kind, of, n, ending)
		}
		p.what[name] = what
		return name
	}
	for _, h := range p.hosts {
		h.file = file("host", h.host.Name, ".json", "facts of host "+table.Clean(h.host.Name)+", "+plural(h.runs, "run", "runs"))
	}
	for _, c := range p.configs {
		c.file = file("config", c.hash[:min(len(c.hash), 16)], ".yml", "an effective config of the relay, "+plural(c.runs, "run", "runs"))
	}
	for name, what := range map[string]string{"summary.md": "the figures below their fine print", "runs.csv": "a row a run", "cells.csv": "a row a cell and metric",
		"versions.csv": "relays and relaybenches"} {
		p.what[name] = what
	}
}

// write adds all files.
func (p *publication) write(add store.AddFile) error {
	files := map[string]func(io.Writer) error{
		"summary.md":   p.page,
		"runs.csv":     p.runs,
		"cells.csv":    p.cellTable().CSV,
		"versions.csv": p.versionTable().CSV,
	}
	for _, h := range p.hosts {
		files[h.file] = h.record().JSON
	}
	for _, c := range p.configs {
		files[c.file] = func(w io.Writer) error { _, err := io.WriteString(w, strings.TrimRight(c.yaml, "\n")+"\n"); return err }
	}
	for _, name := range sorted(files) {
		if err := p.stopped(); err != nil {
			return err
		}
		err := add(name, func(w io.Writer) error {
			b := bufio.NewWriterSize(w, 64<<10)
			if err := files[name](b); err != nil {
				return err
			}
			return b.Flush()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runs writes a row a run, each with its cell and its fine print.
func (p *publication) runs(w io.Writer) error {
	p.beside = []csvColumn{
		{"unfit", func(r *store.Report, _ *store.Entry, _ map[string]string) table.Cell {
			marks := store.MarksOf(r)
			var names []string
			for i := range store.Metrics {
				if _, ok := store.Unfit(marks, store.Metrics[i].Name); ok {
					names = append(names, store.Metrics[i].Name)
				}
			}
			return table.Text(strings.Join(names, " "))
		}},
		{"cell", func(_ *store.Report, e *store.Entry, _ map[string]string) table.Cell {
			return table.Int(p.cells[store.GroupKey(e.Conditions())].number)
		}},
		{"fine_print", func(r *store.Report, _ *store.Entry, _ map[string]string) table.Cell {
			return table.Text(strings.Join(plainFinePrint(r), "; "))
		}},
	}
	return p.csv(w)
}

// cellTable is a row a cell and metric.
func (p *publication) cellTable() *table.Table {
	var sets []map[string]string
	for _, c := range p.ordered {
		sets = append(sets, c.conditions)
	}
	names := store.InOrder(sets...)
	t := &table.Table{Columns: []table.Column{{Key: "cell"}}}
	for _, key := range slices.Concat(names, []string{"runs", "metric", "unit", "n", "median", "q1", "q3", "min", "max", "left_out", "left_out_by", "unknown", "marks", "fine_print", "report_ids"}) {
		t.Columns = append(t.Columns, table.Column{Key: key})
	}
	for _, c := range p.ordered {
		fine, marks, ids := strings.Join(c.print.lines(), "; "), counts(c.marks), strings.Join(c.ids, " ")
		for i := range c.cells {
			row := []table.Cell{table.Int(c.number)}
			for _, n := range names {
				v, ok := c.conditions[n]
				cell := table.Cell{}
				if ok {
					cell = table.Text(v)
				}
				row = append(row, cell)
			}
			m := &c.cells[i]
			j := newCellJSON(m)
			t.Add(append(row, table.Int(len(c.ids)), table.Text(m.Metric.Name), table.Text(j.Unit), table.Int(j.N), j.Median, j.Q1, j.Q3, j.Min, j.Max,
				table.Int(m.Left()), table.Text(counts(m.Unfit)), table.Int(j.Unknown), table.Text(marks), table.Text(fine), table.Text(ids))...)
		}
	}
	return t
}

// counts are names with how often there is each.
func counts(of map[string]int) string {
	var parts []string
	for _, name := range sorted(of) {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(parts, ", ")
}

func (p *publication) versionTable() *table.Table {
	t := &table.Table{Columns: versionColumns}
	for _, v := range p.versions {
		t.Add(append(slices.Clone(v.row), table.Int(v.runs))...)
	}
	return t
}

// record is what reports tell of the host.
func (h *hostSeen) record() *table.Table {
	t := hostFacts(h.host)
	known := h.host.OS != ""
	t.Field("load1_least", "least load average before a run", table.Float(h.least, known))
	t.Field("load1_most", "greatest load average before a run", table.Float(h.most, known))
	t.Field("runs", "runs", table.Int(h.runs))
	return t
}

// finePrints gather the fine print of many runs: lines that differ in their
// numbers alone are one, with the least and the most of each.
type finePrints struct {
	all  []*fineLine
	runs int
}

type fineLine struct {
	words       []string // before, between and after the numbers
	least, most []string
	runs        int
}

var numberText = regexp.MustCompile(`[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?`)

func (f *finePrints) add(lines []string) {
	f.runs++
	for _, text := range lines {
		words, numbers := numberText.Split(text, -1), numberText.FindAllString(text, -1)
		i := slices.IndexFunc(f.all, func(l *fineLine) bool { return slices.Equal(l.words, words) })
		if i < 0 {
			i, f.all = len(f.all), append(f.all, &fineLine{words: words, least: slices.Clone(numbers), most: slices.Clone(numbers)})
		}
		l := f.all[i]
		l.runs++
		for n, text := range numbers {
			if valueOf(text) < valueOf(l.least[n]) {
				l.least[n] = text
			}
			if valueOf(text) > valueOf(l.most[n]) {
				l.most[n] = text
			}
		}
	}
}

func valueOf(text string) float64 {
	v, _ := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64) // as numberText has it
	return v
}

// lines are the fine print, each line with how many runs it is of where that is not all.
func (f *finePrints) lines() (lines []string) {
	for _, l := range f.all {
		var b strings.Builder
		for i, w := range l.words {
			b.WriteString(w)
			if i == len(l.least) {
				break
			}
			b.WriteString(l.least[i])
			if l.most[i] != l.least[i] {
				b.WriteString(" to " + l.most[i])
			}
		}
		if l.runs < f.runs {
			fmt.Fprintf(&b, " (%s of %s runs)", count(l.runs), count(f.runs))
		}
		lines = append(lines, b.String())
	}
	return lines
}
