package perf

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
)

// The bounds of what is read of a script.
const (
	maxLine   = 64 << 10 // bytes of a line; the rest of it is left out
	maxFrames = 1000     // of a stack; the outer ones are left out
)

// scriptFields are the fields of `perf script` that [readScript] reads:
//
//	pool-processor- 32299    2004008 cpu-clock:
//		         1d3a461 relay_pii::processor::apply (/opt/relay)
//		ffffffffffffffff [unknown] ([unknown])
const scriptFields = "comm,tid,period,event,ip,sym,dso"

// stack is one sample.
type stack struct {
	thread string
	event  string
	period uint64  // what was counted of the event
	frames []frame // the innermost first
	cut    bool    // more frames came than are kept
}

// frame is a function in a stack.
type frame struct {
	name   string // as perf has it; "" unknown
	object string // path of what it is in; "" unknown
}

// readScript reads what perf script prints and hands each sample to do, which
// may not keep it. Memory is bounded whatever comes; lines that are nothing of a
// sample are left out. It returns how many these were.
func readScript(from io.Reader, do func(*stack)) (strange uint64, err error) {
	r := bufio.NewReaderSize(from, maxLine)
	var s stack
	open := false
	end := func() {
		if open {
			do(&s)
		}
		open = false
	}
	for {
		line, err := readLine(r)
		text := bytes.TrimRight(line, " \t\r\n")
		switch {
		case len(text) == 0:
			if err == nil || len(line) > 0 {
				end()
			}
		case line[0] == '\t' || line[0] == ' ' && open:
			f, ok := parseFrame(string(bytes.TrimLeft(text, " \t")))
			switch {
			case !ok || !open:
				strange++
			case len(s.frames) == maxFrames:
				s.cut = true
			default:
				s.frames = append(s.frames, f)
			}
		default:
			end()
			if open = s.head(string(text)); !open {
				strange++
			}
		}
		if err == io.EOF {
			end()
			return strange, nil
		}
		if err != nil {
			return strange, err
		}
	}
}

// readLine reads a line, of which only the beginning is kept where it is too long. It is valid until the next one.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	line = bytes.Clone(line)
	for err == bufio.ErrBufferFull {
		_, err = r.ReadSlice('\n')
	}
	return line, err
}

// head reads the first line of a sample: "COMM TID PERIOD EVENT:". A thread's name may have spaces in it.
func (s *stack) head(text string) bool {
	*s = stack{frames: s.frames[:0]}
	text, ok := strings.CutSuffix(text, ":")
	if !ok {
		return false
	}
	fields := strings.Fields(text)
	if len(fields) < 4 {
		return false
	}
	n := len(fields)
	period, err := strconv.ParseUint(fields[n-2], 10, 63)
	if err != nil {
		return false
	}
	if _, err := strconv.ParseUint(fields[n-3], 10, 32); err != nil {
		return false
	}
	s.event, s.period, s.thread = fields[n-1], period, strings.Join(fields[:n-3], " ")
	return true
}

// parseFrame reads "ADDRESS NAME (OBJECT)". Both name and object may have spaces and parentheses in them.
func parseFrame(text string) (f frame, ok bool) {
	address, rest, ok := strings.Cut(text, " ")
	if !ok {
		return f, false
	}
	if _, err := strconv.ParseUint(address, 16, 64); err != nil {
		return f, false
	}
	rest = strings.TrimSpace(rest)
	if rest, ok = strings.CutSuffix(rest, ")"); !ok {
		return f, false
	}
	rest = strings.TrimSuffix(rest, " (deleted)") // a file that was replaced while it ran
	at := strings.LastIndex(rest, " (")
	if at < 0 {
		if !strings.HasPrefix(rest, "(") {
			return f, false
		}
		at = 0
		f.object = rest[1:]
	} else {
		f.object = rest[at+2:]
	}
	f.name = strings.TrimSpace(rest[:at])
	if f.name == unknown {
		f.name = ""
	}
	if f.object == unknown || f.object == "inlined" {
		f.object = ""
	}
	return f, true
}

// unknown is how perf says that it does not know a function or an object.
const unknown = "[unknown]"

// roots are the functions that a whole stack begins with.
var roots = map[string]bool{
	"_start": true, "__libc_start_main": true, "__libc_start_call_main": true, "main": true, "start": true,
	"clone": true, "__clone": true, "clone3": true, "__clone3": true, "start_thread": true, "thread_start": true,
	"ret_from_fork": true, "ret_from_fork_asm": true,
	"runtime.goexit": true, "runtime.mstart": true, "runtime.mstart1": true, "runtime.mcall": true, "runtime.rt0_go": true, "runtime.systemstack": true,
}

// whole says whether the stack goes down to where its thread begins. One that
// could not be unwound ends anywhere, or in an unknown function.
func (s *stack) whole() bool {
	if s.cut {
		return false
	}
	for i := len(s.frames) - 1; i >= 0; i-- {
		f := s.frames[i]
		if f.name == "" && strings.HasPrefix(base(f.object), "libc") { // stripped, as distributions have it
			continue
		}
		name, _, _ := strings.Cut(f.name, "@")
		name = strings.TrimSuffix(name, ".abi0")
		return roots[name] || strings.HasPrefix(name, "__libc_start_main") || strings.HasSuffix(name, "::thread_start")
	}
	return false
}

// base is the last part of a path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
