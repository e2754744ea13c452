package commands

import (
	"fmt"

	"relaybench/commands/table"
	"relaybench/store/stats"
)

// capacity is what a search found.
type capacity struct {
	Series string // of its reports
	Round  int    // which of the searches of the line, from 1
	hunt
	End ending
}

// Low is the highest rate that the relay keeps up with; 0: none is known.
func (c *capacity) Low() float64 { low, _ := c.bracket(); return low.rate }

// High is the lowest rate that it does not keep up with; 0: none is known.
func (c *capacity) High() float64 { _, high := c.bracket(); return high.rate }

// code is the exit code of a search.
func (c *capacity) code() Code {
	switch c.End {
	case endHarness:
		return Unfit
	case endSteps, endLeast:
		return Inconclusive
	}
	return Fine
}

// String is what was found, in words.
func (c *capacity) String() string {
	low, high := c.Low(), c.High()
	rate := func(r float64) string { return quantity(r, "sends/s") }
	said := "nothing is known of which rate it keeps up with"
	switch {
	case low > 0 && high > 0:
		said = fmt.Sprintf("keeps up with %s, not with %s", rate(low), rate(high))
	case low > 0:
		said = fmt.Sprintf("keeps up with at least %s", rate(low))
	case high > 0:
		said = fmt.Sprintf("does not keep up with %s", rate(high))
	}
	switch c.End {
	case endHarness:
		last := c.steps[len(c.steps)-1]
		return fmt.Sprintf("%s; at %s something else than the relay was the limit, so this harness says no more: %s", said, rate(last.rate), last.why)
	case endTo:
		return said + ", the highest rate that was to be tried"
	case endLeast:
		return said + ", the lowest rate that is tried"
	case endSteps:
		return said + fmt.Sprintf("; not settled after %d steps, for runs of the same rates contradict each other", len(c.steps))
	case endStopped:
		return said + fmt.Sprintf(", so far: stopped after %d steps", len(c.steps))
	}
	return said
}

// found are the capacities of the searches that found one.
func found(all []*capacity) []float64 {
	var rates []float64
	for _, c := range all {
		if c.End == endFound {
			rates = append(rates, c.Low())
		}
	}
	return rates
}

// spreadWords says how far the results of searches lie apart.
func spreadWords(all []*capacity) string {
	rates := found(all)
	if len(rates) == 0 {
		return fmt.Sprintf("none of %d searches found a bracket", len(all))
	}
	sum := stats.Summarize(rates)
	rate := func(r float64) string { return quantity(r, "sends/s") }
	said := fmt.Sprintf("%d searches: median %s, %s to %s", len(rates), rate(sum.Median), rate(sum.Min), rate(sum.Max))
	if without := len(all) - len(rates); without > 0 {
		said += fmt.Sprintf("; %d found no bracket", without)
	}
	return said
}

// searchJSON is what searches found, as programs read it.
type searchJSON struct {
	Series   string         `json:"series"`
	Searches []capacityJSON `json:"searches"`
	Found    int            `json:"found"` // searches that ended in a bracket: those that the three below are of
	Median   table.Cell     `json:"median_rate"`
	Least    table.Cell     `json:"least_rate"`
	Most     table.Cell     `json:"most_rate"`
}

type capacityJSON struct {
	KeepsUp table.Cell   `json:"keeps_up_rate"` // the highest rate that does
	Falls   table.Cell   `json:"falls_rate"`    // the lowest that does not
	End     ending       `json:"end"`           // found, to, harness, least, steps, stopped
	Says    string       `json:"says"`
	Steps   *table.Table `json:"steps"`
}

func newSearchJSON(all []*capacity) searchJSON {
	j := searchJSON{Series: all[0].Series}
	for _, c := range all {
		t := &table.Table{Columns: stepColumns}
		for i := range c.steps {
			t.Add(c.steps[i].row(i + 1)...)
		}
		j.Searches = append(j.Searches, capacityJSON{rateCell(c.Low()), rateCell(c.High()), c.End, c.String(), t})
	}
	if rates := found(all); len(rates) > 0 {
		sum := stats.Summarize(rates)
		j.Found, j.Median, j.Least, j.Most = sum.N, rateCell(sum.Median), rateCell(sum.Min), rateCell(sum.Max)
	}
	return j
}

// searchTable is a row a step, and one for the end of each search.
func searchTable(all []*capacity) *table.Table {
	t := &table.Table{Columns: append([]table.Column{{Key: "search", Right: true}, {Key: "what"}}, stepColumns...)}
	for _, c := range all {
		for i := range c.steps {
			t.Add(append([]table.Cell{table.Int(c.Round), table.Text("step")}, c.steps[i].row(i+1)...)...)
		}
		t.Add(table.Int(c.Round), table.Text("end"), table.Int(len(c.steps)), rateCell(c.Low()), table.Cell{}, table.Text(c.String()), table.Cell{}, table.Cell{}, table.Cell{})
	}
	return t
}
