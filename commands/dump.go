package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/envelope"
	"relaybench/harness/plan"
)

// dumpKnobs are the knobs of test that shape what is sent, by name.
var dumpKnobs = []string{"mix", "projects", "zipf", "seed", "frames", "spans", "filtered", "user-agents"}

const defaultDump, maxDump = 100, 100_000

var dumpCommand = command{
	name:    "dump",
	summary: "write envelopes as a test would send them, a file each",
	detail: `They are those of a pool of that size, with the times, ids and stamps of the first round. Files
are named by number and kind. FOLDER is made, or must be empty: nothing is written over.`,
	args:     []arg{{name: "FOLDER", help: "a new or empty folder", path: anyPath}},
	examples: []string{"dump envelopes --mix errors=3,logs=1 -n 20"},
	table:    true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		typed := &plan.Values{Knobs: map[string][]string{}}
		knobFlags(fs, typed, func(k *plan.Knob) bool { return slices.Contains(dumpKnobs, k.Name) })
		n := fs.IntP("number", "n", defaultDump, "`N` envelopes")
		return func(_ context.Context, args []string) (Code, error) {
			if *n < 1 || *n > maxDump {
				return Fine, usageError(fmt.Errorf("-n %d is not between 1 and %d", *n, maxDump), "")
			}
			// A plan that sends its pool once.
			for name, text := range map[string]string{"pool": strconv.Itoa(*n), "rate": strconv.Itoa(*n), "duration": "1s"} {
				typed.Knobs[name] = []string{text}
			}
			plans, err := plan.Expand(*typed)
			if err != nil {
				return Fine, usageError(err, "")
			}
			if len(plans) > 1 {
				return Fine, usageError(errors.New("a list makes several pools"), "give each a folder of its own")
			}
			if err := s.readFolders(plans); err != nil {
				return Fine, err
			}
			pool, err := dumped(plans[0])
			if err != nil {
				return Fine, err
			}
			to, err := s.newFolder(args[0])
			if err != nil {
				return Fine, err
			}
			t, err := dump(pool, *n, to)
			if err != nil {
				return Fine, errors.Join(err, to.undo())
			}
			if err := s.print(t); err != nil || s.format != Text {
				return Fine, err
			}
			return Fine, s.printf("in %s\n", table.Clean(to.path))
		}
	},
}

// dumped is the pool of a plan, not raised.
func dumped(p plan.Plan) (*envelope.Pool, error) {
	config, err := p.PoolConfig(nil, time.Now())
	if err != nil {
		return nil, err
	}
	config.Size = p.Pool
	pool, err := envelope.NewPool(config)
	if err != nil {
		return nil, usageError(err, "")
	}
	return pool, nil
}

// dump writes the n envelopes of a pool, and says what of each kind.
func dump(pool *envelope.Pool, n int, to *folder) (*table.Table, error) {
	kinds := pool.Kinds()
	envelopes, bytes := make([]int, len(kinds)), make([]int, len(kinds))
	var body []byte
	digits := len(strconv.Itoa(n - 1))
	for seq := range uint64(n) {
		kind := pool.Kind(seq)
		body = pool.Append(body[:0], seq, 0)
		if err := to.write(fmt.Sprintf("%0*d-%s.envelope", digits, seq, kinds[kind].Name), body); err != nil {
			return nil, err
		}
		envelopes[kind]++
		bytes[kind] += len(body)
	}
	t := &table.Table{Columns: []table.Column{{Key: "kind"}, {Key: "envelopes", Right: true}, {Key: "bytes", Right: true}}}
	for i, k := range kinds {
		t.Add(table.Text(k.Name), table.Int(envelopes[i]).As(count(envelopes[i])), table.Int(bytes[i]).As(byteSize(float64(bytes[i]))))
	}
	return t, nil
}
