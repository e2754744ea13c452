package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"relaybench/harness/variable"
)

// The affinity of this process's threads is one thing that all of the process
// has: this is who changes it.
var affinity struct {
	sync.Mutex      // held while threads' affinity is being changed
	pinned     bool // by a Pin that is not undone
}

var allowed = sync.OnceValues(func() (variable.CPUs, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read which CPUs are allowed: %w", err)
	}
	return list(&set), nil
})

// maxCPUs is how many CPUs a unix.CPUSet has room for.
const maxCPUs = 1024

func list(set *unix.CPUSet) (c variable.CPUs) {
	for n := range maxCPUs {
		if set.IsSet(n) {
			c = append(c, n)
		}
	}
	return c
}

func mask(c variable.CPUs) (set unix.CPUSet) {
	for _, n := range c {
		set.Set(n)
	}
	return set
}

// Pin has all threads of this process run on some CPUs, those to come too, and
// as many of them at once as there are CPUs; undo has them run where they may
// again. One process is pinned once at a time. No CPUs: nothing is done.
func Pin(cpus variable.CPUs) (undo func() error, err error) {
	if len(cpus) == 0 {
		return func() error { return nil }, nil
	}
	may, err := Allowed()
	if err != nil {
		return nil, err
	}
	affinity.Lock()
	defer affinity.Unlock()
	if affinity.pinned {
		return nil, errors.New("another run has pinned this process")
	}
	if err := pinAll(cpus); err != nil {
		return nil, errors.Join(err, pinAll(may))
	}
	affinity.pinned = true
	runtime.GOMAXPROCS(min(len(cpus), runtime.GOMAXPROCS(0)))
	return func() error {
		affinity.Lock()
		defer affinity.Unlock()
		affinity.pinned = false
		err := pinAll(may)
		if n, bad := strconv.Atoi(os.Getenv("GOMAXPROCS")); bad == nil && n > 0 {
			runtime.GOMAXPROCS(n)
		} else {
			runtime.SetDefaultGOMAXPROCS()
		}
		return err
	}, nil
}

// pinAll sets the affinity of each thread, until a look at all of them finds
// none that has another: a new thread has that of the one that made it.
func pinAll(cpus variable.CPUs) error {
	want := mask(cpus)
	const tries = 100 // threads are made rarely, and by threads that are set already after the first
	for range tries {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("pin to CPUs %s: %w", cpus.List(), err)
		}
		changed := false
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			var has unix.CPUSet
			if err := unix.SchedGetaffinity(tid, &has); err == nil && has == want {
				continue
			}
			changed = true
			if err := unix.SchedSetaffinity(tid, &want); err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
				return fmt.Errorf("pin to CPUs %s: %w", cpus.List(), err)
			}
		}
		if !changed {
			return nil
		}
	}
	return fmt.Errorf("pin to CPUs %s: threads have other CPUs again and again", cpus.List())
}

// On calls do, which starts a process, such that the process and all that it
// starts run on some CPUs from their beginning. No CPUs: on those that this
// process may have by itself, also while it is pinned.
func On(cpus variable.CPUs, do func() error) error {
	affinity.Lock()
	defer affinity.Unlock()
	if len(cpus) == 0 {
		if !affinity.pinned {
			return do()
		}
		var err error
		if cpus, err = Allowed(); err != nil {
			return err
		}
	}
	// Note: a process has the affinity of the thread that forks it. Threads that the
	// runtime needs meanwhile it does not make from one that is locked.
	runtime.LockOSThread()
	var was unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("read which CPUs are allowed: %w", err)
	}
	want := mask(cpus)
	err := unix.SchedSetaffinity(0, &want)
	if err != nil {
		err = fmt.Errorf("pin to CPUs %s: %w", cpus.List(), err)
	} else {
		err = do()
	}
	if back := unix.SchedSetaffinity(0, &was); back != nil {
		return errors.Join(err, back) // the thread stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}
