package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"relaybench/envelope"
	"relaybench/harness/relay"
	"relaybench/harness/result"
)

func TestStandInFolder(t *testing.T) { testFolder(t, standIn(t)) }
func TestRealFolder(t *testing.T)    { testFolder(t, realRelay(t)) }

// testFolder wants what SDKs sent to be sent again, from two processes, and accounted for.
func testFolder(t *testing.T, p relay.Program) {
	path, err := filepath.Abs("../envelope/testdata/sdk")
	if err != nil {
		t.Fatal(err)
	}
	for _, knobs := range [][]string{{"encoding=identity"}, {"encoding=zstd", "connections=2x4", "duration=2s", "rate=50"}, {"encoding=gzip"}} {
		t.Run(strings.Join(knobs, " "), func(t *testing.T) {
			r, l := ranFolder(t, p, path, knobs...)
			if r.Pool.Files != 13 || r.Pool.Envelopes != 13 || r.Pool.AgentsSent == 0 || len(l.Kinds) != 5 {
				t.Errorf("%+v, %d kinds", r.Pool, len(l.Kinds))
			}
		})
	}
	plan := planned(t, "mix="+path)
	if _, err := Run(t.Context(), plan, p, Options{limits: quick()}); err == nil || !strings.Contains(err.Error(), "has not been read") {
		t.Errorf("a folder that was not read: %v", err)
	}
}

// ranFolder runs a plan of a folder, 100 sends, and wants a closed ledger.
func ranFolder(t *testing.T, p relay.Program, path string, knobs ...string) (*result.Result, result.Ledger) {
	t.Helper()
	plan := planned(t, append([]string{"mix=" + path, "duration=500ms", "pool=1"}, knobs...)...)
	var err error
	if plan.Folder, err = envelope.ReadFolder(os.DirFS(path), path); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), plan, p, Options{limits: quick()})
	if err != nil {
		t.Fatalf("%v\n%s", err, lastLog(r))
	}
	l := result.LedgerOf(r)
	checkLedger(t, r, l)
	closed(t, r, l, 100)
	return r, l
}

// TestStandInFolderKinds wants kinds that are in no table of ours to be accounted for too.
func TestStandInFolderKinds(t *testing.T) { testFolderKinds(t, standIn(t)) }
func TestRealFolderKinds(t *testing.T)    { testFolderKinds(t, realRelay(t)) }

func testFolderKinds(t *testing.T, p relay.Program) {
	path, err := filepath.Abs("testdata/own")
	if err != nil {
		t.Fatal(err)
	}
	_, l := ranFolder(t, p, path)
	if len(l.Kinds) != 7 {
		t.Errorf("%d kinds, want 7", len(l.Kinds))
	}
}
