package plannersim_test

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/plannersim"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// F-AMD-01 F-AMD-02: what the planner decides about missions under way is accepted by the
// rules of production and flown by the drones, and it brings more CRITICAL orders in time.
func TestRun_AmendsMissionsUnderWay(t *testing.T) {
	longtest.Only(t, "plans 50 minutes twice")
	t.Parallel()
	s := plannersim.Scenario{PerMinute: 5, Seed: 3, Duration: 50 * time.Minute, Drones: 20}
	without := run(t, s, solver.SISR)
	s.Amend = true
	with := run(t, s, solver.SISR)
	if a := with.Amendments; a.Applied < 20 || a.Orders < 20 || a.Void > 0 || len(a.Refused) > 0 {
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

// F-CHG-01: no more drones charge at once than there are slots; the others wait, and fewer
// orders are in time for it.
func TestRun_NoMoreDronesChargeThanSlots(t *testing.T) {
	longtest.Only(t, "plans 40 minutes twice")
	t.Parallel()
	s := plannersim.Scenario{PerMinute: 4, Seed: 3, Duration: 40 * time.Minute, Drones: 12, Amend: true, Standby: true, Slots: 1}
	cfg := planner.Config{Options: solver.Options{Iterations: 5, Workers: 1}, Advance: true}
	few := runWith(t, s, cfg)
	s.Slots = 0
	enough := runWith(t, s, cfg)
	if c := few.Charging; c.Slots != 1 || c.Most != 1 || c.Waited < 30*time.Minute || few.Standby == 0 || len(few.Rejected) > 0 {
		t.Errorf("%+v, %d missions without orders, rejected %v", c, few.Standby, few.Rejected)
	}
	if few.Delivered >= enough.Delivered || enough.Charging.Waited > 0 {
		t.Errorf("%d delivered with one slot, %d with enough: %+v", few.Delivered, enough.Delivered, enough.Charging)
	}
}

// F-AMD-06: what the planner decides about drones without orders is accepted by the rules of
// production and flown, and it brings more CRITICAL orders in time.
func TestRun_DronesWaitWhereOrdersAreExpected(t *testing.T) {
	longtest.Only(t, "plans 70 minutes twice")
	t.Parallel()
	s := plannersim.Scenario{PerMinute: 6, Seed: 3, Duration: 70 * time.Minute, Quiet: 20 * time.Minute, Drones: 30, Amend: true}
	cfg := planner.Config{Options: solver.Options{Iterations: 20, Workers: 1}, Advance: true}
	without := runWith(t, s, cfg)
	s.Standby = true
	with := runWith(t, s, cfg)
	if without.Standby > 0 || with.Standby < 10 || len(with.Rejected)+with.Refused+len(with.Amendments.Refused) > 0 {
		t.Errorf("%d missions without orders, rejected %v, %v; %d for drones that take none", with.Standby, with.Rejected, with.Amendments, without.Standby)
	}
	us, them := with.Priorities[domain.PriorityCritical], without.Priorities[domain.PriorityCritical]
	if us.OnTime <= them.OnTime {
		t.Errorf("CRITICAL %+v; without positions %+v", us, them)
	}
}
