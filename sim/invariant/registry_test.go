package invariant

import (
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// I12: an amendment is a decision, too. Its drone's state is known only within the clock tolerance.
func TestCheck_JudgesAmendmentsByTheDronesState(t *testing.T) {
	// D2 has been on mission M8 since its last event.
	since := func(h *History) time.Time { return last(h, "drone D2").Time }
	for _, row := range []struct {
		what   string
		change func(h *History, amendment *domain.LedgerEntry)
		broken bool
	}{
		{"nothing bars the drone", func(*History, *domain.LedgerEntry) {}, false},
		{"it is not registered", func(h *History, _ *domain.LedgerEntry) { last(h, "drone D2").State["unregistered"] = true }, true},
		{"it is not registered, and the fleet plans with such drones", func(h *History, _ *domain.LedgerEntry) {
			last(h, "drone D2").State["unregistered"], h.PlansUnregistered = true, true
		}, false},
		{"it is retired", func(h *History, _ *domain.LedgerEntry) { last(h, "drone D2").State["retired"] = true }, true},
		{"it is another drone", func(h *History, _ *domain.LedgerEntry) { last(h, "drone D2").State["otherIdentity"] = true }, true},
		{"it may have been another drone only later", func(h *History, amendment *domain.LedgerEntry) {
			last(h, "drone D2").State["otherIdentity"] = true
			amendment.AppliedAt = since(h).Add(time.Second)
		}, false},
		{"it is due, and gets an order", func(h *History, _ *domain.LedgerEntry) { last(h, "drone D2").State["dueAt"] = since(h) }, true},
		{"it is due, and only loses orders", func(h *History, amendment *domain.LedgerEntry) {
			last(h, "drone D2").State["dueAt"], amendment.AddedIDs = since(h), nil
		}, false},
		{"it may not have been due yet", func(h *History, amendment *domain.LedgerEntry) {
			last(h, "drone D2").State["dueAt"] = amendment.AppliedAt.Add(-time.Second)
		}, false},
	} {
		h := goodHistory()
		amendment := domain.LedgerEntry{
			ID: "AMENDS", Outcome: domain.OutcomeApplied, DroneID: "D2", AmendsMissionID: "M8",
			AddedIDs: []domain.OrderID{"O6"}, AppliedAt: since(&h).Add(time.Minute),
		}
		row.change(&h, &amendment)
		h.Ledger = append(h.Ledger, amendment)
		found := slices.ContainsFunc(Check(h).Violations, func(v Violation) bool { return v.Invariant == "I12" && v.Subject == "decision AMENDS" })
		if found != row.broken {
			t.Errorf("%s: reported %t, want %t", row.what, found, row.broken)
		}
	}
}

// F-SND-03: an order is not DELIVERED before its drone can have flown over the pickup to the
// delivery, at twice its top speed of 200 km/h: 111 m a second. The slack of a leg is 1.3 km, that
// of the time 30 s.
func TestCheck_KnowsHowFarADroneCanHaveFlown(t *testing.T) {
	north := func(km float64) domain.Position { return domain.Position{Lat: km / 111.195} }
	for _, row := range []struct {
		what                     string
		start, pickup, delivered float64 // km north
		took                     time.Duration
		broken                   bool
	}{
		{"after an honest flight", 0, 5, 10, 12 * time.Minute, false},
		{"at the limit of both legs", 0, 5, 10, 38 * time.Second, false},
		{"too soon for both legs", 0, 5, 10, 36 * time.Second, true},
		{"from the warehouse", 5, 5, 10, 5 * time.Second, false},
		{"from the warehouse, too soon for the way", 5, 5, 12, 5 * time.Second, true},
		{"near the drone", 0, 1, 2, -5 * time.Second, false},
	} {
		h := goodHistory()
		m, o, at := final(&h, "M1"), parcel(&h, "O1"), north(row.start)
		m.StartTime = morning
		m.Route = []domain.Waypoint{
			{Type: domain.WaypointWarehousePickup, OrderID: "O1", Position: north(row.pickup)},
			{Type: domain.WaypointHospitalDelivery, OrderID: "O1", Position: north(row.delivered)},
		}
		o.Delivery, o.DeliveredAt = north(row.delivered), morning.Add(row.took)
		h.Confirmed = append(h.Confirmed,
			Message{DroneID: "D1", ID: "made up", Timestamp: morning.Add(-time.Second)},
			Message{DroneID: "D1", ID: "true", Timestamp: morning.Add(-2 * time.Second), Where: &at})
		if broken(Check(h), "F-SND-03") {
			t.Errorf("%s: reported though no top speed is known", row.what)
		}
		h.TopSpeedKmh = 200
		if found := broken(Check(h), "F-SND-03"); found != row.broken {
			t.Errorf("%s: reported %t, want %t", row.what, found, row.broken)
		}
	}
}
