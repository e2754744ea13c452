package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// echo is a command that prints what was understood of it.
func echo(name string, args ...arg) command {
	return command{name: name, summary: "print what was understood", args: args, table: true,
		setup: func(s *Session, fs *pflag.FlagSet) work {
			label := fs.String("label", "", "a `TEXT`")
			list := fs.StringArrayP("E", "E", nil, "a setting")
			n := fs.IntP("number", "n", 1, "a number")
			force := fs.BoolP("force", "f", false, "do it")
			build := fs.BoolP("build", "b", false, "build it")
			return func(_ context.Context, args []string) (Code, error) {
				return Fine, s.printf("%s %q label=%q E=%q n=%d f=%t b=%t format=%d\n", name, args, *label, *list, *n, *force, *build, s.format)
			}
		}}
}

// testSession is a session of a few commands that need no store.
func testSession(out *strings.Builder) *Session {
	s := NewBench(Config{DB: os.DevNull}).NewSession(Client{Out: out})
	s.commands = []command{
		echo("one", arg{name: "A"}),
		echo("relay use", arg{name: "WHAT", optional: true}),
		echo("relay list"),
		echo("many", arg{name: "A"}, arg{name: "B", optional: true, many: true}),
		{name: "around", line: true, args: []arg{{name: "LINE", many: true}}, setup: func(s *Session, fs *pflag.FlagSet) work {
			loud := fs.Bool("loud", false, "be loud")
			return func(_ context.Context, args []string) (Code, error) {
				return Fine, s.printf("around %q %t\n", args, *loud)
			}
		}},
		{name: "break", setup: func(*Session, *pflag.FlagSet) work {
			return func(context.Context, []string) (Code, error) { panic("broken") }
		}},
		{name: "fail", setup: func(*Session, *pflag.FlagSet) work {
			return func(context.Context, []string) (Code, error) { return Unfit, errors.New("nothing works") }
		}},
		{name: "unfit", setup: func(*Session, *pflag.FlagSet) work {
			return func(context.Context, []string) (Code, error) { return Unfit, nil }
		}},
		{name: "inconclusive", setup: func(*Session, *pflag.FlagSet) work {
			return func(context.Context, []string) (Code, error) { return Inconclusive, nil }
		}},
		quitCommand("quit"),
	}
	return s
}

func TestDo(t *testing.T) {
	const none = "label=\"\" E=[] n=1 f=false b=false format=0\n"
	for _, tt := range []struct {
		line string
		out  string
		errs []string // parts of each failure, in order
		code Code
	}{
		{line: "one x", out: `one ["x"] ` + none},
		{line: "one -label a -n 3 x", out: `one ["x"] label="a" E=[] n=3 f=false b=false format=0` + "\n"},
		{line: "one x --label=a -n3", out: `one ["x"] label="a" E=[] n=3 f=false b=false format=0` + "\n"},
		{line: "one x -label -n", out: `one ["x"] label="-n" E=[] n=1 f=false b=false format=0` + "\n"},
		{line: "one x --label -json -label=-csv", out: `one ["x"] label="-csv" E=[] n=1 f=false b=false format=0` + "\n"},
		{line: "one x -E a=1,2 -E b=3", out: `one ["x"] label="" E=["a=1,2" "b=3"] n=1 f=false b=false format=0` + "\n"},
		{line: "one x -E -json", out: `one ["x"] label="" E=["-json"] n=1 f=false b=false format=0` + "\n"},
		{line: "one x -fb", out: `one ["x"] label="" E=[] n=1 f=true b=true format=0` + "\n"},
		{line: "one x -json; one y", out: `one ["x"] label="" E=[] n=1 f=false b=false format=1` + "\n" + `one ["y"] ` + none},
		{line: "one --csv x", out: `one ["x"] label="" E=[] n=1 f=false b=false format=2` + "\n"},
		{line: "one -- -json", out: `one ["-json"] ` + none},
		{line: "relay use a; relay use; relay list", out: `relay use ["a"] ` + none + `relay use [] ` + none + `relay list [] ` + none},
		{line: "many a b c", out: `many ["a" "b" "c"] ` + none},
		{line: "around -loud one x --label y", out: `around ["one" "x" "--label" "y"] true` + "\n"},
		{line: "", out: ""},
		{line: "# nothing", out: ""},
		{line: "unfit; one x", out: `one ["x"] ` + none, code: Unfit},
		{line: "unfit; inconclusive", code: Inconclusive},
		{line: "quit; one x", out: ""},

		{line: "onne x", errs: []string{`unknown command "onne"|did you mean one?`}, code: Usage},
		{line: "zzzzzz", errs: []string{`unknown command "zzzzzz"|help lists the commands`}, code: Usage},
		{line: "relay", errs: []string{`"relay" is not a command by itself|there is relay use or relay list`}, code: Usage},
		{line: "relay uze x", errs: []string{`unknown command "relay uze"|there is relay use or relay list`}, code: Usage},
		{line: "one", errs: []string{`one: A is missing|usage one A [flags]`}, code: Usage},
		{line: "one x y", errs: []string{`one: "y" is one word too many|usage one A [flags]`}, code: Usage},
		{line: "one x --lable a", errs: []string{`one: unknown flag --lable|did you mean --label?`}, code: Usage},
		{line: "one x -lable a", errs: []string{`one: unknown flag --lable|did you mean --label?`}, code: Usage},
		{line: "one x -x", errs: []string{`one: unknown flag -x`}, code: Usage},
		{line: "one x --label", errs: []string{`one: --label needs a value`}, code: Usage},
		{line: "one x -n a", errs: []string{`one: --number: `}, code: Usage},
		{line: "one x --json --csv", errs: []string{`one: --json and --csv at once`}, code: Usage},
		{line: "one 'x", errs: []string{`quote ' is not closed: 'x`}, code: Usage},
		{line: "break; one x", errs: []string{`break: internal error |: broken|please report`}, code: CouldNot},
		{line: "fail; one x", errs: []string{`fail: nothing works`}, code: CouldNot},
		{line: "unfit; onne x; one x", errs: []string{`unknown command`}, code: Usage},
	} {
		t.Run(tt.line, func(t *testing.T) {
			var out strings.Builder
			s := testSession(&out)
			var errs []*Failure
			code, _ := s.Do(t.Context(), tt.line, func(f *Failure) bool { errs = append(errs, f); return false })
			if d := cmp.Diff(tt.out, out.String()); d != "" {
				t.Errorf("output (-want +got)\n%s", d)
			}
			if code != tt.code {
				t.Errorf("code %d, want %d", code, tt.code)
			}
			if len(errs) != len(tt.errs) {
				t.Fatalf("failures %v, want %q", errs, tt.errs)
			}
			for i, f := range errs {
				told := fmt.Sprintf("%s hint %s usage %s", f.Text(), f.Hint, f.Usage)
				for part := range strings.SplitSeq(tt.errs[i], "|") {
					if !strings.Contains(told, part) {
						t.Errorf("failure %q, want %q in it", told, part)
					}
				}
			}
		})
	}
}

func TestDoGoesOn(t *testing.T) {
	var out strings.Builder
	var errs []string
	code, more := testSession(&out).Do(t.Context(), "fail; onne; one x", func(f *Failure) bool { errs = append(errs, f.Text()); return true })
	if want := []string{"fail: nothing works", `unknown command "onne"`}; !cmp.Equal(errs, want) {
		t.Errorf("failures %q, want %q", errs, want)
	}
	if code != CouldNot || !more || !strings.HasPrefix(out.String(), `one ["x"]`) {
		t.Errorf("code %d, more %t, output %q; want 4, true and the third command's", code, more, out.String())
	}
}

func TestDoInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("%w by a test", ErrInterrupted))
	var out strings.Builder
	var errs []string
	code, more := testSession(&out).Do(ctx, "one x; one y", func(f *Failure) bool { errs = append(errs, f.Text()); return true })
	if want := []string{"interrupted by a test"}; !cmp.Equal(errs, want) || code != Interrupted || more || out.Len() > 0 {
		t.Errorf("failures %q, code %d, more %t, output %q; want %q, 130, false and nothing", errs, code, more, out.String(), want)
	}
}

func TestFormatOfFailure(t *testing.T) {
	var out strings.Builder
	s := testSession(&out)
	for line, want := range map[string]bool{"one --json": true, "one": false} {
		s.Do(t.Context(), line, func(f *Failure) bool {
			if f.JSON != want {
				t.Errorf("%s: told as JSON %t, want %t", line, f.JSON, want)
			}
			return true
		})
	}
}

func TestGravest(t *testing.T) {
	order := []Code{Interrupted, CouldNot, Usage, Worse, Inconclusive, Unfit, Fine}
	for i, a := range order {
		for j, b := range order {
			if got, want := Gravest(a, b), order[min(i, j)]; got != want {
				t.Errorf("Gravest(%d, %d) = %d, want %d", a, b, got, want)
			}
		}
	}
}

// A negative duration is no flag; a flag of what is explained is told with that one's usage.
func TestFlagsAsTyped(t *testing.T) {
	s := NewBench(Config{DB: t.TempDir() + "/relaybench.db"}).NewSession(Client{Out: io.Discard})
	defer s.bench.Close()
	for _, tt := range []struct{ line, text, usage string }{
		{"test -5s", "test: -5s: a duration cannot be negative", "test DURATION [flags]"},
		{"test -1m30s", "test: -1m30s: a duration cannot be negative", "test DURATION [flags]"},
		{"test -5", "test: unknown flag -5", "test DURATION [flags]"},
		{"explain test -5s", "explain: test: -5s: a duration cannot be negative", "test DURATION [flags]"},
		{"explain test 1s --rat 5", "explain: test: unknown flag --rat", "test DURATION [flags]"},
		{"explain test 1s --rate x", `explain: rate: "x" is not a rate`, "test DURATION [flags]"},
		{"explain", "explain: LINE is missing", "explain [flags] LINE…"},
	} {
		code, _ := s.Do(t.Context(), tt.line, func(f *Failure) bool {
			if !strings.HasPrefix(f.Text(), tt.text) || f.Usage != tt.usage {
				t.Errorf("%s: %q, usage %q, want %q, %q", tt.line, f.Text(), f.Usage, tt.text, tt.usage)
			}
			return true
		})
		if code != Usage {
			t.Errorf("%s: code %d", tt.line, code)
		}
	}
}
