package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"relaybench/store/storetest"
)

func TestValues(t *testing.T) {
	db := storetest.Open(t)
	for i, rate := range []string{"500", "1000", "max", "500"} {
		r := storetest.Report(1)
		r.Plan["rate"], r.Plan["label"] = rate, fmt.Sprint("of ", i)
		delete(r.Plan, "http.encoding")
		if i == 1 {
			r.Plan["limits.max_thread_count"] = "4"
		}
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		most int
		want []string
	}{
		{"rate", 10, []string{"500", "1000", "max"}},
		{"label", 10, []string{"of 0", "of 1", "of 2", "of 3"}},
		{"limits.max_thread_count", 10, []string{"4"}},
		{"relay-branch", 10, []string{"main"}},
		{"relay-url", 10, nil},
		{"nonsense", 10, nil},
		{"report-id", 0, nil},
	} {
		got, err := db.Values(tt.name, tt.most)
		if d := cmp.Diff(tt.want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", tt.name, err, d)
		}
	}
	if got, err := db.Values("rate", 2); len(got) != 2 || err != nil {
		t.Errorf("at most two: got %v, %v", got, err)
	}
	got, err := db.SettingNames()
	if want := []string{"limits.max_thread_count"}; !cmp.Equal(got, want) || err != nil {
		t.Errorf("config keys: got %v, %v, want %v", got, err, want)
	}
}

func TestIDsThatBeginSo(t *testing.T) {
	db := storetest.Open(t)
	if got, err := db.IDs("", 5); len(got) != 0 || err != nil {
		t.Errorf("of no report: got %v, %v", got, err)
	}
	var ids []string // newest first
	for range 4 {
		r := storetest.Report(1)
		if err := db.Save(r); err != nil {
			t.Fatal(err)
		}
		ids = append([]string{r.ID}, ids...)
	}
	for _, tt := range []struct {
		beginning string
		most      int
		want      []string
	}{
		{"", 9, ids},
		{"", 3, ids[:3]},
		{ids[2], 9, ids[2:3]},
		{ids[3][:4], 9, ids},
		{"1", 9, nil},
		{"9", 9, nil},
	} {
		got, err := db.IDs(tt.beginning, tt.most)
		if d := cmp.Diff(tt.want, got); d != "" || err != nil {
			t.Errorf("%q: %v (-want +got)\n%s", tt.beginning, err, d)
		}
	}
}

func TestSettingsOfAShelf(t *testing.T) {
	db := storetest.Open(t)
	if err := db.SetSettings(map[string]string{"alias/a": "1", "alias/b": "2", "aliases": "3", "job/1": "4"}); err != nil {
		t.Fatal(err)
	}
	if err := db.SetSettings(map[string]string{"alias/a": "", "alias/c": "5"}); err != nil {
		t.Fatal(err)
	}
	if err := db.SetSettings(map[string]string{"alias/d": "6", "": "refused"}); err == nil {
		t.Error("a setting without a name was taken")
	}
	got, err := db.Settings("alias/")
	if want := map[string]string{"alias/b": "2", "alias/c": "5"}; !cmp.Equal(got, want) || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func BenchmarkValues(b *testing.B) {
	const n = 100_000
	db := openAt(b, generated(b, n))
	for _, name := range []string{"rate", "relay-branch", "relay-revision", "label", "host-load"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := db.Values(name, 200); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("ids", func(b *testing.B) {
		for b.Loop() {
			if ids, err := db.IDs("2026", 200); err != nil || len(ids) != 200 {
				b.Fatal(len(ids), err)
			}
		}
	})
}
