package live

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
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
	now, p := past.ReadTime, pictureOf(past)
	p.putAcks(acks, true)
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
	r.Alerts = append(r.Alerts, f.alertsIn(&p, now)...)
	return r, nil
}

// PastAlerts are the alerts of a past moment, as far as its documents tell: not those about this
// process. It does not estimate how soon orders could have been delivered.
func (f *Feed) PastAlerts(past firestoretx.Past) []entity.Alert {
	p := pictureOf(past)
	return f.alertsIn(&p, past.ReadTime)
}

// alertsIn are the alerts of a picture, the worst first.
func (f *Feed) alertsIn(p *picture, now time.Time) (forms []entity.Alert) {
	alerts := Alerts(&p.state, now, f.cfg.DepotPatience)
	slices.SortFunc(alerts, func(a, b Alert) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.ID(), b.ID()))
	})
	for _, a := range alerts {
		if a.Since.IsZero() {
			a.Since = now
		}
		forms = append(forms, p.alertForm(a))
	}
	return forms
}

// pictureOf is the picture of a fleet as it was.
func pictureOf(past firestoretx.Past) picture {
	p := newPicture()
	p.putDepots(past.Depots, noneGone)
	p.putWarehouses(past.Warehouses, noneGone)
	for _, d := range past.Drones {
		p.putDrone(d)
	}
	for _, m := range past.Missions {
		p.putMission(m)
	}
	for _, o := range past.Orders {
		p.putOrder(o)
	}
	p.putCycles(past.Cycles, nil, true, func(domain.DepotID) bool { return true })
	return p
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
