package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"relaybench/store"
	"relaybench/store/storetest"
)

func TestOpenMakesAStoreOfItsUserAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "relaybench.db")
	db, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := db.Path(); got != path {
		t.Errorf("path: got %q, want %q", got, path)
	}
	r := storetest.Report(1)
	if err := db.Save(r); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s: got %v, want %v", name, got, want)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("beside the store: %v", left)
	}

	db, err = store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got, err := db.Get("last"); err != nil || got.ID != r.ID {
		t.Errorf("last after opening again: got %v, %v, want %s", got, err, r.ID)
	}
}

func TestOpenHeld(t *testing.T) {
	defer goleak.VerifyNone(t)
	path := filepath.Join(t.TempDir(), "relaybench.db")
	db, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	begun := time.Now()
	_, err = store.Open(path)
	var held *store.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %v, want a HeldError", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %v, want about a second", took)
	}
	if locks, err := os.ReadFile("/proc/locks"); err == nil && len(locks) > 0 && held.PID != os.Getpid() {
		t.Errorf("holder: got %d, want %d", held.PID, os.Getpid())
	}
	for _, want := range []string{path, fmt.Sprint(held.PID), "-db"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if got, want := (&store.HeldError{Path: "x"}).Error(), `store "x" is held by another process: end it, or name another file with -db`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLockedBy(t *testing.T) {
	const locks = `1: POSIX  ADVISORY  WRITE 11 fe:00:99 0 EOF
2: FLOCK  ADVISORY  WRITE 12 fe:00:199 0 EOF
2: -> FLOCK  ADVISORY  WRITE 13 fe:00:99 0 EOF
3: FLOCK  ADVISORY  WRITE 14 00:2f:99 0 EOF
4: FLOCK  ADVISORY  WRITE 0 00:2f:77 0 EOF
5: OFDLCK ADVISORY  READ -1 00:06:13 0 0

rubbish
`
	for inode, want := range map[uint64]int{99: 14, 199: 12, 77: 0, 9: 0} {
		if got := store.LockedBy(locks, inode); got != want {
			t.Errorf("inode %d: got %d, want %d", inode, got, want)
		}
	}
}

// A file that is no whole store is an error that names it and says what to do, and is left as it is.
func TestOpenBad(t *testing.T) {
	whole := wholeStore(t)
	noise := make([]byte, 1<<16)
	rand.NewChaCha8([32]byte{}).Read(noise)
	for _, c := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"folder", func(p string) error { return os.Mkdir(p, 0o700) }, "is a folder"},
		{"empty", write(nil), "is an empty file"},
		{"text", write([]byte("relaybench\n")), "is not a store"},
		{"long text", write(bytes.Repeat([]byte("relaybench\n"), 10_000)), "is not a store"},
		{"noise", write(noise), "is not a store"},
		{"half a head", write(whole[:5000]), "cannot be opened"},
		{"head alone", write(whole[:2*os.Getpagesize()]), "is cut short"},
		{"cut in the middle", write(whole[:len(whole)/2]), "is cut short"},
		{"another program's", otherBolt("other", ""), "is a bbolt file of another program"},
		{"another program's with the same bucket", otherBolt("meta", "x"), "is a bbolt file of another program"},
		{"newer", otherBolt("meta", fmt.Sprint(store.Layout+1)), "made by a newer relaybench"},
		{"no buckets", otherBolt("meta", fmt.Sprint(store.Layout)), "is damaged: it has no reports"},
		{"device", func(p string) error { return os.Symlink(os.DevNull, p) }, "is no regular file"},
		{"link to nowhere", func(p string) error { return os.Symlink(p+".gone", p) }, "cannot be reached"},
		{"below a file", func(p string) error { return os.WriteFile(filepath.Dir(p), nil, 0o600) }, "cannot be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "below", "x.db")
			if c.name != "below a file" {
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			db, err := store.Open(path)
			if err == nil {
				db.Close()
				t.Fatal("no error")
			}
			for _, want := range []string{path, c.want, "-db"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func write(data []byte) func(string) error {
	return func(path string) error { return os.WriteFile(path, data, 0o600) }
}

// otherBolt makes a bbolt file with one bucket, and in it a format where that is not "".
func otherBolt(bucket, format string) func(string) error {
	return func(path string) error {
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			return err
		}
		defer db.Close()
		return db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte(bucket))
			if err != nil || format == "" {
				return err
			}
			return b.Put([]byte("relaybench-store"), []byte(format))
		})
	}
}

// wholeStore is the bytes of a store with 12 reports and a setting, without a page to spare.
func wholeStore(t *testing.T) []byte {
	path := filepath.Join(memoryDir(t), "whole.db")
	db, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r := storetest.Report(5)
	for range 12 {
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.SetSetting("relay", "stand-in"); err != nil {
		t.Fatal(err)
	}
	db.Trim()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A store with pages overwritten, or cut short while it is open, gives errors or right answers, never a crash.
func TestDamage(t *testing.T) {
	whole := wholeStore(t)
	path := filepath.Join(memoryDir(t), "damaged.db")
	opened, wrong := 0, 0
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		damaged := bytes.Clone(whole)
		for range 1 + rnd.IntN(3) {
			from := rnd.IntN(len(damaged))
			for i := from; i < min(from+1+rnd.IntN(600), len(damaged)); i++ {
				damaged[i] = byte(rnd.Uint32())
			}
		}
		os.Remove(path) // a new inode: a store that broke in mid-write keeps its lock on the old one
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := store.Open(path)
		if err != nil {
			continue
		}
		opened++
		if db.Check() != nil {
			wrong++
		}
		for _, ref := range []string{"last", "last-10", "2"} {
			if r, err := db.Get(ref); err == nil && r.Result == nil {
				t.Errorf("seed %d: %s: a report without a result", seed, ref)
			}
		}
		_, _, _ = db.Setting("relay")
		_ = db.Save(storetest.Report(1))
		_ = db.Close()
	}
	if opened == 0 || wrong == 0 {
		t.Errorf("of 40 damaged stores %d opened and %d were found wrong: the test tries nothing", opened, wrong)
	}
}

func TestCutWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cut.db")
	if err := os.WriteFile(path, wholeStore(t), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 2*int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Get("last"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("get: got %v, want an error that names the file", err)
	}
	for range 2 {
		if err := db.Save(storetest.Report(1)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("save: got %v, want an error that names the file", err)
		}
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	db := storetest.Open(t)
	get := func(name, want string, wantOK bool) {
		t.Helper()
		if got, ok, err := db.Setting(name); err != nil || got != want || ok != wantOK {
			t.Errorf("%s: got %q, %v, %v, want %q, %v", name, got, ok, err, want, wantOK)
		}
	}
	set := func(name, value string) {
		t.Helper()
		if err := db.SetSetting(name, value); err != nil {
			t.Fatal(err)
		}
	}
	get("relay", "", false)
	set("relay", "stand-in")
	set("other", "x")
	get("relay", "stand-in", true)
	set("relay", "/bin/relay")
	get("relay", "/bin/relay", true)
	set("relay", "")
	get("relay", "", false)
	set("relay", "")
	get("other", "x", true)
	if err := db.SetSetting("", "x"); err == nil {
		t.Error("a setting without a name: no error")
	}
}

func TestConcurrentUse(t *testing.T) {
	defer goleak.VerifyNone(t)
	db := storetest.Open(t)
	const writers, each = 4, 20
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				r := storetest.Report(1)
				if err := db.Save(r); err != nil {
					t.Error(err)
					return
				}
				if got, err := db.Get(r.ID); err != nil || got.ID != r.ID {
					t.Errorf("writer %d: got %v, %v, want %s", w, got, err, r.ID)
				}
				mu.Lock()
				seen[r.ID] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if got, want := len(seen), writers*each; got != want {
		t.Errorf("different ids: got %d, want %d", got, want)
	}
}
