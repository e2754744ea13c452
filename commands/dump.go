package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/envelope"
	"relaybench/harness/plan"
)

// dumpKnobs are the knobs of test that shape what is sent, by name.
var dumpKnobs = []string{"mix", "projects", "zipf", "seed", "frames", "spans", "filtered"}

const defaultDump, maxDump = 100, 100_000

var dumpCommand = command{
	name:    "dump",
	summary: "write envelopes as a test would send them, a file each",
	detail: `They are those of a pool of that size, with the times, ids and stamps of the first round. Files
are named by number and kind. FOLDER is made, or must be empty: nothing is written over.`,
	args:     []arg{{name: "FOLDER", help: "a new or empty folder"}},
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
			plans, err := plan.Expand(*typed)
			if err != nil {
				return Fine, usageError(err, "")
			}
			if len(plans) > 1 {
				return Fine, usageError(errors.New("a list makes several pools"), "give each a folder of its own")
			}
			folder, err := s.path(args[0])
			if err != nil {
				return Fine, err
			}
			t, err := dump(plans[0], *n, folder)
			if err != nil {
				return Fine, err
			}
			if err := s.print(t); err != nil || s.format != Text {
				return Fine, err
			}
			return Fine, s.printf("in %s\n", table.Clean(folder))
		}
	},
}

// dump writes a pool of n envelopes into a folder, whole or not at all, and says what of each kind.
func dump(p plan.Plan, n int, folder string) (t *table.Table, err error) {
	mix, err := envelope.ParseMix(envelope.Kinds, p.Mix)
	if err != nil {
		return nil, err
	}
	pool, err := envelope.NewPool(envelope.PoolConfig{Mix: mix, Seed: p.Seed, Size: n, Projects: p.Projects, Zipf: p.Zipf, Shape: p.Shape(), Epoch: time.Now()})
	if err != nil {
		return nil, usageError(err, "")
	}
	if err := vacant(folder); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	var written []string
	defer func() {
		if err != nil {
			for _, path := range written {
				err = errors.Join(err, os.Remove(path))
			}
		}
	}()
	kinds := pool.Kinds()
	envelopes, bytes := make([]int, len(kinds)), make([]int, len(kinds))
	var body []byte
	digits := len(strconv.Itoa(n - 1))
	for seq := range uint64(n) {
		kind := pool.Kind(seq)
		body = pool.Append(body[:0], seq, 0)
		path := filepath.Join(folder, fmt.Sprintf("%0*d-%s.envelope", digits, seq, kinds[kind].Name))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil, err
		}
		written = append(written, path)
		_, err = f.Write(body)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		envelopes[kind]++
		bytes[kind] += len(body)
	}
	t = &table.Table{Columns: []table.Column{{Key: "kind"}, {Key: "envelopes", Right: true}, {Key: "bytes", Right: true}}}
	for i, k := range kinds {
		t.Add(table.Text(k.Name), table.Int(envelopes[i]).As(count(envelopes[i])), table.Int(bytes[i]).As(byteSize(float64(bytes[i]))))
	}
	return t, nil
}

// vacant says why a folder is not one to write into: it holds something, or is none.
func vacant(folder string) error {
	found, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(found) > 0:
		return hinted(fmt.Errorf("folder %q is not empty: %q is in it", folder, found[0].Name()), "name a new one, or an empty one: nothing is written over")
	}
	return nil
}
