// Relaybench load-tests Sentry's Relay on its own, without Sentry, Kafka or
// Redis, and accounts for every item that it sends.
package main

import (
	"context"
	"fmt"
	"os"

	"relaybench/harness/blaster"
	"relaybench/harness/relay"
	"relaybench/harness/standin"
	"relaybench/shell"
)

// faces are what this binary is besides the shell, by the value of
// RELAYBENCH_ROLE with which it starts itself again.
var faces = map[string]func() int{
	relay.RoleStandIn: func() int {
		return standin.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	},
	relay.RoleKeeper: relay.KeeperMain,
	"sender": func() int {
		if err := blaster.SenderMain(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	},
}

func main() {
	if face, ok := faces[os.Getenv(relay.RoleVar)]; ok {
		os.Exit(face())
	}
	os.Exit(shell.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
