package conform

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/api"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

const droneID = "DRONE-1"

var depot = domain.Position{Lat: 48.8566, Lon: 2.3522}

// flown is a simulated drone on a line of its own time: each wait for a message takes a second of
// it. The hooks make it break a rule; what they leave nil is right.
type flown struct {
	drone fleetsim.Drone
	spec  domain.Drone
	now   time.Time
	tick  time.Duration
	begun time.Time
	pace  float64 // of the usual speed; 0 for all of it
	spoke int     // reports so far

	command func(*flown, *domain.Command) bool   // before the drone hears it; false loses it
	report  func(*flown, *domain.Telemetry) bool // before it is sent; false loses it
	message func(*Message)
	after   func(*flown) // every tick
	restart func(*flown)

	named  domain.MissionID // by the report before
	obeyed domain.Command   // last
}

func newFlown() *flown {
	began := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	spec := domain.Drone{ID: droneID, Position: depot, Battery: 92, SupportsAmendments: true, SupportsStandby: true}
	return &flown{drone: fleetsim.NewDrone(spec, depot), spec: spec, now: began, begun: began, tick: time.Second}
}

// Now implements Line.
func (f *flown) Now() time.Time { return f.now }

// Next implements Line.
func (f *flown) Next(context.Context) (Message, bool, error) {
	f.now = f.now.Add(f.tick)
	f.drone = f.drone.After(f.tick)
	if f.after != nil {
		f.after(f)
	}
	var t domain.Telemetry
	f.drone, t = f.drone.Report(f.now)
	f.spoke++
	if f.report != nil && !f.report(f, &t) {
		return Message{}, false, nil
	}
	f.named = t.MissionID
	data, attrs, err := wire.EncodeTelemetry(t, wire.JSON)
	if err != nil {
		return Message{}, false, err
	}
	m := Message{Data: data, Attributes: attrs, OrderingKey: droneID, Arrived: f.now}
	if f.message != nil {
		f.message(&m)
	}
	return m, true, nil
}

// Send implements Line.
func (f *flown) Send(_ context.Context, c domain.Command) error {
	if f.command != nil && !f.command(f, &c) {
		return nil
	}
	obeyed := false
	if f.drone, obeyed = f.drone.Obey(c, f.now); obeyed {
		f.obeyed = c
	}
	return nil
}

// fresh is the drone as it is, without any memory of missions.
func (f *flown) fresh() {
	var t domain.Telemetry
	_, t = f.drone.Report(f.now)
	spec := f.spec
	spec.Position, spec.Battery = t.Position, t.Battery
	f.drone = fleetsim.NewDrone(spec, depot)
}

// examine has the kit examine a drone.
func examine(t *testing.T, f *flown) Summary {
	t.Helper()
	s, err := Drone(t.Context(), DroneConfig{ID: droneID, Keys: true, Restart: func(context.Context) error {
		if f.restart != nil {
			f.restart(f)
		}
		return nil
	}}, f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func verdictOf(s Summary, id string) Verdict {
	for _, r := range s.Results {
		if r.ID == id {
			return r.Verdict
		}
	}
	return ""
}

func printed(s Summary) string {
	var b strings.Builder
	_ = s.Print(&b) // to a builder
	return b.String()
}

// F-KIT-01: a drone that keeps the rules keeps every one of them, in less than ten minutes of its
// time.
func TestDrone_PassesACorrectOne(t *testing.T) {
	t.Parallel()
	f := newFlown()
	s := examine(t, f)
	for _, r := range s.Results {
		if r.Verdict != Kept {
			t.Errorf("%s is %s: %q %s", r.ID, r.Verdict, r.Findings, r.Why)
		}
	}
	if s.Ended != "" || f.now.Sub(f.begun) > DroneLimit {
		t.Errorf("it took %s, ended %q", f.now.Sub(f.begun), s.Ended)
	}
	t.Logf("took %s of the drone's time, %d reports", f.now.Sub(f.begun), f.spoke)
}

// F-KIT-01: drones that support less, or report slowly, are not blamed for it.
func TestDrone_PassesSimplerOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*flown)
		gone   []string // rules that are not tested
	}{
		"no standby":  {func(f *flown) { f.spec.SupportsStandby = false }, []string{"D-24", "D-25", "D-26"}},
		"nothing new": {func(f *flown) { f.spec.SupportsAmendments = false }, []string{"D-11", "D-12", "D-20", "D-21", "D-22", "D-23", "D-24", "D-25", "D-26"}},
		"slow":        {func(f *flown) { f.pace = 0.7 }, nil},
		"fast":        {func(f *flown) { f.pace = 1.8 }, nil},
		"every 3 s":   {func(f *flown) { f.tick = 3 * time.Second }, nil},
		"names its mission after landing": {func(f *flown) {
			f.report = func(f *flown, t *domain.Telemetry) bool {
				if t.MissionID == "" && t.Status == domain.DroneIdle && f.named != "" && !domain.Standby(f.obeyed.Mission.Route) && !f.obeyed.Revoke {
					completed := len(f.obeyed.Mission.Route)
					t.MissionID, t.MissionRevision, t.CompletedStops = f.named, f.obeyed.Mission.RouteRevision, &completed
				}
				return true
			}
		}, nil},
		"delivers reports twice": {func(f *flown) {
			var again *Message
			f.message = func(m *Message) {
				if again != nil && f.spoke%5 == 0 {
					arrived := m.Arrived
					*m = *again
					m.Arrived = arrived
				}
				copied := *m
				again = &copied
			}
		}, nil},
	} {
		f := newFlown()
		c.change(f)
		f.drone = fleetsim.NewDrone(f.spec, depot).WithPace(f.pace)
		s := examine(t, f)
		for _, r := range s.Results {
			want := Kept
			if slices.Contains(c.gone, r.ID) {
				want = Untested
			}
			if r.Verdict != want {
				t.Errorf("%s: %s is %s, want %s: %q %s", name, r.ID, r.Verdict, want, r.Findings, r.Why)
			}
		}
	}
}

// completedStops sets the count of a report.
func completedStops(t *domain.Telemetry, n int) { t.CompletedStops = &n }

// knows reports whether a command is of the mission that the drone flies.
func (f *flown) knows(c *domain.Command) bool { return c.Mission.ID == f.named }

// brokenDrones break one rule each. Several break others too, as real ones do.
var brokenDrones = map[string]func(*flown){
	"D-01": func(f *flown) {
		f.report = func(f *flown, _ *domain.Telemetry) bool { return f.spoke%60 < 40 } // silent for 20 s
	},
	"D-02": func(f *flown) {
		f.message = func(m *Message) {
			if f.spoke%30 == 0 {
				m.Data = []byte(`{"droneId": "DRONE-1", "timestamp": "2026-05-04T10:15:30Z", "position": {"lat": 48.8}}`)
			}
		}
	},
	"D-03": func(f *flown) {
		f.report = func(_ *flown, t *domain.Telemetry) bool { t.Timestamp = t.Timestamp.Add(8 * time.Second); return true }
	},
	"D-04": func(f *flown) { f.message = func(m *Message) { m.OrderingKey = "" } },
	"D-05": func(f *flown) {
		f.report = func(_ *flown, t *domain.Telemetry) bool { t.MissionID = ""; return true }
	},
	"D-06": func(f *flown) { // it stops naming its mission after the last delivery
		f.report = func(f *flown, t *domain.Telemetry) bool {
			if n := len(f.obeyed.Mission.Route); t.CompletedStops != nil && *t.CompletedStops == n-1 && n > 1 && t.Status == domain.DroneMoving {
				t.MissionID, t.CompletedStops = "", nil
			}
			return true
		}
	},
	"D-07": func(f *flown) {
		f.command = func(_ *flown, c *domain.Command) bool { c.Mission.DroneID = droneID; return true }
	},
	"D-08": func(f *flown) {
		f.command = func(f *flown, c *domain.Command) bool {
			if !c.Revoke && c.ExpiresAt.Before(f.now) {
				c.ExpiresAt = f.now.Add(time.Hour)
			}
			return true
		}
	},
	"D-09": func(f *flown) {
		f.command = func(_ *flown, c *domain.Command) bool { c.Mission.Status = domain.MissionActive; return true }
	},
	"D-10": func(f *flown) { // it leaves out the second stop
		f.command = func(_ *flown, c *domain.Command) bool {
			if r := c.Mission.Route; len(r) > 2 {
				c.Mission.Route = append(r[:1:1], r[2:]...)
			}
			return true
		}
	},
	"D-11": func(f *flown) {
		f.report = func(f *flown, t *domain.Telemetry) bool {
			if t.CompletedStops != nil && *t.CompletedStops == 2 && f.spoke%3 == 0 {
				completedStops(t, 1)
			}
			return true
		}
	},
	"D-12": func(f *flown) { // it counts the stop that it flies to
		f.report = func(f *flown, t *domain.Telemetry) bool {
			if t.CompletedStops != nil && *t.CompletedStops < len(f.obeyed.Mission.Route) && t.Status == domain.DroneMoving {
				completedStops(t, *t.CompletedStops+1)
			}
			return true
		}
	},
	"D-13": func(f *flown) { // a repeated command begins the mission anew
		f.command = func(f *flown, c *domain.Command) bool {
			if f.knows(c) && !c.Revoke && c.ExpiresAt.Equal(f.obeyed.ExpiresAt) {
				f.fresh()
			}
			return true
		}
	},
	"D-14": func(f *flown) {
		f.command = func(f *flown, c *domain.Command) bool {
			if !c.Revoke && f.named == "" && c.Mission.ID == f.obeyed.Mission.ID {
				f.fresh()
			}
			return true
		}
	},
	"D-15": func(f *flown) {
		f.command = func(f *flown, c *domain.Command) bool {
			if f.knows(c) && !c.Revoke && c.ExpiresAt.Before(f.obeyed.ExpiresAt) {
				c.ExpiresAt = f.obeyed.ExpiresAt.Add(time.Minute)
			}
			return true
		}
	},
	"D-16": func(f *flown) { // it knows one route of a mission
		f.command = func(f *flown, c *domain.Command) bool {
			return !f.knows(c) || c.Revoke || c.Mission.RouteRevision == f.obeyed.Mission.RouteRevision
		}
	},
	"D-17": func(f *flown) { // it delivers what is aboard
		f.command = func(f *flown, c *domain.Command) bool { return !c.Revoke || !f.knows(c) }
	},
	"D-18": func(f *flown) { // it remembers only revocations of the mission that it flies
		f.command = func(f *flown, c *domain.Command) bool { return !c.Revoke || f.knows(c) }
	},
	"D-19": func(f *flown) { f.restart = (*flown).fresh },
	"D-20": func(f *flown) { // it takes changed routes and goes on naming the first revision
		f.report = func(_ *flown, t *domain.Telemetry) bool { t.MissionRevision = min(1, t.MissionRevision); return true }
	},
	"D-21": func(f *flown) {
		f.command = func(f *flown, c *domain.Command) bool {
			if f.knows(c) && !c.Revoke && c.Mission.RouteRevision > f.obeyed.Mission.RouteRevision && c.Mission.Route[0] != f.obeyed.Mission.Route[0] {
				f.fresh()
			}
			return true
		}
	},
	"D-22": func(f *flown) {
		f.report = func(_ *flown, t *domain.Telemetry) bool {
			if t.MissionID != "" {
				t.MissionRevision += 6
			}
			return true
		}
	},
	"D-23": func(f *flown) { // it takes a mission only when it has landed
		var later []domain.Command
		f.command = func(f *flown, c *domain.Command) bool {
			if f.named != "" && !f.knows(c) {
				later = append(later, *c)
				return false
			}
			return true
		}
		f.after = func(f *flown) {
			if f.named == "" && len(later) > 0 {
				f.drone, _ = f.drone.Obey(later[0], f.now)
				later = later[1:]
			}
		}
	},
	"D-24": func(f *flown) { // it counts a wait when it arrives
		f.report = func(f *flown, t *domain.Telemetry) bool {
			if r := f.obeyed.Mission.Route; t.CompletedStops != nil && len(r) > 0 && r[0].Duty() && t.Status == domain.DroneIdle {
				completedStops(t, 1)
			}
			return true
		}
	},
	"D-25": func(f *flown) { // it does not name a mission while it waits
		f.report = func(f *flown, t *domain.Telemetry) bool {
			if r := f.obeyed.Mission.Route; len(r) > 0 && r[0].Duty() && t.Status == domain.DroneIdle {
				t.MissionID, t.MissionRevision, t.CompletedStops = "", 0, nil
			}
			return true
		}
	},
	"D-26": func(f *flown) { // it waits to the end
		f.command = func(f *flown, c *domain.Command) bool {
			return !f.knows(c) || !domain.Standby(c.Mission.Route) || c.Mission.RouteRevision == 1
		}
	},
}

// F-KIT-01: for each rule there is a drone that breaks it, and the kit finds it and cites the rule.
func TestDrone_CatchesABrokenOneForEachRule(t *testing.T) {
	t.Parallel()
	for _, rule := range api.TheRules().Drones {
		broken, ok := brokenDrones[rule.ID]
		if !ok {
			t.Errorf("no drone breaks %s", rule.ID)
			continue
		}
		f := newFlown()
		broken(f)
		s := examine(t, f)
		if verdictOf(s, rule.ID) != Broken {
			t.Errorf("%s is %s:\n%s", rule.ID, verdictOf(s, rule.ID), printed(s))
		}
		t.Logf("%s: the kit finds %v", rule.ID, s.Broken())
	}
	if len(brokenDrones) != len(api.TheRules().Drones) {
		t.Errorf("%d broken drones for %d rules", len(brokenDrones), len(api.TheRules().Drones))
	}
}

// F-KIT-01: a drone that does not appear, is busy or is empty is not examined.
func TestDrone_RefusesToExamine(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*flown){
		"no report of drone DRONE-1 came":  func(f *flown) { f.report = func(*flown, *domain.Telemetry) bool { return false } },
		"no valid report of drone DRONE-1": func(f *flown) { f.message = func(m *Message) { m.Data = []byte("{") } },
		"let it be IDLE without a mission": func(f *flown) {
			f.report = func(_ *flown, t *domain.Telemetry) bool { t.MissionID = "M-9"; return true }
		},
		"charge it to 40 % or more": func(f *flown) { f.report = func(_ *flown, t *domain.Telemetry) bool { t.Battery = 30; return true } },
	} {
		f := newFlown()
		change(f)
		if _, err := Drone(t.Context(), DroneConfig{ID: droneID, Keys: true}, f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
