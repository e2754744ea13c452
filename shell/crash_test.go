package shell_test

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// A server that is killed leaves no relay, and the next one says what it was doing.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	s := serve(t, filepath.Join(t.TempDir(), "r.db"))
	got := s.tell("name somebody; test 1h --rate 20 --mix sessions --pool 10; test 2h; relay use\n")
	if !strings.Contains(got, "j2 queued") {
		t.Fatalf("%q", got)
	}
	var relays []*process.Process
	for deadline := time.Now().Add(patience); len(relays) < 2; { // the keeper and the stand-in
		relays = children(t, s.Process.Pid)
		if time.Now().After(deadline) {
			t.Fatalf("only %v run below the server", relays)
		}
	}
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(s.log)
	_ = s.Wait()
	for _, p := range relays {
		for deadline := time.Now().Add(patience); ; {
			if runs, err := p.IsRunning(); err == nil && !runs {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("process %d goes on", p.Pid)
			}
		}
	}
	if _, err := os.Stat(s.db + ".sock"); err != nil {
		t.Fatalf("the socket of the one that was killed: %v", err)
	}
	s = &service{t: t, db: s.db, Cmd: relaybench(t, "-db", s.db, "-listen", "127.0.0.1:0")}
	stderr, err := s.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	s.log = bufio.NewReader(stderr)
	s.logged(`^relaybench: j1 of somebody was interrupted .*test 1h`)
	s.logged(`^relaybench: j2 of somebody was waiting .*test 2h`)
	s.addr = s.logged(`^relaybench: a shared shell at (\S+)$`)
	if got := outcomeOf(t, relaybench(t, "-db", s.db, "-connect", "-c", "status")); got.code != 0 || !strings.Contains(got.out, "no job is queued") {
		t.Errorf("the next one: %+v", got)
	}
	s.stop()
}

// children are the processes below one.
func children(t *testing.T, pid int) (all []*process.Process) {
	t.Helper()
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		t.Fatal(err)
	}
	for todo := []*process.Process{p}; len(todo) > 0; todo = todo[1:] {
		below, err := todo[0].Children()
		if err != nil { // it has none, or has ended
			continue
		}
		all, todo = append(all, below...), append(todo, below...)
	}
	return all
}
