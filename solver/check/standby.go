package check

import (
	"maps"
	"time"

	"github.com/dronefleet/dronefleet/solver/model"
)

// standby flies a mission without orders: there and home with the charge it must keep, even
// if it gains none on the way.
func (r *replay) standby(s model.Standby) {
	id := s.DroneID
	drone, ready, homebound, known := r.free(id)
	switch {
	case !known:
		r.violation("drone", id, "", "is not free for a mission without orders")
		return
	case r.flown[id]:
		r.violation("drone", id, "", "has two routes")
	case !drone.SupportsStandby:
		r.violation("standby", id, "", "takes no mission without orders")
	}
	r.flown[id] = true
	if was := r.standbyMissions[id]; s.MissionID != was.MissionID || s.Revision != was.Revision {
		r.violation("revision", id, "", "amends revision %d of %q, flies %d of %q", s.Revision, s.MissionID, was.Revision, was.MissionID)
	}
	stops := s.Stops
	if begins := len(stops) > 0 && stops[0].Kind == model.DepotStart; begins != (s.MissionID == "" && !homebound) {
		r.violation("ends", id, "", "a new mission of a drone on the ground starts with DEPOT_START, and no other does")
		return
	} else if begins && !same(stops[0].At, drone.At) {
		r.violation("ends", id, "", "does not start at the drone's position")
	}
	if n := len(stops); n < 2 || stops[n-1].Kind != model.DepotReturn || len(duties(stops)) == 0 {
		r.violation("ends", id, "", "has no stop to charge or wait at before the DEPOT_RETURN")
		return
	}
	r.flyStandby(drone, ready, s.Route)
	last := stops[len(stops)-1].At
	home, ok := r.depots[drone.HomeDepotID]
	if r.depotAt(last) == "" || drone.HomeDepotID != "" && !(ok && same(last, home.At)) {
		r.violation("ends", id, "", "does not end at its depot")
	}
}

// duties are the stops at which a drone charges or waits.
func duties(stops []model.Stop) (list []model.Stop) {
	for _, s := range stops {
		if s.Kind == model.Charge || s.Kind == model.Wait {
			list = append(list, s)
		}
	}
	return list
}

// free is a drone that could serve orders, when it can leave, and whether it is on its way
// home.
func (r *replay) free(id string) (drone model.Drone, ready time.Time, homebound, known bool) {
	if drone, known = r.drones[id]; known {
		return drone, r.problem.Now, false, true
	}
	f, known := r.flights[id]
	return f.Drone, r.inFlightNow(f).now, true, known && len(f.Orders) == 0 && len(f.Stops) == 1
}

// flyStandby flies the stops from raw coordinates.
func (r *replay) flyStandby(drone model.Drone, now time.Time, route model.Route) {
	at, battery := drone.At, drone.BatteryPercent
	km, flying := 0.0, time.Duration(0)
	for i, stop := range route.Stops {
		leg := haversineKm(at, stop.At)
		took := time.Duration(leg / drone.Speed() * float64(time.Hour))
		km, at = km+leg, stop.At
		now, flying, battery = now.Add(took), flying+took, battery-leg*drone.ConsumptionWith(0)
		r.stored(route, i, now, km, battery)
		switch stop.Kind {
		case model.Charge:
			if r.depotAt(stop.At) == "" || !(stop.ChargeToPercent > 0 && stop.ChargeToPercent <= 100) {
				r.violation("charge", drone.ID, "", "stop %d charges to %v %% away from a depot, or to no charge", i, stop.ChargeToPercent)
			}
			if more := stop.ChargeToPercent - battery; more > 0 {
				now = now.Add(time.Duration(more / drone.ChargePerMinute() * float64(time.Minute)))
				battery = stop.ChargeToPercent
			}
		case model.Wait:
			if stop.Until.Before(now) || stop.Until.Sub(r.problem.Now) > model.MaxWait {
				r.violation("wait", drone.ID, "", "stop %d waits until %s: before it arrives, or for over %s", i, stop.Until, model.MaxWait)
			}
			now = stop.Until
		case model.WarehousePickup, model.Delivery:
			r.violation("ends", drone.ID, stop.OrderID, "stop %d serves an order", i)
		case model.DepotStart, model.DepotReturn:
		}
	}
	if drone.MaxFlight > 0 && flying-timeTolerance > drone.MaxFlight {
		r.violation("flight", drone.ID, "", "flies for %s, at most %s", flying, drone.MaxFlight)
	}
	drone.MaxFlight = 0
	r.landing(route, drone, km, km*drone.ConsumptionWith(0), now.Sub(r.problem.Now))
}

// depotAt is the depot at a place; "" if there is none.
func (r *replay) depotAt(at model.Location) string {
	for _, d := range r.problem.Depots {
		if same(at, d.At) {
			return d.ID
		}
	}
	return ""
}

// slots checks that no depot is to charge more drones than it has slots: those of the plan,
// those whose mission stays as it is, and those without a mission.
func (r *replay) slots(plan model.Plan) {
	taken := map[string]int{}
	count := func(stops []model.Stop) {
		for _, s := range stops {
			if s.Kind == model.Charge {
				taken[r.depotAt(s.At)]++
			}
		}
	}
	for _, s := range plan.Standby {
		count(s.Stops)
	}
	planned := maps.Clone(taken)
	for _, s := range r.problem.StandbyMissions {
		if !r.flown[s.DroneID] {
			count(s.Stops)
		}
	}
	for _, d := range r.problem.Depots {
		if n := taken[d.ID] + d.SlotsTaken; d.ChargingSlots > 0 && planned[d.ID] > 0 && n > d.ChargingSlots {
			r.violation("slots", "", "", "depot %s: %d drones charge in %d slots", d.ID, n, d.ChargingSlots)
		}
	}
}
