package commands

import (
	"fmt"
	"math"
	"strings"

	"relaybench/commands/table"
	"relaybench/harness/variable"
	"relaybench/store"
)

// threshold is a --fail-if: a condition that no run may meet.
type threshold struct {
	text   string // as it was typed
	metric *store.Metric
	holds  func(value, limit float64) bool
	limit  float64 // in the metric's unit
}

// comparisons are the operators of thresholds, each before those that it begins with.
var comparisons = []struct {
	op    string
	holds func(value, limit float64) bool
}{
	{">=", func(v, l float64) bool { return v >= l }},
	{"<=", func(v, l float64) bool { return v <= l }},
	{"!=", func(v, l float64) bool { return v != l }},
	{">", func(v, l float64) bool { return v > l }},
	{"<", func(v, l float64) bool { return v < l }},
	{"=", func(v, l float64) bool { return v == l }},
}

// parseThreshold reads METRIC OP VALUE.
func parseThreshold(text string) (threshold, error) {
	t := threshold{text: text}
	name, rest := text, ""
	if at := strings.IndexAny(text, "<>=!"); at >= 0 {
		name, rest = strings.TrimSpace(text[:at]), text[at:]
	}
	value := ""
	for _, c := range comparisons {
		if v, ok := strings.CutPrefix(rest, c.op); ok {
			t.holds, value = c.holds, strings.TrimSpace(v)
			break
		}
	}
	if t.holds == nil || name == "" || value == "" {
		return t, usageError(fmt.Errorf("--fail-if %q is not METRIC OP VALUE, such as through-p99>50ms", text), "OP is one of > >= < <= = !=; help metrics lists the metrics")
	}
	if t.metric = store.FindMetric(name); t.metric == nil {
		var names []string
		for i := range store.Metrics {
			names = append(names, store.Metrics[i].Name)
		}
		return t, usageError(fmt.Errorf("--fail-if %q: unknown metric %q", text, name), didYouMean(variable.Nearest(name, names), "help metrics lists the metrics"))
	}
	var err error
	if t.limit, err = t.metric.ParseValue(value); err != nil {
		return t, usageError(fmt.Errorf("--fail-if: %w", err), "")
	}
	return t, nil
}

// judgement is what a threshold says of a run.
type judgement struct {
	threshold *threshold
	value     float64
	known     bool
	unfit     string // the mark that makes the metric unfit
}

// judge judges a report by thresholds.
func judge(ts []threshold, r *store.Report, marks []store.Marked) []judgement {
	var js []judgement
	for i := range ts {
		j := judgement{threshold: &ts[i]}
		j.value, j.known = ts[i].metric.Of(r)
		j.unfit, _ = store.Unfit(marks, ts[i].metric.Name)
		js = append(js, j)
	}
	return js
}

// code is the judgement as an exit code. What a mark makes unfit never passes;
// it fails where it meets the condition, as a relay does that falls behind.
func (j *judgement) code() Code {
	switch {
	case !j.known:
		return Inconclusive
	case j.threshold.holds(j.value, j.threshold.limit):
		return Worse
	case j.unfit != "":
		return Unfit
	}
	return Fine
}

// thresholdWords are the codes of judgements in words.
var thresholdWords = map[Code]string{Fine: "passed", Worse: "failed", Inconclusive: "no value", Unfit: "unfit"}

// String is the judgement as a person reads it.
func (j *judgement) String() string {
	shown := quantity(j.value, j.threshold.metric.Unit)
	said := "fail-if " + table.Clean(j.threshold.text) + ": "
	switch j.code() {
	case Inconclusive:
		return said + "no value in this report, so neither passed nor failed"
	case Unfit:
		return said + fmt.Sprintf("neither passed nor failed: it is %s, and mark %s makes that unfit", shown, j.unfit)
	case Worse:
		said += "failed: " + shown + j.beyond()
		if j.unfit != "" {
			said += "; mark " + j.unfit + " makes that unfit for comparison"
		}
		return said
	}
	return said + "passed: " + shown
}

// beyond is by how much a value lies on the wrong side of the limit.
func (j *judgement) beyond() string {
	limit := j.threshold.limit
	by := math.Abs(j.value - limit)
	if by == 0 {
		return ", exactly that"
	}
	side := "over"
	if j.value < limit {
		side = "under"
	}
	share := ""
	if r := by / math.Abs(limit); r < 10 { // not of a limit of 0
		share = fmt.Sprintf(" (%s)", percent(r))
	}
	return fmt.Sprintf(", %s%s %s", quantity(by, j.threshold.metric.Unit), share, side)
}

// thresholdJSON is a judgement as programs read it.
type thresholdJSON struct {
	Condition string     `json:"condition"`
	Metric    string     `json:"metric"`
	Value     table.Cell `json:"value"`
	Limit     float64    `json:"limit"`
	Unit      string     `json:"unit"`
	Verdict   string     `json:"verdict"` // passed, failed, no value, unfit
	Unfit     *string    `json:"unfit"`   // the mark that makes it so
}

func thresholdsJSON(js []judgement) []thresholdJSON {
	var out []thresholdJSON
	for i := range js {
		j := &js[i]
		x := thresholdJSON{Condition: j.threshold.text, Metric: j.threshold.metric.Name, Value: table.Float(j.value, j.known),
			Limit: j.threshold.limit, Unit: j.threshold.metric.Unit, Verdict: thresholdWords[j.code()]}
		if j.unfit != "" {
			x.Unfit = &j.unfit
		}
		out = append(out, x)
	}
	return out
}

// tally says what thresholds said of the runs of a line, a line each.
func tally(ts []threshold, runs [][]judgement) []string {
	var lines []string
	for i := range ts {
		counts := map[Code]int{}
		for _, js := range runs {
			counts[js[i].code()]++
		}
		var parts []string
		for _, c := range []Code{Worse, Inconclusive, Unfit, Fine} {
			if counts[c] > 0 {
				parts = append(parts, fmt.Sprintf("%s in %d of %d reports", thresholdWords[c], counts[c], len(runs)))
			}
		}
		lines = append(lines, "fail-if "+table.Clean(ts[i].text)+": "+strings.Join(parts, ", "))
	}
	return lines
}
