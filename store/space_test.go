package store_test

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"relaybench/store"
	"relaybench/store/storetest"
)

func TestSpaceError(t *testing.T) {
	err := error(&store.SpaceError{Path: "/a/b.db", Need: 2<<20 + 1, Left: 512 << 10, Err: syscall.ENOSPC})
	if want := `store "/a/b.db": no room for 2MiB: the disk has 512KiB left, 1.5MiB too little: no space left on device`; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, fs.ErrExist) {
		t.Error("it is not what the system said")
	}
	err = &store.SpaceError{Path: "b.db", Left: -1, Err: syscall.EDQUOT}
	if want := `store "b.db": no room: disk quota exceeded`; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestReserveTwice(t *testing.T) {
	db := storetest.Open(t)
	for range 3 {
		if err := db.Reserve(100 << 10); err != nil {
			t.Fatal(err)
		}
	}
	db.Trim()
	first, err := os.Stat(db.Path())
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if err := errors.Join(db.Reserve(100<<10), db.Save(storetest.Report(1))); err != nil {
			t.Fatal(err)
		}
	}
	db.Trim()
	if last, err := os.Stat(db.Path()); err != nil || last.Size() > 2*first.Size() {
		t.Errorf("the store grew from %d to %d bytes, %v", first.Size(), last.Size(), err)
	}
}
