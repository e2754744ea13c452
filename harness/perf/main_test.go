package perf

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// fakeVar makes the test binary play perf, in the manner that it names.
const fakeVar = "RELAYBENCH_FAKE_PERF"

func TestMain(m *testing.M) {
	if manner := os.Getenv(fakeVar); manner != "" {
		os.Exit(fakePerf(manner, os.Args[1:]))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else each fake that the race detector watches takes a second to end
	goleak.VerifyTestMain(m)
}

// fakePerf is a perf that records testdata/relay-dwarf.txt whatever it attaches to.
func fakePerf(manner string, args []string) int {
	if _, err := os.Stdin.Read(make([]byte, 1)); err != io.EOF {
		fmt.Fprintln(os.Stderr, "perf was given a standard input")
		return 1
	}
	if len(args) == 0 {
		return 129
	}
	output := func(flag string) string { return args[slices.Index(args, flag)+1] }
	switch args[0] {
	case "--version":
		if manner == "missing" {
			fmt.Fprintln(os.Stderr, "WARNING: perf not found for kernel 6.1.0")
			return 2
		}
		fmt.Println("perf version 6.1.187")
		return 0
	case "record":
		if manner == "old" {
			fmt.Fprintln(os.Stderr, "  Error: unknown option `control'\n\n Usage: perf record")
			return 129
		}
		if manner == "mute" || manner == "mute once" && os.Remove(os.Getenv(fakeVar+"_ONCE")) == nil {
			return 255
		}
		if manner == "denied" {
			fmt.Fprintln(os.Stderr, "Error:\nAccess to performance monitoring and observability operations is limited.")
			return 255
		}
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, syscall.SIGINT)
		orders, answers := bufio.NewScanner(os.NewFile(3, "orders")), os.NewFile(4, "answers")
		for n := 0; n < 3 && orders.Scan(); n++ {
			if n == 1 && manner == "dies" {
				fmt.Fprintln(os.Stderr, "perf: Segmentation fault")
				return 139
			}
			if want := []string{"disable", "enable", "disable"}[n]; orders.Text() != want {
				fmt.Fprintf(os.Stderr, "got %q, want %q\n", orders.Text(), want)
				return 1
			}
			if manner == "deaf" {
				time.Sleep(time.Minute)
			}
			io.WriteString(answers, "ack\n\x00")
		}
		<-interrupted
		if err := os.WriteFile(output("--output"), recording(24, 3), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "script":
		if manner == "damaged" {
			fmt.Fprintln(os.Stderr, "incompatible file format (rerun with -v to learn more)")
			return 1
		}
		text, err := os.ReadFile(os.Getenv(fakeVar + "_SCRIPT"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		os.Stdout.Write(text)
		if manner == "endless" {
			time.Sleep(time.Minute)
		}
		return 0
	}
	return 129
}
