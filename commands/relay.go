package commands

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"relaybench/commands/table"
	"relaybench/harness/relay"
)

var relayUseCommand = command{
	name:    "relay use",
	summary: "say which relay to test; without a name, which one it is",
	detail: `WHAT is one of
  PATH       a binary of Relay, such as ~/relay/target/release/relay
  FOLDER     a checkout of Relay, or a bare repository: relay switch takes builds from it
  URL        somebody else's running Relay, http://HOST:PORT; --upstream says to which
             address it sends, and relaybench listens there. It is neither started nor
             stopped, and what cannot be seen of it is unknown
  stand-in   the small relay built into relaybench: the default where none was named
  none       no relay: the senders straight into the fake Sentry, which is what this
             machine's harness can do
  last       the one that was used last
The relay is remembered in the store, and is looked at again whenever a test starts.`,
	args:     []arg{{name: "WHAT", help: "stand-in, none, last, the path of a binary or of a checkout, or a URL", optional: true, path: relayPath, values: fixedValues(relay.FormStandIn, relay.FormNone, lastUsed)}},
	examples: []string{"relay use stand-in", "relay use ~/relay/target/release/relay", "relay use ~/relay", "relay use http://127.0.0.1:3000 --upstream 127.0.0.1:9100", "relay use"},
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
