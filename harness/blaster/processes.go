package blaster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"relaybench/envelope"
	"relaybench/harness/result"
)

const (
	// readyLimit is how long a sender process may take to build its pool.
	readyLimit = time.Minute
	// stopLimit is how long one may take to write its tally and to end, once told to.
	stopLimit = 10 * time.Second
	// maxLastWords bounds what is kept of what one says on its standard error.
	maxLastWords = 4 << 10
)

// Processes are sender processes that stand ready, each with a share of one
// load. Close ends them.
type Processes struct {
	load      Load
	processes []*process
	grace     time.Duration // stopLimit
}

// process is one sender process.
type process struct {
	number int // from 1, for errors
	cmd    *exec.Cmd
	orders io.WriteCloser
	out    io.Reader
	says   *json.Decoder
	words  lastWords
	exit   func() error // waits until it has ended

	cell *cell
	due  atomic.Uint64
}

// StartProcesses starts n sender processes, which are copies of this program
// with RELAYBENCH_ROLE=sender in their environment (see [SenderMain]), gives
// each a share of the load's share, and waits until all have built their pools.
// Zero and start are told to [Processes.Run]: building takes time.
func StartProcesses(ctx context.Context, load Load, n int) (*Processes, error) {
	if err := load.check(); err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("%d sender processes", n)
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start senders: %w", err)
	}
	p := &Processes{load: load, grace: stopLimit}
	if err := p.start(ctx, exe, n); err != nil {
		p.kill()
		p.Close()
		return nil, fmt.Errorf("start senders: %w", err)
	}
	return p, nil
}

func (p *Processes) start(ctx context.Context, exe string, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not ready within %v", readyLimit))
	defer cancel()
	for i := range n {
		share := p.load
		share.Schedule.First += uint64(i) * p.load.Schedule.Stride
		share.Schedule.Stride *= uint64(n)
		order, err := json.Marshal(share)
		if err != nil {
			return err
		}
		q, err := startProcess(exe, i+1)
		if err != nil {
			return err
		}
		p.processes = append(p.processes, q)
		if _, err := q.orders.Write(append(order, '\n')); err != nil {
			return q.died(err)
		}
	}
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { p.kill(); close(cut) })
	var err error
	for _, q := range p.processes {
		var m message
		if e := q.says.Decode(&m); e != nil {
			err = q.died(e)
		} else if !m.Ready {
			err = q.died(errors.New("it spoke before it was ready"))
		}
		if err != nil {
			break
		}
	}
	if !stop() {
		<-cut
		return context.Cause(ctx)
	}
	return err
}

// PIDs are the processes of the senders.
func (p *Processes) PIDs() (pids []int) {
	for _, q := range p.processes {
		pids = append(pids, q.cmd.Process.Pid)
	}
	return pids
}

func startProcess(exe string, number int) (*process, error) {
	q := &process{number: number, cmd: exec.Command(exe)}
	q.cmd.Env = append(os.Environ(), "RELAYBENCH_ROLE=sender")
	q.cmd.Stderr = &q.words
	// A Ctrl-C at the terminal is for the process that started it, which wants the tally.
	q.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if q.orders, err = q.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if q.out, err = q.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := q.cmd.Start(); err != nil {
		return nil, err
	}
	q.says = json.NewDecoder(q.out)
	q.exit = sync.OnceValue(q.cmd.Wait)
	return q, nil
}

// Run sends the load as [Run] does, with all sender processes. Its load's zero
// and its schedule's start count from zero and start. One that dies, or hangs
// when the load and the last answer's time are over, is an error, and its share
// is missing from the tally. A process sends one load.
func (p *Processes) Run(ctx context.Context, zero, start int64, live *Live) (*result.Tally, error) {
	load := p.load
	load.Zero, load.Schedule.Start = zero, start
	cells := make([]cell, len(p.processes))
	for i, q := range p.processes {
		q.cell = &cells[i]
	}
	if live != nil {
		live.begin(cells, p.due(load))
	}

	tallies := make([]*result.Tally, len(p.processes))
	errs := make([]error, len(p.processes))
	over := make(chan struct{})
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		for _, q := range p.processes {
			q.orders.Close()
		}
		late := time.NewTimer(stopLimit)
		defer late.Stop()
		select {
		case <-over:
		case <-late.C:
			p.kill()
		}
	})
	var hung atomic.Bool
	end := time.Duration(zero+start-envelope.Now()) + load.Duration + load.Timeout
	overdue := time.AfterFunc(end+p.grace, func() { hung.Store(true); p.kill() })
	defer overdue.Stop()
	var all sync.WaitGroup
	for i, q := range p.processes {
		all.Go(func() { tallies[i], errs[i] = q.run(startJSON{Zero: zero, Start: start}) })
	}
	all.Wait()
	close(over)

	tally := result.NewTally(load.Schedule.First, load.Schedule.Stride)
	for _, t := range tallies {
		if t != nil {
			errs = append(errs, tally.Merge(t))
		}
	}
	if !stop() {
		<-cut
		return tally, context.Cause(ctx)
	}
	err := errors.Join(errs...)
	if hung.Load() && err != nil {
		err = fmt.Errorf("no tally %v after the load: %w", load.Timeout+p.grace, err)
	}
	return tally, err
}

// due is how many numbers of the whole share have been due.
func (p *Processes) due(load Load) func() uint64 {
	whole := &run{load: load, start: load.Zero + load.Schedule.Start}
	return func() (n uint64) {
		if load.Schedule.Open() {
			return whole.dueAt(envelope.Now())
		}
		for _, q := range p.processes {
			n += q.due.Load()
		}
		return n
	}
}

// run has the process send, and reads until its tally has come whole.
func (q *process) run(start startJSON) (*result.Tally, error) {
	if err := json.NewEncoder(q.orders).Encode(start); err != nil {
		return nil, q.died(err)
	}
	for {
		var m message
		if err := q.says.Decode(&m); err != nil {
			return nil, q.died(err)
		}
		if c := m.Counts; c != nil {
			q.cell.set(*c)
			q.due.Store(c.Due)
		}
		if m.Tally == nil || m.Log == nil {
			continue
		}
		m.Tally.Log = *m.Log
		if m.Error != "" {
			return m.Tally, fmt.Errorf("sender process %d: %s", q.number, m.Error)
		}
		return m.Tally, nil
	}
}

// died is the error of a process that ended before it should have, or spoke nonsense: then err says which.
func (q *process) died(err error) error {
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE)
	if !ended {
		q.cmd.Process.Kill()
	}
	if how := q.close(); how != nil && ended {
		err = how
	}
	if words := strings.TrimSpace(string(q.words)); words != "" {
		return fmt.Errorf("sender process %d: %w: %s", q.number, err, words)
	}
	return fmt.Errorf("sender process %d: %w", q.number, err)
}

// close tells the process to end and waits until it has; it returns how.
func (q *process) close() error {
	q.orders.Close()
	late := time.AfterFunc(stopLimit, func() { q.cmd.Process.Kill() })
	defer late.Stop()
	return q.exit()
}

// Close ends the processes and waits for them.
func (p *Processes) Close() {
	for _, q := range p.processes {
		q.orders.Close()
	}
	for _, q := range p.processes {
		q.close()
	}
}

func (p *Processes) kill() {
	for _, q := range p.processes {
		q.cmd.Process.Kill()
	}
}

// lastWords keeps the end of what is written to it.
type lastWords []byte

func (w *lastWords) Write(b []byte) (int, error) {
	*w = append(*w, b...)
	*w = (*w)[max(0, len(*w)-maxLastWords):]
	return len(b), nil
}
