package commands

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"relaybench/store"
)

// Go's benchmark format.
// Source: https://golang.org/design/14313-benchmark-format, and golang.org/x/perf/benchfmt.

// benchName is the name of every benchmark: what tells runs apart are configuration lines.
const benchName = "BenchmarkRelay"

// benchUnit is a metric's unit: its name with what it is in at the end, which
// benchstat reads; "" is a unit of none.
func benchUnit(m *store.Metric) string {
	switch {
	case m.Unit == "" || strings.HasSuffix(m.Name, "-"+m.Unit):
		return m.Name
	case strings.HasPrefix(m.Unit, "/"):
		return m.Name + m.Unit
	}
	return m.Name + "-" + m.Unit
}

// benchKey is the key of a variable: lower case at its start, and without blanks and capitals.
func benchKey(name string) string {
	key := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == ':' {
			return '_'
		}
		return unicode.ToLower(r)
	}, name)
	if key == "" || !unicode.IsLower([]rune(key)[0]) {
		key = "x" + key
	}
	return key
}

// benchText is a value on a line of its own.
func benchText(value string) string {
	if strings.ContainsFunc(value, unicode.IsControl) || strings.TrimSpace(value) != value {
		return strconv.Quote(value)
	}
	return value
}

// bench writes the reports in Go's benchmark format.
func (x *export) bench(w io.Writer) error {
	for i := range store.Metrics {
		m := &store.Metrics[i]
		if better := map[int]string{+1: "higher", -1: "lower"}[m.Better]; better != "" {
			if _, err := fmt.Fprintf(w, "Unit %s better=%s\n", benchUnit(m), better); err != nil {
				return err
			}
		}
	}
	config := benchConfig{now: map[string]string{}, varied: map[string]bool{}}
	unfit := map[string]int{} // values by mark
	empty := 0
	err := x.each(func(r *store.Report) error {
		values := benchValues(r, unfit)
		if values == "" {
			empty++
			return nil
		}
		sent := uint64(1)
		if t := r.Result.Tally; t != nil && t.Sent > 0 {
			sent = t.Sent
		}
		_, err := fmt.Fprintf(w, "%s%s %d%s\n", config.change(r), benchName, sent, values)
		return err
	})
	if err != nil {
		return err
	}
	if len(unfit) > 0 {
		var parts []string
		sum := 0
		for _, mark := range slices.Sorted(maps.Keys(unfit)) {
			sum += unfit[mark]
			parts = append(parts, fmt.Sprintf("%s %s", mark, count(unfit[mark])))
		}
		x.said = append(x.said, fmt.Sprintf("%s values left out that marks make unfit (%s)", count(sum), strings.Join(parts, ", ")))
	}
	if empty > 0 {
		x.said = append(x.said, fmt.Sprintf("%s left out for having no other value", reports(empty)))
	}
	if flags := config.flags(); flags != "" {
		x.said = append(x.said, "benchstat "+flags+" FILE compares them by that")
	}
	return nil
}

// benchValues are the values of a report with their units, as they end a line;
// those that its marks make unfit are counted by mark instead.
func benchValues(r *store.Report, unfit map[string]int) string {
	marks := store.MarksOf(r)
	var b strings.Builder
	for i := range store.Metrics {
		m := &store.Metrics[i]
		v, ok := m.Of(r)
		if !ok {
			continue
		}
		if by, is := store.Unfit(marks, m.Name); is {
			unfit[by]++
			continue
		}
		b.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64) + " " + benchUnit(m))
	}
	return b.String()
}

// benchConfig is the configuration that the lines so far say, and which variables were of several values.
type benchConfig struct {
	now    map[string]string // by variable
	begun  bool
	varied map[string]bool
}

// change is the lines that make the configuration that of a report: all its
// conditions, for benchstat compares and pools what is equal in them.
func (c *benchConfig) change(r *store.Report) string {
	vars := store.VariablesOf(r)
	maps.DeleteFunc(vars, func(name, _ string) bool {
		v, ok := store.FindVariable(name)
		return ok && v.Role == store.Occasion
	})
	var b strings.Builder
	for _, name := range store.InOrder(c.now, vars) {
		value := vars[name]
		if value == c.now[name] {
			continue
		}
		if c.varied[name] = c.begun; value == "" {
			fmt.Fprintf(&b, "%s:\n", benchKey(name))
		} else {
			fmt.Fprintf(&b, "%s: %s\n", benchKey(name), benchText(value))
		}
	}
	c.now, c.begun = vars, true
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String() + "\n"
}

// flags are those with which benchstat compares what varied; empty where nothing did.
func (c *benchConfig) flags() string {
	varied := slices.DeleteFunc(store.InOrder(c.now, asNames(c.varied)), func(name string) bool { return !c.varied[name] })
	if len(varied) == 0 {
		return ""
	}
	by := varied[0]
	if i := slices.IndexFunc(varied, func(name string) bool {
		v, ok := store.FindVariable(name)
		return ok && v.Role == store.Condition
	}); i >= 0 {
		by = varied[i]
	}
	for _, first := range []string{"relay-branch", "relay-revision", "relay-version", "relay-sha256"} {
		if c.varied[first] {
			by = first
			break
		}
	}
	var follow []string
	for _, name := range varied {
		v, ok := store.FindVariable(name)
		setting := strings.Contains(by, ".") && ok && slices.Contains(v.After, store.AnySetting)
		if ok && name != by && (slices.Contains(v.After, by) || setting) {
			follow = append(follow, benchKey(name))
		}
	}
	flags := "-col " + benchKey(by)
	if len(follow) > 0 {
		flags += " -ignore " + strings.Join(follow, ",")
	}
	return flags
}

func asNames(set map[string]bool) map[string]string {
	names := map[string]string{}
	for n := range set {
		names[n] = ""
	}
	return names
}
