package builds

import "github.com/prometheus/procfs"

// alive says whether a process of a group is there that has not ended. One that
// has may be in the table for long: its new parent is to take it out.
func alive(group int) bool {
	all, err := procfs.AllProcs()
	if err != nil {
		return true
	}
	for _, p := range all {
		if stat, err := p.Stat(); err == nil && stat.PGRP == group && stat.State != "Z" && stat.State != "X" {
			return true
		}
	}
	return false
}
