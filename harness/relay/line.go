package relay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Line is a line of a relay's log, in its parts; what is not known of it is "".
type Line struct {
	Time   string `json:"time,omitempty"` // as it stands there
	Level  string `json:"level,omitempty"`
	Target string `json:"target,omitempty"` // the part of Relay that says it
	Text   string `json:"text"`             // the message, and what is said with it
}

// quiet are the fields of Relay's JSON log that say where in its source a line is from.
var quiet = []string{"timestamp", "level", "target", "message", "filename", "line_number", "threadId", "threadName"}

// ParseLine reads a line in Relay's JSON or simplified format. Any other line is all text.
func ParseLine(line string) Line {
	if strings.HasPrefix(line, "{") {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil {
			return jsonLine(fields)
		}
	}
	var p lineParser
	level, _ := p.parse([]byte(line))
	l := Line{Level: level, Text: line}
	if at, rest, ok := strings.Cut(line, " "); ok && strings.HasSuffix(at, "Z") && !strings.HasPrefix(line, "{") {
		word, rest, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
		if slices.Contains([]string{"ERROR", "WARN", "INFO", "DEBUG", "TRACE"}, word) {
			l = Line{Time: at, Level: word, Text: rest}
			if target, text, ok := strings.Cut(rest, ": "); ok && !strings.Contains(target, " ") {
				l.Target, l.Text = target, text
			}
		}
	}
	return l
}

func jsonLine(fields map[string]any) Line {
	text := func(name string) string {
		s, _ := fields[name].(string)
		return s
	}
	l := Line{Time: text("timestamp"), Level: text("level"), Target: text("target"), Text: text("message")}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(quiet, name) {
			continue
		}
		value := fmt.Sprint(fields[name])
		if _, plain := fields[name].(string); !plain {
			if b, err := json.Marshal(fields[name]); err == nil {
				value = string(b)
			}
		}
		l.Text = strings.TrimPrefix(l.Text+" "+name+"="+value, " ")
	}
	return l
}

// String is the line as a person reads it.
func (l Line) String() string {
	s := join(l.Time, l.Level)
	if l.Target != "" {
		return join(s, l.Target+": "+l.Text)
	}
	return join(s, l.Text)
}
