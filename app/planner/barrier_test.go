package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-INT-02: each thing that keeps every drone from an order is found, with the others.
func TestBarriers_FindWhatNoDroneCanDeliver(t *testing.T) {
	paris := domain.Position{Lat: 48.85, Lon: 2.35}
	depots := []domain.Depot{{ID: "DEPOT-1", Position: paris}}
	warehouses := []domain.Warehouse{
		{ID: "W1", Position: paris, ProductTypes: []string{"BLOOD", "PLASMA"}, ColdStorage: true}, {ID: "W2", Position: paris, ProductTypes: []string{"MASKS"}},
	}
	registered := time.Unix(1, 0)
	drones := []domain.Drone{
		{ID: "D1", HomeDepotID: "DEPOT-1", PayloadCapacityKg: 5, ConsumptionPerKm: 2, MaxFlightTimeMinutes: 60, RegisteredAt: registered, ColdBox: &domain.ColdBox{}},
		{ID: "D2", HomeDepotID: "DEPOT-1", PayloadCapacityKg: 8, ConsumptionPerKm: 4, MaxFlightTimeMinutes: 60, RegisteredAt: registered, Battery: 3, Grounded: true},
	}
	warm := []domain.Drone{drones[1]}
	near := domain.Position{Lat: 48.86, Lon: 2.36}
	for _, c := range []struct {
		name   string
		order  domain.OrderContent
		drones []domain.Drone
		want   []string // reason, field and a part of the text of each
	}{
		{"deliverable", domain.OrderContent{ProductType: "BLOOD", Delivery: near, WeightKg: 5, ColdChain: true}, drones, nil},
		{"by a drone that is not ready", domain.OrderContent{ProductType: "MASKS", Delivery: near, WeightKg: 8}, drones, nil},
		{"by its own pickup", domain.OrderContent{ProductType: "LETTERS", Pickup: &near, Delivery: paris}, drones, nil},
		{"unknown product", domain.OrderContent{ProductType: "BLUD", Delivery: near}, drones, []string{`no_compatible_warehouse productType is "BLUD", which no warehouse stocks; give one of BLOOD, MASKS, PLASMA`}},
		{"no cold storage", domain.OrderContent{ProductType: "MASKS", Delivery: near, ColdChain: true}, drones, []string{`no_compatible_warehouse requiresColdChain is true, and no warehouse that stocks "MASKS" has cold storage`}},
		{"no cold box", domain.OrderContent{ProductType: "BLOOD", Delivery: near, ColdChain: true}, warm, []string{"no_drone_allowed requiresColdChain is true, and no drone has a cold box"}},
		{"too heavy", domain.OrderContent{ProductType: "BLOOD", Delivery: near, WeightKg: 9}, drones, []string{"over_capacity packageWeightKg is 9, and no drone carries more than 8 kg"}},
		{"too far", domain.OrderContent{ProductType: "BLOOD", Delivery: domain.Position{Lat: 49.85, Lon: 2.35}}, drones, []string{"out_of_range deliveryLocation is 111 km from the nearest depot"}},
		{"swapped", domain.OrderContent{ProductType: "BLOOD", Delivery: domain.Position{Lat: 2.36, Lon: 48.86}}, drones, []string{"out_of_range deliveryLocation is too far for every drone, and within reach with lat and lon exchanged"}},
		{"everything", domain.OrderContent{ProductType: "BLUD", Delivery: domain.Position{Lat: 59}, WeightKg: 9, ColdChain: true}, warm,
			[]string{"no_drone_allowed", "no_compatible_warehouse productType", "over_capacity packageWeightKg", "out_of_range deliveryLocation"}},
		{"no drone is known", domain.OrderContent{ProductType: "BLOOD", Delivery: domain.Position{Lat: 59}, WeightKg: 9}, nil, nil},
		{"neither the product nor any drone is known", domain.OrderContent{ProductType: "BLUD", Delivery: domain.Position{Lat: 59}}, nil, []string{"no_compatible_warehouse"}},
	} {
		got := Barriers(depots, warehouses, c.drones, domain.Order{ID: "O1", OrderContent: c.order, CreatedAt: registered})
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v, want %q", c.name, got, c.want)
			continue
		}
		for i, b := range got {
			if text := b.Reason + " " + b.Field + " " + b.Detail; !strings.HasPrefix(text, c.want[i]) {
				t.Errorf("%s: %s, want %s", c.name, text, c.want[i])
			}
		}
	}
	if got := productsOf(nil); got != "no warehouse has products yet" {
		t.Error(got)
	}
}
