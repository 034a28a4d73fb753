package main

import (
	"context"
	"slices"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/policy"
)

type cyclesCommand struct {
	List cyclesList `cmd:"" help:"List solve cycles."`
}

type decisionsCommand struct {
	List decisionsList `cmd:"" help:"List decisions and their outcomes."`
}

type cyclesList struct {
	desk
	page
	Outcome domain.CycleOutcome `help:"Only cycles with this outcome." placeholder:"OUTCOME"`
}

// Check implements config.Checker.
func (c *cyclesList) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.checkPage(r, "cycles", domain.CheckDocumentID)
	checkOutcome(r, c.Outcome, domain.CycleOutcomes)
}

// Run lists cycles.
func (c *cyclesList) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return c.on(d).ListCycles(ctx, c.Outcome, c.page.page())
	})
}

type decisionsList struct {
	desk
	page
	Outcome domain.Outcome `help:"Only decisions with this outcome." placeholder:"OUTCOME"`
	Reason  policy.Reason  `help:"Only decisions that were rejected for this reason." placeholder:"REASON"`
}

// Check implements config.Checker.
func (c *decisionsList) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.checkPage(r, "decisions", domain.CheckDocumentID)
	checkOutcome(r, c.Outcome, domain.Outcomes)
	switch reasons := policy.LedgerReasons(); {
	case c.Reason == "":
	case !slices.Contains(reasons, c.Reason):
		r.Refuse("reason", "is %q; give %s", c.Reason, config.OneOf(reasons))
	case c.Outcome == domain.OutcomeApplied:
		r.Refuse("reason", "goes with outcome %s; an applied decision has none", domain.OutcomeRejected)
	}
}

// Run lists decisions.
func (c *decisionsList) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		return c.on(d).ListDecisions(ctx, firestoretx.LedgerFilter{Outcome: c.Outcome, Reason: string(c.Reason)}, c.page.page())
	})
}

// checkOutcome refuses an outcome that is not in legal. An empty one is allowed.
func checkOutcome[T ~string](r *config.Refuser, outcome T, legal []T) {
	if outcome != "" && !slices.Contains(legal, outcome) {
		r.Refuse("outcome", "is %q; give %s", outcome, config.OneOf(legal))
	}
}
