package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// The bounds of F-SND-03, as the contract has them.
const (
	clockError       = 5 * time.Second
	stopRadiusMetres = 75
	// unheard is how long before its mission begins a drone may have reported last: the silence
	// that a decision tolerates, and the errors of three clocks.
	unheard = 15*time.Second + 3*clockError
)

// possible checks F-SND-03: no order is DELIVERED sooner than its drone can have flown there at
// twice its top speed. Each leg may be shorter by what two clock errors allow.
func (c *checker) possible() {
	if c.TopSpeedKmh == 0 {
		return
	}
	metresPerSecond := 2 * c.TopSpeedKmh / 3.6
	detour := metresPerSecond*(2*clockError).Seconds() + 2*stopRadiusMetres
	whereabouts := c.whereabouts()
	for _, o := range c.Orders {
		m, known := c.missionByID[o.AssignedMissionID]
		if o.Status != domain.OrderDelivered || !known {
			continue
		}
		at, metres := lastBefore(whereabouts[m.DroneID], m.StartTime), 0.0
		for _, stop := range m.Route {
			if !stop.ForOrder() {
				continue
			}
			if at != nil {
				metres += max(0, at.DistanceMetres(stop.Position)-detour)
			}
			if at = &stop.Position; stop.OrderID == o.ID && stop.Type == domain.WaypointHospitalDelivery {
				took := o.DeliveredAt.Sub(m.StartTime)
				c.expect(metres <= metresPerSecond*(took+unheard).Seconds(), "F-SND-03", order(o.ID),
					"is DELIVERED %s after mission %s began, and its drone %s had at least %.1f km to fly", took.Round(time.Millisecond), m.ID, m.DroneID, metres/1000)
				break
			}
		}
	}
}

// whereabouts are where the drones truly were, in the order of their clocks.
func (c *checker) whereabouts() map[domain.DroneID][]Message {
	found := make(map[domain.DroneID][]Message)
	for _, m := range c.Confirmed {
		if m.Where != nil {
			found[m.DroneID] = append(found[m.DroneID], m)
		}
	}
	for _, of := range found {
		slices.SortFunc(of, byTimestamp)
	}
	return found
}

func byTimestamp(a, b Message) int { return a.Timestamp.Compare(b.Timestamp) }

// lastBefore is the position at a time, nil if it is unknown.
func lastBefore(of []Message, at time.Time) *domain.Position {
	i, _ := slices.BinarySearchFunc(of, at, func(m Message, at time.Time) int { return cmp.Or(m.Timestamp.Compare(at), -1) })
	if i == 0 {
		return nil
	}
	return of[i-1].Where
}
