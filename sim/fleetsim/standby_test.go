package fleetsim

import (
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/domain"
)

var advance = domain.Position{Lat: 48.87, Lon: 2.36} // 1.6 km from the depot

func standingBy(at domain.Position, battery float64) Drone {
	return NewDrone(domain.Drone{ID: "D", Position: at, Battery: battery, SupportsAmendments: true, SupportsStandby: true}, home)
}

// duties is a mission without orders of one drone.
func duties(id domain.MissionID, route ...domain.Waypoint) domain.Command {
	c := command(domain.Mission{ID: id, DroneID: "D", Status: domain.MissionActive, StartTime: noon, Route: route, RouteRevision: 1})
	c.ExpiresAt = noon.Add(time.Hour)
	return c
}

func charge(to float64) domain.Waypoint {
	return domain.Waypoint{Type: domain.WaypointCharge, Position: home, ChargeToPercent: to}
}

func wait(minutes int) domain.Waypoint {
	return domain.Waypoint{Type: domain.WaypointWait, Position: advance, WaitUntil: noon.Add(time.Duration(minutes) * time.Minute)}
}

// heard advances the drone second by second and returns its reports.
func heard(d Drone, from, seconds int) (Drone, []domain.Telemetry) {
	var reports []domain.Telemetry
	for s := from + 1; s <= from+seconds; s++ {
		var r domain.Telemetry
		d, r = d.After(time.Second).Report(noon.Add(time.Duration(s) * time.Second))
		reports = append(reports, r)
	}
	return d, reports
}

// F-AMD-06: a drone charges to its level, waits until its time, counts both when they are
// done and not before, and is idle where its route ends.
func TestDrone_ChargesAndWaits(t *testing.T) {
	d, _ := standingBy(home, 50).Report(noon)
	d = obeying(t, d, duties("M", charge(90), wait(10)), noon)
	_, reports := heard(d, 0, 700)
	counted := map[int]time.Duration{}
	for _, r := range reports {
		if r.CompletedStops == nil {
			continue
		}
		since := r.Timestamp.Sub(noon)
		if n := *r.CompletedStops; counted[n] == 0 {
			counted[n] = since
			if n == 1 && r.Battery < 89 {
				t.Errorf("it counts its charge with %.1f %%", r.Battery)
			}
		}
		if *r.CompletedStops == 0 && since < 4*time.Minute && r.Status != domain.DroneCharging {
			t.Fatalf("after %s it is %s", since, r.Status)
		}
	}
	if at := counted[1]; at < 4*time.Minute-time.Second || at > 4*time.Minute+time.Second { // 40 % at 10 % a minute
		t.Errorf("it has charged after %s", at)
	}
	if at := counted[2]; at != 10*time.Minute {
		t.Errorf("it has waited after %s", at)
	}
	last := reports[len(reports)-1]
	if last.Status != domain.DroneIdle || last.MissionID != "" || last.Position != advance || !last.SupportsStandby {
		t.Errorf("at the end it says %+v", last)
	}
}

// F-AMD-06: a drone on standby takes an order at once, whatever it has done so far, and
// counts the stops of the new route.
func TestDrone_LeavesStandbyForAnOrder(t *testing.T) {
	from, to := hospital("HOSP-ROTHSCHILD").Position, hospital("HOSP-TROUSSEAU").Position
	for name, seconds := range map[string]int{"while it charges": 100, "while it flies to where it waits": 270, "while it waits": 500} {
		d, _ := standingBy(home, 50).Report(noon)
		d = obeying(t, d, duties("M", charge(90), wait(20)), noon)
		d, _ = heard(d, 0, seconds)
		c := duties("M", errand("M", from, to).Route...)
		c.Mission.RouteRevision, c.ExpiresAt = 2, c.ExpiresAt.Add(time.Second)
		d = obeying(t, d, c, noon.Add(time.Duration(seconds)*time.Second))
		d, reports := heard(d, seconds, 1)
		if r := reports[0]; r.MissionRevision != 2 || *r.CompletedStops != 0 || r.Status != domain.DroneMoving {
			t.Errorf("%s: it says %+v with %d stops", name, r, *r.CompletedStops)
		}
		_, reports = heard(d, seconds+1, 1500)
		if !slices.ContainsFunc(reports, func(r domain.Telemetry) bool { return r.CompletedStops != nil && *r.CompletedStops == 2 }) {
			t.Errorf("%s: it does not deliver", name)
		}
	}
}

// F-AMD-03: told again of the route that it flies, as after an amendment that is void, a drone
// goes on where it is.
func TestDrone_GoesOnWithTheSameStandby(t *testing.T) {
	d, _ := standingBy(home, 50).Report(noon)
	c := duties("M", charge(90), wait(10))
	d = obeying(t, d, c, noon)
	for s := range 700 {
		c.ExpiresAt = c.ExpiresAt.Add(time.Millisecond)
		if d.mission != "" {
			d, _ = d.Obey(c, noon.Add(time.Duration(s)*time.Second))
		}
		d, _ = d.After(time.Second).Report(noon.Add(time.Duration(s+1) * time.Second))
	}
	if d.Status() != domain.DroneIdle || d.mission != "" || d.position != advance {
		t.Errorf("it is %s on %q", d.Status(), d.mission)
	}
}

// F-AMD-06: an older drone does not take a mission without orders.
func TestDrone_WithoutStandbyIgnoresIt(t *testing.T) {
	if _, obeyed := standing(home, 50).Obey(duties("M", charge(90)), noon); obeyed {
		t.Error("it obeyed")
	}
}

// slotsUsed is a fleet of drones with little charge at a depot with slots, and how many of
// them charge at once, second by second.
func slotsUsed(t *testing.T, slots int, rate float64, seconds int, tell func(*Fleet, time.Time)) (*Fleet, []int) {
	t.Helper()
	w, err := NewWorld(WorldConfig{Drones: 6, Seed: 1, ChargingSlots: slots, ChargeRate: rate})
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Drones {
		w.Drones[i].Position, w.Drones[i].Battery = home, 30
	}
	f, err := NewFleet(w, FleetConfig{}, clockwork.NewFakeClockAt(noon), newNetwork(), NewConfirmations())
	if err != nil {
		t.Fatal(err)
	}
	var used []int
	for s := range seconds {
		now := noon.Add(time.Duration(s) * time.Second)
		if tell != nil {
			tell(f, now)
		}
		charging := 0
		for i := range f.members {
			if r, _, _ := f.report(i, now); r.Status == domain.DroneCharging {
				charging++
			}
		}
		used = append(used, charging)
	}
	return f, used
}

// F-CHG-01: no more drones charge at once than there are slots; the others wait, and all are
// charged in the end, by their rate.
func TestFleet_WaitsForChargingSlots(t *testing.T) {
	for _, c := range []struct {
		slots int
		rate  float64
		most  int
		done  time.Duration // of the last drone: 60 % each
	}{
		{0, 0, 6, 6 * time.Minute},
		{2, 0, 2, 18 * time.Minute},
		{2, 20, 2, 9 * time.Minute},
		{1, 0, 1, 36 * time.Minute},
		{7, 5, 6, 12 * time.Minute},
	} {
		f, used := slotsUsed(t, c.slots, c.rate, 45*60, nil)
		if most := slices.Max(used); most != c.most {
			t.Errorf("%d slots: %d drones charge at once", c.slots, most)
		}
		last := 0
		for s, n := range used {
			if n > 0 {
				last = s
			}
		}
		if d := time.Duration(last) * time.Second; d < c.done-10*time.Second || d > c.done+20*time.Second {
			t.Errorf("%d slots at rate %v: the last one charges after %s, want %s", c.slots, c.rate, d, c.done)
		}
		stats := f.Stats().Charging
		if stats.Slots != c.slots || c.slots > 0 && stats.Most > c.slots || (stats.Waited > 0) != (c.slots > 0 && c.slots < 6) {
			t.Errorf("%d slots: %+v", c.slots, stats)
		}
	}
}

// F-CHG-01, F-AMD-06: a drone that is told to charge waits for a slot, and says so.
func TestFleet_StandbyWaitsForASlot(t *testing.T) {
	f, used := slotsUsed(t, 1, 0, 40*60, func(f *Fleet, now time.Time) {
		if !now.Equal(noon.Add(5 * time.Second)) {
			return
		}
		for i := range f.members {
			c := duties("M", charge(50))
			c.Mission.DroneID, c.Mission.StartTime = f.members[i].drone.id, now
			c.Mission.ID += domain.MissionID(c.Mission.DroneID)
			m := f.advance(i, now)
			m.drone, _ = m.drone.Obey(c, now)
		}
	})
	if slices.Max(used) != 1 {
		t.Errorf("%d charge at once", slices.Max(used))
	}
	for i := range f.members {
		if d := f.members[i].drone; d.mission != "" || d.battery < 50 {
			t.Errorf("drone %s is on %q with %.1f %%", d.id, d.mission, d.battery)
		}
	}
}

// F-CHG-01
func TestNewWorld_RefusesImpossibleCharging(t *testing.T) {
	for name, cfg := range map[string]WorldConfig{
		"negative slots": {ChargingSlots: -1}, "negative rate": {ChargeRate: -1}, "no number": {ChargeRate: nan()},
	} {
		if _, err := NewWorld(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func nan() float64 { zero := 0.0; return zero / zero }
