//go:build ignore

// Ledger reads a report as JSON from standard input and checks that its ledger
// closes: as many sends as the argument says were due, sent and arrived.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

func main() {
	want, err := strconv.ParseUint(os.Args[1], 10, 64)
	if err != nil {
		fail(err)
	}
	var report struct {
		Ledger struct {
			Total struct {
				Sends struct {
					Due, Sent, Accepted, Arrived, Lost, Surplus, Unaccounted *uint64
				}
			}
		}
	}
	if err := json.NewDecoder(os.Stdin).Decode(&report); err != nil {
		fail(err)
	}
	s := report.Ledger.Total.Sends
	for _, line := range []struct {
		name      string
		got       *uint64
		wantValue uint64
	}{
		{"due", s.Due, want}, {"sent", s.Sent, want}, {"accepted", s.Accepted, want}, {"arrived", s.Arrived, want},
		{"lost", s.Lost, 0}, {"surplus", s.Surplus, 0}, {"unaccounted", s.Unaccounted, 0},
	} {
		switch {
		case line.got == nil:
			fail(fmt.Errorf("%s is not known", line.name))
		case *line.got != line.wantValue:
			fail(fmt.Errorf("%s is %d, want %d", line.name, *line.got, line.wantValue))
		}
		fmt.Printf("%s %d\n", line.name, *line.got)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "ledger:", err)
	os.Exit(1)
}
