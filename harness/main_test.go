package harness

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"relaybench/harness/blaster"
	"relaybench/harness/relay"
	"relaybench/harness/standin"
)

// TestMain lets the test binary play the other programs: a run starts them from its own executable.
func TestMain(m *testing.M) {
	switch os.Getenv("RELAYBENCH_ROLE") {
	case "stand-in":
		os.Exit(standin.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	case "sender":
		if err := blaster.SenderMain(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	case "keeper":
		os.Exit(relay.KeeperMain())
	case "bad-relay":
		os.Exit(badRelay())
	case "neighbour":
		os.Exit(neighbourMain())
	case "run": // a whole relaybench, for tests that kill it
		os.Exit(runMain())
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else each program that the race detector watches takes a second to end
	goleak.VerifyTestMain(m)
}
