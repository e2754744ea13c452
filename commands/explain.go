package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/line"
	"relaybench/commands/table"
	"relaybench/envelope"
	"relaybench/harness"
	"relaybench/harness/plan"
	"relaybench/harness/variable"
)

// explainCommand is made by a function, for it looks into the table that it stands in.
func explainCommand() command {
	return command{
		name:    "explain",
		summary: "what a line would do, without doing it",
		detail: `Of a test: which runs it makes, in which order, and about how long they take. Where the line
begins with what define has defined: the commands that it stands for. A line with ; in it is one
in quotes.`,
		args:     []arg{{name: "LINE", help: "a test with its flags, or any other command", many: true}},
		examples: []string{"explain test 10s --rate 200,500 --mix each", "explain 'do ; do main perf/ua-prefilter'"},
		store:    true,
		table:    true,
		line:     true,
		setup: func(s *Session, _ *pflag.FlagSet) work {
			return func(ctx context.Context, args []string) (Code, error) { return s.explainLine(ctx, args) }
		},
	}
}

// explainLine says what the commands of a line are, and what each would do.
func (s *Session) explainLine(ctx context.Context, words []string) (Code, error) {
	all := [][]string{words}
	if len(words) == 1 { // in quotes
		var err error
		if all, err = line.Split(words[0]); err != nil {
			return Fine, usageError(err, "")
		}
	}
	expanded, err := line.Expand(all, s.alias)
	if err != nil {
		return Fine, usageError(err, "define NAME shows what a name stands for")
	}
	plain := len(all) == 1 && len(expanded) == 1 && slices.Equal(all[0], expanded[0])
	if c, rest, err := lookup(s.commands, words); plain && err == nil && c.explain != nil {
		return s.explainCommand(ctx, c, rest)
	}
	if s.format != Text {
		t := &table.Table{Columns: []table.Column{{Key: "line"}}}
		for _, words := range expanded {
			t.Add(table.Text(line.Join(words)))
		}
		return Fine, s.print(t)
	}
	for _, words := range expanded {
		if err := s.printf("%s\n", table.Clean(line.Join(words))); err != nil {
			return Fine, err
		}
	}
	code := Fine
	for _, words := range expanded {
		c, rest, err := lookup(s.commands, words)
		if err != nil {
			return code, err
		}
		if c.explain != nil {
			if err := s.printf("\n%s\n", table.Clean(line.Join(words))); err != nil {
				return code, err
			}
		}
		one, err := s.explainCommand(ctx, c, rest)
		if code = Gravest(code, one); err != nil {
			return code, err
		}
	}
	return code, nil
}

// explainCommand says what one command would do, if there is something to say; its error is what typing it would be told.
func (s *Session) explainCommand(ctx context.Context, c *command, rest []string) (Code, error) {
	explained := *c
	if c.explain != nil {
		explained.setup, explained.queue = c.explain, nil
	}
	do, args, err := s.parse(&explained, rest)
	if err != nil {
		return Fine, &told{error: fmt.Errorf("%s: %w", c.name, err), of: c}
	}
	if c.explain == nil {
		return Fine, nil
	}
	code, err := do(ctx, args)
	if err != nil {
		err = &told{error: err, of: c}
	}
	return code, err
}

// explain says which runs would be made, in which order, and how long they take.
func (s *Session) explain(ctx context.Context, q *request) error {
	ref, err := s.inUse()
	if err != nil {
		return err
	}
	db, err := s.indexed()
	if err != nil {
		return err
	}
	if q.resumed || configured(q.cells) {
		program, err := s.bench.findRelay(ctx, ref)
		if err != nil {
			return err
		}
		if err := checkConfigs(ctx, program, q.cells); err != nil {
			return err
		}
		if q.resumed {
			if err := q.resume(db, s.provenance(ctx, program)); err != nil {
				return err
			}
		}
	}
	beside, err := overhead(db, ref.form())
	if err != nil {
		return err
	}
	warm, err := warmUps(ctx, q.cells)
	if err != nil {
		return err
	}
	if s.format != Text {
		return s.print(q.table(beside, warm, recordNames(q.cells), 0))
	}
	if err := s.printf("%s", s.foretell(q, ref, beside, warm)); err != nil {
		return err
	}
	differ, alike := apart(q.cells)
	if q.many() && len(q.turns) > 0 {
		if err := s.print(q.table(beside, warm, differ, explainedRuns)); err != nil {
			return err
		}
		if more := len(q.turns) - explainedRuns; more > 0 {
			if err := s.printf("and %s more: --csv lists them\n", count(more)); err != nil {
				return err
			}
		}
		if err := s.printf("\n"); err != nil {
			return err
		}
	}
	return s.print(knobsTable(q.cells[0], alike))
}

// knobsTable is a row for each of some names in the record of a plan.
func knobsTable(p plan.Plan, names []string) *table.Table {
	list := &table.Table{Columns: []table.Column{{Key: "knob"}, {Key: "value", Wrap: true}, {Key: "unit"}, {Key: "default"}}}
	for _, n := range names {
		value := recordCell(p, n)
		unit, fallback := table.Text(""), table.Text("")
		if k := plan.Find(n); k != nil && !k.Positional {
			unit = table.Text(k.Unit)
			if value.String() != k.Default {
				fallback = table.Text(k.Default)
			}
		}
		list.Add(table.Text(n), value, unit, fallback)
	}
	return list
}

// explainedRuns is how many runs are listed for a person.
const explainedRuns = 50

// foretell says in words what would be done, and how long it takes.
func (s *Session) foretell(q *request, ref reference, beside guess, warm []int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintln(&b, s.wrap(fmt.Sprintf(format, args...))) }
	runs := "1 run"
	if n := len(q.turns); n != 1 {
		runs = fmt.Sprintf("%d runs, each with a fresh relay and upstream", n)
	}
	load := q.load(q.turns)
	whole := q.lasts(q.turns) + time.Duration(len(q.turns))*beside.took
	line("%s, against %s: %s of load, about %s in all", runs, ref, variable.ShortDuration(load), seconds(whole))
	from := "a guess, for no run was made yet"
	if beside.of > 0 {
		from = fmt.Sprintf("the median of the last %d", beside.of)
	}
	ups := count(slices.Min(warm))
	if least, most := slices.Min(warm), slices.Max(warm); least != most {
		ups += " to " + count(most)
	}
	line("a run takes about %s beside its load (%s), to start, warm up with %s sends and drain", beside.took.Round(100*time.Millisecond), from, ups)
	if q.rounds > 1 {
		line("%d rounds, forth and back", q.rounds)
	}
	for _, text := range folders(q.cells) {
		line("%s", text)
	}
	if slices.ContainsFunc(q.cells, func(p plan.Plan) bool { return harness.Held(p) > 0 }) {
		line("with statsd a run waits for the relay's flushes, before the load and after the drain: about %s", seconds(harness.Held(plan.Plan{Statsd: plan.StatsdOn})))
	}
	for _, text := range pinned(q.cells, ref.form()) {
		line("%s", text)
	}
	for _, raised := range raisedPools(q.cells) {
		line("the pool of %s user agents is raised to as many envelopes", count(raised))
	}
	if q.resumed {
		line("%s", q.leftOut())
	}
	if q.profile != "" {
		of := ""
		if q.many() {
			of = "-REPORT"
		}
		line("the relay is profiled: %s%s%s, and %s", table.Clean(q.profile), of, pprofFile, flameFile)
	}
	for _, t := range q.thresholds {
		line("fails if %s", table.Clean(t.text))
	}
	return b.String() + "\n"
}

// folders say what is in the folders that are mixes of plans, each once.
func folders(plans []plan.Plan) (says []string) {
	for _, p := range plans {
		f := p.Folder
		if f == nil {
			continue
		}
		var kinds []string
		for _, k := range f.Kinds {
			if n := f.Files[k.Name]; n > 0 {
				kinds = append(kinds, fmt.Sprintf("%s %s", k.Name, count(n)))
			}
		}
		text := fmt.Sprintf("%s has envelopes of %s; times in them are moved to the run's start", table.Clean(f.Path), strings.Join(kinds, ", "))
		if f.Passed > 0 {
			text += fmt.Sprintf("; %s other files, not named *%s, are passed over", count(f.Passed), envelope.FolderExt)
		}
		if !slices.Contains(says, text) {
			says = append(says, text)
		}
	}
	return says
}

// raisedPools are the sizes of pools that are raised to the number of user agents, each once.
func raisedPools(plans []plan.Plan) (sizes []int) {
	for _, p := range plans {
		if n := p.PoolSize(); n > p.Pool && !slices.Contains(sizes, n) {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

// table is the turns of a series, a row each, at most so many; 0: all.
func (q *series) table(beside guess, warm []int, names []string, most int) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "run", Right: true}, {Key: "round", Right: true, Data: q.rounds == 1},
		{Key: "about_ns", Head: "about", Right: true}, {Key: "warm_ups", Head: "warm-up", Right: true}}}
	for _, n := range names {
		t.Columns = append(t.Columns, table.Column{Key: n, Wrap: true})
	}
	for i, turn := range q.turns {
		if most > 0 && i == most {
			break
		}
		p := q.cells[turn.cell]
		took := lasts(p) + beside.took
		row := []table.Cell{table.Int(i + 1), table.Int(turn.round), table.Int(int64(took)).As(seconds(took)), table.Int(warm[turn.cell])}
		for _, n := range names {
			row = append(row, recordCell(p, n))
		}
		t.Add(row...)
	}
	return t
}

// warmUps is how many warm-up sends a run of each plan makes.
func warmUps(ctx context.Context, plans []plan.Plan) ([]int, error) {
	// What they depend on: see harness.WarmUps. How many payloads there are and how large has no say in it.
	const few = 64
	type key struct {
		mix, duration, rate string
		projects, burst     int
		zipf                float64
		seed                uint64
	}
	known := map[key]int{}
	counts := make([]int, len(plans))
	for i, p := range plans {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		k := key{p.Mix, p.Duration.String(), fmt.Sprint(p.Rate), p.Projects, p.Burst, p.Zipf, p.Seed}
		n, ok := known[k]
		if !ok {
			small := p
			small.Frames, small.SpansMin, small.SpansMax, small.Pool, small.Agents = 1, 1, 1, min(p.Pool, few), 0
			var err error
			if n, err = harness.WarmUps(small); err != nil { // as where the mix needs a larger one
				n, err = harness.WarmUps(p)
			}
			if err != nil {
				return nil, usageError(err, "")
			}
			known[k] = n
		}
		counts[i] = n
	}
	return counts, nil
}

// apart are the names in the records of plans that differ among them, and those that do not.
func apart(plans []plan.Plan) (differ, alike []string) {
	for _, n := range recordNames(plans) {
		first := recordCell(plans[0], n).String()
		if slices.ContainsFunc(plans, func(p plan.Plan) bool { return recordCell(p, n).String() != first }) {
			differ = append(differ, n)
		} else {
			alike = append(alike, n)
		}
	}
	return differ, alike
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
