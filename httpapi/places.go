package httpapi

import (
	"context"
	"errors"
	"log/slog"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/app/placefile"
	"github.com/dronefleet/dronefleet/domain"
)

func (a *API) placeEndpoints() []endpoint {
	return []endpoint{
		{method: get, path: "/api/v1/depots", role: viewer, summary: "List depots.", parameters: listed("depots"), answer: list("depots", a.depots, entity.OfDepot)},
		{method: get, path: "/api/v1/depots/{id}/story", role: viewer, summary: "Show what changed one depot, and which drones are based there.", answer: a.story(operator.SubjectDepot)},
		{method: post, path: "/api/v1/depots/apply", role: oper, summary: "Create and change depots.", answer: operates(a, applyDepots)},
		{method: post, path: "/api/v1/depots/{id}/delete", role: oper, summary: "Delete a depot that nothing needs.", answer: deletes(a, operator.Commands.DeleteDepot)},
		{method: get, path: "/api/v1/warehouses", role: viewer, summary: "List warehouses.", parameters: listed("warehouses"), answer: list("warehouses", a.warehouses, entity.OfWarehouse)},
		{method: get, path: "/api/v1/warehouses/{id}/story", role: viewer, summary: "Show what changed one warehouse, and which active missions visit it.", answer: a.story(operator.SubjectWarehouse)},
		{method: post, path: "/api/v1/warehouses/apply", role: oper, summary: "Create and change warehouses.", answer: operates(a, applyWarehouses)},
		{method: post, path: "/api/v1/warehouses/{id}/delete", role: oper, summary: "Delete a warehouse that nothing needs.", answer: deletes(a, operator.Commands.DeleteWarehouse)},
	}
}

func (a *API) depots(ctx context.Context, r *request) (firestoretx.Listing[domain.Depot], error) {
	return a.store.ListDepots(ctx, r.page())
}

func (a *API) warehouses(ctx context.Context, r *request) (firestoretx.Listing[domain.Warehouse], error) {
	return a.store.ListWarehouses(ctx, r.page())
}

// deleteRequest is the body of a command that deletes a place.
type deleteRequest struct {
	changeRequest
	DryRun bool `json:"dryRun,omitempty" doc:"Only show what would be done."`
}

// depotsRequest is the body of a command that creates and changes depots.
type depotsRequest struct {
	deleteRequest
	Depots []depotFields `json:"depots" doc:"Fields that are left out are empty or 0." example:"[{\"id\": \"DEPOT-7\", \"position\": {\"lat\": 48.85, \"lon\": 2.35}, \"capacity\": 4}]"`
	places []domain.Depot
}

func (d *depotsRequest) check(bad *problems) {
	d.changeRequest.check(bad)
	d.places = checkPlaces(bad, "depots", d.Depots, placefile.DepotsOf)
}

// warehousesRequest is the body of a command that creates and changes warehouses.
type warehousesRequest struct {
	deleteRequest
	Warehouses []warehouseFields `json:"warehouses" doc:"Fields that are left out are empty or false." example:"[{\"id\": \"W7\", \"position\": {\"lat\": 48.85, \"lon\": 2.35}, \"authorizedProductTypes\": [\"BLOOD\"]}]"`
	places     []domain.Warehouse
}

func (w *warehousesRequest) check(bad *problems) {
	w.changeRequest.check(bad)
	w.places = checkPlaces(bad, "warehouses", w.Warehouses, placefile.WarehousesOf)
}

// depotFields is a depot as package placefile reads it, which names everything that is
// wrong. depotForm describes it; warehouseFields and warehouseForm do so for a warehouse.
type depotFields map[string]any

func (depotFields) schema(s *schemas) schema { return s.closed(typeOf[depotForm]()) }

type depotForm struct {
	ID            string       `json:"id"`
	Name          string       `json:"name,omitempty"`
	Position      positionForm `json:"position"`
	Capacity      int          `json:"capacity,omitempty" min:"0" max:"1000000"`
	ChargingSlots int          `json:"chargingSlots,omitempty" doc:"How many drones can charge at once; left out, no limit is known." min:"1" max:"1000000"`
	Group         string       `json:"group,omitempty" doc:"Depots of different groups are never in one planning area."`
}

type warehouseFields map[string]any

func (warehouseFields) schema(s *schemas) schema { return s.closed(typeOf[warehouseForm]()) }

type warehouseForm struct {
	ID                     string       `json:"id"`
	Name                   string       `json:"name,omitempty"`
	Position               positionForm `json:"position"`
	AuthorizedProductTypes []string     `json:"authorizedProductTypes,omitempty"`
	IsColdStorageCapable   bool         `json:"isColdStorageCapable,omitempty"`
}

type positionForm struct {
	Lat float64 `json:"lat" doc:"Degrees." min:"-90" max:"90"`
	Lon float64 `json:"lon" doc:"Degrees." min:"-180" max:"180"`
}

func checkPlaces[P any, F ~map[string]any](bad *problems, name string, list []F, read func([]map[string]any) ([]P, error)) []P {
	places, err := read(entity.Each(list, func(fields F) map[string]any { return fields }))
	wrong, _ := errors.AsType[placefile.Problems](err)
	for _, p := range wrong {
		bad.add(name, "%s", p)
	}
	return places
}

// applyDepots answers POST /api/v1/depots/apply with what changed.
func applyDepots(ctx context.Context, c *command, req *depotsRequest) (operator.PlaceChanges, error) {
	done, err := c.ApplyDepots(ctx, req.places, req.Reason, req.DryRun)
	return applied(c, req.deleteRequest, done, err)
}

// applyWarehouses answers POST /api/v1/warehouses/apply with what changed.
func applyWarehouses(ctx context.Context, c *command, req *warehousesRequest) (operator.PlaceChanges, error) {
	done, err := c.ApplyWarehouses(ctx, req.places, req.Reason, req.DryRun)
	return applied(c, req.deleteRequest, done, err)
}

// applied is what was done. When a command fails for some places, the problem lists what was
// done, what was refused and what was not tried.
func applied(c *command, req deleteRequest, done []domain.PlaceChange, err error) (operator.PlaceChanges, error) {
	c.note(slog.String("reason", req.Reason), slog.Bool("dryRun", req.DryRun), slog.Int("changed", operator.PlacesToChange(done)))
	outcome := operator.PlaceChangesOf(done, req.DryRun, err)
	if err != nil {
		p := *asProblem(err)
		p.Apply = &outcome
		err = &p
	}
	return outcome, err
}

// deletes is the answer of a command that deletes a place.
func deletes[ID ~string](a *API, do func(operator.Commands, context.Context, ID, string, bool) (domain.PlaceChange, error)) answer {
	return operates(a, func(ctx context.Context, c *command, req *deleteRequest) (entity.PlaceChange, error) {
		done, err := do(c.Commands, ctx, ID(c.id), req.Reason, req.DryRun)
		c.note(slog.String("id", c.id), slog.String("reason", req.Reason), slog.Bool("dryRun", req.DryRun))
		return entity.OfPlaceChange(done), err
	})
}
