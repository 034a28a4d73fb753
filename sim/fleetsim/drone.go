package fleetsim

import (
	"cmp"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// Flight and charging of every drone.
const (
	// CruiseKmh is the ground speed between stops.
	CruiseKmh = 50.0
	// Dwell is the time a drone spends at a pickup or a delivery.
	Dwell = 3 * time.Second
	// A drone at its depot starts to charge below chargeBelow percent, and charges
	// until chargeUntil.
	chargeBelow = 80.0
	chargeUntil = 90.0
	// ChargePerMinute is what a fast charger adds per minute, in percent of a full
	// charge.
	ChargePerMinute = domain.DefaultChargeRate
	// atHomeMetres is how close to its depot a drone counts as being there.
	atHomeMetres = 50.0
)

// Drone is a simulated drone at one instant. It is a value: methods return the
// changed Drone and leave the receiver as it was.
type Drone struct {
	id          domain.DroneID
	home        domain.Position
	consumption float64 // percent of a full charge per kilometre, with nothing aboard
	perKg       float64 // what each kilogram aboard adds to that
	chargeRate  float64 // percent of a full charge per minute
	amends      bool    // supports amendments, and counts its stops; older drones do neither
	standsBy    bool    // and takes missions without orders
	pace        float64 // of CruiseKmh at which it flies; 0 for all of it
	wind        Wind

	position domain.Position
	battery  float64 // percent of a full charge
	weigh    func(domain.OrderID) float64
	aboard   []parcel // never modified, shared between values

	clock     time.Time         // its own, as of its last report or command
	mission   domain.MissionID  // empty if it knows of none
	startedAt time.Time         // start time of that mission, set by the State Manager
	expires   time.Time         // expiry of the command it obeyed last
	revision  int               // of the mission's route, as commanded
	route     []domain.Waypoint // never modified, shared between values
	next      int               // index in route of the stop it flies to or dwells at
	dwelling  bool
	dwellLeft time.Duration
	reported  bool          // it has reported from the stop where it dwells
	paused    time.Duration // until it has put down the last parcel of the mission before
	onDuty    bool          // it charges or waits at the stop next, and is not done
	noSlot    bool          // it must wait for a slot before it can charge
	charging  bool
	// ended lists missions that it must not start again when an old command is
	// redelivered.
	ended [8]domain.MissionID

	restarted bool // and has forgotten everything; it says nothing until it is told its mission
	silentFor time.Duration
	deafFor   time.Duration
	brokenFor time.Duration
}

// NewDrone returns the drone d, idle at its position.
func NewDrone(d domain.Drone, home domain.Position) Drone {
	consumption := d.ConsumptionPerKm
	if consumption == 0 {
		consumption = ConsumptionPerKm
	}
	return Drone{
		id: d.ID, home: home, consumption: consumption, perKg: d.ConsumptionPerKmKg, chargeRate: d.ChargePerMinute(),
		amends: d.SupportsAmendments, standsBy: d.SupportsAmendments && d.SupportsStandby, position: d.Position, battery: d.Battery,
	}
}

// parcel is one that the drone has aboard.
type parcel struct {
	order domain.OrderID
	kg    float64
}

// Weighing returns the drone with scales: weigh is the weight, in kilograms, of the parcel
// of an order that it picks up. Without it every parcel weighs nothing.
func (d Drone) Weighing(weigh func(domain.OrderID) float64) Drone {
	d.weigh = weigh
	return d
}

// handle picks a parcel up, or puts it down.
func (d Drone) handle(stop domain.Waypoint) Drone {
	same := func(p parcel) bool { return p.order == stop.OrderID }
	has := slices.ContainsFunc(d.aboard, same)
	switch {
	case stop.Type == domain.WaypointWarehousePickup && !has && d.weigh != nil:
		d.aboard = append(slices.Clip(d.aboard), parcel{stop.OrderID, d.weigh(stop.OrderID)})
	case stop.Type == domain.WaypointHospitalDelivery && has:
		d.aboard = slices.DeleteFunc(slices.Clone(d.aboard), same)
	}
	return d
}

// perKm is what the drone uses, in percent of a full charge per kilometre, with what is
// aboard.
func (d Drone) perKm() float64 {
	kg := 0.0
	for _, p := range d.aboard {
		kg += p.kg
	}
	return (d.consumption + kg*d.perKg) * (1 + d.wind.Dearer)
}

// WithPace returns the drone flying at a share of CruiseKmh; 0 means 1.
func (d Drone) WithPace(pace float64) Drone {
	d.pace = pace
	return d
}

// After returns the drone after dt of its time.
func (d Drone) After(dt time.Duration) Drone {
	if !d.clock.IsZero() {
		d.clock = d.clock.Add(dt)
	}
	d.silentFor = max(0, d.silentFor-dt)
	d.deafFor = max(0, d.deafFor-dt)
	broken := min(d.brokenFor, dt)
	d.brokenFor -= broken
	dt -= broken
	paused := min(d.paused, dt)
	d.paused -= paused
	dt -= paused
	for dt > 0 {
		switch {
		case d.dwelling && (dt < d.dwellLeft || !d.reported):
			// The report from a stop is the proof of delivery, so it never leaves
			// before it has reported, however fast time runs.
			d.dwellLeft = max(0, d.dwellLeft-dt)
			return d
		case d.dwelling:
			dt -= d.dwellLeft
			d.dwelling, d.dwellLeft = false, 0
			d = d.passStop()
		case d.onDuty:
			d, dt = d.serveDuty(dt, d.clock)
		case d.next < len(d.route):
			d, dt = d.fly(dt)
		default:
			return d.charge(dt)
		}
	}
	return d
}

// fly moves towards the next stop and returns what is left of dt on arrival.
func (d Drone) fly(dt time.Duration) (Drone, time.Duration) {
	metresPerSecond := d.cruise() / 3.6
	stop := d.route[d.next]
	distance := d.position.DistanceMetres(stop.Position)
	perKm := d.perKm()
	metres := min(metresPerSecond*dt.Seconds(), d.battery/perKm*1000)
	if metres < distance {
		d.position = d.position.Towards(stop.Position, metres)
		d.battery = max(0, d.battery-metres/1000*perKm)
		return d, 0
	}
	d.position = stop.Position
	d.battery = max(0, d.battery-distance/1000*perKm)
	left := dt - time.Duration(distance/metresPerSecond*float64(time.Second))
	switch {
	case stop.Duty():
		d.onDuty = true
	case stop.ForOrder():
		d = d.handle(stop)
		d.dwelling, d.dwellLeft, d.reported = true, Dwell, false
	default:
		d = d.passStop()
	}
	return d, max(0, left)
}

// passStop proceeds to the next stop; after the last one the drone has landed and
// its mission is over.
func (d Drone) passStop() Drone {
	d.next++
	if d.next < len(d.route) {
		return d
	}
	d = d.remember(d.mission)
	d.mission, d.route, d.next, d.aboard = "", nil, 0, nil
	d.charging = d.atHome() && d.battery < chargeBelow && !d.noSlot
	return d
}

func (d Drone) charge(dt time.Duration) Drone {
	if !d.atHome() || d.noSlot {
		return d
	}
	if d.battery < chargeBelow {
		d.charging = true
	}
	d.battery = min(100, d.battery+d.chargeRate*dt.Minutes())
	if d.battery >= chargeUntil {
		d.charging = false
	}
	return d
}

// Obey returns the drone after a command that arrives when its clock shows now, and
// whether the command had an effect.
//
// The drone ignores commands for other drones, expired commands, commands of
// missions that it has ended, missions older than its own, and commands of its own
// mission that expire before the one it obeyed last: they are late and would bring
// withdrawn stops back. A drone that supports amendments refuses a revision that does not
// begin with the stops that it has completed. It does not begin a COMPLETED mission, but flies the rest
// of one that it is on: the way home. A revocation never expires, because giving
// up a mission late is still right.
func (d Drone) Obey(c domain.Command, now time.Time) (Drone, bool) {
	m := c.Mission
	d.clock = now
	switch {
	case m.DroneID != d.id || d.deafFor > 0 || m.ID == "":
		return d, false
	case c.Revoke && m.ID != d.mission:
		return d.remember(m.ID), false
	case c.Revoke:
		return d.goHome(), true
	case now.After(c.ExpiresAt) || slices.Contains(d.ended[:], m.ID):
		return d, false
	case m.ID == d.mission && (c.ExpiresAt.Before(d.expires) || m.Status == domain.MissionFailed):
		return d, false
	case m.ID == d.mission && d.amends && m.RouteRevision != d.revision && !d.canFly(m.Route):
		return d, false
	case m.ID == d.mission:
		d.expires, d.revision = c.ExpiresAt, m.RouteRevision
		return d.reroute(m.Route), true
	case m.Status != domain.MissionActive || domain.Standby(m.Route) && !d.standsBy:
		return d, false
	case d.mission != "" && !m.StartTime.After(d.startedAt):
		return d, false
	default:
		return d.start(c), true
	}
}

func (d Drone) start(c domain.Command) Drone {
	d = d.remember(d.mission)
	m := c.Mission
	d.restarted = false
	d.expires, d.revision = c.ExpiresAt, m.RouteRevision
	d.mission, d.startedAt = m.ID, m.StartTime
	// A message names no reached stops; a command that puts the drone back on the mission
	// does.
	d.route = d.endingAtHome(m.Route)
	d.next = min(m.ReachedStops, len(d.route)-1)
	for _, stop := range d.route[:d.next] {
		d = d.handle(stop)
	}
	if d.dwelling {
		d.paused = d.dwellLeft
	}
	d.dwelling, d.onDuty, d.charging = false, false, false
	return d
}

// canFly reports whether a route begins with the stops that the drone has completed or is
// serving: it can be flown from here, with all that is aboard.
func (d Drone) canFly(route []domain.Waypoint) bool {
	if domain.Standby(d.route) {
		return true
	}
	done := d.completed()
	if done > len(route) {
		return false
	}
	for i, stop := range d.route[:done] {
		if !sameStop(stop)(route[i]) {
			return false
		}
	}
	return true
}

// completed counts the stops of the route that the drone has passed, and the one that it
// serves.
func (d Drone) completed() int {
	if d.dwelling {
		return d.next + 1
	}
	return d.next
}

// reroute adopts a changed route of the current mission. Stops that the drone has
// passed stay passed.
func (d Drone) reroute(route []domain.Waypoint) Drone {
	if domain.Standby(d.route) {
		return d.takeOver(route)
	}
	route = d.endingAtHome(route)
	passed := d.route[:d.next]
	if d.dwelling {
		passed = d.route[:d.next+1]
	}
	next := 0
	for next < len(route) && slices.ContainsFunc(passed, sameStop(route[next])) {
		next++
	}
	if d.dwelling && next > 0 && sameStop(route[next-1])(d.route[d.next]) {
		d.route, d.next = route, next-1
		return d
	}
	d.route, d.next, d.dwelling = route, next, false
	if next == len(route) {
		return d.goHome()
	}
	return d
}

func sameStop(w domain.Waypoint) func(domain.Waypoint) bool {
	return func(v domain.Waypoint) bool {
		return v.Type == w.Type && v.OrderID == w.OrderID && v.Position == w.Position &&
			v.ChargeToPercent == w.ChargeToPercent && v.WaitUntil.Equal(w.WaitUntil)
	}
}

// goHome gives up the mission and flies to the depot.
func (d Drone) goHome() Drone {
	d = d.remember(d.mission)
	d.mission, d.dwelling, d.onDuty = "", false, false
	d.route, d.next = d.endingAtHome(nil), 0
	return d
}

// endingAtHome adds the depot to a route that does not end at one, nor where the drone
// charges or waits.
func (d Drone) endingAtHome(route []domain.Waypoint) []domain.Waypoint {
	if n := len(route); n > 0 && (route[n-1].Type == domain.WaypointDepotReturn || route[n-1].Duty()) {
		return route
	}
	return append(slices.Clip(route), domain.Waypoint{Type: domain.WaypointDepotReturn, Position: d.home})
}

func (d Drone) remember(id domain.MissionID) Drone {
	if id != "" && !slices.Contains(d.ended[:], id) {
		copy(d.ended[1:], d.ended[:len(d.ended)-1])
		d.ended[0] = id
	}
	return d
}

// Report returns the drone's report when its clock shows now, and the drone after
// it was sent.
func (d Drone) Report(now time.Time) (Drone, domain.Telemetry) {
	d.reported = d.reported || d.dwelling
	d.clock = now
	t := domain.Telemetry{
		DroneID:   d.id,
		Timestamp: now.UTC().Truncate(time.Microsecond), // as the wire keeps it
		Position:  d.position,
		Battery:   d.battery,
		SpeedKmh:  d.speed(),
		Status:    d.Status(),
		MissionID: d.mission,
	}
	if d.amends {
		t.SupportsAmendments, t.SupportsStandby = true, d.standsBy
		if d.mission != "" {
			completed := d.completed()
			t.MissionRevision, t.CompletedStops = d.revision, &completed
		}
	}
	return d, t
}

// atStop is the stop that the drone serves, for the checker; nil between stops.
func (d Drone) atStop() *invariant.StopReport {
	if !d.dwelling || d.stranded() || !d.route[d.next].ForOrder() {
		return nil
	}
	return &invariant.StopReport{MissionID: d.mission, Route: d.route[:d.next+1]}
}

// Status is what the drone is doing.
func (d Drone) Status() domain.DroneStatus {
	switch {
	case d.stranded():
		return domain.DroneProblem
	case d.dwelling && d.route[d.next].Type == domain.WaypointHospitalDelivery:
		return domain.DroneDelivering
	case d.onDuty && d.route[d.next].Type == domain.WaypointCharge && !d.noSlot:
		return domain.DroneCharging
	case d.onDuty || d.dwelling && d.next == len(d.route)-1 && d.route[d.next].Duty():
		return domain.DroneIdle
	case d.next < len(d.route):
		return domain.DroneMoving
	case d.charging:
		return domain.DroneCharging
	default:
		return domain.DroneIdle
	}
}

func (d Drone) speed() float64 {
	if d.stranded() || d.dwelling || d.onDuty || d.paused > 0 || d.next >= len(d.route) {
		return 0
	}
	return d.cruise()
}

// cruise is the drone's ground speed, in km/h.
func (d Drone) cruise() float64 {
	return cmp.Or(d.pace, 1) * CruiseKmh * (1 - d.wind.Slower)
}

// stranded is a drone that cannot fly on: broken, or empty before it landed.
func (d Drone) stranded() bool {
	return d.brokenFor > 0 || (d.battery <= 0 && d.next < len(d.route) && !d.onDuty)
}

// Silent reports whether the drone sends nothing.
func (d Drone) Silent() bool { return d.silentFor > 0 || d.restarted }

// Restart returns the drone with nothing in its memory. It hovers and is silent until Resume.
func (d Drone) Restart() Drone {
	d.restarted = true
	d.mission, d.route, d.next, d.revision, d.aboard = "", nil, 0, 0, nil
	d.startedAt, d.expires, d.ended = time.Time{}, time.Time{}, [8]domain.MissionID{}
	d.dwelling, d.onDuty, d.charging, d.paused = false, false, false, 0
	return d
}

// Resume returns a drone that has restarted with the mission that it is told to have, nil for
// none, and how many of its stops are completed. Any other drone knows better.
func (d Drone) Resume(m *domain.Mission, completed int) Drone {
	switch {
	case !d.restarted:
		return d
	case m == nil:
		d.restarted = false
		return d.goHome()
	}
	d.restarted = false
	again := *m
	again.ReachedStops = completed
	return d.start(domain.Command{Mission: again})
}

func (d Drone) atHome() bool { return d.position.DistanceMetres(d.home) <= atHomeMetres }
