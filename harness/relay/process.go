package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"relaybench/harness/host"
	"relaybench/harness/result"
	"relaybench/harness/variable"
)

// startLimit bounds how long a keeper may take to say that the program runs; it takes 30 ms.
const startLimit = 10 * time.Second

// keeperGrace is how long a keeper may take to end what it was told to kill,
// before it is killed itself.
const keeperGrace = 10 * time.Second

// Process is a started relay. All its methods may be called concurrently.
type Process struct {
	dir       string
	addr      string
	port      int
	effective Effective
	cpus      variable.CPUs
	memory    *host.Group // its cgroup; nil: it has none of its own
	keeper    *exec.Cmd
	client    *http.Client
	log       logbook
	output    *os.File // the program's, to read
	done      chan struct{}
	container *container   // that it runs in; nil: none
	pid       atomic.Int64 // of the port's owner
	ordering  sync.Mutex   // guards control
	control   *os.File     // the keeper's orders; nil once closed

	mu      sync.Mutex
	program int // the program's pid, that of its process group too
	exit    Exit
	limit   *result.MemoryLimit // nil: it has none
	stopped time.Time           // the first signal; zero: none yet
	stop    sync.Once
}

// Start makes a folder with config and credentials, checks with `config show`
// that every setting took, and starts the program under a keeper. It returns
// when the process runs; it is not ready yet. Nothing is left behind when it returns an error.
// ctx bounds the start alone: what was started ends with Stop.
func Start(ctx context.Context, p Program, s Setup) (*Process, error) {
	r, err := settled(ctx, p, s)
	if err != nil {
		return nil, err
	}
	if err := r.start(ctx, p); err != nil {
		what := fmt.Sprintf("exec %q", p.Path)
		if r.container != nil {
			what = fmt.Sprintf("image %q", p.Image)
		}
		return nil, errors.Join(fmt.Errorf("start relay: %s: %w", what, err), r.clean())
	}
	return r, nil
}

// Check is what [Start] does before it starts anything: it says with which
// config the program would run, or why it would not. s.Upstream may be empty.
func Check(ctx context.Context, p Program, s Setup) (Effective, error) {
	if s.Upstream == "" {
		s.Upstream = "127.0.0.1:1" // nobody asks it
	}
	r, err := settled(ctx, p, s)
	if err != nil {
		return Effective{}, err
	}
	return r.effective, r.clean()
}

// settled is a relay whose folder is made and whose config is checked.
func settled(ctx context.Context, p Program, s Setup) (*Process, error) {
	if p.Form != FormPath && p.Form != FormStandIn && p.Form != FormImage {
		return nil, fmt.Errorf("start relay: a relay of form %q is not started", p.Form)
	}
	set, err := parseSettings(s.Set)
	if err != nil {
		return nil, err
	}
	base, err := parseTree(s.Base)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	r := &Process{client: healthClient(), done: make(chan struct{})}
	if err := r.prepare(ctx, p, s, base, set); err != nil {
		return nil, errors.Join(err, r.clean())
	}
	return r, nil
}

// prepare makes the folder and settles the config.
func (p *Process) prepare(ctx context.Context, program Program, s Setup, base tree, set []setting) (err error) {
	addr, err := freeAddr()
	if err != nil {
		return fmt.Errorf("find a free port: %w", err)
	}
	p.port, p.addr = int(addr.Port()), addr.String()
	if p.dir, err = os.MkdirTemp(s.Dir, "relaybench-relay-"); err != nil {
		return fmt.Errorf("make the relay's folder: %w", err)
	}
	if p.dir, err = filepath.Abs(p.dir); err != nil {
		return fmt.Errorf("make the relay's folder: %w", err)
	}
	config := makeConfig(base, set, s.Upstream, addr)
	if s.Statsd != "" {
		config.set("metrics.statsd", s.Statsd)
	}
	own, err := p.limitMemory(program, s, config)
	if err != nil {
		return fmt.Errorf("mem %s: %w", variable.FormatSize(s.Memory), err)
	}
	if err := p.writeConfig(program, config, s); err != nil {
		return err
	}
	if p.container == nil {
		p.cpus = s.CPUs // a container's are its own affair, not those of the CLI that runs it
	}
	shown, err := p.show(ctx, program)
	if err != nil {
		return err
	}
	if p.effective, err = checkShown(shown, set, base, own...); err != nil && own != nil {
		return fmt.Errorf("%w (%s)", err, p.limit.Why)
	}
	return err
}

// writeConfig writes the config to where the program reads it.
func (p *Process) writeConfig(program Program, config tree, s Setup) error {
	if program.Form != FormImage {
		return writeConfig(p.dir, config)
	}
	e, err := findEngine(program.Engine)
	if err != nil {
		return err
	}
	p.container = newContainer(e, program.imageID(), filepath.Join(p.dir, "config"), s)
	return p.container.writeConfig(config)
}

// freeAddr is a loopback address, IPv4's where there is one, with a port that
// nobody holds. It is held by nobody until the relay binds it: Relay sets
// SO_REUSEPORT, so whether it got it alone is looked up afterwards.
func freeAddr() (netip.AddrPort, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		l, err = net.Listen("tcp", "[::1]:0")
	}
	if err != nil {
		return netip.AddrPort{}, err
	}
	return l.Addr().(*net.TCPAddr).AddrPort(), l.Close()
}

// start starts keeper and program and waits until the program runs.
func (p *Process) start(ctx context.Context, program Program) error {
	var files [3][2]*os.File // output, control, status: ends to read and to write
	for i := range files {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range files[:i] {
				f[0].Close()
				f[1].Close()
			}
			return err
		}
		files[i] = [2]*os.File{r, w}
	}
	output, control, status := files[0], files[1], files[2]
	argv, env := []string{program.Path, "-c", p.dir, "run"}, program.environ()
	var end *ending
	if p.container != nil {
		argv, env, end = p.container.argv("run"), p.container.engine.environ(), p.container.ending()
	}
	// ctx bounds the start alone.
	cmd, err := keeperCommand(context.WithoutCancel(ctx), program.role(), p.dir, p.groupDir(), end, argv, env)
	if err == nil {
		cmd.Dir = p.dir
		cmd.Stdout, cmd.Stderr = output[1], output[1]
		cmd.ExtraFiles = []*os.File{control[0], status[1]}
		p.keeper = cmd
		err = host.On(p.cpus, cmd.Start)
	}
	for _, f := range []*os.File{output[1], control[0], status[1]} {
		f.Close()
	}
	if err != nil {
		for _, f := range []*os.File{output[0], control[1], status[0]} {
			f.Close()
		}
		return err
	}
	p.output, p.control = output[0], control[1]
	begun := make(chan error, 1)
	go p.watch(status[0], begun)
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	select {
	case err = <-begun:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-limit.C:
		err = fmt.Errorf("its keeper has not started it within %v", startLimit)
	}
	if err == nil && p.container != nil {
		err = p.awaitContainer(ctx)
	}
	if err != nil {
		p.end(0)
	}
	return err
}

// watch reads what the keeper says and the program's log, until both have
// ended. It owns all that waits for them; done is closed at its end.
func (p *Process) watch(status *os.File, begun chan<- error) {
	defer close(p.done)
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.log.follow(p.output)
	}()
	exited, last, left := "", "", ""
	var at time.Time // of its end
	for in := bufio.NewScanner(status); in.Scan(); {
		word, rest, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "started":
			pid, err := strconv.Atoi(rest)
			p.mu.Lock()
			p.program = pid
			p.mu.Unlock()
			begun <- err
		case "failed":
			begun <- errors.New(rest)
		case "exited":
			exited, at = rest, time.Now()
		case "last":
			last = rest
		case "left":
			left = rest
		case "memory":
			p.used(rest)
		}
	}
	status.Close()
	err := p.keeper.Wait()
	if exited == "" && p.group() != 0 { // the keeper was killed: nobody else ends what it kept
		_ = syscall.Kill(-p.group(), syscall.SIGKILL)
		if p.container != nil {
			if _, err := p.container.ending().end(p.container.engine.environ(), true); err != nil {
				left = err.Error()
			}
		}
	}
	select {
	case begun <- fmt.Errorf("its keeper ended: %v", err):
	default: // it had begun
	}
	// Whoever escaped a keeper may hold the log open for ever.
	_ = p.output.SetReadDeadline(time.Now().Add(time.Second))
	<-read
	p.output.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit.Ended = true
	p.exit.Status = exitStatus(exited, err)
	if p.container != nil {
		p.exit.Status = p.container.exitStatus(p.exit.Status, last)
	}
	if left != "" {
		p.exit.Status = join(p.exit.Status, "(would not end: "+left+")")
	}
	if !p.stopped.IsZero() {
		if at.IsZero() {
			at = time.Now()
		}
		p.exit.Took = at.Sub(p.stopped)
	}
}

func (p *Process) group() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.program
}

// exitStatus is a wait status in the words of os/exec, "" for 0.
func exitStatus(exited string, keeper error) string {
	n, err := strconv.ParseUint(exited, 10, 32)
	if err != nil {
		return fmt.Sprintf("unknown: its keeper ended: %v", keeper)
	}
	switch status := syscall.WaitStatus(n); {
	case status.Signaled() && status.CoreDump():
		return "signal: " + status.Signal().String() + " (core dumped)"
	case status.Signaled():
		return "signal: " + status.Signal().String()
	case status.ExitStatus() != 0:
		return "exit status " + strconv.Itoa(status.ExitStatus())
	}
	return ""
}

// Addr is where it takes requests: host:port.
func (p *Process) Addr() string { return p.addr }

// PID is the process that owns the listening port: the one that is measured,
// also where the program is a wrapper. 0 until it listens, and where that cannot be known.
func (p *Process) PID() int {
	if p.pid.Load() == 0 {
		_ = p.ports()
	}
	return int(p.pid.Load())
}

// ports finds out who owns the port; its error says that it is not the relay alone.
func (p *Process) ports() error {
	if p.pid.Load() != 0 {
		return nil
	}
	select {
	case <-p.done:
		return nil
	default:
	}
	pids := below(p.keeper.Process.Pid)
	if p.container != nil {
		first := p.container.pid
		if hidden(first) {
			p.pid.Store(int64(first))
			return nil
		}
		pids = append([]int{first}, below(first)...)
	}
	pid, shared, err := owner(pids, p.port)
	switch {
	case err != nil:
		return nil // it cannot be known here
	case shared && pid == 0:
		return fmt.Errorf("port %d was taken by another process before the relay could", p.port)
	case shared:
		return fmt.Errorf("port %d is shared with another process", p.port)
	}
	p.pid.Store(int64(pid))
	return nil
}

// Effective is its config.
func (p *Process) Effective() Effective { return p.effective }

// Done is closed when the program has ended, by itself or stopped, and all below it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit is how a program ended.
type Exit struct {
	Ended  bool          `json:"ended"`
	Status string        `json:"status"`  // "exit status 101", "signal: killed", "" for 0
	Killed bool          `json:"killed"`  // by us, after the grace or at once
	Took   time.Duration `json:"took_ns"` // from the first signal to the end
}

func (e Exit) words() string {
	if e.Status == "" {
		return "exit status 0"
	}
	return e.Status
}

// Exit is how it ended; Ended is false while it runs.
func (p *Process) Exit() Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Stop ends it and all below it: SIGTERM to the port's owner, then SIGKILL after grace (0: SIGKILL at once).
// It returns when nothing of it is left: process, folder, goroutines. Calling
// it again does nothing, except that a grace of 0 cuts short one that is being waited for.
func (p *Process) Stop(grace time.Duration) Exit {
	p.end(grace)
	p.stop.Do(func() { _ = p.clean() })
	return p.Exit()
}

// end stops the program and waits for its end.
func (p *Process) end(grace time.Duration) {
	if grace > 0 {
		pid := p.PID()
		if p.container != nil {
			pid = 0 // the CLI hands it on
		}
		p.order(fmt.Sprintf("term %d", pid), false)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
		}
	}
	select {
	case <-p.done:
	default:
		p.order("kill", true)
		grace := keeperGrace
		if p.container != nil {
			grace += endLimit
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
			_ = p.keeper.Process.Kill()
			<-p.done
		}
	}
	p.ordering.Lock()
	defer p.ordering.Unlock()
	if p.control != nil {
		p.control.Close()
		p.control = nil
	}
}

// order sends a line to the keeper, and notes the first one that ends the program.
func (p *Process) order(line string, kill bool) {
	p.ordering.Lock()
	defer p.ordering.Unlock()
	select {
	case <-p.done:
		return
	default:
	}
	p.mu.Lock()
	first := p.stopped.IsZero()
	if first {
		p.stopped = time.Now()
	}
	p.exit.Killed = p.exit.Killed || kill
	p.mu.Unlock()
	if p.control != nil && (first || kill) {
		fmt.Fprintln(p.control, line)
	}
}

// clean removes the folder and the cgroup.
func (p *Process) clean() error {
	p.client.CloseIdleConnections()
	var err error
	if p.memory != nil {
		err = p.memory.Close()
	}
	if p.dir == "" {
		return err
	}
	if gone := os.RemoveAll(p.dir); gone != nil {
		return errors.Join(err, fmt.Errorf("remove the relay's folder: %w", gone))
	}
	return err
}

// Tail is the last n lines of its log, each cut at 4 KB; of 1,000 at most.
func (p *Process) Tail(n int) []string { return p.log.tail(n) }

// Since gives the log's lines after the first n that came, as far as they are
// kept, and how many have come by now.
func (p *Process) Since(n uint64) (lines []string, added uint64) { return p.log.since(n) }

// Messages are the warnings and errors since the last ResetMessages, most
// frequent first, bounded in number: the rest is counted as "(other messages)".
func (p *Process) Messages() []Message { return p.log.messages() }

// ResetMessages forgets them: what Relay says during any start is no finding.
func (p *Process) ResetMessages() { p.log.reset() }
