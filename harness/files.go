package harness

import (
	"fmt"

	"relaybench/harness/plan"
	"relaybench/harness/relay"
)

const (
	// spareFiles are the open files that a process of a run needs beside its
	// connections: the store, logs, the upstream's side of a relay.
	spareFiles = 400
	// usualFiles is what systems let a program open unless it asks for more.
	usualFiles = 1024
)

// filesNeeded is how many files that process of a run has open which has the most.
func filesNeeded(p plan.Plan, form string) int {
	const each = 2 // a sender's connection, and its timer
	all := p.Processes * p.Connections
	own, sender := 0, each*p.Connections
	if p.Processes == 1 {
		own = sender
	}
	if form == relay.FormNone {
		own += all // the upstream's ends
	}
	return max(all, own, sender) + spareFiles // all: at a relay
}

// enoughFiles compares what is needed with the limit of open files.
func enoughFiles(need int, limit uint64) error {
	if uint64(need) > limit {
		return fmt.Errorf("so many connections need %d open files, and the limit is %d: raise it with ulimit -n %d", need, limit, need)
	}
	return nil
}
