package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/plan"
)

// explainCommand is made by a function, for it looks into the table that it stands in.
func explainCommand() command {
	return command{
		name:     "explain",
		summary:  "what a test would do, without doing it",
		args:     []arg{{name: "LINE", help: "a test with its flags", many: true}},
		examples: []string{"explain test 10s --rate 200,500 --mix each"},
		store:    true,
		table:    true,
		line:     true,
		setup: func(s *Session, _ *pflag.FlagSet) work {
			return func(ctx context.Context, args []string) (Code, error) {
				c, rest, err := lookup(s.commands, args)
				if err != nil {
					return Fine, err
				}
				if c.explain == nil {
					return Fine, usageError(fmt.Errorf("%s makes no run", c.name), "explain takes a test, as in explain test 10s --rate 200")
				}
				explained := *c
				explained.setup = c.explain
				do, args, err := s.parse(&explained, rest)
				if err != nil {
					return Fine, fmt.Errorf("%s: %w", c.name, err)
				}
				return do(ctx, args)
			}
		},
	}
}

// explain prints plans: for a person, the knobs that differ by run.
func (s *Session) explain(_ context.Context, plans []plan.Plan) (Code, error) {
	names := recordNames(plans)
	if s.format != Text {
		rows := &table.Table{Columns: []table.Column{{Key: "run"}}}
		for _, n := range names {
			rows.Columns = append(rows.Columns, table.Column{Key: n})
		}
		for i, p := range plans {
			row := []table.Cell{table.Int(i + 1)}
			for _, n := range names {
				row = append(row, recordCell(p, n))
			}
			rows.Add(row...)
		}
		return Fine, s.print(rows)
	}
	ref, err := s.inUse()
	if err != nil {
		return Fine, err
	}
	var load time.Duration
	for _, p := range plans {
		load += p.Duration
	}
	runs := "1 run"
	if len(plans) > 1 {
		runs = fmt.Sprintf("%d runs, each with a fresh relay and upstream", len(plans))
	}
	if err := s.printf("%s, against %s: %v of load in all, and some seconds a run\n"+
		"to start, warm up (an envelope of each kind, and one for each project) and drain\n\n", runs, ref.What, load); err != nil {
		return Fine, err
	}
	list := &table.Table{Columns: []table.Column{{Key: "knob"}, {Key: "value", Wrap: true}, {Key: "unit"}, {Key: "default"}}}
	for _, n := range names {
		var values []string
		for _, p := range plans {
			if v := recordCell(p, n).String(); len(values) == 0 || values[len(values)-1] != v {
				values = append(values, v)
			}
		}
		unit, fallback := table.Text(""), table.Text("")
		if k := plan.Find(n); k != nil && !k.Positional {
			unit = table.Text(k.Unit)
			if len(values) != 1 || values[0] != k.Default {
				fallback = table.Text(k.Default)
			}
		}
		list.Add(table.Text(n), table.Text(strings.Join(values, ", ")), unit, fallback)
	}
	return Fine, s.print(list)
}

// recordNames are the names in the records of plans: knobs in the table's order, then config keys.
func recordNames(plans []plan.Plan) []string {
	names := plan.KnobNames()
	seen := map[string]bool{}
	for _, p := range plans {
		for _, set := range p.Settings {
			if n := plan.SettingName(set.Key); !seen[n] {
				seen[n] = true
				names = append(names, n)
			}
		}
	}
	return names
}

// recordCell is what a plan has under a name of its record; unknown where it has none.
func recordCell(p plan.Plan, name string) table.Cell {
	v, ok := p.Record()[name]
	if !ok {
		return table.Cell{}
	}
	return table.Text(v)
}
