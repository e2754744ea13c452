package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A run needs a loopback address, and IPv6's will do.
func TestIPv6Alone(t *testing.T) {
	const alone = "ip link set lo up && ip addr del 127.0.0.1/8 dev lo"
	if out, err := exec.Command("unshare", "-rn", "sh", "-c", alone).CombinedOutput(); err != nil {
		t.Skipf("needs a network of its own (unshare -rn, ip): %v %s", err, out)
	}
	cmd := relaybench(t, "-db", t.TempDir()+"/r.db", "-c", "test 1s --rate 20 --statsd on --connections 2x1; show last ledger")
	named := filepath.Join(t.TempDir(), cmd.Args[0])
	if err := os.Symlink(cmd.Path, named); err != nil {
		t.Fatal(err)
	}
	cmd.Args = append([]string{"unshare", "-rn", "sh", "-c", alone + ` && exec "$0" "$@"`, named}, cmd.Args[1:]...)
	var err error
	if cmd.Path, err = exec.LookPath("unshare"); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if code := status(t, cmd.Run()); code != 5 { // short
		t.Fatalf("got exit status %d, want 5\n%s", code, &out)
	}
	if !strings.Contains(out.String(), "all sends      20    20        20        0       0       20         0            0") {
		t.Errorf("got no ledger of 20 sends that arrived:\n%s", &out)
	}
}
