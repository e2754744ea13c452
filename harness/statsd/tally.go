package statsd

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"relaybench/harness/result"
)

// What is kept at most: Relay 26.4 has about 250 series. Further ones are counted.
const (
	maxSeries = 4096
	maxKey    = 2048 // bytes of a series' name and tags
)

// tally is what has been counted.
type tally struct {
	series    map[string]*result.StatsdSeries
	datagrams uint64
	lines     uint64
	malformed uint64
	first     string // of the malformed
	ignored   uint64
	over      uint64
	overFirst string

	key  []byte   // memory to be used again
	tags [][]byte // likewise
}

// bad counts a line that was not parsed.
func (t *tally) bad(text []byte, err error) {
	if err == errIgnored {
		t.ignored++
		return
	}
	if t.malformed++; t.malformed == 1 {
		t.first = strings.ToValidUTF8(err.Error()+": "+clip(text), "\uFFFD")
	}
}

// add counts a line.
func (t *tally) add(l *line) {
	t.lines++
	s := t.find(l)
	if s == nil {
		return
	}
	for text := range bytes.SplitSeq(l.values, []byte(":")) {
		v, _ := number(text)
		switch s.Type {
		case result.Counter:
			s.Counter += v / l.rate
		case result.Gauge: // of a gauge that is sampled the last value stands, too
			if s.Gauge == nil {
				s.Gauge = &result.GaugeRange{Min: v, Max: v}
			}
			s.Gauge.Last, s.Gauge.Min, s.Gauge.Max = v, min(s.Gauge.Min, v), max(s.Gauge.Max, v)
		default: // a value that is one of several stands for them, and is what it is
			if s.Timer == nil {
				s.Timer = result.NewDistribution()
			}
			s.Timer.Add(v, 1/l.rate)
		}
	}
}

// find is the series of a line; nil where there are too many of them.
func (t *tally) find(l *line) *result.StatsdSeries {
	t.tags = t.tags[:0]
	if len(l.tags) > 0 && len(l.name)+len(l.tags) <= maxKey {
		for tag := range bytes.SplitSeq(l.tags, []byte(",")) {
			if len(tag) > 0 {
				t.tags = append(t.tags, tag)
			}
		}
		slices.SortFunc(t.tags, bytes.Compare)
		t.tags = slices.CompactFunc(t.tags, bytes.Equal)
	}
	t.key = append(append(append(t.key[:0], l.kind...), '\n'), l.name...)
	for _, tag := range t.tags {
		t.key = append(append(t.key, '\n'), tag...)
	}
	if s := t.series[string(t.key)]; s != nil {
		return s
	}
	if len(t.series) >= maxSeries || len(l.name)+len(l.tags) > maxKey {
		if t.over++; t.over == 1 {
			t.overFirst = clip(l.name)
		}
		return nil
	}
	s := &result.StatsdSeries{Type: l.kind, Name: string(l.name)}
	for _, tag := range t.tags {
		s.Tags = append(s.Tags, string(tag))
	}
	if t.series == nil {
		t.series = map[string]*result.StatsdSeries{}
	}
	t.series[string(t.key)] = s
	return s
}

// result is what was counted.
func (t *tally) result() *result.Statsd {
	r := &result.Statsd{Datagrams: t.datagrams, Lines: t.lines, Malformed: t.malformed, MalformedFirst: t.first,
		Ignored: t.ignored, Over: t.over, OverFirst: strings.ToValidUTF8(t.overFirst, "\uFFFD")}
	for _, s := range t.series {
		r.Series = append(r.Series, *s)
	}
	slices.SortFunc(r.Series, func(a, b result.StatsdSeries) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), slices.Compare(a.Tags, b.Tags))
	})
	return r
}
