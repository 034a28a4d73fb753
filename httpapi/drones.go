package httpapi

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
)

func (a *API) droneEndpoints() []endpoint {
	return []endpoint{
		{
			method: get, path: "/api/v1/drones", role: viewer, summary: "List drones.",
			parameters: listed("drones", choice("status", domain.DroneStatuses), onlyTrue("legacy", "Only drones of an earlier version, which nobody has registered; reads all drones.", "true, or leave it out")), answer: list("drones", a.drones, a.droneNow),
		},
		{method: get, path: "/api/v1/drones/{id}", role: viewer, summary: "Read one drone.", answer: single[domain.DroneID](a.store.Drone, a.droneNow)},
		{method: get, path: "/api/v1/drones/{id}/story", role: viewer, summary: "Tell everything recorded about one drone.", answer: a.story(operator.SubjectDrone)},
		{method: post, path: "/api/v1/drones/{id}/clear", role: oper, summary: "Clear a drone's latched emergency.", answer: changes(a, operator.Commands.ClearDrone, entity.OfDrone)},
		{method: post, path: "/api/v1/drones/{id}/ground", role: oper, summary: "Keep a drone from new missions; it finishes the one it flies.", answer: changes(a, operator.Commands.GroundDrone, entity.OfDrone)},
		{method: post, path: "/api/v1/drones/{id}/release", role: oper, summary: "Let a grounded drone take missions again.", answer: changes(a, operator.Commands.ReleaseDrone, entity.OfDrone)},
	}
}

func (a *API) droneNow(d domain.Drone) entity.Drone { return entity.OfDroneNow(d, a.store.Now()) }

func (a *API) drones(ctx context.Context, r *request) (firestoretx.Listing[domain.Drone], error) {
	return a.store.ListDrones(ctx, firestoretx.DroneFilter{Status: domain.DroneStatus(r.value("status")), Legacy: r.has("legacy")}, r.page())
}
