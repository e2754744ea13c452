package store

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// IDs are the newest ids of reports that begin so, at most so many, newest first.
func (db *DB) IDs(beginning string, most int) (ids []string, err error) {
	err = db.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(reportsBucket).Cursor()
		id, _ := c.Last()
		if beginning != "" {
			// "~" sorts after all that an id is made of.
			if k, _ := c.Seek([]byte(beginning + "~")); k != nil {
				id, _ = c.Prev()
			} else {
				id, _ = c.Last()
			}
		}
		for ; len(ids) < most && id != nil && bytes.HasPrefix(id, []byte(beginning)); id, _ = c.Prev() {
			ids = append(ids, string(id))
		}
		return nil
	})
	return ids, err
}

// newestValues is in how many of the newest reports the values of an occasion are looked for.
const newestValues = 1000

// Values are the values that a variable has, in its order, at most so many: a
// condition's in all reports that were ever kept, an occasion's in the newest
// ones. There are none while the index is not up to date: it is not made anew for this.
func (db *DB) Values(name string, most int) (values []string, err error) {
	v, ok := FindVariable(name)
	if !ok {
		return nil, nil
	}
	found := map[string]bool{}
	err = db.view(func(tx *bbolt.Tx) error {
		if whole, _ := indexing(tx); !whole {
			return nil
		}
		if v.Role != Occasion {
			return eachCell(tx, func(of packedCell) {
				if value, ok := of.get(name); ok && len(found) < most && !found[string(value)] {
					found[string(value)] = true
				}
			})
		}
		c := tx.Bucket(indexBucket).Cursor()
		kept := make([]byte, 0, keptBytes)
		n := 0
		for id, packed := c.Last(); id != nil && n < newestValues && len(found) < most; id, packed = c.Prev() {
			n++
			var e Entry
			if _, ok := cellOf(packed); !ok {
				continue
			}
			if _, err := e.unpack(id, packed, &cell{}, kept); err != nil {
				return err
			}
			if value, ok := e.Var(name); ok {
				found[value] = true
			}
		}
		return nil
	})
	values = slices.Collect(maps.Keys(found))
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(v.Compare(a, b), cmp.Compare(a, b)) })
	return values, err
}

// SettingNames are the config keys that reports have beside the variables of the table, sorted.
func (db *DB) SettingNames() (names []string, err error) {
	found := map[string]bool{}
	err = db.view(func(tx *bbolt.Tx) error {
		if whole, _ := indexing(tx); !whole {
			return nil
		}
		return eachCell(tx, func(of packedCell) {
			of.extra(func(name, _ []byte) {
				if !found[string(name)] {
					found[string(name)] = true
				}
			})
		})
	})
	return slices.Sorted(maps.Keys(found)), err
}

// packedCell is a cell as it is stored, of which little is wanted.
type packedCell []byte

func eachCell(tx *bbolt.Tx, do func(packedCell)) error {
	return tx.Bucket(cellsBucket).ForEach(func(_, packed []byte) error {
		do(packed)
		return nil
	})
}

// get is the value of a condition, which is not to be kept.
func (p packedCell) get(name string) (value []byte, ok bool) {
	if i, is := conditions.number[name]; is {
		u := unpack(p)
		for range i {
			u.bytes()
		}
		value = u.bytes()
		return value, len(value) > 0
	}
	p.extra(func(n, v []byte) {
		if string(n) == name {
			value, ok = v, true
		}
	})
	return value, ok
}

// extra hears of what is in no table.
func (p packedCell) extra(do func(name, value []byte)) {
	u := unpack(p)
	for range conditions.at {
		u.bytes()
	}
	for len(u.left) > 0 && !u.bad {
		name, value := u.bytes(), u.bytes()
		do(name, value)
	}
}
