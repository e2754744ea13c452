package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relaybench/store"
	"relaybench/store/storetest"
)

// childRole, in the environment, makes this test binary one of children; its argument is a store's path.
const childRole = "RELAYBENCH_TEST_STORE_CHILD"

// children are what a process of this test binary may do to a store. Each says
// a line for whatever it has done, and ends with an error or a kill.
var children = map[string]func(db *store.DB, say func(what, id string) error) error{
	"save": func(db *store.DB, say func(what, id string) error) error {
		for seconds := 1; ; seconds = seconds%20 + 1 {
			r := storetest.Report(seconds)
			if err := db.Save(r); err != nil {
				return err
			}
			if err := say("saved", r.ID); err != nil {
				return err
			}
		}
	},
	"all": func(db *store.DB, say func(what, id string) error) error {
		for n := rand.IntN(60); ; n++ {
			if err := db.Reserve(64 << 10); err != nil {
				return err
			}
			r := storetest.Report(n%20 + 1)
			if err := db.Save(r); err != nil {
				return err
			}
			if err := say("saved", r.ID); err != nil {
				return err
			}
			if n%3 == 0 {
				id, err := db.Find("last-1")
				if err == nil {
					err = errors.Join(say("deleting", id), db.Delete(id), say("deleted", id))
				}
				if err != nil && !strings.Contains(err.Error(), "there are 1") {
					return err
				}
			}
			if n%4 == 0 {
				if _, _, err := db.Compact(); err != nil {
					return err
				}
			}
			if n%5 == 0 {
				if err := db.SetIndexState("another"); err != nil {
					return err
				}
				if err := db.Index(nil); err != nil {
					return err
				}
			}
		}
	},
}

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		fmt.Fprintln(os.Stderr, child(role, os.Args[len(os.Args)-1]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func child(role, path string) error {
	db, err := store.Open(path)
	if err != nil {
		return err
	}
	return children[role](db, func(what, id string) error {
		_, err := fmt.Println(what, id)
		return err
	})
}

// start starts a child of a role on the store at path.
func start(ctx context.Context, role, path string) (*exec.Cmd, *bufio.Scanner, error) {
	cmd := exec.CommandContext(ctx, os.Args[0], path)
	cmd.Env = append(os.Environ(), childRole+"="+role)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, bufio.NewScanner(out), cmd.Start()
}

// Killed at any moment: every report is whole or absent, none that was said to
// be saved is absent, none that was said to be deleted is there.
func TestKilled(t *testing.T) {
	const kills = 10 // of a store
	stores := map[string]int{"save": 4, "all": 6}
	if testing.Short() {
		stores = map[string]int{"save": 1, "all": 1}
	}
	for role, stores := range stores {
		for range stores {
			t.Run(role, func(t *testing.T) {
				path := filepath.Join(memoryDir(t), "relaybench.db")
				k := kept{there: map[string]bool{}, gone: map[string]bool{}}
				for range kills {
					doAndKill(t, role, path, rand.IntN(5), time.Duration(rand.Int64N(int64(3*time.Millisecond))), k)
					k.check(t, path)
				}
				if len(k.there) == 0 {
					t.Error("no report was saved before a kill")
				}
				files, err := os.ReadDir(filepath.Dir(path))
				if err != nil || len(files) != 1 {
					t.Errorf("beside the store: got %v, %v, want nothing", files, err)
				}
			})
		}
	}
}

// memoryDir is a folder in memory where the system has such, else of the disk:
// for what is killed, and needs no disk to keep what it wrote, but many writes.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "relaybench-test-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// kept is what a store was said to have, by id.
type kept struct {
	there map[string]bool // true: it must be there; false: it may be
	gone  map[string]bool
}

// check compares it with the store at path.
func (k kept) check(t *testing.T, path string) {
	t.Helper()
	db, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for id, must := range k.there {
		r, err := db.Get(id)
		switch {
		case err == nil && r.ID != id, err != nil && must, err != nil && !strings.Contains(err.Error(), "no report"):
			t.Errorf("%s: got %v, %v", id, r, err)
		case err != nil:
			delete(k.there, id)
		}
	}
	for id := range k.gone {
		if _, err := db.Get(id); err == nil {
			t.Errorf("%s was deleted and is there", id)
		}
	}
	if err := db.Check(); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// doAndKill lets a process work on the store at path, kills it after it has
// said so many lines and a while, and notes what it said.
func doAndKill(t *testing.T, role, path string, lines int, then time.Duration, k kept) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd, out, err := start(ctx, role, path)
	if err != nil {
		t.Fatal(err)
	}
	killed := false
	for n := 0; ; n++ {
		if !killed && n >= lines {
			<-time.After(then) // the moment of the kill, not a wait for anything
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			killed = true
		}
		if !out.Scan() {
			break
		}
		switch what, id, _ := strings.Cut(out.Text(), " "); what {
		case "saved":
			k.there[id] = true
		case "deleting":
			k.there[id] = false
		case "deleted":
			delete(k.there, id)
			k.gone[id] = true
		}
	}
	if err := cmd.Wait(); err == nil || !killed {
		t.Fatalf("the process ended by itself: %v", err)
	}
}
