package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/harness/plan"
)

// innerArg is the test that the line of a comparison ends with.
func innerArg(optional bool) arg {
	return arg{name: "test", help: "a test, with its DURATION and flags: the runs that are compared", many: true, optional: optional, values: fixedValues(testCommand.name)}
}

// noInner are the flags of test that a comparison has no use for, and why.
var noInner = map[string]string{
	"repeat":  "the rounds are made here: -n N runs a side",
	"resume":  "runs of another time do not take turns with those of now",
	"fail-if": "the verdict is by the primary metric: --primary METRIC, --margin PERCENT",
	"perf":    "a profile costs CPU that is measured here; test --perf FILE makes one, and profiled=no profiled=dwarf@99 as the sides tell what it costs",
}

// innerTest reads the test that a line ends with: what is typed for its plan, and its duration.
func (s *Session) innerTest(words []string) (*plan.Values, string, error) {
	if len(words) == 0 || words[0] != testCommand.name {
		return nil, "", usageError(errors.New("no test: the line ends with one, such as test 10s --rate 200"), "")
	}
	var fs *pflag.FlagSet
	var f testFlags
	c := testCommand
	c.queue, c.explain = nil, nil
	c.setup = func(_ *Session, set *pflag.FlagSet) work {
		fs, f = set, bindTest(set)
		return func(context.Context, []string) (Code, error) { return Fine, nil }
	}
	_, args, err := s.parse(&c, words[1:])
	if err == nil && len(args) == 0 { // --help
		err = usageError(errors.New("help is a line of its own"), "help test")
	}
	if err != nil {
		return nil, "", fmt.Errorf("test: %w", err)
	}
	for _, name := range []string{"repeat", "resume", "fail-if", "perf"} {
		if fs.Changed(name) {
			return nil, "", usageError(fmt.Errorf("test: --%s is not for this: %s", name, noInner[name]), "")
		}
	}
	return f.plan, cmp.Or(*f.duration, args[0]), nil
}

// onePlan is the only plan of what was typed; what of it is a list is named.
func (s *Session) onePlan(v *plan.Values, duration string) (plan.Plan, error) {
	plans, err := s.plans(v, duration)
	if err != nil {
		return plan.Plan{}, err
	}
	if len(plans) > 1 {
		differ, _ := apart(plans)
		return plan.Plan{}, usageError(fmt.Errorf("runs under one load are compared, and here are %d: %s has a list", len(plans), oneOf(differ)), "type a line for each value")
	}
	return plans[0], nil
}

// with is what was typed, and a value of a knob or of a config key besides.
func with(v *plan.Values, name, value string) *plan.Values {
	more := &plan.Values{Knobs: map[string][]string{}, Settings: slices.Clone(v.Settings)}
	for k, typed := range v.Knobs {
		more.Knobs[k] = typed
	}
	if plan.Find(name) != nil {
		more.Knobs[name] = []string{value}
	} else {
		more.Settings = append(more.Settings, name+"="+value)
	}
	return more
}

// has says whether a knob or a config key was typed.
func has(v *plan.Values, name string) bool {
	return len(v.Knobs[name]) > 0 || slices.ContainsFunc(v.Settings, func(t string) bool { return strings.HasPrefix(t, name+"=") })
}
