//go:build !linux

package harness

// What these systems do not tell is unknown.

func processCPU(int) (ns int64, ok bool)                        { return 0, false }
func processMemory(int) (rss, peak int64, threads int, ok bool) { return 0, 0, 0, false }
func resetPeak(int) bool                                        { return false }
func othersCPU(...int) map[int]int64                            { return nil }
func checkFiles(int) error                                      { return nil }
