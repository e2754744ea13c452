package shell_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A store that can take nothing any more when the run is over: the report is in
// a file of its own, which is named, and brought in later.
func TestStoreThatFills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "r.db")
	if code := status(t, relaybench(t, "-db", db, "-c", "test 300ms --rate 20 --mix sessions --pool 10").Run()); code != 5 {
		t.Fatalf("test: exit status %d", code)
	}
	var out bytes.Buffer
	cmd, screen := onTerminal(t, &out, "-db", db, "-c", "test 1s --rate 50 --mix sessions --pool 10 --label kept; status")
	screen.until(`\r\x1b\[Kload …`)
	// From here on it may write only the beginning of any file: of the store, nothing where a report would be.
	const enough = 16 << 10
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: enough, Max: enough}, nil); err != nil {
		t.Skipf("its limits cannot be set here: %v", err)
	}
	shown := screen.rest()
	if code := status(t, cmd.Wait()); code != 4 {
		t.Errorf("exit status %d, want 4", code)
	}
	named := regexp.MustCompile(`relaybench: test: save report: .*: it is in the file "([^"]+)" instead[;\r]`).FindStringSubmatch(shown)
	if named == nil {
		t.Fatalf("no file is named: %q", shown[max(0, len(shown)-500):])
	}
	// Note: that the job is over may find no room either, and then is said beside it.
	if hint := "import " + named[1] + " brings it in, once there is room"; filepath.Dir(named[1]) != dir || !strings.Contains(shown, hint) {
		t.Errorf("the terminal ends without %q in %s: %q", hint, dir, shown[max(0, len(shown)-300):])
	}
	if !strings.Contains(out.String(), "sessions at 50/s for 1s") {
		t.Errorf("the summary is not shown:\n%s", out.String())
	}
	if got := len(listed(t, db)); got != 1 {
		t.Errorf("%d reports are in the store, want 1", got)
	}
	for range 2 {
		if out, err := relaybench(t, "-db", db, "-c", "import '"+named[1]+"'; db check").CombinedOutput(); err != nil {
			t.Errorf("import: %v: %s", err, out)
		}
	}
	all := listed(t, db)
	if len(all) != 2 || all[1]["label"] != "kept" || all[1]["imported"] != "no" {
		t.Errorf("reports after the import: %v", all)
	}
}
