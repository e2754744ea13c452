package relay

// Config is a config of Relay that is built in, for runs to take by its name.
type Config struct {
	Name string
	Help string // one line
	YAML string // "" is Relay's own defaults
}

// Bundled are the configs that are built in; the first is what a run takes
// where none is named. Whatever a run owns is the same in all of them.
var Bundled = []Config{
	{"default", "Relay's own defaults", ""},
	// A key is here because a comparison in turns showed that it helps: with
	// sessions at 300/s and an upstream that takes 500 ms, this one forwards half
	// as much again. The README has what did not help, too.
	{"tuned", "what helps a Relay with a slow upstream", `limits:
  # Of 100 requests that may be open at once, an upstream that answers after 20 ms
  # makes 5,000 envelopes a second, and one that takes 100 ms makes 1,000.
  max_concurrent_requests: 1000
`},
}

// FindConfig is the bundled config of that name.
func FindConfig(name string) (c Config, ok bool) {
	for _, c := range Bundled {
		if c.Name == name {
			return c, true
		}
	}
	return c, false
}
