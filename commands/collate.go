package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/variable"
	"relaybench/store"
)

// allMetrics stands for the whole table of them.
const allMetrics = "all"

var collateCommand = command{
	name:    "collate",
	summary: "compare reports by one variable, all else equal",
	detail: `Reports that are equal in every condition but VARIABLE are a group; what follows it (of a branch:
revision, version, sha256) may vary with it. A row is all reports of one value: n, and of each
metric the median and how far its middle half spreads. Below, each row against the baseline: the
shift with its 95% interval, the chance of that by chance alone, and what may be claimed of it.
A config key that was not set has a row of its own. Nothing is left out without being counted.
help method says how the verdicts are made, help variables and help metrics what there is.`,
	args: []arg{{name: "VARIABLE", help: "a variable, or a config key such as http.encoding", values: variableValues},
		{name: "FILTER", help: "a condition on a variable or headline metric", optional: true, many: true, values: filterValues}},
	examples: []string{"collate relay-branch mix=errors", "collate http.encoding --metrics cpu-per-envelope,rss-peak",
		"collate relay-revision relay-branch=main --sort revision-date", "collate rate -n 168h --runs", "collate host --baseline bench1 --margin 10%"},
	table: true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		var a collateFlags
		fs.StringVarP(&a.newest, "number", "n", allNewest, "of the newest reports at most `N`, or those of the last DURATION")
		fs.StringVar(&a.sort, "sort", "", "order of rows and groups: variables or metrics `A,-B`, - before one for the greatest first")
		fs.StringVar(&a.metrics, "metrics", strings.Join(store.DefaultMetrics, ","), "metrics `A,B`, or all")
		fs.StringVar(&a.primary, "primary", store.DefaultPrimary, "the `METRIC` that is judged by itself; the others are corrected for being many")
		fs.StringVar(&a.baseline, "baseline", "", "the `VALUE` that the others are compared with (default: the first row)")
		fs.StringVar(&a.margin, "margin", marginText(store.DefaultMargin), "the difference in `PERCENT` that matters")
		fs.BoolVar(&a.runs, "runs", false, "a row a report")
		fs.BoolVar(&a.singles, "singles", false, "groups with one value too")
		fs.BoolVar(&a.marked, "marked", false, "values too that marks make unfit")
		offer(fs, "sort", listValues(sortValues))
		offer(fs, "metrics", listValues(metricValues))
		offer(fs, "primary", metricValues)
		return func(_ context.Context, args []string) (Code, error) {
			q, err := a.collation(args)
			if err != nil {
				return Fine, err
			}
			return Fine, s.collate(q, &a)
		}
	},
}

// collateFlags are the flags as they were typed.
type collateFlags struct {
	newest, sort, metrics, primary, baseline, margin string
	runs, singles, marked                            bool
}

// collation reads what was typed.
func (a *collateFlags) collation(args []string) (q store.Collation, err error) {
	q = store.Collation{Variable: args[0], Baseline: a.baseline, Primary: a.primary, Marked: a.marked, NoSingles: !a.singles}
	if _, err := store.FindNamed(q.Variable); err != nil {
		return q, usageError(err, "help variables lists them")
	}
	if q.Filters, q.Limit, err = parseSelection(args[1:], a.newest); err != nil {
		return q, err
	}
	if q.Metrics, err = store.ParseMetrics(a.metrics); err != nil {
		return q, usageError(fmt.Errorf("--metrics: %w", err), "help metrics lists them")
	}
	if a.sort != "" {
		if q.Sort, err = store.ParseSort(a.sort); err != nil {
			return q, usageError(fmt.Errorf("--sort: %w", err), "")
		}
	}
	if _, err := store.ParseMetrics(a.primary); err != nil || store.FindMetric(a.primary) == nil {
		return q, usageError(fmt.Errorf("--primary: %q is not one metric", a.primary), didYouMean(variable.Nearest(a.primary, store.MetricNames()), "help metrics lists them"))
	}
	if q.Margin, err = parseMargin(a.margin); err != nil {
		return q, usageError(fmt.Errorf("--margin: %w", err), "")
	}
	return q, nil
}

// parseMargin reads a margin such as 5%.
func parseMargin(text string) (float64, error) {
	digits, ok := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(v >= 0) || v > 1000 {
		return 0, fmt.Errorf("%q is not a percentage such as %s", text, marginText(store.DefaultMargin))
	}
	return v / 100, nil
}

// collate does what was asked for.
func (s *Session) collate(q store.Collation, a *collateFlags) error {
	absent, err := s.bench.absent()
	if err != nil {
		return err
	}
	c := &store.Collated{Margin: q.Margin}
	var db *store.DB
	if absent {
		c.Variable, _ = store.FindVariable(q.Variable)
		for _, name := range q.Metrics {
			c.Metrics = append(c.Metrics, store.FindMetric(name))
		}
		c.Primary = store.FindMetric(q.Primary)
	} else {
		if db, err = s.indexed(); err != nil {
			return err
		}
		if c, err = db.Collate(q); err != nil {
			var unknown *store.BaselineError
			if errors.As(err, &unknown) {
				return usageError(fmt.Errorf("--baseline: %w", err), "")
			}
			var silent *store.StatsdError
			if errors.As(err, &silent) {
				hint := "show REPORT timers lists what there is"
				if silent.With == 0 {
					hint = "test … --statsd on keeps what the relay says of itself"
				}
				return usageError(fmt.Errorf("--metrics: %w", err), hint)
			}
			return err
		}
		if err := nowhereSet(db, c); err != nil {
			return err
		}
		if len(c.Groups) == 0 && len(c.Singles) > 0 {
			q.NoSingles = false // there is nothing else to show
			if c, err = db.Collate(q); err != nil {
				return err
			}
		}
	}
	switch s.format {
	case JSON:
		return s.printJSON(newCollatedJSON(c))
	case CSV:
		if a.runs {
			return s.print(runRows(c))
		}
		return s.print(cellRows(c))
	}
	return s.printCollated(db, c, q, a)
}

// nowhereSet is the error of a config key that no report has set.
func nowhereSet(db *store.DB, c *store.Collated) error {
	if c.Reports == len(c.Unreadable) {
		return nil
	}
	for _, groups := range [][]store.Peers{c.Groups, c.Singles} {
		for _, p := range groups {
			if slices.ContainsFunc(p.Rows, func(r store.Row) bool { return !r.Unset }) {
				return nil
			}
		}
	}
	if len(c.Groups)+len(c.Singles) == 0 {
		return nil
	}
	names, err := db.SettingNames()
	if err != nil {
		return err
	}
	return usageError(fmt.Errorf("none of %s has config key %q set", reports(c.Reports), c.Variable.Name),
		didYouMean(variable.Nearest(c.Variable.Name, append(names, store.VariableNames()...)), ""))
}

// variableValues are what reports can be grouped by.
func variableValues(s *Session, _ []string, _ string) []string {
	names := store.VariableNames()
	if db, err := s.bench.open(); err == nil {
		if keys, err := db.SettingNames(); err == nil {
			names = append(names, keys...)
		}
	}
	return names
}

// metricValues are the names of metrics; those of the relay's own, as far as
// the newest run has them, where the beginning of one is typed.
func metricValues(s *Session, _ []string, typed string) []string {
	names := append(store.MetricNames(), allMetrics)
	if !strings.Contains(typed, ":") {
		return names
	}
	if db, err := s.bench.open(); err == nil {
		if r, err := db.Get("last"); err == nil {
			names = append(names, store.StatsdMetrics(r)...)
		}
	}
	return names
}

// sortValues are criteria, each way.
func sortValues(s *Session, before []string, typed string) []string {
	var found []string
	for _, n := range append(variableValues(s, before, typed), store.MetricNames()...) {
		found = append(found, n, "-"+n)
	}
	return found
}

// listValues are values with commas between them.
func listValues(of values) values {
	return func(s *Session, before []string, typed string) []string {
		head := typed[:strings.LastIndexByte(typed, ',')+1]
		found := of(s, before, typed[len(head):])
		for i := range found {
			found[i] = head + found[i]
		}
		return found
	}
}

// metricHeads are short names of metrics at the head of a narrow column.
var metricHeads = map[string]string{"cpu-per-envelope": "CPU/env", "forwarded-rate": "fwd/s", "through-p50": "thr p50", "through-p99": "thr p99",
	"response-p99": "resp p99", "rss-peak": "RSS peak", "unaccounted": "unacc."}

func metricHead(m *store.Metric) string {
	if head, ok := metricHeads[m.Name]; ok {
		return head
	}
	return m.Name
}

// rowName is a value as a person reads it: a hash by its beginning.
func rowName(v *store.Variable, value string) string {
	return table.Clean(shortValue(v.Type.Name(), value))
}

func shortValue(typeName, value string) string {
	if typeName == "revision or hash" {
		return value[:min(len(value), 10)]
	}
	return value
}
