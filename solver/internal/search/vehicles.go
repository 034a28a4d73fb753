package search

// vehicles is a set of vehicles, one bit each.
type vehicles []uint64

// newVehicles returns an empty set of n vehicles at most.
func newVehicles(n int) vehicles { return make(vehicles, (n+63)/64) }

func (s vehicles) add(v int32)      { s[v>>6] |= 1 << (v & 63) }
func (s vehicles) drop(v int32)     { s[v>>6] &^= 1 << (v & 63) }
func (s vehicles) has(v int32) bool { return s[v>>6]>>(v&63)&1 != 0 }
