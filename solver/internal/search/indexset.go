package search

// indexSet is a set of small numbers that can be listed in the order in which
// they were added.
type indexSet struct {
	list []int32
	has  []bool
}

// newIndexSet returns an empty set of numbers below n.
func newIndexSet(n int) indexSet {
	return indexSet{list: make([]int32, 0, n), has: make([]bool, n)}
}

// add adds a number and reports whether it is new.
func (s *indexSet) add(x int32) bool {
	if s.has[x] {
		return false
	}
	s.has[x] = true
	s.list = append(s.list, x)
	return true
}

// clear removes all numbers that are in the list.
func (s *indexSet) clear() {
	for _, x := range s.list {
		s.has[x] = false
	}
	s.list = s.list[:0]
}
