package shell

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"relaybench/commands"
)

// What is piped in sees no prompt, and gets all output, also of a last line without an end.
func TestPipedLines(t *testing.T) {
	t.Parallel()
	s := share(t, 30, nil, nil)
	g := s.guest()
	g.send("reports -n all\nhelp codes")
	got := g.rest()
	if strings.Contains(got, "relaybench> ") {
		t.Errorf("a prompt was shown: %q", got)
	}
	if n := strings.Count(got, " errors=3,logs=1 "); n != 30 {
		t.Errorf("%d reports were listed, want 30", n)
	}
	if want := "\n130 4 3 1 2 5.\n"; !strings.HasSuffix(got, want) {
		t.Errorf("it ends with %q, want %q", got[max(0, len(got)-100):], want)
	}

	// More than the connection holds, read only when all was asked.
	g = s.guest()
	const asked = 100
	g.send(strings.Repeat("help variables\n", asked) + "help codes")
	got = g.rest()
	if n := strings.Count(got, "variables: what reports differ in"); n != asked || !strings.HasSuffix(got, "\n130 4 3 1 2 5.\n") {
		t.Errorf("%d answers of %d in %d bytes, which end with %q", n, asked, len(got), got[max(0, len(got)-100):])
	}

	g = s.guest()
	g.send("status # don't stop; quit\nexplain test 6s --rate 10 --label 'a;b # c'; explain test 6s --label ';'\n")
	if got := g.rest(); len(regexp.MustCompile(`(?m)^relay +stand-in`).FindAllString(got, -1)) != 1 ||
		!regexp.MustCompile(`(?m)^label +a;b # c$`).MatchString(got) || !regexp.MustCompile(`(?m)^label +;$`).MatchString(got) {
		t.Errorf("apostrophes and semicolons in comments and values: %q", got)
	}
}

// A pipe whose end is not told is left once it is silent and its jobs are over; who waits for a prompt is kept.
func TestSilentPipe(t *testing.T) {
	t.Parallel()
	s := share(t, 0, nil, func(s *server) { s.silence = 50 * time.Millisecond })
	g := s.guest()
	g.send("status\n")
	if got := g.all(); !strings.HasPrefix(got, "relay ") || !strings.HasSuffix(got, "no job is queued\nrelaybench: "+silentEnd+"\n") {
		t.Errorf("status piped in printed %q", got)
	}
	g = s.guest()
	g.send("test 300ms --rate 20 --mix sessions --pool 10\n")
	if got := g.all(); !regexp.MustCompile(`(?s)^j1 queued.*\nj1 (done|failed) .*: ended, as no more lines came`).MatchString(got) {
		t.Errorf("a test piped in printed %q", got)
	}

	other := share(t, 0, nil, func(s *server) { s.pause, s.silence = time.Millisecond, time.Millisecond })
	kept := other.guest()
	kept.until(prompt)
	kept.send("status\n")
	kept.until(prompt)
	g = s.guest()
	g.send("status\n")
	g.all() // for longer than the other's patience
	kept.send("help codes\nquit\n")
	if got := kept.all(); !strings.Contains(got, "130 4 3 1 2 5") || strings.Contains(got, silentEnd) {
		t.Errorf("who waits for a prompt is not kept: %q", got)
	}
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	s := share(t, 0, nil, prompts)
	g := s.guest()
	g.until(prompt)
	g.send("stat")
	g.send("us\r\n")
	if got := g.until(prompt); !strings.Contains(got, "stand-in") {
		t.Errorf("status printed %q", got)
	}
	g.send("statsu; status\r\x00")
	if got := g.until(prompt); !strings.HasPrefix(got, "relaybench: unknown command \"statsu\"\nhint: did you mean status?\n") || strings.Contains(got, "stand-in") {
		t.Errorf("what cannot be done printed %q", got)
	}
	g.send("status\xff\xf4") // Ctrl-C takes it back
	if got := g.until(prompt); got != "\nrelaybench> " {
		t.Errorf("Ctrl-C printed %q", got)
	}
	g.send("quit\n")
	if got := g.all(); got != "" {
		t.Errorf("quit printed %q", got)
	}
	g = s.guest()
	g.until(prompt)
	g.send("\x04")
	if got := g.all(); got != "" {
		t.Errorf("Ctrl-D printed %q", got)
	}
}

// A negotiation that comes byte by byte, and a sub-negotiation with no end.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	s := share(t, 0, nil, nil)
	g := s.guest()
	if err := g.SetNoDelay(true); err != nil {
		t.Fatal(err)
	}
	for _, b := range []byte("\xff\xf4\xff\xfd\x06\xff\xfa\x1f\x00\xff\xff\x00\x50\xff\xf0status\r\n") {
		g.send(string([]byte{b}))
		runtime.Gosched()
	}
	got := g.until("no job is queued\n")
	if n := strings.Count(got, "\xff\xfb\x06"); n != 1 || strings.Count(got, "\xff") != 1 {
		t.Errorf("%d answers to the timing mark in %q", n, got)
	}
	if n := len(regexp.MustCompile(`(?m)relay +stand-in`).FindAllString(got, -1)); n != 1 || strings.Contains(got, "unknown command") {
		t.Errorf("status was done %d times: %q", n, got)
	}
	g.send("\xff\xfa\x18status\n")
	g.Close()
	eventually(t, "left by the client", func() bool { return s.count() == 0 })
}

// A web page must not be able to type here.
func TestWeb(t *testing.T) {
	t.Parallel()
	s := share(t, 1, nil, nil)
	body := "\r\nContent-Type: text/plain\r\n\r\ndelete last --yes\nstatus\n"
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: 127.0.0.1:8234" + body,
		"POST /delete%20last HTTP/1.0" + body,
		"OPTIONS * HTTP/1.1" + body,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + body,
		"delete /last HTTP/1.1" + body,
		"POST /" + strings.Repeat("x", commands.MaxLine) + " HTTP/1.1" + body,
	} {
		g := s.guest()
		g.send(request)
		if got := g.all(); got != webAnswer {
			t.Errorf("%.40q was answered %q", request, got)
		}
	}
	g := s.guest()
	g.send("\x16\x03\x01\x02\x00\x01\ndelete last --yes\nstatus\n")
	if got := g.all(); got != webAnswer {
		t.Errorf("TLS was answered %q", got)
	}
	s.logged("sent a web request: closed")
	g = s.guest()
	g.send("reports\nGET / HTTP/1.1\n")
	if got := g.rest(); !strings.Contains(got, "1s") || !strings.Contains(got, "unknown command") {
		t.Errorf("%q: the report is gone, or a line that is not the first was taken for a request", got)
	}
}

// What was typed ahead answers a question; who leaves has not consented.
func TestQuestionOverTCP(t *testing.T) {
	t.Parallel()
	s := share(t, 2, nil, nil)
	g := s.guest()
	g.send("delete last\ny\nstatus\n")
	if got := g.rest(); !regexp.MustCompile(`^delete 1 report \(.*\)\? y/N deleted 1 report: .*\nrelay +stand-in(?s:.)*reports +1\n`).MatchString(got) {
		t.Errorf("an answer that was typed ahead: %q", got)
	}
	g = s.guest()
	g.send("delete last\n")
	g.until(`y/N $`)
	g.Close()
	eventually(t, "left by the client", func() bool { return s.count() == 0 })
	g = s.guest()
	g.send("delete last\n")
	if got := g.rest(); !strings.Contains(got, "nothing was deleted") {
		t.Errorf("nobody answered: %q", got)
	}
	g = s.guest()
	g.send("delete last\n")
	g.until(`y/N $`)
	g.send("\xff\xf4")
	g.until("interrupted by Ctrl-C\n")
	g.send("reports\n")
	if got := g.rest(); !strings.Contains(got, "1s") {
		t.Errorf("the report is gone: %q", got)
	}
}
