package solver_test

import (
	"context"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
)

func ExampleSolve() {
	depot := solver.Location{Lat: 48.8566, Lon: 2.3522}
	p := solver.Problem{
		Now:        time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Depots:     []solver.Depot{{ID: "DEPOT", At: depot}},
		Warehouses: []solver.Warehouse{{ID: "WH-NORTH", At: solver.Location{Lat: 48.90, Lon: 2.35}, ProductTypes: []string{"BLOOD"}}},
		Drones:     []solver.Drone{{ID: "DRONE-1", At: depot, HomeDepotID: "DEPOT", BatteryPercent: 90}},
		Orders: []solver.Order{
			{ID: "ORDER-1", Delivery: solver.Location{Lat: 48.91, Lon: 2.31}, ProductType: "BLOOD", Priority: solver.Critical},
			{ID: "ORDER-2", Delivery: solver.Location{Lat: 48.85, Lon: 2.36}, ProductType: "SERUM"},
		},
	}
	plan, err := solver.Solve(context.Background(), p, solver.Options{Seed: 1, Iterations: 100})
	if err != nil {
		fmt.Println("cancelled:", err)
	}
	if err := check.Plan(p, plan); err != nil { // never publish an unchecked plan
		fmt.Println(err)
	}
	for _, stop := range plan.Routes[0].Stops {
		fmt.Printf("%s %-16s %s %.1f %%\n", stop.ETA.Format(time.TimeOnly), stop.Kind, stop.OrderID, stop.BatteryPercent)
	}
	for _, u := range plan.Unserved {
		fmt.Println(u.OrderID, u.Reason)
	}
	// Output:
	// 12:00:00 DEPOT_START       90.0 %
	// 12:05:47 WAREHOUSE_PICKUP ORDER-1 77.9 %
	// 12:09:32 HOSPITAL_DELIVERY ORDER-1 70.1 %
	// 12:17:34 DEPOT_RETURN      53.4 %
	// ORDER-2 no_compatible_warehouse
}
