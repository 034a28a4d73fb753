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

func (d *depotsRequest) check() (bad []ParameterProblem) {
	d.places, bad = checkPlaces(&d.changeRequest, "depots", d.Depots, placefile.DepotsOf)
	return bad
}

// warehousesRequest is the body of a command that creates and changes warehouses.
type warehousesRequest struct {
	deleteRequest
	Warehouses []warehouseFields `json:"warehouses" doc:"Fields that are left out are empty or false." example:"[{\"id\": \"W7\", \"position\": {\"lat\": 48.85, \"lon\": 2.35}, \"authorizedProductTypes\": [\"BLOOD\"]}]"`
	places     []domain.Warehouse
}

func (w *warehousesRequest) check() (bad []ParameterProblem) {
	w.places, bad = checkPlaces(&w.changeRequest, "warehouses", w.Warehouses, placefile.WarehousesOf)
	return bad
}

// depotFields is a depot as package placefile reads it, which names everything that is
// wrong. depotForm describes it; warehouseFields and warehouseForm do so for a warehouse.
type depotFields map[string]any

type depotForm struct {
	ID            string       `json:"id"`
	Name          string       `json:"name,omitempty"`
	Position      positionForm `json:"position"`
	Capacity      int          `json:"capacity,omitempty" min:"0" max:"1000000"`
	ChargingSlots int          `json:"chargingSlots,omitempty" doc:"How many drones can charge at once; left out, no limit is known." min:"1" max:"1000000"`
}

type warehouseFields map[string]any

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

func checkPlaces[P domain.Place, F ~map[string]any](why *changeRequest, name string, list []F, read func([]map[string]any) ([]P, error)) ([]P, []ParameterProblem) {
	bad := why.check()
	places, err := read(entity.Each(list, func(fields F) map[string]any { return fields }))
	problems, _ := errors.AsType[placefile.Problems](err)
	for _, p := range problems {
		bad = append(bad, ParameterProblem{name, p.String()})
	}
	return places, bad
}

// applyDepots answers POST /api/v1/depots/apply with what changed.
//
// Cost: see operator.Commands.ApplyDepots.
func (a *API) applyDepots(ctx context.Context, r *request) (operator.PlaceChanges, error) {
	req := r.body.(*depotsRequest)
	return applying(ctx, a, "depots apply", req.deleteRequest, req.places, operator.Commands.ApplyDepots)
}

// applyWarehouses answers POST /api/v1/warehouses/apply with what changed.
//
// Cost: see operator.Commands.ApplyWarehouses.
func (a *API) applyWarehouses(ctx context.Context, r *request) (operator.PlaceChanges, error) {
	req := r.body.(*warehousesRequest)
	return applying(ctx, a, "warehouses apply", req.deleteRequest, req.places, operator.Commands.ApplyWarehouses)
}

// applying answers with what was done. When it fails after some places, the problem lists
// those too, and which were not tried.
func applying[P domain.Place](ctx context.Context, a *API, command string, req deleteRequest, places []P,
	apply func(operator.Commands, context.Context, []P, string, bool) ([]domain.PlaceChange, error)) (operator.PlaceChanges, error) {
	commands := a.operator
	commands.By = callerOf(ctx).Name
	done, err := apply(commands, ctx, places, req.Reason, req.DryRun)
	a.record(ctx, err, slog.String("operator", commands.By), slog.String("command", command), slog.String("reason", req.Reason),
		slog.Bool("dryRun", req.DryRun), slog.Int("changed", operator.PlacesToChange(done)))
	outcome := operator.PlaceChangesOf(done, req.DryRun, err)
	if err != nil {
		p := *asProblem(rejected(err))
		p.Apply = &outcome
		return outcome, &p
	}
	return outcome, nil
}

// deleting answers POST /api/v1/{collection}/{id}/delete with what was deleted.
func deleting[ID ~string](a *API, command string, remove func(operator.Commands, context.Context, ID, string, bool) (domain.PlaceChange, error)) answer {
	return writes(func(ctx context.Context, r *request) (change entity.PlaceChange, err error) {
		req := r.body.(*deleteRequest)
		commands := a.operator
		commands.By = callerOf(ctx).Name
		done, err := remove(commands, ctx, ID(r.id()), req.Reason, req.DryRun)
		a.record(ctx, err, slog.String("operator", commands.By), slog.String("command", command), slog.String("id", r.id()),
			slog.String("reason", req.Reason), slog.Bool("dryRun", req.DryRun))
		if err != nil {
			return change, rejected(err)
		}
		return entity.OfPlaceChange(done), nil
	})
}
