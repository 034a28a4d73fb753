package domain

import "time"

// Learned holds what was learned from flights and orders: sums from which the optimizer estimates.
// Its zero value is a fleet without a past.
type Learned struct {
	Travel Travel
	Drones map[DroneID]DroneTravel
	Demand Demand
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
