package store

import (
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// chunkSize bounds the records of a chunk. Inserting a name copies one chunk and the
// list of chunks, so the best value is near the square root of the size of a large
// collection.
const chunkSize = 256

// collection is the ordered list of a collection's records. Readers load the list of
// chunks and iterate over it without locks. The writer, which holds the DB's mutex,
// replaces what it changes.
type collection struct {
	path   string // full name, ".../documents/drones"
	chunks atomic.Pointer[[]chunk]
}

type chunk []*record

func newCollection(path string) *collection {
	c := &collection{path: path}
	c.chunks.Store(&[]chunk{})
	return c
}

// id is the collection id, the last segment of the path.
func (c *collection) id() string { return c.path[strings.LastIndexByte(c.path, '/')+1:] }

// all yields the records in name order, beginning with the first one that is not
// before start, or with the first if start is empty. It reports false if yield did.
func (c *collection) all(start string, yield func(*record) bool) bool {
	chunks := *c.chunks.Load()
	if start != "" {
		chunks = chunks[chunkFor(chunks, start):]
	}
	for _, ch := range chunks {
		for _, r := range ch {
			if start != "" && value.CompareNameStrings(r.name, start) < 0 {
				continue
			}
			if !yield(r) {
				return false
			}
		}
	}
	return true
}

// chunkFor returns the last chunk whose first name is not after name.
func chunkFor(chunks []chunk, name string) int {
	i := sort.Search(len(chunks), func(i int) bool {
		return value.CompareNameStrings(chunks[i][0].name, name) > 0
	})
	return max(i-1, 0)
}

func (c *collection) insert(r *record) {
	old := *c.chunks.Load()
	if len(old) == 0 {
		c.chunks.Store(&[]chunk{{r}})
		return
	}
	at := chunkFor(old, r.name)
	pos, found := position(old[at], r.name)
	if found {
		return
	}
	next := slices.Clone(old)
	grown := make(chunk, 0, len(old[at])+1)
	grown = append(append(append(grown, old[at][:pos]...), r), old[at][pos:]...)
	if len(grown) > chunkSize {
		// Inserting in ascending order, the usual case, leaves full chunks.
		half := len(grown) / 2
		if pos == len(old[at]) {
			half = len(grown) - 1
		}
		next[at] = grown[:half:half]
		next = slices.Insert(next, at+1, slices.Clone(grown[half:]))
	} else {
		next[at] = grown
	}
	c.chunks.Store(&next)
}

func (c *collection) remove(r *record) {
	old := *c.chunks.Load()
	if len(old) == 0 {
		return
	}
	at := chunkFor(old, r.name)
	pos, found := position(old[at], r.name)
	if !found {
		return
	}
	next := slices.Clone(old)
	if len(old[at]) == 1 {
		next = slices.Delete(next, at, at+1)
	} else {
		next[at] = append(slices.Clone(old[at][:pos]), old[at][pos+1:]...)
	}
	c.chunks.Store(&next)
}

func (c *collection) empty() bool { return len(*c.chunks.Load()) == 0 }

func position(ch chunk, name string) (int, bool) {
	return slices.BinarySearchFunc(ch, name, func(r *record, name string) int {
		return value.CompareNameStrings(r.name, name)
	})
}
