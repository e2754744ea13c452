package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/variable"
	"relaybench/store"
	"relaybench/store/stats"
)

var verifyCommand = command{
	name:    "verify",
	summary: "is the newest build worse than an earlier one?",
	detail: `Of the reports that the filters match, the newest revision (by its date) is compared with each
earlier one; where a report has no revision, or one with changes beside it, builds are told apart
by their sha256 instead, and ordered by their first runs. The verdict is corrected for how many there are. 1: worse
than one of them, 0: better than or no different from each, 2: inconclusive, or no verdict.

A verdict needs runs that take turns: ab makes such, and --rerun makes them of these builds.
Reports that differ in any condition but the build are refused, exit code 3: add a filter. --like takes the
conditions of a report, and asks whether its build is worse than those before it.`,
	args:     []arg{{name: "FILTER", help: "a condition on a variable or headline metric", optional: true, many: true, values: filterValues}},
	examples: []string{"verify relay-branch=main mix=errors rate=200", "verify --like last --metric rss-peak", "verify mix=errors -n 168h --margin 3%", "verify --like last --rerun"},
	store:    true,
	table:    true,
	queue: func(s *Session, fs *pflag.FlagSet) prepare {
		asked := verified(fs)
		return func(_ context.Context, args []string) (task, error) {
			q, err := asked(args)
			if err != nil {
				return task{}, err
			}
			if !q.rerun {
				return task{now: func() (Code, error) { return s.verify(q) }}, nil
			}
			about, _, err := s.aboutRerun(q)
			return task{about: about, do: func(ctx context.Context, s *Session) (Code, error) { return s.rerun(ctx, q) }}, err
		}
	},
	explain: func(s *Session, fs *pflag.FlagSet) work {
		asked := verified(fs)
		return func(_ context.Context, args []string) (Code, error) {
			q, err := asked(args)
			if err != nil {
				return Fine, err
			}
			return Fine, s.explainRerun(q)
		}
	},
}

// verifying is what a line asks of verify.
type verifying struct {
	filters []store.Filter
	like    string // a report; empty: none
	limit   store.Newest
	newest  string // limit as it was typed
	margin  float64
	metric  *store.Metric
	rerun   bool // make the runs again, in turns
	force   bool // also where the margin is under the noise
}

// verified binds the flags of verify, and gives what reads what was typed for them.
func verified(fs *pflag.FlagSet) func(args []string) (*verifying, error) {
	newest := fs.StringP("number", "n", allNewest, "of the newest reports at most `N`, or those of the last DURATION")
	like := fs.String("like", "", "the conditions of `REPORT`, whose build is the one in question")
	offer(fs, "like", reportValues)
	margin := fs.String("margin", marginText(store.DefaultMargin), "the difference in `PERCENT` that matters")
	metric := fs.String("metric", store.DefaultPrimary, "the `METRIC` that decides")
	offer(fs, "metric", metricNames)
	rerun := fs.Bool("rerun", false, fmt.Sprintf("run the builds again, in turns: %d runs of each, where they were found, as long as they are still the same", defaultRuns))
	force := fs.Bool("force", false, "also with a margin under the noise that was measured here")
	return func(args []string) (*verifying, error) {
		q := &verifying{like: *like, newest: *newest, rerun: *rerun, force: *force}
		var err error
		if q.filters, q.limit, err = parseSelection(args, *newest); err != nil {
			return nil, err
		}
		if q.margin, err = parseMargin(*margin); err != nil {
			return nil, usageError(fmt.Errorf("--margin: %w", err), "")
		}
		if q.metric = store.FindMetric(*metric); q.metric == nil {
			return nil, usageError(fmt.Errorf("--metric: unknown metric %q", *metric), didYouMean(variable.Nearest(*metric, store.MetricNames()), "help metrics lists them"))
		}
		if q.metric.Better == 0 {
			return nil, usageError(fmt.Errorf("--metric: neither more nor less of %s is better", q.metric.Name), "help metrics says which way is better")
		}
		return q, nil
	}
}

// metricNames are the names of the table of metrics.
func metricNames(*Session, []string, string) []string { return store.MetricNames() }

// finding is what verify found.
type finding struct {
	answer  stats.Answer
	says    string       // the answer in a sentence
	hint    string       // what to do about it; empty: nothing
	newest  string       // the build in question; empty: there is none
	pairs   []pair       // each earlier build with it
	pairing *buildsFound // what they are of; nil: nothing
}

// noVerdict is a finding without a verdict.
func noVerdict(format string, args ...any) *finding {
	return &finding{answer: stats.NoVerdict, says: "no verdict: " + fmt.Sprintf(format, args...)}
}

// verify says whether the newest build is worse than an earlier one.
func (s *Session) verify(q *verifying) (Code, error) {
	b, f, err := s.findBuilds(q)
	if err != nil {
		return Fine, err
	}
	if f == nil {
		if err := s.checkFloor(q, b); err != nil {
			return Fine, err
		}
		f = b.judge(q)
	}
	return codeOf(f.answer), s.printFinding(q, f)
}

// judge compares the newest build with each earlier one.
func (b *buildsFound) judge(q *verifying) *finding {
	newest := b.rows[b.newest]
	f := &finding{newest: b.name(newest), pairing: b}
	var verdicts []stats.Verdict
	values := 0
	for i := range b.newest {
		base := b.rows[i]
		b.c.Compare(base, newest, q.margin)
		row := *newest // for its cells are written over by the next comparison
		row.Cells = []store.Cell{*newest.Primary}
		row.Primary = &row.Cells[0]
		f.pairs = append(f.pairs, pair{base, &row, b.name(base), f.newest})
		verdicts = append(verdicts, *row.Primary.Verdict)
		values += base.Primary.Summary.N
	}
	stats.Correct(verdicts, 1-stats.Level)
	for i := range f.pairs {
		*f.pairs[i].row.Primary.Verdict = verdicts[i]
	}
	metric := q.metric.Name
	switch n := len(newest.Runs); {
	case newest.Primary.Summary.N == 0:
		f.answer, f.says = stats.NoVerdict, fmt.Sprintf("no verdict: no value of %s in %d of %s of %s%s", metric, n, reports(n), f.newest, whyNone(newest.Primary))
		return f
	case len(f.pairs) == 0:
		f.answer, f.says = stats.NoVerdict, fmt.Sprintf("no verdict: nothing to compare with: %s is the only build there is", f.newest)
		if b.newest < len(b.rows)-1 {
			f.says = fmt.Sprintf("no verdict: nothing to compare with: %s is the earliest build there is", f.newest)
		}
		f.hint = "runs of an earlier build under the same conditions, or ab"
		return f
	case values == 0:
		runs := 0
		for _, p := range f.pairs {
			runs += len(p.base.Runs)
		}
		f.answer, f.says = stats.NoVerdict, fmt.Sprintf("no verdict: no value of %s in %d of %s of earlier builds%s", metric, runs, reports(runs), whyNone(f.pairs[0].base.Primary))
		return f
	}
	f.conclude(q)
	return f
}

// whyNone says why a cell has no value, where marks are why.
func whyNone(c *store.Cell) string {
	var parts []string
	for _, mark := range sorted(c.Unfit) {
		parts = append(parts, fmt.Sprintf("mark %s makes it unfit in %d", mark, c.Unfit[mark]))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// conclude is the one answer of all comparisons: the gravest.
func (f *finding) conclude(q *verifying) {
	of := map[stats.Answer][]pair{}
	blocks := false
	for _, p := range f.pairs {
		v := p.row.Primary.Verdict
		of[v.Answer] = append(of[v.Answer], p)
		blocks = blocks || v.Answer == stats.NoVerdict && v.Blocks
	}
	names := func(pairs []pair) string {
		var all []string
		for _, p := range pairs {
			all = append(all, p.baseName)
		}
		return strings.Join(firstOf(all, 5, "more"), ", ")
	}
	metric := q.metric.Name
	if blocks {
		f.hint = "runs that take turns: verify --rerun with the same filters makes them, as does ab"
	}
	switch {
	case len(of[stats.Worse]) > 0:
		p := of[stats.Worse][0]
		f.answer, f.says = stats.Worse, fmt.Sprintf("worse: %s is worse than %s by %s: %s", f.newest, names(of[stats.Worse]), metric, pairText(p.row.Primary.Verdict, q.metric.Unit))
		if len(of[stats.Worse]) > 1 {
			f.says = fmt.Sprintf("worse: %s is worse by %s than %s", f.newest, metric, names(of[stats.Worse]))
		}
		f.hint = ""
	case len(of[stats.NoVerdict]) > 0:
		f.answer, f.says = stats.NoVerdict, fmt.Sprintf("no verdict: of %s against %s by %s", f.newest, names(of[stats.NoVerdict]), metric)
	case len(of[stats.Inconclusive]) > 0:
		f.answer, f.says = stats.Inconclusive, fmt.Sprintf("inconclusive: whether %s is worse than %s by %s", f.newest, names(of[stats.Inconclusive]), metric)
	case len(of[stats.Better]) == len(f.pairs):
		f.answer, f.says = stats.Better, fmt.Sprintf("better: %s is better than %s by %s", f.newest, names(f.pairs), metric)
	default:
		f.answer, f.says = stats.NoDifference, fmt.Sprintf("not worse: %s is no worse than %s by %s, margin %s", f.newest, names(f.pairs), metric, marginText(q.margin))
	}
}

// printFinding prints what was found.
func (s *Session) printFinding(q *verifying, f *finding) error {
	against := s.againstTable(f.pairs)
	switch s.format {
	case JSON:
		return s.printJSON(newFindingJSON(q, f, against))
	case CSV:
		if err := s.print(against); err != nil {
			return err
		}
	case Text, Markdown:
		if err := s.printPairs(f, against); err != nil {
			return err
		}
	}
	lines := []string{table.Clean(f.says)}
	if f.hint != "" {
		lines = append(lines, "what it takes: "+f.hint)
	}
	return s.sayLines(lines)
}

// printPairs prints the comparisons for a person, and what is to be known of them.
func (s *Session) printPairs(f *finding, against *table.Table) error {
	b := f.pairing
	if b == nil {
		return nil
	}
	lines := []string{b.describe(b.rows[b.newest])}
	for i := range f.pairs {
		lines = append(lines, "against "+b.describe(f.pairs[i].base))
		if i == 4 && len(f.pairs) > 6 {
			lines = append(lines, fmt.Sprintf("and %s more", count(len(f.pairs)-5)))
			break
		}
	}
	if shared := sharedText(b.c.Groups[0].Conditions); shared != "" {
		lines = append(lines, "all: "+shared)
	}
	if err := s.sayLines(append(lines, "")); err != nil {
		return err
	}
	var notes []string
	if len(f.pairs) > 0 {
		if err := s.sayLines([]string{fmt.Sprintf("%s, margin %s:", b.c.Primary.Name, marginText(b.c.Margin))}); err != nil {
			return err
		}
		if err := s.print(against); err != nil {
			return err
		}
		notes = verdictNotes(named(f.pairs))
	}
	left, _ := leftOutValues(b.c)
	notes = append(notes, left...)
	if n := len(b.c.Unreadable); n > 0 {
		notes = append(notes, fmt.Sprintf("%s cannot be read: %s", reports(n), strings.Join(firstOf(b.c.Unreadable, 3, "more"), ", ")))
	}
	if b.c.Without > 0 {
		notes = append(notes, fmt.Sprintf("%s of relays of which nothing tells the build", reports(b.c.Without)))
	}
	if b.c.Cut > 0 {
		notes = append(notes, fmt.Sprintf("%s older left out by -n", reports(b.c.Cut)))
	}
	return s.sayLines(notes)
}

// sayLines says lines, each of which may be wrapped.
func (s *Session) sayLines(lines []string) error {
	for _, l := range lines {
		if err := s.say("%s\n", s.wrap(l)); err != nil {
			return err
		}
	}
	return nil
}

// named are pairs that are told apart by their baselines.
func named(pairs []pair) []pair {
	var out []pair
	for _, p := range pairs {
		p.rowName = p.baseName
		out = append(out, p)
	}
	return out
}

// againstTable is a row an earlier build.
func (s *Session) againstTable(pairs []pair) *table.Table {
	t := s.verdictTable(pairs, true)
	for i := range t.Columns {
		switch c := &t.Columns[i]; c.Key {
		case "baseline":
			c.Head, c.Data = "against", false
		case "value", "metric":
			c.Data = true
		case "baseline_median":
			c.Head = "its median"
		case "median":
			c.Head = "newest"
		case "answer": // the margin stands above
			for j, p := range pairs {
				beyond := " beyond " + marginText(p.row.Primary.Verdict.Margin)
				t.Rows[j][i] = t.Rows[j][i].As(strings.TrimSuffix(t.Rows[j][i].String(), beyond))
			}
		}
	}
	return t
}

// findingJSON is a finding as programs read it.
type findingJSON struct {
	Answer  stats.Answer `json:"answer"`
	Code    Code         `json:"code"`
	Says    string       `json:"says"`
	Hint    table.Cell   `json:"hint"`
	Metric  string       `json:"metric"`
	Margin  float64      `json:"margin"`
	Newest  table.Cell   `json:"newest"`
	Reports []string     `json:"reports"` // of the newest build
	Against *table.Table `json:"against"`
}

func newFindingJSON(q *verifying, f *finding, against *table.Table) findingJSON {
	j := findingJSON{Answer: f.answer, Code: codeOf(f.answer), Says: f.says, Hint: optional(f.hint), Metric: q.metric.Name, Margin: q.margin,
		Newest: table.Cell{}, Reports: []string{}, Against: against}
	if b := f.pairing; b != nil {
		newest := b.rows[b.newest]
		j.Newest = table.Text(newest.Value)
		for i := range newest.Runs {
			j.Reports = append(j.Reports, newest.Runs[i].ID)
		}
	}
	return j
}

// mixed is the error of reports that are not alike in all but the build.
func mixed(c *store.Collated) error {
	const shown = 4
	var differ, hints []string
	for _, name := range c.Telling() {
		values := []string{}
		for _, p := range c.Groups {
			value, known := p.Conditions[name]
			text := conditionValue(name, value, known)
			if !strings.Contains("\x00"+strings.Join(values, "\x00")+"\x00", "\x00"+text+"\x00") {
				values = append(values, text)
			}
		}
		differ = append(differ, fmt.Sprintf("%s differs (%s)", name, strings.Join(firstOf(values, shown, "more"), ", ")))
		last := c.Groups[len(c.Groups)-1].Conditions[name]
		hints = append(hints, name+"="+last)
	}
	if len(differ) == 0 {
		return usageError(errors.New("the reports are not alike in all but the build"), "add filters; collate shows the groups")
	}
	return usageError(fmt.Errorf("the reports are not alike in all but the build: %s", strings.Join(firstOf(differ, shown, "more conditions differ"), "; ")),
		"add filters, such as "+strings.Join(hints[:min(len(hints), shown)], " ")+", or --like REPORT")
}
