package planner_test

import (
	"context"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/solver"
)

// A planner plans the cycles of a depot one after another. Each result has the
// missions that begin now and, for every other order, why it waits.
func ExamplePlanner_Plan() {
	depot := solver.Location{Lat: 48.8566, Lon: 2.3522}
	hospital := solver.Location{Lat: 48.8850, Lon: 2.3700}
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	p := planner.New(planner.Config{Options: solver.Options{Iterations: 100}}, time.Now)
	result, err := p.Plan(context.Background(), solver.Problem{
		Now:        now,
		Depots:     []solver.Depot{{ID: "DEPOT", At: depot}},
		Warehouses: []solver.Warehouse{{ID: "WH", At: depot, ProductTypes: []string{"BLOOD"}}},
		Drones: []solver.Drone{
			{ID: "D1", At: depot, BatteryPercent: 90, CapacityKg: 2},
			{ID: "D2", At: depot, BatteryPercent: 22, CapacityKg: 9},
		},
		Orders: []solver.Order{
			{ID: "O1", Delivery: hospital, ProductType: "BLOOD", WeightKg: 1, Priority: solver.Critical, CreatedAt: now},
			{ID: "O2", Delivery: hospital, ProductType: "BLOOD", WeightKg: 8, Priority: solver.High, CreatedAt: now},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range result.Plan.Routes {
		fmt.Println(r.DroneID, "flies", r.OrderIDs())
	}
	for i, u := range result.Plan.Unserved {
		fmt.Println(u.OrderID, "waits:", u.Reason, "-", result.Obstacles[i])
	}
	// Output:
	// D1 flies [O1]
	// O2 waits: no_drone_free - 2 free: 1 payload, 1 battery
}
