package httpapi

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// decisionEndpoints show decisions, and the solve cycles that made them.
func (a *API) decisionEndpoints() []endpoint {
	return []endpoint{
		{
			method: get, path: "/api/v1/decisions", role: viewer, summary: "List decisions and their outcomes.",
			parameters: listed("decisions", choice("outcome", domain.Outcomes), choice("reason", policy.LedgerReasons())), answer: list("decisions", a.decisions, entity.OfDecision),
		},
		{method: get, path: "/api/v1/decisions/{id}", role: viewer, summary: "Read one decision.", answer: single[domain.DecisionID](a.store.LedgerEntry, entity.OfDecision)},
		{method: get, path: "/api/v1/decisions/{id}/story", role: viewer, summary: "Tell everything recorded about one decision.", answer: a.story(operator.SubjectDecision)},
		{
			method: get, path: "/api/v1/cycles", role: viewer, summary: "List solve cycles.",
			parameters: listed("cycles", choice("outcome", domain.CycleOutcomes)), answer: list("cycles", a.cycles, entity.OfCycle),
		},
		{method: get, path: "/api/v1/cycles/{id}", role: viewer, summary: "Read one cycle.", answer: single[domain.CycleID](a.store.Cycle, entity.OfCycle)},
		{method: get, path: "/api/v1/cycles/{id}/story", role: viewer, summary: "Tell everything recorded about one cycle.", answer: a.story(operator.SubjectCycle)},
	}
}

func (a *API) decisions(ctx context.Context, r *request) (firestoretx.Listing[domain.LedgerEntry], error) {
	filter := firestoretx.LedgerFilter{Outcome: domain.Outcome(r.value("outcome")), Reason: r.value("reason")}
	if filter.Reason != "" && filter.Outcome == domain.OutcomeApplied {
		return firestoretx.Listing[domain.LedgerEntry]{}, badParameter("reason", "goes with outcome REJECTED; an applied decision has none")
	}
	return a.store.ListLedger(ctx, filter, r.page())
}

// cycles may end a page early, with a next one, where cycles list many orders.
func (a *API) cycles(ctx context.Context, r *request) (firestoretx.Listing[domain.Cycle], error) {
	return a.store.ListCycles(ctx, domain.CycleOutcome(r.value("outcome")), r.page())
}
