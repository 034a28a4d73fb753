package dispatch_test

import (
	"testing"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver/model"
)

// F-OPT-03, F-WIRE-03: what the solver plans fits what a decision can carry.
func TestPlans_FitTheWire(t *testing.T) {
	if model.MaxIDBytes > domain.MaxIDBytes || model.MaxOrdersPerDecision > wire.MaxOrdersPerDecision || model.MaxWaypointsPerDecision > wire.MaxWaypointsPerDecision {
		t.Error("the solver allows more than the wire")
	}
}
