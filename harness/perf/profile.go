package perf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"github.com/ianlancetaylor/demangle"
)

// The bounds of a profile, so that a report that keeps it stays small: what is
// beyond them keeps its weight, and loses its callers or its name.
const (
	maxStacks    = 20_000
	maxFunctions = 20_000
	maxName      = 500 // bytes
)

// MaxSize is how large the profile that is kept of a run can well be, in bytes; typical is a tenth.
const MaxSize = 4 << 20

// Functions that are none.
const (
	Incomplete = "[incomplete stacks]" // stands in the place of the callers that are not known
	others     = "[other functions]"
	kernel     = "kernel"
)

// threadLabel is the label of samples with the name of their thread.
const threadLabel = "thread"

// builder makes a profile of samples. Its memory is bounded.
type builder struct {
	p         *profile.Profile
	functions map[frame]*profile.Location
	mappings  map[string]*profile.Mapping
	stacks    map[string]*profile.Sample
	key       []byte
	locations []*profile.Location

	samples, whole, cut uint64 // cut: samples that lost their callers to the bounds
}

func newBuilder(event string, freq int) *builder {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}}}
	if strings.HasPrefix(event, cpuClock) {
		p.PeriodType, p.Period = &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, int64(time.Second)/int64(freq)
	} else {
		p.PeriodType, p.Period = &profile.ValueType{Type: "cycles", Unit: "count"}, 1
	}
	p.SampleType = append(p.SampleType, p.PeriodType)
	p.DefaultSampleType = p.PeriodType.Type
	return &builder{p: p, functions: map[frame]*profile.Location{}, mappings: map[string]*profile.Mapping{}, stacks: map[string]*profile.Sample{}}
}

// add adds a sample.
func (b *builder) add(s *stack) {
	b.samples++
	whole := s.whole()
	if whole {
		b.whole++
	}
	b.locations = b.locations[:0]
	for i, f := range s.frames {
		if i == len(s.frames)-1 && f == (frame{}) && i > 0 { // where it could not be followed any more
			break
		}
		b.locations = append(b.locations, b.location(f))
	}
	if !whole {
		b.locations = append(b.locations, b.location(frame{name: Incomplete}))
	}
	key := b.keyOf(s.thread)
	one, ok := b.stacks[string(key)]
	if !ok && len(b.stacks) >= maxStacks && len(b.locations) > 2 {
		b.cut++
		if whole {
			b.whole--
		}
		b.locations = append(b.locations[:1], b.location(frame{name: Incomplete}))
		key = b.keyOf(s.thread)
		one, ok = b.stacks[string(key)]
	}
	if !ok {
		one = &profile.Sample{Location: append([]*profile.Location(nil), b.locations...), Value: make([]int64, 2)}
		if s.thread != "" {
			one.Label = map[string][]string{threadLabel: {clean(s.thread)}}
		}
		b.stacks[string(key)] = one
		b.p.Sample = append(b.p.Sample, one)
	}
	one.Value[0]++
	one.Value[1] += int64(min(s.period, 1<<40))
}

// keyOf is what tells the stack of b.locations from others.
func (b *builder) keyOf(thread string) []byte {
	b.key = append(append(b.key[:0], thread...), 0)
	for _, l := range b.locations {
		b.key = binary.AppendUvarint(b.key, l.ID)
	}
	return b.key
}

// location is that of a function: which address of it was at work is not told apart.
func (b *builder) location(f frame) *profile.Location {
	if l := b.functions[f]; l != nil {
		return l
	}
	if len(b.functions) >= maxFunctions && f.name != Incomplete {
		f = frame{name: others}
		if l := b.functions[f]; l != nil {
			return l
		}
	}
	fn := &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: readable(f), SystemName: clip(f.name)}
	b.p.Function = append(b.p.Function, fn)
	l := &profile.Location{ID: uint64(len(b.p.Location) + 1), Mapping: b.mapping(f.object), Line: []profile.Line{{Function: fn}}}
	b.p.Location = append(b.p.Location, l)
	b.functions[f] = l
	return l
}

// mapping is that of an object; nil of an unknown one.
func (b *builder) mapping(object string) *profile.Mapping {
	m := b.mappings[object]
	if m == nil && object != "" && len(b.mappings) < 1000 {
		m = &profile.Mapping{ID: uint64(len(b.p.Mapping) + 1), File: clip(object), HasFunctions: true}
		b.p.Mapping = append(b.p.Mapping, m)
		b.mappings[object] = m
	}
	return m
}

// readable is the name of a function for people: of Rust's and C++'s demangled,
// without the hash that each build gives anew.
func readable(f frame) string {
	if f.name == "" {
		where := base(f.object)
		if strings.HasPrefix(where, "[kernel") {
			where = kernel
		}
		if where == "" {
			return "[unknown]"
		}
		return "[unknown, in " + clip(where) + "]"
	}
	name := f.name
	if len(name) <= maxDemangled && (strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "__R") || strings.HasPrefix(name, "__Z")) {
		name = demangle.Filter(name, demangle.NoParams, demangle.MaxLength(13))
	}
	if at := strings.LastIndex(name, "::h"); at > 0 && len(name)-at == len("::h")+16 && strings.Trim(name[at+3:], "0123456789abcdef") == "" {
		name = name[:at]
	}
	return clip(name)
}

// maxDemangled is the longest name that is demangled.
const maxDemangled = 4096

// clip bounds a name, and keeps it printable.
func clip(s string) string {
	if len(s) > maxName {
		s = s[:maxName-3] + "..."
	}
	return clean(s)
}

// clean is a text that can stand in a profile and on a screen.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// encode is the profile as pprof reads it, compressed.
func (b *builder) encode() ([]byte, error) {
	if err := b.p.CheckValid(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	var out bytes.Buffer
	if err := b.p.Write(&out); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return out.Bytes(), nil
}
