package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"relaybench/harness/variable"
)

// Filter is a condition on a report: a variable or headline metric, an
// operator and a value, as in rate>=200 or relay-branch~perf.
type Filter struct {
	Name  string
	Op    string // one of = != < <= > >= ~
	Value string // canonical, but for ~, where it is what was typed

	cell  bool // a condition of reports, which those of one cell share
	match func(*Entry) bool
}

// operators are those of filters; one that another begins with comes after it.
var operators = []struct {
	text string
	is   func(order int) bool // of the value against the filter's; nil: ~
}{
	{"!=", func(o int) bool { return o != 0 }},
	{"<=", func(o int) bool { return o <= 0 }},
	{">=", func(o int) bool { return o >= 0 }},
	{"=", func(o int) bool { return o == 0 }},
	{"<", func(o int) bool { return o < 0 }},
	{">", func(o int) bool { return o > 0 }},
	{"~", nil},
}

// ParseFilter reads a filter as it was typed. The value is read by the
// variable's declared type: mix=errors and mix=errors=1 are the same. A time is
// a date, 2026-11-30 or 2026-11-30T14:00, of the local time zone, which stands
// for that whole day or minute, or an age such as 2h, which is counted back
// from now: started>2h are the runs of the last two hours. A revision, a hash
// or an id may be a beginning of one. An empty value stands for what is unknown
// or not set. Its error names the nearest variable, or what is expected of the value.
func ParseFilter(text string, now time.Time) (Filter, error) {
	f, is, err := parseFilter(text)
	if err != nil {
		return f, err
	}
	if m := FindMetric(f.Name); m != nil {
		err = f.ofMetric(m, is)
	} else {
		v, ok := FindVariable(f.Name)
		if !ok {
			return f, unknownName(f.Name)
		}
		f.cell = v.Role != Occasion
		err = f.ofVariable(v, is, now)
	}
	if err != nil {
		return f, fmt.Errorf("filter %q: %w", text, err)
	}
	return f, nil
}

// parseFilter cuts a filter into its three parts.
func parseFilter(text string) (f Filter, is func(int) bool, err error) {
	if at := strings.IndexAny(text, "=!<>~"); at > 0 {
		for _, op := range operators {
			if value, ok := strings.CutPrefix(text[at:], op.text); ok {
				return Filter{Name: text[:at], Op: op.text, Value: value}, op.is, nil
			}
		}
	}
	return f, nil, fmt.Errorf("filter %q: expected NAME=VALUE, or with !=, <, <=, >, >= or ~ (contains)", text)
}

func unknownName(name string) error {
	if near := variable.Nearest(name, FilterNames()); near != "" {
		return fmt.Errorf("unknown variable %q: did you mean %q?", name, near)
	}
	return fmt.Errorf("unknown variable %q: expected a variable, a headline metric, or a config key with a dot", name)
}

func (f *Filter) ofVariable(v *Variable, is func(int) bool, now time.Time) error {
	switch {
	case f.Op == "~":
		part := f.Value
		f.match = f.onText(func(text string, known bool) bool { return known && strings.Contains(text, part) })
		return nil
	case f.Value == "":
		if f.Op != "=" && f.Op != "!=" {
			return fmt.Errorf("expected a value (%s)", v.Type.Name())
		}
		wanted := f.Op == "="
		f.match = f.onText(func(text string, _ bool) bool { return (text == "") == wanted })
		return nil
	case v.Type.Name() == timeType.Name():
		return f.ofTime(is, now)
	}
	value, err := v.Canon(f.Value)
	if err != nil {
		return err
	}
	f.Value = value
	compare := v.Compare
	if n := v.Type.Name(); n == hexType.Name() || n == idType.Name() {
		compare = func(text, beginning string) int {
			return strings.Compare(text[:min(len(text), len(beginning))], beginning)
		}
	}
	negated := f.Op == "!="
	f.match = f.onText(func(text string, known bool) bool {
		if !known {
			return negated
		}
		return is(compare(text, value))
	})
	return nil
}

// onText matches by the variable's text. Of a report that cannot be read, what is unknown matches nothing.
func (f *Filter) onText(match func(text string, known bool) bool) func(*Entry) bool {
	name := f.Name
	return func(e *Entry) bool {
		text, known := e.Var(name)
		return (known || e.Problem == "") && match(text, known)
	}
}

func (f *Filter) ofTime(is func(int) bool, now time.Time) error {
	from, to, err := parseSpan(f.Value, now)
	if err != nil {
		return err
	}
	if from.Equal(to) {
		if f.Op == "=" || f.Op == "!=" {
			return fmt.Errorf("no report is exactly %s old: expected < or >, as in %s>%s for those since then", f.Value, f.Name, f.Value)
		}
		to = from.Add(1)
		f.Value = formatTime(from)
	}
	name, negated := f.Name, f.Op == "!="
	f.match = func(e *Entry) bool {
		t := e.time(name)
		if t.IsZero() {
			return negated && e.Problem == ""
		}
		order := 0
		switch {
		case t.Before(from):
			order = -1
		case !t.Before(to):
			order = 1
		}
		return is(order)
	}
	return nil
}

// time is the value of a variable that is a time; zero where it is unknown.
func (e *Entry) time(name string) time.Time {
	switch name {
	case reportDate:
		return dateOf(e.ID)
	case started:
		return e.Start
	case ended:
		return e.End
	}
	text, _ := e.Var(name)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

func (f *Filter) ofMetric(m *Metric, is func(int) bool) error {
	switch {
	case !m.Headline:
		return fmt.Errorf("%s is not in the index of reports; metrics that are: %s", m.Name, strings.Join(headlineNames(), ", "))
	case is == nil:
		return errors.New("expected =, !=, <, <=, > or >= with a metric")
	case f.Value == "":
		if f.Op != "=" && f.Op != "!=" {
			return fmt.Errorf("expected a value (%s)", m.Unit)
		}
		name, negated := f.Name, f.Op == "!="
		f.match = func(e *Entry) bool {
			_, known := e.Metric(name)
			return known == negated && e.Problem == ""
		}
		return nil
	}
	value, err := m.ParseValue(f.Value)
	if err != nil {
		return err
	}
	name, negated := f.Name, f.Op == "!="
	f.match = func(e *Entry) bool {
		v, known := e.Metric(name)
		switch {
		case !known:
			return negated && e.Problem == ""
		case v < value:
			return is(-1)
		case v > value:
			return is(1)
		}
		return is(0)
	}
	return nil
}

// String is the filter as it could be typed.
func (f Filter) String() string { return f.Name + f.Op + f.Value }

// Match says whether a report is of the condition. What is unknown equals the
// empty value only, and so differs from any other.
func (f Filter) Match(e *Entry) bool { return f.match == nil || f.match(e) }

func matchAll(filters []Filter, e *Entry) bool {
	return !slices.ContainsFunc(filters, func(f Filter) bool { return !f.Match(e) })
}

// split parts filters that reports of one cell pass or fail together from the others.
func split(filters []Filter) (ofCell, ofEntry []Filter) {
	for _, f := range filters {
		if f.cell {
			ofCell = append(ofCell, f)
		} else {
			ofEntry = append(ofEntry, f)
		}
	}
	return ofCell, ofEntry
}

// FilterNames are the names that filters know: variables and headline metrics.
func FilterNames() []string { return append(VariableNames(), headlineNames()...) }

func headlineNames() []string {
	var names []string
	for _, i := range headlines {
		names = append(names, Metrics[i].Name)
	}
	return names
}
