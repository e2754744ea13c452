package commands

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"relaybench/harness/result"
	"relaybench/store"
	"relaybench/store/storetest"
)

func TestThresholds(t *testing.T) {
	good := storetest.Report(10) // response-p99 about 3.6 ms, arrived-share 100
	silent := storetest.Report(10)
	silent.Result.Tally.AcceptedSpans = result.Spans{Response: result.NewSketch(), Service: result.NewSketch()}
	short := storetest.Report(4)
	for _, tt := range []struct {
		text   string
		report *store.Report
		code   Code
		says   string
	}{
		{"arrived-share<99", good, Fine, "fail-if arrived-share<99: passed: 100%"},
		{"arrived-share >= 100", good, Worse, "fail-if arrived-share >= 100: failed: 100%, exactly that"},
		{"arrived-share=100%", good, Worse, "failed: 100%, exactly that"},
		{"arrived-share!=100", good, Fine, "passed"},
		{"arrived-share<=200%", good, Worse, "failed: 100%, 100% (50.0%) under"},
		{"unaccounted>0", good, Fine, "passed: 0"},
		{"unaccounted>=0", good, Worse, "failed: 0, exactly that"},
		{"rss-peak>60MiB", good, Worse, "failed: 94.4 MB, 31.5 MB (50.0%) over"},
		{"response-p99>1s", good, Fine, "passed: "},
		{"response-p99>1ms", good, Worse, "ms ("},
		{"response-p99>1s", silent, Inconclusive, "fail-if response-p99>1s: no value in this report, so neither passed nor failed"},
		{"response-p99<1s", silent, Inconclusive, "no value"},
		{"forwarded-rate<1", short, Unfit, "neither passed nor failed: it is 199"},
		{"forwarded-rate>1", short, Worse, "over; mark short makes that unfit for comparison"},
		{"response-p99>1s", short, Fine, "passed"},
	} {
		th, err := parseThreshold(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		js := judge([]threshold{th}, tt.report, store.MarksOf(tt.report))
		if got := js[0].code(); got != tt.code {
			t.Errorf("%s: code %d, want %d", tt.text, got, tt.code)
		}
		if got := js[0].String(); !strings.Contains(got, tt.says) {
			t.Errorf("%s: says %q, want %q in it", tt.text, got, tt.says)
		}
		text, err := json.Marshal(thresholdsJSON(js))
		if err != nil {
			t.Fatal(err)
		}
		if want := `"verdict":"` + thresholdWords[tt.code] + `"`; !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, want %s in it", tt.text, text, want)
		}
		if known := !strings.Contains(string(text), `"value":null`); known != (tt.code != Inconclusive) {
			t.Errorf("%s: %s", tt.text, text)
		}
	}
}

func TestThresholdsTyped(t *testing.T) {
	for text, says := range map[string]string{
		"through-p9>5ms":    `unknown metric "through-p9"|did you mean through-p90?`,
		"zzz>5":             `unknown metric "zzz"|help metrics lists the metrics`,
		"through-p99>5":     `"5" is not a duration such as 50ms`,
		"through-p99>":      "is not METRIC OP VALUE",
		"through-p99":       "is not METRIC OP VALUE",
		">5ms":              "is not METRIC OP VALUE",
		"through-p99~5ms":   "is not METRIC OP VALUE",
		"through-p99!5ms":   "is not METRIC OP VALUE",
		"":                  "is not METRIC OP VALUE",
		"unaccounted>many":  `"many" is not a number`,
		"unaccounted>NaN":   `"NaN" is not a number`,
		"rss-peak>5 apples": "is not a size such as 90MiB",
	} {
		_, err := parseThreshold(text)
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		f := failure(&testCommand, err)
		told := f.Text() + " " + f.Hint
		for part := range strings.SplitSeq(says, "|") {
			if !strings.Contains(told, part) || f.Code != Usage {
				t.Errorf("%q: %q with code %d, want %q in it and 3", text, told, f.Code, part)
			}
		}
	}
}

func TestThresholdsOfALine(t *testing.T) {
	good, short := storetest.Report(10), storetest.Report(4)
	var ts []threshold
	for _, text := range []string{"forwarded-rate<150", "through-p99>1ms"} {
		th, err := parseThreshold(text)
		if err != nil {
			t.Fatal(err)
		}
		ts = append(ts, th)
	}
	got := tally(ts, [][]judgement{judge(ts, good, store.MarksOf(good)), judge(ts, short, store.MarksOf(short))})
	want := []string{"fail-if forwarded-rate<150: unfit in 1 of 2 reports, passed in 1 of 2 reports", "fail-if through-p99>1ms: failed in 2 of 2 reports"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
