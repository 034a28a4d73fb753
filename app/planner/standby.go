package planner

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

const (
	// standbyWait is how long a drone waits at an advance position, unless an order or a renewal comes.
	standbyWait = 15 * time.Minute
	// renewBefore is how long before its wait ends a drone that is still needed is told to
	// wait on.
	renewBefore = 3 * time.Minute
	// maxSent is how many drones one cycle sends to advance positions: the next cycle knows more.
	maxSent = 4
	// sparePercent is the charge that a drone sent to an advance position has beyond what is enough
	// there, so that it is not soon called home.
	sparePercent = 5
	// samePointMetres is how near two positions are the same.
	samePointMetres = 10
	// fullPercent is the least level to which a drone is told to charge.
	fullPercent = 90
)

// standby decides what drones without orders do: wait where CRITICAL orders are expected, charge,
// or continue.
type standby struct {
	directFlights
	advance  []advancePosition
	missions map[string]*solver.StandbyMission
	slots    map[string]int // free, by depot; none if no limit is known
	list     []solver.Standby
}

// reserveDrone is a drone that can be sent to an advance position.
type reserveDrone struct {
	drone     solver.Drone
	ready     time.Time
	homebound bool
}

// standby lists the standby missions that begin or change. It avoids churn: a drone that waits
// where it is needed stays, and one that is no longer needed comes home when its wait is over.
func (p *Planner) standby(r Result) []solver.Standby {
	if p.demand.typical.ID == "" {
		return nil // nothing is known yet
	}
	usable, plan := r.Usable(), r.Plan
	f := newDirectFlights(&usable)
	s := &standby{directFlights: f, advance: p.demand.advancePositions(f), missions: standbyByDrone(&usable), slots: freeSlots(&usable)}
	serves := map[string]bool{}
	for _, r := range plan.Routes {
		serves[r.DroneID] = true
	}
	for _, a := range plan.Amendments {
		serves[a.DroneID] = true
	}
	var free []reserveDrone
	for _, d := range usable.Drones {
		if serves[d.ID] || !d.SupportsStandby {
			continue
		}
		if !s.stays(&d) {
			free = append(free, reserveDrone{d, usable.Now, false})
		}
	}
	for i := range usable.Flights {
		g := &usable.Flights[i]
		if len(g.Stops) == 1 && g.Drone.SupportsStandby && !serves[g.Drone.ID] {
			free = append(free, reserveDrone{g.Drone, later(g.Ready, usable.Now), true})
		}
	}
	s.fill(free)
	return s.list
}

func standbyByDrone(p *solver.Problem) map[string]*solver.StandbyMission {
	byDrone := make(map[string]*solver.StandbyMission, len(p.StandbyMissions))
	for i := range p.StandbyMissions {
		byDrone[p.StandbyMissions[i].DroneID] = &p.StandbyMissions[i]
	}
	return byDrone
}

// stays reports whether a drone waits at an advance position or flies to one, and decides what
// such a drone does next. It is called home to charge when it could serve less than half of the
// orders to come, and waits on while it is needed.
func (s *standby) stays(d *solver.Drone) bool {
	current := s.missions[d.ID]
	if current == nil || current.Stops[0].Kind != solver.Wait {
		return false
	}
	at := current.Stops[0]
	k := slices.IndexFunc(s.advance, func(p advancePosition) bool { return metres(p.at, at.At) < samePointMetres })
	if k < 0 {
		return true // its warehouse was deleted: it comes home when its wait ends
	}
	p := &s.advance[k]
	if left := d.BatteryPercent - metres(d.At, p.at)/1000*d.ConsumptionWith(0); left < p.half {
		s.callHome(d, max(fullPercent, min(100, p.enough+sparePercent)))
		return true
	}
	p.have++
	if p.have <= p.need && at.Until.Sub(s.problem.Now) < renewBefore {
		s.add(reserveDrone{*d, s.problem.Now, false}, s.waitAt(p.at))
	}
	return true
}

// callHome tells a drone to charge at its depot, if that has a slot for it (F-CHG-01).
// Otherwise it stays where it is: it can serve some orders, and at the depot none.
func (s *standby) callHome(d *solver.Drone, level float64) {
	depot := s.depot(d)
	if depot < 0 {
		return
	}
	free, limited := s.slots[s.problem.Depots[depot].ID]
	if limited && free <= 0 {
		return
	}
	if s.add(reserveDrone{*d, s.problem.Now, false}, solver.Stop{Kind: solver.Charge, At: s.home(d), ChargeToPercent: level}) && limited {
		s.slots[s.problem.Depots[depot].ID]--
	}
}

// freeSlots counts, by depot, the charging slots that no drone uses or flies to. Depots without a
// known limit are left out.
func freeSlots(p *solver.Problem) map[string]int {
	free := map[string]int{}
	for _, d := range p.Depots {
		if d.ChargingSlots > 0 {
			free[d.ID] = d.ChargingSlots - d.SlotsTaken
		}
	}
	for _, s := range p.StandbyMissions {
		for _, stop := range s.Stops {
			for _, d := range p.Depots {
				if stop.Kind == solver.Charge && metres(stop.At, d.At) < samePointMetres && d.ChargingSlots > 0 {
					free[d.ID]--
				}
			}
		}
	}
	return free
}

func (s *standby) waitAt(at solver.Location) solver.Stop {
	return solver.Stop{Kind: solver.Wait, At: at, Until: s.problem.Now.Add(standbyWait)}
}

// fill sends free drones to the advance positions that lack some, the emptiest first. Each gets the
// drone with the shortest detour.
func (s *standby) fill(free []reserveDrone) {
	for sent := 0; sent < maxSent; {
		k := s.emptiest()
		if k < 0 {
			return
		}
		p := &s.advance[k]
		i := s.cheapest(free, p)
		if i < 0 || !s.add(free[i], s.waitAt(p.at)) {
			p.need = p.have
			continue
		}
		free = slices.Delete(free, i, i+1)
		p.have++
		sent++
	}
}

// emptiest is the advance position that lacks the greatest share of its drones; -1 if none lacks any.
func (s *standby) emptiest() int {
	k, most := -1, 0.0
	for i, p := range s.advance {
		if lack := float64(p.need-p.have) / float64(max(1, p.need)); lack > most {
			k, most = i, lack
		}
	}
	return k
}

// cheapest is the drone with the shortest detour to an advance position, of those with enough charge;
// -1 if there is none.
func (s *standby) cheapest(free []reserveDrone, p *advancePosition) int {
	best, least := -1, math.Inf(1)
	for i := range free {
		d := &free[i].drone
		to := metres(d.At, p.at)
		if d.BatteryPercent-to/1000*d.ConsumptionWith(0) < p.enough+sparePercent {
			continue
		}
		if free[i].homebound {
			to -= metres(d.At, s.home(d))
		}
		if to < least {
			best, least = i, to
		}
	}
	return best
}

// longestCharge is more than any drone needs: one that charges for longer has a wrong rate.
const longestCharge = 24 * time.Hour

// add adds a mission with one stop, unless the drone cannot fly it and land with the charge
// that it must keep, or would be away for too long.
func (s *standby) add(r reserveDrone, stop solver.Stop) bool {
	d := &r.drone
	if s.depot(d) < 0 {
		return false
	}
	mission := solver.Standby{Route: solver.Route{DroneID: d.ID}}
	current := s.missions[d.ID]
	if current != nil {
		mission.MissionID, mission.Revision = current.MissionID, current.Revision
	}
	stops := []solver.Stop{stop, {Kind: solver.DepotReturn, At: s.home(d)}}
	if current == nil && !r.homebound {
		stops = slices.Insert(stops, 0, solver.Stop{Kind: solver.DepotStart, At: d.At})
	}
	at, clock, battery, flying := d.At, r.ready, d.BatteryPercent, time.Duration(0)
	for _, stop := range stops {
		leg := metres(at, stop.At)
		took := flightTime(d, leg)
		mission.DistanceKm += leg / 1000
		battery -= leg / 1000 * d.ConsumptionWith(0)
		at, clock, flying = stop.At, clock.Add(took), flying+took
		stop.ETA, stop.DistanceKm, stop.BatteryPercent = clock, mission.DistanceKm, battery
		if more := stop.ChargeToPercent - battery; more > 0 {
			minutes := more / d.ChargePerMinute()
			if !(minutes <= longestCharge.Minutes()) { // or NaN
				return false
			}
			clock = clock.Add(time.Duration(minutes * float64(time.Minute)))
			battery = stop.ChargeToPercent
		}
		if stop.Kind == solver.Wait {
			if clock = later(clock, stop.Until); clock.Sub(s.problem.Now) > model.MaxWait {
				return false
			}
			stop.Until = clock
		}
		mission.Stops = append(mission.Stops, stop)
	}
	mission.BatteryUsePercent, mission.Duration = mission.DistanceKm*d.ConsumptionWith(0), clock.Sub(s.problem.Now)
	if d.BatteryPercent-mission.BatteryUsePercent < s.params.ReservePercent+chargeMargin || d.MaxFlight > 0 && flying > d.MaxFlight {
		return false
	}
	s.list = append(s.list, mission)
	slices.SortFunc(s.list, func(a, b solver.Standby) int { return cmp.Compare(a.DroneID, b.DroneID) })
	return true
}
