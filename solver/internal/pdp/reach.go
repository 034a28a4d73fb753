package pdp

// Reach tells which vehicles could serve which requests, each request alone. By
// the triangle inequality nothing else is possible in any longer route.
type Reach struct {
	vehicles int
	pickups  []uint8 // requests x vehicles: pickup alternatives, one bit each
	words    int     // of one set of servers
	servers  Set     // of each request, one set after the other
}

// NewReach compares every request with every vehicle.
func NewReach(in *Instance) *Reach {
	n := len(in.Vehicles)
	reach := &Reach{vehicles: n, pickups: make([]uint8, in.Requests*n), words: words(n)}
	reach.servers = make(Set, in.Requests*reach.words)
	for r := range int32(in.Requests) {
		row := reach.pickups[int(r)*n:][:n]
		reach.fill(in, r, row)
		servers := reach.Servers(r)
		for v, pickups := range row {
			if pickups != 0 {
				servers.Add(int32(v))
			}
		}
	}
	return reach
}

// fill sets in row, for each vehicle, the pickups from which it could serve a
// request.
func (reach *Reach) fill(in *Instance, request int32, row []uint8) {
	vd := Delivery(request)
	toEnd := in.row(in.Loc[vd])
	for pickup := range int32(in.Pickups[request]) {
		vp := request*Slots + pickup
		toStart := in.row(in.Loc[vp])
		leg := toStart[in.Loc[vd]]
		for v := range in.Vehicles {
			veh := &in.Vehicles[v]
			approach, back := toStart[veh.Start], toEnd[veh.End]
			if in.Excludes(request, int32(v)) || in.Demand[request] > veh.Capacity+Tolerance || approach+leg+back > veh.MaxDistance+Tolerance {
				continue
			}
			clock := max(veh.Depart+veh.Pace*approach, in.Early[vp])
			if clock > in.Late[vp]+Tolerance {
				continue
			}
			clock = max(clock+in.Service[vp]+veh.Pace*leg, in.Early[vd])
			if clock <= in.Late[vd]+Tolerance && clock+in.Service[vd]+veh.Pace*back <= veh.Due+2*Tolerance {
				row[v] |= 1 << pickup
			}
		}
	}
}

// Pickups returns the pickup alternatives from which a vehicle could serve a
// request, one bit each.
func (reach *Reach) Pickups(request, vehicle int32) uint8 {
	return reach.pickups[int(request)*reach.vehicles+int(vehicle)]
}

// Servers returns the vehicles that could serve a request; it must not be
// changed.
func (reach *Reach) Servers(request int32) Set {
	return reach.servers[int(request)*reach.words:][:reach.words]
}
