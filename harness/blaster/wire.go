package blaster

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"relaybench/envelope"
)

// loadJSON is a [Load] between processes: kinds hold functions and go by their names, a mix goes as its text.
type loadJSON struct {
	Addr        string   `json:"addr"`
	Pool        poolJSON `json:"pool"`
	Zero        int64    `json:"zero_ns"`
	Schedule    Schedule `json:"schedule"`
	Duration    int64    `json:"duration_ns"`
	Connections int      `json:"connections"`
	Reconnect   int      `json:"reconnect"`
	Timeout     int64    `json:"timeout_ns"`
}

type poolJSON struct {
	Kinds    []string       `json:"kinds,omitempty"`
	Mix      string         `json:"mix"`
	Seed     uint64         `json:"seed"`
	Size     int            `json:"size"`
	Projects int            `json:"projects"`
	Zipf     float64        `json:"zipf"`
	Shape    envelope.Shape `json:"shape"`
	Epoch    time.Time      `json:"epoch"`
	Encoding string         `json:"encoding,omitempty"`
	Folder   *folderJSON    `json:"folder,omitempty"`
}

// folderJSON is a folder that the other process reads again.
type folderJSON struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// read reads the folder, which must be as it was.
func (f *folderJSON) read() (*envelope.Folder, error) {
	folder, err := envelope.ReadFolder(os.DirFS(f.Path), f.Path)
	if err == nil && folder.SHA256 != f.SHA256 {
		err = fmt.Errorf("folder %q is not as it was when the run began", f.Path)
	}
	return folder, err
}

// MarshalJSON writes the load for another process of the same program, which
// knows kinds by their names only: one that is not in [envelope.Kinds] is an
// error, and can be sent by the process that made it alone.
func (l Load) MarshalJSON() ([]byte, error) {
	p := l.Pool
	j := loadJSON{
		Addr: l.Addr, Zero: l.Zero, Schedule: l.Schedule, Duration: int64(l.Duration),
		Connections: l.Connections, Reconnect: l.Reconnect, Timeout: int64(l.Timeout),
		Pool: poolJSON{Mix: p.Mix.String(), Seed: p.Seed, Size: p.Size, Projects: p.Projects, Zipf: p.Zipf, Shape: p.Shape, Epoch: p.Epoch, Encoding: p.Encoding},
	}
	if p.Folder != nil {
		j.Pool.Folder = &folderJSON{p.Folder.Path, p.Folder.SHA256}
		j.Pool.Mix = ""
		return json.Marshal(j)
	}
	for _, k := range p.Kinds {
		if envelope.Find(envelope.Kinds, k.Name) == nil {
			return nil, fmt.Errorf("kind %q is not built in: only one sender process can send it", k.Name)
		}
		j.Pool.Kinds = append(j.Pool.Kinds, k.Name)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Load) UnmarshalJSON(b []byte) error {
	var j loadJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	p := j.Pool
	*l = Load{
		Addr: j.Addr, Zero: j.Zero, Schedule: j.Schedule, Duration: time.Duration(j.Duration),
		Connections: j.Connections, Reconnect: j.Reconnect, Timeout: time.Duration(j.Timeout),
		Pool: envelope.PoolConfig{Seed: p.Seed, Size: p.Size, Projects: p.Projects, Zipf: p.Zipf, Shape: p.Shape, Epoch: p.Epoch, Encoding: p.Encoding},
	}
	if err := p.content(&l.Pool); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return nil
}

// content sets what the pool is of: the folder that it names, or its kinds and mix.
func (p *poolJSON) content(c *envelope.PoolConfig) (err error) {
	if p.Folder != nil {
		c.Folder, err = p.Folder.read()
		return err
	}
	for _, name := range p.Kinds {
		k := envelope.Find(envelope.Kinds, name)
		if k == nil {
			return fmt.Errorf("unknown kind %q", name)
		}
		c.Kinds = append(c.Kinds, *k)
	}
	table := c.Kinds
	if table == nil {
		table = envelope.Kinds
	}
	c.Mix, err = envelope.ParseMix(table, p.Mix)
	return err
}
