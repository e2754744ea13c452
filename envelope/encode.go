package envelope

import (
	"bytes"
	"fmt"
)

// encode encodes all envelopes of the pool, which have their places in the sends from now on.
func (p *Pool) encode() error {
	if p.encoding.Name == Identity {
		return nil
	}
	for i := range p.entries {
		e := &p.entries[i]
		if err := e.encode(p.encoding, saltID, p.seed, uint64(i)); err != nil {
			return fmt.Errorf("%s: %w", p.kinds[e.kind].Name, err)
		}
	}
	for name, e := range p.warm {
		if err := e.encode(p.encoding, saltWarm, p.seed, 0); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// encode encodes an envelope. What is patched in its items, it has from now on
// as of send seq; the header is patched on.
func (e *entry) encode(enc *Encoding, salt, seed, seq uint64) error {
	head := bytes.IndexByte(e.body, '\n') + 1
	if head == 0 {
		head = len(e.body)
	}
	var anew, fixed []patch
	for _, p := range e.patches {
		in := p
		in.at = nil
		for _, at := range p.at {
			if int(at) < head {
				in.at = append(in.at, at)
			}
		}
		switch {
		case len(in.at) == len(p.at):
			anew = append(anew, p)
		case !p.isID():
			return fmt.Errorf("%s stands in an item: such an envelope cannot be sent encoded", placeNames[p.sort])
		default:
			fixed = append(fixed, p)
			if p.slot == 0 && len(in.at) > 0 {
				anew = append(anew, in)
			}
		}
	}
	e.patches = fixed
	e.body = e.fill(nil, Stamp{Seq: seq}, salt, seed, 0, 0)
	s, err := enc.seal(e.body[:head], e.body[head:])
	if err != nil {
		return err
	}
	for i := range anew {
		at := make([]int32, len(anew[i].at))
		for j := range at {
			at[j] = anew[i].at[j] + int32(s.at)
		}
		anew[i].at = at
	}
	e.body, e.patches, e.mend = s.body, anew, s.mend
	return nil
}
