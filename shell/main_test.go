package shell_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"relaybench/harness/blaster"
	"relaybench/harness/relay"
	"relaybench/harness/standin"
	"relaybench/shell"
)

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
	testscript.Main(m, map[string]func(){
		"relaybench": func() { os.Exit(shell.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}
