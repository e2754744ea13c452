package relay

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"relaybench/harness/host"
)

// A keeper is this binary between relaybench and a relay. It ends all that is
// below it when the program it keeps has ended, or when its pipe from
// relaybench closes, which a SIGKILL of relaybench does too.
//
// Its arguments are the role of the program (or ""), the folder that is to go
// when the program has (or ""), that of the program's cgroup (or ""), which
// goes too, an [ending] as JSON (or ""), the program's path and its arguments.
const (
	keeperControl = 3 // orders, a line each: "term PID" (0: the program), "kill"
	keeperStatus  = 4 // what happened, a line each: "started PID", "failed WHY", "exited WAITSTATUS", "last WORDS", "left PIDS", "memory PEAK HITS KILLS"
)

// KeeperMain is the keeper's face: main calls it where RoleVar says keeper,
// and exits with what it returns. Standard input, output and error are the program's.
func KeeperMain() int {
	if len(os.Args) < 6 {
		fmt.Fprintln(os.Stderr, "relaybench: keeper: not to be started by hand")
		return 3
	}
	for _, fd := range []int{keeperControl, keeperStatus} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			fmt.Fprintln(os.Stderr, "relaybench: keeper: not to be started by hand")
			return 3
		}
	}
	k := keeper{status: os.NewFile(keeperStatus, "status")}
	if os.Args[3] != "" {
		k.group = &host.Group{Dir: os.Args[3]}
	}
	if text := os.Args[4]; text != "" {
		if err := json.Unmarshal([]byte(text), &k.ending); err != nil {
			fmt.Fprintln(os.Stderr, "relaybench: keeper: not to be started by hand")
			return 3
		}
	}
	code, dir := k.run(os.Args[1], os.Args[5:]), os.Args[2]
	if k.group != nil {
		use := k.group.Use()
		k.say("memory %d %d %d", use.Peak, use.Hits, use.Kills)
		if err := k.group.Close(); err != nil {
			k.say("left %v", err)
		}
	}
	if dir == "" && k.ending != nil && k.alone.Load() {
		dir = k.ending.Dir
	}
	if err := os.RemoveAll(dir); err != nil {
		k.say("left %v", err)
	}
	return code
}

type keeper struct {
	status  *os.File
	ending  *ending // nil: the program is all that there is to end
	program *os.Process
	group   *host.Group // the program's cgroup; nil: it has none of its own
	killed  atomic.Bool
	alone   atomic.Bool // relaybench has gone, or does not want it any more
}

// keeperCommand is a keeper of a program, not started yet; its pipes are to be its extra files.
func keeperCommand(ctx context.Context, role, dir, group string, e *ending, argv, env []string) (*exec.Cmd, error) {
	self, err := keeperPath()
	if err != nil {
		return nil, err
	}
	text := ""
	if e != nil {
		b, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = append([]string{"relaybench-keeper", role, dir, group, text}, argv...)
	cmd.Env = append(env, RoleVar+"="+RoleKeeper)         // the last of a name counts
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is ours alone
	return cmd, nil
}

// keeperPath is this binary: on Linux also after its file was replaced, as a build in mid-session does.
func keeperPath() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

func (k *keeper) run(role string, argv []string) int {
	// The program dies with the thread that started it (see dieWithParent).
	runtime.LockOSThread()
	adopt()
	signals := make(chan os.Signal, 1)
	// Not ignored: that would be handed on to the program.
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	env := programEnv()
	if role != "" {
		env = append(env, RoleVar+"="+role)
	}
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attr)
	leave := func() error { return nil }
	if k.group != nil {
		var err error
		if leave, err = k.group.Enter(attr); err != nil {
			k.say("failed %v", fmt.Errorf("enter its cgroup: %w", err))
			return 1
		}
	}
	program, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attr,
	})
	if back := leave(); err == nil && back != nil {
		k.say("left %v", back)
	}
	if err != nil {
		k.say("failed %v", reason(err))
		return 1
	}
	k.program = program
	k.say("started %d", program.Pid)
	// These two live as long as the process: there is nobody to join them.
	go func() {
		<-signals
		k.kill()
	}()
	go k.obey(os.NewFile(keeperControl, "control"))
	k.say("exited %d", k.await())
	if k.ending != nil {
		said, err := k.ending.end(programEnv(), k.killed.Load())
		if said != "" {
			k.say("last %s", said)
		}
		if err != nil {
			k.say("left %v", err)
		}
	}
	if left := k.sweep(); len(left) > 0 {
		k.say("left %v", left)
	}
	return 0
}

// programEnv is our environment without our role.
func programEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, RoleVar+"=") })
}

// say tells relaybench, if it is still there.
func (k *keeper) say(format string, args ...any) {
	fmt.Fprintf(k.status, format+"\n", args...)
}

// obey reads orders until the pipe closes, which is the last one.
func (k *keeper) obey(control *os.File) {
	in := bufio.NewScanner(control)
	for in.Scan() {
		order, arg, _ := strings.Cut(in.Text(), " ")
		switch order {
		case "term":
			pid, err := strconv.Atoi(arg)
			if err != nil || !isBelow(pid) {
				pid = k.program.Pid
			}
			if pid == k.program.Pid {
				_ = k.program.Signal(syscall.SIGTERM)
			} else {
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
		case "kill":
			k.kill()
		}
	}
	k.alone.Store(true)
	k.kill()
}

// kill ends the program at once, and what is below it as far as it is seen now;
// what is below an engine's CLI has its own way to end.
func (k *keeper) kill() {
	k.killed.Store(true)
	_ = k.program.Signal(syscall.SIGKILL)
	if k.ending == nil {
		killBelow(k.program.Pid)
	}
}

// await reaps until the program has ended.
func (k *keeper) await() syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(waitFor(k.program.Pid), &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0
		case pid == k.program.Pid:
			return status
		}
	}
}
