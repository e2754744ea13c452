package perf

import (
	"math"
	"strings"
	"testing"
)

// row is that of a function; it is not there where ok is false.
func (t Top) row(name string) (r Row, ok bool) {
	for _, r := range t.Rows {
		if r.Name == name {
			return r, true
		}
	}
	return r, false
}

func TestTop(t *testing.T) {
	_, data := profiled(t, strings.Repeat(sampled("parse agent main"), 3)+sampled("scrub(a,_b) main")+sampled("agent"))
	top, err := TopOf(data, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Row{"parse": {"parse", 3000, 3000}, "agent": {"agent", 1000, 4000}, "main": {"main", 0, 4000}, "scrub(a,_b)": {"scrub(a,_b)", 1000, 1000}, Incomplete: {Incomplete, 0, 1000}} {
		if got, _ := top.row(name); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	if top.Total != 5000 || top.Kept != 5000 || top.Rows[0].Name != "parse" {
		t.Errorf("got %+v", top)
	}
	// An option of one call is none of the next one's.
	focused, err := TopOf(data, "^scrub")
	if err != nil || len(focused.Rows) != 2 || focused.Total != 5000 || focused.Kept != 1000 {
		t.Errorf("focused: got %+v, %v", focused, err)
	}
	for _, focus := range []string{"nowhere", "/opt/relay"} { // that is the file of all of them
		if nothing, err := TopOf(data, focus); err != nil || nothing.Kept != 0 {
			t.Errorf("a focus on %s: got %+v, %v", focus, nothing, err)
		}
	}
	if _, err := TopOf(data, "("); err == nil || !strings.Contains(err.Error(), "missing closing") {
		t.Errorf("a focus that is none: %v", err)
	}
	if again, err := TopOf(data, ""); err != nil || len(again.Rows) != len(top.Rows) {
		t.Errorf("then: got %+v, %v", again, err)
	}
	if _, err := TopOf([]byte("x"), ""); err == nil {
		t.Error("no profile, and no error")
	}
}

func TestDifference(t *testing.T) {
	_, base := profiled(t, strings.Repeat(sampled("parse main"), 2)+strings.Repeat(sampled("scrub main"), 2))
	_, data := profiled(t, sampled("scrub main")+sampled("send main"))
	// A whole is worth 4 in the base and 2 afterwards: 2 of each, then 1 of each.
	got, err := Difference(base, data, [2]float64{4, 2}, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Row{"parse": {"parse", -2, -2}, "scrub": {"scrub", -1, -1}, "send": {"send", 1, 1}, "main": {"main", 0, -2}} {
		r, _ := got.row(name)
		if math.Abs(r.Self-want.Self) > 1e-5 || math.Abs(r.Total-want.Total) > 1e-5 {
			t.Errorf("%s: got %+v, want %+v", name, r, want)
		}
	}
	if _, none := profiled(t, ""); none != nil {
		if _, err := Difference(base, none, [2]float64{1, 1}, ""); err == nil {
			t.Error("a difference to nothing")
		}
	}
	// The base of one call is not that of the next.
	if top, err := TopOf(data, ""); err != nil || top.Kept != 2000 {
		t.Errorf("then: %+v, %v", top, err)
	}
}

func TestFlame(t *testing.T) {
	_, data := profiled(t, relayText(t))
	page, err := Flame(data, "run <1>")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>run &lt;1&gt;</title>", "stackViewer(", "uaparser", "pool-processor-", Incomplete} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page is without %q", want)
		}
	}
	for _, no := range []string{"src=", "<link", "@import", "https://"} {
		if i := strings.Index(string(page), no); i >= 0 {
			t.Errorf("the page needs something beside it: %.80q", page[i:])
		}
	}
	if top, err := TopOf(data, ""); err != nil || len(top.Rows) == 0 || strings.Contains(top.Rows[0].Name, "pool-processor-") {
		t.Errorf("then: %+v, %v", top, err)
	}
}
