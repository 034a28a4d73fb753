package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// bank is the request bank (Ropke and Pisinger 2006): the requests that are in
// no route.
type bank struct {
	in       *pdp.Instance
	requests []int32
	at       []int32 // index in requests, -1 when routed
	absences []int64 // steps that left a request out while absences were counted
}

func newBank(in *pdp.Instance) bank {
	b := bank{in: in, requests: make([]int32, 0, in.Requests), at: make([]int32, in.Requests), absences: make([]int64, in.Requests)}
	for r := range b.at {
		b.at[r] = -1
	}
	return b
}

func (b *bank) has(r int32) bool { return b.at[r] >= 0 }

// add puts a request into the bank and reports whether it was not there.
func (b *bank) add(r int32) bool {
	if b.at[r] >= 0 {
		return false
	}
	b.at[r] = int32(len(b.requests))
	b.requests = append(b.requests, r)
	return true
}

// remove takes a request out of the bank and reports whether it was there.
func (b *bank) remove(r int32) bool {
	i := b.at[r]
	if i < 0 {
		return false
	}
	last := b.requests[len(b.requests)-1]
	b.requests[i] = last
	b.at[last] = i
	b.requests = b.requests[:len(b.requests)-1]
	b.at[r] = -1
	return true
}
