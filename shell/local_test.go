package shell

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A socket that was left is replaced, and a path that is too long for one is no hindrance.
func TestLocalSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if runtime.GOOS == "linux" {
		dir = filepath.Join(dir, strings.Repeat("long", 30))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(dir, "r.db")
	if _, err := dialLocal(db); !isAbsent(err) {
		t.Errorf("no socket: %v", err)
	}
	left, err := listenLocal(socketOf(db))
	if err != nil {
		t.Fatal(err)
	}
	left.(localListener).Listener.Close() // as one that was killed
	// A process that another test is just starting may have it yet.
	eventually(t, "absent, at a socket that nobody listens at", func() bool {
		conn, err := dialLocal(db)
		if err == nil {
			conn.Close()
		}
		return isAbsent(err)
	})
	l, err := listenLocal(socketOf(db))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dialLocal(db)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left in the folder: %v, %v", names, err)
	}
}
