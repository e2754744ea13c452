package blaster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"relaybench/envelope"
	"relaybench/harness/host"
	"relaybench/harness/result"
)

// What goes between a sender process and the one that started it, as JSON: to
// it a load and then a start; from it messages, the last of which has the tally.
type (
	startJSON struct {
		Zero  int64 `json:"zero_ns"`
		Start int64 `json:"start_ns"`
	}
	message struct {
		Ready  bool          `json:"ready,omitempty"`
		Counts *Counts       `json:"counts,omitempty"`
		Tally  *result.Tally `json:"tally,omitempty"`
		Log    *result.Log   `json:"log,omitempty"`   // the tally's
		Error  string        `json:"error,omitempty"` // of the load
	}
)

// countsEvery is how often a sender process says how far it is.
const countsEvery = 200 * time.Millisecond

var errLeft = errors.New("the process that started this sender stopped it")

// SenderMain is a sender process: a face of the program that [StartProcesses]
// starts. It reads a load, builds its pool and says that it is ready, reads
// when to start, sends, and writes its tally; it returns when in has ended.
// When in ends before, the load is stopped: no sender process outlives the one
// that started it.
func SenderMain(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := senderMain(ctx, in, json.NewDecoder(in), json.NewEncoder(out)); err != nil {
		return fmt.Errorf("sender: %w", err)
	}
	return nil
}

func senderMain(ctx context.Context, in io.Reader, orders *json.Decoder, say *json.Encoder) error {
	var load Load
	if err := orders.Decode(&load); err != nil {
		return fmt.Errorf("read load: %w", err)
	}
	pool, err := envelope.NewPool(load.Pool)
	if err != nil {
		return err
	}
	defer host.HoldCollector()()
	if err := say.Encode(message{Ready: true}); err != nil {
		return err
	}
	var start startJSON
	if err := orders.Decode(&start); errors.Is(err, io.EOF) {
		return nil // not needed after all
	} else if err != nil {
		return fmt.Errorf("read start: %w", err)
	}
	load.Zero, load.Schedule.Start = start.Zero, start.Start

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() {
		io.Copy(io.Discard, in)
		cancel(errLeft)
	})

	var live Live
	last := make(chan message)
	go func() { last <- runAlone(ctx, load, pool, &live) }()
	every := time.NewTicker(countsEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			c := live.Counts()
			if err := say.Encode(message{Counts: &c}); err != nil {
				cancel(err)
				<-last
				return err
			}
		case m := <-last:
			c := live.Counts()
			m.Counts = &c
			return say.Encode(m)
		}
	}
}

// runAlone runs a load in a process of its own, and makes the message that tells of it.
func runAlone(ctx context.Context, load Load, pool *envelope.Pool, live *Live) message {
	cpu, wait := processCPU(), host.RunQueueWait(os.Getpid())
	tally, err := Run(ctx, load, pool, live)
	tally.CPU = processCPU() - cpu
	if tally.Wait = -1; wait >= 0 {
		tally.Wait = max(-1, host.RunQueueWait(os.Getpid())-wait)
	}
	m := message{Tally: tally, Log: &tally.Log}
	if err != nil && ctx.Err() == nil {
		m.Error = err.Error()
	}
	return m
}

// processCPU is the CPU time of this process, user and system, in nanoseconds.
func processCPU() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
