package envelope

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseMix(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"errors", "errors"},
		{"errors=7", "errors"},
		{"errors=3,logs=1", "errors=3,logs=1"},
		{"logs=1,errors=3", "errors=3,logs=1"},
		{"errors=30,logs=10", "errors=3,logs=1"},
		{"errors=0.3,logs=.1", "errors=3,logs=1"},
		{"errors=1.5,logs=1", "errors=3,logs=2"},
		{"errors,logs", "errors=1,logs=1"},
		{"errors=999999,logs=2", "errors=999999,logs=2"},
		{"errors=0.000001,logs=0.000003", "errors=1,logs=3"},
		{Mixed, Mixed},
	} {
		m, err := ParseMix(Kinds, c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := m.String(); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
		again, err := ParseMix(Kinds, m.String())
		if err != nil || again.String() != m.String() || !slices.Equal(again.weights, m.weights) {
			t.Errorf("%q does not read back: %q, %v", m, again, err)
		}
	}
	// The table's own weights, spelt out, are the mix "mixed".
	var own []string
	for _, k := range Kinds {
		own = append(own, k.Name+"="+formatWeight(k.Weight))
	}
	if m, err := ParseMix(Kinds, strings.Join(own, ",")); err != nil || m.String() != Mixed {
		t.Errorf("%q is %q, %v", own, m, err)
	}
}

func formatWeight(w float64) string {
	text := []byte("000000.000000")
	putDecimal(text[:6], int64(w))
	putDecimal(text[7:], int64(math.Round((w-math.Floor(w))*weightUnit)))
	return string(text)
}

func TestParseMixErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `mix "": unknown kind "": expected KIND=WEIGHT[,…] or mixed, of the kinds errors, transactions, sessions, checkins, logs`},
		{"error=3", `did you mean "errors"?`},
		{"errors=1,log=2", `unknown kind "log": did you mean "logs"?`},
		{"Errors", `did you mean "errors"?`},
		{"potatoes", `mix "potatoes": unknown kind "potatoes": expected`},
		{"errors=1,", `unknown kind ""`},
		{"errors=1,errors=2", `mix "errors=1,errors=2": errors twice`},
		{"errors=0", `weight "0" of errors is not a number above 0`},
		{"errors=", `weight "" of errors`},
		{"errors=.", `weight "." of errors`},
		{"errors=-1", `weight "-1" of errors`},
		{"errors=1e3", `weight "1e3" of errors`},
		{"errors=nan", `weight "nan" of errors`},
		{"errors=1234567", `of at most 6 digits before and after the point`},
		{"errors=1.1234567", `of at most 6 digits before and after the point`},
		{"errors=999999,logs=0.5", `whole weights of it go beyond 999999`},
		{"mixed=1", `unknown kind "mixed"`},
	} {
		m, err := ParseMix(Kinds, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %q, error %v, want %q in it", c.text, m, err, c.want)
		}
	}
	if _, err := ParseMix([]Kind{{Name: "a"}}, Mixed); err == nil {
		t.Error("mixed of a table without weights has no error")
	}
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		n       int
		weights []float64
		want    []int
	}{
		{10, []float64{3, 1}, []int{8, 2}}, // 7.5 and 2.5: the tie goes to the first
		{4, []float64{3, 1}, []int{3, 1}},
		{100, []float64{1, 1, 1}, []int{34, 33, 33}},
		{7, []float64{0.5, 0.25, 0.25}, []int{3, 2, 2}},
		{1, []float64{1, 5}, []int{0, 1}},
		{0, []float64{1, 5}, []int{0, 0}},
		{1000, []float64{999, 1}, []int{999, 1}},
	} {
		if got := shares(c.n, c.weights); !slices.Equal(got, c.want) {
			t.Errorf("%d by %v: got %v, want %v", c.n, c.weights, got, c.want)
		}
	}
}

func FuzzParseMix(f *testing.F) {
	for _, seed := range []string{"mixed", "errors", "errors=3,logs=1", "errors=0.25,checkins=1.5", "a=b=c", ",,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMix(Kinds, text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "mix ") {
				t.Fatal(err)
			}
			return
		}
		again, err := ParseMix(Kinds, m.String())
		if err != nil || again.String() != m.String() || !slices.Equal(again.weights, m.weights) {
			t.Fatalf("%q is %q, which reads back as %q, %v", text, m, again, err)
		}
	})
}
