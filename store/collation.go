package store

import (
	"fmt"
	"relaybench/harness/variable"
	"slices"
	"strings"
)

// Collation is what is asked of the reports: groups that are equal in every
// condition but the named variable, and in each of them the reports by its value.
type Collation struct {
	// Variable is the named one; those that follow it vary with it.
	Variable string
	// With are more that may vary with it, though they do not follow it.
	With    []string
	Filters []Filter
	Limit   Newest
	Metrics []string // in the order in which they are wanted; none: DefaultMetrics
	// Primary is the metric that decides; empty: DefaultPrimary. It is compared whether or not it is among Metrics.
	Primary string
	// Baseline is the value of Variable that the others are compared with, of a
	// hash the beginning; empty: the first row of each group.
	Baseline string
	Margin   float64     // the relative difference that matters: 0.05 is 5%
	Marked   bool        // with values that marks make unfit
	Sort     []Criterion // of rows and groups; none: by their values
	// NoSingles puts groups of one row aside, in Collated.Singles, and reads none of their reports.
	NoSingles bool
}

// What is compared where nothing else is asked for.
const (
	DefaultPrimary = "cpu-per-envelope"
	DefaultMargin  = 0.05
)

// DefaultMetrics are few enough for a screen.
var DefaultMetrics = []string{"cpu-per-envelope", "forwarded-rate", "through-p50", "through-p99", "response-p99", "rss-peak", "unaccounted"}

// Criterion is a variable or metric to sort by.
type Criterion struct {
	Name string
	Down bool // the greatest first
}

// ParseSort reads criteria with commas between them, each with - before it where the greatest is to be first.
func ParseSort(text string) ([]Criterion, error) {
	var all []Criterion
	for _, word := range strings.Split(text, ",") {
		c := Criterion{Name: strings.TrimSpace(word)}
		if name, ok := strings.CutPrefix(c.Name, "-"); ok {
			c.Name, c.Down = name, true
		} else {
			c.Name = strings.TrimPrefix(c.Name, "+")
		}
		if c.Name == "" {
			return nil, fmt.Errorf("sort %q: expected variables or metrics with commas between them, each with - before it for the greatest first", text)
		}
		if _, ok := FindVariable(c.Name); !ok && FindMetric(c.Name) == nil {
			return nil, unknownOf("variable or metric", c.Name, append(VariableNames(), MetricNames()...))
		}
		all = append(all, c)
	}
	return all, nil
}

// ParseMetrics reads names of metrics with commas between them, or all.
func ParseMetrics(text string) (names []string, err error) {
	if text == "all" {
		return MetricNames(), nil
	}
	for _, word := range strings.Split(text, ",") {
		name := strings.TrimSpace(word)
		if err := errStatsd(name); err != nil {
			return nil, err
		}
		if FindMetric(name) == nil {
			return nil, unknownOf("metric", name, MetricNames())
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// MetricNames are the names of the table of metrics.
func MetricNames() (names []string) {
	for i := range Metrics {
		names = append(names, Metrics[i].Name)
	}
	return names
}

func unknownOf(what, name string, names []string) error {
	if near := variable.Nearest(name, names); near != "" {
		return fmt.Errorf("unknown %s %q: did you mean %q?", what, name, near)
	}
	return fmt.Errorf("unknown %s %q", what, name)
}

// BaselineError says that no report has the value that the others are to be compared with.
type BaselineError struct {
	Variable, Value string
	Near            string   // the nearest value that there is, or ""
	Values          []string // that there are
}

func (e *BaselineError) Error() string {
	text := fmt.Sprintf("no report has %s %q", e.Variable, e.Value)
	switch {
	case e.Near != "":
		return fmt.Sprintf("%s: did you mean %q?", text, e.Near)
	case len(e.Values) > 0 && len(e.Values) <= 10:
		return text + ": there is " + strings.Join(e.Values, ", ")
	}
	return text
}

// FindNamed is the variable that reports can be grouped by; its error names the nearest.
func FindNamed(name string) (*Variable, error) {
	if v, ok := FindVariable(name); ok {
		return v, nil
	}
	if FindMetric(name) != nil {
		return nil, fmt.Errorf("%q is a metric: expected a variable, of which reports have one value each", name)
	}
	return nil, unknownOf("variable", name, VariableNames())
}
