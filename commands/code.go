package commands

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Code is how a command, or relaybench as a whole, ended: its exit status.
type Code int

// The codes. Worse, Inconclusive and Unfit are verdicts: the command did what it was to do.
const (
	Fine         Code = 0   // fine, not worse, better
	Worse        Code = 1   // worse, or a threshold missed
	Inconclusive Code = 2   //
	Usage        Code = 3   // typed wrongly
	CouldNot     Code = 4   // could not run
	Unfit        Code = 5   // a run's metrics are unfit
	Interrupted  Code = 130 // stopped from outside
)

// codes are all codes, the gravest first, with what they mean.
var codes = []struct {
	code Code
	help string
}{
	{Interrupted, "interrupted"},
	{CouldNot, "could not run: binary, port, store"},
	{Usage, "typed wrongly"},
	{Worse, "worse, or a threshold missed"},
	{Inconclusive, "inconclusive"},
	{Unfit, "a run's metrics are unfit for comparison"},
	{Fine, "fine, not worse, better"},
}

// codeHelp is what a code means.
func codeHelp(code Code) string {
	for _, c := range codes {
		if c.code == code {
			return c.help
		}
	}
	return ""
}

// Gravest is the graver of two codes: what a process ends with that had both.
func Gravest(a, b Code) Code {
	for _, c := range codes {
		if c.code == a || c.code == b {
			return c.code
		}
	}
	return a
}

// ErrInterrupted is in the cause of a context that somebody ended from
// outside: a signal. What it stops is saved, and is no failure of its own.
var ErrInterrupted = errors.New("interrupted")

// ErrLeft is the cause of a context whose client has left: what it waited for
// goes on, for nobody. It is not [ErrInterrupted].
var ErrLeft = errors.New("the client has left")

// Failure is why a command was not done, with what is told beside it.
type Failure struct {
	Command string // its name; empty where the line did not get that far
	Err     error
	Detail  []string // lines that show more, such as the last ones of the relay's log
	Usage   string   // how the command is typed, where it was typed wrongly
	Hint    string   // what to do about it
	Code    Code
	JSON    bool // to be told as JSON
}

// Text is the failure in one line, without usage and hint.
func (f *Failure) Text() string {
	if f.Command == "" {
		return f.Err.Error()
	}
	return f.Command + ": " + f.Err.Error()
}

// told is an error with what is told beside it.
type told struct {
	error
	hint   string
	detail []string
	usage  bool     // typed wrongly
	of     *command // that was typed, where it is not the one that is being done
	code   Code     // if it is not to be found otherwise
}

func (t *told) Unwrap() error { return t.error }

// hinted is err with what to do about it.
func hinted(err error, hint string) error { return &told{error: err, hint: hint} }

// usageError is err as one of what was typed; hint may be empty.
func usageError(err error, hint string) error { return &told{error: err, hint: hint, usage: true} }

// failure puts together what is told of an error of the command c; c may be nil.
func failure(c *command, err error) *Failure {
	f, code := &Failure{Err: err, Code: CouldNot}, Fine
	if c != nil {
		f.Command = c.name
	}
	var t *told
	for e := err; errors.As(e, &t); e = t.error {
		switch {
		case f.Hint == "":
			f.Hint = t.hint
		case t.hint != "":
			f.Hint = t.hint + "; " + f.Hint // the inner one tells more of what went wrong
		}
		f.Detail = append(f.Detail, t.detail...)
		if t.of != nil {
			c = t.of
		}
		if code == Fine {
			code = t.code // the outermost counts
		}
		if t.usage {
			f.Code = Usage
			if c != nil {
				f.Usage = c.usage()
			}
		}
	}
	if code != Fine {
		f.Code = code
	}
	if errors.Is(err, ErrInterrupted) || errors.Is(err, context.Canceled) {
		f.Code = Interrupted
	}
	return f
}

// didYouMean is the hint of a name that is not known, or otherwise where there is no near one.
func didYouMean(near, otherwise string) string {
	if near == "" {
		return otherwise
	}
	return "did you mean " + near + "?"
}

// oneOf lists names for an error: "a, b or c".
func oneOf(names []string) string {
	names = slices.Clone(names)
	if n := len(names); n > 1 {
		names = append(names[:n-2], names[n-2]+" or "+names[n-1])
	}
	return strings.Join(names, ", ")
}
