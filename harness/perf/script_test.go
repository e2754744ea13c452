package perf

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func scripted(t *testing.T, text string) (stacks []stack, strange uint64) {
	t.Helper()
	strange, err := readScript(strings.NewReader(text), func(s *stack) {
		c := *s
		c.frames = append([]frame(nil), s.frames...)
		stacks = append(stacks, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	return stacks, strange
}

func TestReadScript(t *testing.T) {
	const text = `tokio runtime w  4711     2004008 cpu-clock:u: 
	ffffffff822601e5 asm_sysvec_apic_timer_interrupt ([kernel.kallsyms])
	         1cd10eb <relay_pii::P as relay::Processor>::process (string) (/opt/my relay (deleted))
	           90e7c [unknown] (/usr/lib/libc.so.6)
	ffffffffffffffff [unknown] ([unknown])

main-rt 12 1 cycles:P:
	    10 main (/opt/relay)
relay 12 7 cycles:P:
	    10 (/opt/relay)
	    zz what is that
nonsense
relay 12 x cycles:
`
	got, strange := scripted(t, text)
	want := []stack{
		{thread: "tokio runtime w", event: "cpu-clock:u", period: 2004008, frames: []frame{
			{"asm_sysvec_apic_timer_interrupt", "[kernel.kallsyms]"},
			{"<relay_pii::P as relay::Processor>::process (string)", "/opt/my relay"},
			{"", "/usr/lib/libc.so.6"}, {"", ""}}},
		{thread: "main-rt", event: "cycles:P", period: 1, frames: []frame{{"main", "/opt/relay"}}},
		{thread: "relay", event: "cycles:P", period: 7, frames: []frame{{"", "/opt/relay"}}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(stack{}, frame{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if strange != 3 {
		t.Errorf("%d strange lines", strange)
	}
}

// What perf 6.1 printed of Relay under a load of errors, with 16 KiB of stack.
func TestReadScriptOfRelay(t *testing.T) {
	text, err := os.ReadFile("testdata/relay-dwarf.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, strange := scripted(t, string(text))
	whole := 0
	for _, s := range got {
		if s.whole() {
			whole++
		}
		if s.period == 0 || s.thread == "" || len(s.frames) < 2 {
			t.Errorf("%+v", s)
		}
	}
	if len(got) != 24 || strange != 0 || whole != 8 {
		t.Errorf("%d samples, %d strange lines, %d whole stacks", len(got), strange, whole)
	}
}

func TestWhole(t *testing.T) {
	for _, tt := range []struct {
		frames string // outermost last
		want   bool
	}{
		{"a clone3@/lib/libc.so.6", true},
		{"a std::sys::pal::unix::thread::Thread::new::thread_start@/opt/relay @/usr/lib/libc.so.6 @/usr/lib/libc.so.6", true},
		{"a __libc_start_call_main@/lib/libc.so.6", true},
		{"a runtime.goexit.abi0@/opt/relaybench", true},
		{"entry ret_from_fork_asm@[kernel.kallsyms]", true},
		{"a clone3@/lib/libc.so.6 @", false}, // perf did not stop there
		{"clone3@/lib/libc.so.6 b@/opt/relay", false},
		{"@/usr/lib/libc.so.6", false},
		{"", false},
	} {
		s := stack{}
		for _, f := range strings.Fields(tt.frames) {
			name, object, _ := strings.Cut(f, "@")
			s.frames = append(s.frames, frame{name, object})
		}
		if got := s.whole(); got != tt.want {
			t.Errorf("%q: got %v", tt.frames, got)
		}
	}
}

func TestReadScriptIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("relay 1 1 cycles:\n")
	for i := range maxFrames + 10 {
		fmt.Fprintf(&b, "\t%x f%d (/opt/relay)\n", i, i)
	}
	b.WriteString("\nrelay 1 1 cycles:\n\t1 " + strings.Repeat("x", 3*maxLine) + " (/opt/relay)\n\t2 main (/opt/relay)\n")
	got, strange := scripted(t, b.String())
	if len(got) != 2 || len(got[0].frames) != maxFrames || !got[0].cut || got[0].whole() || len(got[1].frames) != 1 || strange != 1 {
		t.Errorf("%d samples, %d frames, %d strange", len(got), len(got[0].frames), strange)
	}
}

func FuzzReadScript(f *testing.F) {
	text, err := os.ReadFile("testdata/relay-dwarf.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text[:4000]))
	f.Add("a b 1 2 cycles:\n\t1 x (y)\n\n")
	f.Add("a 1 2 cycles:\n\t0 _RNvC6_123foo3bar (y)\n\t1 _ZN4core3ptr17h0123456789abcdefE (z)\n")
	f.Fuzz(func(t *testing.T, text string) {
		b := newBuilder("cycles", 99)
		strange, err := readScript(strings.NewReader(text), b.add)
		if err != nil {
			t.Fatal(err)
		}
		if lines := uint64(strings.Count(text, "\n")) + 1; b.samples > lines || strange > lines || b.whole > b.samples {
			t.Errorf("%d samples, %d strange of %d lines", b.samples, strange, lines)
		}
		if _, err := b.encode(); err != nil {
			t.Error(err)
		}
	})
}
