package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
  docker     the image that Sentry publishes, ` + relay.DefaultImage + `, and docker:IMAGE
             any other: each run makes a container of it, by docker, or podman where no docker
             answers, on this host's network. One that is not here is fetched first, by this
             command only; docker pull fetches a newer one. sha256 is the image's id
  stand-in   the small relay built into relaybench: the default where none was named
  none       no relay: the senders straight into the fake Sentry, which is what this
             machine's harness can do
  last       the one that was used last
The relay is remembered in the store, and is looked at again whenever a test starts.`,
	args:     []arg{{name: "WHAT", help: "stand-in, none, last, the path of a binary or of a checkout, docker:IMAGE, or a URL", optional: true, path: relayPath, values: relayValues}},
	examples: []string{"relay use stand-in", "relay use ~/relay/target/release/relay", "relay use ~/relay", "relay use docker", "relay use docker:getsentry/relay:26.4.0", "relay use http://127.0.0.1:3000 --upstream 127.0.0.1:9100", "relay use"},
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
			named := ref
			if ref, err = s.tellRelay(ctx, named); errors.Is(err, relay.ErrNoImage) {
				if err = s.pull(ctx, named.What); err == nil {
					ref, err = s.tellRelay(ctx, named)
				}
			}
			if err != nil {
				return Fine, err
			}
			s.relay = &ref
			return Fine, s.bench.keepRelay(ref)
		}
	},
}

// relayValues are the words that relay use takes, and the images that are here.
func relayValues(s *Session, before []string, typed string) []string {
	if len(before) > 0 {
		return nil
	}
	found := []string{relay.FormStandIn, relay.FormNone, lastUsed, relay.ImageWord}
	if strings.HasPrefix(typed, relay.ImageWord) && s.mayName("WHAT", relay.ImageWord) == nil {
		ctx, cancel := context.WithTimeout(context.Background(), completionLimit)
		defer cancel()
		found = append(found, relay.Images(ctx)...)
	}
	return found
}

// pull makes the engine fetch an image, which no run does by itself.
func (s *Session) pull(ctx context.Context, what string) error {
	if err := s.mayBuild("fetching an image"); err != nil {
		return err
	}
	if s.bench.queue.head() != nil {
		return hinted(fmt.Errorf("%s is not here, and to fetch it would disturb the job that runs", what), "wait, and then again")
	}
	tell := startProgress(s.client, 0, s.format, place{}, nil)
	defer tell.Close()
	begun := time.Now()
	tell.Step("pulling " + what)
	return relay.Pull(ctx, what, func(line string) {
		tell.Step("pulling " + what + ", " + seconds(time.Since(begun)) + ": " + table.Clean(line))
	})
}

// relayRecord is what is known of a relay.
func relayRecord(p relay.Program) *table.Table {
	sized := p.Form == relay.FormPath || p.Form == relay.FormImage
	size, dirty := table.Cell{}, table.Cell{}
	if sized {
		size = table.Int(p.Size)
	}
	if p.Revision != "" {
		dirty = table.Bool(p.Dirty)
	}
	r := table.Record()
	r.Field("form", "form", optional(p.Form))
	r.Field("path", "path", optional(p.Path))
	r.Field("image", "image", optional(p.Image))
	r.Field("engine", "engine", optional(p.Engine))
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
