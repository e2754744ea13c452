package shell

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestToken(t *testing.T) {
	t.Parallel()
	const secret = "a secret of some length"
	s := share(t, 0, newToken(secret), nil)
	g := s.guest()
	g.send(secret + "\nstatus\n")
	if got := g.rest(); !strings.Contains(got, "stand-in") || strings.Contains(got, secret) {
		t.Errorf("status printed %q", got)
	}
	from := time.Now()
	wrong := map[string]*guest{}
	for _, text := range []string{"status\nstatus\n", secret + "x\nstatus\n", "\nstatus\n", secret[:5] + "\nstatus\n"} {
		wrong[text] = s.guest()
		wrong[text].send(text)
	}
	for text, g := range wrong {
		if got := g.rest(); got != "relaybench: wrong token\n" {
			t.Errorf("%q was answered %q", text, got)
		}
		if took := time.Since(from); took < wrongTokenWait {
			t.Errorf("a wrong token was answered after %v", took)
		}
	}
	// Whoever owns the store needs none.
	if got := s.frames(hello{}).do("status"); !strings.Contains(got, "stand-in") {
		t.Errorf("status beside the store printed %q", got)
	}
	for sent, want := range map[string]string{"": "a token is demanded", "status": "wrong token"} {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := greet(conn, "test", hello{Token: sent}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("hello with token %q: %v, want %q", sent, err, want)
		}
		conn.Close()
	}
	s.logged("sent a wrong token")
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(s.logs.String(), secret[:5]) {
		t.Errorf("the token is in the log: %s", s.logs.String())
	}
}

func TestReadToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{"abc\n": "abc", " a b \r\nc\n": "a b", "abc": "abc"} {
		file := filepath.Join(dir, "token")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := tokenLine(file); got != want || err != nil {
			t.Errorf("token of %q is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "\nabc"} {
		file := filepath.Join(dir, "none")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tokenLine(file); err == nil {
			t.Errorf("token of %q: no error", text)
		}
	}
}

// A token is asked for, and a server that ends says so after a prompt.
func TestTokenPrompt(t *testing.T) {
	t.Parallel()
	s := share(t, 0, newToken("abc"), prompts)
	g := s.guest()
	g.until(`^token: $`)
	g.send("abc\r\n")
	g.until(prompt)
	s.end()
	if got := g.all(); got != "\nrelaybench: the shell has ended: a test\n" {
		t.Errorf("it is told %q", got)
	}
}
