package perf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"relaybench/harness/result"
)

// The bounds of a recording.
const (
	stackBytes = 65528            // of the stack that each sample has with dwarf: perf's most; Relay's stacks are deep
	maxData    = "2G"             // perf stops by itself when its file is so large
	attachIn   = 30 * time.Second // it takes 0.1 s
	answerIn   = 10 * time.Second
	endIn      = 60 * time.Second // from the order to end until the file is whole
	readIn     = 5 * time.Minute  // to read it
)

// Recording is a perf that records one process. Its methods are called in their
// order, Close last and always.
type Recording struct {
	means Means
	freq  int
	// data is perf's file. It has no name, so that it is gone with the last
	// process that has it open, however that ends; perf names it by its number.
	data *os.File

	cmd     *exec.Cmd
	orders  *os.File
	answers *os.File
	said    bytes.Buffer // once done is closed
	done    chan struct{}
	err     error // how perf ended, once done is closed
	closing sync.Once

	from, until time.Time
}

// Start attaches to a process. Nothing is recorded before [Recording.Begin]. Nothing
// is left behind when it returns an error. ctx bounds the start alone.
func Start(ctx context.Context, m Means, freq, pid int) (*Recording, error) {
	for left := attaches; ; left-- {
		r, err := attach(ctx, m, freq, pid)
		if err == nil {
			return r, nil
		}
		if !errors.Is(err, errMute) || left == 1 || ctx.Err() != nil {
			return nil, fmt.Errorf("perf record: %w", err)
		}
	}
}

// attaches is how often attaching is tried: where a thread of the process ends
// between perf's list of threads and its turn, perf 6.1 ends without a word.
const attaches = 5

// errMute is in the error of a perf that ended without a word.
var errMute = errors.New("it said nothing")

func attach(ctx context.Context, m Means, freq, pid int) (*Recording, error) {
	r := &Recording{means: m, freq: freq, done: make(chan struct{})}
	if err := r.start(pid); err != nil {
		return nil, err
	}
	// An order that changes nothing is answered once perf has attached.
	if err := r.order(ctx, "disable", attachIn); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// args are those of perf record.
func (r *Recording) args(pid int) []string {
	graph := r.means.CallGraph
	if graph == Dwarf {
		graph += "," + strconv.Itoa(stackBytes)
	}
	return []string{"record", "--no-buildid", "--no-buildid-cache", "--output", theirFile(5), "--max-size", maxData,
		"--event", r.means.Event, "--freq", strconv.Itoa(r.freq), "--call-graph", graph, "--pid", strconv.Itoa(pid),
		"--delay", "-1", "--control", "fd:3,4"}
}

// theirFile is the path of a file for the process that has it open under a number.
func theirFile(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func (r *Recording) start(pid int) (err error) {
	var theirs [2]*os.File
	defer func() {
		for _, f := range theirs {
			if f != nil {
				f.Close()
			}
		}
		if err != nil {
			close(r.done)
			r.Close()
		}
	}()
	if r.data, err = os.CreateTemp("", "relaybench-perf-"); err != nil {
		return err
	}
	if err := os.Remove(r.data.Name()); err != nil {
		return err
	}
	if theirs[0], r.orders, err = os.Pipe(); err != nil {
		return err
	}
	if r.answers, theirs[1], err = os.Pipe(); err != nil {
		return err
	}
	r.cmd = command(r.means.Perf, r.args(pid)...)
	r.cmd.ExtraFiles = append(theirs[:], r.data)
	said := &tail{}
	r.cmd.Stdout, r.cmd.Stderr = said, said
	if err := r.cmd.Start(); err != nil {
		return err
	}
	go func() { // joined by Close
		defer close(r.done)
		r.err = r.cmd.Wait()
		r.said.Write(said.kept)
	}()
	return nil
}

// order tells perf something, and waits until it has done it.
func (r *Recording) order(ctx context.Context, what string, within time.Duration) error {
	deadline := time.Now().Add(within)
	_ = r.orders.SetWriteDeadline(deadline)
	_ = r.answers.SetReadDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = r.answers.SetReadDeadline(time.Now()) })
	defer stop()
	_, err := io.WriteString(r.orders, what+"\n")
	if err == nil {
		err = readAnswer(r.answers)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("has not answered to %q within %v", what, within)
	}
	// It has ended, or will: nothing else closes the pipes.
	select {
	case <-r.done:
		return fmt.Errorf("ended: %w", r.ended())
	case <-time.After(time.Second):
		return fmt.Errorf("%s: %w", what, err)
	}
}

// readAnswer reads an answer of perf's, "ack\n" and a zero.
func readAnswer(from io.Reader) error {
	var got []byte
	for b := make([]byte, 16); !bytes.Contains(got, []byte("ack\n")); {
		n, err := from.Read(b)
		if got = append(got, b[:n]...); n == 0 && err != nil {
			return err
		}
		if len(got) > 1<<10 {
			return fmt.Errorf("answered %q", got[:20])
		}
	}
	return nil
}

// ended is how perf ended, in its own words.
func (r *Recording) ended() error {
	why := "exit status 0"
	if r.err != nil {
		why = r.err.Error()
	}
	text := r.said.String()
	if strings.Contains(text, "unknown option `control'") {
		return errors.New("this perf is older than 5.10, whose option --control is needed")
	}
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("%s: %w", why, errMute)
	}
	return fmt.Errorf("%s: %s", why, firstLine(text))
}

// Begin begins to record. What happened before is in no sample.
func (r *Recording) Begin(ctx context.Context) error {
	if err := r.order(ctx, "enable", answerIn); err != nil {
		return fmt.Errorf("perf record: %w", err)
	}
	r.from = time.Now()
	return nil
}

// End ends recording. perf itself ends later, with nothing more to do than to write its file.
func (r *Recording) End() {
	_ = r.order(context.Background(), "disable", answerIn) // whether it has ended is seen by Profile
	r.until = time.Now()
	r.signal(syscall.SIGINT)
}

func (r *Recording) signal(s syscall.Signal) {
	select {
	case <-r.done:
	default:
		_ = syscall.Kill(-r.cmd.Process.Pid, s)
	}
}

// Profile waits for perf and makes the profile. It ends with ctx. Its result is
// never nil: of one that could not be made it says why.
func (r *Recording) Profile(ctx context.Context) *result.Profile {
	p := &result.Profile{CallGraph: r.means.CallGraph, Freq: r.freq, Event: r.means.Event, Perf: r.means.Version, Took: int64(r.until.Sub(r.from))}
	if err := r.profile(ctx, p); err != nil {
		p.Failed = err.Error()
	}
	return p
}

func (r *Recording) profile(ctx context.Context, p *result.Profile) error {
	limit := time.NewTimer(endIn)
	defer limit.Stop()
	select {
	case <-r.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return fmt.Errorf("perf record: has not ended within %v", endIn)
	}
	if _, err := r.data.Seek(0, io.SeekStart); err != nil {
		return err
	}
	counts, err := readData(r.data)
	if err != nil {
		return fmt.Errorf("perf record: %w; its file %w", r.ended(), err)
	}
	p.Lost = counts.lost
	b := newBuilder(r.means.Event, r.freq)
	if err := r.script(ctx, b); err != nil {
		return fmt.Errorf("perf script: %w", err)
	}
	p.Samples, p.Whole, p.Cut = b.samples, b.whole, b.cut
	b.p.TimeNanos, b.p.DurationNanos = r.from.UnixNano(), p.Took
	if p.Data, err = b.encode(); err != nil {
		return err
	}
	if counts.samples > b.samples {
		return fmt.Errorf("perf script: printed %d of %d samples", b.samples, counts.samples)
	}
	if b.samples == 0 && counts.lost == 0 {
		return errors.New("no sample was taken: the process used no CPU, or not enough to be seen")
	}
	return nil
}

// script reads the recording into b.
//
// Note: without --no-inline, perf 6.1 asks another program about each address, for minutes.
func (r *Recording) script(ctx context.Context, b *builder) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readIn, fmt.Errorf("has not ended within %v", readIn))
	defer cancel()
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := command(r.means.Perf, "script", "--input", theirFile(3), "--no-inline", "--fields", scriptFields)
	cmd.ExtraFiles = []*os.File{r.data}
	said := &tail{}
	cmd.Stdout, cmd.Stderr = in, said
	read := make(chan error, 1)
	go func() { // ends with the pipe
		_, err := readScript(out, b.add)
		read <- err
	}()
	err = run(ctx, cmd)
	in.Close()
	if err != nil { // whoever perf started may hold the pipe
		_ = out.SetReadDeadline(time.Now().Add(time.Second))
	}
	readErr := <-read
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, firstLine(string(said.kept)))
	}
	return errors.Join(err, readErr)
}

// Close ends what is left: process, files.
func (r *Recording) Close() {
	r.closing.Do(func() {
		if r.cmd != nil && r.cmd.Process != nil {
			r.signal(syscall.SIGKILL)
		}
		<-r.done
		for _, f := range []*os.File{r.orders, r.answers, r.data} {
			if f != nil {
				f.Close()
			}
		}
	})
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(b []byte) (int, error) {
	const most = 8 << 10
	t.kept = append(t.kept, b...)
	if len(t.kept) > most {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-most:]...)
	}
	return len(b), nil
}
