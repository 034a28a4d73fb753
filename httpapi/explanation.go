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
	explainLimit    = 300 * time.Millisecond
	usualAreaRadius = 13
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

// explanationNow is an explanation as a page reads it.
type explanationNow struct {
	serverTime
	explain.OrderExplanation
}

// explanation answers GET /api/v1/orders/{id}/explanation with why an order waited or was
// late.
//
// Cost: that of past, and one read; up to three plans of explainLimit each.
func (a *API) explanation(ctx context.Context, r *request) (now explanationNow, err error) {
	at, _ := input.Time(r.value("at"))             // checked; zero if left out
	added, _ := strconv.Atoi(r.value("addDrones")) // checked
	slots, _ := strconv.Atoi(r.value("addSlots"))  // checked
	now.OrderExplanation, err = a.explain(ctx, explain.Request{
		Order: domain.OrderID(r.id()), At: at, WhatIf: planner.WhatIf{AddDrones: added, AddSlots: slots, DropReserve: r.has("dropReserve")},
	})
	now.serverTime = r.serverTime()
	return now, err
}

// explain plans when its turn has come.
func (a *API) explain(ctx context.Context, q explain.Request) (x explain.OrderExplanation, err error) {
	select {
	case a.explaining <- struct{}{}:
		defer func() { <-a.explaining }()
	case <-ctx.Done():
		return x, context.Cause(ctx)
	}
	q.AreaRadius, q.Limits, q.SolveLimit, q.Workers = usualAreaRadius, a.limits, explainLimit, 1
	x, err = explain.Order(ctx, a.store, q)
	switch {
	case errors.Is(err, firestoretx.ErrNotKept):
		return x, problem(http.StatusGone, "%s; give a time within that, or enable point-in-time recovery of the database", err)
	case errors.Is(err, explain.ErrNotOpen):
		return x, problem(http.StatusConflict, "%s", err)
	}
	return x, err
}

// candidatesListed is how many drones are listed that could take an order.
const candidatesListed = 20

// pinTo asks what a plan does if only one drone may take the order.
var pinTo = parameter{
	name: "drone", says: "What if only this drone could take the order.", example: "D2", schema: schema{"type": "string"}, wrong: checked(domain.CheckID),
}

// candidatesNow are the drones that could take an order that waits.
type candidatesNow struct {
	serverTime
	ReadTime        time.Time      `json:"readTime"`
	OrderID         domain.OrderID `json:"orderId"`
	Deadline        time.Time      `json:"deadline"`
	EarliestArrival *time.Time     `json:"earliestArrival,omitempty" doc:"When the first drone that can take it could deliver it if no other order waited; absent if none can."`
	EarliestDroneID domain.DroneID `json:"earliestDroneId,omitempty"`
	// Plan is what a cycle would do with the order now.
	Plan       planner.Outcome      `json:"plan"`
	Candidates []planner.Candidate  `json:"candidates" doc:"The first 20 drones of the area, the soonest first, with what each lacks. One that lacks nothing could deliver the order in time."`
	Pinned     *planner.Alternative `json:"pinned,omitempty" doc:"What a plan does if only the given drone may take the order, and which orders it then serves later or earlier; absent if none is given."`
}

// candidates answers GET /api/v1/orders/{id}/candidates, for an operator who is about to pin the order.
//
// Cost: that of explanation.
func (a *API) candidates(ctx context.Context, r *request) (now candidatesNow, err error) {
	x, err := a.explain(ctx, explain.Request{
		Order: domain.OrderID(r.id()), WhatIf: planner.WhatIf{PinTo: domain.DroneID(r.value("drone"))}, List: candidatesListed,
	})
	if err != nil {
		return now, err
	}
	if x.Status != string(domain.OrderPending) {
		return now, problem(http.StatusConflict, "order %s does not wait for a drone: it is %s; recall its mission first", x.OrderID, x.Outcome)
	}
	return candidatesNow{
		r.serverTime(), x.ReadTime, x.OrderID, x.Deadline, x.EarliestArrival, x.EarliestDroneID, x.Why.Plan, x.Why.Nearest, x.Why.WhatIf,
	}, nil
}
