package shell_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// service is a shared shell without a terminal.
type service struct {
	*exec.Cmd
	t    testing.TB
	db   string
	addr string
	log  *bufio.Reader
}

// serve starts a shared shell of the store at db.
func serve(t testing.TB, db string, args ...string) *service {
	t.Helper()
	s := &service{t: t, db: db, Cmd: relaybench(t, append([]string{"-db", db, "-listen", "127.0.0.1:0"}, args...)...)}
	stderr, err := s.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	s.log = bufio.NewReader(stderr)
	s.addr = s.logged(`^relaybench: a shared shell at (\S+)$`)
	return s
}

// logged waits for a line of the log, and gives its first group.
func (s *service) logged(pattern string) string {
	s.t.Helper()
	want := regexp.MustCompile(pattern)
	var log strings.Builder
	for {
		l, err := s.log.ReadString('\n')
		log.WriteString(l)
		if m := want.FindStringSubmatch(strings.TrimSuffix(l, "\n")); m != nil {
			return m[len(m)-1]
		}
		if err != nil {
			s.t.Fatalf("%v without %q in the log: %s", err, pattern, log.String())
		}
	}
}

// stop ends it as a service is ended.
func (s *service) stop() {
	s.t.Helper()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	rest, _ := io.ReadAll(s.log)
	if code := status(s.t, s.Wait()); code != 0 {
		s.t.Errorf("exit status %d of the service, want 0: %s", code, rest)
	}
}

// tell sends text over TCP, half-closes, and gives the answer.
func (s *service) tell(text string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		s.t.Fatal(err)
	}
	b, err := io.ReadAll(conn)
	if err != nil {
		s.t.Fatalf("%v after %q", err, b)
	}
	return string(b)
}

// outcome is what a process printed, and how it ended.
type outcome struct {
	out, errs string
	code      int
}

func outcomeOf(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	code := status(t, cmd.Run())
	return outcome{out.String(), errs.String(), code}
}

// A script against a store that a server holds goes through it, and is as it
// would be without.
func TestScriptThroughServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, script := filepath.Join(dir, "r.db"), filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("status\n\nstatsu; status\nshow last\nset color\nexplain test 1s --rate 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		stdin string
		args  []string
	}{
		{"", []string{"-c", "status; help codes"}},
		{"", []string{"-c", "status --json"}},
		{"", []string{"-csv", "-c", "status"}},
		{"", []string{"-json", "-c", "show last"}},
		{"", []string{"-f", script}},
		{"", []string{"-keep-going", "-f", script}},
		{"status\r\nexplain test 1s\nquit\nstatus", nil},
		{"", []string{"-c", ""}},
		{"", nil},
		{"delete last\ny\n", nil},
		{"", []string{"-c", "test 1s --rate x"}},
		{"", []string{"-c", "status \"x"}},
		{"", []string{"-color", "always", "-c", "help test; status"}},
	}
	run := func(stdin string, args []string) outcome {
		cmd := relaybench(t, append([]string{"-db", db}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		return outcomeOf(t, cmd)
	}
	var want []outcome
	for _, tt := range tests {
		want = append(want, run(tt.stdin, tt.args))
	}
	s := serve(t, db)
	for i, tt := range tests {
		if got := run(tt.stdin, tt.args); got != want[i] {
			t.Errorf("%q with %q through a server: %+v, want %+v", tt.args, tt.stdin, got, want[i])
		}
	}
	if got := run("", []string{"-host", "x", "-c", "status"}); got.code != 3 || !strings.Contains(got.errs, "-host") {
		t.Errorf("-host through a server: %+v", got)
	}

	// A run, with its verdict; a relative path is of the folder that the script runs in.
	cmd := relaybench(t, "-db", "r.db", "-c", "test 400ms --rate 20 --mix sessions --pool 10; dump out --mix sessions -n 2")
	cmd.Dir = dir
	if got := outcomeOf(t, cmd); got.code != 5 || !strings.Contains(got.out, "sessions at 20/s for 400ms") || strings.Contains(got.errs, "relaybench: ") {
		t.Errorf("a run through a server: %+v", got)
	}
	if files, err := os.ReadDir(filepath.Join(dir, "out")); err != nil || len(files) != 2 {
		t.Errorf("dumped: %v, %v", files, err)
	}
	s.stop()
	if got := run("", []string{"-c", "status"}); got.code != 0 || !strings.Contains(got.out, "reports  1") {
		t.Errorf("status without a server: %+v", got)
	}
}

// Ctrl-C of a script through a server cancels its job, and whoever kills the script cancels nothing.
func TestSignalsThroughServer(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "r.db")
	s := serve(t, db)
	var out bytes.Buffer
	cmd, screen := onTerminal(t, &out, "-db", db, "-c", "test 1h --rate 50 --mix sessions --pool 10; status")
	screen.until(`\r\x1b\[K\d+s, \S+ left  sent \d+/s`)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	shown := screen.rest()
	if code := status(t, cmd.Wait()); code != 130 || !strings.HasSuffix(shown, "relaybench: test: interrupted by SIGINT\r\n") || !strings.Contains(out.String(), "mark cancelled: interrupted by SIGINT") {
		t.Errorf("exit status %d after %q:\n%s", code, shown[max(0, len(shown)-300):], out.String())
	}

	cmd, screen = onTerminal(t, &out, "-db", db, "-c", "test 2s --rate 50 --mix sessions --pool 10")
	screen.until(`\r\x1b\[K\d+s, \S+ left  sent \d+/s`)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := s.tell("wait\nreports\n"); !strings.Contains(got, "  2s  ") {
		t.Errorf("the job of a script that was killed is not done: %q", got)
	}
	s.stop()
}

// A store that is held by a process that serves no shell: who holds it, and how to talk to it.
func TestHeldStore(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "it's r.db")
	holder, stdin := holding(t, db)
	held := fmt.Sprintf("held by process %d", holder.Process.Pid)
	hint := "hint: relaybench -db '" + strings.ReplaceAll(db, "'", `'\''`) + "' -connect talks to it"
	for _, args := range [][]string{{"-c", "status"}, {"-listen", "127.0.0.1:0"}} {
		got := outcomeOf(t, relaybench(t, append([]string{"-db", db}, args...)...))
		if got.code != 4 || !strings.Contains(got.errs, held) || !strings.Contains(got.errs, hint) {
			t.Errorf("%v: %+v, want %q and %q in it", args, got, held, hint)
		}
	}
	p := sit(t, nil, "-db", db, "-interactive", "-listen", "off")
	p.sees(`is held by`)
	p.ends(4)
	got := outcomeOf(t, relaybench(t, "-db", db, "-connect", "-c", "status"))
	if got.code != 4 || !strings.Contains(got.errs, "relaybench: connect: no process serves a shell of ") {
		t.Errorf("-connect: %+v", got)
	}
	stdin.Close()
	if code := status(t, holder.Wait()); code != 0 {
		t.Errorf("exit status of the holder %d", code)
	}
}

// Two terminals, one of them in another process; a job's output reaches its owner.
func TestConnect(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "r.db")
	host := sit(t, nil, "-db", db, "-interactive", "-listen", "127.0.0.1:0")
	host.sees(`^relaybench: a shared shell at \S+\n` + prompted)
	guest := sit(t, nil, "-db", db, "-connect")
	guest.sees(`\Arelaybench .*\n(?s:.)*` + prompted)
	guest.types("stat\t\r")
	guest.sees(`^no job is queued\n` + prompted)
	guest.types("statsu\r")
	guest.sees(`^relaybench: unknown command "statsu"\nhint: did you mean status\?\n` + prompted)
	guest.types("test 400ms --rate 20 --mix sessions --pool 10\rreports mix")
	guest.sees(`^j1 done .*\nrelaybench> reports mix▏\n\z`)
	guest.types("\x15delete last\ry\r")
	guest.sees(`deleted 1 report(?s:.)*` + prompted)
	guest.types("test 1h --rate 20 --mix sessions --pool 10; follow\r")
	guest.sees(`\ds, \S+ left  sent`)
	host.types("status\r")
	host.sees(`test 1h`)
	guest.types("\x03")
	guest.sees(`^j2 cancelled (?s:.)*` + prompted)
	guest.types("test 1h --rate 20 --mix sessions --pool 10\r")
	guest.sees(`^j3 queued`)
	guest.types("\x04")
	guest.ends(0)
	if !strings.Contains(guest.screen.String(), "your job goes on") {
		t.Errorf("what becomes of the job is not said:\n%s", guest.screen)
	}
	guest = sit(t, nil, "-db", db, "-connect")
	guest.sees(prompted)
	guest.types("cancel j3\r")
	guest.sees(`^j3, of terminal(?s:.)*` + prompted)
	guest.types("half a li")
	guest.sees(`li▏`)
	host.types("\x15\x04")
	host.sees(`others are connected: 1: leave, and end that\? y/N ▏`)
	host.types("y\r")
	host.ends(0)
	guest.sees(`^relaybench: the shell has ended: quit\n`)
	guest.ends(4)
}

// The address may follow -connect, and flags may follow it.
func TestConnectToAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, filepath.Join(dir, "r.db"), "-token-file", token)
	got := outcomeOf(t, relaybench(t, "-connect", s.addr, "-token-file", token, "-c", "status; dump x"))
	if got.code != 3 || !strings.Contains(got.out, "stand-in") || !strings.Contains(got.errs, "is refused") {
		t.Errorf("as a remote client: %+v", got)
	}
	p := sit(t, nil, "-token-file", token, "-connect="+s.addr)
	p.sees(prompted)
	p.types("name somebody\rtest 1h\rstatus\r")
	p.sees(`somebody`)
	p.types("cancel\rquit\r")
	p.ends(0)
	got = outcomeOf(t, relaybench(t, "-connect", s.addr, "-c", "status"))
	if got.code != 4 || !strings.Contains(got.errs, "a token is demanded") {
		t.Errorf("without a token: %+v", got)
	}
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	go func() { // ends with the listener
		for {
			conn, err := web.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.0 400 Bad Request\r\n\r\n")
			conn.Close()
		}
	}()
	got = outcomeOf(t, relaybench(t, "-connect", web.Addr().String(), "-c", "status"))
	if got.code != 4 || !strings.Contains(got.errs, "relaybench: connect: ") {
		t.Errorf("to something else: %+v", got)
	}
	s.stop()
}

// A client that piped its lines waits for its job where it says so; one that tears its connection down stops none.
func TestJobsOverTCP(t *testing.T) {
	t.Parallel()
	s := serve(t, filepath.Join(t.TempDir(), "r.db"))
	if got := s.tell("test 400ms --rate 20 --mix sessions --pool 10; wait; show last"); !regexp.MustCompile(`(?s)j1 queued.*mark stand-in.*j1 done .*mark stand-in.*\n$`).MatchString(got) {
		t.Errorf("a test that is waited for: %q", got)
	}
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "test 1s --rate 20 --mix sessions --pool 10; wait\n"); err != nil {
		t.Fatal(err)
	}
	until(t, bufio.NewReader(conn), "j2 queued")
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if got := s.tell("status; wait j2; reports\n"); !strings.Contains(got, "  1s  ") {
		t.Errorf("the job of a client that is gone: %q", got)
	}
	// A client that is interrupted, and one that is told of the end.
	conn, err = net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "test 1h --rate 20 --mix sessions --pool 10; wait\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	until(t, r, "j3 queued")
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{"relaybench: the shell has ended: SIGTERM\n", "interrupted by SIGTERM", "j3 cancelled"} {
		if !strings.Contains(string(rest), want) {
			t.Errorf("a client is not told %q: %q", want, rest)
		}
	}
	if code := status(t, s.Wait()); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// until reads lines up to one that has some text in it.
func until(t *testing.T, r *bufio.Reader, text string) {
	t.Helper()
	for {
		l, err := r.ReadString('\n')
		if strings.Contains(l, text) {
			return
		}
		if err != nil {
			t.Fatalf("%v before %q", err, text)
		}
	}
}

// A port that is taken is a warning at a terminal, and an error of a service.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	db := filepath.Join(t.TempDir(), "r.db")
	got := outcomeOf(t, relaybench(t, "-db", db, "-listen", addr))
	if got.code != 4 || !strings.HasPrefix(got.errs, "relaybench: listen "+addr+": ") {
		t.Errorf("a service: %+v", got)
	}
	p := sit(t, nil, "-db", db, "-listen", addr, "-interactive")
	p.sees(`^relaybench: listen ` + addr + `: .*in use(?s:.)*` + prompted)
	p.types("quit\r")
	p.ends(0)
}
