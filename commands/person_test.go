package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"relaybench/store"
)

// workCommand takes the machine for as long as it is told to.
func workCommand() command {
	return command{name: "work", args: []arg{{name: "DURATION"}}, store: true, table: true, queue: func(s *Session, fs *pflag.FlagSet) prepare {
		code := fs.Int("code", 0, "end with it")
		fails := fs.String("fail", "", "fail with it")
		panics := fs.Bool("panic", false, "panic")
		stubborn := fs.Bool("stubborn", false, "stop only when killed")
		lines := fs.Int("lines", 0, "say as many at once")
		return func(_ context.Context, args []string) (task, error) {
			d, err := time.ParseDuration(args[0])
			if err != nil {
				return task{}, usageError(err, "")
			}
			return task{about: d, do: func(ctx context.Context, s *Session) (Code, error) {
				if *panics {
					panic("no work")
				}
				ref, err := s.inUse()
				if err != nil {
					return Fine, err
				}
				if err := s.printf("works for %s with %s, format %d\n", s.name, ref.What, s.format); err != nil {
					return Fine, err
				}
				for i := range *lines {
					_ = s.printf("line %d of some length, so that there is a bound to how many are kept\n", i)
				}
				s.goes("at it")
				select {
				case <-time.After(d):
				case <-ctx.Done():
					if *stubborn {
						<-s.client.Kill
						_ = s.printf("killed\n")
					}
					return Fine, context.Cause(ctx)
				}
				if *fails != "" {
					return Fine, hinted(errors.New(*fails), "try again")
				}
				return Code(*code), nil
			}}, nil
		}
	}}
}

// person is a client that types lines, and what it hears.
type person struct {
	*Session
	t     *testing.T
	mu    sync.Mutex
	heard bytes.Buffer
	came  chan struct{} // of one: it heard something
	drawn []string

	settle bool // in a bubble: all that follows from a line has happened when it is done
}

func (p *person) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.came <- struct{}{}:
	default: // nobody waits for it, or knows
	}
	return p.heard.Write(b)
}

// until waits until the client has heard a text, and gives all that it heard.
func (p *person) until(text string) string {
	p.t.Helper()
	said, late := "", time.After(time.Minute)
	for {
		said += p.hears()
		if strings.Contains(said, text) {
			return said
		}
		select {
		case <-p.came:
		case <-late:
			p.t.Fatalf("%s never heard %q:\n%s", p.name, text, said)
		}
	}
}

// hears is what the client heard since the last time.
func (p *person) hears() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := p.heard.String()
	p.heard.Reset()
	return said
}

// does types a line, waits for its end, and gives its code and what is heard of it.
func (p *person) does(ctx context.Context, line string) (Code, string) {
	code, _ := p.Do(ctx, line, func(f *Failure) bool {
		fmt.Fprintf(p, "error: %s\nhint: %s\n", f.Text(), f.Hint)
		return true
	})
	if p.settle {
		synctest.Wait()
	}
	return code, p.hears()
}

func (p *person) says(line string) string {
	_, said := p.does(p.t.Context(), line)
	return said
}

// arrives is a new client of a bench: at a prompt, or a script.
func arrives(t *testing.T, b *Bench, name string, background bool) *person {
	p := &person{t: t, came: make(chan struct{}, 1)}
	p.Session = b.NewSession(Client{Name: name, Out: p, Notes: p, Background: background, Width: 100})
	p.commands = append(p.commands, workCommand())
	return p
}

// desk is a bench whose queue works, on a store.
func desk(t *testing.T, db *store.DB) *Bench {
	b := NewBench(Config{Host: "bench1"})
	b.db = db
	b.Start(context.Background())
	t.Cleanup(b.end)
	return b
}

// interrupted is a context that a client's Ctrl-C ends.
func interrupted(t *testing.T) (ctx context.Context, interrupt func()) {
	ctx, cancel := context.WithCancelCause(t.Context())
	return ctx, func() { cancel(fmt.Errorf("%w by Ctrl-C", ErrInterrupted)) }
}

// states are the jobs of a bench, each as "j1 running 5s".
func states(b *Bench) (all []string) {
	for _, v := range b.queue.views() {
		left := "?"
		switch {
		case v.Known:
			left = v.Left.String()
		case v.State != Queued && v.State != Running:
			left = fmt.Sprint(int(v.Code))
		}
		all = append(all, fmt.Sprintf("%s %s %s %s", v.ID, v.Owner, v.State, left))
	}
	return all
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
