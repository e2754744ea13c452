package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"relaybench/commands/table"
	"relaybench/store"
)

// page writes the summary: the fine print first, then the figures.
func (p *publication) page(w io.Writer) error {
	b := &markdownPage{w: w}
	b.line("# Load tests of %s\n", p.relays())
	b.line("%s in %s, begun %s, on %s.\n", plural(len(p.ids), "run", "runs"), plural(len(p.cells), "cell", "cells"), p.when(), p.hostWords())

	b.line("## Fine print\n")
	for l, head := range []string{"at a given rate", "flat out"} {
		if of := &p.loops[l]; of.runs > 0 {
			b.line("Runs %s (%s):\n", head, count(of.runs))
			b.list(of.print.lines())
		}
	}
	b.line("Of all figures:\n")
	b.list(append([]string{
		"a figure is the median of its cell's runs, ± how far their middle half spreads, and in brackets how many runs it rests on where that is not all of them; a cell is all runs that are equal in every condition",
		"nothing here is a comparison with a verdict: two figures that differ may do so by chance, or by a machine that was slower that hour",
	}, append(p.markLines(), p.leftOutNotes()...)...))

	p.loopPage(b, 0, "At a given rate (open loop)", "")
	p.loopPage(b, 1, "Flat out (closed loop)",
		"These are no capacities. A connection sends when it is answered, so the relay and the senders share the CPUs as the scheduler has it, and what is accepted may be more than what is forwarded. They are not to be quoted without this:")
	p.searchPage(b)

	b.line("## Versions\n")
	b.table(p.versionTable())
	b.line("## Hosts\n")
	for _, h := range p.hosts {
		b.table(h.record())
	}
	b.line("## Files\n")
	t := &table.Table{Columns: []table.Column{{Key: "file"}, {Key: "what"}}}
	for _, name := range sorted(p.what) {
		t.Add(table.Text(name), table.Text(p.what[name]))
	}
	b.table(t)
	return b.err
}

// loopPage is the cells of one sort of load.
func (p *publication) loopPage(b *markdownPage, loop int, head, fine string) {
	of := &p.loops[loop]
	if of.runs == 0 {
		return
	}
	b.line("## %s\n", head)
	if fine != "" {
		b.line("%s\n", fine)
		b.list(of.print.lines())
	}
	if shared := sharedText(of.c.Shared); shared != "" {
		b.line("All: %s.\n", shared)
	}
	telling := of.c.Telling()
	t := &table.Table{Columns: []table.Column{{Key: "cell", Right: true}}}
	for _, n := range telling {
		t.Columns = append(t.Columns, table.Column{Key: n})
	}
	t.Columns = append(t.Columns, table.Column{Key: "runs", Right: true})
	for _, m := range of.c.Metrics {
		t.Columns = append(t.Columns, table.Column{Key: metricKey(m), Head: metricHead(m), Right: true})
	}
	t.Columns = append(t.Columns, table.Column{Key: "marks"})
	for i, c := range of.cells {
		row := []table.Cell{table.Int(c.number)}
		for _, n := range telling {
			v, ok := c.conditions[n]
			row = append(row, table.Text(conditionValue(n, v, ok)))
		}
		row = append(row, table.Int(len(c.ids)))
		cells := of.c.Groups[i].Rows[0].Cells
		for j := range cells {
			median, spread := cellTexts(&cells[j], len(c.ids))
			row = append(row, table.Text(strings.TrimSpace(median+" "+spread)))
		}
		t.Add(append(row, table.Text(strings.Join(c.markWords(), ", ")))...)
	}
	b.table(t)
}

// markWords are the marks of a cell's runs, in the table's order, with how many have one where not all do.
func (c *publishedCell) markWords() (words []string) {
	for i := range store.Marks {
		name := store.Marks[i].Name
		switch n := c.marks[name]; {
		case n == len(c.ids):
			words = append(words, name)
		case n > 0:
			words = append(words, fmt.Sprintf("%s (%d)", name, n))
		}
	}
	return words
}

// searchPage is what searches found, each with its fine print.
func (p *publication) searchPage(b *markdownPage) {
	if len(p.searches) == 0 {
		return
	}
	b.line("## The highest rate that the relay keeps up with (search)\n")
	b.line("Of each search: the highest rate at which the backlog did not grow by more than 1%% of it and nothing was refused or lost, and the lowest at which that was not so. It is of this relay, load, config and host, and of steps as long as is said.\n")
	for _, s := range p.searches {
		_, end := s.next()
		found := capacity{Series: s.series, Round: s.round, hunt: s.hunt, End: end}
		if end == "" {
			found.End = endStopped
		}
		var of []string
		for _, n := range []string{"mix", "duration", "connections", "config", "upstream-latency", "host"} {
			v, ok := s.vars[n]
			of = append(of, n+" "+conditionValue(n, v, ok))
		}
		b.line("%s; %s: **%s** (series %s, search %d, %s):\n", s.relay, strings.Join(of, ", "), found.String(), s.series, s.round, plural(len(s.steps), "step", "steps"))
		b.list(s.print.lines())
	}
}

// relays are which relays they were, in a few words.
func (p *publication) relays() string {
	var names []string
	for _, c := range p.ordered {
		if n := relayWords(c.conditions).String(); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return strings.Join(firstOf(names, 3, "more"), ", ")
}

// when is from when to when runs began.
func (p *publication) when() string {
	const layout = "2006-01-02 15:04"
	from, to := p.first.UTC().Format(layout), p.last.UTC().Format(layout)
	switch {
	case p.first.IsZero():
		return "at an unknown time"
	case from == to:
		return "at " + from + " UTC"
	}
	return "from " + from + " to " + to + " UTC"
}

func (p *publication) hostWords() string {
	var names []string
	for _, h := range p.hosts {
		text := h.host.Name
		if h.host.CPU != "" {
			text += fmt.Sprintf(" (%d × %s)", h.host.CPUs, h.host.CPU)
		}
		if text = table.Clean(text); !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return strings.Join(firstOf(names, 5, "more"), ", ")
}

// markLines say which marks runs have, and what each means.
func (p *publication) markLines() (lines []string) {
	for i := range store.Marks {
		m := &store.Marks[i]
		if n := p.marks[m.Name]; n > 0 {
			lines = append(lines, fmt.Sprintf("mark %s, %s of %s: %s; %s", m.Name, count(n), plural(len(p.ids), "run", "runs"), m.Help, unfit(m.Unfit)))
		}
	}
	return lines
}

// leftOutNotes count what is in no figure of the page, and say why.
func (p *publication) leftOutNotes() (notes []string) {
	whole := &store.Collated{}
	for l := range p.loops {
		whole.Groups = append(whole.Groups, p.loops[l].c.Groups...)
	}
	notes, _ = leftOutValues(whole)
	if p.cut > 0 {
		notes = append(notes, fmt.Sprintf("%s older that match left out by -n", reports(p.cut)))
	}
	if n := len(p.unreadable); n > 0 {
		notes = append(notes, fmt.Sprintf("%s cannot be read, and left out", reports(n)))
	}
	return notes
}

// markdownPage writes Markdown, until the first error.
type markdownPage struct {
	w   io.Writer
	err error
}

// bold are the only signs of Markdown that a format may have beside those at a line's begin.
var bold = strings.NewReplacer(`\*\*`, "**")

func (b *markdownPage) line(format string, args ...any) {
	if b.err == nil {
		_, b.err = fmt.Fprintln(b.w, bold.Replace(table.Escape(fmt.Sprintf(format, args...))))
	}
}

func (b *markdownPage) list(lines []string) {
	for _, l := range lines {
		b.line("- %s", l)
	}
	b.line("")
}

func (b *markdownPage) table(t *table.Table) {
	if b.err == nil {
		b.err = t.Markdown(b.w)
	}
}
