package policy

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// judged is a decision and the state that it is judged by.
type judged struct {
	state    DecisionState
	decision domain.Decision
}

// soundDecision assigns orders O1 and O2 to drone D1 and must be applied.
func soundDecision() judged {
	drone := readyDrone("D1")
	d := plan("X", "D1", "O1", "O2")
	d.Fence = "000000000000007"
	return judged{
		decision: d,
		state: DecisionState{
			Drone:      &drone,
			Fences:     Fences{"DEPOT": "000000000000007", "": "000000000000007"},
			Orders:     map[domain.OrderID]domain.Order{"O1": openOrder("O1", 0), "O2": openOrder("O2", 1)},
			Warehouses: stocked(),
		},
	}
}

// objections maps every reason to reject a decision to a change that causes it. Any two can be
// combined: those about the drone only edit it, and those about an order edit O1. F-DEC-02
//
//exhaustive:ignore
var objections = map[Reason]func(*judged){
	ReasonDecisionConflict: func(j *judged) {
		j.state.Ledger = &domain.LedgerEntry{ID: "X", Outcome: domain.OutcomeApplied, PayloadHash: "another"}
	},
	ReasonFenceMissing: func(j *judged) { j.decision.Fence = "" },
	ReasonFenceUnknown: func(j *judged) { // F-DEC-07
		j.state.Issued = Fences{"DEPOT": "000000000000006", "": "000000000000006"}
	},
	ReasonStaleFence: func(j *judged) {
		j.state.Fences = Fences{"DEPOT": "000000000000008", "": "000000000000008"}
	},
	ReasonDecisionExpired:   func(j *judged) { j.decision.SnapshotTime = at(-120.001) },
	ReasonDroneUnknown:      func(j *judged) { j.state.Drone = nil },
	ReasonDroneUnregistered: drone(func(d *domain.Drone) { d.Unregistered = true }), // F-REG-09
	ReasonDroneGrounded:     drone(func(d *domain.Drone) { d.Grounded = true }),     // F-OPR-01
	ReasonDroneDue: drone(func(d *domain.Drone) { // F-REG-14
		d.Due = []domain.DueItem{{Item: "props", DueLimits: domain.DueLimits{At: start}}}
	}),
	ReasonDroneIdentity:   drone(func(d *domain.Drone) { d.SerialNumber, d.ReportedSerial = "1596A1234567890", "1596A1234567891" }), // F-REG-17
	ReasonDroneNotIdle:    drone(func(d *domain.Drone) { d.Status = domain.DroneCharging }),
	ReasonDroneSilent:     drone(func(d *domain.Drone) { d.SeenAt = at(-15.001) }),
	ReasonLowBattery:      drone(func(d *domain.Drone) { d.Battery = 20 }),
	ReasonDroneChanged:    drone(func(d *domain.Drone) { d.IdleSince = at(-1) }),
	ReasonOrderUnknown:    func(j *judged) { delete(j.state.Orders, "O2") },
	ReasonOrderNotPending: first(func(o *domain.Order) { o.Status = domain.OrderAssigned }),
	ReasonOrderHeld:       first(func(o *domain.Order) { o.Held = true }),
	ReasonDroneNotAllowed: first(func(o *domain.Order) { o.ForbiddenDroneIDs = []domain.DroneID{"D1"} }), // F-OPR-05
	ReasonOrderChanged:    first(func(o *domain.Order) { o.PendingSince = at(-1) }),
	ReasonBadRoute: func(j *judged) {
		j.decision.Route = j.decision.Route[:len(j.decision.Route)-2] // no delivery of O2
	},
	ReasonWarehouseUnknown: func(j *judged) { delete(j.state.Warehouses, "WH") },           // F-STP-02
	ReasonStopMisplaced:    first(func(o *domain.Order) { o.Delivery = depotAt }),          // F-STP-01
	ReasonWarehouseUnfit:   first(func(o *domain.Order) { o.ProductType = "HEART VALVE" }), // F-STP-03
	ReasonNoColdBox: func(j *judged) { // F-REG-05
		first(func(o *domain.Order) { o.ColdChain = true })(j)
		wh := j.state.Warehouses["WH"]
		wh.ColdStorage = true
		j.state.Warehouses["WH"] = wh
		drone(func(d *domain.Drone) { d.RegisteredAt = at(-3600) })(j)
	},
	ReasonOverCapacity: drone(func(d *domain.Drone) { d.PayloadCapacityKg = 1.9 }),
}

// ofAmendments are reasons against amendments alone; see
// TestMissionAssignmentPolicy_RefusesAmendments.
var ofAmendments = []Reason{ReasonMissionNotActive, ReasonNotAmendable, ReasonRevisionChanged, ReasonOrderAboard, ReasonStopCommitted}

// ofStandby are reasons against missions without orders alone; see
// TestMissionAssignmentPolicy_RefusesStandby.
var ofStandby = []Reason{ReasonStandbyUnsupported, ReasonBadCharge, ReasonBadWait}

// decisionReasons lists every reason to reject the decision of a mission with orders by
// precedence, a conflict with the ledger first.
func decisionReasons() []Reason {
	return minus(append([]Reason{ReasonDecisionConflict}, LedgerReasons()...), append(ofAmendments, ofStandby...))
}

func drone(change func(*domain.Drone)) func(*judged) {
	return func(j *judged) {
		if j.state.Drone != nil {
			change(j.state.Drone)
		}
	}
}

func first(change func(*domain.Order)) func(*judged) {
	return func(j *judged) {
		o := j.state.Orders["O1"]
		change(&o)
		j.state.Orders["O1"] = o
	}
}

func TestDecisionTable(t *testing.T) {
	if err := checkDecisionTable(contract()); err != nil {
		t.Error(err)
	}
}

// checkDecisionTable raises every objection alone and together with each later one;
// the reason must be that of the earlier one.
func checkDecisionTable(r rules) error {
	var all []error
	if got := judge(r, soundDecision()); got != applied {
		all = append(all, fmt.Errorf("a sound decision is %s, want applied", got))
	}
	reasons := decisionReasons()
	for i, reason := range reasons {
		give, ok := objections[reason]
		if !ok {
			return fmt.Errorf("objections of decision_table_test.go lack %s", reason)
		}
		for _, later := range reasons[i:] {
			j := soundDecision()
			if also := objections[later]; also != nil {
				also(&j)
			}
			give(&j)
			if got := judge(r, j); got != string(reason) {
				all = append(all, fmt.Errorf("objections %s and %s: got %s, want the first", reason, later, got))
			}
		}
	}
	for _, d := range decisionDetails {
		j := soundDecision()
		d.give(&j)
		if got := judge(r, j); got != d.want {
			all = append(all, fmt.Errorf("%s: %s, want %s", d.why, got, d.want))
		}
	}
	return errors.Join(all...)
}

func judge(r rules, j judged) string {
	before := deepCopy(j)
	v, err := r.assign(j.state, j.decision, Delivery{MessageID: "m", PublishedAt: start, ReceivedAt: start}, start)
	switch {
	case err != nil:
		return answer(err)
	case v.Entry.Outcome == domain.OutcomeRejected && (!v.Change.Empty() || v.Fence != "" || v.Entry.Detail == "" || v.Entry.MissionID != ""):
		return fmt.Sprintf("rejected as %s with a change, a fence or a mission, or without a detail: %+v", v.Entry.Reason, v)
	case !maps.Equal(before.state.Fences, j.state.Fences):
		return "fences changed in place"
	}
	return outcome(v.Entry)
}

// decisionDetails are the cases on both sides of each limit.
var decisionDetails = []struct {
	why  string
	give func(*judged)
	want string
}{
	{"a retired drone", drone(func(d *domain.Drone) { d.RetiredAt = at(-1) }), string(ReasonDroneUnregistered)}, // F-REG-12
	{"a document of an earlier version and a cold chain", func(j *judged) { // F-REG-10
		objections[ReasonNoColdBox](j)
		j.state.Drone.RegisteredAt = time.Time{}
	}, applied},
	{"a drone with a cold box", func(j *judged) {
		objections[ReasonNoColdBox](j)
		j.state.Drone.ColdBox = &domain.ColdBox{MinCelsius: 2, MaxCelsius: 8}
	}, applied},
	{"an item that is due in a second", drone(func(d *domain.Drone) {
		d.Due = []domain.DueItem{{Item: "props", DueLimits: domain.DueLimits{At: at(1), FlightHours: 2, Landings: 10}}}
		d.FlightSeconds, d.Landings = 7199, 9
	}), applied},
	{"an item due by flight hours", drone(func(d *domain.Drone) {
		d.Due = []domain.DueItem{{Item: "motor", DueLimits: domain.DueLimits{FlightHours: 2}}}
		d.FlightSeconds = 7200
	}), string(ReasonDroneDue)},
	{"an item due by landings", drone(func(d *domain.Drone) {
		d.Due, d.Landings = []domain.DueItem{{Item: "legs", EveryLandings: 10}}, 10
	}), string(ReasonDroneDue)},
	{"a battery that is too weak", drone(func(d *domain.Drone) { d.MinBatteryHealth, d.BatteryHealth = 80, ptr(79.9) }), string(ReasonDroneDue)},
	{"a battery of unknown health", drone(func(d *domain.Drone) { d.MinBatteryHealth = 80 }), applied},
	{"a drone that reports its serial number", drone(func(d *domain.Drone) { d.SerialNumber, d.ReportedSerial = "1596A1234567890", "1596A1234567890" }), applied},
	{"a drone of which no serial number is known", drone(func(d *domain.Drone) { d.ReportedSerial = "1596A1234567890" }), applied},
	{"the same payload is in the ledger as rejected", func(j *judged) {
		j.state.Ledger = &domain.LedgerEntry{ID: "X", Outcome: domain.OutcomeRejected, Reason: "LOW_BATTERY", Detail: "10 %", PayloadHash: j.decision.PayloadHash}
	}, string(ReasonLowBattery)},
	{"an order is pinned to another drone", first(func(o *domain.Order) { o.PinnedDroneID = "D2" }), string(ReasonDroneNotAllowed)}, // F-OPR-05
	{"an order is pinned to the drone", first(func(o *domain.Order) { o.PinnedDroneID = "D1" }), applied},
	{"another drone is forbidden", first(func(o *domain.Order) { o.ForbiddenDroneIDs = []domain.DroneID{"D2"} }), applied},
	{"an equal fence", func(*judged) {}, applied},
	{"an equal fence with a different number of digits", func(j *judged) { j.decision.Fence = "7" }, applied},
	{"a higher fence", func(j *judged) { j.fence("000000000000010", "000000000000010") }, applied},
	{"a higher fence with a different number of digits", func(j *judged) { j.fence("0000000000000000010", "10") }, applied},
	{"a higher fence than the lock has handed out", func(j *judged) { j.fence("000000000000011", "000000000000010") }, string(ReasonFenceUnknown)},
	{"a higher fence when the lock's counter was not read", func(j *judged) { j.decision.Fence = "000000000000008" }, string(ReasonFenceUnknown)},
	{"a lower fence when the lock's counter was not read", func(j *judged) { j.decision.Fence = "000000000000006" }, string(ReasonStaleFence)},
	{"a fence beyond the range of locks", func(j *judged) { j.fence("9999999999999999999", "900000000000000") }, string(ReasonFenceUnknown)},
	{"a lock that has handed out no fence", func(j *judged) { j.fence("000000000000001", "") }, string(ReasonFenceUnknown)},
	{"a fence of zero, which no lock hands out", func(j *judged) {
		j.state.Fences = nil
		j.fence("000000000000000", "")
	}, string(ReasonFenceUnknown)},
	{"the newest fence, after one that the lock never handed out", func(j *judged) {
		j.state.Fences = Fences{"DEPOT": "999999999999999"}
		j.fence("000000000000010", "000000000000010")
	}, applied},
	{"the second newest fence, after one that the lock never handed out", func(j *judged) {
		j.state.Fences = Fences{"DEPOT": "999999999999999"}
		j.fence("000000000000009", "000000000000010")
	}, string(ReasonStaleFence)},
	{"a fence that was applied although the lock never handed it out", func(j *judged) {
		j.state.Fences = Fences{"DEPOT": "999999999999999"}
		j.fence("999999999999999", "000000000000010")
	}, string(ReasonFenceUnknown)},
	{"no fence applied yet", func(j *judged) {
		j.state.Fences = nil
		j.fence("000000000000007", "000000000000007")
	}, applied},
	{"another depot's higher fence", func(j *judged) { j.state.Fences["DEPOT-2"] = "000000000000999" }, applied},
	{"a snapshot exactly 2 min old", func(j *judged) {
		j.decision.SnapshotTime = at(-120)
		j.state.Drone.IdleSince = at(-120)
		for id, o := range j.state.Orders {
			o.PendingSince = at(-120)
			j.state.Orders[id] = o
		}
	}, applied},
	{"a drone that is IDLE but bound to a mission", drone(func(d *domain.Drone) { d.CurrentMissionID = "M-Q" }), string(ReasonDroneNotIdle)},
	{"a drone last heard from exactly 15 s ago", drone(func(d *domain.Drone) { d.SeenAt = at(-15) }), applied},
	{"a drone with just over 20 %", func(j *judged) {
		j.state.Drone.Battery, j.decision.EstimatedBatteryConsumption = 20.1, 0.1
	}, applied},
	{"a drone with exactly 20 % on a plan that uses none", func(j *judged) {
		j.state.Drone.Battery, j.decision.EstimatedBatteryConsumption = 20, 0
	}, string(ReasonLowBattery)},
	{"landing with exactly 20 %", drone(func(d *domain.Drone) { d.Battery = 50 }), applied},
	{"landing with less than 20 %", drone(func(d *domain.Drone) { d.Battery = 49.9 }), string(ReasonLowBattery)},
	{"a drone idle since the snapshot", drone(func(d *domain.Drone) { d.IdleSince = at(-2) }), applied},
	{"an order pending since the snapshot", first(func(o *domain.Order) { o.PendingSince = at(-2) }), applied},
	{"an order pending since before the snapshot but written after it", func(j *judged) { j.writeO1(at(-3), at(-1)) }, string(ReasonOrderChanged)},
	{"an order written at the time of the snapshot", func(j *judged) { j.writeO1(at(-3), at(-2)) }, applied},
	{"an order written after the snapshot by the longest possible transaction", func(j *judged) { j.writeO1(at(-271.999), at(-1)) }, string(ReasonOrderChanged)},
	{"an order pending for longer than any transaction takes, written after the snapshot", func(j *judged) { j.writeO1(at(-272), at(-1)) }, applied},
	{"parcels that weigh exactly the capacity", func(j *judged) {
		j.state.Drone.PayloadCapacityKg = 0.3
		j.weigh("O1", 0.1)
		j.weigh("O2", 0.2) // 0.1 + 0.2 is a little over 0.3 in binary
	}, applied},
	{"an unknown capacity", drone(func(d *domain.Drone) { d.PayloadCapacityKg = 0 }), applied},
	{"parcels carried one after the other", func(j *judged) {
		j.state.Drone.PayloadCapacityKg = 1
		j.decision.Route[2], j.decision.Route[3] = j.decision.Route[3], j.decision.Route[2]
	}, applied},
	{"a stop for another order", func(j *judged) { j.decision.Route[1].OrderID = "O9" }, string(ReasonBadRoute)},
	{"a stop for no order", func(j *judged) { j.decision.Route[1].OrderID = "" }, string(ReasonBadRoute)},
	{"a delivery before its pickup", func(j *judged) {
		r := j.decision.Route
		r[1], r[3] = r[3], r[1]
	}, string(ReasonBadRoute)},
	{"an order picked up twice", func(j *judged) { j.decision.Route[2] = j.decision.Route[1] }, string(ReasonBadRoute)},
	{"an order delivered twice", func(j *judged) { j.decision.Route[4] = j.decision.Route[3] }, string(ReasonBadRoute)},
	{"no pickup", func(j *judged) { j.decision.Route[1].Type = domain.WaypointDepotReturn }, string(ReasonBadRoute)},
	{"no stops", func(j *judged) { j.decision.Route = nil }, string(ReasonBadRoute)},
	{"no order", func(j *judged) { j.decision.OrderIDs, j.decision.Route = nil, nil }, string(ReasonBadRoute)},
	{"a charge before the pickup", func(j *judged) { // F-AMD-06
		j.decision.Route[0] = domain.Waypoint{Type: domain.WaypointCharge, Position: depotAt, ChargeToPercent: 80}
	}, string(ReasonBadRoute)},
	{"an order listed twice", func(j *judged) { j.decision.OrderIDs = []domain.OrderID{"O1", "O2", "O1"} }, string(ReasonBadRoute)},
	{"a route from where it stands", func(j *judged) { j.decision.Route = j.decision.Route[1:5] }, applied},
}

// fence sets the decision's fence and the newest one that the depot's lock has issued.
func (j *judged) fence(own, issued string) {
	j.decision.Fence = own
	j.state.Issued = Fences{"DEPOT": issued}
}

// writeO1 sets when O1 became pending and when it was last written.
func (j *judged) writeO1(pending, written time.Time) {
	first(func(o *domain.Order) { o.PendingSince = pending })(j)
	j.state.OrdersWritten = map[domain.OrderID]time.Time{"O1": written}
}

func (j *judged) weigh(id domain.OrderID, kg float64) {
	o := j.state.Orders[id]
	o.WeightKg = kg
	j.state.Orders[id] = o
}

// F-DEC-07
func TestMissionAssignmentPolicy_AcceptsUnfencedDecisionsOnlyIfAllowed(t *testing.T) {
	p := DefaultMissionAssignmentPolicy()
	for allowed, want := range map[bool]string{false: string(ReasonFenceMissing), true: applied} {
		p.AllowUnfenced = allowed
		j := soundDecision()
		j.decision.Fence = ""
		if got := judge(configured(DefaultDronePolicy(), DefaultOrderPolicy(), p), j); got != want {
			t.Errorf("AllowUnfenced %t: a decision without a fence is %s, want %s", allowed, got, want)
		}
	}
}

// The lock's counter is read only for a fence that differs from the highest applied
// one. F-DEC-07
func TestDecisionState_NeedsIssuedOncePerCycle(t *testing.T) {
	for fence, want := range map[string]bool{
		"000000000000007": false, "0000000000000000007": false, "": false, "000000000000006": true, "000000000000008": true,
	} {
		j := soundDecision()
		j.decision.Fence = fence
		if got := j.state.NeedsIssued(j.decision); got != want {
			t.Errorf("fence %q: NeedsIssued = %t, want %t", fence, got, want)
		}
		j.state.Ledger = &domain.LedgerEntry{}
		if j.state.NeedsIssued(j.decision) {
			t.Errorf("fence %q: NeedsIssued = true for a decision in the ledger", fence)
		}
	}
}

// F-DEC-06
func TestDecisionTable_AcceptsOnlyIdleDronesAndPendingOrders(t *testing.T) {
	for _, s := range domain.DroneStatuses {
		j := soundDecision()
		j.state.Drone.Status = s
		want := string(ReasonDroneNotIdle)
		if s == domain.DroneIdle {
			want = applied
		}
		if got := judge(contract(), j); got != want {
			t.Errorf("drone %s: %s, want %s", s, got, want)
		}
	}
	for _, s := range append(domain.OrderStatuses, "") {
		j := soundDecision()
		first(func(o *domain.Order) { o.Status = s })(&j)
		want := string(ReasonOrderNotPending)
		if s == domain.OrderPending {
			want = applied
		}
		if got := judge(contract(), j); got != want {
			t.Errorf("order %s: %s, want %s", s, got, want)
		}
	}
}

// F-DEC-01, F-DEC-04, F-TEL-06 a
func TestVerdict_AppliedWritesMissionDroneOrdersAndLedger(t *testing.T) {
	j := soundDecision()
	j.fence("000000000000009", "000000000000009")
	via := Delivery{MessageID: "m", PublishedAt: at(-1), ReceivedAt: at(-0.5)}
	v, err := contract().assign(j.state, j.decision, via, start)
	if err != nil || v.Entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("%+v, %v", v.Entry, err)
	}
	if v.Depot != "DEPOT" || v.Fence != j.decision.Fence || v.Replay {
		t.Errorf("fence %q of %q, replay %t", v.Fence, v.Depot, v.Replay)
	}
	e := v.Entry
	if e.MissionID != "M-X" || e.PayloadHash != j.decision.PayloadHash || e.CycleID != "C" || e.Fence != j.decision.Fence ||
		e.MessageID != "m" || !e.PublishedAt.Equal(via.PublishedAt) || !e.ReceivedAt.Equal(via.ReceivedAt) || !e.AppliedAt.Equal(start) {
		t.Errorf("ledger %+v", e)
	}
	d := v.Change.Drone
	if d.Status != domain.DroneMoving || d.CurrentMissionID != "M-X" || !d.FreeAfter.Equal(start.Add(25*time.Second)) || !d.LastUpdate.Equal(at(-1)) {
		t.Errorf("drone %+v", d)
	}
	m := v.Change.Missions[0]
	if m.Status != domain.MissionActive || !m.CommandExpiresAt.Equal(start.Add(20*time.Second)) || !m.CommandPending || !m.CommandPublishedAt.IsZero() || len(m.Route) != 6 {
		t.Errorf("mission %+v", m)
	}
	if len(v.Change.Events) != 4 {
		t.Errorf("%d events, want 4: a mission, a drone and two orders", len(v.Change.Events))
	}
	for _, ev := range v.Change.Events {
		if ev.DecisionID != "X" || ev.CycleID != "C" || ev.MissionID != "M-X" || ev.DroneID != "D1" || ev.Cause != domain.CauseDecision {
			t.Errorf("event %+v", ev)
		}
	}
}
