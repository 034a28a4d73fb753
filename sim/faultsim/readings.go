package faultsim

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// shareDrones adds a depot at the city's edge and gives it every second drone. The first depot
// is nearest to most orders, and its drones are too small for most of them.
func shareDrones(w *fleetsim.World) {
	edge := w.Depots[0]
	edge.ID, edge.Name, edge.Position.Lon = edge.ID+"-EDGE", "Depot at the edge", edge.Position.Lon+0.08 // 6 km
	w.Depots = append(w.Depots, edge)
	for i := range w.Drones {
		if i%2 == 0 {
			w.Drones[i].PayloadCapacityKg = 0.5
		} else {
			w.Drones[i].HomeDepotID = edge.ID
		}
	}
}

// wholeEarth is an area radius, in km, that makes one area of all depots.
const wholeEarth = 50_000

// readAreas reads at one time, as the product does for its cycles, which orders each depot's
// area plans, and with the checker's store which orders wait.
func readAreas(ctx context.Context, checker, product *firestoretx.Store, depots []domain.Depot) (invariant.Reading, error) {
	all, err := checker.Snapshot(ctx, firestoretx.SnapshotRequest{Depot: depots[0].ID, AreaRadius: wholeEarth})
	if err != nil {
		return invariant.Reading{}, err
	}
	r := invariant.Reading{At: all.ReadTime, Waiting: idsOf(all.Orders), Read: map[domain.DepotID][]domain.OrderID{}}
	for _, d := range depots {
		snap, err := product.Snapshot(ctx, firestoretx.SnapshotRequest{Depot: d.ID, At: all.ReadTime})
		if err != nil {
			return r, err
		}
		r.Read[d.ID] = idsOf(snap.Orders)
	}
	return r, nil
}

func idsOf(orders []domain.Order) []domain.OrderID {
	ids := make([]domain.OrderID, len(orders))
	for i, o := range orders {
		ids[i] = o.ID
	}
	return ids
}
