//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bench is one measuring of rows.
type bench struct {
	dir      string            // of the module
	work     string            // scratch
	programs map[string]string // by name: the file to run
	rounds   int
	seconds  float64 // of one load
	sized    map[int]string
	relay    string // RELAY_BIN
}

// row is one line of the table.
type row struct {
	what, goal string
	unit       string // of the values; a ratio is "x"
	met        func(v float64) bool
}

// group measures some rows together: a value of each from each round.
type group struct {
	name  string
	needs []string // programs
	rows  []row
	// round measures the n-th round; odd ones go through their sides backwards.
	round func(ctx context.Context, b *bench, n int) ([]float64, error)
	once  bool // one round tells: it repeats itself what needs repeating
}

func atLeast(goal float64) func(float64) bool { return func(v float64) bool { return v >= goal } }
func atMost(goal float64) func(float64) bool  { return func(v float64) bool { return v <= goal } }

// measure prints the table of the groups whose names match.
func measure(ctx context.Context, args []string) error {
	b := &bench{programs: map[string]string{}, sized: map[int]string{}, relay: os.Getenv("RELAY_BIN")}
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.IntVar(&b.rounds, "rounds", 5, "rounds; each side is measured once in each, forth and back")
	f.Float64Var(&b.seconds, "seconds", 5, "length of one load")
	only := f.String("rows", ".", "a regular expression: the groups to measure")
	list := f.Bool("list", false, "name the groups and measure nothing")
	f.StringVar(&b.dir, "module", "", "the module's folder")
	f.StringVar(&b.work, "work", "", "a folder for scratch, with the programs in bin")
	if err := f.Parse(args); err != nil {
		return err
	}
	match, err := regexp.Compile(*only)
	if err != nil || f.NArg() > 0 || b.rounds < 1 || !(b.seconds >= 0.1 && b.seconds <= 60) {
		return fmt.Errorf("usage: .ci/peers [-rounds N] [-seconds 0.1-60] [-rows REGEX] [-list]")
	}
	if *list {
		for _, g := range groups {
			fmt.Println(g.name)
		}
		return nil
	}
	for _, name := range []string{"peer", "relaybench", "hey", "vegeta", "fortio", "oha", "wrk", "nginx", "go"} {
		path := filepath.Join(b.work, "bin", name)
		if _, err := os.Stat(path); err != nil {
			if path, err = exec.LookPath(name); err != nil {
				continue
			}
		}
		b.programs[name] = path
	}
	fmt.Println("| what | goal | median | least–most | met |\n|---|---|---|---|---|")
	for _, g := range groups {
		if match.MatchString(g.name) && ctx.Err() == nil {
			g.print(ctx, b)
		}
	}
	return ctx.Err()
}

// print measures a group and prints its rows. What could not be measured is a row that says why.
func (g *group) print(ctx context.Context, b *bench) {
	values, err := g.measure(ctx, b)
	for i, r := range g.rows {
		if err != nil {
			fmt.Printf("| %s | %s | – | – | not measured: %s |\n", r.what, r.goal, strings.ReplaceAll(err.Error(), "|", "/"))
			continue
		}
		v := make([]float64, len(values))
		for k := range values {
			v[k] = values[k][i]
		}
		slices.Sort(v)
		median := (v[(len(v)-1)/2] + v[len(v)/2]) / 2
		met := "–"
		if r.met != nil {
			met = map[bool]string{true: "yes", false: "**no**"}[r.met(median)]
		}
		fmt.Printf("| %s | %s | %s | %s–%s | %s |\n", r.what, r.goal, number(median, r.unit), number(v[0], ""), number(v[len(v)-1], ""), met)
	}
}

func (g *group) measure(ctx context.Context, b *bench) ([][]float64, error) {
	for _, name := range g.needs {
		if name == "RELAY_BIN" && b.relay == "" {
			return nil, fmt.Errorf("RELAY_BIN names no build of Relay")
		}
		if name != "RELAY_BIN" && b.programs[name] == "" {
			return nil, fmt.Errorf("%s could not be installed", name)
		}
	}
	rounds := b.rounds
	if g.once {
		rounds = 1
	}
	var all [][]float64
	for n := range rounds {
		from := time.Now()
		v, err := g.round(ctx, b, n)
		if err != nil {
			return nil, err
		}
		if len(v) != len(g.rows) {
			return nil, fmt.Errorf("%d values for %d rows", len(v), len(g.rows))
		}
		for _, x := range v {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("no finite value")
			}
		}
		fmt.Fprintf(os.Stderr, "%s: round %d of %d in %.0f s: %.3g\n", g.name, n+1, rounds, time.Since(from).Seconds(), v)
		all = append(all, v)
	}
	return all, nil
}

func number(v float64, unit string) string {
	s := strconv.FormatFloat(v, 'f', max(0, 2-int(math.Floor(math.Log10(math.Max(math.Abs(v), 1))))), 64)
	switch unit {
	case "":
		return s
	case "x":
		return s + "x"
	}
	return s + " " + unit
}

// inTurn runs sides, the last first in odd rounds.
func inTurn(n int, sides ...func() error) error {
	if n%2 == 1 {
		slices.Reverse(sides)
	}
	for _, side := range sides {
		if err := side(); err != nil {
			return err
		}
	}
	return nil
}

// client runs a client for one load.
func (b *bench) client(ctx context.Context, name string, args ...string) (ended, error) {
	e, err := run(ctx, time.Duration((2*b.seconds+30)*1e9), b.work, append([]string{b.programs[name]}, args...)...)
	return e, err
}

func (b *bench) length() string { return fmt.Sprintf("%gs", b.seconds) }

// body is a file with the body of so many bytes that all clients send.
func (b *bench) body(ctx context.Context, size int) (string, error) {
	if path := b.sized[size]; path != "" {
		return path, nil
	}
	e, err := run(ctx, time.Minute, "", b.programs["peer"], "body", "-size", strconv.Itoa(size))
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.work, fmt.Sprintf("body-%d", size))
	b.sized[size] = path
	return path, os.WriteFile(path, e.out, 0o600)
}

// part starts this program in another of its parts, which prints its address.
func (b *bench) part(ctx context.Context, args ...string) (*server, error) {
	return serve(ctx, "", append([]string{b.programs["peer"]}, args...)...)
}

// benchmark runs one Go benchmark of the module and gives a unit's value.
func (b *bench) benchmark(ctx context.Context, pkg, name, times string, units ...string) ([]float64, error) {
	e, err := run(ctx, 10*time.Minute, b.dir, b.programs["go"], "test", "./"+pkg, "-run", "^$", "-bench", name, "-benchtime", times)
	if err != nil {
		return nil, err
	}
	var v []float64
	for _, unit := range units {
		// The last line that has the unit is the largest case.
		m := regexp.MustCompile(`(?m)^Benchmark.*\s([-+.e\d]+) `+regexp.QuoteMeta(unit)+`(\s|$)`).FindAllSubmatch(e.out, -1)
		if m == nil {
			return nil, fmt.Errorf("%s: no %s", name, unit)
		}
		x, err := strconv.ParseFloat(string(m[len(m)-1][1]), 64)
		if err != nil {
			return nil, err
		}
		v = append(v, x)
	}
	return v, nil
}
