//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// groups are all rows, in the order of the table.
var groups = []group{
	clients(1200), clients(12_000),
	{name: "nginx", needs: []string{"nginx"}, round: besideNginx, rows: []row{
		{"upstream beside nginx `return 200`, identity, CPU a request", "at most 1.4x", "x", atMost(1.4)}}},
	{name: "encodings", round: decoding, rows: []row{
		{"upstream, zstd 40 KB, items counted, beside identity of as many wire bytes, CPU a request", "at most 2.5x", "x", atMost(2.5)},
		{"the same, gzip", "at most 5x", "x", atMost(5)}}},
	{name: "alone", needs: []string{"go"}, rows: []row{
		{"whole harness alone beside net/http at both ends, sends/s", "at least 2.5x", "x", atLeast(2.5)}},
		round: func(ctx context.Context, b *bench, _ int) ([]float64, error) {
			return b.benchmark(ctx, "harness", "AgainstNetHTTP", "5x", "x")
		}},
	{name: "relay", needs: []string{"relaybench", "RELAY_BIN"}, round: besideRelay, rows: []row{
		{"harness CPU a send in % of Relay's, sessions at 300/s", "at most 15%", "%", atMost(15)},
		{"the same, errors", "at most 3%", "%", atMost(3)},
		{"sessions, Relay on CPU 0, harness on the others", "at most 15%", "%", atMost(15)},
		{"errors, the same", "at most 3%", "%", atMost(3)}}},
	pacing(200), pacing(1000), pacing(5000),
	{name: "pace-20000", rows: []row{
		{"20,000/s: sent, off the rate", "at most 0.5%", "%", atMost(.5)},
		{"20,000/s: p99 lateness", "at most 1 ms", "ms", atMost(1)},
		{"20,000/s: cores", "under 1", "", func(v float64) bool { return v < 1 }}},
		round: func(ctx context.Context, b *bench, _ int) ([]float64, error) {
			s, err := b.paced(ctx, 20_000)
			return []float64{100 * math.Abs(s.requests/(20_000*b.seconds)-1), s.Late, s.CPU.Seconds() / b.seconds}, err
		}},
	{name: "stall", needs: []string{"go"}, rows: []row{
		{"a server that stalls 1 s in 10, 1,000/s: p95, off the computed", "within 2%", "%", within(2)},
		{"the same, p99", "within 2%", "%", within(2)}, {"the same, p99.9", "within 2%", "%", within(2)}},
		round: func(ctx context.Context, b *bench, _ int) ([]float64, error) {
			return b.benchmark(ctx, "harness/blaster", "Stall", "1x", "%-off-p95", "%-off-p99", "%-off-p99.9")
		}},
	{name: "collections", needs: []string{"relaybench"}, round: collections, rows: []row{
		{"collections while sending, 1,000/s mixed through the stand-in", "none", "", atMost(0)}}},
	{name: "save", needs: []string{"go"}, round: saving, rows: []row{
		{"durable save of a 10 s report beside write, fsync, rename", "at most 2x", "x", atMost(2)},
		{"of a 60 s report", "at most 2x", "x", atMost(2)}, {"of a 600 s report", "at most 2x", "x", atMost(2)},
		{"of a 600 s report whose room was reserved, as a run's is", "at most 2x", "x", atMost(2)}}},
	{name: "collate", needs: []string{"go", "relaybench"}, round: collating, rows: []row{
		{"collate over 100,000 reports, whole process, warm", "at most 0.2 s", "s", atMost(.2)},
		{"its memory at most", "under 200 MB", "MB", atMost(200)},
		{"the same, page cache dropped (root alone can)", "at most 1 s", "s", atMost(1)}}},
	{name: "start", needs: []string{"go"}, rows: []row{{"start to the prompt", "under 50 ms", "ms", atMost(50)}},
		round: func(ctx context.Context, b *bench, _ int) ([]float64, error) {
			v, err := b.benchmark(ctx, "shell", "Prompt/1$", "20x", "ns/op")
			if err != nil {
				return nil, err
			}
			return []float64{v[0] / 1e6}, nil
		}},
	growth(),
}

func within(percent float64) func(float64) bool {
	return func(v float64) bool { return math.Abs(v) <= percent }
}

// clients has ours and each peer post bodies of a size to the same null server, flat out.
func clients(size int) group {
	named := []struct {
		peer       string
		rate, cost string // goals; "": none
		r, c       func(float64) bool
	}{
		{"hey", "at least 2.4x", "at most 0.35x", atLeast(2.4), atMost(.35)},
		{"vegeta", "at least 2.5x", "", atLeast(2.5), nil},
		{"fortio", "at least 1.0x", "", atLeast(1), nil},
		{"wrk -t2", "at least 0.85x", "", atLeast(.85), nil},
		{"wrk -t1", "", "at most 1.25x", nil, atMost(1.25)},
		{"oha", "", "", nil, nil},
	}
	g := group{name: fmt.Sprintf("clients-%d", size)}
	for _, p := range named {
		g.rows = append(g.rows,
			row{fmt.Sprintf("flat out, 64 connections, %d B, requests/s: ours/%s", size, p.peer), or(p.rate), "x", p.r},
			row{fmt.Sprintf("the same, CPU a request: ours/%s", p.peer), or(p.cost), "x", p.c})
	}
	g.round = func(ctx context.Context, b *bench, n int) ([]float64, error) {
		null, err := b.part(ctx, "null")
		if err != nil {
			return nil, err
		}
		defer null.stop()
		body, err := b.body(ctx, size)
		if err != nil {
			return nil, err
		}
		var mine sent
		theirs := make([]sent, len(named))
		sides := []func() error{func() (err error) {
			mine, err = ours(ctx, b, null.addr, "-size", strconv.Itoa(size))
			return err
		}}
		for i, p := range named {
			if b.programs[peers[p.peer].name] == "" {
				continue
			}
			sides = append(sides, func() (err error) {
				if theirs[i], err = peers[p.peer].send(ctx, b, null.addr, body, 0); err != nil {
					err = fmt.Errorf("%s: %w", p.peer, err)
				}
				return err
			})
		}
		// Ours stands in the middle, so that none of them is far from it.
		half := len(sides) / 2
		sides[0], sides[half] = sides[half], sides[0]
		if err := inTurn(n, sides...); err != nil {
			return nil, err
		}
		var v []float64
		for i, p := range named {
			if theirs[i].requests == 0 {
				return nil, fmt.Errorf("%s could not be installed", p.peer)
			}
			v = append(v, mine.perSecond()/theirs[i].perSecond(), mine.cpuEach()/theirs[i].cpuEach())
		}
		return v, nil
	}
	return g
}

func or(goal string) string {
	if goal == "" {
		return "–"
	}
	return goal
}

// served is the CPU a request of a server that our senders load flat out.
func (b *bench) served(ctx context.Context, s *server, args ...string) (float64, error) {
	before, err := s.cpu()
	if err != nil {
		return 0, err
	}
	c, err := ours(ctx, b, s.addr, args...)
	if err != nil {
		return 0, err
	}
	after, err := s.cpu()
	return float64(after-before) / c.requests, err
}

func besideNginx(ctx context.Context, b *bench, n int) ([]float64, error) {
	const size = 1200
	up, err := b.part(ctx, "upstream", strconv.Itoa(size))
	if err != nil {
		return nil, err
	}
	defer up.stop()
	nginx, err := b.nginx(ctx)
	if err != nil {
		return nil, err
	}
	defer nginx.stop()
	var mine, theirs float64
	err = inTurn(n, func() (err error) {
		mine, err = b.served(ctx, up, "-size", strconv.Itoa(size))
		return err
	}, func() (err error) {
		theirs, err = b.served(ctx, nginx, "-size", strconv.Itoa(size))
		return err
	})
	return []float64{mine / theirs}, err
}

// nginx starts one process of it that answers everything with 200.
func (b *bench) nginx(ctx context.Context) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	l.Close()
	conf := filepath.Join(b.work, "nginx.conf")
	text := fmt.Sprintf(`daemon off; master_process off; worker_processes 1; pid %[1]s/nginx.pid; error_log stderr crit;
events { worker_connections 1024; }
http { access_log off; keepalive_requests 100000000; client_body_temp_path %[1]s; client_body_buffer_size 64k;
proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
server { listen %[2]s; location / { default_type application/json; return 200 "{}"; } } }
`, b.work, addr)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s, err := serve(ctx, addr, b.programs["nginx"], "-c", conf, "-p", b.work)
	if err != nil {
		return nil, err
	}
	for range 100 {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return s, c.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("nginx does not listen")
}

// decoding has the upstream read encoded bodies, and plain ones of as many bytes on the wire.
func decoding(ctx context.Context, b *bench, n int) ([]float64, error) {
	const plain = 40_000
	cost := map[string]float64{}
	var sides []func() error
	for _, encoding := range []string{"zstd", "gzip"} {
		e, err := run(ctx, time.Minute, "", b.programs["peer"], "body", "-size", strconv.Itoa(plain), "-encoding", encoding)
		if err != nil {
			return nil, err
		}
		for _, side := range []struct {
			name string
			args []string
		}{
			{encoding, []string{"-size", strconv.Itoa(plain), "-encoding", encoding}},
			{encoding + "-plain", []string{"-size", strconv.Itoa(len(e.out) - 200)}},
		} {
			sides = append(sides, func() error {
				up, err := b.part(ctx, "upstream", strconv.Itoa(plain))
				if err != nil {
					return err
				}
				defer up.stop()
				cost[side.name], err = b.served(ctx, up, side.args...)
				return err
			})
		}
	}
	err := inTurn(n, sides...)
	return []float64{cost["zstd"] / cost["zstd-plain"], cost["gzip"] / cost["gzip-plain"]}, err
}

// besideRelay reads what reports say of the harness beside a Relay.
func besideRelay(ctx context.Context, b *bench, n int) ([]float64, error) {
	v := make([]float64, 4)
	var sides []func() error
	for i, line := range []string{"--mix sessions", "--mix errors", "--mix sessions --relay-cpus 0 --harness-cpus 1", "--mix errors --relay-cpus 0 --harness-cpus 1"} {
		sides = append(sides, func() error {
			var r struct {
				Metrics map[string]struct{ Value *float64 }
			}
			if err := b.reported(ctx, "relay use "+b.relay+"; test 8s --rate 300 "+line, "show last", &r); err != nil {
				return err
			}
			share := r.Metrics["harness-share"].Value
			if share == nil {
				return fmt.Errorf("no harness-share with %s", line)
			}
			v[i] = *share
			return nil
		})
	}
	return v, inTurn(n, sides...)
}

// reported makes a run, and reads what a line then says of it in JSON.
func (b *bench) reported(ctx context.Context, test, line string, to any) error {
	argv := []string{b.programs["relaybench"], "-db", filepath.Join(b.work, "runs.db"), "-json", "-c"}
	e, err := run(ctx, 2*time.Minute, b.work, append(argv, test)...)
	if e.state == nil || e.state.ExitCode() != 0 && e.state.ExitCode() != 5 { // 5: a mark, as on a busy machine
		return err
	}
	if e, err = run(ctx, time.Minute, b.work, append(argv, line)...); err != nil {
		return err
	}
	return json.Unmarshal(e.out, to)
}

// collections counts those of the collector while a load was sent.
func collections(ctx context.Context, b *bench, _ int) ([]float64, error) {
	var r struct {
		Report struct {
			Result struct{ Harness struct{ GCs *float64 } }
		}
	}
	if err := b.reported(ctx, "relay use stand-in; test 6s --rate 1000", "export -n 1", &r); err != nil {
		return nil, err
	}
	if r.Report.Result.Harness.GCs == nil {
		return nil, fmt.Errorf("the report does not count collections")
	}
	return []float64{*r.Report.Result.Harness.GCs}, nil
}

// paced is a load of 1.2 KB bodies at a rate over 64 connections.
func (b *bench) paced(ctx context.Context, rate float64) (sent, error) {
	null, err := b.part(ctx, "null")
	if err != nil {
		return sent{}, err
	}
	defer null.stop()
	return ours(ctx, b, null.addr, "-size", "1200", "-rate", fmt.Sprint(rate))
}

func pacing(rate float64) group {
	g := group{name: fmt.Sprintf("pace-%.0f", rate), needs: []string{"vegeta"}, rows: []row{
		{fmt.Sprintf("%.0f/s: p99 lateness", rate), "at most 0.3 ms", "ms", atMost(.3)},
		{fmt.Sprintf("%.0f/s: CPU beside vegeta", rate), "at most 1.2x", "x", atMost(1.2)},
		{fmt.Sprintf("%.0f/s: due and not sent", rate), "none", "", atMost(0)}}}
	g.round = func(ctx context.Context, b *bench, n int) ([]float64, error) {
		body, err := b.body(ctx, 1200)
		if err != nil {
			return nil, err
		}
		var mine, theirs sent
		err = inTurn(n, func() (err error) {
			mine, err = b.paced(ctx, rate)
			return err
		}, func() error {
			null, err := b.part(ctx, "null")
			if err != nil {
				return err
			}
			defer null.stop()
			theirs, err = peers["vegeta"].send(ctx, b, null.addr, body, rate)
			return err
		})
		if err != nil {
			return nil, err
		}
		return []float64{mine.Late, mine.cpuEach() / theirs.cpuEach(), mine.Skipped}, nil
	}
	return g
}

func saving(ctx context.Context, b *bench, _ int) ([]float64, error) {
	var v []float64
	for _, length := range []string{"10s", "60s", "600s", "600s-reserved"} {
		x, err := b.benchmark(ctx, "store", "Save/^"+length+"$", "50x", "ratio")
		if err != nil {
			return nil, err
		}
		v = append(v, x...)
	}
	return v, nil
}

// collating is a whole process of relaybench that collates a large store.
func collating(ctx context.Context, b *bench, _ int) ([]float64, error) {
	db := filepath.Join(b.work, "large.db")
	if _, err := os.Stat(db); err != nil {
		if err := os.Setenv("RELAYBENCH_GENERATE", db); err != nil {
			return nil, err
		}
		if _, err := run(ctx, 5*time.Minute, b.dir, b.programs["go"], "test", "./store", "-count", "1", "-run", "^TestGenerated$"); err != nil {
			return nil, err
		}
	}
	once := func() (ended, error) {
		return run(ctx, time.Minute, b.work, b.programs["relaybench"], "-db", db, "-c", "collate relay-branch")
	}
	if _, err := once(); err != nil { // the page cache
		return nil, err
	}
	warm, err := once()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		return nil, err
	}
	cold, err := once()
	return []float64{warm.took.Seconds(), float64(warm.rss) / 1e6, cold.took.Seconds()}, err
}

// growth is what a send costs with more connections and more projects, beside one of each.
func growth() group {
	g := group{name: "growth"}
	type shape struct{ connections, projects int }
	var shapes []shape
	for _, connections := range []int{1, 10, 100, 1000} {
		for _, projects := range []int{1, 1000, 100_000} {
			shapes = append(shapes, shape{connections, projects})
		}
	}
	for _, s := range shapes {
		g.rows = append(g.rows, row{fmt.Sprintf("CPU a send at 5,000/s with its upstream, connections made, %d connections, %d projects", s.connections, s.projects), "flat", "x", nil})
	}
	g.round = func(ctx context.Context, b *bench, n int) ([]float64, error) {
		cost := make([]float64, len(shapes))
		var sides []func() error
		for i, s := range shapes {
			sides = append(sides, func() error {
				c, err := ours(ctx, b, "", "-upstream", "-rate", "5000", "-connections", strconv.Itoa(s.connections), "-projects", strconv.Itoa(s.projects))
				cost[i] = c.Steady
				return err
			})
		}
		if err := inTurn(n, sides...); err != nil {
			return nil, err
		}
		v := make([]float64, len(cost))
		for i := range cost {
			v[i] = cost[i] / cost[0]
		}
		return v, nil
	}
	return g
}
