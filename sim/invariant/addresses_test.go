package invariant

import (
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// I11, F-STP-01, F-STP-02, F-STP-03
func TestCheck_RequiresDeliveriesAtTheirAddresses(t *testing.T) {
	warehouse := domain.Warehouse{ID: "W", Position: domain.Position{Lat: 48.82, Lon: 2.3}, ProductTypes: []string{"BLOOD"}}
	hospital, elsewhere := domain.Position{Lat: 48.84, Lon: 2.3}, domain.Position{Lat: 48.8402, Lon: 2.3} // 22 m apart
	own := domain.Position{Lat: 48.83, Lon: 2.3}
	for _, row := range []struct {
		name   string
		change func(o *domain.Order, pickup, delivery *domain.Waypoint)
		broken bool
	}{
		{"at its addresses", func(*domain.Order, *domain.Waypoint, *domain.Waypoint) {}, false},
		{"put down elsewhere", func(_ *domain.Order, _, d *domain.Waypoint) { d.Position = elsewhere }, true},
		{"picked up elsewhere", func(_ *domain.Order, p, _ *domain.Waypoint) { p.Position = elsewhere }, true},
		{"picked up at no warehouse", func(_ *domain.Order, p, _ *domain.Waypoint) { p.WarehouseID = "" }, true},
		{"of another product", func(o *domain.Order, _, _ *domain.Waypoint) { o.ProductType = "INSULIN" }, true},
		{"of a cold chain", func(o *domain.Order, _, _ *domain.Waypoint) { o.ColdChain = true }, true},
		{"picked up at its own position", func(o *domain.Order, p, _ *domain.Waypoint) { o.Pickup, p.Position = &own, own }, false},
		{"picked up away from its own position", func(o *domain.Order, _, _ *domain.Waypoint) { o.Pickup = &own }, true},
		{"not delivered", func(o *domain.Order, _, d *domain.Waypoint) { o.Status, d.Position = domain.OrderCancelled, elsewhere }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := domain.Order{ID: "O", Status: domain.OrderDelivered, AssignedMissionID: "M", OrderContent: domain.OrderContent{ProductType: "BLOOD", Delivery: hospital}}
			pickup := domain.Waypoint{Type: domain.WaypointWarehousePickup, OrderID: "O", WarehouseID: "W", Position: warehouse.Position}
			delivery := domain.Waypoint{Type: domain.WaypointHospitalDelivery, OrderID: "O", Position: hospital}
			row.change(&o, &pickup, &delivery)
			h := History{
				Orders: []domain.Order{o}, Warehouses: []domain.Warehouse{warehouse},
				Missions: []domain.Mission{{ID: "M", Route: []domain.Waypoint{pickup, delivery}}},
			}
			if r := Check(h); broken(r, "I11") != row.broken {
				t.Errorf("broken: %v, want %v: %v", !row.broken, row.broken, r.Violations)
			}
			h.Ledger = []domain.LedgerEntry{{MissionID: "M", Outcome: domain.OutcomeApplied, Warning: "STOP_MISPLACED: stop 1"}} // F-STP-09
			if r := Check(h); broken(r, "I11") {
				t.Errorf("with a warning on record: %v", r.Violations)
			}
		})
	}
}
