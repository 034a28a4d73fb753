package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// Used is the number of routes that serve something.
func (cur *Current) Used() int { return cur.routes.used }

// LimitRoutes bounds the number of routes that may be in use from now on.
func (cur *Current) LimitRoutes(n int) { cur.routes.limit = n }

// Bank lists the requests in no route; it must not be changed, and is valid until
// the solution changes.
func (cur *Current) Bank() []int32 { return cur.bank.requests }

// InBank reports whether a request is in no route.
func (cur *Current) InBank(r int32) bool { return cur.bank.has(r) }

// VisitCount is the number of visits of a route.
func (cur *Current) VisitCount(ro int32) int { return int(cur.routes.size[ro]) - 2 }

// AppendRequests appends the requests of a route to a slice, in the order of
// their pickups.
func (cur *Current) AppendRequests(requests []int32, ro int32) []int32 {
	positions := cur.routes.of(ro)
	for i := 1; i < len(positions)-1; i++ {
		if v := positions[i].Visit; !pdp.IsDelivery(v) {
			requests = append(requests, pdp.Request(v))
		}
	}
	return requests
}

// MoveToBank moves requests of one route into the bank.
func (cur *Current) MoveToBank(ro int32, requests []int32) {
	cur.begin()
	cur.expel(ro, requests)
	cur.commit()
}

// expel is MoveToBank within a step.
func (cur *Current) expel(ro int32, requests []int32) {
	for _, r := range requests {
		cur.unroute(r)
		cur.toBank(r)
	}
	cur.compact(ro)
}
