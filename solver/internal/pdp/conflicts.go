package pdp

// Conflicts tells which pairs of requests no route can hold together, in a fleet of
// identical vehicles. By the triangle inequality other requests only make a route later, so
// two requests that no order of their visits serves in time and within the capacity conflict
// in every route.
type Conflicts struct {
	words int // of one set
	with  Set // of each request, one set after the other
}

// NewConflicts compares all pairs of requests.
func NewConflicts(in *Instance) *Conflicts {
	c := &Conflicts{words: words(in.Requests)}
	c.with = make(Set, in.Requests*c.words)
	for a := range int32(in.Requests) {
		for b := range a {
			if !in.together(a, b) {
				c.With(a).Add(b)
				c.With(b).Add(a)
			}
		}
	}
	return c
}

// With returns the requests that conflict with one; it must not be changed.
func (c *Conflicts) With(request int32) Set {
	return c.with[int(request)*c.words:][:c.words]
}

// together reports whether one of identical vehicles can serve two requests.
func (in *Instance) together(a, b int32) bool {
	light := in.Demand[a]+in.Demand[b] <= in.Vehicles[0].Capacity+Tolerance
	da, db := Delivery(a), Delivery(b)
	for pa := a * Slots; pa < a*Slots+int32(in.Pickups[a]); pa++ {
		for pb := b * Slots; pb < b*Slots+int32(in.Pickups[b]); pb++ {
			if in.inTime(pa, da, pb, db) || in.inTime(pb, db, pa, da) ||
				light && (in.inTime(pa, pb, da, db) || in.inTime(pa, pb, db, da) || in.inTime(pb, pa, da, db) || in.inTime(pb, pa, db, da)) {
				return true
			}
		}
	}
	return false
}

// inTime reports whether one of identical vehicles can make the visits in this
// order.
func (in *Instance) inTime(visits ...int32) bool {
	veh := &in.Vehicles[0]
	at, clock := veh.Start, veh.Depart
	for _, v := range visits {
		clock = max(clock+veh.Pace*in.row(at)[in.Loc[v]], in.Early[v])
		if clock > in.Late[v]+Tolerance {
			return false
		}
		clock += in.Service[v]
		at = in.Loc[v]
	}
	return clock+veh.Pace*in.row(at)[veh.End] <= veh.Due+2*Tolerance
}
