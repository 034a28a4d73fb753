package search

// clashes are, for every request of a fleet of equal vehicles, the others with which it
// can be in no route, and for every route what it serves. Most insertions that fail
// where windows are narrow do so for one request alone; they need not be evaluated.
type clashes struct {
	words int    // of one set
	with  bitset // requests, a set after the other
	serve bitset // routes, a set after the other
	as    []uint32
}

// findClashes compares all requests. By the triangle inequality whatever else a route
// serves makes it only later; so two that no order of their visits brings in time, or
// within the capacity, are in no route.
func (st *state) findClashes() {
	in, words := st.in, len(newBitset(st.in.Requests))
	st.clashes = clashes{words, make(bitset, in.Requests*words), make(bitset, len(st.size)*words), make([]uint32, len(st.size))}
	for a := range int32(in.Requests) {
		for b := range a {
			if !in.together(a, b) {
				st.clashesOf(a).add(b)
				st.clashesOf(b).add(a)
			}
		}
	}
}

// clashesOf is the set of requests that can be in no route with r.
func (st *state) clashesOf(r int32) bitset {
	return st.clashes.with[int(r)*st.clashes.words:][:st.clashes.words]
}

// clash tells whether route ro serves a request with which r can be in no route.
func (st *state) clash(r, ro int32) bool {
	return st.in.Uniform && st.clashesOf(r).meets(st.served(ro))
}

// served is the set of requests that a route serves.
func (st *state) served(ro int32) bitset {
	c := &st.clashes
	set := c.serve[int(ro)*c.words:][:c.words]
	if c.as[ro] == st.version[ro] {
		return set
	}
	c.as[ro] = st.version[ro]
	clear(set)
	nodes := st.route(ro)
	for i := 1; i < len(nodes)-1; i++ {
		set.add(nodes[i].visit / Slots)
	}
	return set
}

// together tells whether one vehicle of a fleet of equals can serve two requests.
func (in *Instance) together(a, b int32) bool {
	light := in.Demand[a]+in.Demand[b] <= in.Vehicles[0].Capacity+Slack
	da, db := a*Slots+DeliverySlot, b*Slots+DeliverySlot
	for pa := a * Slots; pa < a*Slots+int32(in.Alts[a]); pa++ {
		for pb := b * Slots; pb < b*Slots+int32(in.Alts[b]); pb++ {
			if in.inTime(pa, da, pb, db) || in.inTime(pb, db, pa, da) ||
				light && (in.inTime(pa, pb, da, db) || in.inTime(pa, pb, db, da) || in.inTime(pb, pa, da, db) || in.inTime(pb, pa, db, da)) {
				return true
			}
		}
	}
	return false
}

// inTime tells whether a vehicle of a fleet of equals can make the visits in this
// order.
func (in *Instance) inTime(visits ...int32) bool {
	veh := &in.Vehicles[0]
	at, clock := veh.Start, veh.Depart
	for _, v := range visits {
		clock = max(clock+veh.Pace*in.row(at)[in.Loc[v]], in.Early[v])
		if clock > in.Late[v]+Slack {
			return false
		}
		clock += in.Service[v]
		at = in.Loc[v]
	}
	return clock+veh.Pace*in.row(at)[veh.End] <= veh.Due+2*Slack
}
