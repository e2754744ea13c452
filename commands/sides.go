package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"relaybench/harness/plan"
	"relaybench/harness/relay"
	"relaybench/harness/variable"
)

// rival is a side as it was typed.
type rival struct {
	text string
	ref  reference
	knob string // the knob or config key of which it is a value; empty: it is a relay
	plan plan.Plan
}

// sideNames are those of the sides, in the order in which they are typed.
var sideNames = [2]string{"A", "B"}

// rivals reads the two sides.
func (s *Session) rivals(ctx context.Context, q *duel, args []string, typed *plan.Values, duration string) error {
	inUse, err := s.inUse()
	if err != nil {
		return err
	}
	if _, err := s.onePlan(typed, duration); err != nil {
		return fmt.Errorf("test: %w", err)
	}
	for i, text := range args[:2] {
		r := rival{text: text, ref: inUse}
		values := typed
		if name, value, ok := knobSide(text); ok {
			if err := sideKnob(name, typed); err != nil {
				return err
			}
			r.knob, values = name, with(typed, name, value)
		} else if r.ref, err = s.side(ctx, i, text); err != nil {
			return err
		}
		if r.plan, err = s.onePlan(values, duration); err != nil {
			return fmt.Errorf("%s: %w", sideNames[i], err)
		}
		q.rivals[i] = r
	}
	a, b := &q.rivals[0], &q.rivals[1]
	switch {
	case a.knob != b.knob && (a.knob == "" || b.knob == ""):
		return usageError(fmt.Errorf("%q and %q: the sides are two relays, or two values of one knob", a.text, b.text), "")
	case a.knob != b.knob:
		return usageError(fmt.Errorf("%s and %s are two knobs: the sides are two values of one", a.knob, b.knob), "what both sides have in common goes into the test")
	case a.ref.form() != b.ref.form():
		if (a.ref.form() == relay.FormImage || b.ref.form() == relay.FormImage) && (a.ref.form() == relay.FormPath || b.ref.form() == relay.FormPath) {
			return usageError(fmt.Errorf("%s and %s are never compared: only one of them runs in a container, which costs it something", a.text, b.text), "make an image of the binary, or take it out of the image")
		}
		return usageError(fmt.Errorf("%s and %s are never compared: only one of them is a build of Relay", a.text, b.text), "")
	case a.ref.form() == relay.FormURL && a.knob == "":
		return usageError(errors.New("a relay at a URL is somebody else's, whose CPU and memory are not known here: it is no side"), "relay use URL --upstream ADDR, then ab with two values of a knob")
	}
	return nil
}

// side is the relay that was typed for a side: what relay use takes, or a
// branch, tag or revision of the checkout in use, whose kept build is found when the runs begin.
func (s *Session) side(ctx context.Context, number int, text string) (reference, error) {
	if !relayPath(text) || relay.IsImage(text) || sidePath(text) && text != wholeTree {
		return s.named(text, "")
	}
	q := &switching{names: []string{text}}
	inUse, err := s.inUse()
	if err != nil {
		return reference{}, err
	}
	if inUse.Checkout != "" && (text == wholeTree || !s.isFile(text)) {
		if err := s.checkout(ctx, q); err != nil {
			return reference{}, err
		}
		_, err := sourcesOf(ctx, q.kept, q.repo, q.names, false)
		return q.ref(), err
	}
	if err := s.mayName(sideNames[number], text); err != nil {
		return reference{}, err
	}
	return s.named(text, "")
}

// knobSide is a side that is a value of a knob or config key, apart.
func knobSide(text string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(text, "=")
	if !ok || name == "" || strings.ContainsAny(name, "/~ ") {
		return "", "", false
	}
	return name, value, true
}

// sideKnob says why a knob cannot be that of the sides.
func sideKnob(name string, typed *plan.Values) error {
	k := plan.Find(name)
	switch {
	case k == nil && !strings.Contains(name, "."):
		return usageError(fmt.Errorf("unknown knob %q", name), didYouMean(variable.Nearest(name, plan.KnobNames()), "help test lists the knobs; a key of the relay's config has a dot"))
	case k != nil && k.Occasion:
		return usageError(fmt.Errorf("%s tells no runs apart", name), "")
	case k != nil && k.Positional:
		return usageError(fmt.Errorf("%s is given in the test, so that it is no side", name), "")
	case has(typed, name):
		return usageError(fmt.Errorf("%s is given for the sides, and in the test too", name), "leave it out of the test")
	}
	return nil
}

// sidePath is for what stands for a side.
func sidePath(text string) bool {
	name, value, ok := knobSide(text)
	switch {
	case relay.IsImage(text):
		return relayPath(text)
	case !ok: // what is not clearly a path may be a branch
		return relayPath(text) && (text == "" || text != wholeTree && strings.ContainsAny(text[:1], "/.~"))
	case knobPaths[name] != nil:
		return knobPaths[name](value)
	case plan.Find(name) == nil:
		return settingPath(text)
	}
	return false
}

// sideValues are relays, knobs, and the values of these.
func sideValues(s *Session, _ []string, typed string) []string {
	if name, value, ok := knobSide(typed); ok {
		k := plan.Find(name)
		if k == nil {
			return settingValues(s, nil, typed)
		}
		found := knobValues(k)(s, nil, value)
		for i := range found {
			found[i] = name + "=" + found[i]
		}
		return found
	}
	found := settingValues(s, nil, typed)
	for i := range plan.Knobs {
		if k := &plan.Knobs[i]; !k.Positional && !k.Occasion {
			found = append(found, k.Name+"=")
		}
	}
	return slices.Concat(found, sourceValues(s, nil, typed), slices.DeleteFunc(relayValues(s, nil, typed), func(v string) bool { return v == relay.FormNone }))
}
