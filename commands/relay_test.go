package commands

import (
	"strings"
	"testing"

	"relaybench/store/storetest"
)

// A relay that was typed wrongly is an error of usage; a word that is none has the nearest as a hint.
func TestRelayMisnamed(t *testing.T) {
	var out strings.Builder
	s := session(storetest.Open(t), &out)
	for _, tt := range []struct {
		line string
		code Code
		says string
	}{
		{"relay use http://127.0.0.1:1", Usage, "give its --upstream HOST:PORT"},
		{"relay use https:// --upstream 127.0.0.1:2", Usage, "only http is spoken"},
		{"relay use http://127.0.0.1:1/api --upstream 127.0.0.1:2", Usage, "give http://HOST:PORT"},
		{"relay use http://127.0.0.1:1 --upstream nonsense", Usage, `--upstream "nonsense": give HOST:PORT`},
		{"relay use stand-in --upstream 127.0.0.1:2", Usage, "--upstream is for a relay given as a URL"},
		{"relay use http://127.0.0.1:1 --upstream 127.0.0.1:2", CouldNot, "connection refused"},
		{"relay use standin", CouldNot, "hint: did you mean stand-in?"},
		{"relay use nnoe", CouldNot, "hint: did you mean none?"},
		{"relay use lats", CouldNot, "hint: did you mean last?"},
		{"relay use dcoker", CouldNot, "hint: did you mean docker?"},
		{"relay use elsewhere", CouldNot, "hint: what is no path and no URL is stand-in, none, last or docker"},
		{"relay use docker:", Usage, `relay "docker:": "" is no name of an image`},
		{"relay use docker:--privileged", Usage, `"--privileged" is no name of an image`},
		{"relay use docker:x --upstream 127.0.0.1:2", Usage, "--upstream is for a relay given as a URL"},
		{"relay use ./standin", CouldNot, "hint: \n"},
	} {
		code, said := do(t, s, &out, tt.line)
		if code != tt.code {
			t.Errorf("%s: code %d, want %d", tt.line, code, tt.code)
		}
		wants(t, said, tt.says)
	}
}

// A config that nothing would read, or that the relay does not take, is told before the first run, by explain too.
func TestConfigIsCheckedBefore(t *testing.T) {
	var out strings.Builder
	s := session(storetest.Open(t), &out)
	started(t, s)
	for _, tt := range []struct{ relay, line, says string }{
		{"none", "test 1s -E http.encoding=zstd", `set "http.encoding": no relay is started that could read it`},
		{"stand-in", "test 1s -E http.encodingg=zstd", `set "http.encodingg": this relay knows no such key: nearest is http.encoding`},
		{"stand-in", "test 1s -E http.encoding=zstd,rot13", `http.encoding: encoding "rot13"`},
	} {
		do(t, s, &out, "relay use "+tt.relay)
		for _, line := range []string{tt.line, "explain " + tt.line} {
			code, said := do(t, s, &out, line)
			if code != CouldNot || strings.Contains(said, "run 1") {
				t.Errorf("%s: %s: code %d, %q", tt.relay, line, code, said)
			}
			wants(t, said, tt.says)
		}
	}
	if code, said := do(t, s, &out, "explain test 1s -E http.encoding=zstd,gzip"); code != Fine {
		t.Errorf("of what the relay takes: code %d, %q", code, said)
	}
}
