package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"relaybench/envelope"
	"relaybench/harness"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
)

var testCommand = command{
	name:    "test",
	summary: "run a load against the relay in use, and save a report",
	detail: `A knob that is given a list makes one run for each value, and two lists one for each
combination, a fresh relay and a fresh upstream for each. --repeat goes through the whole list
forth and back, so that a machine that drifts does so for all alike.

Every run is saved, also a cancelled or failed one. The exit code is 5 where marks make
metrics unfit for comparison (help marks), 4 where a run failed, and 1 or 2 by --fail-if. With
--json an object is printed for each run. A run that fails, or Ctrl-C, ends the whole line.`,
	args: []arg{{name: "DURATION", help: "how long the load lasts, such as 10s, 1m30s or 500ms"}},
	examples: []string{"test 10s --rate 200", "test 30s --rate 200,500 --mix errors=3,logs=1 --repeat 3", "test 20s --rate max --connections 64 -E http.encoding=gzip", "test 10s --mix ./envelopes --encoding zstd",
		"test 10s --fail-if 'through-p99>50ms' --fail-if 'unaccounted>0'"},
	store:   true,
	table:   true,
	queue:   inTurn(requested, (*Session).about, (*Session).test),
	explain: foretold(requested, (*Session).explain),
}

// request is what a line asks of test.
type request struct {
	*series
	resumed    bool // only what is missing
	thresholds []threshold
	profile    string // path that the files of profiles are named by; empty: none are written
}

// testFlags are the flags of test, and what was typed for them.
type testFlags struct {
	plan       *plan.Values
	duration   *string // in place of the argument; empty: it was not said
	repeat     *int
	resume     *bool
	conditions *[]string
	profile    profileFlags
}

func bindTest(fs *pflag.FlagSet) testFlags {
	f := testFlags{plan: planFlags(fs)}
	f.duration = fs.String("duration", "", "`DURATION` in place of the argument, as after a definition that has one")
	f.repeat = fs.Int("repeat", 1, "go `N` times through the whole list: 1 2 3, 3 2 1, 1 2 3")
	f.resume = fs.Bool("resume", false, "make only those runs that no fit report is of, by all of their conditions; with --repeat, of each as many as are missing")
	f.conditions = fs.StringArray("fail-if", nil, "exit with 1 where a run meets `CONDITION`, METRIC OP VALUE as in 'through-p99>50ms', and with 2 where the metric has no value; repeat it for more")
	offer(fs, "fail-if", thresholdValues)
	f.profile = bindProfile(fs)
	return f
}

// requested binds the flags of test, and gives what reads what was typed for them.
func requested(fs *pflag.FlagSet) func(ctx context.Context, s *Session, args []string) (*request, error) {
	f := bindTest(fs)
	return func(ctx context.Context, s *Session, args []string) (*request, error) {
		profile, err := f.profile.set(ctx, s, f.plan)
		if err != nil {
			return nil, err
		}
		plans, err := s.plans(f.plan, cmp.Or(*f.duration, args[0]))
		if err != nil {
			return nil, err
		}
		q := &request{resumed: *f.resume, profile: profile}
		if q.series, err = newSeries(plans, *f.repeat); err != nil {
			return nil, err
		}
		for _, text := range *f.conditions {
			t, err := parseThreshold(text)
			if err != nil {
				return nil, err
			}
			q.thresholds = append(q.thresholds, t)
		}
		return q, nil
	}
}

// about is how long the runs take, with what was seen of runs against such a relay.
func (s *Session) about(q *request) (time.Duration, error) {
	ref, err := s.inUse()
	if err != nil {
		return 0, err
	}
	db, err := s.indexed()
	if err != nil {
		return 0, err
	}
	beside, err := overhead(db, ref.form())
	return q.lasts(q.turns) + time.Duration(len(q.turns))*beside.took, err
}

// test makes the runs against the relay that is in use now.
func (s *Session) test(ctx context.Context, q *request) (Code, error) {
	r, err := s.newRunner(ctx, q.thresholds)
	if err != nil {
		return Fine, err
	}
	r.profile, r.several = q.profile, q.many()
	if q.resumed {
		if err := q.resume(r.db, s.provenance(ctx, r.program)); err != nil {
			return Fine, err
		}
		if err := s.say("%s\n", q.leftOut()); err != nil {
			return Fine, err
		}
	}
	if err := checkConfigs(ctx, r.program, q.cells); err != nil {
		return Fine, err
	}
	return r.series(ctx, q.series)
}

// leftOut says what a resumed series leaves out.
func (q *series) leftOut() string {
	all := q.had + len(q.turns)
	switch {
	case q.had == 0:
		return "no fit report is of a run of this line: all are made"
	case len(q.turns) == 0 && all == 1:
		return "a fit report is of this run: nothing is left to do"
	case len(q.turns) == 0:
		return fmt.Sprintf("fit reports are of all %d runs: nothing is left to do", all)
	}
	return fmt.Sprintf("%d of %d runs are left out, for fit reports are of them", q.had, all)
}

// planFlags binds a flag for each knob but some, and -E.
func planFlags(fs *pflag.FlagSet, without ...string) *plan.Values {
	v := &plan.Values{Knobs: map[string][]string{}}
	knobFlags(fs, v, func(k *plan.Knob) bool { return !slices.Contains(without, k.Name) })
	fs.StringArrayVarP(&v.Settings, "E", "E", nil, "a config key of the relay, `KEY=VALUE` with a YAML scalar, as in http.encoding=gzip; repeat it for more keys")
	pathFlag(fs, "E", settingPath)
	offer(fs, "E", settingValues)
	return v
}

// knobFlags binds a flag for each knob that keep wants.
func knobFlags(fs *pflag.FlagSet, to *plan.Values, keep func(*plan.Knob) bool) {
	for i := range plan.Knobs {
		if k := &plan.Knobs[i]; !k.Positional && k.By == nil && keep(k) {
			f := fs.VarPF(&knobFlag{k, to}, k.Name, "", k.Help)
			f.DefValue = k.Default
			offer(fs, k.Name, knobValues(k))
			if is := knobPaths[k.Name]; is != nil {
				pathFlag(fs, k.Name, is)
			}
		}
	}
}

// knobFlag collects what is typed for a knob; what it means is the plan's to say.
type knobFlag struct {
	knob *plan.Knob
	to   *plan.Values
}

func (f *knobFlag) Set(text string) error {
	f.to.Knobs[f.knob.Name] = append(f.to.Knobs[f.knob.Name], text)
	return nil
}
func (f *knobFlag) String() string { return "" }

// Type is what help shows as the flag's value.
func (f *knobFlag) Type() string {
	return strings.ToUpper(strings.ReplaceAll(f.knob.Type.Name(), " ", "-"))
}

// plans are the plans of what was typed, their files and folders read.
func (s *Session) plans(v *plan.Values, duration string) ([]plan.Plan, error) {
	for i := range plan.Knobs {
		if k := &plan.Knobs[i]; k.Positional {
			v.Knobs[k.Name] = []string{duration}
		}
	}
	usual, err := s.usualConfig()
	if err != nil {
		return nil, err
	}
	if usual != plan.Default().Config && !has(v, "config") {
		v = with(v, "config", usual)
	}
	plans, err := plan.Expand(*v)
	if err != nil {
		return nil, usageError(err, "")
	}
	for _, set := range plans[0].Settings {
		if why := relay.Owned(set.Key); why != "" {
			return nil, usageError(fmt.Errorf("-E %s: %s", set.Key, why), "")
		}
	}
	for _, p := range plans {
		if err := harness.CheckHost(p); err != nil {
			return nil, usageError(err, "")
		}
	}
	if err := s.readFolders(plans); err != nil {
		return nil, err
	}
	for i := range plans {
		p := &plans[i]
		if p.ConfigText, err = s.configText(p.Config); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// readFolders reads the folders that are mixes of plans, each once. The mix is
// then its path from the root, which names the same folder in another session.
func (s *Session) readFolders(plans []plan.Plan) error {
	read := map[string]*envelope.Folder{}
	for i := range plans {
		p := &plans[i]
		if !plan.IsFolder(p.Mix) {
			continue
		}
		if read[p.Mix] == nil {
			folder, err := s.readFolder(p.Mix)
			if err != nil {
				return fmt.Errorf("mix: %w", err)
			}
			read[p.Mix] = folder
		}
		p.Folder = read[p.Mix]
		p.Mix = p.Folder.Path
	}
	return nil
}
