package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/explain"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/input"
)

// Explanations plan one at a time, briefly and on one core, so that the State Manager's messages
// do not wait for them. Depots form areas with the optimizers' default radius.
const (
	explainLimit      = 300 * time.Millisecond
	explainAreaRadius = 13
)

var (
	addDrones   = added("addDrones", "What if this many more drones waited at the depot.")
	addSlots    = added("addSlots", "What if each depot with limited charging slots had this many more, since the drones that wait for one landed.")
	dropReserve = onlyTrue("dropReserve", "What if no drone were kept for CRITICAL orders to come.", "true, or leave it out")
)

// added is a parameter that adds some number to a moment.
func added(name, says string) parameter {
	return parameter{
		name: name, says: says, example: 2, schema: schema{"type": "integer", "minimum": 0, "maximum": planner.MaxAdded},
		wrong: func(value string) string {
			if n, err := strconv.Atoi(value); err != nil || n < 0 || n > planner.MaxAdded {
				return fmt.Sprintf("is %.64q; give 0 to %d", value, planner.MaxAdded)
			}
			return ""
		},
	}
}

// explanation answers GET /api/v1/orders/{id}/explanation with why an order waited or was
// late.
//
// Cost: that of past, and one read; up to three plans of explainLimit each.
func (a *API) explanation(ctx context.Context, r *request) (x explain.OrderExplanation, err error) {
	at, _ := input.Time(r.value("at"))             // checked; zero if left out
	added, _ := strconv.Atoi(r.value("addDrones")) // checked
	slots, _ := strconv.Atoi(r.value("addSlots"))  // checked
	select {
	case a.explaining <- struct{}{}:
		defer func() { <-a.explaining }()
	case <-ctx.Done():
		return x, context.Cause(ctx)
	}
	x, err = explain.Order(ctx, a.store, explain.Request{
		Order: domain.OrderID(r.id()), At: at, AreaRadius: explainAreaRadius, Limits: a.limits,
		WhatIf:     planner.WhatIf{AddDrones: added, AddSlots: slots, DropReserve: r.has("dropReserve")},
		SolveLimit: explainLimit, Workers: 1,
	})
	switch {
	case errors.Is(err, firestoretx.ErrNotKept):
		return x, problem(http.StatusGone, "%s; give a time within that, or enable point-in-time recovery of the database", err)
	case errors.Is(err, explain.ErrNotOpen):
		return x, problem(http.StatusConflict, "%s", err)
	}
	return x, err
}
