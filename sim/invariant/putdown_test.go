package invariant

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// I10, F-TEL-11: what a drone's reports prove counts, however late they came.
func TestCheck_RequiresThatParcelsPutDownAreDelivered(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	route := []domain.Waypoint{
		{Type: domain.WaypointDepotStart},
		{Type: domain.WaypointWarehousePickup, OrderID: "O"},
		{Type: domain.WaypointHospitalDelivery, OrderID: "O"},
	}
	report := func(stop int) Message {
		return Message{ID: "m", DroneID: "D", Timestamp: at, Stop: &StopReport{MissionID: "M", Route: route[:stop+1]}}
	}
	both := []Message{report(2), report(1)}
	delivered := domain.Order{ID: "O", Status: domain.OrderDelivered, AssignedMissionID: "M"}
	again := domain.Order{ID: "O", Status: domain.OrderDelivered, AssignedMissionID: "N"}
	note := domain.Event{Entity: domain.EntityOrder, ID: "O", OrderID: "O", Reason: "PICKED_UP_AGAIN"}
	for _, row := range []struct {
		name      string
		order     domain.Order
		confirmed []Message
		mission   []domain.Waypoint
		events    []domain.Event
		broken    bool
	}{
		{"delivered", delivered, both, route, nil, false},
		{"offered again", domain.Order{ID: "O", Status: domain.OrderPending}, both, route, nil, true},
		{"held", domain.Order{ID: "O", Status: domain.OrderPending, Held: true}, both, route, nil, true},
		{"sent again", again, both, route, nil, true},
		{"picked up again before the proof came", again, both, route, []domain.Event{note}, false},
		{"cancelled before the proof came", domain.Order{ID: "O", Status: domain.OrderCancelled}, both, route, nil, false},
		{"the report from the pickup was lost", domain.Order{ID: "O", Status: domain.OrderPending}, both[:1], route, nil, false},
		{"the order was withdrawn from the mission", again, both, route[:1], nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := Check(History{
				Orders: []domain.Order{row.order}, Missions: []domain.Mission{{ID: "M", Route: row.mission}},
				Events: row.events, Confirmed: row.confirmed,
			})
			if got := broken(r, "I10"); got != row.broken {
				t.Errorf("broken: %v, want %v: %v", got, row.broken, r.Violations)
			}
		})
	}
}
