package fleetsim

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
)

var (
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	home = parisDepot.Position
)

func standing(at domain.Position, battery float64) Drone {
	return NewDrone(domain.Drone{ID: "D", Position: at, Battery: battery}, home)
}

// errand is a mission from one place to another and back to the depot.
func errand(id domain.MissionID, from, to domain.Position) domain.Mission {
	return domain.Mission{
		ID: id, DroneID: "D", OrderIDs: []domain.OrderID{"O"}, Status: domain.MissionActive, StartTime: noon,
		Route: []domain.Waypoint{
			{Type: domain.WaypointWarehousePickup, Position: from, OrderID: "O"},
			{Type: domain.WaypointHospitalDelivery, Position: to, OrderID: "O"},
			{Type: domain.WaypointDepotReturn, Position: home},
		},
	}
}

func command(m domain.Mission) domain.Command {
	return domain.Command{Mission: m, ExpiresAt: noon.Add(20 * time.Second)}
}

func obeying(t *testing.T, d Drone, c domain.Command, now time.Time) Drone {
	t.Helper()
	d, obeyed := d.Obey(c, now)
	if !obeyed {
		t.Fatalf("drone ignored %+v", c)
	}
	return d
}

// change is a change of what a drone reports.
type change struct {
	at      time.Duration
	status  domain.DroneStatus
	mission domain.MissionID
}

// follow advances the drone second by second, takes its report and lists the
// changes.
func follow(d Drone, seconds int) (Drone, []change) {
	var changes []change
	for s := 1; s <= seconds; s++ {
		var r domain.Telemetry
		d, r = d.After(time.Second).Report(noon.Add(time.Duration(s) * time.Second))
		if n := len(changes); n == 0 || changes[n-1].status != r.Status || changes[n-1].mission != r.MissionID {
			changes = append(changes, change{time.Duration(s) * time.Second, r.Status, r.MissionID})
		}
	}
	return d, changes
}

// F-TEL-06: a drone reports its mission from the command until it has landed.
func TestDrone_FliesItsMissionAndLandsWithoutOne(t *testing.T) {
	from, to := hospital("HOSP-ROTHSCHILD").Position, hospital("HOSP-TROUSSEAU").Position
	d := obeying(t, standing(from, 100), command(errand("M", from, to)), noon)
	d, changes := follow(d, 600)

	want := []struct {
		status  domain.DroneStatus
		mission domain.MissionID
	}{
		{domain.DroneMoving, "M"}, // pickup and flight
		{domain.DroneDelivering, "M"},
		{domain.DroneMoving, "M"}, // home
		{domain.DroneIdle, ""},
	}
	if len(changes) != len(want) {
		t.Fatalf("it reported %+v, want %+v", changes, want)
	}
	for i, w := range want {
		if changes[i].status != w.status || changes[i].mission != w.mission {
			t.Errorf("change %d is %+v, want %+v", i, changes[i], w)
		}
	}
	metres := from.DistanceMetres(to) + to.DistanceMetres(home)
	// It charges a little after landing, so the use is bounded from above only.
	if used := 100 - d.battery; used > metres/1000*ConsumptionPerKm+0.01 {
		t.Errorf("it used %.2f %% for %.0f m, want at most %.2f %%", used, metres, metres/1000*ConsumptionPerKm)
	}
}

// Opening orders promise a first delivery within 20 s of the command and most
// others within 40 s.
func TestOrderSource_OpeningOrdersAreDeliveredSoon(t *testing.T) {
	const reachMetres = 75 // a stop is reached within this distance
	within20, within40 := 0, 0
	for _, leg := range [][2]domain.Position{
		{hospital("HOSP-COCHIN").Position, hospital("HOSP-PORT-ROYAL").Position},
		{hospital("HOSP-ROTHSCHILD").Position, hospital("HOSP-TROUSSEAU").Position},
		{warehouseSouth.Position, hospital("HOSP-GUSTAVE-ROUSSY").Position},
		{hospital("HOSP-COCHIN").Position, hospital("HOSP-TARNIER").Position},
	} {
		d := obeying(t, standing(leg[0], 100), command(errand("M", leg[0], leg[1])), noon)
		for s := 1; s <= 60; s++ {
			d, _ = d.After(time.Second).Report(noon)
			if d.position.DistanceMetres(leg[1]) <= reachMetres {
				t.Logf("%.0f m delivered after %d s", leg[0].DistanceMetres(leg[1]), s)
				if s <= 20 {
					within20++
				}
				if s <= 40 {
					within40++
				}
				break
			}
		}
	}
	if within20 < 1 || within40 < 2 {
		t.Errorf("%d short orders are delivered within 20 s and %d within 40 s, want 1 and 2", within20, within40)
	}
}

func TestDrone_CruisesAt50KmhAndDrains(t *testing.T) {
	far := hospital("HOSP-AVICENNE").Position
	d := obeying(t, standing(home, 100), command(errand("M", far, far)), noon)
	d = d.After(time.Minute)
	if flown := home.DistanceMetres(d.position); flown < 832 || flown > 835 {
		t.Errorf("it flew %.1f m in a minute, want 833", flown)
	}
	if used := 100 - d.battery; used < 2.08 || used > 2.09 {
		t.Errorf("it used %.3f %%, want 2.083", used)
	}
	if _, r := d.Report(noon); r.SpeedKmh != CruiseKmh {
		t.Errorf("it reports %v km/h, want %v", r.SpeedKmh, CruiseKmh)
	}
}

func TestDrone_FliesAtItsPace(t *testing.T) {
	far := hospital("HOSP-AVICENNE").Position
	d := obeying(t, standing(home, 100).WithPace(0.75), command(errand("M", far, far)), noon).After(time.Minute)
	if flown := home.DistanceMetres(d.position); flown < 624 || flown > 626 {
		t.Errorf("it flew %.1f m in a minute, want 625", flown)
	}
	if _, r := d.Report(noon); r.SpeedKmh != 37.5 {
		t.Errorf("it reports %v km/h", r.SpeedKmh)
	}
}

// F-TEL-07: a stop counts only by a report from there.
func TestDrone_ReportsBeforeItLeavesAStop(t *testing.T) {
	stop := hospital("HOSP-COCHIN").Position
	d := obeying(t, standing(stop, 100), command(errand("M", stop, stop)), noon)
	d = d.After(time.Hour) // however fast time runs
	if d.next != 0 || !d.dwelling {
		t.Fatal("it left the pickup without having reported from there")
	}
	d, _ = d.Report(noon)
	d = d.After(time.Hour)
	if d.next != 1 || !d.dwelling {
		t.Error("it did not go on to the delivery and wait there")
	}
}

// F-DEC-05 F-TEL-10
func TestDrone_ObeysOnlyValidCommands(t *testing.T) {
	stop := hospital("HOSP-COCHIN").Position
	m := errand("M", stop, stop)
	flying := obeying(t, standing(home, 100), command(m), noon)
	landed := flying
	for landed.mission != "" {
		landed, _ = landed.After(time.Minute).Report(noon)
	}
	revoked := obeying(t, flying, domain.Command{Mission: m, Revoke: true}, noon)
	revokedFirst, _ := standing(home, 100).Obey(domain.Command{Mission: m, Revoke: true}, noon)
	forOther, older, newer, failed := m, errand("M0", stop, stop), errand("M2", stop, stop), m
	forOther.DroneID = "E"
	older.StartTime = noon.Add(-time.Minute)
	newer.StartTime = noon.Add(time.Minute)
	failed.Status = domain.MissionFailed
	completed := m
	completed.Status = domain.MissionCompleted
	early := command(m)
	early.ExpiresAt = early.ExpiresAt.Add(-time.Microsecond)

	for name, row := range map[string]struct {
		drone Drone
		c     domain.Command
		now   time.Time
		want  bool
	}{
		"a mission":                             {standing(home, 100), command(m), noon, true},
		"a mission on its last moment":          {standing(home, 100), command(m), noon.Add(20 * time.Second), true},
		"an expired mission":                    {standing(home, 100), command(m), noon.Add(21 * time.Second), false},
		"another drone's mission":               {standing(home, 100), command(forOther), noon, false},
		"a failed mission":                      {standing(home, 100), command(failed), noon, false},
		"its own mission again":                 {flying, command(m), noon, true},
		"its own mission, failed":               {flying, command(failed), noon, false},
		"its own mission, completed":            {flying, command(completed), noon, true},
		"a completed mission that it never had": {standing(home, 100), command(completed), noon, false},
		"an earlier command of its own mission": {flying, early, noon, false},
		"an older mission while it flies":       {flying, command(older), noon, false},
		"a newer mission while it flies":        {flying, command(newer), noon, true},
		"the mission it has ended":              {landed, command(m), noon, false},
		"a mission that was revoked in flight":  {revoked, command(m), noon, false},
		"a mission whose revocation came first": {revokedFirst, command(m), noon, false},
		"the revocation of another mission":     {flying, domain.Command{Mission: newer, Revoke: true}, noon, false},
		"a late revocation":                     {flying, domain.Command{Mission: m, Revoke: true, ExpiresAt: noon}, noon.Add(time.Hour), true},
		"anything while it is deaf":             {standing(home, 100).WithFault(Fault{Deaf: time.Minute}), command(m), noon, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, obeyed := row.drone.Obey(row.c, row.now); obeyed != row.want {
				t.Errorf("obeyed is %v, want %v", obeyed, row.want)
			}
		})
	}
}

func TestDrone_RevocationSendsItHome(t *testing.T) {
	stop := hospital("HOSP-COCHIN").Position
	m := errand("M", stop, stop)
	d := obeying(t, standing(home, 100), command(m), noon).After(time.Minute)
	d = obeying(t, d, domain.Command{Mission: m, Revoke: true}, noon)
	if _, r := d.Report(noon); r.Status != domain.DroneMoving || r.MissionID != "" {
		t.Errorf("it reports %s with mission %q, want MOVING without one", r.Status, r.MissionID)
	}
	if d = d.After(10 * time.Minute); !d.atHome() || d.Status() != domain.DroneIdle {
		t.Errorf("it is %s at %v, want IDLE at home", d.Status(), d.position)
	}
}

// F-ORD-03: the stops of a cancelled order are dropped in flight.
func TestDrone_KeepsPassedStopsWhenTheRouteChanges(t *testing.T) {
	a, b, c := hospital("HOSP-COCHIN").Position, hospital("HOSP-BROCA").Position, hospital("HOSP-NECKER").Position
	m := errand("M", a, b)
	m.OrderIDs = []domain.OrderID{"O", "P"}
	m.Route = []domain.Waypoint{
		{Type: domain.WaypointWarehousePickup, Position: a, OrderID: "O"},
		{Type: domain.WaypointWarehousePickup, Position: a, OrderID: "P"},
		{Type: domain.WaypointHospitalDelivery, Position: c, OrderID: "P"},
		{Type: domain.WaypointHospitalDelivery, Position: b, OrderID: "O"},
		{Type: domain.WaypointDepotReturn, Position: home},
	}
	withdrawn := m
	withdrawn.OrderIDs = []domain.OrderID{"O"}
	withdrawn.Route = []domain.Waypoint{m.Route[0], m.Route[3], m.Route[4]}

	t.Run("in flight", func(t *testing.T) {
		d := obeying(t, standing(a, 100), command(m), noon)
		for d.next < 2 {
			d, _ = d.After(time.Second).Report(noon)
		}
		d = obeying(t, d, command(withdrawn), noon)
		if d.next != 1 || d.dwelling || d.route[d.next].OrderID != "O" {
			t.Errorf("it flies to stop %d of %+v, want the delivery of O", d.next, d.route)
		}
	})
	// F-DEC-05: the command with the longer route is redelivered after the shorter.
	t.Run("in flight, the longer route again", func(t *testing.T) {
		d := obeying(t, standing(a, 100), command(m), noon)
		for d.next < 2 {
			d, _ = d.After(time.Second).Report(noon)
		}
		shorter := command(withdrawn)
		shorter.ExpiresAt = shorter.ExpiresAt.Add(time.Second)
		d = obeying(t, d, shorter, noon)
		if d, obeyed := d.Obey(command(m), noon); obeyed || d.route[d.next].OrderID != "O" || len(d.route) != 3 {
			t.Errorf("obeyed %v; it flies to stop %d of %+v, want the delivery of O", obeyed, d.next, d.route)
		}
	})
	// F-DEC-05, F-ORD-03
	t.Run("to fly home", func(t *testing.T) {
		d := obeying(t, standing(a, 100), command(m), noon)
		for d.next < 3 {
			d, _ = d.After(time.Second).Report(noon)
		}
		done := m
		done.Status, done.Route = domain.MissionCompleted, append(m.Route[:3:3], m.Route[4])
		d = obeying(t, d, command(done), noon)
		if stop := d.route[d.next]; stop.Type != domain.WaypointDepotReturn || d.mission != "M" {
			t.Errorf("it flies to %+v on %q, want home on M", stop, d.mission)
		}
		d, _ = d.After(time.Hour).Report(noon)
		if !d.atHome() || d.mission != "" {
			t.Errorf("it is at %v on %q, want home on none", d.position, d.mission)
		}
	})
	t.Run("at a stop that stays", func(t *testing.T) {
		d := obeying(t, standing(a, 100), command(m), noon).After(time.Second)
		before := d.dwellLeft
		d = obeying(t, d, command(withdrawn), noon)
		if d.next != 0 || !d.dwelling || d.dwellLeft != before {
			t.Errorf("stop %d, dwelling %v for %v; want it to finish the pickup of O", d.next, d.dwelling, d.dwellLeft)
		}
	})
	t.Run("at a stop that is dropped", func(t *testing.T) {
		d := obeying(t, standing(a, 100), command(m), noon)
		for d.next < 1 {
			d, _ = d.After(time.Second).Report(noon)
		}
		d = obeying(t, d, command(withdrawn), noon)
		if d.next != 1 || d.dwelling {
			t.Errorf("stop %d, dwelling %v; want it on its way to the delivery of O", d.next, d.dwelling)
		}
	})
}

func TestDrone_ChargesAtHome(t *testing.T) {
	d := standing(home, 79).After(time.Second)
	if d.Status() != domain.DroneCharging {
		t.Fatalf("at 79 %% it is %s, want CHARGING", d.Status())
	}
	if d = d.After(time.Minute); d.Status() != domain.DroneCharging || d.battery < 88 {
		t.Errorf("a minute later it is %s at %.1f %%, want CHARGING near 89 %%", d.Status(), d.battery)
	}
	if d = d.After(10 * time.Second); d.Status() != domain.DroneIdle {
		t.Errorf("at %.1f %% it is %s, want IDLE", d.battery, d.Status())
	}
	if away := standing(hospital("HOSP-TENON").Position, 30).After(time.Hour); away.battery != 30 || away.Status() != domain.DroneIdle {
		t.Errorf("away from home it is %s at %.1f %%, want IDLE at 30 %%", away.Status(), away.battery)
	}
}

func TestDrone_BehavesAsItsFaultSays(t *testing.T) {
	stop := hospital("HOSP-TENON").Position
	flying := obeying(t, standing(home, 100), command(errand("M", stop, stop)), noon).After(10 * time.Second)

	broken := flying.WithFault(Fault{Broken: time.Minute})
	if _, r := broken.Report(noon); r.Status != domain.DroneProblem || r.SpeedKmh != 0 || r.MissionID != "M" {
		t.Errorf("broken it reports %+v", r)
	}
	if still := broken.After(59 * time.Second); still.position != flying.position {
		t.Error("broken it moved")
	}
	if again := broken.After(61 * time.Second); again.position == flying.position || again.Status() != domain.DroneMoving {
		t.Error("recovered it does not fly on")
	}

	silent := flying.WithFault(Fault{Silent: time.Minute})
	if !silent.After(59*time.Second).Silent() || silent.After(61*time.Second).Silent() {
		t.Error("its silence does not last a minute")
	}

	low := 0.01
	empty := flying.WithFault(Fault{Battery: &low}).After(time.Hour)
	if empty.battery != 0 || empty.Status() != domain.DroneProblem {
		t.Errorf("out of charge it is %s at %v %%, want PROBLEM at 0 %%", empty.Status(), empty.battery)
	}
}

// Whatever the steps of time and the commands: charge stays within bounds, the
// drone is never IDLE on a mission, and it always lands.
func TestDrone_AlwaysLandsAndNeverIdlesOnAMission(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := noon
		d := standing(rapid.SampledFrom(startingPads()).Draw(t, "pad"), rapid.Float64Range(0, 100).Draw(t, "battery"))
		place := func(name string) domain.Position { return rapid.SampledFrom(hospitals).Draw(t, name).Position }
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				m := errand(domain.MissionID(rapid.StringMatching(`M[1-4]`).Draw(t, "mission")), place("from"), place("to"))
				m.StartTime = now
				d, _ = d.Obey(domain.Command{Mission: m, ExpiresAt: now.Add(time.Second), Revoke: rapid.Bool().Draw(t, "revoke")}, now)
			case 1:
				d = d.WithFault(Fault{
					Silent: time.Duration(rapid.IntRange(0, 60).Draw(t, "silent")) * time.Second,
					Broken: time.Duration(rapid.IntRange(0, 60).Draw(t, "broken")) * time.Second,
				})
			default:
				dt := time.Duration(rapid.IntRange(1, 600_000).Draw(t, "ms")) * time.Millisecond
				now = now.Add(dt)
				d = d.After(dt)
			}
			var r domain.Telemetry
			d, r = d.Report(now)
			if r.Battery < 0 || r.Battery > 100 {
				t.Fatalf("battery is %v", r.Battery)
			}
			if r.MissionID != "" && (r.Status == domain.DroneIdle || r.Status == domain.DroneCharging) {
				t.Fatalf("it reports %s on mission %s", r.Status, r.MissionID)
			}
		}
		full := 100.0
		d.battery = full
		for range 20 { // more stops than are left; each needs a report
			d, _ = d.After(24 * time.Hour).Report(now)
		}
		if d.mission != "" || d.Status() == domain.DroneMoving {
			t.Fatalf("it never landed: %s on %q", d.Status(), d.mission)
		}
	})
}

// rounding, in percent, is what a drone that flies second by second may use more or less: it
// does not keep to the shortest line by some centimetres.
const rounding = 0.01

// landedAfter flies a drone's mission to the end. The drone does not charge.
func landedAfter(t *testing.T, d Drone, m domain.Mission) Drone {
	t.Helper()
	d = obeying(t, d.WithSlot(false), command(m), noon)
	if d, _ = follow(d, 1200); d.mission != "" || d.stranded() {
		t.Fatalf("not landed: %+v", d)
	}
	return d
}

// F-CHG-02: what is aboard counts from the pickup to the delivery, and nowhere else. A drone
// for which payload does not count uses the same whatever it carries.
func TestDrone_UsesMoreChargeTheMoreItCarries(t *testing.T) {
	from, to := hospital("HOSP-ROTHSCHILD").Position, hospital("HOSP-TROUSSEAU").Position
	m := errand("M", from, to)
	start := home
	empty := (start.DistanceMetres(from) + from.DistanceMetres(to) + to.DistanceMetres(home)) / 1000 * ConsumptionPerKm
	for _, row := range []struct {
		name      string
		perKg, kg float64
		scales    bool
		more      float64
	}{
		{"2 kg", 0.5, 2, true, from.DistanceMetres(to) / 1000},
		{"nothing", 0.5, 0, true, 0},
		{"payload does not count", 0, 2, true, 0},
		{"no scales", 0.5, 2, false, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := NewDrone(domain.Drone{ID: "D", Position: start, Battery: 100, ConsumptionPerKmKg: row.perKg}, home)
			if row.scales {
				d = d.Weighing(func(id domain.OrderID) float64 { return map[domain.OrderID]float64{"O": row.kg}[id] })
			}
			if used := 100 - landedAfter(t, d, m).battery; math.Abs(used-empty-row.more) > rounding {
				t.Errorf("used %.6f %%, want %.6f %%", used, empty+row.more)
			}
		})
	}
}

// F-CHG-02: a parcel stays aboard until it is delivered or the drone has landed, whatever
// becomes of the mission. A drone that goes on with one knows what it carries.
func TestDrone_CarriesAParcelUntilItLands(t *testing.T) {
	from, to := hospital("HOSP-ROTHSCHILD").Position, hospital("HOSP-TROUSSEAU").Position
	drone := NewDrone(domain.Drone{ID: "D", Position: from, Battery: 100, ConsumptionPerKmKg: 0.5}, home).
		Weighing(func(domain.OrderID) float64 { return 2 })
	const loaded = ConsumptionPerKm + 1

	revoked, _ := follow(obeying(t, drone.WithSlot(false), command(errand("M", from, to)), noon), 10)
	at, before := revoked.position, revoked.battery
	revoked = obeying(t, revoked, domain.Command{Mission: errand("M", from, to), Revoke: true}, noon)
	revoked, _ = follow(revoked, 1200)
	if used, want := before-revoked.battery, at.DistanceMetres(home)/1000*loaded; math.Abs(used-want) > rounding || len(revoked.aboard) > 0 {
		t.Errorf("flown home with the parcel it used %.6f %%, want %.6f %%, %v aboard", used, want, revoked.aboard)
	}

	again := errand("N", from, to)
	again.ReachedStops = 1
	want := from.DistanceMetres(to)/1000*loaded + to.DistanceMetres(home)/1000*ConsumptionPerKm
	if used := 100 - landedAfter(t, drone, again).battery; math.Abs(used-want) > rounding {
		t.Errorf("put back on its mission it used %.6f %%, want %.6f %%", used, want)
	}
}

// F-DAY-02: against a wind a drone takes longer and uses more; when it is calm again it flies as before.
func TestDrone_FliesSlowerAgainstWind(t *testing.T) {
	flight := func(w Wind) (metres, charge float64) {
		from := hospital("HOSP-ROTHSCHILD").Position
		d := obeying(t, standing(from, 100), command(errand("M", hospital("HOSP-AVICENNE").Position, from)), noon)
		d = d.In(w).After(time.Minute)
		return d.position.DistanceMetres(from), 100 - d.battery
	}
	metres, charge := flight(Wind{})
	slowed, used := flight(Wind{Slower: 0.5, Dearer: 0.2})
	if math.Abs(slowed-metres/2) > 1 || math.Abs(used-charge/2*1.2) > 0.01 {
		t.Errorf("%.0f m for %.2f %%; without wind %.0f m for %.2f %%", slowed, used, metres, charge)
	}
}
