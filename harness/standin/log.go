package standin

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// levels are the log levels, the gravest lowest.
var levels = map[string]int{"OFF": 0, "ERROR": 1, "WARN": 2, "INFO": 3, "DEBUG": 4}

// logger writes lines as Relay's JSON format has them.
type logger struct {
	mu   sync.Mutex
	w    io.Writer
	most int // the least grave level that is written
}

func newLogger(w io.Writer, level string) *logger { return &logger{w: w, most: levels[level]} }

func (l *logger) say(level, message string) {
	if levels[level] > l.most {
		return
	}
	line, err := json.Marshal(struct {
		Timestamp string `json:"timestamp"`
		Level     string `json:"level"`
		Message   string `json:"message"`
		Target    string `json:"target"`
	}{time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), level, message, "standin"})
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Nobody may be reading any more: that is no reason to stop.
	_, _ = l.w.Write(append(line, '\n'))
}
