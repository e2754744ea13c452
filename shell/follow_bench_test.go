package shell_test

import (
	"bufio"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// The goal for 50 idle clients, and 50 that follow, is under 1% of a core in
// all, and no more lateness of a run than without them. Runs with and without take turns.
func BenchmarkFollowers(b *testing.B) {
	load := 10 * time.Second
	if testing.Short() {
		load = time.Second
	}
	db := filepath.Join(b.TempDir(), "r.db")
	s := serve(b, db)
	defer s.stop()
	its, err := process.NewProcess(int32(s.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	used := func() float64 {
		t, err := its.Times()
		if err != nil {
			b.Fatal(err)
		}
		return t.User + t.System
	}
	// cpu is what a run takes of the server, in seconds, and late its p99 lateness, in nanoseconds.
	run := func(clients int) (cpu, late float64) {
		all := make([]net.Conn, clients)
		for i := range all {
			var err error
			if all[i], err = net.Dial("tcp", s.addr); err != nil {
				b.Fatal(err)
			}
			defer all[i].Close()
		}
		for _, conn := range all {
			if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil { // the banner
				b.Fatal(err)
			}
		}
		before := used()
		s.tell("test " + load.String() + " --rate 50 --mix sessions --pool 10\n")
		for i := range all {
			if i%2 == 0 {
				if _, err := all[i].Write([]byte("follow\n")); err != nil {
					b.Fatal(err)
				}
			}
		}
		s.tell("wait\n")
		r := last(b, db)
		v := r.Metrics["late-p99"].Value
		if v == nil {
			b.Fatal("no late-p99")
		}
		return used() - before, *v
	}
	run(0)
	var alone, among [2]float64
	for range b.N {
		for clients, sum := range map[int]*[2]float64{0: &alone, 100: &among} {
			cpu, late := run(clients)
			sum[0] += cpu
			sum[1] += late
		}
	}
	n := float64(b.N)
	b.ReportMetric(100*(among[0]-alone[0])/n/load.Seconds(), "%core")
	b.ReportMetric(alone[1]/n/1e6, "late-ms-alone")
	b.ReportMetric(among[1]/n/1e6, "late-ms-among-100")
	b.ReportMetric(among[1]/alone[1], "x")
	if got := s.tell("status"); !strings.Contains(got, "done") {
		b.Errorf("status: %s", got)
	}
}
