package relay

import (
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/procfs"
)

const stateListen = 0x0a // TCP_LISTEN, include/net/tcp_states.h

// hidden says whether this user may not see what a process has open.
func hidden(pid int) bool {
	_, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return errors.Is(err, os.ErrPermission)
}

// owner is that of some processes that listens on port, 0 when none does.
// shared says that a process elsewhere listens on it too, or alone.
func owner(pids []int, port int) (pid int, shared bool, err error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, false, err
	}
	listening := map[string]bool{} // by the target of its descriptors; true once found to be ours
	//lint:ignore SA1019 netlink, which is recommended, would be a further dependency for two small files
	v4, err4 := fs.NetTCP()
	//lint:ignore SA1019 as above
	v6, err6 := fs.NetTCP6()
	if err4 != nil && err6 != nil {
		return 0, false, err4
	}
	for _, sockets := range []procfs.NetTCP{v4, v6} {
		for _, s := range sockets {
			if s.St == stateListen && s.LocalPort == uint64(port) {
				listening[fmt.Sprintf("socket:[%d]", s.Inode)] = false
			}
		}
	}
	if len(listening) == 0 {
		return 0, false, nil
	}
	for _, each := range pids {
		p, err := fs.Proc(each)
		if err != nil {
			continue
		}
		targets, err := p.FileDescriptorTargets()
		if err != nil {
			continue
		}
		for _, target := range targets {
			if _, ok := listening[target]; ok {
				listening[target] = true
				pid = each // the deepest one: a wrapper may have inherited the socket to it
			}
		}
	}
	for _, ours := range listening {
		shared = shared || !ours
	}
	return pid, shared, nil
}
