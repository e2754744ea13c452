package commands

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness"
	"relaybench/harness/plan"
	"relaybench/harness/relay"
)

var relayConfigCommand = command{
	name:    "relay config",
	summary: "say which config runs use; without a name, see it",
	detail: `It is what --config is where a line does not say. A file is read anew for each line. Without
a name, the config is shown as the relay in use would run with it.

` + bundledHelp(),
	args:     []arg{{name: "NAME|FILE", help: strings.Join(bundledNames(), ", ") + ", or a YAML file", optional: true, path: configPath, values: fixedValues(bundledNames()...)}},
	examples: []string{"relay config", "relay config tuned", "relay config ./relay.yml"},
	store:    true,
	table:    true,
	setup: func(s *Session, _ *pflag.FlagSet) work {
		return func(ctx context.Context, args []string) (Code, error) {
			if len(args) == 0 {
				return Fine, s.showEffective(ctx)
			}
			return Fine, s.useConfig(args[0])
		}
	},
}

func bundledNames() []string {
	var names []string
	for _, c := range relay.Bundled {
		names = append(names, c.Name)
	}
	return names
}

func bundledHelp() string {
	var b strings.Builder
	b.WriteString("Built in are")
	for _, c := range relay.Bundled {
		fmt.Fprintf(&b, "\n  %-8s %s", c.Name, c.Help)
	}
	return b.String()
}

// configSetting is the name under which the store keeps the config last used.
const configSetting = "config"

// useConfig makes a config the one that runs of the session use.
func (s *Session) useConfig(name string) error {
	if configPath(name) {
		if _, err := s.readFile(name); err != nil {
			return err
		}
		var err error
		if name, err = s.path(name); err != nil {
			return err
		}
	}
	db, err := s.bench.open()
	if err != nil {
		return err
	}
	s.config = name
	if err := db.SetSetting(configSetting, name); err != nil {
		return fmt.Errorf("remember the config: %w", err)
	}
	return s.say("runs use the config %s\n", table.Clean(name))
}

// usualConfig is the config of runs that do not say theirs: what the session
// said, else the last one that the store knows. Of a file, a client that may
// name none knows nothing.
func (s *Session) usualConfig() (string, error) {
	if s.config == "" {
		db, err := s.bench.open()
		if err != nil {
			return "", err
		}
		name, known, err := db.Setting(configSetting)
		if err != nil {
			return "", err
		}
		if !known || name == "" || configPath(name) && s.mayName("config", name) != nil {
			name = plan.Default().Config
		}
		s.config = name
	}
	return s.config, nil
}

// configText is the text of a config that was named.
func (s *Session) configText(name string) (string, error) {
	if c, ok := relay.FindConfig(name); ok {
		return c.YAML, nil
	}
	text, err := s.readFile(name)
	if err != nil {
		return "", fmt.Errorf("config: %w", err)
	}
	return text, nil
}

// showEffective shows the config that the relay in use would run with.
func (s *Session) showEffective(ctx context.Context) error {
	name, err := s.usualConfig()
	if err != nil {
		return err
	}
	p := plan.Default()
	p.Config = name
	if p.ConfigText, err = s.configText(name); err != nil {
		return err
	}
	ref, err := s.inUse()
	if err != nil {
		return err
	}
	program, err := s.bench.findRelay(ctx, ref)
	if err != nil {
		return err
	}
	effective, err := harness.Effective(ctx, p, program)
	if err != nil {
		return fmt.Errorf("config %s: %w", name, err)
	}
	if s.format != Text {
		r := table.Record()
		r.Field("config", "", table.Text(name))
		r.Field("relay", "", table.Text(program.String()))
		r.Field("hash", "", table.Text(effective.Hash))
		r.Field("ignored", "", optional(strings.Join(effective.Ignored, " ")))
		r.Field("yaml", "", table.Text(effective.YAML))
		return s.print(r)
	}
	ignored := ""
	if len(effective.Ignored) > 0 {
		ignored = "# keys that this relay does not know: " + strings.Join(effective.Ignored, ", ") + "\n"
	}
	return s.printf("# config %s of %s\n# hash, without what the run owns: %s\n%s%s\n", table.Clean(name), table.Clean(program.String()), effective.Hash,
		cleanLines(ignored), strings.TrimRight(cleanLines(effective.YAML), "\n"))
}
