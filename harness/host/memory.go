package host

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"

	"github.com/shirou/gopsutil/v4/mem"
)

// Memory reads how much memory is left, again and again. Where the system has
// /proc it leaves no garbage: during a load no collector runs.
type Memory struct {
	system fs.File // meminfo; nil: there is none
	limits []memoryGauge
	text   []byte
}

// memoryGauge is a limit with its files open. A file that cannot be opened is nil.
type memoryGauge struct {
	memoryLimit
	used, stat fs.File
}

// OpenMemory opens what tells of memory: the system's, and that of this process's cgroups as they now are.
func OpenMemory() *Memory { return openMemory(os.DirFS("/")) }

func openMemory(root fs.FS) *Memory {
	m := &Memory{system: open(root, "proc/meminfo"), text: make([]byte, 16<<10)}
	for _, l := range memoryLimits(root) {
		m.limits = append(m.limits, memoryGauge{l, open(root, path.Join(l.at, l.used)), open(root, path.Join(l.at, "memory.stat"))})
	}
	return m
}

// open is a file that can be read from its beginning again; nil where there is none.
func open(root fs.FS, name string) fs.File {
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	if _, again := f.(io.ReaderAt); !again {
		f.Close()
		return nil
	}
	return f
}

// Close closes the files.
func (m *Memory) Close() {
	files := []fs.File{m.system}
	for _, l := range m.limits {
		files = append(files, l.used, l.stat)
	}
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// Left is how many bytes are left, of how many, of what this process can
// have: the system's, or its cgroup's or those of one above it, whichever has
// the least share left. ok is false where nothing of it is told.
func (m *Memory) Left() (left, total uint64, ok bool) {
	if text := m.read(m.system); text != nil {
		left, total = line(text, "MemAvailable:")<<10, line(text, "MemTotal:")<<10
		ok = total > 0
	} else if v, err := mem.VirtualMemory(); err == nil && v.Total > 0 {
		left, total, ok = v.Available, v.Total, true
	}
	if l, t, limited := m.cgroup(); limited && (!ok || float64(l)/float64(t) < float64(left)/float64(total)) {
		return l, t, true
	}
	return left, total, ok
}

// cgroup is what is left of the limit of memory that has the least share left.
// What the kernel gives up when it is short, the cache of files not lately used, is left.
func (m *Memory) cgroup() (left, total uint64, limited bool) {
	for _, g := range m.limits {
		used, err := strconv.ParseUint(string(bytes.TrimSpace(m.read(g.used))), 10, 64)
		if err != nil {
			continue
		}
		used -= min(used, line(m.read(g.stat), g.cache))
		if l := g.most - min(used, g.most); !limited || float64(l)/float64(g.most) < float64(left)/float64(total) {
			left, total, limited = l, g.most, true
		}
	}
	return left, total, limited
}

// read is a file's text, until the next read; nil where it cannot be read.
func (m *Memory) read(f fs.File) []byte {
	if f == nil {
		return nil
	}
	n, err := f.(io.ReaderAt).ReadAt(m.text, 0)
	if n == 0 || err != nil && err != io.EOF {
		return nil
	}
	return m.text[:n]
}

// line is the number in a line of a text that begins so; 0 where there is none. A unit behind it is left out.
func line(text []byte, begin string) uint64 {
	for l := range bytes.Lines(text) {
		if len(l) > len(begin) && string(l[:len(begin)]) == begin {
			v, _, _ := bytes.Cut(bytes.TrimSpace(l[len(begin):]), []byte(" "))
			n, _ := strconv.ParseUint(string(v), 10, 64)
			return n
		}
	}
	return 0
}
