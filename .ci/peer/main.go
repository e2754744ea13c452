//go:build linux

// Peer measures relaybench beside other load generators and servers, for
// .ci/peers. It also plays the parts that are measured: relaybench's own senders
// and upstream, each alone in a process, and a server that only answers.
//
// Its files are built by name: the go command passes over a folder that begins with a dot.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// parts are what a process of this binary may be, by its first argument.
var parts = map[string]func(ctx context.Context, args []string) error{
	"measure":  measure,
	"null":     nullServer,
	"blast":    blast,
	"upstream": serveUpstream,
	"body":     writeBody,
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "peer: started by .ci/peers")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := parts[os.Args[1]](ctx, os.Args[2:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "peer %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
