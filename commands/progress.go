package commands

import (
	"fmt"
	"io"
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

// startProgress starts telling the client's Notes of a run whose load lasts
// so long. Close it when the run has ended. Where output is for a program,
// only a terminal is told.
func startProgress(c Client, load time.Duration, format Format) *progress {
	p := &progress{events: make(chan any, 64)}
	out := c.Notes
	if out == nil || format != Text && c.Live == 0 {
		out = io.Discard
	}
	tick := time.NewTicker(progressEvery)
	p.joined.Go(func() {
		defer tick.Stop()
		tell(p.events, tick.C, out, c.Live, load)
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
// written over and cleared at the end; elsewhere the newest at each tick.
func tell(events <-chan any, tick <-chan time.Time, out io.Writer, width int, load time.Duration) {
	var step, now string
	var last result.Sample
	for {
		select {
		case e, ok := <-events:
			if !ok {
				if width > 0 {
					fmt.Fprint(out, "\r\x1b[K")
				}
				return
			}
			switch e := e.(type) {
			case string:
				if step = e; step == harness.StepLoad {
					last = result.Sample{}
				}
				now = step + " …"
			case result.Sample:
				now = progressLine(last, e, load)
				last = e
			}
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

// progressLine says how a load or drain goes, by a sample and the one before it.
func progressLine(before, s result.Sample, load time.Duration) string {
	var parts []string
	at := time.Duration(s.At)
	if s.Draining {
		parts = append(parts, fmt.Sprintf("drain %s", seconds(max(at-load, 0))))
	} else {
		parts = append(parts, fmt.Sprintf("load %s, %s left", seconds(at), seconds(max(load-at, 0))))
	}
	if took := time.Duration(s.At - before.At).Seconds(); took > 0 && s.At > before.At {
		if !s.Draining {
			parts = append(parts, fmt.Sprintf("sent %s/s", rate(float64(s.Sent-before.Sent)/took)))
		}
		parts = append(parts, fmt.Sprintf("arrived %s/s", rate(float64(s.Arrived-before.Arrived)/took)))
	}
	parts = append(parts, fmt.Sprintf("backlog %d", s.Backlog))
	if s.Refused+s.Failed > 0 {
		parts = append(parts, fmt.Sprintf("refused %d, failed %d", s.Refused, s.Failed))
	}
	return strings.Join(append(parts, relayUse(before, s)...), " · ")
}

// relayUse is what the relay uses, as far as it can be seen.
func relayUse(before, s result.Sample) []string {
	var parts []string
	if took := s.At - before.At; s.RelayCPU >= 0 && before.RelayCPU >= 0 && took > 0 {
		parts = append(parts, fmt.Sprintf("relay %.2f cores", float64(s.RelayCPU-before.RelayCPU)/float64(took)))
	}
	if s.RelayRSS >= 0 {
		parts = append(parts, "RSS "+byteSize(float64(s.RelayRSS)))
	}
	return parts
}
