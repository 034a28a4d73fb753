package planner

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// addStanding adds the drones on missions without orders to the drones that are free: such a
// mission gives way at once. Their position is predicted for the problem's time.
// One whose mission is about to end is left out: it may be over when an amendment comes.
func (p *Planner) addStanding(problem *solver.Problem, flights []domain.Flight) {
	for _, f := range flights {
		if !f.Mission.Standby() || f.Mission.Status != domain.MissionActive {
			continue
		}
		d := dronesOf([]domain.Drone{f.Drone})[0]
		d.SpeedKmh = p.learned.SpeedOf(f.Drone.ID)
		if d, s, ok := predictStanding(f, d, problem.Now); ok {
			problem.Drones, problem.Standing = append(problem.Drones, d), append(problem.Standing, s)
		}
	}
}

// predictStanding predicts where a drone on a mission without orders will be at the given time.
// What it charges until then does not count.
func predictStanding(f domain.Flight, d solver.Drone, now time.Time) (solver.Drone, solver.Standing, bool) {
	if d.MaxFlight > 0 {
		// On the ground it uses no flight time, so what it has flown follows from its charge.
		if d.MaxFlight -= flightTime(&d, (100-d.BatteryPercent)/d.ConsumptionWith(0)*1000); d.MaxFlight <= 0 {
			return d, solver.Standing{}, false
		}
	}
	s := solver.Standing{DroneID: d.ID, MissionID: string(f.Mission.ID), Revision: f.Mission.RouteRevision}
	ahead := f.Mission.Route[min(f.Mission.ReachedStops, len(f.Mission.Route)):]
	for len(ahead) > 0 && ahead[0].Type == domain.WaypointDepotStart {
		ahead = ahead[1:]
	}
	if len(ahead) == 0 || !ahead[0].Duty() {
		return d, s, false
	}
	for _, w := range ahead {
		s.Stops = append(s.Stops, stopOf(w))
	}
	to := ahead[0]
	leg := f.Drone.Position.DistanceMetres(to.Position)
	flown := min(leg, max(0, now.Sub(f.Drone.SeenAt).Hours())*d.Speed()*1000)
	d.At = location(f.Drone.Position.Towards(to.Position, flown))
	if flown >= leg {
		d.At = location(to.Position)
	}
	d.BatteryPercent = max(0, d.BatteryPercent-flown/1000*d.ConsumptionWith(0))
	if flown < leg {
		d.BatteryPercent = max(0, d.BatteryPercent-chargeMargin)
	}
	ends := to.WaitUntil
	if to.Type == domain.WaypointCharge {
		ends = f.Drone.SeenAt.Add(time.Duration((to.ChargeToPercent - f.Drone.Battery) / f.Drone.ChargePerMinute() * float64(time.Minute)))
		if flown < leg {
			ends = now.Add(time.Hour)
		}
	}
	return d, s, ends.Sub(now) > applyMargin
}

// addCharging counts the slots that drones without a mission have or wait for.
func addCharging(p *solver.Problem, snap domain.Snapshot) {
	for _, d := range snap.Charging {
		for i := range p.Depots {
			if p.Depots[i].ID == string(d.HomeDepotID) {
				p.Depots[i].SlotsTaken++
			}
		}
	}
}
