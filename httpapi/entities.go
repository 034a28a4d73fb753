package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// listing is one page as JSON.
func listing[D, J any](name string, l firestoretx.Listing[D], form func(D) J) map[string]any {
	return entity.Page(name, entity.Each(l.Items, form), l.Next, l.Malformed)
}

// drones answers GET /api/v1/drones?status=&limit=&after=.
//
// Cost: 1 RPC; a read per drone listed and one more.
func (a *API) drones(ctx context.Context, r *http.Request) (any, error) {
	q, err := parameters(r, "status", "limit", "after")
	if err != nil {
		return nil, err
	}
	status, page := choice(q, "status", domain.DroneStatuses), q.page()
	if err := q.err(); err != nil {
		return nil, err
	}
	l, err := a.store.ListDrones(ctx, status, page)
	if err != nil {
		return nil, err
	}
	return listing("drones", l, entity.OfDrone), nil
}

// orders answers GET /api/v1/orders?status=&held=true&limit=&after=.
//
// Cost: 1 RPC; a read per order listed and one more.
func (a *API) orders(ctx context.Context, r *http.Request) (any, error) {
	q, err := parameters(r, "status", "held", "limit", "after")
	if err != nil {
		return nil, err
	}
	filter, page := firestoretx.OrderFilter{Status: choice(q, "status", domain.OrderStatuses), Held: q.only("held")}, q.page()
	if err := q.err(); err != nil {
		return nil, err
	}
	l, err := a.store.ListOrders(ctx, filter, page)
	if err != nil {
		return nil, err
	}
	return listing("orders", l, entity.OfOrder), nil
}

// missions answers GET /api/v1/missions?status=&limit=&after=.
//
// Cost: 1 RPC; a read per mission listed and one more.
func (a *API) missions(ctx context.Context, r *http.Request) (any, error) {
	q, err := parameters(r, "status", "limit", "after")
	if err != nil {
		return nil, err
	}
	status, page := choice(q, "status", domain.MissionStatuses), q.page()
	if err := q.err(); err != nil {
		return nil, err
	}
	l, err := a.store.ListMissions(ctx, status, page)
	if err != nil {
		return nil, err
	}
	return listing("missions", l, entity.OfMission), nil
}

// decisions answers GET /api/v1/decisions?outcome=&reason=&limit=&after=.
//
// Cost: 1 RPC; a read per decision listed and one more.
func (a *API) decisions(ctx context.Context, r *http.Request) (any, error) {
	q, err := parameters(r, "outcome", "reason", "limit", "after")
	if err != nil {
		return nil, err
	}
	filter := firestoretx.LedgerFilter{
		Outcome: choice(q, "outcome", []domain.Outcome{domain.OutcomeApplied, domain.OutcomeRejected}),
		Reason:  string(choice(q, "reason", policy.LedgerReasons())),
	}
	page := q.page()
	if filter.Reason != "" && filter.Outcome == domain.OutcomeApplied {
		q.add("reason", "goes with outcome REJECTED; an applied decision has none")
	}
	if err := q.err(); err != nil {
		return nil, err
	}
	l, err := a.store.ListLedger(ctx, filter, page)
	if err != nil {
		return nil, err
	}
	return listing("decisions", l, entity.OfDecision), nil
}

// cycles answers GET /api/v1/cycles?outcome=&limit=&after=. A page ends early, with
// a next one, where cycles list many orders.
//
// Cost: 1 RPC; a read per cycle listed and one more.
func (a *API) cycles(ctx context.Context, r *http.Request) (any, error) {
	q, err := parameters(r, "outcome", "limit", "after")
	if err != nil {
		return nil, err
	}
	outcome, page := choice(q, "outcome", domain.CycleOutcomes), q.page()
	if err := q.err(); err != nil {
		return nil, err
	}
	l, err := a.store.ListCycles(ctx, outcome, page)
	if err != nil {
		return nil, err
	}
	return listing("cycles", l, entity.OfCycle), nil
}

// single answers GET /api/v1/{collection}/{id}.
//
// Cost: 1 RPC, 1 read.
func single[ID ~string, D, J any](read func(context.Context, ID) (D, error), form func(D) J) func(context.Context, *http.Request) (any, error) {
	return func(ctx context.Context, r *http.Request) (any, error) {
		if _, err := parameters(r); err != nil {
			return nil, err
		}
		id := r.PathValue("id")
		if err := domain.CheckID(id); err != nil {
			return nil, badParameters([]ParameterProblem{{"id", err.Error()}})
		}
		v, err := read(ctx, ID(id))
		if err != nil {
			return nil, err
		}
		return form(v), nil
	}
}

// depotOf is the depot a request names, or the only one there is, as far as
// their documents can be understood.
func (a *API) depotOf(ctx context.Context, q *query) (domain.DepotID, error) {
	wanted := domain.DepotID(q.id("depot", domain.CheckID))
	if err := q.err(); err != nil {
		return "", err
	}
	depots, err := a.store.Depots(ctx)
	if err != nil {
		return "", err
	}
	ids := make([]string, len(depots.Items))
	for i, d := range depots.Items {
		ids[i] = string(d.ID)
	}
	malformed := errors.Join(depots.Malformed...)
	if malformed != nil {
		a.log.ErrorContext(ctx, "depot left out; correct its document", slog.Any("err", malformed))
	}
	switch {
	case slices.Contains(ids, string(wanted)):
		return wanted, nil
	case malformed != nil && (wanted != "" || len(ids) == 0): // it may be the one
		return "", malformed
	case len(ids) == 0:
		return "", problem(http.StatusNotFound, "the fleet has no depot yet; introduce one first")
	case wanted == "" && len(ids) == 1:
		return domain.DepotID(ids[0]), nil
	case wanted == "":
		return "", badParameters([]ParameterProblem{{"depot", "is missing; give " + oneOf(ids)}})
	}
	p := badParameters([]ParameterProblem{{"depot", "names no depot; give " + oneOf(ids)}})
	p.Status, p.Title = http.StatusNotFound, http.StatusText(http.StatusNotFound)
	return "", p
}
