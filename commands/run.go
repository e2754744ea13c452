package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"relaybench/envelope"
	"relaybench/harness"
	"relaybench/harness/host"
	"relaybench/harness/perf"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/store"
)

// runner makes the runs of a line, all against the relay that was found when the line began.
type runner struct {
	s          *Session
	db         *store.DB
	ref        reference
	program    relay.Program
	thresholds []threshold
	judged     [][]judgement // of each run that was saved
	profile    string        // path that the files of profiles are named by; empty: none are written
	several    bool          // runs, so that the files of each are named by its report too
}

// newRunner is a runner against the relay that is in use.
func (s *Session) newRunner(ctx context.Context, thresholds []threshold) (*runner, error) {
	ref, err := s.inUse()
	if err != nil {
		return nil, err
	}
	return s.runnerOf(ctx, ref, thresholds)
}

func (s *Session) runnerOf(ctx context.Context, ref reference, thresholds []threshold) (*runner, error) {
	ref, err := s.bench.settled(ctx, ref)
	if err != nil {
		return nil, err
	}
	program, err := s.bench.findRelay(ctx, ref)
	if err != nil {
		return nil, err
	}
	db, err := s.indexed()
	if err != nil {
		return nil, err
	}
	return &runner{s: s, db: db, ref: ref, program: program, thresholds: thresholds}, nil
}

// checkConfigs asks the relay whether it takes the configs of plans, and what else they would give it, each that there is once.
func checkConfigs(ctx context.Context, program relay.Program, plans []plan.Plan) error {
	asked := map[string]bool{}
	for _, p := range plans {
		key := fmt.Sprintf("%q %q %v %d", p.ConfigText, p.Settings, p.RelayCPUs, p.Memory)
		if asked[key] {
			continue
		}
		asked[key] = true
		if err := harness.CheckConfig(ctx, p, program); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
	}
	return nil
}

// configured says whether any of plans asks of the relay what not each can be given: a config of its own, CPUs, a limit of memory.
func configured(plans []plan.Plan) bool {
	return slices.ContainsFunc(plans, func(p plan.Plan) bool {
		return len(p.Settings) > 0 || p.ConfigText != "" || len(p.RelayCPUs) > 0 || p.Memory > 0
	})
}

// same checks that the relay is still the one that was found: a build in the
// middle of a line would otherwise be taken for it.
func (r *runner) same(ctx context.Context) error {
	now, err := r.s.bench.findRelay(ctx, r.ref)
	if err != nil {
		return err
	}
	if now.SHA256 != r.program.SHA256 || now.Engine != r.program.Engine || now.Version != r.program.Version {
		return hinted(fmt.Errorf("%s is not the relay any more that the line began with, %s", now, r.program), "a line measures one relay: type it again for the new one")
	}
	return nil
}

// provenance is where a run would come from, now.
func (s *Session) provenance(ctx context.Context, program relay.Program) result.Provenance {
	return result.Provenance{Relay: result.Relay(program), Host: host.Facts(ctx, s.bench.config.Host), Bench: benchFacts()}
}

// series makes the runs of a series, in their order. What was made until an error is kept.
func (r *runner) series(ctx context.Context, q *series) (Code, error) {
	beside, err := overhead(r.db, r.program.Form)
	if err != nil {
		return Fine, err
	}
	code, in := Fine, result.Series{}
	if q.many() {
		in = result.Series{ID: newSeriesID(time.Now()), Of: len(q.turns)}
	}
	for i, t := range q.turns {
		if ctx.Err() != nil {
			return code, q.toGo(context.Cause(ctx), i)
		}
		p := q.cells[t.cell]
		r.s.expect(q.yet(i, beside.took))
		where := place{}
		if q.many() {
			in.Position, in.Round = i+1, t.round
			where = r.s.at(q, i, beside.took)
			if r.s.format == Text {
				round := ""
				if q.rounds > 1 {
					round = fmt.Sprintf(", round %d of %d", t.round, q.rounds)
				}
				if err := r.s.printf("run %d of %d%s\n", i+1, len(q.turns), round); err != nil {
					return code, err
				}
			}
		}
		if i > 0 {
			if err := r.same(ctx); err != nil {
				return code, q.toGo(err, i)
			}
		}
		begun := time.Now()
		c, err := r.run(ctx, p, in, where, i > 0)
		if code = Gravest(code, c); err != nil {
			return code, q.toGo(err, i)
		}
		// What the newest run took tells most of what the next ones will.
		beside.took = max(0, time.Since(begun)-lasts(p))
	}
	if q.many() && r.s.format == Text {
		return code, r.closing(in)
	}
	return code, nil
}

// yet is how long a turn and those after it take, whose runs take beside their loads so long.
func (q *series) yet(turn int, beside time.Duration) time.Duration {
	return q.lasts(q.turns[turn:]) + time.Duration(len(q.turns)-turn)*beside
}

// at is the place of a turn of a series, whose runs take beside their loads so long.
func (s *Session) at(q *series, turn int, beside time.Duration) place {
	ends := time.Now().Add(q.yet(turn, beside))
	return place{run: turn + 1, of: len(q.turns), round: q.turns[turn].round, rounds: q.rounds,
		left: func() time.Duration { return time.Until(ends) }}
}

// toGo is the error that ended a series in one of its turns, with how to go on.
func (q *series) toGo(err error, turn int) error {
	if !q.many() {
		return err
	}
	return hinted(err, fmt.Sprintf("%d of %d runs were done: the same line with --resume makes those that have no fit report", turn, len(q.turns)))
}

// closing prints the runs of a series below each other, and what thresholds said of them.
func (r *runner) closing(in result.Series) error {
	filters, err := parseFilters([]string{"series=" + in.ID})
	if err != nil {
		return err
	}
	entries, cut, err := r.db.Entries(filters, store.Newest{})
	if err != nil {
		return err
	}
	if err := r.s.printf("\nseries %s: reports series=%s\n", in.ID, in.ID); err != nil {
		return err
	}
	if err := r.s.printEntries(r.db, entries, cut); err != nil {
		return err
	}
	for _, l := range tally(r.thresholds, r.judged) {
		if err := r.s.printf("%s\n", r.s.wrap(l)); err != nil {
			return err
		}
	}
	return nil
}

// run makes one run, saves its report and prints it; more says that it is not the first one of its line.
func (r *runner) run(ctx context.Context, p plan.Plan, in result.Series, where place, more bool) (Code, error) {
	report, err := r.once(ctx, p, in, where)
	if report == nil {
		return Fine, err
	}
	marks := store.MarksOf(report)
	code := verdict(marks)
	judged := judge(r.thresholds, report, marks)
	for i := range judged {
		code = Gravest(code, judged[i].code())
	}
	r.judged = append(r.judged, judged)
	if err = errors.Join(r.s.printRun(report, marks, judged, more), err); err != nil || r.profile == "" {
		return code, err
	}
	path := r.profile
	if r.several {
		path += "-" + report.ID
	}
	if err := writeProfile(report, path); err != nil {
		return code, err
	}
	return code, r.s.tellProfile(report, path)
}

// once makes one run and saves its report, which is nil where nothing was
// observed. There may be one beside an error: of a run that failed or was
// cancelled, or of one that the store did not take.
func (r *runner) once(ctx context.Context, p plan.Plan, in result.Series, where place) (*store.Report, error) {
	if err := r.db.Reserve(recordSize(p)); err != nil {
		return nil, hinted(err, "nothing was started: make room, or name a store elsewhere with -db")
	}
	var saveErr error
	report, runErr := r.observe(ctx, p, where, func(report *store.Report) {
		report.Provenance.Series = in
		saveErr = keep(r.db, report, filepath.Dir(r.db.Path()), ".", os.TempDir())
	})
	switch {
	case report.Result == nil:
		return nil, runErr
	case saveErr != nil && runErr != nil:
		return report, fmt.Errorf("%w; %w", saveErr, runErr)
	case saveErr != nil:
		return report, saveErr
	case runErr != nil:
		return report, r.s.runError(runErr, report)
	}
	return report, nil
}

// recordSize is how much room the report of a run may need, in bytes.
func recordSize(p plan.Plan) int64 {
	size := store.RecordSize(p.Duration, p.Statsd == plan.StatsdOn)
	if p.Profiled.On() {
		size += perf.MaxSize
	}
	return size
}

// observe makes one run. What it gives is not saved, and its Result is nil
// where nothing was observed; save, which may be nil, is called else, before
// anything that could stall: a screen that does not take more.
func (r *runner) observe(ctx context.Context, p plan.Plan, where place, save func(*store.Report)) (*store.Report, error) {
	s := r.s
	report := &store.Report{Plan: p.Record(), Provenance: s.provenance(ctx, r.program)}
	report.Provenance.ConfigText, report.Provenance.MixSHA256 = p.ConfigText, p.MixSHA256()
	tell := startProgress(s.client, p.Duration, s.format, where, s.goes)
	defer tell.Close()
	defer s.bench.process.Store(nil)
	var err error
	report.Result, err = s.bench.run(ctx, p, r.program, harness.Options{Observer: tell, Kill: s.client.Kill, Relay: s.bench.process.Store})
	if report.Result != nil && save != nil {
		save(report)
	}
	return report, err
}

// keeper keeps reports: it is the store.
type keeper interface {
	Save(*store.Report) error
	SaveFile(r *store.Report, folder string) (path string, err error)
}

// keep saves a report: where the store does not take it, as a file of its own in
// the first of some folders that does. The error says so all the same.
func keep(k keeper, r *store.Report, folders ...string) error {
	err := k.Save(r)
	if err == nil {
		return nil
	}
	for _, folder := range folders {
		path, fileErr := k.SaveFile(r, folder)
		if fileErr == nil {
			return hinted(fmt.Errorf("%w: it is in the file %q instead", err, path), "import "+path+" brings it in, once there is room")
		}
		err = fmt.Errorf("%w; %w", err, fileErr)
	}
	return err
}

// printRun prints a report that was just made, and what thresholds say of it.
func (s *Session) printRun(r *store.Report, marks []store.Marked, judged []judgement, more bool) error {
	if s.format == JSON {
		return s.printJSON(struct {
			reportJSON
			Thresholds []thresholdJSON `json:"thresholds,omitempty"`
		}{newReportJSON(r, marks), thresholdsJSON(judged)})
	}
	if err := s.printReport(r, marks, more); err != nil {
		return err
	}
	for i := range judged {
		if err := s.say("%s\n", s.wrap(judged[i].String())); err != nil {
			return err
		}
	}
	return nil
}

// verdict is the code of a run with these marks.
func verdict(marks []store.Marked) Code {
	for _, m := range marks {
		if len(m.Unfit) > 0 {
			return Unfit
		}
	}
	return Fine
}

// lastLines is how many of the relay's last log lines are shown with a failed run.
const lastLines = 10

// runError is the error of a run that was saved all the same.
func (s *Session) runError(err error, r *store.Report) error {
	if errors.Is(err, ErrInterrupted) {
		return err
	}
	t := &told{error: err, hint: "what there is was saved: show " + r.ID + " log"}
	if r.ID == "" {
		t.hint = ""
	}
	if log := r.Result.Relay.Log; len(log) > 0 {
		t.detail = append(t.detail, "the relay's last lines:")
		t.detail = append(t.detail, log[max(0, len(log)-lastLines):]...)
	}
	return t
}

// benchFacts is what this program knows of itself.
func benchFacts() result.Bench {
	b := result.Bench{Payload: envelope.PayloadVersion, Go: runtime.Version(), SHA256: relay.OwnSHA256()}
	b.Version, b.Revision = Version()
	return b
}

// Version is the version of this program, and the revision that it was built
// from, with "-dirty" where its tree was; what the build does not tell is empty.
func Version() (version, revision string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	version = info.Main.Version
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && revision != "" {
		revision += "-dirty"
	}
	return version, revision
}
