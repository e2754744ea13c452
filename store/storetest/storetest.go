// Package storetest gives tests a store whose cleanup checks its integrity, and
// reports to keep in it.
//
// It must never be imported by anything but tests.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/bbolt"

	"relaybench/harness/result"
	"relaybench/store"
)

// Open opens a new store in a folder of the test's own. When the test is over
// the store is checked and closed; damage fails the test.
func Open(t testing.TB) *store.DB {
	t.Helper()
	db, err := store.Open(filepath.Join(t.TempDir(), "relaybench.db"))
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Check(); err != nil {
			t.Errorf("check store: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// Report is the report of a run that went well: 200 sends a second for seconds,
// three of errors to one of logs, everything accounted for. It is the same for
// the same arguments.
func Report(seconds int) *store.Report {
	n := uint64(200 * seconds)
	logs, events := n/4, n-n/4
	load := int64(seconds) * int64(time.Second)
	started := time.Date(2026, 11, 30, 16, 45, 2, 123456789, time.UTC)
	r := &result.Result{
		Started: started, Ended: started.Add(time.Duration(load) + 3*time.Second),
		Target: "relay", LoadStart: 1e9, LoadEnd: 1e9 + load, DrainEnd: 1.2e9 + load, Drain: result.Drained,
		Tally: tally(n),
		Kinds: []result.Kind{
			kind("errors", "item", 1, events, 1, 20_000),
			kind("logs", "log", 23, logs, 10, 3_500),
		},
		Relay: result.RelayRun{
			Config: "relay:\n  mode: managed\nlimits:\n  max_concurrent_requests: 100\n", ConfigHash: "9f86d081884c7d65",
			Exit:     result.Exit{Ended: true, Took: 2.1e9},
			Messages: []result.Message{{Level: "WARN", Text: "upstream is slow", Count: 2}},
			Log:      []string{"relay server starting", "relay shutdown complete"}, ReadyAfter: 2.6e9,
			CPUKnown: true, IdleCPU: 2e6, IdleTook: 1e9, CPUStart: 5e8, CPULoad: 5e8 + int64(n)*3e6, CPUDrain: 5.1e8 + int64(n)*3e6,
			MemoryKnown: true, RSSStart: 60 << 20, RSSPeak: 90 << 20, RSSDrained: 85 << 20, Limit: 100,
		},
		Upstream: result.Upstream{Envelopes: n, WireBytes: 5_500 * n, PlainBytes: 21_000 * n,
			Items: map[string]uint64{"event": events, "log": logs}, Answers: map[string]uint64{"200": n}, OpenMax: 12, WarmUps: 2},
		Harness: result.Harness{CPUs: 2, CPULoad: int64(n) * 100_000, CPUDrain: int64(n)*100_000 + 1e6, WaitLoad: 3e6, RelayWait: 4e6, Others: 5e7, RSSPeak: 40 << 20, GCs: 1},
		Pool:    result.Pool{Payload: 1, Envelopes: 1000, Bytes: 16_000_000, Agents: 40, WarmUps: 2},

		CalibrationBefore: 301e6, CalibrationAfter: 302e6,
	}
	for s := range seconds {
		sent := uint64(200 * (s + 1))
		r.Samples = append(r.Samples, result.Sample{At: int64(s+1) * 1e9, Due: sent, Sent: sent, Accepted: sent - 1, Arrived: sent - 3, Backlog: 3,
			RelayCPU: int64(sent) * 3e6, RelayRSS: 85<<20 + int64(s)<<10, Threads: 14, HarnessCPU: int64(sent) * 100_000, HarnessRSS: 60 << 20, LateMax: 150_000 + int64(s), Open: 2})
	}
	return &store.Report{
		Plan: map[string]string{"duration": time.Duration(load).String(), "rate": "200", "mix": "errors=3,logs=1", "http.encoding": "zstd"},
		Provenance: result.Provenance{
			Relay: result.Relay{Form: "path", Path: "/home/u/relay/target/release/relay", Version: "26.4.0", SHA256: "2c26b46b68ffc68f", Size: 80 << 20,
				Branch: "main", Revision: "ae5a27cb9c7571c821099e778ce921d3b908df77", RevisionDate: time.Date(2026, 4, 15, 9, 0, 0, 0, time.UTC), Profile: "release"},
			Host:  result.Host{Name: "bench1", CPU: "A CPU", CPUs: 2, Memory: 8 << 30, OS: "linux", Kernel: "6.18.44", Distribution: "debian 13", Load1: 0.1},
			Bench: result.Bench{Version: "v0.1.0", Revision: "31b8ab9", Payload: 1, Go: "go1.26.8"},
		},
		Result: r,
	}
}

// Uneven is [Report] with samples that differ by as much as those of a run do: they take as much room as its.
func Uneven(seconds int) *store.Report {
	r := Report(seconds)
	chance := rand.New(rand.NewPCG(1, 2))
	about := func(n, spread int64) int64 { return n + chance.Int64N(2*spread+1) - spread }
	var relay, harness int64
	for i := range r.Result.Samples {
		s := &r.Result.Samples[i]
		late := chance.Uint64N(4)
		s.At = about(s.At, 1_200_000)
		s.Due -= chance.Uint64N(2)
		s.Accepted, s.Arrived, s.Backlog, s.Open = s.Sent-late/2, s.Sent-late, int64(late), int(late)
		relay, harness = relay+about(6e8, 6e7), harness+about(2e7, 4e6)
		s.RelayCPU, s.HarnessCPU = relay, harness
		s.RelayRSS, s.HarnessRSS = about(s.RelayRSS>>12, 20)<<12, about(s.HarnessRSS>>12, 10)<<12
		s.LateMax = about(2_000_000, 1_900_000)
	}
	return r
}

// kind is one of n sends, of so many elements and bytes each, which all arrived.
func kind(name, unit string, category int, n, elements, size uint64) result.Kind {
	return result.Kind{Name: name, Unit: unit, Category: category, Due: n, DueItems: elements * n,
		Answers:  map[string]*result.Cell{result.Accepted.String(): {Sends: n, Items: elements * n, Arrived: n, ArrivedItems: elements * n}},
		Silent:   []string{"400 Bad Request"},
		Elements: elements * n, Through: sketch(n, 4_000_000), BodyBytes: size * n}
}

func tally(n uint64) *result.Tally {
	t := result.NewTally(0, 1)
	t.Due, t.Sent, t.Counts[result.Accepted] = n, n, n
	t.Pushed, t.Accepted = 16_400*n, 16_000*n
	t.AcceptedSpans = result.Spans{Response: sketch(n, 1_200_000), Service: sketch(n, 1_000_000)}
	t.Late = sketch(n, 80_000)
	t.Connects, t.First, t.Last = 32, 1e9, 1e9+int64(n)*5e6
	return t
}

// sketch holds n values from least to nearly three times least.
func sketch(n uint64, least int64) *result.Sketch {
	s := result.NewSketch()
	for i := range n {
		s.Add(least + least*2*int64(i*i%n)/int64(n))
	}
	return s
}

// Fill makes a store at a path with n reports, each saved a second after the
// one before, the last of them now. It is much quicker than saving them.
func Fill(t testing.TB, path string, n int) {
	t.Helper()
	db, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r := Report(1)
	if err := errors.Join(db.Save(r), db.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = file.Update(func(tx *bbolt.Tx) error {
		reports, own, index := tx.Bucket([]byte("reports")), tx.Bucket([]byte("own")), tx.Bucket([]byte("index"))
		head, packed, _ := bytes.Cut(reports.Get([]byte(r.ID)), []byte("\n"))
		head, entry := append(bytes.Clone(head), '\n'), bytes.Clone(index.Get([]byte(r.ID)))
		unzip, err := zstd.NewReader(nil)
		if err != nil {
			return err
		}
		defer unzip.Close()
		text, err := unzip.DecodeAll(packed, nil)
		if err != nil {
			return err
		}
		zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			return err
		}
		now := time.Now().UTC()
		for i := range n {
			id := fmt.Sprintf("%s-%06x", now.Add(time.Duration(i+1-n)*time.Second).Format("20060102-150405"), i)
			record := zip.EncodeAll(bytes.Replace(text, []byte(r.ID), []byte(id), 1), bytes.Clone(head))
			if err := errors.Join(reports.Put([]byte(id), record), own.Put([]byte(id), nil), index.Put([]byte(id), entry)); err != nil {
				return err
			}
		}
		return errors.Join(reports.Delete([]byte(r.ID)), own.Delete([]byte(r.ID)), index.Delete([]byte(r.ID)))
	})
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}
