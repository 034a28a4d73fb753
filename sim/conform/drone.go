package conform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dronefleet/dronefleet/api"
	"github.com/dronefleet/dronefleet/domain"
)

// Message is one message of the drone under examination.
type Message struct {
	Data        []byte
	Attributes  map[string]string
	OrderingKey string
	Arrived     time.Time // by the fleet's clock
}

// Line connects the examination with one drone, over whatever transport.
type Line interface {
	// Next waits about a second of the fleet's time for the next message; ok is false if none
	// came.
	Next(ctx context.Context) (m Message, ok bool, err error)
	Send(ctx context.Context, c domain.Command) error
	// Now is the fleet's time.
	Now() time.Time
}

// Standing is a Line that tells a drone that connects which mission it flies.
type Standing interface {
	// Stand sets the drone's mission, nil for none, and how many of its stops are reached.
	Stand(m *domain.Mission, reached int)
}

// DroneConfig describes the examination of a drone.
type DroneConfig struct {
	ID domain.DroneID
	// Restart restarts the drone's program in flight; nil if nobody can.
	Restart func(context.Context) error
	Keys    bool          // the line has ordering keys
	OwnOnly bool          // the line carries no commands of other drones
	Limit   time.Duration // of the fleet's time; 0 for DroneLimit
	// Slack is added to the times within which a drone must react and report, because the machine
	// takes its time, too, where the fleet's runs faster.
	Slack time.Duration
	// Progress is told what happens; nil for nobody.
	Progress func(string)
}

// DroneLimit is how long the examination of a drone takes at most.
const DroneLimit = 10 * time.Minute

// Times of the examination, in the fleet's time.
const (
	firstReport = time.Minute      // for the drone to appear
	reaction    = 15 * time.Second // to obey, at most
	patience    = 10 * time.Second // to see that nothing is obeyed
	perStop     = 90 * time.Second // from one stop to the next
	keepFor     = 30 * time.Minute // until commands expire that stay valid
	restartTime = 2 * time.Minute  // for the drone to report again after a restart
	waitFor     = 40 * time.Second // of a stop to wait
	chargeTime  = 2 * time.Minute  // for a little charge
)

// Distances, in metres.
const (
	near = 75  // of a stop, from where it counts as reached
	leg  = 150 // from the depot to the stops
)

// errTimeOver ends an examination that takes too long.
var errTimeOver = errors.New("the time was over")

// droneExam is one examination. Its methods that wait return early once err is set.
type droneExam struct {
	*book
	ctx  context.Context
	cfg  DroneConfig
	line Line

	began   time.Time
	err     error
	home    domain.Position
	flights map[domain.MissionID]*flight
	made    int // missions

	watch
}

// Drone examines a drone. It should be idle, charged, and free to fly 450 m around; where it is
// when it first reports is its depot. The error says why there was no examination.
func Drone(ctx context.Context, cfg DroneConfig, line Line) (Summary, error) {
	if cfg.Limit == 0 {
		cfg.Limit = DroneLimit
	}
	x := &droneExam{book: newBook(api.TheRules().Drones, cfg.Progress), ctx: ctx, cfg: cfg, line: line, began: line.Now(), flights: map[domain.MissionID]*flight{}}
	if err := x.meet(); err != nil {
		return Summary{}, err
	}
	for _, part := range []func(){
		x.notForIt, x.firstFlight, x.changes, x.revocation, x.restart, x.onTheWayHome, x.waits, x.givesWay,
	} {
		if x.err == nil {
			part()
		}
	}
	ended := ""
	if x.err != nil {
		ended = x.err.Error()
		if ctx.Err() != nil {
			ended = "interrupted"
		}
	}
	return x.summary("drone "+string(cfg.ID), ended, line.Now().Sub(x.began)), nil
}

// meet waits for the drone's first report.
func (x *droneExam) meet() error {
	x.progress(fmt.Sprintf("waiting for the first report of drone %s", x.cfg.ID))
	if !x.until(firstReport, func() bool { return x.heard > 0 }) {
		if x.err != nil {
			return x.err
		}
		if len(x.findings["D-02"]) > 0 {
			return fmt.Errorf("no valid report of drone %s came within %s: %s", x.cfg.ID, firstReport, x.findings["D-02"][0])
		}
		return fmt.Errorf("no report of drone %s came within %s; start it, and let it report here", x.cfg.ID, firstReport)
	}
	idle := func() bool { return x.now.Status == domain.DroneIdle && x.now.MissionID == "" }
	if !x.until(x.reaction(), idle) {
		if x.err != nil {
			return x.err
		}
		return fmt.Errorf("drone %s is %s with mission %q; let it be IDLE without a mission before the examination", x.cfg.ID, x.now.Status, x.now.MissionID)
	}
	if x.now.Battery < minBattery {
		return fmt.Errorf("drone %s has %.0f %% charge; charge it to %d %% or more before the examination", x.cfg.ID, x.now.Battery, minBattery)
	}
	x.home, x.began = x.now.Position, x.line.Now()
	if !x.now.SupportsAmendments {
		x.skip("the drone does not support amendments", "D-20", "D-21", "D-23")
	}
	if !x.now.SupportsStandby {
		x.skip("the drone does not support standby", "D-24", "D-25", "D-26")
	}
	if !x.cfg.Keys {
		x.skip("this transport has no ordering keys", "D-04")
	}
	if x.cfg.OwnOnly {
		x.skip("this transport carries no commands of other drones", "D-07")
	}
	return nil
}

// minBattery is the charge that the flights of an examination need, in percent.
const minBattery = 40

// until reads messages until met is true, for at most limit of the fleet's time, and reports
// whether it became true.
func (x *droneExam) until(limit time.Duration, met func() bool) bool {
	end := x.line.Now().Add(limit)
	for x.err == nil && !met() {
		now := x.line.Now()
		switch {
		case now.After(end):
			return false
		case now.Sub(x.began) > x.cfg.Limit:
			x.err = errTimeOver
			return false
		}
		m, ok, err := x.line.Next(x.ctx)
		switch {
		case err != nil:
			x.err = err
		case ok:
			x.hear(m)
			x.stand()
		default:
			x.quiet()
		}
	}
	return x.err == nil
}

// reaction is how long the drone may take to obey.
func (x *droneExam) reaction() time.Duration { return reaction + x.cfg.Slack }

// stand tells the line what the drone flies.
func (x *droneExam) stand() {
	line, is := x.line.(Standing)
	if !is {
		return
	}
	if f := x.flying; f != nil && f.banned == "" && !f.revoked {
		line.Stand(&f.mission, f.done())
		return
	}
	line.Stand(nil, 0)
}

// watchFor reads messages for a while.
func (x *droneExam) watchFor(d time.Duration) { x.until(d, func() bool { return false }) }

// at is a point so many metres north and east of the depot.
func (x *droneExam) at(north, east float64) domain.Position {
	const metresPerDegree = 111_200
	return domain.Position{
		Lat: x.home.Lat + north/metresPerDegree,
		Lon: x.home.Lon + east/metresPerDegree/math.Cos(x.home.Lat*math.Pi/180),
	}
}

// The points of the flights.
func (x *droneExam) north() domain.Position { return x.at(leg, 0) }
func (x *droneExam) east() domain.Position  { return x.at(0, leg) }
func (x *droneExam) south() domain.Position { return x.at(-leg, 0) }
func (x *droneExam) west() domain.Position  { return x.at(0, -leg) }

func pickup(order domain.OrderID, p domain.Position) domain.Waypoint {
	return domain.Waypoint{Type: domain.WaypointWarehousePickup, Position: p, OrderID: order}
}

func delivery(order domain.OrderID, p domain.Position) domain.Waypoint {
	return domain.Waypoint{Type: domain.WaypointHospitalDelivery, Position: p, OrderID: order}
}

// back ends a route at the depot.
func (x *droneExam) back() domain.Waypoint {
	return domain.Waypoint{Type: domain.WaypointDepotReturn, Position: x.home}
}

// flight makes a mission for the drone, without a command of it.
func (x *droneExam) flight(route ...domain.Waypoint) *flight {
	x.made++
	now := x.line.Now()
	m := domain.Mission{
		ID: domain.MissionID(fmt.Sprintf("CONFORM-%d-%d", x.began.Unix(), x.made)), DroneID: x.cfg.ID, Status: domain.MissionActive,
		StartTime: now, Route: route, RouteRevision: 1, EstimatedDurationMinutes: 5, EstimatedBatteryConsumption: 5,
	}
	for _, stop := range route {
		if stop.Type == domain.WaypointWarehousePickup {
			m.OrderIDs = append(m.OrderIDs, stop.OrderID)
		}
	}
	f := &flight{mission: m, expires: now.Add(keepFor), routes: map[int][]domain.Waypoint{1: route}, reached: map[stopKey]bool{}}
	x.flights[m.ID] = f
	return f
}

// send sends a command, which the line may fail to take.
func (x *droneExam) send(m domain.Mission, expires time.Time, revoke bool) {
	if x.err == nil {
		x.err = x.line.Send(x.ctx, domain.Command{Mission: m, ExpiresAt: expires, Revoke: revoke})
	}
}

// command commands a flight.
func (x *droneExam) command(f *flight) { x.send(f.mission, f.expires, false) }

// revoke revokes a flight.
func (x *droneExam) revoke(f *flight) {
	f.revoked = true
	m := f.mission
	m.Status = domain.MissionFailed
	x.send(m, time.Time{}, true)
}

// change gives a flight a new route and revision, in a command that expires later.
func (x *droneExam) change(f *flight, route ...domain.Waypoint) {
	f.mission.RouteRevision++
	f.mission.Route = route
	f.routes[f.mission.RouteRevision] = route
	f.expires = f.expires.Add(time.Minute)
	x.command(f)
}

// begin commands a flight and waits until the drone names it.
func (x *droneExam) begin(what string, f *flight) bool {
	x.progress(what)
	x.off = nil
	x.test("D-05")
	x.command(f)
	if x.until(x.reaction(), func() bool { return x.now.MissionID == f.mission.ID }) {
		return true
	}
	if x.err == nil {
		x.broke("D-05", "%s is not named %s after its command", f.mission.ID, x.reaction())
		x.comeHome()
	}
	return false
}

// reach waits until the drone has reached a number of stops of the flight.
func (x *droneExam) reach(f *flight, stops int) bool {
	x.test("D-10")
	for n := f.done(); n < stops; n = f.done() {
		if !x.until(perStop, func() bool { return f.done() > n || f.ended }) || f.ended && f.done() < stops {
			if x.err == nil {
				x.broke("D-10", "stop %d of %s is not reached: no report of it came from within %d m of the stop, within %s", f.done()+1, f.mission.ID, near, perStop)
				x.comeHome()
			}
			return false
		}
	}
	return true
}

// leave waits until the drone has served the first stop of the flight and left it.
func (x *droneExam) leave(f *flight) bool {
	if !x.reach(f, 1) {
		return false
	}
	first := f.route()[0].Position
	if !x.until(perStop, func() bool { return f.ended || x.now.Position.DistanceMetres(first) > near }) {
		if x.err == nil {
			x.broke("D-10", "the drone is still at the first stop of %s after %s", f.mission.ID, perStop)
			x.comeHome()
		}
		return false
	}
	return !f.ended
}

// land waits until the flight has ended at the depot.
func (x *droneExam) land(f *flight) bool {
	x.test("D-06", "D-10")
	if x.counts {
		x.test("D-11", "D-12")
	}
	if x.until(2*perStop, func() bool { return f.ended }) {
		return true
	}
	if x.err == nil {
		x.broke("D-10", "%s is not ended %s after its last stop: the drone is %s, %.0f m from its depot", f.mission.ID, 2*perStop, x.now.Status, x.now.Position.DistanceMetres(x.home))
		x.comeHome()
	}
	return false
}

// comeHome gets a drone that went wrong home, so that other rules can be tested.
func (x *droneExam) comeHome() {
	if f := x.flights[x.now.MissionID]; f != nil && x.now.MissionID != "" {
		x.revoke(f)
	}
	if !x.until(2*perStop, x.parkedAtHome) && x.err == nil {
		x.err = errors.New("the drone did not come home, so the rest was not tested")
	}
}

func (x *droneExam) parkedAtHome() bool {
	return parked(x.now) && x.now.Position.DistanceMetres(x.home) <= near
}

// notForIt sends what the drone must ignore: another drone's command, an expired one, one of a
// mission that has ended, and one of a mission that was revoked before.
func (x *droneExam) notForIt() {
	x.progress("commands that it must ignore")
	x.test("D-08", "D-09", "D-18")
	route := func() []domain.Waypoint {
		return []domain.Waypoint{pickup("O-0", x.south()), delivery("O-0", x.west()), x.back()}
	}
	for _, c := range []struct {
		rule, what string
		send       func(f *flight)
	}{
		{"D-07", "which is another drone's", func(f *flight) {
			if x.cfg.OwnOnly {
				return
			}
			x.test("D-07")
			f.mission.DroneID += "-OTHER"
			x.command(f)
		}},
		{"D-08", "whose command had expired", func(f *flight) {
			f.expires = x.line.Now().Add(-2 * reaction)
			x.command(f)
		}},
		{"D-09", "which is COMPLETED", func(f *flight) {
			f.mission.Status = domain.MissionCompleted
			x.command(f)
		}},
		{"D-18", "which was revoked before its command came", func(f *flight) {
			x.revoke(f)
			x.watchFor(2 * time.Second)
			x.command(f)
		}},
	} {
		f := x.flight(route()...)
		f.banned, f.why = c.rule, c.what
		c.send(f)
		x.watchFor(patience)
		if x.now.MissionID != "" {
			x.comeHome()
		}
	}
}

// firstFlight is a whole mission, whose command is repeated in flight and after it.
func (x *droneExam) firstFlight() {
	f := x.flight(pickup("O-1", x.north()), delivery("O-1", x.east()), x.back())
	if !x.begin("a mission with one order", f) {
		x.err = errors.New("the drone did not take its first mission, so the rest was not tested")
		return
	}
	if !x.leave(f) {
		return
	}
	x.test("D-13")
	f.repeatedAt = f.count
	x.off = append(x.off, offLimits{x.north(), func() string { return "D-13" }, "the first stop again, after its command was repeated"})
	x.command(f)
	if !x.reach(f, 2) || !x.land(f) {
		return
	}
	x.progress("the command of a mission that has ended")
	x.test("D-14")
	x.command(f)
	x.watchFor(patience)
	if !x.parkedAtHome() {
		x.comeHome()
	}
}

// changes withdraws an order in flight, then repeats the command of before, which is late by then,
// and sends a revision that the drone cannot fly.
func (x *droneExam) changes() {
	first := []domain.Waypoint{pickup("O-2", x.north()), delivery("O-2", x.east()), pickup("O-3", x.south()), delivery("O-3", x.west()), x.back()}
	f := x.flight(first...)
	if !x.begin("a mission whose second order is withdrawn", f) || !x.leave(f) {
		return
	}
	was, expired := f.mission, f.expires
	x.test("D-15", "D-16")
	x.off = append(x.off, offLimits{x.south(), func() string {
		if x.took < 2 && x.now.SupportsAmendments {
			return "D-16"
		}
		return "D-15"
	}, "the pickup of the order that was withdrawn"})
	x.change(f, first[0], first[1], x.back())
	if x.now.SupportsAmendments {
		x.test("D-20")
		if !x.until(x.reaction(), func() bool { return x.now.MissionRevision == 2 }) && x.err == nil {
			x.broke("D-20", "revision 2 of %s is not named %s after its command", f.mission.ID, x.reaction())
		}
	} else {
		x.watchFor(2 * time.Second)
	}
	f.lateRevision = 1
	x.send(was, expired, false)
	x.watchFor(2 * time.Second)
	if x.now.SupportsAmendments {
		x.test("D-21")
		f.unfit = 3
		m := f.mission
		m.RouteRevision = 3
		m.Route = []domain.Waypoint{pickup("O-4", x.south()), delivery("O-4", x.west()), x.back()}
		f.routes[3] = m.Route
		x.send(m, f.expires.Add(time.Minute), false)
	}
	if x.reach(f, 2) {
		x.land(f)
	}
}

// revocation revokes a mission with its parcel aboard, and sends its command again.
func (x *droneExam) revocation() {
	f := x.flight(pickup("O-5", x.north()), delivery("O-5", x.east()), x.back())
	if !x.begin("a mission that is revoked with its parcel aboard", f) || !x.leave(f) {
		return
	}
	x.test("D-17", "D-18")
	x.off = append(x.off, offLimits{x.east(), func() string { return "D-17" }, "the delivery of the mission that was revoked"})
	x.revoke(f)
	if !x.until(x.reaction(), func() bool { return x.now.MissionID != f.mission.ID || x.parkedAtHome() }) && x.err == nil {
		x.broke("D-17", "%s is still named %s after its revocation", f.mission.ID, x.reaction())
	}
	if !x.until(2*perStop, x.parkedAtHome) {
		if x.err == nil {
			x.broke("D-17", "the drone did not return to its depot within %s after the revocation of %s", 2*perStop, f.mission.ID)
			x.comeHome()
		}
		return
	}
	f.banned, f.why, f.expires = "D-18", "which was revoked", f.expires.Add(time.Minute)
	x.command(f)
	x.watchFor(patience)
	if !x.parkedAtHome() {
		x.comeHome()
	}
}

// restart restarts the drone in flight.
func (x *droneExam) restart() {
	if x.cfg.Restart == nil {
		x.skip("nobody could restart the drone; give a restart command, or answer at the terminal", "D-19")
		return
	}
	f := x.flight(pickup("O-6", x.north()), delivery("O-6", x.east()), x.back())
	if !x.begin("a restart in flight", f) || !x.leave(f) {
		return
	}
	x.test("D-19")
	f.restarted = true
	if err := x.cfg.Restart(x.ctx); err != nil {
		x.err = fmt.Errorf("restart the drone: %w", err)
		return
	}
	at, before := x.line.Now(), x.heard
	x.silenceFrom(at)
	// A broker may still have reports of the program before.
	again := func() bool { return x.heard > before && !x.now.Timestamp.Before(at) }
	if !x.until(restartTime, again) {
		if x.err == nil {
			x.broke("D-19", "no report came within %s after the restart", restartTime)
			x.err = errors.New("the drone did not return from its restart, so the rest was not tested")
		}
		return
	}
	if !x.until(x.reaction(), func() bool { return again() && x.now.MissionID == f.mission.ID }) {
		if x.err == nil {
			x.broke("D-19", "%s is not named after the restart", f.mission.ID)
			x.comeHome()
		}
		return
	}
	if x.reach(f, 2) {
		x.land(f)
	}
}

// onTheWayHome sends the next mission while the drone flies home.
func (x *droneExam) onTheWayHome() {
	if !x.now.SupportsAmendments {
		return
	}
	f := x.flight(pickup("O-7", x.east()), delivery("O-7", x.at(0, 3*leg)), x.back())
	if !x.begin("the next mission on the way home", f) || !x.reach(f, 2) {
		return
	}
	// It puts the parcel down first.
	if !x.until(perStop, func() bool { return f.ended || x.now.Position.DistanceMetres(x.at(0, 3*leg)) > near }) || f.ended {
		return
	}
	x.test("D-23")
	next := x.flight(pickup("O-8", x.south()), delivery("O-8", x.west()), x.back())
	x.off = nil
	x.command(next)
	took := x.until(x.reaction(), func() bool { return x.now.MissionID == next.mission.ID || f.ended })
	if x.err != nil {
		return
	}
	if !took || f.ended && x.now.MissionID != next.mission.ID {
		x.broke("D-23", "%s is not named on the way home from %s", next.mission.ID, f.mission.ID)
		if !x.until(2*perStop, func() bool { return x.now.MissionID == next.mission.ID || x.parkedAtHome() }) || x.now.MissionID != next.mission.ID {
			x.comeHome()
			return
		}
	}
	if x.reach(next, 2) {
		x.land(next)
	}
}

// waits has the drone wait away from its depot.
func (x *droneExam) waits() {
	if !x.now.SupportsStandby {
		return
	}
	until := x.line.Now().Add(waitFor).Truncate(time.Millisecond)
	f := x.flight(domain.Waypoint{Type: domain.WaypointWait, Position: x.west(), WaitUntil: until})
	if !x.begin("a mission to wait elsewhere", f) {
		return
	}
	x.test("D-24", "D-25")
	if !x.until(waitFor+perStop, func() bool { return f.count >= 1 || f.ended }) {
		if x.err == nil {
			x.broke("D-24", "the stop of %s is not counted %s after the time to wait until", f.mission.ID, perStop)
			x.comeHome()
		}
		return
	}
	x.until(x.reaction(), func() bool { return f.ended })
}

// givesWay gives a drone that waits another route, which does not begin with what it has completed.
func (x *droneExam) givesWay() {
	if !x.now.SupportsStandby {
		return
	}
	now := x.line.Now()
	f := x.flight(
		domain.Waypoint{Type: domain.WaypointWait, Position: x.home, WaitUntil: now.Add(waitFor).Truncate(time.Millisecond)},
		domain.Waypoint{Type: domain.WaypointWait, Position: x.home, WaitUntil: now.Add(keepFor).Truncate(time.Millisecond)})
	if !x.begin("a mission to wait that gives way to a charge", f) {
		return
	}
	if !x.until(waitFor+perStop, func() bool { return f.count >= 1 }) {
		if x.err == nil {
			x.broke("D-24", "the first stop of %s is not counted %s after the time to wait until", f.mission.ID, perStop)
		}
		return
	}
	x.test("D-26")
	target := min(100, math.Ceil(x.now.Battery)+1)
	x.change(f, domain.Waypoint{Type: domain.WaypointCharge, Position: x.home, ChargeToPercent: target})
	if !x.until(x.reaction(), func() bool { return x.now.MissionRevision == 2 }) {
		if x.err == nil {
			x.broke("D-26", "revision 2 of %s is not named %s after its command", f.mission.ID, x.reaction())
		}
		return
	}
	if !x.until(chargeTime, func() bool { return f.count >= 1 || f.ended }) && x.err == nil {
		if x.now.Battery >= target {
			x.broke("D-24", "the charge of %s to %.0f %% is reached and not counted", f.mission.ID, target)
		}
		return
	}
	x.until(x.reaction(), func() bool { return f.ended })
}
