package store_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"relaybench/store"
)

const nobody = 65534

// folderOf is a folder of the user nobody where the test is root's, else of the test's own user.
func folderOf(t *testing.T) (dir string) {
	dir = t.TempDir()
	if os.Geteuid() != 0 {
		return dir
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	return dir
}

// asNobody takes root's rights on files from the test that calls it: from its
// thread, which ends with it.
func asNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread()
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
}

func TestOpenWithoutPermission(t *testing.T) {
	whole := wholeStore(t)
	dir := folderOf(t)
	for _, c := range []struct {
		name      string
		file, dir os.FileMode
		want      string
	}{
		{"read-only", 0o400, 0o700, "cannot be written: permission denied"},
		{"unreadable", 0o000, 0o700, "cannot be read: permission denied"},
		{"folder out of reach", 0o600, 0o000, "cannot be reached: permission denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			asNobody(t)
			path := filepath.Join(dir, c.name, "x.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.file); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Dir(path), c.dir); err != nil {
				t.Fatal(err)
			}
			defer os.Chmod(filepath.Dir(path), 0o700)
			db, err := store.Open(path)
			if err == nil {
				db.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "-db") {
				t.Errorf("got %q, want %q", err, c.want)
			}
		})
	}
	t.Run("new store in a read-only folder", func(t *testing.T) {
		asNobody(t)
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(dir, 0o700)
		_, err := store.Open(filepath.Join(dir, "new.db"))
		if want := "cannot be made: permission denied"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}
