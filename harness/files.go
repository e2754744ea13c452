package harness

import "fmt"

// spareFiles are the open files that a run needs beside its connections: the store, logs, the upstream's side of Relay.
const spareFiles = 400

// enoughFiles compares what connections need with the limit of open files.
func enoughFiles(connections int, limit uint64) error {
	if need := uint64(2*connections + spareFiles); need > limit {
		return fmt.Errorf("%d connections need %d open files, and the limit is %d: raise it with ulimit -n %d", connections, need, limit, need)
	}
	return nil
}
