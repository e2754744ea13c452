package shell_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"relaybench/harness/blaster"
	"relaybench/harness/relay"
	"relaybench/harness/standin"
	"relaybench/shell"
)

// goRace are settings of the race detector, which sleeps a second when a
// process ends, and there are many that do.
const goRace = "GORACE"

// TestMain lets the test binary play relaybench in scripts, and the programs
// that relaybench starts from its own executable.
func TestMain(m *testing.M) {
	switch os.Getenv(relay.RoleVar) {
	case relay.RoleStandIn:
		os.Exit(standin.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	case relay.RoleKeeper:
		os.Exit(relay.KeeperMain())
	case "sender":
		if err := blaster.SenderMain(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Tests here mostly wait for runs that last a second or two. The command line, parsed later, still counts.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	if os.Getenv(goRace) == "" {
		if err := os.Setenv(goRace, "atexit_sleep_ms=0"); err != nil {
			panic(err)
		}
	}
	testscript.Main(leakless{m}, map[string]func(){
		"relaybench": func() { os.Exit(shell.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// leakless are tests that leave no goroutine behind.
type leakless struct{ *testing.M }

func (l leakless) Run() int {
	code := l.M.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}
