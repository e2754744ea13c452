package relay

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"relaybench/harness/result"
)

// Where no cgroup may be made, Relay's own limit is set: what is in use already is allowed on top.
func TestMemoryByRelay(t *testing.T) {
	const memory = 64 << 20
	s := Setup{Memory: memory, noGroup: errors.New("not permitted")}
	var p Process
	config := tree{}
	own, err := p.limitMemory(Program{Form: FormPath}, s, config)
	if err != nil {
		t.Fatal(err)
	}
	l := p.MemoryLimit()
	if l.Way != result.LimitRelay || l.Before == 0 || l.Counted == "" || !strings.Contains(l.Why, "not permitted") {
		t.Errorf("got limit %+v", l)
	}
	want := l.Before + memory
	if got, _ := config.get(maxMemoryKey); got != want || len(own) != 1 || own[0].key != maxMemoryKey || own[0].text != strconv.FormatUint(want, 10) {
		t.Errorf("got %v in the config, set %+v, want %d", got, own, want)
	}
	if _, err := p.limitMemory(Program{Form: FormPath}, s, config); err == nil || !strings.Contains(err.Error(), "set already") {
		t.Errorf("with the key set by somebody: got %v", err)
	}
	if own, err := p.limitMemory(Program{Form: FormImage}, s, tree{}); own != nil || err != nil || p.MemoryLimit().Way != result.LimitContainer {
		t.Errorf("a container's: got %v, %v, %+v", own, err, p.MemoryLimit())
	}
}
