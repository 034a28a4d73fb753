package domain

import (
	"slices"
	"time"
)

// Drone is a drone as the State Manager knows it. It is the aggregate root of its mission: every
// change of the mission or its orders also writes the drone, so that the drone's version stands for
// all of them.
type Drone struct {
	ID DroneID

	// Status is the fleet's view. A bound drone is never IDLE.
	Status DroneStatus
	// ReportedStatus is what the drone last said of itself.
	ReportedStatus DroneStatus
	Position       Position
	Battery        float64 // percent of a full charge
	SpeedKmh       float64
	LastUpdate     time.Time // the drone's clock at the last applied report
	SeenAt         time.Time // the server's clock then
	Motion         Motion    // belongs to Position if its time is LastUpdate

	// CurrentMissionID binds the drone; decisions set it, telemetry never does.
	CurrentMissionID MissionID
	MissionAcked     bool      // the drone has named the mission in a report
	MissionMoved     bool      // and has reported that it flies while naming it
	NamedRevision    int       // of that mission, in its latest report; 0 if it names none
	FreeAfter        time.Time // no report measured before this frees an unacked drone
	IdleSince        time.Time // when it last became IDLE, server's clock
	FaultSince       time.Time // when an acked drone began to report a fault; zero for none
	// Homebound says that the mission is COMPLETED and the drone flies home, since HomeboundSince
	// by the server's clock. If it supports amendments, it may take its next mission before it
	// lands.
	Homebound        bool
	HomeboundSince   time.Time
	ParkedSince      time.Time // when an acked drone was first seen parked with stops missing, server's clock; zero for none
	EmergencyLatched bool      // reported by the drone; only an operator clears it
	// SupportsAmendments says that the drone accepts changed missions under way.
	SupportsAmendments bool
	// SupportsStandby says that the drone takes missions without orders: to charge, to wait.
	SupportsStandby bool
	// Grounded drones take no mission, until an operator releases them.
	Grounded       bool
	GroundedReason string    // why, for that operator
	GhostMissionID MissionID // a failed mission that the drone still flies
	GhostRevokedAt time.Time // when its revocation was last requested
	// FailedMissions are its latest failed missions, oldest first, at most
	// MaxFailedMissions. They tell a ghost from a free drone.
	FailedMissions []FailedMission

	HomeDepotID          DepotID
	ShortName            string
	BatteryCapacityMah   int
	ConsumptionPerKm     float64 // percent of a full charge per kilometre; 0 unknown
	ConsumptionPerKmKg   float64 // what each kilogram aboard adds to it; 0 unknown
	MaxFlightTimeMinutes int
	PayloadCapacityKg    float64 // 0 means no limit is known
	ChargeRate           float64 // in a charging slot, percent of a full charge a minute; 0 unknown

	// RegisteredAt is when an operator registered the drone. It is zero for a drone from an earlier
	// version, and for an Unregistered one, which is only known by its reports.
	RegisteredAt time.Time
	RegisteredBy string
	Unregistered bool
	RetiredAt    time.Time // zero unless an operator has retired it

	TypeID           DroneTypeID
	RegistrationMark string
	SerialNumber     string
	RemoteID         string
	ColdBox          *ColdBox // nil for none
	Due              []DueItem
	Maintained       []Maintenance // the latest of each item
	MinBatteryHealth float64       // percent; 0 for none
	// OwnProperties names the properties that are not its type's.
	OwnProperties []string

	// What the drone's reports say or count up.
	FlightSeconds  int64
	Landings       int
	BatteryHealth  *float64 // percent; nil if it never said
	ReportedSerial string
	CountsStops    bool
	// Track bounds what the drone can claim to have done; nil before its first mission.
	Track *Track
	// Implausible says what the drone claimed last that it cannot have done, and
	// ImplausibleAt when that was recorded, by the server's clock.
	Implausible   string
	ImplausibleAt time.Time
	// LinkLostAt is when the drone's session at a gateway was lost; zero while it has one, or
	// never had. It judges nothing: the drone is silent only if its reports say so.
	LinkLostAt time.Time
	// LinkChangedAt is the time of the newest LinkState that was applied.
	LinkChangedAt time.Time

	// DueAt is the earliest time at which the sweeper may have something to do about the drone or
	// its mission; zero for never. It is not part of the drone's state.
	DueAt time.Time

	// Revision counts the drone's state changes; its events carry it.
	Revision int64
}

// DefaultChargeRate is how fast a drone charges whose own rate is not known, in percent of a
// full charge a minute.
const DefaultChargeRate = 10.0

// ChargePerMinute is what the drone gains in a charging slot, in percent of a full charge.
func (d *Drone) ChargePerMinute() float64 {
	if d.ChargeRate > 0 {
		return d.ChargeRate
	}
	return DefaultChargeRate
}

// Retired reports whether an operator has retired the drone.
func (d *Drone) Retired() bool { return !d.RetiredAt.IsZero() }

// Legacy reports whether the document is of an earlier version, which knew no registry.
func (d *Drone) Legacy() bool { return d.RegisteredAt.IsZero() && !d.Unregistered && !d.Retired() }

// Heard reports whether the drone has ever reported or another tool has set its position. Any other
// drone has no position.
func (d *Drone) Heard() bool { return !d.SeenAt.IsZero() || d.Position != (Position{}) }

// CarriesCold reports whether the drone can take orders that require a cold chain. A drone that was
// never registered may have a cold box, so it can.
func (d *Drone) CarriesCold() bool { return d.ColdBox != nil || d.RegisteredAt.IsZero() }

// OtherIdentity reports whether the drone reports a serial number that differs from the registered
// one.
func (d *Drone) OtherIdentity() bool {
	return d.SerialNumber != "" && d.ReportedSerial != "" && d.SerialNumber != d.ReportedSerial
}

// Limits are the limits by which an item of the drone is due next.
func (d *Drone) Limits(item DueItem) DueLimits {
	for i := range d.Maintained {
		if d.Maintained[i].Item == item.Item {
			return item.Next(d.RegisteredAt, &d.Maintained[i])
		}
	}
	return item.Next(d.RegisteredAt, nil)
}

// DueDate is the first date at which an item is due; zero for none.
func (d *Drone) DueDate() (first time.Time) {
	for _, item := range d.Due {
		if at := d.Limits(item).At; first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// Properties are what the drone can do and needs, its own and its type's.
func (d *Drone) Properties() DroneProperties {
	return DroneProperties{
		PayloadCapacityKg: d.PayloadCapacityKg, ConsumptionPerKm: d.ConsumptionPerKm, MaxFlightTimeMinutes: d.MaxFlightTimeMinutes,
		ConsumptionPerKmKg: d.ConsumptionPerKmKg, ChargeRate: d.ChargeRate, BatteryCapacityMah: d.BatteryCapacityMah,
		ColdBox: d.ColdBox, NoColdBox: d.ColdBox == nil && slices.Contains(d.OwnProperties, coldBoxProperty),
		Due: d.Due, MinBatteryHealth: d.MinBatteryHealth,
	}
}

// SetProperties replaces what Properties returns.
func (d *Drone) SetProperties(p DroneProperties) {
	d.PayloadCapacityKg, d.ConsumptionPerKm, d.MaxFlightTimeMinutes = p.PayloadCapacityKg, p.ConsumptionPerKm, p.MaxFlightTimeMinutes
	d.ConsumptionPerKmKg, d.ChargeRate, d.BatteryCapacityMah = p.ConsumptionPerKmKg, p.ChargeRate, p.BatteryCapacityMah
	d.ColdBox, d.Due, d.MinBatteryHealth = p.ColdBox, p.Due, p.MinBatteryHealth
}

// Registration is what an operator says of the drone.
func (d *Drone) Registration() DroneRegistration {
	return DroneRegistration{
		ID: d.ID, HomeDepotID: d.HomeDepotID, TypeID: d.TypeID, ShortName: d.ShortName, RegistrationMark: d.RegistrationMark,
		SerialNumber: d.SerialNumber, RemoteID: d.RemoteID, Own: d.Properties().Only(d.OwnProperties),
	}
}

// Track is where a drone was last, as far as its reports are plausible, and how many stops of
// a mission's route it can have completed by then.
type Track struct {
	Position  Position
	At        time.Time // the drone's clock
	MissionID MissionID // empty for none
	Stops     int
}

// FailedMission is one of a drone's latest failed missions.
type FailedMission struct {
	ID       MissionID
	FailedAt time.Time // server's clock
}

// MaxFailedMissions bounds Drone.FailedMissions.
const MaxFailedMissions = 4

// Bound reports whether a mission holds the drone.
func (d *Drone) Bound() bool { return d.CurrentMissionID != "" }

// FailedAt is when a mission of the drone failed; ok is false if it is not among
// the latest failures.
func (d *Drone) FailedAt(id MissionID) (at time.Time, ok bool) {
	for _, f := range d.FailedMissions {
		if f.ID == id && id != "" {
			return f.FailedAt, true
		}
	}
	return time.Time{}, false
}

// Telemetry is one report of a drone about itself.
type Telemetry struct {
	DroneID   DroneID
	Timestamp time.Time // the drone's clock
	Position  Position
	Battery   float64 // percent of a full charge
	SpeedKmh  float64
	// Status is empty if the drone did not report one.
	Status DroneStatus
	// MissionID is the mission the drone believes it flies; empty for none.
	MissionID MissionID
	// CompletedStops is how many stops of that mission's route the drone has
	// completed; nil if it did not say.
	CompletedStops *int
	// MissionRevision is the revision of that mission which the drone flies; 0 if it
	// does not know of revisions.
	MissionRevision int
	// SupportsAmendments says that the drone accepts changed missions under way.
	SupportsAmendments bool
	// SupportsStandby says that the drone takes missions without orders, and counts the
	// stops at which it charges and waits in CompletedStops.
	SupportsStandby bool
	// BatteryHealth, in percent, and FlightSeconds are nil if the drone did not say.
	BatteryHealth *float64
	FlightSeconds *int64
	// SerialNumber is empty if the drone did not say.
	SerialNumber string
}
