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
	Depots []map[string]any `json:"depots" doc:"The fields are those of the list of depots." example:"[{\"id\": \"DEPOT-7\", \"position\": {\"lat\": 48.85, \"lon\": 2.35}, \"capacity\": 4}]"`
	places []domain.Depot
}

func (d *depotsRequest) check() (bad []ParameterProblem) {
	d.places, bad = checkPlaces(&d.changeRequest, "depots", d.Depots, placefile.DepotsOf)
	return bad
}

// warehousesRequest is the body of a command that creates and changes warehouses.
type warehousesRequest struct {
	deleteRequest
	Warehouses []map[string]any `json:"warehouses" doc:"The fields are those of the list of warehouses." example:"[{\"id\": \"W7\", \"position\": {\"lat\": 48.85, \"lon\": 2.35}, \"authorizedProductTypes\": [\"BLOOD\"]}]"`
	places     []domain.Warehouse
}

func (w *warehousesRequest) check() (bad []ParameterProblem) {
	w.places, bad = checkPlaces(&w.changeRequest, "warehouses", w.Warehouses, placefile.WarehousesOf)
	return bad
}

func checkPlaces[P domain.Place](why *changeRequest, name string, list []map[string]any, read func([]map[string]any) ([]P, error)) ([]P, []ParameterProblem) {
	bad := why.check()
	places, err := read(list)
	problems, _ := errors.AsType[placefile.Problems](err)
	for _, p := range problems {
		bad = append(bad, ParameterProblem{name, p.String()})
	}
	return places, bad
}

// applyDepots answers POST /api/v1/depots/apply with what changed.
//
// Cost: see operator.Commands.ApplyDepots.
func (a *API) applyDepots(ctx context.Context, r *request) (placeChanges, error) {
	req := r.body.(*depotsRequest)
	return applying(ctx, a, "depots apply", req.deleteRequest, req.places, operator.Commands.ApplyDepots)
}

// applyWarehouses answers POST /api/v1/warehouses/apply with what changed.
//
// Cost: see operator.Commands.ApplyWarehouses.
func (a *API) applyWarehouses(ctx context.Context, r *request) (placeChanges, error) {
	req := r.body.(*warehousesRequest)
	return applying(ctx, a, "warehouses apply", req.deleteRequest, req.places, operator.Commands.ApplyWarehouses)
}

// placeChanges is the answer of a command that creates and changes places.
type placeChanges struct {
	Changes []entity.PlaceChange `json:"changes"`
	DryRun  bool                 `json:"dryRun"`
}

func applying[P domain.Place](ctx context.Context, a *API, command string, req deleteRequest, places []P,
	apply func(operator.Commands, context.Context, []P, string, bool) ([]domain.PlaceChange, error)) (placeChanges, error) {
	commands := a.operator
	commands.By = callerOf(ctx).Name
	done, err := apply(commands, ctx, places, req.Reason, req.DryRun)
	a.record(ctx, err, slog.String("operator", commands.By), slog.String("command", command), slog.String("reason", req.Reason),
		slog.Bool("dryRun", req.DryRun), slog.Int("changed", operator.PlacesToChange(done)))
	if err != nil {
		return placeChanges{}, rejected(err)
	}
	return placeChanges{entity.OrEmpty(entity.Each(done, entity.OfPlaceChange)), req.DryRun}, nil
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
