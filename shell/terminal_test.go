package shell_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// person is at a terminal at which relaybench runs.
type person struct {
	*exec.Cmd
	*tty
	t      testing.TB
	found  *term.State // the terminal, before
	screen *vt
	raw    strings.Builder
}

// sit starts relaybench at a terminal.
func sit(t testing.TB, env []string, args ...string) *person {
	t.Helper()
	p := &person{t: t, tty: openTTY(t), Cmd: relaybench(t, args...), screen: newVT(80, 24)}
	var err error
	if p.found, err = term.GetState(int(p.its.Fd())); err != nil {
		t.Fatal(err)
	}
	p.Env = append(append(p.Env, "PAGER="), env...)
	p.Stdin, p.Stdout, p.Stderr = p.its, p.its, p.its
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// types types what it is given, at once.
func (p *person) types(keys string) {
	p.t.Helper()
	if _, err := p.keyboard.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits until the screen matches.
func (p *person) sees(pattern string) {
	p.t.Helper()
	want := regexp.MustCompile(`(?m)` + pattern)
	timeout := time.After(patience)
	for !want.MatchString(p.screen.String()) {
		select {
		case text := <-p.text:
			p.screen.write(text)
			p.raw.WriteString(text)
		case <-timeout:
			p.t.Fatalf("no %q within %v:\n%s\n%q", pattern, patience, p.screen, p.raw.String())
		}
	}
}

// ends waits for relaybench to end, with an exit status and a terminal as it was.
func (p *person) ends(want int) {
	p.t.Helper()
	if code := status(p.t, p.Wait()); code != want {
		p.t.Errorf("exit status %d, want %d", code, want)
	}
	now, err := term.GetState(int(p.its.Fd()))
	if err != nil {
		p.t.Fatal(err)
	}
	if !reflect.DeepEqual(now, p.found) {
		p.t.Errorf("the terminal is left as %+v, was %+v", now, p.found)
	}
	p.its.Close() // the last of it: what is written is read, and then there is no more
	for text := range p.text {
		p.screen.write(text)
		p.raw.WriteString(text)
	}
}

// At the end of what is seen: a prompt, with nothing typed.
const prompted = `^relaybench> ▏$\n\z`

func TestInteractive(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "r.db")
	p := sit(t, nil, "-db", db, "-listen", "off", "-interactive")
	p.sees(`\Arelaybench .*\n(?s:.)*^type help(?s:.)*` + prompted)
	p.types("stat\t\r")
	p.sees(`^relaybench> status\nrelay +stand-in\n(?s:.)*no job is queued\n` + prompted)
	p.types("help\b\b\x1b[Dx\x1b[C\x1b[1~a\x1b[4~z")
	p.sees(`^relaybench> ahxez▏$`)
	p.types("\x03")
	p.sees(`^relaybench> ahxez\^C\n` + prompted)
	p.types("\x1b[A")
	p.sees(`^relaybench> status▏$`)
	p.types(" --xx\r")
	p.sees(`unknown flag --xx(?s:.)*` + prompted)
	p.types("\x12tus")
	p.sees(`^relaybench> sta▏tus --xx\n.*bck-i-search: tus`)
	p.types("\x03\x03")
	p.sees(`\^C\n` + prompted)
	// None of these does harm: Ctrl-Z, Ctrl-S, Ctrl-Q, Ctrl-\, Ctrl-@, Alt-T, Ctrl-V, Delete on an empty line.
	p.types("\x1a\x13\x11\x1c\x00\x1b\x14\x16\x1b[3~ab\x1b[D\x1b[3~c")
	p.sees(`^relaybench> ac▏$`)
	p.types("\x0c")
	p.sees(`^relaybench> ac▏$`)
	p.types("\x15 explain test 1s --rate 1\r") // with a blank before it
	p.sees(`nothing was run|1 run|^duration`)
	p.types("\x1b[A")
	p.sees(`^relaybench> status --xx▏$`)
	p.types("\x15tes\x04\t")
	p.sees(`^relaybench> test ▏$`)
	p.types("\x15\x04")
	p.ends(0)
}

// What a job says appears above the line that is typed, which stays as it was.
func TestJobWhileTyping(t *testing.T) {
	t.Parallel()
	p := sit(t, nil, "-db", filepath.Join(t.TempDir(), "r.db"), "-listen", "off", "-interactive")
	p.sees(prompted)
	p.types("test 400ms --rate 50 --mix sessions --pool 10\r")
	p.sees(`^j1 queued(?s:.)*` + prompted)
	long := "collate relay-branch mix=sessions 'label~a b' --metrics cpu-per-envelope,through-p99,"
	p.types(long + "\x1b[D\x1b[D")
	p.sees(`^j1 (done|failed) .*\nrelaybench> ` + long[:68] + `\n` + long[68:len(long)-2] + `▏9,\n\z`)
	p.types("x\x1b[Cy")
	p.sees(`^` + long[68:len(long)-2] + `x9y▏,$`)
	p.types("\x03\x04")
	p.ends(0)
}

// What was typed ahead of a question answers it, and nothing is lost.
func TestPaste(t *testing.T) {
	t.Parallel()
	p := sit(t, nil, "-db", filepath.Join(t.TempDir(), "r.db"), "-listen", "off", "-interactive")
	p.types("test 400ms --rate 20 --mix sessions --pool 10; wait\rdelete last\ny\nstatus\ndelete none\nexplain test 1s\n")
	p.sees(`deleted 1 report: (?s:.)*^relaybench> status\n(?s:.)*^reports +0\n(?s:.)*no report(?s:.)*` + prompted)
	if n := strings.Count(p.screen.String(), "relaybench> status\n"); n != 1 {
		t.Errorf("status was done %d times", n)
	}
	p.types("quit\r")
	p.ends(0)
}

func TestCtrlC(t *testing.T) {
	t.Parallel()
	p := sit(t, nil, "-db", filepath.Join(t.TempDir(), "r.db"), "-listen", "off", "-interactive")
	p.sees(prompted)
	p.types("test 1h --rate 50 --mix sessions --pool 10 --drain 1h -E standin.capacity=1\rfollow\rstatus # typed ahead, and taken back\r")
	p.sees(`\ds, \S+ left  sent`)
	p.types("\x03")
	p.sees(`drain \ds`)
	p.types("\x03") // the relay has to end at once, or this goes on for an hour
	p.sees(`^j1 cancelled after .* interrupted by Ctrl-C(?s:.)*` + prompted)
	if strings.Contains(p.screen.String(), "no job is queued") {
		t.Errorf("what was typed ahead of Ctrl-C was done")
	}
	// A job in the background is asked about.
	p.types("test 1h --rate 50 --mix sessions --pool 10\r")
	p.sees(`^j2 queued`)
	p.types("\x04")
	p.sees(`^j2 \(test .*\) is \w+: leave, and end that\?\s+y/N\n\? ▏`)
	p.types("n\r")
	p.sees(`^\? n\n` + prompted)
	p.types("\x04")
	p.sees(`\? ▏\n\z`)
	p.types("\x03")
	p.sees(`\? \^C\n` + prompted)
	p.types("\x04y\r")
	p.ends(0)
	if !strings.Contains(p.screen.String(), "j2 cancelled") {
		t.Errorf("what became of the job is not said:\n%s", p.screen)
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	p := sit(t, nil, "-db", filepath.Join(t.TempDir(), "r.db"), "-listen", "off", "-interactive")
	p.sees(prompted)
	p.types("explain test 10s")
	p.sees(`10s▏$`)
	p.screen = newVT(50, 24)
	if err := pty.Setsize(p.its, &pty.Winsize{Rows: 24, Cols: 50}); err != nil {
		t.Fatal(err)
	}
	p.sees(`^relaybench> explain test 10s▏$`) // it is drawn again
	p.types(" --rate 200 --mix errors=3,logs=1")
	p.sees(`^relaybench> explain test 10s --rate 200 --mix erro\nrs=3,logs=1▏$`)
	p.types("\x15help test\r")
	p.sees(prompted)
	for l := range strings.Lines(p.screen.String()) {
		if n := len([]rune(strings.TrimRight(l, "\n"))); n > 50 {
			t.Errorf("a line of %d columns: %q", n, l)
		}
	}
	p.types("\x04")
	p.ends(0)
}

// What is longer than the screen goes to a pager, which has the terminal for itself.
func TestPager(t *testing.T) {
	t.Parallel()
	p := sit(t, []string{`PAGER=sed "s/^/paged: /"; read answer <&1; echo "read $answer"`},
		"-db", filepath.Join(t.TempDir(), "r.db"), "-listen", "off", "-interactive")
	p.sees(prompted)
	p.types("help all\r")
	p.sees(`^paged: +exit +leave\n(?s:.)*▏`)
	p.types("q\n")
	p.sees(`^read q\n` + prompted)
	p.types("status\r")
	p.sees(`^no job is queued\n` + prompted)
	p.types("quit\r")
	p.ends(0)
}

// A terminal that knows no escape sequences gets none.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	p := sit(t, []string{"TERM=dumb"}, "-db", filepath.Join(t.TempDir(), "r.db"), "-listen", "off", "-interactive", "-color", "auto")
	p.sees(prompted)
	p.types("status\n")
	p.sees(`^no job is queued\n` + prompted)
	p.types("test 400ms --rate 20 --mix sessions --pool 10\n")
	p.sees(`^j1 (done|failed) .*\n` + prompted)
	p.types("stat")
	p.sees(`stat▏`)
	p.types("\x03")
	p.sees(`stat\^C\n` + prompted)
	p.types("test 1h --rate 20 --mix sessions --pool 10; wait\n")
	p.sees(`^j2 queued`)
	p.types("\x03")
	p.sees(`^j2 cancelled(?s:.)*` + prompted)
	p.types("\x04")
	p.ends(0)
	if strings.Contains(p.raw.String(), "\x1b") {
		t.Errorf("it was sent an escape: %q", p.raw.String())
	}
}

// Lines are remembered for the next time, but for those with a blank before them and answers.
func TestHistoryFile(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	sitting := func(keys ...string) {
		p := sit(t, []string{"XDG_DATA_HOME=" + data}, "-listen", "off", "-interactive")
		for _, k := range keys {
			p.sees(prompted)
			p.types(k)
		}
		p.ends(0)
	}
	sitting("status\r", "help codes\r", " secret\r", "status\r", "\r", "\x1b[A\x1b[A\r", "quit\r")
	sitting("\x1b[A\x1b[A\x1b[A\r", "\x04")
	file := filepath.Join(data, "relaybench", "history")
	text, err := os.ReadFile(file)
	if want := "help codes\nquit\nstatus\n"; err != nil || string(text) != want {
		t.Errorf("history %q, %v; want %q", text, err, want)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestInteractiveNeedsATerminal(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	cmd := relaybench(t, "-interactive", "-db", filepath.Join(t.TempDir(), "r.db"))
	cmd.Stderr = &stderr
	if code := status(t, cmd.Run()); code != 3 || !strings.Contains(stderr.String(), "-interactive needs a terminal\nhint: ") {
		t.Errorf("exit status %d, stderr %q", code, stderr.String())
	}
}

// A signal ends it as it should be: the run is saved, the terminal as it was.
func TestInteractiveTerminated(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			db := filepath.Join(t.TempDir(), "r.db")
			p := sit(t, nil, "-db", db, "-listen", "off", "-interactive")
			p.sees(prompted)
			p.types("test 1h --rate 50 --mix sessions --pool 10; follow\r")
			p.sees(`\ds, \S+ left  sent`)
			if err := p.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			p.ends(130)
			if r := last(t, db); !r.marked("cancelled") || r.Run.Step != "load" {
				t.Errorf("report %+v", r)
			}
			if names, err := filepath.Glob(db + ".sock"); err != nil || len(names) > 0 {
				t.Errorf("left: %v, %v", names, err)
			}
		})
	}
}

// A half-typed line is not done when the terminal goes away.
func TestTerminalThatGoes(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "r.db")
	if code := status(t, relaybench(t, "-db", db, "-c", "test 400ms --rate 20 --mix sessions --pool 10").Run()); code != 0 && code != 5 {
		t.Fatalf("exit status %d", code)
	}
	p := sit(t, nil, "-db", db, "-listen", "off", "-interactive")
	p.sees(prompted)
	p.types("delete last --yes")
	p.sees(`--yes▏$`)
	p.its.Close()
	p.keyboard.Close()
	if code := status(t, p.Wait()); code != 0 && code != 130 {
		t.Errorf("exit status %d", code)
	}
	last(t, db)
}
