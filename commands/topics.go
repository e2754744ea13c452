package commands

import (
	"fmt"
	"slices"
	"strings"

	"relaybench/commands/line"
	"relaybench/commands/table"
	"relaybench/envelope"
	"relaybench/store"
)

// topic is something that help tells of beside the commands.
type topic struct {
	name    string
	summary string
	say     func(*Session) (string, error)
}

// topics are the topics of help. What comes from a table is computed from it.
func topics() []topic {
	return []topic{
		{"line", "how a line is written", fixed(helpLine)},
		{"kinds", "what can be sent", sayKinds},
		{"latency", "through, response and service time", fixed(helpLatency)},
		{"ledger", "where every send and item went", fixed(helpLedger)},
		{"metrics", "what a report says in figures", sayMetrics},
		{"variables", "what reports differ in, and are filtered by", sayVariables},
		{"filters", "which reports are meant", fixed(helpFilters)},
		{"marks", "what a reader must know of a report", sayMarks},
		{"method", "what a run is, step by step, and how runs are compared", fixed(helpMethod)},
		{"codes", "exit codes", sayCodes},
	}
}

func fixed(text string) func(*Session) (string, error) {
	return func(s *Session) (string, error) { return s.helpText(text), nil }
}

// listed is a listing as text.
func (s *Session) listed(t *table.Table) (string, error) {
	var b strings.Builder
	err := t.Text(&b, s.helpWidth())
	return b.String(), err
}

// word is a name that output or a filter has in it.
type word struct{ kind, name, help string }

// helpWords are the marks, then the metrics, variables and kinds.
func helpWords() []word {
	var all []word
	for _, m := range store.Marks {
		all = append(all, word{"mark", m.Name, m.Help + "; " + unfit(m.Unfit)})
	}
	for i := range store.Metrics {
		all = append(all, word{"metric", store.Metrics[i].Name, metricHelp(&store.Metrics[i])})
	}
	for i := range store.Variables {
		all = append(all, word{"variable", store.Variables[i].Name, variableHelp(&store.Variables[i])})
	}
	for i := range envelope.Kinds {
		all = append(all, word{"kind", envelope.Kinds[i].Name, kindHelp(&envelope.Kinds[i])})
	}
	return all
}

// saidOf are the words of a name, each with what there is to say of it.
func (s *Session) saidOf(name string) string {
	var b strings.Builder
	for _, w := range helpWords() {
		if w.name == name {
			fmt.Fprintf(&b, "%s\n", s.helpText(w.kind+" "+w.name+": "+w.help))
		}
	}
	return b.String()
}

// sayWords is a listing of the words of a kind.
func (s *Session) sayWords(kind string) (string, error) {
	list := listing()
	for _, w := range helpWords() {
		if w.kind == kind {
			list.Add(table.Text(w.name), table.Text(w.help))
		}
	}
	return s.listed(list)
}

func kindHelp(k *envelope.Kind) string {
	return fmt.Sprintf("%s (weight in mixed: %g)", k.Help, k.Weight)
}

func metricHelp(m *store.Metric) string {
	better := ""
	switch {
	case m.Better > 0:
		better = "; more is better"
	case m.Better < 0:
		better = "; less is better"
	}
	if m.Unit == "" {
		return m.Help
	}
	return m.Help + " (" + m.Unit + better + ")"
}

func variableHelp(v *store.Variable) string {
	return fmt.Sprintf("%s (%s, %s)", v.Help, v.Type.Name(), v.Role)
}

func sayKinds(s *Session) (string, error) {
	said, err := s.sayWords("kind")
	return said + "\n" + s.helpText(`--mix ./FOLDER sends envelopes of one's own instead, a file each, as dump writes them or an SDK sent
them. A file's kind is that of its first item that is one's; beside those above, there are
aggregates, spans, metrics and feedback, and item types that nobody knows are kinds by their own
names. Each send has a stamp and an event id of its own, and times are moved to the run's start.`), err
}

func sayMetrics(s *Session) (string, error) {
	said, err := s.sayWords("metric")
	return said + "\n" + s.helpText("Of runs with --statsd on, what the relay said of itself is a metric, too, in the relay's own unit: times in ms.\n"+store.StatsdHelp+"."), err
}

func sayVariables(s *Session) (string, error) {
	said, err := s.sayWords("variable")
	return s.helpText(`A condition is what all reports have in common that are compared; one that follows varies with
another, as the revision does with the branch; an occasion never keeps reports apart. A config
key set with -E, such as http.encoding, is a condition too, by its own name.`) + "\n\n" + said, err
}

func sayMarks(s *Session) (string, error) {
	said, err := s.sayWords("mark")
	return s.helpText("A mark is derived from what was stored. The metrics that it makes unfit are left out of\n"+
		"comparisons; a report is never thrown away whole. A test whose report has such a mark\nexits with 5.\n") + "\n" + said, err
}

// unfit is what a mark makes unfit, in words.
func unfit(metrics []string) string {
	switch {
	case len(metrics) == 0:
		return "a notice"
	case metrics[0] == "*":
		return "makes every metric unfit"
	}
	return "makes unfit " + strings.Join(grouped(metrics), ", ")
}

// grouped are names of metrics, those of a whole group by the group's name.
func grouped(names []string) []string {
	size, in := map[store.Group]int{}, map[store.Group]int{}
	for _, m := range store.Metrics {
		size[m.Group]++
		if slices.Contains(names, m.Name) {
			in[m.Group]++
		}
	}
	var out []string
	for _, n := range names {
		if m := store.FindMetric(n); m != nil && in[m.Group] == size[m.Group] {
			n = string(m.Group)
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func sayCodes(s *Session) (string, error) {
	list := listing()
	for i := len(codes) - 1; i >= 0; i-- {
		list.Add(table.Text(fmt.Sprint(int(codes[i].code))), table.Text(codes[i].help))
	}
	said, err := s.listed(list)
	return said + "\n" + s.helpText(`1, 2 and 5 are verdicts: they do not stop a script. 3, 4 and 130 do, 3 and 4 unless it runs
with -keep-going. relaybench ends with the gravest, in the order 130 4 3 1 2 5.`), err
}

var helpLine = fmt.Sprintf(`Words are split as a POSIX shell does, with quotes and backslash. # at the start of a word
begins a comment. ; anywhere outside quotes separates commands; a line that begins with define is
one command, to its end. Flags stand before or after arguments, with one dash or two. What define
has defined is expanded over the whole line, then each command runs.

Inside double quotes a backslash keeps the next character, whatever it is, and is itself
dropped; inside single quotes everything stands for itself.

A comma makes a list where the value's type knows no comma, and a list makes one run for each
value: --rate 200,500. Where it does, as in --mix errors=3,logs=1, a repeated flag makes the
list. A flag that is repeated where a comma would do counts the last time.

A line has at most %d bytes, and is UTF-8.`, line.Max)

const helpFilters = `A filter is one word, NAME OP VALUE, where NAME is a variable, a headline metric or a config key:
  mix=errors           of several filters all must hold
  rate!=max            OP is one of = != < <= > >= and ~, which is: contains
  relay-branch~perf
  http.encoding=zstd   a config key that was set with -E
  through-p99>50ms     as the metric's unit is typed: 50ms, 90MiB, 3
  relay-revision=ae5a  a revision, a hash or an id by its beginning
  report-date=2026-11-30, started>2026-11-30T14:00
                       a day, a minute or a second, of the local time zone
  report-date>2h       of the last two hours
  label=               unknown or not set; !=: known
What is unknown equals nothing but the empty value. In a shell, quote a filter that has < or >.`

const helpLatency = `through    from when a send was due to when its stamp arrived upstream, behind the relay. It
           alone shows saturation, so it comes first
response   from when a send was due to its answer, so that a stall shows in full
service    from the actual write to the answer

Of accepted sends; refused ones apart. n is how many a row rests on: a quantile that n is too
small for says so. Quantiles are within 1%, maximum and minimum are exact. A dash is a value
that is not known, which is not zero. Relay answers before it has processed anything: response
and service tell little of its work.`

const helpLedger = `due      = sent + not sent
sent     = accepted + refused (by status) + failed (by error)
sent     = arrived + outcomes + refused without outcome + lost upstream + in flight + unaccounted

By kind, in sends and in items (the elements of a container). A refused or failed send may
have arrived all the same: the table shows both ends.
  accepted      answered 2xx; no measure of work done
  outcomes      reported by the relay as dropped, by reason
  lost          answered 4xx, 429 or 500 by the upstream: the relay drops it without a word
  in flight     missing, and the relay still worked when the drain was cut off
  unaccounted   missing after the relay had settled or ended
  repeats       came again (at-least-once delivery); never counted as items
  surplus       came beyond what was sent
No line is ever negative, zero is printed as zero, and a dash is not known.`

const helpMethod = `1 check     before anything starts: relay, ports, files; the envelopes are built
2 upstream  a fresh fake Sentry on a port of its own
3 relay     a fresh relay in an empty folder of its own
4 ready     healthy, and a warm-up envelope of each kind settled
5 idle      the relay's CPU without load
6 load      send k is due at start + k/rate, whatever the answers (open loop)
7 drain     until all is accounted for, or nothing new has come for --drain
8 stop      SIGTERM, grace, SIGKILL
9 report    saved, always: also of a cancelled, short or failed run

Rates and latencies are of the load, CPU per envelope of load and drain. Ctrl-C stops a run,
which is saved and marked cancelled; a second one kills the relay.

Reports are compared within groups that are equal in every condition but the named one. Two rows:
the exact Mann-Whitney U test, and the Hodges-Lehmann shift with its 95% interval.
  worse, better   the interval excludes 0, and the shift is at least the margin
  no difference   the whole interval lies within the margin
  inconclusive    else: about how many runs would tell is said
  no verdict      under 4 runs a side; or a metric that the machine's drift moves (CPU, times), and
                  runs that did not take turns: A B B A, never more than two of a side in a row
The primary metric is judged by itself, the others of a table are corrected for being many (Holm).
A difference of under a metric's floor is none. A fixed loop is timed before and after each run:
rows in which that differs by over 3% say so, for then the machine was not as fast for both.`
