package shell

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// socketOf is the socket of the process that serves a shell of the store at a
// path: beside it, for its user alone.
func socketOf(db string) string { return db + ".sock" }

// maxAddress is the length of the longest path that may be a socket's address everywhere, in bytes.
// Source: sun_path of darwin's sys/un.h; linux has 108.
const maxAddress = 103

// listenLocal listens at a socket that only its user can connect to. One that
// is there is replaced: who holds the store holds its socket.
func listenLocal(path string) (net.Listener, error) {
	// What is bound may be connected to by all, until its mode is set: so it is bound where they do not get.
	dir, err := os.MkdirTemp(filepath.Dir(path), ".sock-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bound := filepath.Join(dir, "s")
	var l *net.UnixListener
	err = shortly(bound, func(name string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, bareAddress(err)
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(bound, 0o600); err == nil {
		err = os.Rename(bound, path)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return localListener{l, path}, nil
}

// localListener removes its socket when it is closed.
type localListener struct {
	net.Listener
	path string
}

func (l localListener) Close() error { return errors.Join(os.Remove(l.path), l.Listener.Close()) }

// dialLocal connects to the process that serves a shell of the store at a path.
// Its error is os.ErrNotExist or syscall.ECONNREFUSED where there is none.
func dialLocal(db string) (conn net.Conn, err error) {
	if err := ownSocket(socketOf(db)); err != nil {
		return nil, err
	}
	err = shortly(socketOf(db), func(name string) (err error) {
		conn, err = net.Dial("unix", name)
		return err
	})
	return conn, bareAddress(err)
}

// ownSocket says what is wrong with a socket that another user has put there,
// to be told what is typed here. Root may talk to anybody.
func ownSocket(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() != 0 && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", path)
	}
	return nil
}

// shortly calls f with a name for the path that is short enough to be a socket's address.
func shortly(path string, f func(name string) error) error {
	if len(path) <= maxAddress {
		return f(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	name := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	if _, err := os.Stat(filepath.Dir(name)); err != nil || len(name) > maxAddress {
		return fmt.Errorf("%s: a path of more than %d bytes cannot be a socket's", path, maxAddress)
	}
	return f(name)
}

// bareAddress is what is wrong with an address, without the address.
func bareAddress(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
