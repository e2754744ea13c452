package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"relaybench/commands/table"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/variable"
	"relaybench/store"
)

// mostRerun is how many earlier builds are run again at most.
const mostRerun = 10

// rerun makes runs of the newest build and the earlier ones again, which take
// turns, and says what those say.
func (s *Session) rerun(ctx context.Context, q *verifying) (Code, error) {
	b, p, err := s.toRerun(q)
	if err != nil {
		return Fine, err
	}
	var sides []*side
	for i, row := range b.rows[:b.newest+1] {
		r, err := s.again(ctx, row)
		if err != nil {
			return Fine, fmt.Errorf("%s: %w", b.name(row), err)
		}
		if err := checkConfigs(ctx, r.program, []plan.Plan{p}); err != nil {
			return Fine, fmt.Errorf("%s: %w", b.name(row), err)
		}
		sides = append(sides, &side{name: sideName(i), plan: p, runner: r})
	}
	if err := s.checkNoise(ctx, &duel{n: defaultRuns, margin: q.margin, primary: q.metric, force: q.force}, sides); err != nil {
		return Fine, err
	}
	c := newContest(sides, defaultRuns, q.metric)
	again := *q
	again.like, again.limit, again.newest, again.rerun, again.force = "", store.Newest{}, allNewest, false, true // the margin was checked
	if again.filters, err = parseFilters([]string{"series=" + c.id}); err != nil {
		return Fine, err
	}
	c.closing = fmt.Sprintf("verify series=%s --metric %s --margin %s", c.id, q.metric.Name, marginText(q.margin))
	for i, d := range sides {
		if err := s.say("%s\n", s.wrap(table.Clean(fmt.Sprintf("%s: %s: %s", d.name, b.name(b.rows[i]), d.program)))); err != nil {
			return Fine, err
		}
	}
	if err := c.run(ctx, s); err != nil {
		return Fine, err
	}
	code, err := s.verify(&again)
	if err == nil {
		err = s.say("the runs: reports series=%s\nthe same again: %s\n", c.id, c.closing)
	}
	return code, err
}

// sideName is what a side is called by its number: A, B, …
func sideName(number int) string { return string(rune('A' + number)) }

// toRerun is what is to be run again, and the plan of all runs.
func (s *Session) toRerun(q *verifying) (*buildsFound, plan.Plan, error) {
	b, f, err := s.findBuilds(q)
	switch {
	case err != nil:
		return nil, plan.Plan{}, err
	case f == nil && b.newest == 0:
		f = b.judge(q)
	}
	if f != nil {
		return nil, plan.Plan{}, &told{error: fmt.Errorf("nothing to run again: %s", strings.TrimPrefix(f.says, "no verdict: ")), hint: f.hint, code: Inconclusive}
	}
	if b.newest > mostRerun {
		return nil, plan.Plan{}, usageError(fmt.Errorf("%d earlier builds are more than the %d that are run again", b.newest, mostRerun), "add filters, or -n, so that there are fewer")
	}
	p, err := b.plan()
	return b, p, err
}

// plan is that of the newest build's newest run.
func (b *buildsFound) plan() (plan.Plan, error) {
	runs := b.rows[b.newest].Runs
	r, err := b.db.Get(runs[len(runs)-1].ID)
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := plan.FromRecord(r.Plan)
	if err != nil {
		return p, fmt.Errorf("plan of report %s: %w", r.ID, err)
	}
	p.ConfigText = r.Provenance.ConfigText
	if plan.IsFolder(p.Mix) {
		if p.Folder, err = openFolder(p.Mix); err != nil {
			return p, fmt.Errorf("mix of report %s: %w", r.ID, err)
		}
		if p.MixSHA256() != r.Provenance.MixSHA256 {
			return p, fmt.Errorf("mix of report %s: the files of folder %q are not as they were", r.ID, p.Mix)
		}
	}
	return p, nil
}

// again is a runner of the build of a row: it is where its newest run found it,
// as long as it is the same, or is kept.
func (s *Session) again(ctx context.Context, row *store.Row) (*runner, error) {
	e := &row.Runs[len(row.Runs)-1].Entry
	form, _ := e.Var("relay-form")
	was, _ := e.Var(byHash)
	ref := reference{What: form}
	var err error
	switch form {
	case relay.FormStandIn:
	case relay.FormPath:
		path, known := e.Var("relay-path")
		if !known {
			return nil, fmt.Errorf("report %s does not say where the binary was", e.ID)
		}
		if ref.What, err = s.whereIs(path, was); err != nil {
			return nil, err
		}
	case relay.FormImage:
		ref.What = relay.ImageRef("sha256:" + was) // whatever its name means by now
	default:
		return nil, fmt.Errorf("it is no binary that can be run again, but %q", form)
	}
	r, err := s.runnerOf(ctx, ref, nil)
	if err != nil {
		return nil, err
	}
	if r.program.SHA256 != was {
		return nil, hinted(fmt.Errorf("%s has changed: its sha256 is %.10s, and was %.10s in report %s", r.program.Path, r.program.SHA256, was, e.ID),
			"put that build back there, or compare two that there are: ab A B test "+variable.ShortDuration(10*time.Second))
	}
	return r, nil
}

// whereIs is where a build is: where it was, else among those that are kept.
func (s *Session) whereIs(path, sha256 string) (string, error) {
	if isThere(path) {
		return path, nil
	}
	kept, err := s.bench.keptBuilds()
	if err != nil {
		return "", err
	}
	for _, b := range kept.List() {
		if b.SHA256 == sha256 {
			return b.Binary, nil
		}
	}
	return path, nil
}

// checkFloor refuses a margin under the noise of the runs that are compared.
func (s *Session) checkFloor(q *verifying, b *buildsFound) error {
	newest := b.rows[b.newest]
	n := newest.Primary.Summary.N
	for _, base := range b.rows[:b.newest] {
		n = min(n, base.Primary.Summary.N)
	}
	f, ok, err := s.noiseFloor(&newest.Runs[len(newest.Runs)-1].Entry, q.metric.Name, n)
	if err != nil || !ok {
		return err
	}
	return s.checkMargin(f, q.margin, q.force)
}

// aboutRerun is how long it takes, and how many runs that are.
func (s *Session) aboutRerun(q *verifying) (took time.Duration, runs int, err error) {
	b, p, err := s.toRerun(q)
	if err != nil {
		return 0, 0, err
	}
	form, _ := b.rows[b.newest].Runs[0].Var("relay-form")
	beside, err := overhead(b.db, form)
	runs = (b.newest + 1) * (defaultRuns + 1)
	return time.Duration(runs) * (lasts(p) + beside.took), runs, err
}

// explainRerun says what would be run.
func (s *Session) explainRerun(q *verifying) error {
	if !q.rerun {
		return s.say("nothing is run: it answers from the reports that there are\n")
	}
	took, runs, err := s.aboutRerun(q)
	if err != nil {
		return err
	}
	return s.sayLines([]string{fmt.Sprintf("%d runs, of which the first of each of the %d builds is not saved, in turns, in about %s", runs, runs/(defaultRuns+1), seconds(took))})
}
