package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"relaybench/store"
	"relaybench/store/storetest"
)

// many saves n reports at once, of 15 kB each, and gives their ids.
func many(t *testing.T, db *store.DB, n int) (ids []string) {
	t.Helper()
	r := storetest.Uneven(600)
	err := db.Generate(n, func(i int) *store.Report {
		r.ID, r.Own = fmt.Sprintf("20261130-120000-%06x", i), true
		ids = append(ids, r.ID)
		return r
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestInfo(t *testing.T) {
	db := storetest.Open(t)
	info, err := db.Info()
	if err != nil || info.Reports != 0 || info.Oldest != "" || info.Newest != "" || info.Path != db.Path() || info.Layout != store.Layout || !info.IndexCurrent {
		t.Errorf("of an empty store: got %+v, %v", info, err)
	}
	ids := many(t, db, 30)
	foreign := storetest.Report(1)
	foreign.ID, foreign.Provenance.Bench.Version = "20200101-000000-abcdef", ""
	if err := db.PutImported(foreign); err != nil {
		t.Fatal(err)
	}
	if info, err = db.Info(); err != nil {
		t.Fatal(err)
	}
	if info.Reports != 31 || info.Own != 30 || info.Oldest != foreign.ID || info.Newest != ids[29] || info.Disk <= 0 {
		t.Errorf("got %+v", info)
	}
	if d := cmp.Diff(map[string]int{"v0.1.0": 30, "": 1}, info.Writers); d != "" {
		t.Errorf("writers (-want +got):\n%s", d)
	}
	before := info.Free
	if err := db.Delete(ids[:20]...); err != nil {
		t.Fatal(err)
	}
	if info, err = db.Info(); err != nil {
		t.Fatal(err)
	}
	if file, err := os.Stat(db.Path()); err != nil || info.Size != file.Size() || info.Free < before+100<<10 || info.Free > info.Size {
		t.Errorf("after a deletion: size %d of %v, free %d, before it %d", info.Size, file.Size(), info.Free, before)
	}
}

func TestCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relaybench.db")
	db, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	ids := many(t, db, 40)
	if err := db.SetSetting("relay", "stand-in"); err != nil {
		t.Fatal(err)
	}
	if err := db.Delete(ids[5:]...); err != nil {
		t.Fatal(err)
	}
	want := all(t, db)
	before, after, err := db.Compact()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if after != file.Size() || after > before/2 || file.Mode().Perm() != 0o640 {
		t.Errorf("from %d to %d bytes; the file has %d, mode %v", before, after, file.Size(), file.Mode())
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("beside the store: %v, %v", files, err)
	}
	// It is in use as before, also for what opens its file again, and no other process gets it.
	if d := cmp.Diff(want, all(t, db)); d != "" {
		t.Errorf("reports (-before +after):\n%s", d)
	}
	if _, err := store.Open(path); err == nil || !errors.As(err, new(*store.HeldError)) {
		t.Errorf("opened by another one: got %v, want a HeldError", err)
	}
	r := storetest.Report(600)
	if err := db.Save(r); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Backup(path + ".backup"); err != nil {
		t.Error(err)
	}
	if err := db.Check(); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, path + ".backup"} {
		db, err := store.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := db.Get("last"); err != nil || got.ID != r.ID {
			t.Errorf("%s: last: got %v, %v, want %s", path, got, err, r.ID)
		}
		if v, _, err := db.Setting("relay"); v != "stand-in" || err != nil {
			t.Errorf("%s: setting: got %q, %v", path, v, err)
		}
		if err := errors.Join(db.Check(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Whoever waits for a store that is compacted meanwhile gets the new file, not the one without a name.
func TestCompactWhileAnotherWaits(t *testing.T) {
	defer goleak.VerifyNone(t)
	path := filepath.Join(memoryDir(t), "relaybench.db")
	for range 10 {
		db, err := store.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var other *store.DB
		var wait sync.WaitGroup
		wait.Go(func() {
			for {
				var err error
				if other, err = store.Open(path); !errors.As(err, new(*store.HeldError)) {
					if err != nil {
						t.Error(err)
					}
					return
				}
			}
		})
		r := storetest.Report(1)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
		if _, _, err := db.Compact(); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		after := storetest.Report(1)
		if err := other.Save(after); err != nil {
			t.Fatal(err)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if db, err = store.Open(path); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{r.ID, after.ID} {
			if _, err := db.Get(want); err != nil {
				t.Error(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A process that ended while it compacted leaves a file that the next one takes away.
func TestCompactLeftOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relaybench.db")
	if err := os.WriteFile(store.CompactPath(path), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := os.Stat(store.CompactPath(path)); err == nil {
		t.Error("it is still there")
	}
}

func TestBackup(t *testing.T) {
	db := storetest.Open(t)
	many(t, db, 20)
	dir := t.TempDir()
	path := filepath.Join(dir, "b.db")
	for _, c := range []struct{ path, want string }{
		{path, ""},
		{path, "there is a file of that name"},
		{dir, "there is a file of that name"},
		{filepath.Join(dir, "no", "b.db"), "no such file or directory"},
		{db.Path(), "there is a file of that name"},
	} {
		size, err := db.Backup(c.path)
		switch {
		case c.want == "" && err != nil:
			t.Fatal(err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path)):
			t.Errorf("%s: got %v, want %q", c.path, err, c.want)
		case c.want == "":
			if file, err := os.Stat(c.path); err != nil || file.Size() != size || file.Mode().Perm() != 0o600 {
				t.Errorf("got %v, %v, want %d bytes", file, err, size)
			}
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("beside the backup: %v, %v", files, err)
	}
	backup, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(all(t, db), all(t, backup)); d != "" {
		t.Errorf("reports (-store +backup):\n%s", d)
	}
	if err := errors.Join(backup.Check(), backup.Close()); err != nil {
		t.Error(err)
	}
}

// A store is backed up, compacted, listed and read while reports are saved.
func TestCareWhileInUse(t *testing.T) {
	defer goleak.VerifyNone(t)
	db := storetest.Open(t)
	if err := db.Save(storetest.Report(1)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var wait sync.WaitGroup
	for i, do := range []func(i int) error{
		func(int) error { return db.Save(storetest.Report(5)) },
		func(int) error { _, _, err := db.Compact(); return err },
		func(i int) error { _, err := db.Backup(filepath.Join(dir, string(rune('a'+i)))); return err },
		func(int) error { _, _, err := db.Entries(nil, store.Newest{N: 5}); return err },
		func(int) error { _, err := db.Get("last"); return err },
		func(int) error { _, err := db.Info(); return err },
		func(int) error { return db.Reserve(64 << 10) },
		func(int) error { return db.Check() },
	} {
		wait.Go(func() {
			for n := range 8 {
				if err := do(n); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	wait.Wait()
	if info, err := db.Info(); err != nil || info.Reports != 9 {
		t.Errorf("got %d reports, %v, want 9", info.Reports, err)
	}
	for i := range 8 {
		path := filepath.Join(dir, string(rune('a'+i)))
		backup, err := store.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(backup.Check(), backup.Close()); err != nil {
			t.Error(err)
		}
	}
}

// While something reads, as a backup to a slow disk does, reports are saved that the file must grow for.
func TestSaveWhileReading(t *testing.T) {
	db := storetest.Open(t)
	err := db.Reading(func() {
		saved := make(chan error, 1)
		go func() {
			var err error
			for range 12 {
				err = errors.Join(err, db.Save(storetest.Uneven(600)))
			}
			saved <- err
		}()
		select {
		case err := <-saved:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("saving waits for the reader")
		}
		if _, err := db.Get("last"); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
