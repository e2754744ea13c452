package envelope

import "strconv"

// keyPrefix begins every project key of a run; eight hex digits of the
// project's number follow. So a key tells its project, and 100,000 projects
// need no table at either end.
const keyPrefix = "5e1a7be7c40000000000000a"

// KeyLen is the length of a project key.
const KeyLen = 32

// AppendKey appends the public key of a project, 32 hex digits; projects are numbered from 0.
func AppendKey(dst []byte, project int) []byte {
	n := len(dst)
	dst = append(dst, keyPrefix+"00000000"...)
	putHex(dst[n+len(keyPrefix):], uint64(project))
	return dst
}

// Key is the public key of a project.
func Key(project int) string { return string(AppendKey(nil, project)) }

// ProjectOf is the project that a key belongs to; ok is false for a key that is not of [Key].
func ProjectOf(key string) (project int, ok bool) {
	if len(key) != KeyLen || key[:len(keyPrefix)] != keyPrefix {
		return 0, false
	}
	v, err := strconv.ParseUint(key[len(keyPrefix):], 16, 32)
	return int(v), err == nil
}

// ProjectID is the id of a project in URLs and project configs. It starts at
// 1: Sentry has no project 0.
func ProjectID(project int) int { return project + 1 }
