package pubsubemu

// timerHeap orders entries by due time: leases to expire and delays to end.
// It is a four-ary min-heap that keeps the positions in the entries, so that an ack
// removes its lease without a search. Due times mostly arrive in rising order, which
// takes one comparison.
type timerHeap struct{ entries []*entry }

const heapArity = 4

// first returns the entry due next, or nil.
func (h *timerHeap) first() *entry {
	if len(h.entries) == 0 {
		return nil
	}
	return h.entries[0]
}

// set puts e into the heap, or moves it, with a new due time.
func (h *timerHeap) set(e *entry, due int64) {
	if e.timer < 0 {
		e.due = due
		e.timer = int32(len(h.entries))
		h.entries = append(h.entries, e)
		h.up(int(e.timer))
		return
	}
	later := due > e.due
	e.due = due
	if later {
		h.down(int(e.timer))
	} else {
		h.up(int(e.timer))
	}
}

// drop removes e if it is in the heap.
func (h *timerHeap) drop(e *entry) {
	if e.timer < 0 {
		return
	}
	at, last := int(e.timer), len(h.entries)-1
	moved := h.entries[last]
	h.entries[last] = nil
	h.entries = h.entries[:last]
	e.timer = -1
	if at == last {
		h.shrink()
		return
	}
	h.entries[at] = moved
	moved.timer = int32(at)
	h.down(at)
	h.up(int(moved.timer))
	h.shrink()
}

// shrink frees memory once the heap is mostly empty.
func (h *timerHeap) shrink() {
	if c := cap(h.entries); c > 1024 && len(h.entries) < c/4 {
		h.entries = append(make([]*entry, 0, c/2), h.entries...)
	}
}

func (h *timerHeap) up(i int) {
	e := h.entries[i]
	for i > 0 {
		parent := (i - 1) / heapArity
		if h.entries[parent].due <= e.due {
			break
		}
		h.entries[i] = h.entries[parent]
		h.entries[i].timer = int32(i)
		i = parent
	}
	h.entries[i] = e
	e.timer = int32(i)
}

func (h *timerHeap) down(i int) {
	e := h.entries[i]
	for {
		least, first := -1, i*heapArity+1
		for child := first; child < first+heapArity && child < len(h.entries); child++ {
			if least < 0 || h.entries[child].due < h.entries[least].due {
				least = child
			}
		}
		if least < 0 || h.entries[least].due >= e.due {
			break
		}
		h.entries[i] = h.entries[least]
		h.entries[i].timer = int32(i)
		i = least
	}
	h.entries[i] = e
	e.timer = int32(i)
}
