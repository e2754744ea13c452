//go:build linux

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"relaybench/envelope"
	"relaybench/harness/blaster"
	"relaybench/harness/host"
	"relaybench/harness/result"
	"relaybench/upstream"
)

// connections are how many each client of a comparison has.
const connections = 64

// sized is a kind of one item of about size bytes, in text that compresses as JSON does.
func sized(size int) envelope.Kind {
	return envelope.Kind{Name: "sized", Weight: 1, Items: []string{"event"}, Elements: envelope.One, Category: 1,
		Make: func(m *envelope.Maker) error {
			var b strings.Builder
			for i := 0; b.Len() < size; i++ {
				fmt.Fprintf(&b, `{"function":"handle_%d","lineno":%d,"filename":"app/views/%x.py","in_app":true},`, i%37, i*7919%991, i*i*2654435761)
			}
			m.AddItem("event", []byte(b.String()[:size]))
			return nil
		}}
}

// load is what blast and body are told by flags.
type load struct {
	size, projects, connections int
	encoding, addr              string
	rate, seconds               float64
	upstream                    bool
}

func (l *load) pool() (*envelope.Pool, envelope.PoolConfig, error) {
	c := envelope.PoolConfig{Kinds: []envelope.Kind{sized(l.size)}, Seed: 1, Size: 100, Projects: l.projects, Zipf: 1,
		Shape: envelope.DefaultShape(), Epoch: time.Now(), Encoding: l.encoding}
	if l.size == 0 {
		c.Kinds, c.Size = envelope.Kinds, 1000
	}
	var err error
	if c.Mix, err = envelope.ParseMix(c.Kinds, map[bool]string{true: "mixed", false: "sized"}[l.size == 0]); err != nil {
		return nil, c, err
	}
	p, err := envelope.NewPool(c)
	return p, c, err
}

func loadFlags(name string, args []string) (*load, error) {
	var l load
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.IntVar(&l.size, "size", 0, "bytes of a body; 0: the default mix")
	f.IntVar(&l.projects, "projects", 1, "")
	f.IntVar(&l.connections, "connections", connections, "")
	f.StringVar(&l.encoding, "encoding", "", "")
	f.StringVar(&l.addr, "addr", "", "host:port of the server")
	f.Float64Var(&l.rate, "rate", 0, "sends a second; 0: flat out")
	f.Float64Var(&l.seconds, "seconds", 5, "")
	f.BoolVar(&l.upstream, "upstream", false, "send to an upstream in this process")
	return &l, f.Parse(args)
}

// blasted is what blast prints.
type blasted struct {
	Requests float64       `json:"requests"` // accepted
	Skipped  float64       `json:"skipped"`  // due, and not accepted
	Seconds  float64       `json:"seconds"`  // from the first send to the last answer
	Late     float64       `json:"late_p99_ms"`
	CPU      time.Duration `json:"cpu_ns"`    // of the load alone
	Steady   float64       `json:"steady_ns"` // CPU a send, of the load's second half: all connections are made by then
	Errors   map[string]uint64
}

// blast is relaybench's senders alone, with all that they note, as in a run: no collector.
func blast(ctx context.Context, args []string) error {
	l, err := loadFlags("blast", args)
	if err != nil {
		return err
	}
	pool, conf, err := l.pool()
	if err != nil {
		return err
	}
	zero := envelope.Now()
	if l.upstream {
		up, err := upstream.Start(upstream.Config{Kinds: conf.Kinds, Zero: zero})
		if err != nil {
			return err
		}
		defer up.Close()
		l.addr = up.Addr()
	}
	defer host.HoldCollector()()
	start := envelope.Now() - zero + int64(20*time.Millisecond)
	before := ownCPU()
	var live blaster.Live
	half := make(chan [2]float64, 1)
	timer := time.AfterFunc(time.Duration(l.seconds/2*float64(time.Second)), func() { half <- [2]float64{float64(ownCPU()), float64(live.Counts().Sent)} })
	defer timer.Stop()
	t, err := blaster.Run(ctx, blaster.Load{Addr: l.addr, Pool: conf, Zero: zero, Duration: time.Duration(l.seconds * float64(time.Second)),
		Schedule: blaster.Schedule{Start: start, Rate: l.rate, Stride: 1}, Connections: l.connections, Timeout: 10 * time.Second}, pool, &live)
	after := ownCPU()
	if err != nil {
		return err
	}
	b := blasted{Requests: float64(t.Counts[result.Accepted]), Seconds: float64(t.Last-t.First) / 1e9, CPU: after - before, Errors: t.Errors}
	b.Skipped = float64(t.Due) - b.Requests
	select {
	case then := <-half:
		b.Steady = (float64(after) - then[0]) / (float64(t.Sent) - then[1])
	default:
	}
	if late, ok := t.Late.Quantile(.99); ok {
		b.Late = late / 1e6
	}
	if l.rate > 0 {
		b.Seconds = l.seconds
	}
	if b.Requests == 0 || math.IsNaN(b.Seconds) || math.IsInf(b.Steady, 0) || math.IsNaN(b.Steady) {
		return fmt.Errorf("nothing was accepted: %v", t.Errors)
	}
	return json.NewEncoder(os.Stdout).Encode(b)
}

func ownCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// writeBody prints the body that blast sends, for its peers to send.
func writeBody(_ context.Context, args []string) error {
	l, err := loadFlags("body", args)
	if err != nil {
		return err
	}
	pool, _, err := l.pool()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(pool.Append(nil, 0, 0))
	return err
}

// serveUpstream is relaybench's upstream alone. It prints its address, and how many elements it counted when ctx has ended.
func serveUpstream(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("upstream SIZE")
	}
	size, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	up, err := upstream.Start(upstream.Config{Kinds: []envelope.Kind{sized(size)}, Zero: envelope.Now()})
	if err != nil {
		return err
	}
	defer host.HoldCollector()()
	fmt.Println(up.Addr())
	<-ctx.Done()
	up.Close()
	return nil
}
