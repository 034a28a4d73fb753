package conform

import (
	"bytes"
	"time"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

// Bounds of what every report must keep.
const (
	maxSilence = 15 * time.Second
	maxAhead   = 5 * time.Second
	// maxBehind allows for the way of the message.
	maxBehind = 10 * time.Second
	// clockGrace is the error of a drone's clock at a time to wait until.
	clockGrace = time.Second
	// chargeGrace is the rounding of a state of charge, in percent.
	chargeGrace = 0.5
)

// watch is what is known from the drone's reports.
type watch struct {
	heard  int // valid reports
	now    domain.Telemetry
	data   []byte // of the last report
	last   time.Time
	silent bool    // the silence is noted
	counts bool    // the drone counts its stops
	flying *flight // named last, and not ended
	took   int     // highest revision that was named in this flight
	off    []offLimits
}

// offLimits is a point where the drone must not serve a stop.
type offLimits struct {
	at   domain.Position
	rule func() string
	what string
}

// flight is one mission of the examination.
type flight struct {
	mission domain.Mission // as commanded last
	expires time.Time
	routes  map[int][]domain.Waypoint // by revision
	reached map[stopKey]bool
	count   int // the last that was reported
	// banned is the rule that naming the mission breaks, and why; "" if the drone may fly it.
	banned, why  string
	named        bool
	ended        bool
	revoked      bool
	restarted    bool
	repeatedAt   int // the count when its command was repeated; 0 before
	lateRevision int // of a command that is late by now; 0 for none
	unfit        int // revision that the drone must not fly; 0 for none
	revision     int // that was named last
}

type stopKey struct {
	kind     domain.WaypointType
	order    domain.OrderID
	lat, lon float64
}

func keyOf(w domain.Waypoint) stopKey {
	return stopKey{w.Type, w.OrderID, w.Position.Lat, w.Position.Lon}
}

// route is the route that the drone flies, as it says.
func (f *flight) route() []domain.Waypoint {
	if r, ok := f.routes[f.revision]; ok {
		return r
	}
	return f.mission.Route
}

// done counts the stops of the route that were reached, in their order.
func (f *flight) done() (n int) {
	for _, stop := range f.route() {
		if !f.reached[keyOf(stop)] {
			return n
		}
		n++
	}
	return n
}

// visit notes the stops that the drone is at, as far as those before them are reached.
func (f *flight) visit(at domain.Position) {
	for _, stop := range f.route()[f.done():] {
		if at.DistanceMetres(stop.Position) > near {
			return
		}
		f.reached[keyOf(stop)] = true
	}
}

// orderStops counts the stops for orders.
func orderStops(route []domain.Waypoint) (n int) {
	for _, stop := range route {
		if stop.ForOrder() {
			n++
		}
	}
	return n
}

func parked(t domain.Telemetry) bool {
	return t.Status == domain.DroneIdle || t.Status == domain.DroneCharging
}

// silenceFrom excuses the silence up to now, such as that of a restart.
func (x *droneExam) silenceFrom(now time.Time) { x.last, x.silent = now, false }

// quiet notes a drone that does not report.
func (x *droneExam) quiet() {
	if x.heard > 0 && !x.silent && !x.excused() && x.line.Now().Sub(x.last) > maxSilence+x.cfg.Slack {
		x.silent = true
		x.broke("D-01", "no report for %s", maxSilence)
	}
}

// excused reports whether the drone is being restarted.
func (x *droneExam) excused() bool { return x.flying != nil && x.flying.restarted }

// hear judges one message. Messages of other drones are left out.
func (x *droneExam) hear(m Message) {
	id := string(x.cfg.ID)
	sender := m.Attributes[wire.AttrSender]
	itsOwn := m.OrderingKey == id || sender == id
	t, err := wire.DecodeTelemetry(m.Data, m.Attributes)
	switch {
	case err != nil && (itsOwn || m.OrderingKey == "" && sender == ""):
		x.broke("D-02", "a report is refused: %v", err)
		return
	case err != nil || t.DroneID != x.cfg.ID && !itsOwn:
		return
	case t.DroneID != x.cfg.ID:
		x.broke("D-02", "a report has drone_id %q, not %q", t.DroneID, id)
		return
	}
	x.test("D-01", "D-02", "D-03")
	if sender != "" && sender != id {
		x.broke("D-02", "a report has the attribute %s %q, not %q", wire.AttrSender, sender, id)
	}
	if x.cfg.Keys {
		x.test("D-04")
		if m.OrderingKey != id {
			x.broke("D-04", "a report has the ordering key %q, not %q", m.OrderingKey, id)
		}
	}
	if x.heard > 0 && bytes.Equal(m.Data, x.data) {
		return // delivered twice
	}
	x.clock(m, t)
	x.quiet()
	x.last, x.silent = m.Arrived, false
	x.heard++
	x.now, x.data = t, m.Data
	x.counts = x.counts || t.CompletedStops != nil
	if t.MissionID == "" {
		x.unnamed(t)
	} else if f := x.flights[t.MissionID]; f == nil {
		if len(x.flights) > 0 {
			x.broke("D-05", "a report names mission %q, of which there was no command", t.MissionID)
		}
	} else {
		x.names(f, t)
	}
	for _, off := range x.off {
		if t.Position.DistanceMetres(off.at) <= near {
			x.broke(off.rule(), "the drone flew to %s", off.what)
		}
	}
}

// clock judges the time of a report.
func (x *droneExam) clock(m Message, t domain.Telemetry) {
	switch ahead := t.Timestamp.Sub(m.Arrived); {
	case ahead > maxAhead+x.cfg.Slack:
		x.broke("D-03", "a report is more than %s ahead", maxAhead)
	case ahead < -maxBehind-x.cfg.Slack:
		x.broke("D-03", "a report is more than %s old when it arrives", maxBehind)
	}
	if x.heard > 0 && !t.Timestamp.After(x.now.Timestamp) {
		x.broke("D-03", "a report is not newer than the one before")
	}
}

// unnamed judges a report that names no mission.
func (x *droneExam) unnamed(t domain.Telemetry) {
	f := x.flying
	if f == nil {
		return
	}
	standby := domain.Standby(f.mission.Route)
	home := t.Position.DistanceMetres(x.home) <= near
	switch {
	case f.banned != "":
		x.end(f)
	case f.revoked:
		if parked(t) && home {
			x.end(f)
		}
	case standby && f.count < len(f.route()):
		x.broke("D-25", "%s is no longer named, and its last count is %d of %d", f.mission.ID, f.count, len(f.route()))
		x.end(f)
	case standby:
		x.end(f)
	case !parked(t) && f.restarted:
		x.broke("D-19", "%s is not named after the restart", f.mission.ID)
	case !parked(t):
		x.broke("D-06", "%s is no longer named in flight, %.0f m from the depot", f.mission.ID, t.Position.DistanceMetres(x.home))
	case f.done() < orderStops(f.route()) && f.restarted:
		x.broke("D-19", "%s is given up after the restart", f.mission.ID)
		x.end(f)
	case f.done() < orderStops(f.route()):
		x.broke("D-10", "%s has ended with %d of %d stops reached", f.mission.ID, f.done(), orderStops(f.route()))
		x.end(f)
	default:
		x.end(f)
	}
}

func (x *droneExam) end(f *flight) {
	f.ended = true
	if x.flying == f {
		x.flying = nil
	}
}

// names judges a report that names a mission of the examination.
func (x *droneExam) names(f *flight, t domain.Telemetry) {
	if x.flying != nil && x.flying != f {
		x.end(x.flying) // it has begun the next one
	}
	switch {
	case f.banned != "" && !(f.named && parked(t)):
		x.broke(f.banned, "the drone names %s, %s", f.mission.ID, f.why)
	case f.ended && !parked(t):
		x.broke("D-14", "the drone flies %s again, which it had ended", f.mission.ID)
		return
	case f.ended:
		return // it has landed and still names the mission
	}
	if x.flying != f {
		x.took = 0
	}
	x.flying, f.named = f, true
	x.revisions(f, t)
	x.stops(f, t)
	standby := domain.Standby(f.mission.Route)
	switch {
	case standby || f.banned != "" || !parked(t):
	case t.Position.DistanceMetres(x.home) > near:
		x.broke("D-06", "the drone is %s in flight on %s", t.Status, f.mission.ID)
	case f.done() >= orderStops(f.route()):
		x.end(f) // it has landed and still names the mission
	}
}

// revisions judges the revision that a report names.
func (x *droneExam) revisions(f *flight, t domain.Telemetry) {
	if !t.SupportsAmendments && t.MissionRevision == 0 {
		x.skip("the drone names no revisions", "D-22")
		return
	}
	x.test("D-22")
	_, known := f.routes[t.MissionRevision]
	switch {
	case f.banned != "":
	case !known:
		x.broke("D-22", "a report of %s names revision %d, which no command gave", f.mission.ID, t.MissionRevision)
		return
	case t.MissionRevision == f.unfit:
		x.broke("D-21", "the drone flies revision %d of %s, which does not begin with the stops that it has completed", f.unfit, f.mission.ID)
	case t.MissionRevision == f.lateRevision && x.took > f.lateRevision:
		x.broke("D-15", "the drone flies revision %d of %s again, after revision %d", f.lateRevision, f.mission.ID, x.took)
	}
	if f.revision != t.MissionRevision && domain.Standby(f.mission.Route) {
		f.count, f.reached = 0, map[stopKey]bool{} // it counts from the beginning of the new route
	}
	f.revision = t.MissionRevision
	x.took = max(x.took, t.MissionRevision)
}

// stops judges the count of a report against where the drone has been.
func (x *droneExam) stops(f *flight, t domain.Telemetry) {
	f.visit(t.Position)
	if !x.counts {
		x.skip("the drone does not count its stops", "D-11", "D-12")
		return
	}
	route := f.route()
	if t.CompletedStops == nil {
		x.broke("D-11", "a report of %s has no count", f.mission.ID)
		return
	}
	n := *t.CompletedStops
	switch {
	case n > len(route):
		x.broke("D-11", "a report counts %d stops, and the route of %s has %d", n, f.mission.ID, len(route))
		return
	case n < f.count && f.restarted:
		x.broke("D-19", "the count of %s falls from %d to %d after the restart", f.mission.ID, f.count, n)
	case n < f.count && f.repeatedAt > 0 && n < f.repeatedAt:
		x.broke("D-13", "the count of %s falls from %d to %d after its command was repeated", f.mission.ID, f.count, n)
	case n < f.count:
		x.broke("D-11", "the count of %s falls from %d to %d", f.mission.ID, f.count, n)
	}
	for i := f.count; i < n; i++ {
		x.counted(f, i, t)
	}
	f.count = n
}

// counted judges that a report counts stop i.
func (x *droneExam) counted(f *flight, i int, t domain.Telemetry) {
	stop := f.route()[i]
	switch {
	case stop.Type == domain.WaypointWait && t.Timestamp.Before(stop.WaitUntil.Add(-clockGrace)):
		x.broke("D-24", "the drone counts its wait %s too early", stop.WaitUntil.Sub(t.Timestamp).Round(time.Second))
	case stop.Type == domain.WaypointCharge && t.Battery < stop.ChargeToPercent-chargeGrace:
		x.broke("D-24", "the drone counts its charge to %.0f %% with %.1f %%", stop.ChargeToPercent, t.Battery)
	case !f.reached[keyOf(stop)]:
		x.broke("D-12", "stop %d of %s is counted, and no report came from within %d m of it", i+1, f.mission.ID, near)
	}
}
