package commands

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"relaybench/harness"
	"relaybench/harness/result"
)

// progress says how a run goes: it is the observer of a run. Its methods never
// block: what a slow reader does not take is dropped.
type progress struct {
	events chan any // string: a step; result.Sample
	joined sync.WaitGroup
}

// progressEvery is how often a line is written where none can be written over.
const progressEvery = 5 * time.Second

// place is where a run stands among those of its line. The zero value is that of a run by itself.
type place struct {
	run, of       int                  // from 1; run 0 is one that is not kept
	round, rounds int                  // from 1
	left          func() time.Duration // until all of them are done, about
	side          string               // of a comparison that takes turns
	soFar         string               // what is known of that by now
}

// String is the place in a few words; "" for a run by itself.
func (p place) String() string {
	if p.of == 0 {
		return ""
	}
	round := ""
	if p.rounds > 1 {
		round = fmt.Sprintf(" round %d/%d", p.round, p.rounds)
	}
	side, soFar := "", ""
	if p.side != "" {
		side = " " + p.side
	}
	if p.soFar != "" {
		soFar = "  " + p.soFar
	}
	run := fmt.Sprintf("%d/%d", p.run, p.of)
	if p.run == 0 {
		run = "warm-up"
	}
	return fmt.Sprintf("%s%s%s, %s left%s", run, side, round, coarse(max(0, p.left())), soFar)
}

// coarse is a time to wait: in minutes where it is hours.
func coarse(d time.Duration) string {
	if d >= time.Hour {
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return seconds(d)
}

// startProgress starts telling the client's Notes of a run whose load lasts
// so long, and goes, which may be nil and must not block, of each line. Close it when the run has ended. Where
// output is for a program, only a terminal is told.
func startProgress(c Client, load time.Duration, format Format, where place, goes func(line string)) *progress {
	p := &progress{events: make(chan any, 64)}
	out := c.Notes
	if out == nil || format != Text && c.Live == 0 {
		out = io.Discard
	}
	tick := time.NewTicker(progressEvery)
	p.joined.Go(func() {
		defer tick.Stop()
		tell(p.events, tick.C, out, c.Live, load, where, goes)
	})
	return p
}

// Step implements [harness.Observer].
func (p *progress) Step(name string) { p.say(name) }

// Sample implements [harness.Observer].
func (p *progress) Sample(s result.Sample) { p.say(s) }

func (p *progress) say(event any) {
	select {
	case p.events <- event:
	default: // its reader is slow: the next one says more
	}
}

// Close ends it and waits for its last line. No method may be called after it.
func (p *progress) Close() {
	close(p.events)
	p.joined.Wait()
}

// tell writes events until they end: on a terminal (width is not 0) each, in one line that is
// written over and cleared at the end; elsewhere the newest at each tick. goes hears each.
func tell(events <-chan any, tick <-chan time.Time, out io.Writer, width int, load time.Duration, where place, goes func(string)) {
	if goes == nil {
		goes = func(string) {}
	}
	var step, now string
	var last result.Sample
	var ended time.Duration // of the load; 0: it goes on
	for {
		select {
		case e, ok := <-events:
			if !ok {
				goes("")
				if width > 0 {
					fmt.Fprint(out, "\r\x1b[K")
				}
				return
			}
			switch e := e.(type) {
			case string:
				switch step = e; step {
				case harness.StepLoad:
					last, ended = result.Sample{}, 0
				case harness.StepDrain:
					ended = max(load, time.Duration(last.At))
				}
				now = strings.TrimPrefix(where.String()+"  ", "  ") + step + " …"
			case result.Sample:
				now = progressLine(last, e, load, ended, where)
				last = e
			}
			goes(now)
			if width > 0 {
				fmt.Fprintf(out, "\r\x1b[K%s", fitted(now, width))
			}
		case <-tick:
			if width == 0 && now != "" {
				fmt.Fprintln(out, now)
			}
		}
	}
}

// fitted is a line cut so that a terminal does not wrap it, which could not be written over.
func fitted(line string, width int) string {
	if text.StringWidth(line) < width {
		return line
	}
	return text.Trim(line, width-2) + "…"
}

// progressLine says how a load or drain goes, by a sample and the one before
// it: short enough for 80 columns at rates of some thousands. The load was to
// last so long and has ended at ended, 0: it goes on, for senders may be late. Where there are
// several runs, the time that is left is that of all.
func progressLine(before, s result.Sample, load, ended time.Duration, where place) string {
	at := time.Duration(s.At)
	var parts []string
	if p := where.String(); p != "" {
		parts = append(parts, p)
	}
	switch {
	case ended > 0:
		parts = append(parts, "drain "+seconds(max(at-ended, 0)))
	case at > load:
		parts = append(parts, "senders late "+seconds(at-load))
	case len(parts) == 0:
		parts = append(parts, fmt.Sprintf("%s, %s left", seconds(at), seconds(max(load-at, 0))))
	}
	took := float64(s.At - before.At)
	perSecond := func(n uint64) string { return count(math.Round(float64(n)/took*1e9)) + "/s" }
	if took > 0 {
		if ended == 0 {
			parts = append(parts, "sent "+perSecond(s.Sent-before.Sent))
		}
		parts = append(parts, "arrived "+perSecond(s.Arrived-before.Arrived))
	}
	parts = append(parts, "backlog "+count(s.Backlog))
	if s.Refused > 0 {
		parts = append(parts, "refused "+count(s.Refused))
	}
	if s.Failed > 0 {
		parts = append(parts, "failed "+count(s.Failed))
	}
	var relay []string
	if s.RelayCPU >= 0 && before.RelayCPU >= 0 && took > 0 {
		relay = append(relay, fmt.Sprintf("%.2f cores", float64(s.RelayCPU-before.RelayCPU)/took))
	}
	if s.RelayRSS >= 0 {
		relay = append(relay, fmt.Sprintf("%.0f MB", float64(s.RelayRSS)/1e6))
	}
	if len(relay) > 0 {
		parts = append(parts, "relay "+strings.Join(relay, " "))
	}
	return strings.Join(parts, "  ")
}
