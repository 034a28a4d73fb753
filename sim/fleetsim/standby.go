package fleetsim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// A drone without orders charges and waits as its mission says. At a depot with a limited
// number of slots it charges only while it has one; whoever advances the drones hands them
// out. A drone that nobody gives or denies a slot charges as if there were enough.

// ChargeNeed says how much a drone wants a charging slot.
type ChargeNeed int

// The needs, the greater the more urgent. A drone that only tops up leaves its slot to one
// that needs it.
const (
	NeedsNoSlot ChargeNeed = iota
	ToppingUp
	NeedsSlot
)

// ChargeNeed says how much the drone wants a slot at a place now.
func (d Drone) ChargeNeed(at domain.Position) ChargeNeed {
	switch {
	case d.position.DistanceMetres(at) > atHomeMetres || d.battery >= 100 && !d.onDuty:
		return NeedsNoSlot
	case d.onDuty && d.route[d.next].Type == domain.WaypointCharge:
		return NeedsSlot
	case d.next < len(d.route) || !d.atHome():
		return NeedsNoSlot
	case d.charging || d.battery < chargeBelow:
		return NeedsSlot
	}
	return ToppingUp
}

// WithSlot returns the drone after it was given a slot where it is, or denied one.
func (d Drone) WithSlot(given bool) Drone {
	d.noSlot = !given
	d.charging = d.charging && given
	return d
}

// Charging reports whether the drone occupies a slot and says so.
func (d Drone) Charging() bool { return d.Status() == domain.DroneCharging }

// serveDuty charges or waits at the stop where the drone is. end is what its clock shows
// when dt is over. It returns what is left of dt when that is done.
func (d Drone) serveDuty(dt time.Duration, end time.Time) (Drone, time.Duration) {
	stop := d.route[d.next]
	if stop.Type == domain.WaypointWait {
		if stop.WaitUntil.After(end) {
			return d, 0
		}
		return d.dutyDone(), min(dt, end.Sub(stop.WaitUntil))
	}
	if d.noSlot {
		return d, 0
	}
	needed := time.Duration((stop.ChargeToPercent - d.battery) / d.chargeRate * float64(time.Minute))
	if needed > dt {
		d.battery += d.chargeRate * dt.Minutes()
		return d, 0
	}
	d.battery = max(d.battery, stop.ChargeToPercent)
	return d.dutyDone(), dt - max(0, needed)
}

// dutyDone lets the drone leave its stop once it has reported that its duty is done.
func (d Drone) dutyDone() Drone {
	d.onDuty = false
	d.dwelling, d.dwellLeft, d.reported = true, 0, false
	return d
}

// takeOver begins a route that replaces the rest of a mission without orders. Where it
// begins with stops that the drone has completed, those stay completed.
func (d Drone) takeOver(route []domain.Waypoint) Drone {
	route = d.endingAtHome(route)
	done := 0
	for done < min(d.completed(), len(route)) && sameStop(d.route[done])(route[done]) {
		done++
	}
	stays := d.onDuty && done == d.next && done < len(route) && sameStop(d.route[done])(route[done])
	reported := d.dwelling && done == d.completed() && d.reported
	d.route, d.next, d.onDuty, d.dwelling = route, done, stays, false
	if done == len(route) { // which it has yet to say
		d.next--
		d.dwelling, d.dwellLeft, d.reported = true, 0, reported
	}
	return d
}

// Slots hands out the charging slots of depots. Drones that need one get it in the order in
// which they came, and before those that only top up.
type Slots struct {
	depots []depotSlots // none if the number of slots is nowhere limited
	stats  SlotStats
}

type depotSlots struct {
	at    domain.Position
	limit int
	queue []int // drones that have a slot or want one, by arrival
}

// SlotStats says how charging slots were used.
type SlotStats struct {
	Slots  int           `json:"slots"`  // in all; 0 without a limit
	Most   int           `json:"most"`   // in use at one depot at once
	Waited time.Duration `json:"waited"` // of drones that needed one, in all
}

// NewSlots returns the slots of the depots. At a depot without a number there is one for
// every drone.
func NewSlots(depots []domain.Depot) *Slots {
	s := &Slots{}
	for _, d := range depots {
		s.stats.Slots += d.ChargingSlots
		s.depots = append(s.depots, depotSlots{at: d.Position, limit: cmp.Or(d.ChargingSlots, math.MaxInt)})
	}
	if s.stats.Slots == 0 {
		s.depots = nil
	}
	return s
}

// Limited reports whether a depot has a number of slots. Otherwise every drone charges as it
// likes, and none needs to be allotted a slot.
func (s *Slots) Limited() bool { return len(s.depots) > 0 }

// Stats says how the slots were used so far.
func (s *Slots) Stats() SlotStats { return s.stats }

// Chargers are the drones that share slots, by number.
type Chargers interface {
	// Charger is a drone as of when it was advanced last.
	Charger(i int) *Drone
	// CatchUp advances a drone to the present.
	CatchUp(i int)
}

// Allot hands out the slots of the place where a drone is, after it was advanced by dt.
func (s *Slots) Allot(i int, dt time.Duration, drones Chargers) {
	for k := range s.depots {
		slots := &s.depots[k]
		need := drones.Charger(i).ChargeNeed(slots.at)
		wants := need != NeedsNoSlot
		at := slices.Index(slots.queue, i)
		if at >= 0 && need == NeedsSlot && drones.Charger(i).noSlot {
			s.stats.Waited += max(0, dt)
		}
		switch {
		case at < 0 && !wants:
			continue
		case at < 0:
			slots.queue = append(slots.queue, i)
		case !wants:
			slots.queue = slices.Delete(slots.queue, at, at+1)
			d := drones.Charger(i)
			*d = d.WithSlot(false)
		}
		s.stats.Most = max(s.stats.Most, slots.share(drones))
	}
}

// share gives the slots of one depot to the first of its queue. It returns how many it gave.
func (s *depotSlots) share(drones Chargers) (given int) {
	for _, need := range []ChargeNeed{NeedsSlot, ToppingUp} {
		for _, i := range s.queue {
			d := drones.Charger(i)
			if d.ChargeNeed(s.at) != need {
				continue
			}
			has := given < s.limit
			if has {
				given++
			}
			if has == d.noSlot { // up to now it was the other way round
				drones.CatchUp(i)
				*d = d.WithSlot(has)
			}
		}
	}
	return given
}
