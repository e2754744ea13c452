package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"relaybench/store/storetest"
)

// fakeDocker has the image relay-test, and others once they are pulled. Its container is
// the CLI's own process, which becomes the stand-in.
const fakeDocker = `#!/bin/sh
cd "$ENGINE" && echo "$*" >>calls
case "$1 $2" in
--version*) echo Docker version 28.2.2 ;;
info*) echo '{"OperatingSystem":"Debian"}' ;;
pull*)
	[ "$2" = refused ] && echo 'Error: denied' >&2 && exit 1
	echo 'a: Pull complete'
	touch "pulled-$2" ;;
"image ls") printf 'relay-test:latest\nbusybox:1\n' ;;
"image inspect")
	case $5 in
	relay-test | sha256:*) ;;
	*) [ -e "pulled-$5" ] || { echo "Error: No such image: $5" >&2; exit 1; } ;;
	esac
	echo sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef 5000000 ;;
"container inspect")
	case $4 in *OOM*) echo false ;; *) cat "pid-$5" 2>/dev/null || { echo "No such container" >&2; exit 1; } ;; esac ;;
rm*)
	[ -e "pid-$4" ] || exit 0
	kill -9 "$(cat "pid-$4")" 2>/dev/null
	rm "pid-$4"
	echo "$4" ;;
run*)
	while [ "${1#sha256:}" = "$1" ]; do
		case $1 in --name) name=$2 ;; type=bind*) dir=${1#*source=} && dir=${dir%%,*} ;; esac
		shift
	done
	shift
	[ "$1" = -c ] && shift 2 && set -- -c "$dir" "$@"
	echo $$ >"pid-$name"
	exec env RELAYBENCH_ROLE=stand-in "$SELF" "$@" ;;
esac
`

// An image is a relay as a binary is: found, fetched, shown, measured.
func TestImages(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("containers are for Linux")
	}
	dir := t.TempDir()
	t.Setenv("ENGINE", dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SELF", self)
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(fakeDocker), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")

	var out strings.Builder
	s := session(storetest.Open(t), &out)
	started(t, s)
	says := func(line string, code Code, want string) {
		t.Helper()
		got, said := do(t, s, &out, line)
		if got != code {
			t.Errorf("%s: code %d, want %d: %s", line, got, code, said)
		}
		wants(t, said, want)
	}
	calls := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	says("relay use docker:relay-test", Fine, ", image relay-test in docker, sha256 0123456789ab")
	if strings.Contains(calls(), "pull relay-test") {
		t.Error("an image that is here was fetched")
	}
	says("relay use", Fine, "image relay-test in docker")
	says("relay list", Fine, "docker:relay-test")
	says("relay list --json", Fine, `"image": "relay-test"`)
	says("relay use docker:other", Fine, "image other in docker")
	if !strings.Contains(calls(), "pull other\n") {
		t.Error("an image that is not here was not fetched")
	}
	says("relay use docker:refused", CouldNot, "docker pull refused: exit status 1: Error: denied")
	says("relay use --json", Fine, `"image": "other"`) // what could not be had is not in use
	says("test 1s --perf x", Usage, "docker:other runs in a container")
	says("ab docker:other ./relay test 1s", Usage, "only one of them runs in a container")
	says("ab docker:other stand-in test 1s", Usage, "are never compared")
	says("explain ab docker:other docker:relay-test test 6s --rate 10", Fine, "runs")
	says("relay config", Fine, "image other in docker")
	if _, found := s.Complete("relay use docker:", 17); strings.Join(found, " ") != "docker:relay-test:latest" {
		t.Errorf("completed %q", found)
	}

	// One that has gone since fails its test: a run fetches none.
	if err := os.Remove(filepath.Join(dir, "pulled-other")); err != nil {
		t.Fatal(err)
	}
	before := strings.Count(calls(), "pull ")
	says("test 1s", CouldNot, "hint: relay use docker:IMAGE fetches it")
	if strings.Count(calls(), "pull ") != before {
		t.Error("a run fetched an image")
	}
	says("relay use docker:relay-test", Fine, "")
	if _, said := do(t, s, &out, "test 1s --rate 20 --mix sessions --pool 10"); !strings.Contains(said, "the relay ran in a container of docker") {
		t.Errorf("test: %s", said)
	}
	says("reports relay-form=image relay-image=relay-test relay-engine=docker relay-sha256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", Fine, "stand-in-1 sha256")
	if left, _ := filepath.Glob(filepath.Join(dir, "pid-*")); len(left) > 0 {
		t.Errorf("containers are left: %q", left)
	}

	// A client elsewhere names no image, and has none fetched.
	s.client.Remote = true
	says("relay use docker:relay-test", Usage, "is refused")
	says("relay use docker", Usage, "fetching an image is refused")
}
