package domain

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Learned holds what was learned from flights and orders: sums from which the optimizer estimates.
// Its zero value is a fleet without a past.
type Learned struct {
	Travel Travel
	Drones map[DroneID]DroneTravel
	Demand Demand
}

// LearningScope is the area that an optimizer learns from and for.
type LearningScope struct {
	Area DepotID // the depot that names it
	// Depots are the area's; none if it is the fleet's only area, which has everything.
	Depots []DepotID
}

// Plus adds what was learned in another area at the same time.
func (l Learned) Plus(m Learned) Learned {
	drones := make(map[DroneID]DroneTravel, len(l.Drones)+len(m.Drones))
	maps.Copy(drones, l.Drones)
	maps.Copy(drones, m.Drones)
	return Learned{Travel: l.Travel.plus(m.Travel), Drones: drones, Demand: l.Demand.plus(m.Demand)}
}

func (t Travel) plus(u Travel) Travel {
	sum := Travel{
		Until: later(t.Until, u.Until), FromStart: t.FromStart.plus(u.FromStart), FromPickup: t.FromPickup.plus(u.FromPickup), FromDelivery: t.FromDelivery.plus(u.FromDelivery),
		Missions: t.Missions + u.Missions, Legs: t.Legs + u.Legs, Refused: t.Refused + u.Refused,
		SpeedKmh: cmp.Or(t.SpeedKmh, u.SpeedKmh), PickupSeconds: cmp.Or(t.PickupSeconds, u.PickupSeconds), DeliverySeconds: cmp.Or(t.DeliverySeconds, u.DeliverySeconds),
	}
	for i := range max(len(t.Delays), len(u.Delays)) {
		n := 0.0
		for _, delays := range [][]float64{t.Delays, u.Delays} {
			if i < len(delays) {
				n += delays[i]
			}
		}
		sum.Delays = append(sum.Delays, n)
	}
	return sum
}

func (s LegSums) plus(r LegSums) LegSums {
	return LegSums{s.Weight + r.Weight, s.Km + r.Km, s.Seconds + r.Seconds, s.KmKm + r.KmKm, s.KmSeconds + r.KmSeconds}
}

// plus takes the hours of both as the same hours: areas are observed at the same time.
func (d Demand) plus(e Demand) Demand {
	sum := Demand{Until: later(d.Until, e.Until), Points: slices.Concat(d.Points, e.Points), Seen: d.Seen + e.Seen}
	for i := range max(len(d.Hours), len(e.Hours)) {
		var hour HourDemand
		for _, hours := range [][]HourDemand{d.Hours, e.Hours} {
			if i >= len(hours) {
				continue
			}
			hour.Hours = max(hour.Hours, hours[i].Hours)
			for p, n := range hours[i].Orders {
				hour.Orders[p] += n
			}
		}
		sum.Hours = append(sum.Hours, hour)
	}
	return sum
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Travel sums up the legs that the fleet flew, by what each leg began with.
type Travel struct {
	// Until is the end of the latest mission that counts.
	Until                               time.Time
	FromStart, FromPickup, FromDelivery LegSums
	// Delays counts deliveries by how much later they were than planned, see DelayBin.
	Delays []float64
	// Counts since the last reset: missions and legs that count, and legs left out as implausible.
	Missions, Legs, Refused int
	// What was estimated when the sums were stored, for people to read.
	SpeedKmh, PickupSeconds, DeliverySeconds float64
}

// DroneTravel sums up the flight of one drone from stop to stop, without its stays.
type DroneTravel struct {
	Flight   LegSums
	SpeedKmh float64 // estimated when the sums were stored, for people to read
}

// LegSums are sums over legs that were flown, of kilometres and of the seconds from the
// arrival at one stop to that at the next. Old legs weigh less.
type LegSums struct {
	Weight, Km, Seconds, KmKm, KmSeconds float64
}

// Delays are binned by their share of the time that was planned for a delivery, from DelayMin in
// steps of DelayStep. The first and the last bin also count what lies beyond.
const (
	DelayMin  = -0.5
	DelayStep = 0.02
	DelayBins = 75
)

// Demand is when and where orders came. Old orders weigh less.
type Demand struct {
	// Until is the time up to which orders count.
	Until time.Time
	// Hours are those of the day, in UTC.
	Hours  []HourDemand // 24, or none
	Points []PointDemand
	Seen   int // orders since the last reset
}

// HourDemand is the demand of one hour of the day: the hours that were observed, and the
// orders in them by priority, in the order of Priorities.
type HourDemand struct {
	Hours  float64
	Orders [len(Priorities)]float64
}

// PointDemand is the demand of one delivery point: Orders by priority, and what its latest
// order was.
type PointDemand struct {
	Position    Position
	Orders      [len(Priorities)]float64
	ProductType string
	ColdChain   bool
	WeightKg    float64
}
