package pdp

// Set is a set of small numbers, of vehicles or requests, one bit each.
type Set []uint64

// NewSet returns an empty set of numbers below n.
func NewSet(n int) Set { return make(Set, words(n)) }

// words is the length of a set of numbers below n.
func words(n int) int { return (n + 63) / 64 }

// Add adds a number.
func (s Set) Add(v int32) { s[v>>6] |= 1 << (v & 63) }

// Remove removes a number.
func (s Set) Remove(v int32) { s[v>>6] &^= 1 << (v & 63) }

// Has reports whether a number is in the set.
func (s Set) Has(v int32) bool { return s[v>>6]>>(v&63)&1 != 0 }

// Intersects reports whether two sets of one size have a number in common.
func (s Set) Intersects(t Set) bool {
	for i, x := range s {
		if x&t[i] != 0 {
			return true
		}
	}
	return false
}
