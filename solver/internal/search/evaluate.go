package search

// evaluate tries every pair of positions and every pickup alternative, O(1)
// each. For a pickup after position i the time is carried forward over the
// delivery positions j >= i; the search in j ends at the first position that
// would be reached too late or too heavy, which all later ones would be too.
// By the triangle inequality the pickup's own detour bounds the pair's.
func (st *state) evaluate(r, ro int32) (float64, uint32) {
	n := int(st.size[ro])
	if n+2 > st.stride {
		return inf, 0
	}
	base := int(ro) * st.stride
	used := st.dist[ro]
	if n == 2 {
		used = st.nodes[base].next
	}
	return st.in.cheapestPair(st.nodes[base:base+n:base+n], &st.in.Vehicles[ro], used, r)
}

// cheapestPair is evaluate on bare positions whose legs sum to used.
func (in *Instance) cheapestPair(nodes []node, veh *Vehicle, used float64, r int32) (float64, uint32) {
	n := len(nodes)
	pace := veh.Pace
	room := veh.Capacity + Slack - in.Demand[r]
	if room < 0 {
		return inf, 0
	}
	best := veh.MaxDist - used
	place := uint32(0)
	found := false

	vd := int(r)*Slots + DeliverySlot
	rowD := in.Dist[int(in.Loc[vd])*in.N : int(in.Loc[vd])*in.N+in.N]
	earlyD, lateD, svcD := in.Early[vd], in.Late[vd]+Slack, in.Service[vd]
	locD := in.Loc[vd]

	for alt := 0; alt < int(in.Alts[r]); alt++ {
		vp := int(r)*Slots + alt
		rowP := in.Dist[int(in.Loc[vp])*in.N : int(in.Loc[vp])*in.N+in.N]
		earlyP, lateP, svcP := in.Early[vp], in.Late[vp]+Slack, in.Service[vp]
		direct := rowP[locD]
		for i := 0; i < n-1; i++ {
			a := &nodes[i]
			ap := rowP[a.loc]
			tp := a.depart + pace*ap
			if tp > lateP {
				break
			}
			if a.load > room {
				continue
			}
			tp = max(tp, earlyP) + svcP
			b := &nodes[i+1]
			bd := rowD[b.loc]
			base := ap - a.next
			if c := base + direct + bd; c < best {
				td := tp + pace*direct
				if td <= lateD && max(td, earlyD)+svcD+pace*bd <= b.latest {
					best, place, found = c, packPlace(i, i, alt), true
				}
			}
			bp := rowP[b.loc]
			base += bp
			if base >= best {
				continue
			}
			t := tp + pace*bp
			jd := bd
			for j := i + 1; j < n-1; j++ {
				cur := &nodes[j]
				if t > cur.latest || cur.load > room {
					break
				}
				t = max(t, cur.early) + cur.svc
				td := t + pace*jd
				if td > lateD {
					break
				}
				m := &nodes[j+1]
				dn := rowD[m.loc]
				if c := base + jd + dn - cur.next; c < best {
					if max(td, earlyD)+svcD+pace*dn <= m.latest {
						best, place, found = c, packPlace(i, j, alt), true
					}
				}
				t += pace * cur.next
				jd = dn
			}
		}
	}
	if !found {
		return inf, 0
	}
	if n == 2 {
		best += used // an empty route is not driven: its first request pays for all of it
	}
	return best, place
}
