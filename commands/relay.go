package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/relay"
	"relaybench/harness/variable"
)

var relayUseCommand = command{
	name:    "relay use",
	summary: "say which relay to test; without a name, which one it is",
	detail: `WHAT is one of
  PATH       a binary of Relay, such as ~/relay/target/release/relay
  URL        somebody else's running Relay, http://HOST:PORT; --upstream says to which
             address it sends, and relaybench listens there. It is neither started nor
             stopped, and what cannot be seen of it is unknown
  stand-in   the small relay built into relaybench: the default where none was named
  none       no relay: the senders straight into the fake Sentry, which is what this
             machine's harness can do
  last       the one that was used last
The relay is remembered in the store, and is looked at again whenever a test starts.`,
	args:     []arg{{name: "WHAT", help: "stand-in, none, last, the path of a binary, or a URL", optional: true, path: relayPath, values: fixedValues(relay.FormStandIn, relay.FormNone, lastUsed)}},
	examples: []string{"relay use stand-in", "relay use ~/relay/target/release/relay", "relay use http://127.0.0.1:3000 --upstream 127.0.0.1:9100", "relay use"},
	store:    true,
	table:    true,
	setup: func(s *Session, fs *pflag.FlagSet) work {
		upstream := fs.String("upstream", "", "`HOST:PORT` that a relay given as a URL sends to")
		return func(ctx context.Context, args []string) (Code, error) {
			if len(args) == 0 {
				if *upstream != "" {
					return Fine, usageError(errors.New("--upstream without a URL"), "")
				}
				ref, err := s.inUse()
				if err != nil {
					return Fine, err
				}
				_, err = s.tellRelay(ctx, ref)
				return Fine, err
			}
			ref, err := s.named(args[0], *upstream)
			if err != nil {
				return Fine, err
			}
			if ref, err = s.tellRelay(ctx, ref); err != nil {
				return Fine, err
			}
			s.relay = &ref
			return Fine, s.bench.keepRelay(ref)
		}
	},
}

// reference is a relay as it was named: it is found when it is used.
type reference struct {
	What     string `json:"what"`
	Upstream string `json:"upstream,omitempty"`
}

// form is that of the relay, as [relay.Find] would have it.
func (r reference) form() string {
	switch {
	case r.What == relay.FormStandIn || r.What == relay.FormNone:
		return r.What
	case strings.Contains(r.What, "://"):
		return relay.FormURL
	}
	return relay.FormPath
}

// relaySetting is the name under which the store keeps the relay last used.
const relaySetting = "relay"

// lastRelay is the relay that the store knows; ok is false where none was used yet.
func (b *Bench) lastRelay() (r reference, ok bool, err error) {
	db, err := b.open()
	if err != nil {
		return r, false, err
	}
	text, ok, err := db.Setting(relaySetting)
	if err != nil || !ok {
		return r, false, err
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, false, fmt.Errorf("relay last used: %w", err)
	}
	return r, true, nil
}

// inUse is the relay that the session uses: what it said itself, else the last
// one that the store knows, else the stand-in.
func (s *Session) inUse() (reference, error) {
	if s.relay == nil {
		r, ok, err := s.bench.lastRelay()
		if err != nil {
			return r, err
		}
		if !ok {
			r.What = relay.FormStandIn
		}
		s.relay = &r // what another client uses from now on is that one's
	}
	return *s.relay, nil
}

// lastUsed stands for the relay that was used last.
const lastUsed = "last"

// named is the reference that was typed.
func (s *Session) named(what, upstream string) (reference, error) {
	if what != lastUsed {
		if relayPath(what) && what != "" {
			what = s.from(what)
		}
		return reference{What: what, Upstream: upstream}, nil
	}
	ref, ok, err := s.bench.lastRelay()
	if err == nil && !ok {
		err = hinted(errors.New("no relay was used yet"), "name one: relay use PATH")
	}
	return ref, err
}

// tellRelay finds the relay and says what it is. It gives the reference that
// means the same wherever a later session is started.
func (s *Session) tellRelay(ctx context.Context, ref reference) (reference, error) {
	p, err := relay.Find(ctx, ref.What, ref.Upstream)
	if err != nil {
		return ref, misnamed(ref, err)
	}
	if p.Form == relay.FormPath {
		ref.What = p.Path
	}
	if s.format == Text {
		return ref, s.printf("relay in use: %s\n", p)
	}
	return ref, s.print(relayRecord(p))
}

// misnamed is the error of a relay that was not found, with what was probably meant.
func misnamed(ref reference, err error) error {
	var typed *relay.UsageError
	words := []string{relay.FormStandIn, relay.FormNone, lastUsed}
	switch {
	case errors.As(err, &typed):
		return usageError(err, "")
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsRune(ref.What, '/'):
		return hinted(err, didYouMean(variable.Nearest(ref.What, words), "what is no path and no URL is "+oneOf(words)))
	}
	return err
}

// relayRecord is what is known of a relay.
func relayRecord(p relay.Program) *table.Table {
	path := p.Form == relay.FormPath
	size, dirty := table.Cell{}, table.Cell{}
	if path {
		size = table.Int(p.Size)
	}
	if p.Revision != "" {
		dirty = table.Bool(p.Dirty)
	}
	r := table.Record()
	r.Field("form", "form", optional(p.Form))
	r.Field("path", "path", optional(p.Path))
	r.Field("url", "url", optional(p.URL))
	r.Field("upstream", "upstream", optional(p.Upstream))
	r.Field("version", "version", optional(p.Version))
	r.Field("sha256", "sha256", optional(p.SHA256))
	r.Field("size_bytes", "size, bytes", size)
	r.Field("branch", "branch", optional(p.Branch))
	r.Field("revision", "revision", optional(p.Revision))
	date := table.Cell{}
	if !p.RevisionDate.IsZero() {
		date = table.Text(p.RevisionDate.Format(time.RFC3339))
	}
	r.Field("revision_date", "revision's date", date)
	r.Field("dirty", "tree is dirty", dirty)
	r.Field("profile", "profile", optional(p.Profile))
	r.Field("rustc", "rustc", optional(p.Rustc))
	return r
}

// keepRelay makes the relay the one that new sessions use.
func (b *Bench) keepRelay(ref reference) error {
	db, err := b.open()
	if err != nil {
		return err
	}
	text, err := json.Marshal(ref)
	if err != nil {
		return err
	}
	if err := db.SetSetting(relaySetting, string(text)); err != nil {
		return fmt.Errorf("remember the relay: %w", err)
	}
	return nil
}
