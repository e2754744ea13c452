package store_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"relaybench/store"
	"relaybench/store/storetest"
)

// saverPath, in the environment, makes this test binary save reports to a store without end.
const saverPath = "RELAYBENCH_TEST_SAVE_TO"

func TestMain(m *testing.M) {
	if path := os.Getenv(saverPath); path != "" {
		fmt.Fprintln(os.Stderr, saveForEver(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// saveForEver says each id once its report is saved.
func saveForEver(path string) error {
	db, err := store.Open(path)
	if err != nil {
		return err
	}
	for seconds := 1; ; seconds = seconds%60 + 1 {
		r := storetest.Report(seconds)
		if err := db.Save(r); err != nil {
			return err
		}
		if _, err := fmt.Println(r.ID); err != nil {
			return err
		}
	}
}

// Killed at any moment: every report is whole or absent, none that was said to be saved is absent.
func TestKilledWhileSaving(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relaybench.db")
	said := 0
	for range 20 {
		ids := saveAndKill(t, path, rand.IntN(20), time.Duration(rand.Int64N(int64(3*time.Millisecond))))
		said += len(ids)
		db, err := store.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if r, err := db.Get(id); err != nil || r.ID != id {
				t.Errorf("said to be saved: got %v, %v, want %s", r, err, id)
			}
		}
		if err := db.Check(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if said == 0 {
		t.Error("no report was saved before a kill")
	}
}

// saveAndKill lets a process save to the store at path, kills it after so many
// reports and a while, and gives the ids that it said.
func saveAndKill(t *testing.T, path string, reports int, then time.Duration) (ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), saverPath+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	lines := bufio.NewScanner(out)
	for {
		if !killed && len(ids) >= reports {
			<-time.After(then) // the moment of the kill, not a wait for anything
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			killed = true
		}
		if !lines.Scan() {
			break
		}
		ids = append(ids, lines.Text())
	}
	if err := cmd.Wait(); err == nil || !killed {
		t.Fatalf("the saving process ended by itself: %v", err)
	}
	return ids
}
