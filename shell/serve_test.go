package shell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"relaybench/commands"
	"relaybench/store"
	"relaybench/store/storetest"
)

// patience is how long a test waits for what takes a moment.
const patience = time.Minute

// shared is a shared shell of a test.
type shared struct {
	*server
	t     testing.TB
	db    string
	bench *commands.Bench
	end   func()
	mu    sync.Mutex
	logs  strings.Builder
}

// share starts a shared shell with so many reports in its store. No client
// sees a prompt, unless tune, which may be nil, says otherwise.
func share(t testing.TB, reports int, token *token, tune func(*server)) *shared {
	t.Helper()
	s := &shared{t: t, db: filepath.Join(t.TempDir(), "r.db")}
	db, err := store.Open(s.db)
	if err != nil {
		t.Fatal(err)
	}
	r := storetest.Report(1)
	for range reports {
		r.ID = ""
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s.bench = commands.NewBench(commands.Config{DB: s.db})
	if err := s.bench.Open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.bench.Start(ctx)
	s.server = newServer(s.bench, token, func(format string, a ...any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(&s.logs, format+"\n", a...)
	})
	s.pause, s.silence = time.Hour, time.Hour
	if tune != nil {
		tune(s.server)
	}
	if err := s.listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := s.listenLocal(s.db); err != nil {
		t.Fatal(err)
	}
	s.end = sync.OnceFunc(func() {
		why := fmt.Errorf("%w by a test", commands.ErrInterrupted)
		cancel(why)
		if err := end(s.server, s.bench, why, nil); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.end)
	return s
}

// prompts lets clients see one soon.
func prompts(s *server) { s.pause = time.Millisecond }

// logged waits for a line of the log that matches.
func (s *shared) logged(pattern string) {
	s.t.Helper()
	eventually(s.t, "a log that matches "+pattern, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return regexp.MustCompile(pattern).MatchString(s.logs.String())
	})
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not %s within %v", what, patience)
		}
	}
}

// guest is a TCP client of a test.
type guest struct {
	*net.TCPConn
	t    testing.TB
	read strings.Builder
}

func (s *shared) guest() *guest {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	return &guest{TCPConn: conn.(*net.TCPConn), t: s.t}
}

func (g *guest) send(text string) {
	g.t.Helper()
	if _, err := io.WriteString(g, text); err != nil {
		g.t.Fatal(err)
	}
}

// until reads until what was read since the last time matches, and gives that.
func (g *guest) until(pattern string) string {
	g.t.Helper()
	want := regexp.MustCompile(pattern)
	b := make([]byte, 4096)
	for !want.MatchString(g.read.String()) {
		n, err := g.Read(b)
		g.read.Write(b[:n])
		if err != nil {
			g.t.Fatalf("%v before %q came, after %q", err, pattern, g.read.String())
		}
	}
	defer g.read.Reset()
	return g.read.String()
}

// rest is what comes after the guest has nothing more to say.
func (g *guest) rest() string {
	g.t.Helper()
	if err := g.CloseWrite(); err != nil {
		g.t.Fatal(err)
	}
	return g.all()
}

// all is what comes until the server closes.
func (g *guest) all() string {
	g.t.Helper()
	b, err := io.ReadAll(g)
	if err != nil {
		g.t.Fatalf("%v after %.1000q", err, b)
	}
	return g.read.String() + string(b)
}

const prompt = `relaybench> $`

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
	if want := "in the order 130 4 3 1 2 5.\n"; !strings.HasSuffix(got, want) {
		t.Errorf("it ends with %q, want %q", got[max(0, len(got)-100):], want)
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

func TestToken(t *testing.T) {
	t.Parallel()
	const secret = "a secret of some length"
	s := share(t, 0, newToken(secret), nil)
	g := s.guest()
	g.send(secret + "\nstatus\n")
	if got := g.rest(); !strings.Contains(got, "stand-in") || strings.Contains(got, secret) {
		t.Errorf("status printed %q", got)
	}
	from := time.Now()
	wrong := map[string]*guest{}
	for _, text := range []string{"status\nstatus\n", secret + "x\nstatus\n", "\nstatus\n", secret[:5] + "\nstatus\n"} {
		wrong[text] = s.guest()
		wrong[text].send(text)
	}
	for text, g := range wrong {
		if got := g.rest(); got != "relaybench: wrong token\n" {
			t.Errorf("%q was answered %q", text, got)
		}
		if took := time.Since(from); took < wrongTokenWait {
			t.Errorf("a wrong token was answered after %v", took)
		}
	}
	// Whoever owns the store needs none.
	if got := s.frames(hello{}).do("status"); !strings.Contains(got, "stand-in") {
		t.Errorf("status beside the store printed %q", got)
	}
	for sent, want := range map[string]string{"": "a token is demanded", "status": "wrong token"} {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := greet(conn, "test", hello{Token: sent}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("hello with token %q: %v, want %q", sent, err, want)
		}
		conn.Close()
	}
	s.logged("sent a wrong token")
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(s.logs.String(), secret[:5]) {
		t.Errorf("the token is in the log: %s", s.logs.String())
	}
}

func TestReadToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{"abc\n": "abc", " a b \r\nc\n": "a b", "abc": "abc"} {
		file := filepath.Join(dir, "token")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := tokenLine(file); got != want || err != nil {
			t.Errorf("token of %q is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "\nabc"} {
		file := filepath.Join(dir, "none")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tokenLine(file); err == nil {
			t.Errorf("token of %q: no error", text)
		}
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:8234": true, "127.1.2.3:1": true, "[::1]:8234": true, "localhost:8234": true,
		":8234": false, "0.0.0.0:8234": false, "[::]:8234": false, "192.168.0.1:8234": false, "bench1:8234": false, "8234": false,
	} {
		if got := loopback(addr); got != want {
			t.Errorf("loopback(%q) = %v", addr, got)
		}
	}
}

// narrow is a listener to whose connections little can be written that is not read.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
	}
	return conn, err
}

// A token is asked for, and a server that ends says so after a prompt.
func TestTokenPrompt(t *testing.T) {
	t.Parallel()
	s := share(t, 0, newToken("abc"), prompts)
	g := s.guest()
	g.until(`^token: $`)
	g.send("abc\r\n")
	g.until(prompt)
	s.end()
	if got := g.all(); got != "\nrelaybench: the shell has ended: a test\n" {
		t.Errorf("it is told %q", got)
	}
}

// A client that reads nothing costs a bounded amount, hinders nobody, and is
// told what it missed.
func TestStalledReader(t *testing.T) {
	t.Parallel()
	s := share(t, 0, nil, func(s *server) { s.patience = 2 * time.Second })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.accept(narrow{l}, true)
	s.addr = l.Addr().String()
	g := s.guest()
	if err := g.SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	g.send("# " + strings.Repeat("x", 60_000) + "\n" + strings.Repeat("history\n", 40)) // 2.4 MB
	s.logged("reads nothing: what is printed for it is dropped")
	other := s.guest()
	from := time.Now()
	other.send("status\n")
	other.until("no job is queued\n")
	if took := time.Since(from); took > 10*time.Second { // a moment, on a machine that is not busy
		t.Errorf("another client's status took %v", took)
	}
	got := g.rest()
	if !regexp.MustCompile(`\nrelaybench: \d+ bytes were dropped here, as nothing was read\n`).MatchString(got) {
		t.Errorf("it was not told what it missed: %d bytes came, at the end %q", len(got), got[max(0, len(got)-200):])
	}
}

// A line without an end is refused once it is too long, and costs no more than that.
func TestEndlessLine(t *testing.T) {
	t.Parallel()
	s := share(t, 0, nil, nil)
	g := s.guest()
	part := strings.Repeat("x", 1<<20)
	for range 2 {
		g.send(part)
	}
	g.until("relaybench: line of more than 65536 bytes\n")
	g.send("\nstatus \xc3\xa9\xff\xffx\nstatus\n")
	got := g.rest()
	if strings.Count(got, "stand-in") != 1 || !strings.Contains(got, "relaybench: line is not UTF-8 text\n") || strings.Contains(got, "of more than") {
		t.Errorf("after the end of it: %q", got)
	}
}

// Clients that come, say half of something, and vanish, cost nothing afterwards.
func TestVanishingClients(t *testing.T) {
	s := share(t, 0, nil, nil)
	before := runtime.NumGoroutine()
	var heap runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&heap)
	was := heap.HeapInuse
	halves := []string{"", "stat", "\xff", "\xff\xfa\x18", "status\n", "status\nhelp", greeting + "\n", greeting + "\nh\x00\x00", greeting + "\nh\xff\xff\xff\xff", "delete last\n"}
	other := s.guest()
	other.send("status\n")
	other.until("stand-in")
	for i := range 1000 {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, halves[i%len(halves)]); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := conn.(*net.TCPConn).SetLinger(0); err != nil { // torn down
				t.Fatal(err)
			}
		}
		if i == 500 {
			other.send("status\n")
			other.until("stand-in")
		}
		conn.Close()
	}
	other.Close()
	eventually(t, "left by all clients", func() bool { return s.count() == 0 })
	eventually(t, "back to as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
	runtime.GC()
	runtime.ReadMemStats(&heap)
	if heap.HeapInuse > was+10<<20 {
		t.Errorf("the heap has grown from %d to %d bytes", was, heap.HeapInuse)
	}
}

// Rubbish harms nobody.
func TestRandomBytes(t *testing.T) {
	t.Parallel()
	s := share(t, 1, nil, nil)
	var joined sync.WaitGroup
	for i := range 20 {
		joined.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			b := make([]byte, 100_000)
			for j := range b {
				b[j] = byte(r.Uint32())
			}
			if i%2 == 0 {
				b = append([]byte(greeting+"\n"), b...)
			}
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = conn.Write(b)
			_ = conn.(*net.TCPConn).CloseWrite()
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("rubbish %d is still being worked on", i)
			}
		})
	}
	joined.Wait()
	g := s.guest()
	g.send("reports")
	if got := g.rest(); !strings.Contains(got, "1s") {
		t.Errorf("the report is gone: %q", got)
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

// Whoever is connected when the server ends is told.
func TestServerThatEnds(t *testing.T) {
	t.Parallel()
	s := share(t, 0, nil, nil)
	g := s.guest()
	g.send("status\n")
	g.until("no job is queued\n")
	f := s.frames(hello{})
	s.end()
	if got := g.all(); got != "relaybench: the shell has ended: a test\n" {
		t.Errorf("a TCP client is told %q", got)
	}
	<-f.ended
	if f.err == nil || f.err.Error() != "the shell has ended: a test" {
		t.Errorf("a terminal is told %v", f.err)
	}
	if _, err := os.Stat(socketOf(s.db)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// tied is a client of a test that speaks in frames.
type tied struct {
	*link
	t    testing.TB
	said lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

// frames is a client beside the store.
func (s *shared) frames(h hello) *tied {
	s.t.Helper()
	conn, err := dialLocal(s.db)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := greet(conn, "test", h)
	if err != nil {
		s.t.Fatal(err)
	}
	f := &tied{link: l, t: s.t}
	l.out, l.errs, l.jobs, l.draw = &f.said, &f.said, func(b []byte) { _, _ = f.said.Write(b) }, func(string) {}
	l.start()
	s.t.Cleanup(l.Close)
	return f
}

// do has a line done, and gives what was printed.
func (f *tied) do(line string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := f.line(ctx, line, "", func() {}); err != nil {
		f.t.Fatal(err)
	}
	return f.said.take()
}

func TestFrames(t *testing.T) {
	t.Parallel()
	s := share(t, 1, nil, nil)
	info, err := os.Stat(socketOf(s.db))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	f := s.frames(hello{Asks: true})
	if f.welcome.PID != os.Getpid() || f.prompt != "relaybench> " {
		t.Errorf("welcome %+v", f.welcome)
	}
	if got := f.do("status"); !strings.Contains(got, "stand-in") {
		t.Errorf("status printed %q", got)
	}
	if d, err := f.line(context.Background(), "show nothing; status", "file:7", func() {}); err != nil || commands.Code(d.Code) != commands.CouldNot || d.More || d.Quit {
		t.Errorf("what could not be done: %+v, %v", d, err)
	}
	if got := f.said.take(); !strings.HasPrefix(got, "relaybench: file:7: show: ") || strings.Contains(got, "stand-in") {
		t.Errorf("what could not be done printed %q", got)
	}
	if got := f.do(strings.Repeat("x", 10*commands.MaxLine)); !strings.Contains(got, "line of more than") {
		t.Errorf("a line that is too long printed %q", got)
	}
	if got := f.do("status \xff"); !strings.Contains(got, "not UTF-8") {
		t.Errorf("what is no text printed %q", got)
	}

	f.ask = func(context.Context, string) (string, error) { return "n", nil }
	if got := f.do("delete last"); !strings.Contains(got, "nothing was deleted") {
		t.Errorf("delete, answered no, printed %q", got)
	}
	f.ask = func(context.Context, string) (string, error) { return "", errInterrupted }
	if got := f.do("delete last"); !strings.Contains(got, "interrupted by Ctrl-C") {
		t.Errorf("delete, interrupted, printed %q", got)
	}
	f.ask = func(context.Context, string) (string, error) { return "y", nil }
	if got := f.do("delete last"); !strings.Contains(got, "deleted 1 report") {
		t.Errorf("delete, answered yes, printed %q", got)
	}
	d, err := f.line(context.Background(), "quit", "", func() {})
	if err != nil || !d.Quit {
		t.Errorf("quit: %+v, %v", d, err)
	}

	f = s.frames(hello{Script: true, KeepGoing: true, Format: int(commands.JSON)})
	d, err = f.line(context.Background(), "statsu; status", "-c:1", func() {})
	if got := f.said.take(); err != nil || !d.More || !strings.HasPrefix(got, `{"error":"unknown command`) || !strings.Contains(got, `"relay": "stand-in"`) {
		t.Errorf("a script that keeps going: %+v, %v, %q", d, err, got)
	}

	// Of another version, or no hello.
	for _, tt := range []struct{ sent, want string }{
		{greetingPrefix + "99\n", "take one of the same version"},
		{greeting + "\n" + string(appendFrame(nil, frame{frameLine, []byte("\x00status")})), "no hello came"},
		{greeting + "\n" + string(appendFrame(nil, frame{frameHello, []byte("{")})), "no hello came"},
	} {
		conn, err := dialLocal(s.db)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, tt.sent); err != nil {
			t.Fatal(err)
		}
		if f, err := readFrame(bufio.NewReader(conn)); err != nil || f.kind != frameBye || !strings.Contains(string(f.data), tt.want) {
			t.Errorf("%q was answered %q, %v", tt.sent, f.data, err)
		}
		conn.Close()
	}
}

// A socket that was left is replaced, and a path that is too long for one is no hindrance.
func TestLocalSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if runtime.GOOS == "linux" {
		dir = filepath.Join(dir, strings.Repeat("long", 30))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(dir, "r.db")
	if _, err := dialLocal(db); !isAbsent(err) {
		t.Errorf("no socket: %v", err)
	}
	left, err := listenLocal(socketOf(db))
	if err != nil {
		t.Fatal(err)
	}
	left.(localListener).Listener.Close() // as one that was killed
	// A process that another test is just starting may have it yet.
	eventually(t, "absent, at a socket that nobody listens at", func() bool {
		conn, err := dialLocal(db)
		if err == nil {
			conn.Close()
		}
		return isAbsent(err)
	})
	l, err := listenLocal(socketOf(db))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dialLocal(db)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left in the folder: %v, %v", names, err)
	}
}
