package relay

import (
	"bytes"
	"debug/elf"
)

// rustc is the version of the compiler that made a binary, as rustc leaves it
// in the section .comment of ELF files, stripped ones too: "1.95.0 (59807616e
// 2026-04-14)". It is "" for any other file.
func rustc(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	section := f.Section(".comment")
	if section == nil || section.Size > maxComment {
		return ""
	}
	text, err := section.Data()
	if err != nil {
		return ""
	}
	for comment := range bytes.SplitSeq(text, []byte{0}) {
		if version, ok := bytes.CutPrefix(comment, []byte("rustc version ")); ok {
			return cut(string(version), 80)
		}
	}
	return ""
}

// maxComment bounds the section, in bytes: it has some dozens.
const maxComment = 64 << 10
