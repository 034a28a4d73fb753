package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

var written = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func byForetelling() DronePolicy {
	p := DefaultDronePolicy()
	p.Foretelling = DefaultForetelling()
	return p
}

// northbound is a bound drone that flies north at 10 m/s, as it was written.
func northbound() Binding {
	at := domain.Position{Lat: 48.8, Lon: 2.3}
	return Binding{
		Drone: domain.Drone{
			ID: "D1", Status: domain.DroneMoving, ReportedStatus: domain.DroneMoving, Position: at, Battery: 62, SpeedKmh: 36,
			LastUpdate: written, SeenAt: written, CurrentMissionID: "M1", MissionAcked: true, MissionMoved: true,
			Motion: domain.Motion{At: written, North: 10, ErrorMetres: 25, Lasts: DefaultForetelling().Longest()},
			Track:  &domain.Track{Position: at, At: written, MissionID: "M1"},
		},
		Mission: &domain.Mission{
			ID: "M1", DroneID: "D1", Status: domain.MissionActive, OrderIDs: []domain.OrderID{"O1"}, StartTime: written,
			Route: []domain.Waypoint{{Type: domain.WaypointHospitalDelivery, OrderID: "O1", Position: at.Moved(3000, 0)}},
		},
		Orders: map[domain.OrderID]domain.Order{"O1": {ID: "O1", Status: domain.OrderInDelivery, AssignedDroneID: "D1", AssignedMissionID: "M1"}},
	}
}

// after is the drone's report so many seconds later, where its motion foretells it.
func (b Binding) after(seconds float64) domain.Telemetry {
	d := b.Drone
	return domain.Telemetry{
		DroneID: d.ID, Timestamp: written.Add(time.Duration(seconds * float64(time.Second))), Position: d.Position.Moved(d.Motion.North*seconds, d.Motion.East*seconds),
		Battery: d.Battery, SpeedKmh: d.SpeedKmh, Status: d.ReportedStatus, MissionID: d.CurrentMissionID,
	}
}

// F-POS-01: what a report must say to be written.
func TestDronePolicy_PositionDue(t *testing.T) {
	p := byForetelling()
	none := func(*Binding, *domain.Telemetry) {}
	for _, c := range []struct {
		what    string
		seconds float64
		change  func(*Binding, *domain.Telemetry)
		due     bool
	}{
		{"a report where it was foretold", 1, none, false},
		{"another one, before the heartbeat", 7, none, false},
		{"one at the heartbeat", 8, none, true},
		{"20 m aside", 3, func(_ *Binding, r *domain.Telemetry) { r.Position = r.Position.Moved(0, 20) }, false},
		{"30 m aside", 3, func(_ *Binding, r *domain.Telemetry) { r.Position = r.Position.Moved(0, 30) }, true},
		{"it has stopped", 3, func(b *Binding, r *domain.Telemetry) { r.Position = b.Drone.Position }, true},
		{"in the same battery class", 1, func(_ *Binding, r *domain.Telemetry) { r.Battery = 60.1 }, false},
		{"in the next battery class", 1, func(_ *Binding, r *domain.Telemetry) { r.Battery = 59.9 }, true},
		{"a percent less below 30", 1, func(b *Binding, r *domain.Telemetry) { b.Drone.Battery, r.Battery = 28, 27.9 }, true},
		{"near the stop ahead", 1, func(b *Binding, _ *domain.Telemetry) { b.Mission.Route[0].Position = b.Drone.Position.Moved(400, 0) }, true},
		{"near a stop that is reached", 1, func(b *Binding, _ *domain.Telemetry) {
			b.Mission.Route = append([]domain.Waypoint{{Type: domain.WaypointWarehousePickup, OrderID: "O1", Position: b.Drone.Position}}, b.Mission.Route...)
			b.Mission.ReachedStops, b.Drone.Track.Stops = 1, 1
			b.Mission.Sightings = []domain.Sighting{{Stop: 0, At: written.Add(-time.Minute)}}
		}, false},
		{"near a stop of the amendment", 1, func(b *Binding, _ *domain.Telemetry) {
			b.Mission.CommandExpiresAt = written.Add(time.Minute)
			b.Mission.Amendment = &domain.Amendment{Revision: 2, Route: []domain.Waypoint{{Type: domain.WaypointHospitalDelivery, Position: b.Drone.Position.Moved(400, 0)}}}
		}, true},
		{"another status", 1, func(_ *Binding, r *domain.Telemetry) { r.Status = domain.DroneDelivering }, true},
		{"another serial number", 1, func(_ *Binding, r *domain.Telemetry) { r.SerialNumber = "S2" }, true},
		{"it takes amendments now", 1, func(_ *Binding, r *domain.Telemetry) { r.SupportsAmendments = true }, true},
		{"it names another revision", 1, func(b *Binding, _ *domain.Telemetry) { b.Drone.NamedRevision = 1 }, true},
		{"it flies on without naming its mission", 1, func(_ *Binding, r *domain.Telemetry) { r.MissionID = "" }, false},
		{"it has landed", 1, func(_ *Binding, r *domain.Telemetry) { r.Status, r.MissionID = domain.DroneIdle, "" }, true},
		{"an earlier version moved it", 1, func(b *Binding, _ *domain.Telemetry) { b.Drone.Motion.At = written.Add(-time.Second) }, true},
		{"its document has no motion", 1, func(b *Binding, _ *domain.Telemetry) { b.Drone.Motion = domain.Motion{} }, true},
		{"its motion was spoiled", 1, func(b *Binding, _ *domain.Telemetry) { b.Drone.Motion.East = math.NaN() }, true},
		{"it reports every five seconds", 5, none, false},
		{"it reports every six seconds", 6, none, true},
	} {
		b := northbound()
		report := b.after(c.seconds)
		c.change(&b, &report)
		before := b // the cache has the reports until then
		if !strings.HasPrefix(c.what, "it reports every") {
			before.Drone.LastUpdate = report.Timestamp.Add(-time.Second)
		}
		after, _, err := p.ApplyTelemetry(b, report, report.Timestamp)
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got := p.PositionDue(&b.Drone, &before.Drone, &after.Drone, after.Mission, report.Timestamp); got != c.due {
			t.Errorf("%s: due %t, want %t", c.what, got, c.due)
		}
		if q := DefaultDronePolicy(); !q.PositionDue(&b.Drone, &before.Drone, &after.Drone, after.Mission, report.Timestamp) {
			t.Errorf("%s: not due although every report is written", c.what)
		}
	}
}

// F-POS-01: the cache keeps a mission that has ended, whose drone may stand near a stop for hours.
func TestDronePolicy_EndedMissionsHaveNoStopAhead(t *testing.T) {
	p, b := byForetelling(), northbound()
	b.Mission.Route[0].Position = b.Drone.Position
	after := b.Drone
	after.SeenAt, after.LastUpdate = b.Drone.SeenAt.Add(time.Second), b.Drone.LastUpdate.Add(time.Second)
	after.Position = b.Drone.Motion.From(b.Drone.Position, time.Second)
	if !p.PositionDue(&b.Drone, &b.Drone, &after, b.Mission, after.SeenAt) {
		t.Error("not due near the stop ahead")
	}
	b.Drone.CurrentMissionID, after.CurrentMissionID = "", ""
	if p.PositionDue(&b.Drone, &b.Drone, &after, b.Mission, after.SeenAt) {
		t.Error("due although the mission has ended")
	}
}

// F-POS-01: a field that somebody adds to drones is written unless it is listed as one that later
// reports repeat.
func TestSameButWhereabouts_SeesEveryOtherField(t *testing.T) {
	repeated := map[string]bool{"Position": true, "Battery": true, "SpeedKmh": true, "Motion": true, "LastUpdate": true, "SeenAt": true, "DueAt": true, "FlightSeconds": true}
	drone := reflect.TypeFor[domain.Drone]()
	for i := range drone.NumField() {
		a, b := northbound().Drone, northbound().Drone
		alter(t, reflect.ValueOf(&b).Elem().Field(i))
		if name := drone.Field(i).Name; sameButWhereabouts(&a, &b) != repeated[name] {
			t.Errorf("another %s: same %t, want %t", name, !repeated[name], repeated[name])
		}
	}
	a, b := northbound().Drone, northbound().Drone
	b.Track.Position, b.Track.At = b.Track.Position.Moved(50, 0), b.Track.At.Add(time.Second)
	if !sameButWhereabouts(&a, &b) {
		t.Error("a track that moved along counts as another state")
	}
	if b.Track.Stops++; sameButWhereabouts(&a, &b) {
		t.Error("a stop that can be completed now does not count")
	}
}

// alter gives a field another value.
func alter(t *testing.T, v reflect.Value) {
	t.Helper()
	if at, ok := v.Interface().(time.Time); ok {
		v.Set(reflect.ValueOf(at.Add(time.Minute)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		} else {
			v.SetZero()
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), v.Len()+1, v.Len()+1))
	case reflect.Struct:
		alter(t, v.Field(0))
	default:
		t.Fatalf("alter cannot change a %s; teach it", v.Kind())
	}
}

// dueRule says whether a report must be written that took a binding from before to after.
type dueRule func(p DronePolicy, stored, before, after *Binding, change Change, now time.Time) bool

// mustWrite is the rule of production.
func mustWrite(p DronePolicy, stored, before, after *Binding, change Change, now time.Time) bool {
	return !change.OnlyWhereabouts() || !change.WithinDrone() || p.PositionDue(&stored.Drone, &before.Drone, &after.Drone, after.Mission, now)
}

// judgeUnwritten draws reports of a drone. It returns what was wrong with one that the rule left unwritten.
func judgeUnwritten(t *rapid.T, rule dueRule) error {
	p, b := byForetelling(), northbound()
	stored, now := b, written
	for range rapid.IntRange(1, 30).Draw(t, "reports") {
		now = now.Add(rapid.SampledFrom([]time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 5 * time.Second, 9 * time.Second}).Draw(t, "pause"))
		report := domain.Telemetry{
			DroneID: "D1", Timestamp: now, Battery: rapid.Float64Range(0, 100).Draw(t, "battery"), SpeedKmh: 36,
			Status:   rapid.SampledFrom([]domain.DroneStatus{domain.DroneMoving, domain.DroneMoving, domain.DroneDelivering, domain.DroneIdle, domain.DroneProblem}).Draw(t, "status"),
			Position: b.Drone.Position.Moved(rapid.Float64Range(-40, 40).Draw(t, "north"), rapid.Float64Range(-40, 40).Draw(t, "east")), MissionID: b.Drone.CurrentMissionID,
		}
		if rapid.Bool().Draw(t, "keeps its charge") {
			report.Battery = b.Drone.Battery
		}
		if rapid.IntRange(0, 9).Draw(t, "stop") == 0 && b.Mission != nil {
			report.Position = b.Mission.Route[0].Position
		}
		before := b
		after, change, err := p.ApplyTelemetry(b, report, now)
		if err != nil {
			return err
		}
		b = after
		if rule(p, &stored, &before, &after, change, now) {
			stored = after
			continue
		}
		w := stored.Drone.WhereaboutsAt(now)
		if off := w.DistanceMetres(report.Position); off > w.ErrorMetres {
			return fmt.Errorf("not written, and %.0f m from where readers see it; bound %.0f m", off, w.ErrorMetres)
		}
		if age := now.Sub(stored.Drone.SeenAt); age > p.Foretelling.Longest() {
			return fmt.Errorf("not written for %s", age)
		}
		if !reflect.DeepEqual(stored.Mission, b.Mission) || !reflect.DeepEqual(stored.Orders, b.Orders) || stored.Drone.Status != b.Drone.Status {
			return fmt.Errorf("not written: %+v, %+v", b.Drone, b.Mission)
		}
	}
	return nil
}

// F-POS-01, F-POS-03: whatever a drone reports and however often, a report that is not written says
// what readers foretell, nothing that it proves is lost, and the document is never older than the
// longest time between two writes.
func TestDronePolicy_UnwrittenReportsSayNothingNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := judgeUnwritten(t, mustWrite); err != nil {
			t.Fatal(err)
		}
	})
}

// F-POS-03: the check above notices each rule that leaves too much unwritten.
func TestJudgeUnwritten_NoticesWrongRules(t *testing.T) {
	with := func(change func(*Foretelling)) dueRule {
		return func(p DronePolicy, stored, before, after *Binding, c Change, now time.Time) bool {
			change(&p.Foretelling)
			return mustWrite(p, stored, before, after, c, now)
		}
	}
	for name, rule := range map[string]dueRule{
		"a report that proves a stop is skipped": func(p DronePolicy, stored, before, after *Binding, c Change, now time.Time) bool {
			return len(c.Missions) == 0 && mustWrite(p, stored, before, after, c, now)
		},
		"a change of status is skipped": func(p DronePolicy, stored, before, after *Binding, c Change, now time.Time) bool {
			return before.Drone.Status == after.Drone.Status && mustWrite(p, stored, before, after, c, now)
		},
		"a turn is skipped":        with(func(f *Foretelling) { f.ErrorMetres = 1000 }),
		"the heartbeat is skipped": with(func(f *Foretelling) { f.Heartbeat = time.Hour }),
	} {
		t.Run(name, func(t *testing.T) {
			histories := rapid.Custom(func(t *rapid.T) error { return judgeUnwritten(t, rule) })
			for seed := range 1000 {
				if histories.Example(seed) != nil {
					return
				}
			}
			t.Error("1000 histories show nothing wrong")
		})
	}
}

// F-POS-03: a heartbeat with which a drone that reports could look silent is refused.
func TestForetelling_RefuseALongHeartbeat(t *testing.T) {
	for heartbeat, ok := range map[time.Duration]bool{0: false, time.Second: true, 8 * time.Second: true, 9700 * time.Millisecond: true, 10 * time.Second: false, time.Minute: false} {
		if err := (Foretelling{ErrorMetres: 25, Heartbeat: heartbeat}).Check(Limits{}); (err == nil) != ok {
			t.Errorf("%s: %v", heartbeat, err)
		}
		if err := (Foretelling{Heartbeat: heartbeat}).Check(Limits{}); err != nil {
			t.Errorf("%s, although every report is written: %v", heartbeat, err)
		}
	}
}

// F-POS-02: readers see 99.99 % of positions within the bound and one report's way, and none
// further off than one more, in gusts and with the noise of satellite navigation.
func TestDronePolicy_ReadersSeeWhereDronesAre(t *testing.T) {
	const (
		cruise, gust, crosswind, noise = 14.0, 1.5, 3.0, 1.5 // metres a second, of the noise metres
		step                           = 0.1
		way                            = cruise + 2*gust + crosswind // in a second
	)
	p := byForetelling()
	reads, beyond, worst, writes, seconds := 0, 0, 0.0, 0, 0
	for seed := range longtest.Size(t, "drones", uint64(10), 150) {
		random := rand.New(rand.NewPCG(seed, 5))
		b := northbound()
		b.Mission.Route[0].Position = b.Drone.Position.Moved(1e6, 0) // far: only the flight between stops is judged
		truth, heading, along, across := b.Drone.Position, random.Float64()*2*math.Pi, 0.0, 0.0
		b.Drone.Motion, b.Drone.LastUpdate, b.Drone.SeenAt = domain.Motion{}, time.Time{}, time.Time{}
		stored := b
		var pending *Binding // a write on its way
		var visible, told time.Time
		for tick := range 6000 {
			now := written.Add(time.Duration(float64(tick) * step * float64(time.Second)))
			if tick%900 == 899 {
				heading += (random.Float64() - 0.5) * math.Pi // a stop, where it turns
			}
			along += (-along/5)*step + gust*math.Sqrt(2*step/5)*random.NormFloat64()
			across += (-across/3)*step + 0.5*math.Sqrt(2*step/3)*random.NormFloat64()
			v, w := cruise+math.Max(-2*gust, math.Min(2*gust, along)), math.Max(-crosswind, math.Min(crosswind, across))
			truth = truth.Moved((v*math.Cos(heading)-w*math.Sin(heading))*step, (v*math.Sin(heading)+w*math.Cos(heading))*step)
			if pending != nil && !now.Before(visible) {
				stored, pending = *pending, nil
			}
			if tick%10 == 0 {
				report := domain.Telemetry{
					DroneID: "D1", Timestamp: now, Position: truth.Moved(noise*random.NormFloat64(), noise*random.NormFloat64()), Battery: 62,
					SpeedKmh: 3.6 * v, Status: domain.DroneMoving, MissionID: "M1",
				}
				came := now.Add(time.Duration(30+random.ExpFloat64()*40) * time.Millisecond)
				after, _, err := p.ApplyTelemetry(b, report, came)
				if err != nil {
					t.Fatal(err)
				}
				last := stored
				if pending != nil {
					last = *pending
				}
				if p.PositionDue(&last.Drone, &b.Drone, &after.Drone, after.Mission, came) {
					written := after
					pending, visible = &written, came.Add(time.Duration(20+random.ExpFloat64()*40)*time.Millisecond)
					writes++
				}
				b = after
				seconds++
				told = now
			}
			if tick < 100 || told.IsZero() {
				continue
			}
			seen := stored.Drone.WhereaboutsAt(now)
			reads++
			off := seen.DistanceMetres(truth) - seen.ErrorMetres
			worst = math.Max(worst, off)
			if off > way {
				beyond++
			}
		}
	}
	t.Logf("%d reads, %d beyond the bound and one report's way, the worst %.1f m beyond the bound; %.1f s between two writes", reads, beyond, worst, float64(seconds)/float64(writes))
	if float64(beyond) > 1e-4*float64(reads) || worst > 2*way {
		t.Errorf("%d of %d reads are beyond the bound and one report's way, the worst by %.1f m; a report's way is %.1f m", beyond, reads, worst, way)
	}
}
