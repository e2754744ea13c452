package commands

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/envelope"
	"relaybench/harness"
	"relaybench/harness/host"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/result"
	"relaybench/store"
)

var testCommand = command{
	name:    "test",
	summary: "run a load against the relay in use, and save a report",
	detail: `A knob that is given a list makes one run for each value, and two lists one for each
combination, a fresh relay and a fresh upstream for each.

Every run is saved, also a cancelled or failed one. The exit code is 5 where marks make
metrics unfit for comparison (help marks), 4 where a run failed.`,
	args:     []arg{{name: "DURATION", help: "how long the load lasts, such as 10s, 1m30s or 500ms"}},
	examples: []string{"test 10s --rate 200", "test 30s --rate 200,500 --mix errors=3,logs=1", "test 20s --rate max --connections 64 -E http.encoding=gzip"},
	queued:   true,
	store:    true,
	table:    true,
	setup:    planned((*Session).test),
	explain:  planned((*Session).explain),
}

// planned is the setup of a command that does something with the plans that are typed.
func planned(do func(*Session, context.Context, []plan.Plan) (Code, error)) func(*Session, *pflag.FlagSet) work {
	return func(s *Session, fs *pflag.FlagSet) work {
		typed := planFlags(fs)
		return func(ctx context.Context, args []string) (Code, error) {
			plans, err := s.plans(typed, args[0])
			if err != nil {
				return Fine, err
			}
			return do(s, ctx, plans)
		}
	}
}

// test makes a run of each plan against the relay that is in use now.
func (s *Session) test(ctx context.Context, plans []plan.Plan) (Code, error) {
	ref, err := s.inUse()
	if err != nil {
		return Fine, err
	}
	code := Fine
	for i, p := range plans {
		if len(plans) > 1 && s.format == Text {
			if err := s.printf("run %d of %d\n", i+1, len(plans)); err != nil {
				return code, err
			}
		}
		c, err := s.run(ctx, p, ref)
		code = Gravest(code, c)
		if err != nil {
			return code, err
		}
	}
	return code, nil
}

// planFlags binds a flag for each knob, and -E.
func planFlags(fs *pflag.FlagSet) *plan.Values {
	v := &plan.Values{Knobs: map[string][]string{}}
	for i := range plan.Knobs {
		if k := &plan.Knobs[i]; !k.Positional {
			f := fs.VarPF(&knobFlag{k, v}, k.Name, "", k.Help)
			f.DefValue = k.Default
		}
	}
	fs.StringArrayVarP(&v.Settings, "E", "E", nil, "a config key of the relay, `KEY=VALUE` with a YAML scalar, as in http.encoding=gzip; repeat it for more keys")
	return v
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

// plans are the plans of what was typed, their config files read.
func (s *Session) plans(v *plan.Values, duration string) ([]plan.Plan, error) {
	for i := range plan.Knobs {
		if k := &plan.Knobs[i]; k.Positional {
			v.Knobs[k.Name] = []string{duration}
		}
	}
	plans, err := plan.Expand(*v)
	if err != nil {
		return nil, usageError(err, "")
	}
	for i := range plans {
		p := &plans[i]
		if p.Config == plan.Default().Config {
			continue
		}
		if p.ConfigText, err = s.readFile(p.Config); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
	}
	return plans, nil
}

// run makes one run, saves its report and prints it.
func (s *Session) run(ctx context.Context, p plan.Plan, ref reference) (Code, error) {
	program, err := relay.Find(ctx, ref.What, ref.Upstream)
	if err != nil {
		return Fine, hinted(err, "relay use stand-in, or relay use PATH")
	}
	report := &store.Report{Plan: p.Record(), Provenance: result.Provenance{
		Relay: result.Relay(program), Host: host.Facts(ctx, s.bench.config.Host), Bench: benchFacts()}}
	db, err := s.bench.open()
	if err != nil {
		return Fine, err
	}

	tell := startProgress(s.client, p.Duration, s.format)
	var runErr error
	report.Result, runErr = harness.Run(ctx, p, program, harness.Options{Observer: tell, Kill: s.client.Kill})
	var saveErr error
	if report.Result != nil { // saved before anything that could stall: a screen that does not take more
		saveErr = db.Save(report)
	}
	tell.Close()
	if report.Result == nil {
		return Fine, runErr
	}
	marks := store.MarksOf(report)
	code := verdict(marks)
	if err := errors.Join(s.printReport(report, marks), saveErr); err != nil {
		return code, err
	}
	if runErr != nil {
		return code, s.runError(runErr, report)
	}
	return code, nil
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
	if log := r.Result.Relay.Log; len(log) > 0 {
		t.detail = append(t.detail, "the relay's last lines:")
		t.detail = append(t.detail, log[max(0, len(log)-lastLines):]...)
	}
	return t
}

// benchFacts is what this program knows of itself.
func benchFacts() result.Bench {
	b := result.Bench{Payload: envelope.PayloadVersion, Go: runtime.Version()}
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
