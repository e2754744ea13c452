//go:build !linux

package builds

// alive says whether a process of a group may be there that has not ended.
func alive(int) bool { return true }
