package search

// bitset is a set of small numbers, of vehicles or requests, one bit each.
type bitset []uint64

// newBitset returns an empty set of numbers below n.
func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (s bitset) add(v int32)      { s[v>>6] |= 1 << (v & 63) }
func (s bitset) drop(v int32)     { s[v>>6] &^= 1 << (v & 63) }
func (s bitset) has(v int32) bool { return s[v>>6]>>(v&63)&1 != 0 }

// meets tells whether two sets of one size have something in common.
func (s bitset) meets(t bitset) bool {
	for i, x := range s {
		if x&t[i] != 0 {
			return true
		}
	}
	return false
}
