package harness

import (
	"context"
	"fmt"
	"os"
	"runtime/metrics"
	"time"

	"github.com/goccy/go-yaml"

	"relaybench/harness/host"
	"relaybench/harness/relay"
	"relaybench/harness/result"
)

// meter takes the readings at the ends of load and drain.
type meter struct {
	x      *run
	self   int
	cpu    int64
	wait   int64
	relay  int64
	others map[int]int64
	gcs    uint64
}

// startMeter takes the readings at load start.
func (x *run) startMeter() {
	m := &meter{x: x, self: os.Getpid()}
	x.meter = m
	r := &x.res.Relay
	pid := x.pid()
	r.CPUStart, r.CPUKnown = processCPU(pid)
	resetPeak(pid)
	r.RSSStart, _, _, r.MemoryKnown = processMemory(pid)
	resetPeak(m.self)
	m.others = othersCPU(m.self, pid) // in a container it is no descendant of ours
	x.seePins()
	m.gcs = collections()
	m.relay = host.RunQueueWait(pid)
	m.wait = host.RunQueueWait(m.self)
	m.cpu, _ = processCPU(m.self)
}

// loadEnded takes those at load end.
func (m *meter) loadEnded() {
	x := m.x
	x.res.Relay.CPULoad, _ = processCPU(x.pid())
	x.res.Relay.CPUDrain = x.res.Relay.CPULoad // until the drain has ended
	h := &x.res.Harness
	h.CPUs = host.CPUs()
	cpu, _ := processCPU(m.self)
	h.CPULoad = cpu - m.cpu
	if x.tally != nil {
		h.CPULoad += x.tally.CPU
	}
	h.WaitLoad = since(m.wait, host.RunQueueWait(m.self))
	if t := x.tally; t != nil && h.WaitLoad >= 0 {
		if h.WaitLoad += t.Wait; t.Wait < 0 {
			h.WaitLoad = -1
		}
	}
	h.RelayWait = since(m.relay, host.RunQueueWait(x.pid()))
	h.GCs = collections() - m.gcs
	x.seePins()
}

// drainEnded takes those at drain end, after the sampler's last sample. The relay may be gone: its last readings then stand.
func (m *meter) drainEnded() {
	x := m.x
	r, h := &x.res.Relay, &x.res.Harness
	pid := x.pid()
	if cpu, ok := processCPU(pid); ok {
		r.CPUDrain = cpu
	}
	r.RSSDrained, r.RSSPeak = x.sampler.rss, x.sampler.peak
	cpu, _ := processCPU(m.self)
	h.CPUDrain = cpu - m.cpu - h.CPULoad
	if x.tally != nil {
		h.CPUDrain += x.tally.CPU
	}
	if _, peak, _, ok := processMemory(m.self); ok {
		h.RSSPeak = peak
	}
	h.Others = -1
	// Note: a relay that is not ours may be one of the others here; what they use is then not known.
	if x.program.Form == relay.FormURL {
		return
	}
	if after := othersCPU(m.self, pid); after != nil && m.others != nil {
		h.Others = 0
		for pid, cpu := range after {
			if before, ok := m.others[pid]; ok {
				h.Others += max(0, cpu-before)
			} else {
				h.Others += cpu
			}
		}
	}
}

func since(before, after int64) int64 {
	if before < 0 || after < 0 {
		return -1
	}
	return max(0, after-before)
}

func collections() uint64 {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}

// memoryGuard is the cause of a load that was stopped because memory ran out.
type memoryGuard struct{ left, total uint64 }

func (g *memoryGuard) Error() string {
	return fmt.Sprintf("%d MiB of %d MiB of memory left: less than a tenth", g.left>>20, g.total>>20)
}

// guardEvery is how often memory is looked at during the load: a relay that cannot keep up has grown by 200 MB/s.
const guardEvery = 200 * time.Millisecond

// guard stops the load when the relay has ended or memory runs out, until ctx ends.
func (x *run) guard(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(guardEvery)
	defer tick.Stop()
	memory := x.limits.memory
	if memory == nil {
		m := host.OpenMemory()
		defer m.Close()
		memory = m.Left
	}
	for {
		select {
		case <-x.died():
			stop(ErrRelayDied)
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			if left, total, ok := memory(); ok && left < total/10 {
				stop(&memoryGuard{left, total})
				return
			}
		}
	}
}

// sampler takes a sample each second from load start to drain end, and one
// where the load ends. Its goroutine is joined by close.
type sampler struct {
	x     *run
	start int64
	end   int64         // when the load ends by plan
	cut   chan struct{} // closed when the load ended before
	quit  chan struct{}
	done  chan struct{}

	samples []result.Sample // read after close
	peak    int64           // the relay's highest high-water mark seen
	rss     int64           // its last resident memory
}

const sampleEvery = int64(time.Second)

func (x *run) startSampler(start int64) *sampler {
	s := &sampler{x: x, start: start, end: start + int64(x.plan.Duration),
		cut: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

// close takes a last sample and gives all of them.
func (s *sampler) close() []result.Sample {
	close(s.quit)
	<-s.done
	return s.samples
}

func (s *sampler) run() {
	defer close(s.done)
	self := os.Getpid()
	cpu, _ := processCPU(self)
	perSend := s.x.meanElements()
	cut, loading := s.cut, true
	due := s.start
	t := time.NewTimer(0)
	defer t.Stop()
	<-t.C
	for quit := false; !quit; {
		if due += sampleEvery - (due-s.start)%sampleEvery; loading && due > s.end {
			due = s.end
		}
		t.Reset(time.Duration(due - s.x.now()))
		select {
		case <-t.C:
		case <-cut:
			cut, due = nil, s.x.now()
			s.take(self, cpu, perSend, !loading)
			loading = false
			continue
		case <-s.quit:
			quit = true
		}
		s.take(self, cpu, perSend, !loading)
		loading = loading && due < s.end
	}
}

// take takes one sample.
func (s *sampler) take(self int, selfCPU int64, perSend map[int]float64, draining bool) {
	x := s.x
	c := x.live.Counts()
	v := result.Sample{At: x.now() - s.start, Due: c.Due, Sent: c.Sent, Accepted: c.Accepted, Refused: c.Refused, Failed: c.Failed,
		Arrived: x.agent.arrived(), LateMax: c.LateMax, Open: x.up.Open(), RelayCPU: -1, RelayRSS: -1, Threads: -1, Draining: draining}
	outcomes := 0.0
	for _, o := range x.outcomes(x.up.Stats()) {
		if mean := perSend[o.Category]; mean > 0 && o.Outcome != outcomeClient {
			outcomes += float64(o.Quantity) / mean
		}
	}
	v.Outcomes = uint64(outcomes)
	// Note: what was refused at ingest makes an outcome for most statuses and
	// kinds; here the refused are taken to be among the outcomes as far as those go.
	v.Backlog = max(0, int64(v.Sent)-int64(v.Refused)-int64(v.Arrived)-max(0, int64(v.Outcomes)-int64(v.Refused)))
	pid := x.pid()
	if cpu, ok := processCPU(pid); ok {
		v.RelayCPU = cpu - x.res.Relay.CPUStart
	}
	if rss, peak, threads, ok := processMemory(pid); ok {
		v.RelayRSS, v.Threads = rss, threads
		s.rss, s.peak = rss, max(s.peak, peak)
	}
	if cpu, ok := processCPU(self); ok {
		v.HarnessCPU = cpu - selfCPU
	}
	v.HarnessRSS, _, _, _ = processMemory(self)
	s.samples = append(s.samples, v)
	x.tell(func(o Observer) { o.Sample(v) })
}

// meanElements is the mean number of elements of a send, by category of its kind.
func (x *run) meanElements() map[int]float64 {
	sum, n := map[int]float64{}, map[int]float64{}
	for i := range uint64(x.pool.Len()) {
		c := x.kinds[x.index[x.pool.Kind(i)]].Category
		sum[c] += float64(x.pool.Elements(i))
		n[c]++
	}
	for c := range sum {
		sum[c] /= n[c]
	}
	return sum
}

// concurrencyLimit is limits.max_concurrent_requests of an effective config; 0 unknown.
func concurrencyLimit(config string) int {
	var c struct {
		Limits struct {
			Requests int `yaml:"max_concurrent_requests"`
		}
	}
	if yaml.Unmarshal([]byte(config), &c) != nil {
		return 0
	}
	return c.Limits.Requests
}
