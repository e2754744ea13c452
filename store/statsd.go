package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"relaybench/harness/result"
	"relaybench/harness/variable"
)

// StatsdPrefix is what Relay's names of its own metrics begin with, unless its
// config says otherwise; metrics are named without it, too.
const StatsdPrefix = "sentry.relay."

// StatsdHelp says how a metric of the relay's own is named.
const StatsdHelp = `timer:NAME:STAT, counter:NAME or gauge:NAME[:STAT], NAME with or without ` + StatsdPrefix + `, and with [tag:value] after it for one tag,
as in timer:upstream.requests.duration[route:envelope]:p99; STAT of a timer: n, sum, mean, min, max, p50, p99.9 …, of a gauge: last, min, max`

// statsdMetric is a metric of the relay's own, as statsd said it.
type statsdMetric struct {
	kind string // result.Timer …
	name string // without the prefix
	tags []string
	stat string
	q    float64 // of a stat that is a quantile
}

// isStatsd says whether a name is meant to be that of a metric of the relay's own, and of which type.
func isStatsd(name string) (kind string, ok bool) {
	kind, _, ok = strings.Cut(name, ":")
	return kind, ok && (kind == result.Timer || kind == result.Counter || kind == result.Gauge)
}

// parseStatsd reads the name of a metric of the relay's own.
func parseStatsd(text string) (s statsdMetric, err error) {
	bad := func(format string, args ...any) (statsdMetric, error) {
		return s, fmt.Errorf("metric %q: %s", text, fmt.Sprintf(format, args...))
	}
	var rest string
	s.kind, rest, _ = strings.Cut(text, ":")
	end := strings.IndexAny(rest, ":[")
	if end < 0 {
		end = len(rest)
	}
	s.name, rest = strings.TrimPrefix(rest[:end], StatsdPrefix), rest[end:]
	if s.name == "" {
		return bad("expected a name after %s:", s.kind)
	}
	for strings.HasPrefix(rest, "[") {
		tag, after, ok := strings.Cut(rest[1:], "]")
		if !ok || tag == "" {
			return bad("expected [tag:value]")
		}
		s.tags, rest = append(s.tags, tag), after
	}
	stat, ok := strings.CutPrefix(rest, ":")
	if !ok && rest != "" {
		return bad("expected nothing but : after ]")
	}
	s.stat = stat
	switch s.kind {
	case result.Timer:
		if p, ok := strings.CutPrefix(stat, "p"); ok {
			v, err := strconv.ParseFloat(p, 64)
			if err != nil || !(v > 0 && v < 100) {
				return bad("%q is not a percentile such as p99 or p99.9", stat)
			}
			s.q = v / 100
			return s, nil
		}
		if !slices.Contains([]string{"n", "sum", "mean", "min", "max"}, stat) {
			return bad("expected %s:%s:p99, or n, sum, mean, min or max", s.kind, s.name)
		}
	case result.Counter:
		if rest != "" {
			return bad("a counter is its sum: expected nothing after its name and tags")
		}
	case result.Gauge:
		if stat == "" {
			s.stat = "last"
		}
		if !slices.Contains([]string{"last", "min", "max"}, s.stat) {
			return bad("expected last, min or max at its end")
		}
	}
	return s, nil
}

// findStatsd is the metric of that name; nil where it is none.
func findStatsd(name string) *Metric {
	if _, ok := isStatsd(name); !ok {
		return nil
	}
	s, err := parseStatsd(name)
	if err != nil {
		return nil
	}
	m := &Metric{Name: name, Group: Other, statsd: &s, Of: observed(s.of),
		Help: "what the relay itself said by statsd; in its unit, which for times is ms"}
	if s.kind == result.Timer {
		m.Group = CPU // a drift of the machine moves it likewise
		if s.stat != "n" {
			m.Better = -1
		}
	}
	return m
}

// has says whether what came is of this metric.
func (s *statsdMetric) has(x *result.StatsdSeries) bool {
	return x.Type == s.kind && strings.TrimPrefix(x.Name, StatsdPrefix) == s.name &&
		!slices.ContainsFunc(s.tags, func(tag string) bool { return !slices.Contains(x.Tags, tag) })
}

// of is the value in a result: of timers over all their tags, of counters and
// the last values of gauges the sum over them. It is unknown where not all came.
func (s *statsdMetric) of(r *result.Result) (float64, bool) {
	if r.Statsd == nil || r.Statsd.Cut != "" {
		return 0, false
	}
	all, sum, low, high, found := result.NewDistribution(), 0.0, 0.0, 0.0, false
	for i := range r.Statsd.Series {
		x := &r.Statsd.Series[i]
		if !s.has(x) {
			continue
		}
		switch {
		case x.Timer != nil:
			if all.Merge(x.Timer) != nil {
				return 0, false
			}
		case x.Gauge != nil:
			if sum += x.Gauge.Last; !found {
				low, high = x.Gauge.Min, x.Gauge.Max
			}
			low, high = min(low, x.Gauge.Min), max(high, x.Gauge.Max)
		default:
			sum += x.Counter
		}
		found = true
	}
	if !found || s.kind != result.Timer {
		switch s.stat {
		case "min":
			return low, found
		case "max":
			return high, found
		}
		return sum, found
	}
	switch s.stat {
	case "n":
		return all.Count(), true
	case "sum":
		return all.Sum(), true
	case "mean":
		return all.Mean()
	case "min":
		return all.Quantile(0)
	case "max":
		return all.Quantile(1)
	}
	return all.Quantile(s.q)
}

// StatsdError says that no report has a metric of the relay's own.
type StatsdError struct {
	Metric  string
	Reports int    // that were looked at
	With    int    // of them, that have any
	Near    string // the nearest metric that there is, or ""
}

func (e *StatsdError) Error() string {
	switch {
	case e.With == 0:
		return fmt.Sprintf("metric %q: no report was made with statsd on, of %d that were looked at", e.Metric, e.Reports)
	case e.Near != "":
		return fmt.Sprintf("metric %q: no report has it: did you mean %q?", e.Metric, e.Near)
	}
	return fmt.Sprintf("metric %q: no report has it", e.Metric)
}

// heard is what relays said by statsd, in the reports that were read.
type heard struct {
	reports, with int
	names         map[string]map[string]bool // by type
	tags          map[string]bool
}

func (h *heard) add(r *Report) {
	h.reports++
	if r.Result == nil || r.Result.Statsd == nil {
		return
	}
	h.with++
	if h.names == nil {
		h.names, h.tags = map[string]map[string]bool{}, map[string]bool{}
	}
	for _, s := range r.Result.Statsd.Series {
		if h.names[s.Type] == nil {
			h.names[s.Type] = map[string]bool{}
		}
		h.names[s.Type][strings.TrimPrefix(s.Name, StatsdPrefix)] = true
		for _, tag := range s.Tags {
			h.tags[tag] = true
		}
	}
}

// missing is the error of metrics of the relay's own that are in no report.
func (h *heard) missing(c *Collated) error {
	if h.reports == 0 {
		return nil
	}
	for j, m := range c.all {
		if m.statsd != nil && !c.knows(j) {
			return &StatsdError{Metric: m.Name, Reports: h.reports, With: h.with, Near: h.near(m)}
		}
	}
	return nil
}

// knows says whether any run has a value of a metric, by its number in all, fit or not.
func (c *Collated) knows(metric int) bool {
	for i := range c.Groups {
		for k := range c.Groups[i].Rows {
			r := &c.Groups[i].Rows[k]
			for run := range r.Runs {
				if r.Of(run, metric).Known {
					return true
				}
			}
		}
	}
	return false
}

// near is the metric of the same type, with tags and all, that is nearest to one which there is not.
func (h *heard) near(m *Metric) string {
	s := *m.statsd
	nearest := func(typed string, all map[string]bool) string {
		if all[typed] {
			return typed
		}
		return variable.Nearest(typed, sortedKeys(all))
	}
	name := nearest(s.name, h.names[s.kind])
	if name == "" {
		return ""
	}
	text := s.kind + ":" + name
	for _, tag := range s.tags {
		if tag = nearest(tag, h.tags); tag != "" {
			text += "[" + tag + "]"
		}
	}
	if s.stat != "" && (s.kind != result.Gauge || s.stat != "last") {
		text += ":" + s.stat
	}
	if text == m.Name {
		return ""
	}
	return text
}

func sortedKeys(all map[string]bool) []string {
	var names []string
	for n := range all {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// StatsdMetrics are names of metrics that a report has of the relay's own, each
// without tags; of a timer that of its p99.
func StatsdMetrics(r *Report) (names []string) {
	if r.Result == nil || r.Result.Statsd == nil {
		return nil
	}
	for _, s := range r.Result.Statsd.Series {
		name := s.Type + ":" + strings.TrimPrefix(s.Name, StatsdPrefix)
		if s.Type == result.Timer {
			name += ":p99"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// errStatsd explains why a name that is meant to be of the relay's own is none; nil where it is one, or is not meant to be.
func errStatsd(name string) error {
	if _, ok := isStatsd(name); !ok {
		return nil
	}
	_, err := parseStatsd(name)
	return err
}
