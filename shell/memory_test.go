package shell_test

import (
	"io"
	"net"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// What a crowd of clients took, the process gives back.
func TestMemoryAfterACrowd(t *testing.T) {
	t.Parallel()
	if raced() {
		t.Skip("the race detector gives nothing back")
	}
	s := serve(t, filepath.Join(t.TempDir(), "r.db"))
	its, err := process.NewProcess(int32(s.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	resident := func() uint64 {
		m, err := its.MemoryInfo()
		if err != nil {
			t.Fatal(err)
		}
		return m.RSS
	}
	crowd := func() (most uint64) {
		var all []net.Conn
		for range 300 {
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, conn)
			if _, err := io.WriteString(conn, "help test\nhelp stat"); err != nil {
				t.Fatal(err)
			}
		}
		s.tell("status\n")
		most = resident()
		for _, conn := range all {
			conn.Close()
		}
		return most
	}
	crowd() // what a first one takes for good: code, and what the race detector knows of it
	was := resident()
	for range 2 {
		most := crowd()
		for deadline := time.Now().Add(patience); resident() > was+10<<20; {
			if s.tell("status\n"); time.Now().After(deadline) {
				t.Fatalf("it had %d bytes, %d with a crowd, and has %d", was, most, resident())
			}
		}
	}
	s.stop()
}

// raced says whether the race detector is in this binary.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" && s.Value == "true" {
			return true
		}
	}
	return false
}
