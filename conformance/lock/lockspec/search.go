package lockspec

import (
	"fmt"
	"hash/maphash"
	"slices"
	"time"
)

// World is a small world: its bounds, its clocks and what is wrong in it. Times are in
// ticks.
type World struct {
	Name       string
	Time       Authority
	Broken     Defect
	TTL        int8
	Extensions []int8 // lengths that holders ask for
	Tolerance  int8
	Bound      int8          // by how much the clients' clocks differ at most; of ClientTime
	Offsets    [clients]int8 // of the clients' clocks
	Jump       int8          // by how much a clock may be set
	Until      int8          // when time ends
	Budget     budget
}

// Result summarises a search.
type Result struct {
	World  string
	States int
	Steps  int
	Depth  int  // every history of this many steps was followed, or the steps of Story
	Whole  bool // there are no longer histories
	Took   time.Duration

	// Violation is the first property that does not hold, nil for none, and Story the
	// shortest history that breaks it.
	Violation *Violation
	Story     Story
}

func (r Result) String() string {
	extent := fmt.Sprintf("every history of %d steps", r.Depth)
	switch {
	case r.Violation != nil:
		extent = fmt.Sprintf("a violation after %d steps", r.Depth)
	case r.Whole:
		extent = fmt.Sprintf("every history, %d steps at most", r.Depth)
	}
	return fmt.Sprintf("%-44s %8d states, %9d steps; %s; %.1f s", r.World, r.States, r.Steps, extent, r.Took.Seconds())
}

// Explore follows every history of a world, breadth first, until no states are left or a
// property does not hold. After limit states it begins no longer histories.
func Explore(w World, limit int) Result {
	began := time.Now()
	m := newModel(w)
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{}
	isNew := func(s state) bool {
		n := len(seen)
		seen[maphash.Comparable(seed, s)] = struct{}{}
		return len(seen) > n
	}
	// How each state was reached: from which, by what.
	from, by := []uint32{0}, []action{{}}
	result := Result{World: w.Name}
	level, first := []state{m.initial()}, 0 // first is the number of the level's first state
	isNew(level[0])
	var list []action
	for ; len(level) > 0 && len(from) <= limit; result.Depth++ {
		var next []state
		nextFirst := len(from)
		for i := range level {
			list = m.enabled(&level[i], list[:0])
			for _, a := range list {
				result.Steps++
				after, v := m.do(level[i], a)
				if v == nil && !isNew(after) {
					continue
				}
				from, by = append(from, uint32(first+i)), append(by, a)
				if v != nil {
					result.Violation, result.Story = v, m.tell(history(from, by))
					result.States, result.Depth, result.Took = len(from), len(result.Story), time.Since(began)
					return result
				}
				next = append(next, after)
			}
		}
		level, first = next, nextFirst
	}
	if result.Whole = len(level) == 0; result.Whole {
		result.Depth--
	}
	result.States, result.Took = len(from), time.Since(began)
	return result
}

// history is the steps that lead to the last state.
func history(from []uint32, by []action) (steps []action) {
	for n := len(from) - 1; n > 0; n = int(from[n]) {
		steps = append(steps, by[n])
	}
	slices.Reverse(steps)
	return steps
}
