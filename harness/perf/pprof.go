package perf

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
)

// driving is held while pprof's driver works: its options are global, and stay
// as they were set last. So each call sets all that any call sets.
var driving sync.Mutex

// Row is a function in a profile.
type Row struct {
	Name  string
	Self  float64 // weight of the samples in which it ran itself; in a difference, what was added
	Total float64 // and of those in which what it called did
}

// Top is the functions of a profile, the greatest weight of their own first.
type Top struct {
	Rows  []Row
	Total float64 // weight of all samples, also of those that a focus left out
	Kept  float64 // of those that it did not
}

// TopOf lists the functions of a profile. With a focus, a regular expression,
// only samples count in whose stack it matches a function.
func TopOf(data []byte, focus string) (Top, error) {
	p, err := profile.ParseData(data)
	if err != nil {
		return Top{}, fmt.Errorf("profile: %w", err)
	}
	return topOf(p, nil, focus)
}

// Difference lists what grew from base to data, in shares of each one's whole
// times scale, which is what one's whole is worth: of base[0], of data[1].
func Difference(base, data []byte, scale [2]float64, focus string) (Top, error) {
	var ps [2]*profile.Profile
	for i, d := range [][]byte{base, data} {
		p, err := profile.ParseData(d)
		if err != nil {
			return Top{}, fmt.Errorf("profile: %w", err)
		}
		total := weight(p)
		if total == 0 {
			return Top{}, errors.New("profile: it has no samples")
		}
		p.SampleType = []*profile.ValueType{{Type: "share", Unit: "count"}}
		p.DefaultSampleType, p.PeriodType, p.Period = "share", nil, 0
		for _, s := range p.Sample {
			s.Value = []int64{int64(float64(s.Value[len(s.Value)-1]) / total * scale[i] * diffUnit)}
		}
		ps[i] = p
	}
	top, err := topOf(ps[1], ps[0], focus)
	for i := range top.Rows {
		top.Rows[i].Self /= diffUnit
		top.Rows[i].Total /= diffUnit
	}
	top.Total, top.Kept = top.Total/diffUnit, top.Kept/diffUnit
	return top, err
}

// diffUnit is how fine differences are: pprof's values are whole numbers.
const diffUnit = 1e6

// weight is that of all samples.
func weight(p *profile.Profile) float64 {
	sum := 0.0
	for _, s := range p.Sample {
		sum += float64(s.Value[len(s.Value)-1])
	}
	return sum
}

func topOf(p, base *profile.Profile, focus string) (Top, error) {
	if focus != "" {
		if _, err := regexp.Compile(focus); err != nil {
			return Top{}, err
		}
	}
	// A focus is on functions. pprof's would match the names of files too, of
	// which Relay's own is in each stack, whatever a build of it is called.
	for _, q := range []*profile.Profile{p, base} {
		if q != nil {
			for _, m := range q.Mapping {
				m.File = ""
			}
		}
	}
	var out bytes.Buffer
	if err := drive(p, base, &out, nil, focus, "-top"); err != nil {
		return Top{}, err
	}
	top, err := readTop(&out)
	if err != nil {
		return Top{}, err
	}
	top.Total = weight(p)
	return top, nil
}

// Flame is a flame graph of a profile: a page that needs nothing beside it.
func Flame(data []byte, title string) ([]byte, error) {
	p, err := profile.ParseData(data)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	var page []byte
	serve := func(a *driver.HTTPServerArgs) error {
		h := a.Handlers["/flamegraph"]
		if h == nil {
			return errors.New("pprof has no flame graph")
		}
		req, err := http.NewRequest(http.MethodGet, "http://localhost/flamegraph", nil)
		if err != nil {
			return err
		}
		w := &answer{header: http.Header{}}
		h.ServeHTTP(w, req)
		if w.code > http.StatusOK {
			return fmt.Errorf("pprof: flame graph: %s", firstLine(w.String()))
		}
		page = w.Bytes()
		return nil
	}
	if err := drive(p, nil, io.Discard, serve, "", "-http=localhost:0", "-no_browser"); err != nil {
		return nil, err
	}
	return alone(page, title), nil
}

// answer is an HTTP answer that is kept.
type answer struct {
	bytes.Buffer
	header http.Header
	code   int
}

func (a *answer) Header() http.Header  { return a.header }
func (a *answer) WriteHeader(code int) { a.code = code }

// alone makes pprof's page one that stands alone: what leads to the server that it came from is taken away.
func alone(page []byte, title string) []byte {
	const hide = `<style>.header .menu-item, #action-menu, #save-dialog, #delete-dialog { display: none !important } .header .title a { pointer-events: none }</style>`
	from, to := bytes.Index(page, []byte("<title>")), bytes.Index(page, []byte("</title>"))
	if from < 0 || to < from {
		return page
	}
	var out bytes.Buffer
	out.Write(page[:from])
	out.WriteString("<title>" + html.EscapeString(title) + "</title>\n" + hide)
	rest := bytes.Replace(page[to+len("</title>"):], []byte(`<h1><a href="./">pprof</a></h1>`), []byte(`<h1 style="font-size:1.1em;white-space:nowrap">`+html.EscapeString(title)+`</h1>`), 1)
	out.Write(rest)
	return out.Bytes()
}

// drive has pprof's driver make a report of files: what a profile comes from is
// never fetched, and no symbol looked up again.
func drive(p, base *profile.Profile, out io.Writer, serve func(*driver.HTTPServerArgs) error, focus string, command ...string) error {
	dir, err := os.MkdirTemp("", "relaybench-pprof-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := written(p, filepath.Join(dir, "profile.pb.gz"))
	if err != nil {
		return err
	}
	against := ""
	if base != nil {
		if against, err = written(base, filepath.Join(dir, "base.pb.gz")); err != nil {
			return err
		}
	}
	root := ""
	if serve != nil {
		root = threadLabel
	}
	args := append(command, "-symbolize=none", "-output=report", "-focus="+focus, "-tagroot="+root, "-diff_base="+against,
		"-unit=ns", "-nodecount=0", "-nodefraction=0", "-edgefraction=0", "-trim=false", "-flat", "-functions", file)
	o := &driver.Options{Flagset: newFlags(args), UI: mute{}, Writer: writer{out}, HTTPServer: serve}
	driving.Lock()
	defer driving.Unlock()
	if err := driver.PProf(o); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	return nil
}

func written(p *profile.Profile, path string) (string, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	return path, errors.Join(p.Write(f), f.Close())
}

// readTop reads what pprof's top prints: a head, then lines of five figures and a name.
func readTop(from io.Reader) (Top, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return Top{}, err
	}
	var t Top
	listed := false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if !listed {
			listed = len(fields) > 1 && fields[0] == "flat" && fields[1] == "flat%"
			continue
		}
		if len(fields) < 6 {
			continue
		}
		self, err := figure(fields[0])
		if err != nil {
			return t, fmt.Errorf("pprof: line %q: %w", strings.TrimSpace(line), err)
		}
		total, err := figure(fields[3])
		if err != nil {
			return t, fmt.Errorf("pprof: line %q: %w", strings.TrimSpace(line), err)
		}
		t.Rows = append(t.Rows, Row{Name: strings.Join(fields[5:], " "), Self: self, Total: total})
		t.Kept += self
	}
	if !listed {
		return t, errors.New("pprof: its list has no head")
	}
	return t, nil
}

// figure is a value as pprof prints it, with its unit.
func figure(text string) (float64, error) {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	v, err := strconv.ParseFloat(number, 64)
	if unit := text[len(number):]; unit != "" && unit != "ns" {
		return 0, fmt.Errorf("%q has an unknown unit", text)
	}
	return v, err
}

// writer gives pprof a file that is none.
type writer struct{ to io.Writer }

func (w writer) Open(string) (io.WriteCloser, error) { return kept{w.to}, nil }

type kept struct{ io.Writer }

func (kept) Close() error { return nil }

// flags are the flags that pprof is called with.
type flags struct {
	*flag.FlagSet
	args []string
}

func newFlags(args []string) flags {
	fs := flag.NewFlagSet("pprof", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return flags{fs, args}
}

func (f flags) StringList(name, def, usage string) *[]*string {
	return &[]*string{f.String(name, def, usage)}
}
func (flags) ExtraUsage() string   { return "" }
func (flags) AddExtraUsage(string) {}

func (f flags) Parse(func()) []string {
	if f.FlagSet.Parse(f.args) != nil {
		return nil
	}
	return f.Args()
}

// mute is a screen that nobody sees.
type mute struct{}

func (mute) ReadLine(string) (string, error)     { return "", io.EOF }
func (mute) Print(...any)                        {}
func (mute) PrintErr(...any)                     {}
func (mute) IsTerminal() bool                    { return false }
func (mute) WantBrowser() bool                   { return false }
func (mute) SetAutoComplete(func(string) string) {}
