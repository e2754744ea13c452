package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"relaybench/harness/result"
)

// Samples are most of the JSON of a long run, and of the time that it takes to
// write. A record has them in columns behind the JSON, where samples are null: a
// newline, and for each field its name, after the length of that, and its values.
// Of these there is the number, the first one, and as many bytes as each of the
// others takes, which are differences to the one before, the lowest byte first.
// Numbers are varints; what may be negative is in zigzag. The first column has a
// value for each sample; of the others, those at the end that are as the one before
// them are left out.

// column is a field of a sample.
type column struct {
	name string
	flag bool                                   // true or, left out, false
	read func(to []int64, from []result.Sample) // one value a sample
	fill func(to []result.Sample, from []int64) // likewise, as [valueOf] has them
	text func(to []byte, v int64) []byte        // appends a value as JSON
}

// columns are the fields of a sample in their order.
var columns = []column{
	integer("at_ns", func(s *result.Sample) *int64 { return &s.At }),
	boolean("draining", func(s *result.Sample) *bool { return &s.Draining }),
	integer("due", func(s *result.Sample) *uint64 { return &s.Due }),
	integer("sent", func(s *result.Sample) *uint64 { return &s.Sent }),
	integer("accepted", func(s *result.Sample) *uint64 { return &s.Accepted }),
	integer("refused", func(s *result.Sample) *uint64 { return &s.Refused }),
	integer("failed", func(s *result.Sample) *uint64 { return &s.Failed }),
	integer("arrived", func(s *result.Sample) *uint64 { return &s.Arrived }),
	integer("outcomes", func(s *result.Sample) *uint64 { return &s.Outcomes }),
	integer("backlog", func(s *result.Sample) *int64 { return &s.Backlog }),
	integer("relay_cpu_ns", func(s *result.Sample) *int64 { return &s.RelayCPU }),
	integer("relay_rss", func(s *result.Sample) *int64 { return &s.RelayRSS }),
	integer("threads", func(s *result.Sample) *int { return &s.Threads }),
	integer("harness_cpu_ns", func(s *result.Sample) *int64 { return &s.HarnessCPU }),
	integer("harness_rss", func(s *result.Sample) *int64 { return &s.HarnessRSS }),
	integer("late_max_ns", func(s *result.Sample) *int64 { return &s.LateMax }),
	integer("open", func(s *result.Sample) *int { return &s.Open }),
}

// integer is the column of a field. An unsigned one may wrap: its differences do as well.
func integer[T int | int64 | uint64](name string, of func(*result.Sample) *T) column {
	c := column{name: name, text: appendInt,
		read: func(to []int64, from []result.Sample) {
			for i := range from {
				to[i] = int64(*of(&from[i]))
			}
		},
		fill: func(to []result.Sample, from []int64) {
			for i := range to {
				*of(&to[i]) = T(valueOf(from, i))
			}
		}}
	if ^T(0) > 0 {
		c.text = func(to []byte, v int64) []byte { return strconv.AppendUint(to, uint64(v), 10) }
	}
	return c
}

func appendInt(to []byte, v int64) []byte { return strconv.AppendInt(to, v, 10) }

// boolean is the column of a field that JSON leaves out where it is false.
func boolean(name string, of func(*result.Sample) *bool) column {
	return column{name: name, flag: true,
		read: func(to []int64, from []result.Sample) {
			for i := range from {
				to[i] = 0
				if *of(&from[i]) {
					to[i] = 1
				}
			}
		},
		fill: func(to []result.Sample, from []int64) {
			for i := range to {
				*of(&to[i]) = valueOf(from, i) != 0
			}
		},
		text: func(to []byte, _ int64) []byte { return append(to, "true"...) }}
}

var noSamples = []byte(`"samples":null`)

// maxSamples is how many samples a record may have in columns: one by one they
// are still half a record at most, the rest of a report being the other half.
var maxSamples = func() int {
	size := len("{},")
	for _, c := range columns {
		size += len(c.name) + len(`"":,`) + len("-9223372036854775808")
	}
	return maxRecord / 2 / size
}()

// marshal is what a record holds of a report, in two parts: the JSON, and behind
// it the columns, where there are samples and not more than most. Apart, each is
// compressed by what is frequent in it.
func marshal(r *Report, most int) (text, columns []byte, err error) {
	if r.Result == nil || len(r.Result.Samples) == 0 || len(r.Result.Samples) > most {
		text, err = json.Marshal(r)
		return text, nil, err
	}
	rest, bare := *r.Result, *r
	rest.Samples, bare.Result = nil, &rest
	text, err = json.Marshal(&bare)
	switch {
	case err != nil:
		return nil, nil, err
	case len(text) > maxRecord/2:
		text, err = json.Marshal(r)
		return text, nil, err
	}
	return text, packSamples(r.Result.Samples), nil
}

// packSamples is the columns of samples, and the newline before them.
func packSamples(samples []result.Sample) []byte {
	values := make([]int64, len(samples))
	packed := make([]byte, 0, 500+2*len(samples)*len(columns)) // what names and differences come to
	packed = append(packed, '\n')
	for i, c := range columns {
		c.read(values, samples)
		n := len(values)
		for i > 0 && n > 0 && values[n-1] == valueOf(values[:n-1], n) {
			n--
		}
		packed = append(binary.AppendUvarint(packed, uint64(len(c.name))), c.name...)
		packed = appendSeries(packed, values[:n])
	}
	return packed
}

// appendSeries appends the values of a column. It uses them up.
func appendSeries(packed []byte, values []int64) []byte {
	packed = binary.AppendUvarint(packed, uint64(len(values)))
	if len(values) == 0 {
		return packed
	}
	packed = binary.AppendVarint(packed, values[0])
	if len(values) == 1 {
		return packed
	}
	var all uint64
	for i := len(values) - 1; i > 0; i-- {
		d := values[i] - values[i-1]
		zigzag := d<<1 ^ d>>63
		values[i] = zigzag
		all |= uint64(zigzag)
	}
	width := max(1, (bits.Len64(all)+7)/8) // a value takes a byte at least: a few bytes are never many values
	packed = slices.Grow(append(packed, byte(width)), len(values)*width+8)
	for _, v := range values[1:] {
		at := len(packed)
		binary.LittleEndian.PutUint64(packed[at:at+8], uint64(v))
		packed = packed[:at+width] // the next one goes over the rest
	}
	return packed
}

// readSeries reads the values of a column, and gives what is behind them.
func readSeries(packed []byte) (values []int64, rest []byte, ok bool) {
	n, packed, ok := readLength(packed)
	if !ok || n == 0 {
		return nil, packed, ok
	}
	last, size := binary.Varint(packed)
	if size <= 0 {
		return nil, nil, false
	}
	packed = packed[size:]
	if n == 1 {
		return []int64{last}, packed, true
	}
	if len(packed) == 0 {
		return nil, nil, false
	}
	width := int(packed[0])
	packed = packed[1:]
	if width < 1 || width > 8 || n-1 > len(packed)/width {
		return nil, nil, false
	}
	values = append(make([]int64, 0, n), last)
	for len(values) < n {
		var whole [8]byte
		copy(whole[:], packed[:width])
		packed = packed[width:]
		zigzag := binary.LittleEndian.Uint64(whole[:])
		last += int64(zigzag>>1) ^ -int64(zigzag&1)
		values = append(values, last)
	}
	return values, packed, true
}

// readLength reads a number of things that take a byte each at least, and gives what is behind it.
func readLength(packed []byte) (n int, rest []byte, ok bool) {
	v, size := binary.Uvarint(packed)
	if size <= 0 || v > uint64(len(packed)) {
		return 0, nil, false
	}
	return int(v), packed[size:], true
}

// series are the values of a column: of each sample, or of fewer; the last
// one, else 0, then stands for the rest.
type series struct {
	name   string
	values []int64
}

// valueOf is that of sample i.
func valueOf(values []int64, i int) int64 {
	if len(values) == 0 {
		return 0
	}
	return values[min(i, len(values)-1)]
}

var errColumns = errors.New("samples are cut short")

// readColumns reads columns, and how many samples they are of.
func readColumns(packed []byte) (all []series, n int, err error) {
	for len(packed) > 0 {
		size, rest, ok := readLength(packed)
		if !ok || size > len(rest) {
			return nil, 0, errColumns
		}
		name := string(rest[:size])
		var values []int64
		if values, packed, ok = readSeries(rest[size:]); !ok {
			return nil, 0, errColumns
		}
		if len(all) == 0 {
			n = len(values)
		}
		if len(values) > n || n > maxSamples {
			return nil, 0, fmt.Errorf("%d values of %q in %d samples", len(values), name, n)
		}
		all = append(all, series{name, values})
	}
	return all, n, nil
}

// unmarshal reads a report as a record holds it.
func unmarshal(text []byte, r *Report) error {
	text, packed, _ := bytes.Cut(text, []byte("\n"))
	if err := json.Unmarshal(text, r); err != nil || len(packed) == 0 {
		return err
	}
	all, n, err := readColumns(packed)
	if err != nil {
		return err
	}
	if r.Result == nil {
		return fmt.Errorf("%d samples and no result", n)
	}
	r.Result.Samples = make([]result.Sample, n)
	for _, s := range all {
		if c := columnOf(s.name); c.fill != nil {
			c.fill(r.Result.Samples, s.values)
		}
	}
	return nil
}

// columnOf is the column of that name; of one that this relaybench does not know, it can only be written as JSON.
func columnOf(name string) column {
	for _, c := range columns {
		if c.name == name {
			return c
		}
	}
	return column{name: name, text: appendInt}
}

// plain is the JSON of what a record holds, with its samples one by one. What
// this relaybench does not know of a sample stays in it.
func plain(text []byte) ([]byte, error) {
	text, packed, _ := bytes.Cut(text, []byte("\n"))
	if len(packed) == 0 {
		return text, nil
	}
	all, n, err := readColumns(packed)
	if err != nil {
		return nil, err
	}
	// A string of JSON holds no quotes that are not escaped, and no other value has that name.
	at := bytes.LastIndex(text, noSamples)
	if at < 0 {
		return nil, fmt.Errorf("%d samples and no place for them", n)
	}
	end := at + len(noSamples)
	at = end - len("null")
	columns, keys := make([]column, len(all)), make([][]byte, len(all))
	for i, s := range all {
		columns[i] = columnOf(s.name)
		if keys[i], err = json.Marshal(s.name); err != nil {
			return nil, err
		}
	}
	whole := append(make([]byte, 0, len(text)+n*300), text[:at]...)
	whole = append(whole, '[')
	for i := range n {
		if i > 0 {
			whole = append(whole, ',')
		}
		whole = append(whole, '{')
		begun := len(whole)
		for j, c := range columns {
			v := valueOf(all[j].values, i)
			if c.flag && v == 0 {
				continue
			}
			if len(whole) > begun {
				whole = append(whole, ',')
			}
			whole = append(append(whole, keys[j]...), ':')
			whole = c.text(whole, v)
		}
		if whole = append(whole, '}'); len(whole) > maxRecord {
			return nil, fmt.Errorf("more than %d bytes", maxRecord)
		}
	}
	return append(append(whole, ']'), text[end:]...), nil
}
