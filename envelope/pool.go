package envelope

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// PayloadVersion is the version of what this program sends: the same version,
// plan and seed give the same bytes. It is a condition of every report, and a golden
// hash in testdata holds it: change one with the other.
const PayloadVersion = 1

// Shape is how the envelopes of a pool look: the knobs of payloads.
type Shape struct {
	Frames     int // of each stack of an error, which has two
	SpansMin   int // of a transaction, which has a number drawn between the two
	SpansMax   int
	UserAgents int     // user agents that each envelope's is drawn from by Zipf, at most [MaxAgents]; 0: the built-in ones take turns
	Unique     bool    // each envelope of the pool has a user agent of its own
	Filtered   float64 // share, 0 to 1, of envelopes whose user agent Relay's default filters drop
}

// DefaultShape is the shape of a pool where nobody asked for another.
func DefaultShape() Shape { return Shape{Frames: 10, SpansMin: 20, SpansMax: 100} }

// PoolConfig is all that decides a pool: the same config and program version give the same bytes.
type PoolConfig struct {
	Kinds    []Kind // nil: the table [Kinds]
	Mix      Mix    // over Kinds
	Seed     uint64
	Size     int // envelopes in the pool
	Projects int
	Zipf     float64 // exponent of the projects' popularity; 0: all alike
	Shape    Shape
	Epoch    time.Time // the run's start: times in payloads are relative to it
	Encoding string    // of bodies, a name of [Encodings]; "": identity
	Folder   *Folder   // what to send instead: then Kinds and Mix are its own, and Size is raised to a multiple of its files
}

// Pool is the envelopes of a run, built and serialised before its clock
// starts and read-only from then on: any number of senders may use it at once.
//
// Send seq is a copy of entry seq % size, so the weights of the mix are exact
// over each round of the pool.
type Pool struct {
	seed     uint64
	epoch    int64 // milliseconds since 1970
	kinds    []Kind
	entries  []entry
	warm     map[string]*entry
	zipf     alias
	encoding *Encoding
}

// entry is one envelope of the pool, with placeholders where each send is patched.
type entry struct {
	kind     int
	elements int
	agent    []byte
	body     []byte
	patches  []patch
	mend     func(body []byte) // of a body whose encoding has a checksum
}

// Salts of the streams that a seed gives; the ids' are the slots from saltID.
const (
	saltProject = 1 + iota
	saltOrder
	saltMaker
	saltAgent
	saltID   = 1 << 16
	saltWarm = 1 << 32
)

func (c *PoolConfig) check() error {
	s := c.Shape
	switch {
	case FindEncoding(c.Encoding) == nil:
		return fmt.Errorf("unknown encoding %q", c.Encoding)
	case len(c.Mix.weights) != len(c.Kinds):
		return errors.New("mix of another table of kinds")
	case c.Projects < 1 || c.Projects > math.MaxUint32:
		return fmt.Errorf("%d projects", c.Projects)
	case c.Zipf < 0 || math.IsNaN(c.Zipf) || math.IsInf(c.Zipf, 0):
		return fmt.Errorf("zipf exponent %v", c.Zipf)
	case s.Frames < 0 || s.SpansMin < 0 || s.SpansMax < s.SpansMin:
		return fmt.Errorf("shape of %d frames and %d to %d spans", s.Frames, s.SpansMin, s.SpansMax)
	case s.UserAgents < 0 || s.UserAgents > MaxAgents:
		return fmt.Errorf("%d user agents: 1 to %d", s.UserAgents, MaxAgents)
	case s.Unique && c.Size > MaxAgents:
		return fmt.Errorf("%d envelopes, and %d different user agents", c.Size, MaxAgents)
	case s.Unique && s.Filtered > 0:
		return errors.New("user agents that are filtered are few: not each envelope has one of its own")
	case !(s.Filtered >= 0 && s.Filtered <= 1):
		return fmt.Errorf("filtered share %v: 0 to 1", s.Filtered)
	}
	return nil
}

// NewPool builds a pool. Every kind of the mix has at least one envelope in it,
// or its error says how large the pool must be.
func NewPool(c PoolConfig) (*Pool, error) {
	if c.Kinds == nil {
		c.Kinds = Kinds
	}
	if c.Folder != nil {
		c.Kinds, c.Mix = c.Folder.Kinds, c.Folder.mix()
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	p := &Pool{
		seed:     c.Seed,
		epoch:    c.Epoch.UnixMilli(),
		warm:     make(map[string]*entry, len(c.Kinds)),
		zipf:     newZipf(c.Projects, c.Zipf),
		encoding: FindEncoding(c.Encoding),
	}
	build := p.makeEntries
	if c.Folder != nil {
		build = p.recordedEntries
	}
	if err := build(&c); err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	order := rand.New(rand.NewPCG(c.Seed, saltOrder))
	order.Shuffle(len(p.entries), func(i, j int) { p.entries[i], p.entries[j] = p.entries[j], p.entries[i] })
	for i := range c.Kinds {
		k := &c.Kinds[i]
		if p.warm[k.Name] != nil || k.Make == nil {
			continue
		}
		e, err := makeEntry(&c, k, 0, agentNumber(0))
		if err != nil {
			return nil, fmt.Errorf("pool: %s: %w", k.Name, err)
		}
		p.warm[k.Name] = e
	}
	if err := p.encode(); err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	return p, nil
}

// makeEntries fills the pool with made envelopes.
func (p *Pool) makeEntries(c *PoolConfig) error {
	var weights []float64
	for i, w := range c.Mix.weights {
		if w > 0 {
			p.kinds = append(p.kinds, c.Kinds[i])
			weights = append(weights, w)
		}
	}
	counts := shares(max(c.Size, 0), weights)
	if i := slices.Index(counts, 0); i >= 0 {
		return fmt.Errorf("%d envelopes are too few for mix %s: none of %s", c.Size, c.Mix, p.kinds[i].Name)
	}
	portions := make([]float64, len(counts))
	for i, n := range counts {
		portions[i] = float64(n)
	}
	filtered := shares(int(math.Round(float64(c.Size)*c.Shape.Filtered)), portions)
	agents := newPicker(c)
	for i := range p.kinds {
		for n := range counts[i] {
			e, err := makeEntry(c, &p.kinds[i], n, agents.pick(n, n < filtered[i]))
			if err != nil {
				return fmt.Errorf("%s: %w", p.kinds[i].Name, err)
			}
			e.kind = i
			p.entries = append(p.entries, *e)
		}
	}
	return nil
}

// recordedEntries fills the pool with a folder's envelopes, in turn, and has the first of each kind warm up.
func (p *Pool) recordedEntries(c *PoolConfig) error {
	files := c.Folder.files
	index := make([]int, len(c.Kinds)) // in p.kinds
	for i, w := range c.Mix.weights {
		if w > 0 {
			index[i] = len(p.kinds)
			p.kinds = append(p.kinds, c.Kinds[i])
		}
	}
	bodies := make([][]byte, len(files))
	for i := range files {
		bodies[i] = files[i].moved(c.Epoch)
	}
	agents, rounds := newPicker(c), max(1, (c.Size+len(files)-1)/len(files))
	for n := range rounds * len(files) {
		i := n % len(files)
		f := &files[i]
		p.entries = append(p.entries, entry{kind: index[f.kind], elements: f.elements, agent: []byte(agents.pick(n, false)), body: bodies[i], patches: f.patches})
		if name := c.Kinds[f.kind].Name; p.warm[name] == nil {
			p.warm[name] = &entry{agent: []byte(agentNumber(0)), body: bodies[i], patches: f.patches}
		}
	}
	return nil
}

// makeEntry makes envelope n of a kind, sent by an agent, and checks what its Make made.
func makeEntry(c *PoolConfig, k *Kind, n int, agent string) (*entry, error) {
	name := fnv.New64a()
	name.Write([]byte(k.Name))
	random := rand.New(rand.NewPCG(draw(c.Seed, saltMaker, name.Sum64()), uint64(n)))
	m := &Maker{Rand: random, N: n, Shape: c.Shape, Epoch: c.Epoch, Agent: agent, kind: k.Name}
	m.choose()
	if err := k.Make(m); err != nil {
		return nil, err
	}
	if m.err != nil {
		return nil, m.err
	}
	e := &entry{agent: []byte(agent), body: m.body()}
	e.patches = patches(e.body)
	sample := e.fill(nil, Stamp{}, saltID, 0, 0, 0)
	var parsed Envelope
	if err := parsed.Parse(sample); err != nil {
		return nil, err
	}
	for _, it := range parsed.Items {
		if !slices.Contains(k.Items, string(it.Type)) {
			return nil, fmt.Errorf("item %q is none of the kind's %q", it.Type, k.Items)
		}
		if string(it.Type) == k.Items[0] {
			e.elements += k.Elements(it)
		}
	}
	return e, nil
}

// fill appends the envelope with its places filled in. Ids are drawn from the
// streams of seed from salt on; sentAt is in milliseconds since 1970.
func (e *entry) fill(dst []byte, s Stamp, salt, seed uint64, project int, sentAt int64) []byte {
	start := len(dst)
	dst = append(dst, e.body...)
	body := dst[start:]
	var text [64]byte
	for i := range e.patches {
		p := &e.patches[i]
		t := text[:p.length]
		switch p.sort {
		case placeHex:
			putUUID(t, draw(seed, salt+p.slot, s.Seq))
		case placeUUID:
			putDashed(t, draw(seed, salt+p.slot, s.Seq))
		case placeSpan:
			putHex(t, max(draw(seed, salt+p.slot, s.Seq), 1))
		case placeKey:
			AppendKey(t[:0], project)
		case placeSent:
			putTime(t, sentAt)
		case placeStamp:
			PutStamp(t, s)
		}
		for _, at := range p.at {
			copy(body[at:], t)
		}
	}
	if e.mend != nil {
		e.mend(body)
	}
	return dst
}

// Kinds are the kinds with a weight in the mix, in the table's order. Kind indexes below are indexes into it.
func (p *Pool) Kinds() []Kind { return p.kinds }

func (p *Pool) entry(seq uint64) *entry { return &p.entries[seq%uint64(len(p.entries))] }

// Len is how many envelopes the pool has.
func (p *Pool) Len() int { return len(p.entries) }

// Kind is the index of the kind of send seq.
func (p *Pool) Kind(seq uint64) int { return p.entry(seq).kind }

// Elements is how many elements send seq carries.
func (p *Pool) Elements(seq uint64) int { return p.entry(seq).elements }

// Project is the project of send seq, drawn by Zipf from the seed and seq alone.
func (p *Pool) Project(seq uint64) int { return p.zipf.of(draw(p.seed, saltProject, seq)) }

// UserAgent is what the sender says in the HTTP head of send seq.
func (p *Pool) UserAgent(seq uint64) []byte { return p.entry(seq).agent }

// Encoding is the content encoding of all bodies, a name of [Encodings].
func (p *Pool) Encoding() string { return p.encoding.Name }

// Size is the length of the body that Append appends for seq, in bytes, encoded as it is.
func (p *Pool) Size(seq uint64) int { return len(p.entry(seq).body) }

// Append appends the body of send seq, due at due: a copy of an envelope of
// the pool with stamp, ids, key and time of sending patched in. It allocates only to grow dst.
//
// Of an encoded body the envelope header alone is written anew in each send:
// stamp, event id, key and time of sending. Ids that stand in a payload are those of the
// envelope's first send in all of its sends, in its header too; so is an event's
// own event_id, which Relay replaces by the header's.
func (p *Pool) Append(dst []byte, seq uint64, due int64) []byte {
	return p.entry(seq).fill(dst, Stamp{Seq: seq, Due: due}, saltID, p.seed, p.Project(seq), p.epoch+due/int64(time.Millisecond))
}

// AppendWarm appends the body of warm-up send number n, of any kind of the
// table by name (also one that is not in the mix), for a project; agent is the
// user agent for its HTTP head, always one that Relay's filters let through.
// Of a kind that the table lacks it appends nothing and gives no agent.
func (p *Pool) AppendWarm(dst []byte, n uint64, due int64, kind string, project int) (body, agent []byte) {
	e := p.warm[kind]
	if e == nil {
		return dst, nil
	}
	s := Stamp{Seq: n, Due: due, Warm: true}
	return e.fill(dst, s, saltWarm, p.seed, project, p.epoch+due/int64(time.Millisecond)), e.agent
}
