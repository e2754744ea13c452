package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Group is a cgroup that was made to limit the memory of a program.
//
// Source: https://docs.kernel.org/admin-guide/cgroup-v2.html, and for version 1
// https://docs.kernel.org/admin-guide/cgroup-v1/memory.html.
type Group struct {
	Dir string // its folder
}

// GroupUse is what was seen of a group's memory: anonymous memory and the cache of files of all its processes.
type GroupUse struct {
	Peak  uint64 // the most bytes that were counted; 0 unknown
	Hits  uint64 // times that the limit was met
	Kills uint64 // processes that the kernel killed at it
}

// groupPrefix begins the names of the cgroups that are made here.
const groupPrefix = "relaybench-"

// MakeGroup makes a cgroup for a program that may have so many bytes of memory
// and no swap, below this process's own or below one above it. Its error says why none may be made.
func MakeGroup(limit uint64) (*Group, error) {
	root := os.DirFS("/")
	err := errors.New("there is no cgroup of memory here")
	for _, at := range memoryLevels(root) {
		var g *Group
		if g, err = makeGroup("/"+at, limit); err == nil {
			return g, nil
		}
	}
	return nil, err
}

// memoryLevels are the folders below which there may be one, the nearest first.
func memoryLevels(root fs.FS) (all []string) {
	if all = levels(root, "memory"); all != nil {
		return all // of version 1
	}
	for i, at := range levels(root, "") {
		if i == 0 && !controls(root, at) { // its own: refused while it has processes itself, which its root may have
			_ = os.WriteFile("/"+path.Join(at, "cgroup.subtree_control"), []byte("+memory"), 0)
		}
		if controls(root, at) {
			all = append(all, at)
		}
	}
	return all
}

// controls says whether the cgroups below one of version 2 can limit memory.
func controls(root fs.FS, at string) bool {
	return slices.Contains(strings.Fields(read(root, path.Join(at, "cgroup.subtree_control"))), "memory")
}

func makeGroup(below string, limit uint64) (*Group, error) {
	dir, err := os.MkdirTemp(below, groupPrefix)
	if err != nil {
		return nil, err
	}
	g := &Group{dir}
	text := []byte(strconv.FormatUint(limit, 10))
	if g.old() {
		err = os.WriteFile(path.Join(dir, "memory.limit_in_bytes"), text, 0)
		_ = os.WriteFile(path.Join(dir, "memory.memsw.limit_in_bytes"), text, 0) // where swap is counted at all
	} else {
		err = os.WriteFile(path.Join(dir, "memory.max"), text, 0)
		_ = os.WriteFile(path.Join(dir, "memory.swap.max"), []byte("0"), 0)
	}
	if err == nil {
		err = g.joinable()
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// old says whether the group is of version 1.
func (g *Group) old() bool {
	_, err := os.Stat(path.Join(g.Dir, "memory.limit_in_bytes"))
	return err == nil
}

// Use is what was seen of it so far.
func (g *Group) Use() (u GroupUse) {
	root := os.DirFS(g.Dir)
	count := func(name string) uint64 {
		n, _ := strconv.ParseUint(read(root, name), 10, 64)
		return n
	}
	if g.old() {
		return GroupUse{count("memory.max_usage_in_bytes"), count("memory.failcnt"), line([]byte(read(root, "memory.oom_control")), "oom_kill ")}
	}
	events := []byte(read(root, "memory.events"))
	return GroupUse{count("memory.peak"), line(events, "max "), line(events, "oom_kill ")}
}

// Close removes it once the processes in it have ended. It may be gone already.
func (g *Group) Close() error {
	const limit = 2 * time.Second // a process that has ended leaves it a moment later
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err := os.Remove(g.Dir)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
			return nil
		case time.Since(start) > limit:
			return fmt.Errorf("remove the relay's cgroup: %w", err)
		}
	}
}
