package explore

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Result summarises an exploration.
type Result struct {
	World  string
	States int // different ones
	Steps  int // taken, to known states, too
	Depth  int // every history of so many steps was followed
	Whole  bool
	Ends   int      // states from which the fair end was judged
	Calls  int      // distinct calls of policies
	Seen   []string // outcomes of missions, orders and decisions
	Took   time.Duration

	// Violation is the first invariant that does not hold, nil for none, and Story
	// tells the shortest history that breaks it.
	Violation *Violation
	Story     Story
}

func (r Result) String() string {
	extent := fmt.Sprintf("every history of %d steps", r.Depth)
	if r.Whole {
		extent = fmt.Sprintf("every history, the longest way to a state has %d steps", r.Depth)
	}
	return fmt.Sprintf("%-12s %9d states, %9d steps, %7d ends, %7d policy calls; %s; %.1f s, %.0f states/s",
		r.World, r.States, r.Steps, r.Ends, r.Calls, extent, r.Took.Seconds(), float64(r.States)/r.Took.Seconds())
}

// Explore follows every history of a world, breadth first, until there are no more
// states or an invariant breaks. Once it has seen more than limit states it begins no
// longer histories.
func Explore(w World, r Rules, limit int) Result {
	began := time.Now()
	m := newModel(w, r)
	x := explorer{model: m, seen: newFingerprints()}
	result := x.run(limit)
	result.World, result.Calls, result.Took = w.Name, len(m.answers), time.Since(began)
	result.Seen = m.outcomes()
	return result
}

// outcomes lists the outcomes of missions, orders, decisions and messages in all states.
func (m *model) outcomes() []string {
	seen := map[string]bool{}
	for _, x := range m.missions.values[1:] {
		seen[fmt.Sprintf("mission %s %s", x.Status, x.FailureReason)] = true
	}
	for _, o := range m.orders.values[1:] {
		seen[fmt.Sprintf("order %s, held %t", o.Status, o.Held)] = true
	}
	for _, e := range m.entries.values[1:] {
		seen[fmt.Sprintf("decision %s %s", e.Outcome, e.Reason)] = true
	}
	for _, d := range m.drones.values[1:] {
		seen[fmt.Sprintf("drone %s", d.Status)] = true
		if d.GhostMissionID != "" {
			seen["ghost"] = true
		}
	}
	for _, a := range m.answers {
		if a.refused != "" {
			seen["refused "+string(a.refused)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

type explorer struct {
	*model
	seen *fingerprints
	// How each state was reached: from which, by what.
	from []uint32
	by   []action

	result Result
}

func (x *explorer) run(limit int) Result {
	initial := x.initial()
	x.seen.add(initial.fingerprint())
	x.from, x.by = append(x.from, 0), append(x.by, action{})
	level, first := []state{initial}, 0 // first is the number of the level's first state
	var list []action
	var next []state
	for depth := 0; ; depth++ {
		x.result.States, x.result.Depth = len(x.from), depth
		if len(level) == 0 {
			x.result.Whole, x.result.Depth = true, depth-1
			return x.result
		}
		if len(x.from) > limit {
			return x.result
		}
		next = slices.Grow(next[:0], len(level)+len(level)/2)
		nextFirst := len(x.from)
		for i := range level {
			s := &level[i]
			list = x.enabled(s, list[:0])
			for _, a := range list {
				x.result.Steps++
				after, v := x.do(*s, a)
				if v == nil && !x.seen.add(after.fingerprint()) {
					continue
				}
				x.from, x.by = append(x.from, uint32(first+i)), append(x.by, a)
				n := len(x.from) - 1
				var ending []action
				if v == nil && after.atRest() {
					x.result.Ends++
					ending, v = x.fairEnd(after)
				}
				if v != nil {
					x.result.States, x.result.Depth = len(x.from), depth+1
					x.result.Violation, x.result.Story = v, x.tell(x.history(n), ending)
					return x.result
				}
				if len(x.from) <= limit || len(next) == 0 { // else the next level is not begun
					next = append(next, after)
				}
			}
		}
		level, next, first = next, level, nextFirst
	}
}

// history is the steps that lead to the nth state.
func (x *explorer) history(n int) (steps []action) {
	for ; n > 0; n = int(x.from[n]) {
		steps = append(steps, x.by[n])
	}
	slices.Reverse(steps)
	return steps
}

// fingerprints is a set of 64-bit hashes: an open-addressed table, at most two thirds
// full.
type fingerprints struct {
	slots []uint64
	count int
}

func newFingerprints() *fingerprints { return &fingerprints{slots: make([]uint64, 1<<16)} }

// add reports whether f is new.
func (t *fingerprints) add(f uint64) bool {
	if f == 0 {
		f = 1
	}
	if t.count*3 > len(t.slots)*2 {
		old := t.slots
		t.slots = make([]uint64, 2*len(old))
		for _, g := range old {
			if g != 0 {
				t.slots[t.slot(g)] = g
			}
		}
	}
	i := t.slot(f)
	if t.slots[i] == f {
		return false
	}
	t.slots[i] = f
	t.count++
	return true
}

// place returns the index of f, or where it would be inserted.
func (t *fingerprints) slot(f uint64) uint64 {
	mask := uint64(len(t.slots) - 1)
	i := f & mask
	for t.slots[i] != 0 && t.slots[i] != f {
		i = (i + 1) & mask
	}
	return i
}
