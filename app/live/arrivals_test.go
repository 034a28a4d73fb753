package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
)

// F-LIVE-05: an arrival is sent again when it has moved, or when the order would now be late, and goes
// when the order has a drone.
func TestPicture_SendsAnArrivalAgainWhenItMatters(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := newPicture()
	o := domain.Order{ID: "O1", Status: domain.OrderPending, Deadline: now.Add(10 * time.Minute)}
	p.putOrder(o)
	shown := func() string {
		t.Helper()
		data, err := p.book.entries[Key{KindOrder, "O1"}].version.JSON()
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(data), `"earliestArrival":"`)
		at, after, _ := strings.Cut(after, `"`)
		if strings.Contains(after, `"earliestDroneId":"D1"`) {
			at += " D1"
		}
		return at
	}
	for _, step := range []struct {
		at   time.Duration
		want string
	}{
		{9 * time.Minute, "2026-03-01T12:09:00Z D1"},
		{9*time.Minute + 30*time.Second, "2026-03-01T12:09:00Z D1"},
		{9*time.Minute + 31*time.Second, "2026-03-01T12:09:31Z D1"},
		{10*time.Minute + time.Second, "2026-03-01T12:10:01Z D1"}, // late
		{9*time.Minute + 59*time.Second, "2026-03-01T12:10:01Z D1"},
		{9 * time.Minute, "2026-03-01T12:09:00Z D1"},
	} {
		p.putArrivals(map[domain.OrderID]planner.Arrival{"O1": {DroneID: "D1", At: now.Add(step.at)}})
		if got := shown(); got != step.want {
			t.Errorf("moved to %s: shows %q, want %q", step.at, got, step.want)
		}
	}
	p.putArrivals(map[domain.OrderID]planner.Arrival{"O1": {}})
	if got := shown(); got != "" {
		t.Errorf("no drone can deliver it: shows %q", got)
	}
	p.putArrivals(map[domain.OrderID]planner.Arrival{"O1": {DroneID: "D1", At: now}})
	o.Status, o.Revision = domain.OrderAssigned, 1
	p.putOrder(o)
	p.putArrivals(map[domain.OrderID]planner.Arrival{"O1": {DroneID: "D1", At: now}}) // estimated before
	if got := shown(); got != "" || len(p.state.Arrivals) > 0 {
		t.Errorf("it has a drone: shows %q, keeps %v", got, p.state.Arrivals)
	}
}

// F-LIVE-05: the most urgent orders are estimated if there are too many, and drones where they were
// last heard of.
func TestPicture_EstimatesForTheMostUrgentOrders(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := newPicture()
	for i := range estimatedAtOnce + 10 {
		o := domain.Order{ID: domain.OrderID(fmt.Sprint("O", i)), Status: domain.OrderPending, Deadline: now.Add(time.Duration(i) * time.Second)}
		if o.Priority = domain.PriorityStandard; i >= estimatedAtOnce {
			o.Priority = domain.PriorityCritical
		}
		o.Held = i == 0
		p.putOrder(o)
	}
	if list := p.waiting(); len(list) != estimatedAtOnce || list[0].ID != "O500" || list[10].ID != "O1" || list[len(list)-1].ID != "O490" {
		t.Errorf("%d orders, from %s to %s", len(list), list[0].ID, list[len(list)-1].ID)
	}
	p.putDrone(domain.Drone{ID: "D1", Battery: 90, LastUpdate: now})
	p.move(domain.Telemetry{DroneID: "D1", Timestamp: now.Add(time.Second), Position: domain.Position{Lat: 1}, Battery: 80})
	if d := p.fleet(now).Drones[0]; d.Position.Lat != 1 || d.Battery != 80 || !d.SeenAt.Equal(now.Add(time.Second)) {
		t.Errorf("%+v", d)
	}
}

// F-OPR-02, F-LIVE-07: a mission shows what its drone has not confirmed, and no longer once it has.
func TestPicture_ShowsWhatADroneHasNotConfirmed(t *testing.T) {
	p := newPicture()
	m := domain.Mission{ID: "M1", DroneID: "D1", Status: domain.MissionActive, RouteRevision: 1}
	d := domain.Drone{ID: "D1", Status: domain.DroneIdle}
	p.putDrone(d)
	change := func(change func()) {
		change()
		m.Revision++
		d.Revision++
		p.putMission(m)
		p.putDrone(d)
	}
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"assigned", func() { d.CurrentMissionID = "M1" }, "MISSION"},
		{"named", func() { d.MissionAcked = true }, ""},
		{"amended", func() { m.Amendment = &domain.Amendment{Revision: 2} }, "AMENDMENT"},
		{"named again", func() { m.Amendment = nil }, ""},
		{"recalled", func() { m.RecalledAt = time.Unix(1, 0) }, "RECALL"},
		{"left", func() { m.Status = domain.MissionFailed }, ""},
	} {
		change(step.change)
		data, err := p.book.entries[Key{KindMission, "M1"}].version.JSON()
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(data), `"unconfirmed":"`)
		if got, _, _ := strings.Cut(after, `"`); got != step.want {
			t.Errorf("%s: unconfirmed %q, want %q", step.name, got, step.want)
		}
	}
}
