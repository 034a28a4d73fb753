package dispatch

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/dronefleet/dronefleet/domain"
)

func (r *Runner) tracer() trace.Tracer {
	return r.cfg.Tracing.Tracer("github.com/dronefleet/dronefleet/app/dispatch")
}

// startCycle begins a cycle's span: the root of the trace of its decisions and of
// the commands that follow from them.
func (r *Runner) startCycle(ctx context.Context, depot domain.DepotID) (context.Context, trace.Span) {
	return r.tracer().Start(ctx, "cycle", trace.WithAttributes(attribute.String("dronefleet.depot_id", string(depot))))
}

// describeCycle notes on a cycle's span how it went. A lock held by another
// process and a shutdown are not errors.
func describeCycle(span trace.Span, c domain.Cycle, err error) {
	if !span.IsRecording() {
		return
	}
	if errors.Is(err, ErrLocked) {
		span.SetAttributes(attribute.String("dronefleet.outcome", "SKIPPED"))
		return
	}
	span.SetAttributes(
		attribute.String("dronefleet.cycle_id", string(c.ID)), attribute.String("dronefleet.outcome", string(c.Outcome)),
		attribute.String("dronefleet.fence", c.Fence), attribute.Int("dronefleet.drones", c.Drones), attribute.Int("dronefleet.orders", c.Orders),
		attribute.Int("dronefleet.missions", c.Missions), attribute.Int("dronefleet.unserved", len(c.Unserved)))
	if err != nil && c.Outcome != domain.CycleAborted {
		span.SetStatus(codes.Error, err.Error())
	}
}
