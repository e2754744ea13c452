package store_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

// Each field of a sample has its column, in the order in which JSON has them.
func TestColumns(t *testing.T) {
	var want []string
	for field := range reflect.TypeFor[result.Sample]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		want = append(want, name)
	}
	if d := cmp.Diff(want, store.Columns()); d != "" {
		t.Errorf("(-fields +columns):\n%s", d)
	}
}

// What a record holds in columns is read, and exported, as it was.
func TestSamplesInColumns(t *testing.T) {
	extremes := []result.Sample{
		{At: math.MinInt64, Draining: true, Due: math.MaxUint64, Sent: 1 << 63, Accepted: 1, Refused: 2, Failed: 3, Arrived: 4, Outcomes: 5,
			Backlog: -6, RelayCPU: -1, RelayRSS: -1, Threads: -1, HarnessCPU: math.MaxInt64, HarnessRSS: 7, LateMax: math.MinInt64, Open: 8},
		{At: math.MaxInt64, Due: 1, Sent: math.MaxUint64, Backlog: math.MaxInt64, HarnessCPU: math.MinInt64, LateMax: math.MaxInt64},
		{Draining: true, Due: math.MaxUint64, Open: 9},
		{Draining: true, Due: math.MaxUint64, Open: 9},
	}
	db := storetest.Open(t)
	for what, samples := range map[string][]result.Sample{
		"none": nil, "an empty list": {}, "one": {{At: 1}}, "zeros": make([]result.Sample, 3), "extremes": extremes,
		"a run": storetest.Uneven(100).Result.Samples, "even": storetest.Report(100).Result.Samples,
	} {
		t.Run(what, func(t *testing.T) {
			r := storetest.Report(1)
			r.Result.Samples = samples
			r.Plan["label"] = `"samples":null` + "\n"
			want, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			record, err := db.Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := db.Text(record); err != nil || !bytes.Equal(got, want) {
				t.Errorf("exported, %v (-want +got):\n%s", err, cmp.Diff(string(want), string(got)))
			}
			if got, err := db.Decode(record); err != nil || !reflect.DeepEqual(got.Result.Samples, samples) {
				t.Errorf("read, %v (-want +got):\n%s", err, cmp.Diff(samples, got.Result.Samples))
			}
		})
	}
}

// More samples than may be in columns are in the JSON.
func TestManySamples(t *testing.T) {
	r := storetest.Report(3)
	plain, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]bool{2: false, 3: true} {
		got, err := store.Held(r, most)
		if err != nil || bytes.Equal(got, plain) == want {
			t.Errorf("of %d at most, 3 are in columns: %v, %v", most, !want, err)
		}
	}
	if week := 7 * 24 * 3600; store.MaxSamples < week/4 {
		t.Errorf("of a week's %d samples only %d may be in columns", week, store.MaxSamples)
	}
}

// appendColumn appends a column as a record has it, with differences of a byte.
func appendColumn(to []byte, name string, n uint64, first int64, differences ...int8) []byte {
	to = append(binary.AppendUvarint(to, uint64(len(name))), name...)
	to = binary.AppendVarint(binary.AppendUvarint(to, n), first)
	if len(differences) > 0 {
		to = append(to, 1)
	}
	for _, d := range differences {
		to = append(to, byte(d<<1^d>>7))
	}
	return to
}

// A column of a relaybench to come is not lost, and one that is missing is zero.
func TestColumnsOfAnotherRelaybench(t *testing.T) {
	db := storetest.Open(t)
	held := []byte(`{"id":"x","result":{"of_tomorrow":[1.50],"samples":null,"calibration_before_ns":7}}` + "\n")
	held = appendColumn(held, "at_ns", 3, 5, 5, 5)
	held = appendColumn(held, "of \"tomorrow\"", 2, -1, 3)
	held = appendColumn(held, "draining", 3, 0, 1, 0)
	held = appendColumn(held, "due", 1, 4)
	record := db.Record(2, held)
	want := `{"id":"x","result":{"of_tomorrow":[1.50],"samples":[{"at_ns":5,"of \"tomorrow\"":-1,"due":4},` +
		`{"at_ns":10,"of \"tomorrow\"":2,"draining":true,"due":4},{"at_ns":15,"of \"tomorrow\"":2,"draining":true,"due":4}],"calibration_before_ns":7}}`
	if got, err := db.Text(record); err != nil || string(got) != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
	}
	samples := []result.Sample{{At: 5, Due: 4}, {At: 10, Due: 4, Draining: true}, {At: 15, Due: 4, Draining: true}}
	r, err := db.Decode(record)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(samples, r.Result.Samples); d != "" || r.Result.CalibrationBefore != 7 {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDamagedColumns(t *testing.T) {
	db := storetest.Open(t)
	held := func(columns []byte) []byte { return append([]byte(`{"result":{"samples":null}}`+"\n"), columns...) }
	good := appendColumn(appendColumn(nil, "at_ns", 2, 5, 5), "due", 2, 1<<40, -128)
	whole := len(appendColumn(nil, "at_ns", 2, 5, 5))
	damaged := map[string][]byte{
		"longer than the first":    held(appendColumn(good, "sent", 3, 1, 1, 1)),
		"more than there is":       held(appendColumn(nil, "at_ns", 1<<62, 1, 1)),
		"a varint without end":     held(append([]byte("\x05at_ns\x01"), bytes.Repeat([]byte{0xff}, 11)...)),
		"values of nine bytes":     held([]byte("\x05at_ns\x02\x00\x09123456789")),
		"values of no bytes":       held([]byte("\x05at_ns\x02\x00\x00")),
		"a name without end":       held([]byte{200, 'a'}),
		"no result":                append([]byte("{}\n"), good...),
		"no object":                append([]byte("[]\n"), good...),
		"more than may be":         held(appendColumn(nil, "at_ns", uint64(store.MaxSamples+1), 5, make([]int8, store.MaxSamples)...)),
		"samples that are no null": append([]byte(`{"result":`+"\n"), good...),
	}
	for n := range good {
		if n != 0 && n != whole {
			damaged["cut at "+string(rune('a'+n))] = held(good[:n])
		}
	}
	for what, text := range damaged {
		if _, err := db.Decode(db.Record(2, text)); err == nil || !strings.Contains(err.Error(), "record is damaged: ") {
			t.Errorf("%s: got %v, want damage", what, err)
		}
	}
}

// The record that the first version's relaybench wrote of its golden file's report.
func TestRecordOfTheFirstVersion(t *testing.T) {
	record, err := os.ReadFile("testdata/report-v1.record")
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.Open(t)
	r, err := db.Decode(record)
	if err != nil {
		t.Fatal(err)
	}
	want := storetest.Report(3)
	want.ID = r.ID
	if d := cmp.Diff(asJSON(t, want), asJSON(t, r)); d != "" || r.ID != "20261130-164502-3f9a1c" {
		t.Errorf("id %q (-want +got):\n%s", r.ID, d)
	}
	text, err := db.Text(record)
	if plain, _ := json.Marshal(want); err != nil || !bytes.Equal(text, plain) {
		t.Errorf("exported, %v (-want +got):\n%s", err, cmp.Diff(string(plain), string(text)))
	}
}

// FuzzColumns reaches what zstd's checks keep from FuzzDecode.
func FuzzColumns(f *testing.F) {
	db := storetest.Open(f)
	for _, r := range []*store.Report{storetest.Report(2), storetest.Uneven(3)} {
		held, err := store.Held(r, 10)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(held)
	}
	f.Add([]byte("{\"result\":{\"samples\":null}}\n\x05at_ns\x02\x02\x01\x04\x03due\x00"))
	f.Fuzz(func(t *testing.T, held []byte) {
		record := db.Record(2, held)
		_, _ = db.Text(record)
		r, err := db.Decode(record)
		if err != nil {
			return
		}
		again, err := db.Encode(r)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		text, err := db.Text(again)
		if plain, _ := json.Marshal(r); err != nil || !bytes.Equal(text, plain) {
			t.Errorf("exported, %v (-want +got):\n%s", err, cmp.Diff(string(plain), string(text)))
		}
	})
}
