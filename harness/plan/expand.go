package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"relaybench/harness/variable"
)

// Values are what was typed for a plan: for each knob by name, the texts given
// for it (a flag may be repeated), and the -E settings as typed, key=value.
type Values struct {
	Knobs    map[string][]string
	Settings []string
}

// Each is the mix that stands for a run of each kind.
const Each = "each"

// maxPlans bounds what one line can ask for.
const maxPlans = 10_000

// Expand makes the plans that the values ask for: one, or, where a knob has a
// list, one for each combination, the last knob of the table varying fastest.
// A flag that was repeated where a comma would do counts the last time only.
// Its error names the knob.
func Expand(v Values) ([]Plan, error) {
	for _, name := range slices.Sorted(maps.Keys(v.Knobs)) {
		if Find(name) == nil {
			return nil, unknownKnob(name)
		}
	}
	plans := []Plan{Default()}
	for i := range Knobs {
		k := &Knobs[i]
		typed := v.Knobs[k.Name]
		if len(typed) == 0 {
			continue
		}
		texts, err := k.list(typed)
		if err != nil {
			return nil, k.wrap(err)
		}
		if plans, err = multiply(plans, texts, k.Set); err != nil {
			return nil, k.wrap(err)
		}
	}
	settings, err := groupSettings(v.Settings)
	if err != nil {
		return nil, err
	}
	for _, s := range settings {
		if plans, err = multiply(plans, s.values, func(p *Plan, value string) error {
			p.Settings = append(slices.Clone(p.Settings), Setting{s.key, value})
			return nil
		}); err != nil {
			return nil, fmt.Errorf("-E %s: %w", s.key, err)
		}
	}
	for _, p := range plans {
		sortSettings(p.Settings)
		if err := p.Check(); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// multiply makes of each plan one for each value.
func multiply(plans []Plan, values []string, set func(*Plan, string) error) ([]Plan, error) {
	if n := len(plans) * len(values); n > maxPlans {
		return nil, fmt.Errorf("%d runs are more than the %d that one line may ask for", n, maxPlans)
	}
	var out []Plan
	for _, p := range plans {
		for _, v := range values {
			q := p
			if err := set(&q, v); err != nil {
				return nil, err
			}
			out = append(out, q)
		}
	}
	return out, nil
}

func unknownKnob(name string) error {
	if near := variable.Nearest(name, KnobNames()); near != "" {
		return fmt.Errorf("unknown knob %q: did you mean %q?", name, near)
	}
	return fmt.Errorf("unknown knob %q", name)
}

// wrap names the knob in an error that does not begin with its name.
func (k *Knob) wrap(err error) error {
	if strings.HasPrefix(err.Error(), k.Name+" ") {
		return err
	}
	return fmt.Errorf("%s: %w", k.Name, err)
}

// list is the canonical texts of what was typed for a knob, at least once.
func (k *Knob) list(typed []string) ([]string, error) {
	if len(k.Split("a,b")) == 2 { // a comma would do
		typed = typed[len(typed)-1:]
	}
	var texts []string
	for _, t := range typed {
		for _, one := range k.split(t) {
			c, err := k.Canon(one)
			if err != nil {
				return nil, err
			}
			texts = append(texts, c)
		}
	}
	for i, t := range texts {
		for _, o := range texts[:i] {
			if k.Compare(t, o) == 0 {
				return nil, fmt.Errorf("%q is in the list twice", t)
			}
		}
	}
	return texts, nil
}

// split cuts a typed list into its values.
func (k *Knob) split(text string) []string {
	if k.Words != nil {
		if values := k.Words(text); values != nil {
			return values
		}
	}
	return k.Split(text)
}

type settingValues struct {
	key    string
	values []string
}

// groupSettings reads -E texts: key=value, where a comma outside quotes makes
// a list. A key that is repeated counts the last time only.
func groupSettings(typed []string) ([]settingValues, error) {
	var out []settingValues
	for _, t := range typed {
		key, value, ok := strings.Cut(t, "=")
		if !ok || !isSettingKey(key) || !utf8.ValidString(value) {
			return nil, fmt.Errorf("-E %q is not KEY=VALUE with a key of the relay's config, such as http.encoding=gzip", t)
		}
		values := splitQuoted(value)
		for i, v := range values {
			if slices.Contains(values[:i], v) {
				return nil, fmt.Errorf("-E %s: %q is in the list twice", key, v)
			}
		}
		out = slices.DeleteFunc(out, func(o settingValues) bool { return o.key == key })
		out = append(out, settingValues{key, values})
	}
	return out, nil
}

// isSettingKey says whether a text is a path into a config: names with dots between them.
func isSettingKey(key string) bool {
	return strings.Contains(key, ".") && !slices.Contains(strings.Split(key, "."), "") &&
		!strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) || r == unicode.ReplacementChar })
}

// splitQuoted cuts at commas that stand outside quotes.
func splitQuoted(s string) []string {
	var out []string
	var quote rune
	start := 0
	for i, r := range s {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == ',':
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

// KnobNames are the names of all knobs, for the nearest one to what was typed.
func KnobNames() []string {
	var names []string
	for _, k := range Knobs {
		names = append(names, k.Name)
	}
	return names
}
