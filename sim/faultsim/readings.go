package faultsim

import (
	"context"
	"slices"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// shareDrones adds a depot at the city's edge, in an area of its own, and gives it every second
// drone. The first depot is nearest to most orders, and its drones are too small for most of them.
func shareDrones(w *fleetsim.World) {
	edge := w.Depots[0]
	edge.ID, edge.Name, edge.Position.Lon = edge.ID+"-EDGE", "Depot at the edge", edge.Position.Lon+0.08 // 6 km
	edge.Group = edgeGroup
	w.Depots = append(w.Depots, edge)
	for i := range w.Drones {
		if i%2 == 0 {
			w.Drones[i].PayloadCapacityKg = 0.5
		} else {
			w.Drones[i].HomeDepotID = edge.ID
		}
	}
}

// areaRadius is that of the optimizers, in km. The depots are near each other, and their groups
// keep them apart.
const areaRadius = 13

// edgeGroup is the group of the depot at the edge while a border is around it.
const edgeGroup = "edge"

// moveBorder takes the border between the two depots away, or draws it again.
func (sim *simulation) moveBorder(ctx context.Context, apart bool) {
	edge := sim.depots[1]
	edge.Group = ""
	if apart {
		edge.Group = edgeGroup
	}
	sim.command(ctx, faultMoveBorder, func(o operator.Commands) error {
		return second(o.ApplyDepots(ctx, []domain.Depot{edge}, faultMoveBorder, false))
	})
}

// readAreas reads at one time, as the product does for its cycles, which orders each area plans,
// and with the checker's store which orders wait.
func readAreas(ctx context.Context, checker, product *firestoretx.Store, depots []domain.Depot, radius float64) (invariant.Reading, error) {
	r := invariant.Reading{Read: map[domain.DepotID][]domain.OrderID{}}
	for _, d := range depots {
		snap, err := product.Snapshot(ctx, firestoretx.SnapshotRequest{Depot: d.ID, AreaRadius: radius, At: r.At})
		if err != nil {
			return r, err
		}
		r.At, r.Read[snap.Depot.ID] = snap.ReadTime, idsOf(snap.Orders)
	}
	all, err := checker.MovedAt(ctx, r.At)
	if err != nil {
		return r, err
	}
	r.Waiting = idsOf(slices.DeleteFunc(all.Orders, func(o domain.Order) bool { return !o.Waits() }))
	return r, nil
}

func idsOf(orders []domain.Order) []domain.OrderID {
	ids := make([]domain.OrderID, len(orders))
	for i, o := range orders {
		ids[i] = o.ID
	}
	return ids
}
