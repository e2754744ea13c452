package relay

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// commented is an ELF file of nothing but a section .comment.
func commented(t *testing.T, comment string) string {
	t.Helper()
	names := "\x00.comment\x00.shstrtab\x00"
	const head = 64
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: head, Shentsize: 64, Shnum: 3, Shstrndx: 2, Shoff: head + uint64(len(comment)+len(names))}
	copy(h.Ident[:], elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}))
	var file bytes.Buffer
	for _, part := range []any{h, []byte(comment), []byte(names), elf.Section64{},
		elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: head, Size: uint64(len(comment)), Addralign: 1},
		elf.Section64{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: head + uint64(len(comment)), Size: uint64(len(names)), Addralign: 1}} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "relay")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRustc(t *testing.T) {
	script := filepath.Join(t.TempDir(), "relay")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"by rustc", commented(t, "Linker: LLD 22.1.2\x00rustc version 1.95.0 (59807616e 2026-04-14)\x00GCC: (Debian) 12.2.0\x00"), "1.95.0 (59807616e 2026-04-14)"},
		{"by another", commented(t, "GCC: (Debian) 12.2.0\x00"), ""},
		{"empty", commented(t, ""), ""},
		{"a script", script, ""},
		{"no file", script + ".no", ""},
	} {
		if got := rustc(c.path); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
