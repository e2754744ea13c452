package host

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// joinable says why this process may not start one in it.
func (g *Group) joinable() error {
	leave, err := g.Enter(new(syscall.SysProcAttr))
	if err != nil {
		return err
	}
	return leave()
}

// Enter has the process that is started with attr, by the calling goroutine
// before it calls leave, begin in the group.
//
// Note: of version 1 the calling thread itself goes there and back: what it forks is where it is.
func (g *Group) Enter(attr *syscall.SysProcAttr) (leave func() error, err error) {
	if !g.old() {
		dir, err := os.Open(g.Dir)
		if err != nil {
			return nil, err
		}
		if err := unix.Access(path.Join(g.Dir, "cgroup.procs"), unix.W_OK); err != nil {
			return nil, errors.Join(&os.PathError{Op: "write", Path: path.Join(g.Dir, "cgroup.procs"), Err: err}, dir.Close())
		}
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
		return dir.Close, nil
	}
	home := levels(os.DirFS("/"), "memory")
	if len(home) == 0 {
		return nil, errors.New("this process's own cgroup is not to be seen")
	}
	runtime.LockOSThread()
	tid := []byte(strconv.Itoa(unix.Gettid()))
	if err := os.WriteFile(path.Join(g.Dir, "tasks"), tid, 0); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return func() error {
		defer runtime.UnlockOSThread()
		if err := os.WriteFile(path.Join("/", home[0], "tasks"), tid, 0); err != nil {
			return fmt.Errorf("leave the relay's cgroup: %w", err)
		}
		return nil
	}, nil
}
