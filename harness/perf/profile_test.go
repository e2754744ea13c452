package perf

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// profiled is the profile of a text, for pprof.
func profiled(t *testing.T, text string) (*builder, []byte) {
	t.Helper()
	b := newBuilder(cpuClock, 499)
	if _, err := readScript(strings.NewReader(text), b.add); err != nil {
		t.Fatal(err)
	}
	data, err := b.encode()
	if err != nil {
		t.Fatal(err)
	}
	return b, data
}

func relayText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/relay-dwarf.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sampled is a sample as perf script prints it, of functions with the innermost first.
func sampled(functions string) string {
	var b strings.Builder
	b.WriteString("relay 1 1000 cpu-clock:\n")
	for i, f := range strings.Fields(functions) {
		fmt.Fprintf(&b, "\t%x %s (/opt/relay)\n", i, f)
	}
	return b.String() + "\n"
}

func TestProfileOfRelay(t *testing.T) {
	b, data := profiled(t, relayText(t))
	p, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	var samples, cpu int64
	incomplete := int64(0)
	for _, s := range p.Sample {
		samples, cpu = samples+s.Value[0], cpu+s.Value[1]
		if s.Location[len(s.Location)-1].Line[0].Function.Name == Incomplete {
			incomplete += s.Value[0]
		}
		if s.Label[threadLabel][0] == "" {
			t.Error("no thread")
		}
	}
	if samples != 24 || cpu != 24*2004008 || b.samples != 24 || b.whole != 8 || incomplete != 16 || b.cut != 0 {
		t.Errorf("%d samples of %d ns, %d incomplete; %+v", samples, cpu, incomplete, b)
	}
	for _, f := range p.Function {
		if f.Name == "" || f.Name == "[unknown]" || strings.HasPrefix(f.Name, "_Z") {
			t.Errorf("function %q", f.Name)
		}
	}
}

func TestReadable(t *testing.T) {
	for _, tt := range []struct{ name, object, want string }{
		{"_ZN11relay_proto4core3ptr13drop_in_place17h0123456789abcdefE", "", "relay_proto::core::ptr::drop_in_place"},
		{"relay::run::h0123456789abcdef", "", "relay::run"},
		{"relay::run::hasher", "", "relay::run::hasher"},
		{"_RNvCs4fqI2P2rA04_9relay_pii5apply", "", "relay_pii::apply"},
		{"_RNvXs_NtC5relay3piiNtB4_1PNtB4_9Processor7process", "", "<relay::pii::P as relay::pii::Processor>::process"},
		{"_RNv", "", "_RNv"},
		{"main", "", "main"},
		{"a\tb\xff", "", "a?b?"},
		{"", "/usr/lib/libc.so.6", "[unknown, in libc.so.6]"},
		{"", "[kernel.kallsyms]", "[unknown, in kernel]"},
		{"", "", "[unknown]"},
	} {
		if got := readable(frame{tt.name, tt.object}); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := readable(frame{name: strings.Repeat("x", 10_000)}); len(got) != maxName {
		t.Errorf("a name of %d bytes", len(got))
	}
}

// However many different stacks there are, a profile has its bounds, and loses no weight.
func TestProfileIsBounded(t *testing.T) {
	b := newBuilder(cycles, 499)
	const n = maxStacks + 5000
	for i := range n {
		b.add(&stack{thread: "t", period: 1, frames: []frame{{fmt.Sprintf("leaf%d", i%10), "x"}, {fmt.Sprintf("f%d", i%250), "x"}, {fmt.Sprintf("g%d", i/250), "x"}, {"main", "x"}}})
	}
	sum := int64(0)
	for _, s := range b.p.Sample {
		sum += s.Value[1]
	}
	if sum != n || b.samples != n || len(b.p.Sample) > maxStacks+20 || b.cut != 5000 || b.whole+b.cut != n {
		t.Errorf("weight %d, %d samples in %d stacks, %d functions, %d cut, %d whole", sum, b.samples, len(b.p.Sample), len(b.functions), b.cut, b.whole)
	}
	for i := range maxFunctions {
		b.location(frame{fmt.Sprintf("more%d", i), "y"})
	}
	if len(b.functions) > maxFunctions+2 {
		t.Errorf("%d functions", len(b.functions))
	}
	if data, err := b.encode(); err != nil || len(data) > MaxSize {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
