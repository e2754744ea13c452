package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"relaybench/store"
	"relaybench/store/storetest"
)

func init() { children["disk"] = fillDisk }

// limit is the most bytes that a file of this process may have from now on.
func limit(bytes uint64) error {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: min(bytes, was.Max), Max: was.Max})
}

// unlimited is more than any file here has.
const unlimited = 1 << 62

// writes are what a disk may be too full for. Each is tried with files that may
// have no byte, then with more of them in steps of pages, until it is done: so
// one after the other of the pages that it writes is the first to be refused.
var writes = []struct {
	name  string
	pages int64
	do    func(db *store.DB) error
}{
	{"save", 3, func(db *store.DB) error { return db.Save(storetest.Uneven(60)) }},
	{"delete", 3, func(db *store.DB) error {
		id, err := db.Find("last")
		if err != nil {
			return err
		}
		return db.Delete(id)
	}},
	{"setting", 3, func(db *store.DB) error { return db.SetSetting("relay", strings.Repeat("long ", 5000)) }},
	{"index", 5, func(db *store.DB) error {
		_, _, err := db.Entries(nil, store.Newest{})
		return err
	}},
	{"reserve", 30, func(db *store.DB) error { return db.Reserve(300 << 10) }},
	{"compact", 20, func(db *store.DB) error {
		_, _, err := db.Compact()
		return err
	}},
	{"backup", 5, func(db *store.DB) error {
		_, err := db.Backup(db.Path() + ".backup")
		return err
	}},
	{"file", 1, func(db *store.DB) error {
		_, err := db.SaveFile(storetest.Uneven(600), filepath.Dir(db.Path()))
		return err
	}},
}

// fillDisk does each of writes at every file size.
func fillDisk(db *store.DB, say func(what, text string) error) error {
	signal.Ignore(unix.SIGXFSZ) // so that a write says that the file is too large
	for range 5 {
		if err := db.Save(storetest.Report(5)); err != nil {
			return err
		}
	}
	for _, w := range writes {
		if w.name == "index" {
			if err := db.SetIndexState("another"); err != nil {
				return err
			}
		}
		for most := int64(0); ; most += w.pages * 4096 {
			before, err := there(db)
			if err != nil {
				return err
			}
			if err := limit(uint64(most)); err != nil {
				return err
			}
			refused := w.do(db)
			if err := limit(unlimited); err != nil {
				return err
			}
			if err := db.Check(); err != nil {
				return fmt.Errorf("%s: check: %w", w.name, err)
			}
			if refused == nil {
				if err := say("done", w.name); err != nil {
					return err
				}
				break
			}
			if after, err := there(db); err != nil || after != before {
				return fmt.Errorf("%s refused, and the reports are %s, %w; they were %s", w.name, after, err, before)
			}
			var full *store.SpaceError
			if err := say("refused", fmt.Sprintf("%s %v %v", w.name, errors.As(refused, &full), refused)); err != nil {
				return err
			}
		}
	}
	// What was reserved is enough for a save, though the file may not grow.
	for _, seconds := range []int{1, 10, 600} {
		if err := db.Reserve(store.RecordSize(time.Duration(seconds)*time.Second, false)); err != nil {
			return err
		}
		file, err := os.Stat(db.Path())
		if err != nil {
			return err
		}
		if err := limit(uint64(file.Size())); err != nil {
			return err
		}
		if err := errors.Join(db.SetSetting("relay", "stand-in"), db.Save(storetest.Uneven(seconds)), limit(unlimited)); err != nil {
			return fmt.Errorf("after reserve: %w", err)
		}
	}
	if err := say("done", "all"); err != nil {
		return err
	}
	return db.Close()
}

// there is the ids of all reports, each of which can be read.
func there(db *store.DB) (string, error) {
	ids := ""
	for n := 0; ; n++ {
		r, err := db.Get(fmt.Sprintf("last-%d", n))
		if err != nil && strings.Contains(err.Error(), "no report") {
			return ids, nil
		} else if err != nil {
			return ids, err
		}
		ids += r.ID + " "
	}
}

// A disk that is full at any write: a clear error, and what was there is there.
func TestDiskFull(t *testing.T) {
	path := filepath.Join(memoryDir(t), "relaybench.db")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd, out, err := start(ctx, "disk", path)
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]int{}
	done := 0
	for out.Scan() {
		what, text, _ := strings.Cut(out.Text(), " ")
		if what == "done" {
			done++
			continue
		}
		name, text, _ := strings.Cut(text, " ")
		refused[name]++
		if !strings.Contains(text, unix.EFBIG.Error()) {
			t.Errorf("%s: %s", name, text)
		}
		space, text, _ := strings.Cut(text, " ")
		if name != "backup" && name != "file" && (space != "true" || !strings.Contains(text, path) || !strings.Contains(text, "no room")) {
			t.Errorf("%s: no SpaceError that names the store: %s", name, text)
		}
		if name == "reserve" && !strings.Contains(text, "the disk has ") {
			t.Errorf("%s does not say how much is left: %s", name, text)
		}
	}
	if err := cmd.Wait(); err == nil || done != len(writes)+1 {
		t.Fatalf("the process ended: %v, %d done", err, done)
	}
	for _, w := range writes {
		if refused[w.name] < 2 {
			t.Errorf("%s was refused %d times: the test tries nothing", w.name, refused[w.name])
		}
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	if err != nil || len(files) > 0 {
		t.Errorf("left over: %v, %v", files, err)
	}
}
