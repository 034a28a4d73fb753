package plannersim

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// stands reports whether the drone is on a mission without orders.
func (t *trackedDrone) stands() bool { return t.mission != nil && t.mission.Standby() }

// standBy gives a drone a mission without orders, or another one instead of that.
func (r *replay) standBy(t *trackedDrone, d domain.Decision, latency time.Duration) {
	switch {
	case d.Amends() && !(t.stands() && t.mission.ID == d.AmendsMissionID && t.mission.RouteRevision == d.AmendsRevision):
		return
	case !d.Amends() && t.mission != nil && !t.homebound():
		return
	}
	r.standby++
	revision := d.AmendsRevision + 1
	t.mission = &domain.Mission{
		ID: domain.MissionID("M-" + d.ID), DroneID: d.DroneID, Route: d.Route, Status: domain.MissionActive, StartTime: r.now, RouteRevision: revision,
	}
	t.acked = false
	r.flyTo(t, duty(d.Route).Position, latency)
}

func duty(route []domain.Waypoint) domain.Waypoint {
	for _, w := range route {
		if w.Duty() {
			return w
		}
	}
	return domain.Waypoint{}
}

// flyTo tells the drone to fly somewhere and to wait there.
func (r *replay) flyTo(t *trackedDrone, to domain.Position, latency time.Duration) {
	r.flights++
	r.flownKm += t.report.Position.DistanceMetres(to) / 1000
	t.command = &domain.Command{
		Mission: domain.Mission{
			ID: domain.MissionID(fmt.Sprint("STANDBY-", r.flights)), DroneID: t.static.ID, Status: domain.MissionActive, StartTime: r.now,
			Route: []domain.Waypoint{{Type: domain.WaypointDepotReturn, Position: to}},
		},
		ExpiresAt: r.now.Add(time.Hour),
	}
	t.due = r.now.Add(latency)
}

// advanceStandby ends a mission without orders.
func (r *replay) advanceStandby(t *trackedDrone) {
	w := duty(t.mission.Route)
	home := r.homes[t.static.HomeDepotID]
	switch {
	case t.command != nil:
	case w.Type == domain.WaypointWait && !r.now.Before(w.WaitUntil):
		t.mission = nil
		r.flyTo(t, home, 0)
	case w.Type == domain.WaypointCharge && t.report.Position == w.Position && (t.report.Battery >= w.ChargeToPercent || t.report.Status == domain.DroneIdle):
		t.mission = nil
	}
}
