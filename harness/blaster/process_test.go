package blaster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"relaybench/envelope"
	"relaybench/harness/result"
)

func TestLoadJSON(t *testing.T) {
	want := newLoad("127.0.0.1:3000", 33.3, 1500*time.Millisecond, 7)
	want.Pool = poolConfig(t)
	want.Pool.Epoch = want.Pool.Epoch.Round(0).UTC()
	want.Pool.Encoding = "br"
	want.Schedule.First, want.Schedule.Stride, want.Schedule.Burst, want.Reconnect = 3, 4, 50, 7
	subset := want
	subset.Pool.Kinds = []envelope.Kind{*envelope.Find(envelope.Kinds, "logs"), *envelope.Find(envelope.Kinds, "errors")}
	var err error
	if subset.Pool.Mix, err = envelope.ParseMix(subset.Pool.Kinds, "logs=3,errors=1"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []Load{want, subset} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Load
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		// Functions are equal to none: kinds are compared by their names.
		if g, w := names(got.Pool.Kinds), names(want.Pool.Kinds); g != w {
			t.Errorf("got kinds %s, want %s", g, w)
		}
		got.Pool.Kinds, want.Pool.Kinds = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}

	own := want
	own.Pool = envelope.PoolConfig{Seed: 3, Size: 5, Projects: 1, Encoding: "gzip", Epoch: want.Pool.Epoch}
	dir := t.TempDir()
	file := filepath.Join(dir, "a"+envelope.FolderExt)
	if err := os.WriteFile(file, []byte("{}\n{\"type\":\"session\"}\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if own.Pool.Folder, err = envelope.ReadFolder(os.DirFS(dir), dir); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	var got Load
	if err := json.Unmarshal(b, &got); err != nil || got.Pool.Folder.SHA256 != own.Pool.Folder.SHA256 || got.Pool.Encoding != "gzip" {
		t.Errorf("got %+v, %v", got.Pool, err)
	}
	if err := os.WriteFile(file, []byte("{}\n{\"type\":\"session\"}\n[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &got); err == nil || !strings.Contains(err.Error(), "is not as it was when the run began") {
		t.Errorf("a folder that has changed: got %v", err)
	}

	injected := want
	injected.Pool.Kinds = []envelope.Kind{{Name: "mine"}}
	if _, err := json.Marshal(injected); err == nil || !strings.Contains(err.Error(), `"mine"`) {
		t.Errorf("an injected kind: got error %v, want one that names it", err)
	}
	for _, bad := range []string{`[]`, `{}`, `{"pool":{"mix":"sessions","kinds":["mine"]}}`} {
		if err := json.Unmarshal([]byte(bad), new(Load)); err == nil {
			t.Errorf("%s: got no error", bad)
		}
	}
}

func names(kinds []envelope.Kind) string {
	var s []string
	for _, k := range kinds {
		s = append(s, k.Name)
	}
	return strings.Join(s, ",")
}

// startProcesses starts sender processes that end with the test.
func startProcesses(t *testing.T, load Load, n int) *Processes {
	t.Helper()
	load.Pool = poolConfig(t)
	p, err := StartProcesses(t.Context(), load, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// The shares that several processes send are one schedule.
func TestProcesses(t *testing.T) {
	const n = 3
	for _, rate := range []float64{0, 500} {
		t.Run(fmt.Sprintf("%v/s", rate), func(t *testing.T) {
			t.Parallel()
			var live Live
			s := newServer(func(c net.Conn, r *request) bool {
				for live.Counts().Sent == 0 {
					time.Sleep(time.Millisecond) // the processes say it five times a second
				}
				return say(accepted, true)(c, r)
			})
			load := newLoad(s.listen(t), rate, time.Second, 2)
			p := startProcesses(t, load, n)
			zero := envelope.Now()
			got, err := p.Run(t.Context(), zero, int64(50*time.Millisecond), &live)
			if err != nil {
				t.Fatal(err)
			}
			if came := s.once(t); came == 0 || came != got.Sent || got.Counts[result.Accepted] != got.Sent || got.Connects > 2*n {
				t.Errorf("%d sent, %d accepted, %d came over %d connections", got.Sent, got.Counts[result.Accepted], came, got.Connects)
			}
			if got.CPU <= 0 {
				t.Errorf("the processes used %d ns of CPU", got.CPU)
			}
			if got.Log.First != 0 || got.Log.Stride != 1 {
				t.Errorf("the log begins at %d and has every %dth number, want the whole", got.Log.First, got.Log.Stride)
			}
			for seq := range uint64(len(got.Log.Bytes)) {
				if _, ok := s.at[seq]; ok != (got.Log.Answer(seq) == result.Accepted) {
					t.Fatalf("number %d came: %t, its answer is %v", seq, ok, got.Log.Answer(seq))
				}
			}
			if rate > 0 {
				sums(t, got)
				if got.Due != 500 || got.Late.Count() != got.Sent {
					t.Errorf("%d due, %d values of lateness of %d sends, want 500, as many", got.Due, got.Late.Count(), got.Sent)
				}
				if early := s.at[0] - zero; early < int64(50*time.Millisecond) {
					t.Errorf("number 0 came %d ns after zero, before it was due", early)
				}
			}
			want := Counts{Due: got.Due, Sent: got.Sent, Accepted: got.Sent}
			if c := live.Counts(); (Counts{c.Due, c.Sent, c.Accepted, c.Refused, c.Failed, 0}) != want {
				t.Errorf("got live counts %+v, want %+v", c, want)
			}
		})
	}
}

// A sender process that dies is an error, and the others' tallies are kept.
func TestProcessDies(t *testing.T) {
	t.Parallel()
	var p *Processes
	var once sync.Once
	s := newServer(func(c net.Conn, r *request) bool {
		if r.stamp.Seq%2 == 1 {
			once.Do(func() { p.processes[1].cmd.Process.Signal(syscall.SIGKILL) })
		}
		return say(accepted, true)(c, r)
	})
	p = startProcesses(t, newLoad(s.listen(t), 100, time.Second, 2), 2)
	got, err := p.Run(t.Context(), envelope.Now(), 0, nil)
	if err == nil || !strings.Contains(err.Error(), "sender process 2") || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got error %v, want that sender process 2 was killed", err)
	}
	if got.Due != 50 || got.Log.First != 0 || got.Log.Stride != 2 {
		t.Errorf("%d due, log from %d in steps of %d, want the first one's 50, 0, 2", got.Due, got.Log.First, got.Log.Stride)
	}
}

// A sender process that hangs is not waited for without an end.
func TestProcessHangs(t *testing.T) {
	t.Parallel()
	var p *Processes
	var once sync.Once
	s := newServer(func(c net.Conn, r *request) bool {
		if r.stamp.Seq%2 == 1 {
			once.Do(func() { p.processes[1].cmd.Process.Signal(syscall.SIGSTOP) })
		}
		return say(accepted, true)(c, r)
	})
	load := newLoad(s.listen(t), 100, time.Second, 2)
	load.Timeout = time.Second
	p = startProcesses(t, load, 2)
	p.grace = 2 * time.Second
	got, err := p.Run(t.Context(), envelope.Now(), 0, nil)
	if err == nil || !strings.Contains(err.Error(), "no tally 3s after the load: sender process 2") {
		t.Errorf("got error %v, want that sender process 2 gave no tally", err)
	}
	if got.Due != 50 {
		t.Errorf("%d due, want the first one's 50", got.Due)
	}
}

func TestProcessesStop(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	var came atomic.Int32
	s := newServer(func(net.Conn, *request) bool {
		if came.Add(1) == 4 {
			cancel(cause)
		}
		return true
	})
	p := startProcesses(t, newLoad(s.listen(t), 0, time.Hour, 2), 2)
	got, err := p.Run(ctx, envelope.Now(), 0, nil)
	if err != cause || got.Sent != 4 || got.Counts[result.FailOther] != 4 {
		t.Errorf("got error %v, %d sent, %d cut, want %v, 4, 4: %v", err, got.Sent, got.Counts[result.FailOther], cause, got.Errors)
	}
}

func TestStartProcessesFails(t *testing.T) {
	load := newLoad("127.0.0.1:1", 10, time.Second, 1)
	load.Pool = poolConfig(t)
	bad := load
	bad.Pool.Size = 1
	if _, err := StartProcesses(t.Context(), bad, 2); err == nil || !strings.Contains(err.Error(), "sender process 1") || !strings.Contains(err.Error(), "too few") {
		t.Errorf("a pool that cannot be built: got error %v, want the process's own words", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := StartProcesses(ctx, load, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("after a stop: got error %v", err)
	}
}

// A sender process ends with the one that started it, at any time.
func TestSenderIsLeft(t *testing.T) {
	s := newServer(func(net.Conn, *request) bool { return true }) // no answer
	load := newLoad(s.listen(t), 0, time.Hour, 2)
	load.Pool = poolConfig(t)
	order, err := json.Marshal(load)
	if err != nil {
		t.Fatal(err)
	}
	start, err := json.Marshal(startJSON{Zero: envelope.Now()})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("before the start", func(t *testing.T) {
		if err := SenderMain(t.Context(), strings.NewReader(string(order)), io.Discard); err != nil {
			t.Error(err)
		}
	})
	t.Run("in the load", func(t *testing.T) {
		in, orders := io.Pipe()
		out, says := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- SenderMain(t.Context(), in, says) }()
		orders.Write(order)
		messages := json.NewDecoder(out)
		var m message
		if err := messages.Decode(&m); err != nil || !m.Ready {
			t.Fatalf("got %+v, error %v, want that it is ready", m, err)
		}
		orders.Write(start)
		for m.Counts == nil || m.Counts.Sent < 2 {
			if err := messages.Decode(&m); err != nil {
				t.Fatal(err)
			}
		}
		orders.Close()
		for m.Tally == nil {
			if err := messages.Decode(&m); err != nil {
				t.Fatal(err)
			}
		}
		if m.Tally.Sent != 2 || m.Error != "" {
			t.Errorf("%d sent, error %q, want 2, none", m.Tally.Sent, m.Error)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		in, orders := io.Pipe()
		out, says := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- SenderMain(t.Context(), in, says) }()
		orders.Write(order)
		out.CloseWithError(io.ErrClosedPipe)
		if err := <-ended; err == nil {
			t.Error("got no error")
		}
		orders.Close()
	})
}
