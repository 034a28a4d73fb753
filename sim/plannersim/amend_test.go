package plannersim_test

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/plannersim"
	"github.com/dronefleet/dronefleet/solver"
)

// F-AMD-01 F-AMD-02: what the planner decides about missions under way is accepted by the
// rules of production and flown by the drones, and it brings more CRITICAL orders in time.
func TestRun_AmendsMissionsUnderWay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long; run without -short")
	}
	s := plannersim.Scenario{PerMinute: 5, Seed: 3, Duration: 50 * time.Minute, Drones: 20}
	without := run(t, s, solver.SISR)
	s.Amend = true
	with := run(t, s, solver.SISR)
	if a := with.Amendments; a.Applied < 20 || a.Orders < a.Applied || a.Void > 0 || len(a.Refused) > 0 {
		t.Errorf("amendments %+v", a)
	}
	if without.Amendments.Applied > 0 {
		t.Errorf("amendments without being asked: %+v", without.Amendments)
	}
	us, them := with.Priorities[domain.PriorityCritical], without.Priorities[domain.PriorityCritical]
	if us.OnTime <= them.OnTime || with.Delivered <= without.Delivered {
		t.Errorf("CRITICAL %+v, %d delivered; without amendments %+v, %d", us, with.Delivered, them, without.Delivered)
	}
}
