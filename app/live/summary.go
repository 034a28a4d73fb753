package live

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// Summary is what somebody who takes over should know of the fleet.
type Summary struct {
	ReadTime time.Time
	Orders   []entity.LiveOrder // the open ones, the most urgent first
	Drones   []entity.Drone     // those that take no mission until somebody acts
	Alerts   []entity.Alert     // the worst first, a cause before what it explains
	// Malformed are documents that cannot be decoded and are left out.
	Malformed []error
}

// Summary reads the fleet and sums it up. acks are the acknowledgements of alerts to show.
//
// Cost: those of firestoretx.Store.PastAt and Learned. It needs no viewer.
func (f *Feed) Summary(ctx context.Context, acks []domain.AlertAck) (Summary, error) {
	past, err := f.cfg.Store.PastAt(ctx, f.cfg.Now())
	if err != nil {
		return Summary{}, err
	}
	learned, _, err := f.cfg.Store.Learned(ctx) // without what is damaged
	if err != nil {
		return Summary{}, err
	}
	now, p := past.ReadTime, newPicture()
	p.putDepots(past.Depots, noneGone)
	p.putWarehouses(past.Warehouses, noneGone)
	p.putAcks(acks, true)
	for _, d := range past.Drones {
		p.putDrone(d)
	}
	for _, m := range past.Missions {
		p.putMission(m)
	}
	for _, o := range past.Orders {
		p.putOrder(o)
	}
	p.putCycles(past.Cycles, nil, true)
	p.state.Process = f.cfg.Process()
	p.putArrivals(f.arrivalsOf(p.waiting(), p.fleet(now), learning.Estimate(learned, planner.Assumed(solver.Params{}), learning.DefaultConfidence)))

	r := Summary{ReadTime: now.UTC(), Orders: []entity.LiveOrder{}, Drones: []entity.Drone{}, Alerts: []entity.Alert{}, Malformed: past.Malformed}
	slices.SortFunc(past.Orders, moreUrgent)
	for _, o := range past.Orders {
		soonest := p.state.Arrivals[o.ID]
		r.Orders = append(r.Orders, entity.OfLiveOrder(o, p.waits.Of(o), soonest.DroneID, soonest.At))
	}
	for _, d := range past.Drones {
		if outOfService(d) {
			r.Drones = append(r.Drones, entity.OfDrone(d))
		}
	}
	alerts := Alerts(&p.state, now, f.cfg.DepotPatience)
	slices.SortFunc(alerts, func(a, b Alert) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.ID(), b.ID()))
	})
	for _, a := range alerts {
		if a.Since.IsZero() {
			a.Since = now
		}
		r.Alerts = append(r.Alerts, p.alertForm(a))
	}
	return r, nil
}

func noneGone(string, bool) bool { return false }

// outOfService reports whether a drone takes no mission until somebody acts.
func outOfService(d domain.Drone) bool {
	switch d.Status {
	case domain.DroneMaintenance, domain.DroneProblem, domain.DroneEmergency, domain.DroneUnknown:
		return !d.Retired()
	case domain.DroneIdle, domain.DroneReserved, domain.DroneMoving, domain.DroneDelivering, domain.DroneCharging:
	}
	return (d.Grounded || d.EmergencyLatched) && !d.Retired()
}
