package commands

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"relaybench/harness/relay"
	"relaybench/harness/standin"
)

// TestMain lets the test binary play the programs that relaybench starts from its own executable.
func TestMain(m *testing.M) {
	switch os.Getenv(relay.RoleVar) {
	case relay.RoleStandIn:
		os.Exit(standin.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	case relay.RoleKeeper:
		os.Exit(relay.KeeperMain())
	}
	// The race detector sleeps a second when a process ends, and there are several that do.
	if os.Getenv("GORACE") == "" {
		if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
