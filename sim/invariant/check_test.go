package invariant

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/domain"
)

func TestCheck_GoodHistoryHasNoViolation(t *testing.T) {
	report := Check(goodHistory())
	for _, v := range report.Violations {
		t.Error(v)
	}
	if report.Checked < 200 || !report.OK() {
		t.Errorf("only %d facts were checked", report.Checked)
	}
}

func TestCheck_EmptyHistoryHasNoViolation(t *testing.T) {
	if report := Check(History{}); !report.OK() {
		t.Error(report.Violations)
	}
}

func TestCheck_IgnoresTheOrderOfEvents(t *testing.T) {
	h := goodHistory()
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		random.Shuffle(len(h.Events), func(i, j int) { h.Events[i], h.Events[j] = h.Events[j], h.Events[i] })
		if report := Check(h); !report.OK() {
			t.Fatal(report.Violations)
		}
	}
}

// I5: a fence belongs to the depot whose cycle decided; the drone may have another
// home since.
func TestCheck_ComparesFencesByDepot(t *testing.T) {
	h := goodHistory()
	row(&h, "C1-D1").Fence, row(&h, "C1-D1").DepotID = "900", "DEPOT-2"
	h.Fences["DEPOT-2"] = "900"
	if report := Check(h); !report.OK() {
		t.Error(report.Violations)
	}
	h.Fences["DEPOT-2"] = "899"
	if !broken(Check(h), "I5") {
		t.Error("the lower fence of the other depot is not reported")
	}
}

// I2: a newer version may record lists and maps that this one does not know.
func TestCheck_AcceptsUnknownState(t *testing.T) {
	h := goodHistory()
	for i := range h.Events {
		if h.Events[i].State != nil {
			h.Events[i].State = maps.Clone(h.Events[i].State)
			h.Events[i].State["route"], h.Events[i].State["wind"] = []any{"A", "B"}, map[string]any{"from": "N"}
		}
	}
	if report := Check(h); !report.OK() {
		t.Error(report.Violations)
	}
	last(&h, "order O11").State["route"] = []any{"A"}
	if !broken(Check(h), "I2") {
		t.Error("a late mark changed a list unseen")
	}
}

// Stores return numbers in types of their own.
func TestCheck_AcceptsNumbersOfAnyType(t *testing.T) {
	h := goodHistory()
	for i := range h.Events {
		h.Events[i].State = maps.Clone(h.Events[i].State)
		for key, v := range h.Events[i].State {
			if n, ok := v.(int64); ok {
				h.Events[i].State[key] = []any{int(n), float64(n), int32(n)}[i%3]
			}
		}
	}
	if report := Check(h); !report.OK() {
		t.Fatal(report.Violations)
	}
}

func TestCheck_ReportsAnyLostOrRepeatedEvent(t *testing.T) {
	for i, e := range goodHistory().Events {
		t.Run(fmt.Sprintf("%s %s revision %d", e.Entity, e.ID, e.Revision), func(t *testing.T) {
			lost := goodHistory()
			lost.Events = slices.Delete(lost.Events, i, i+1)
			if !broken(Check(lost), "I8") {
				t.Error("its loss goes unseen")
			}
			double := goodHistory()
			double.Events = append(double.Events, e)
			if !broken(Check(double), "I8") {
				t.Error("its repetition goes unseen")
			}
		})
	}
}

func broken(r Result, invariant string) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Invariant == invariant })
}

// Every invariant is broken here in each way it knows of.
func TestCheck_ReportsBrokenHistories(t *testing.T) {
	for _, row := range []struct {
		invariant, name string
		breaks          func(h *History)
	}{
		{"I1", "two final missions of one drone", func(h *History) { final(h, "M2").Status = domain.MissionActive; final(h, "M2").DroneID = "D1" }},
		{"I1", "two final missions of one order", func(h *History) {
			final(h, "M4").Status = domain.MissionActive
			final(h, "M4").OrderIDs = final(h, "M3").OrderIDs
		}},
		{"I1", "drone bound from mission to mission", func(h *History) { set(h, "drone D2 4", "currentMissionId", "M9") }},
		{"I1", "order moved from mission to mission", func(h *History) {
			set(h, "order O3 4", "assignedMissionId", "M9")
			set(h, "order O3 3", "assignedMissionId", "M2")
		}},
		{"I1", "drone's missions overlap in time", func(h *History) { event(h, "mission M3 1").Time = event(h, "mission M1 1").Time.Add(time.Second) }},
		{"I1", "order's missions overlap in time", func(h *History) { last(h, "mission M2").Time = event(h, "mission M3 1").Time.Add(time.Minute) }},
		{"I1", "withdrawn order's missions overlap in time", func(h *History) {
			final(h, "M4").OrderIDs = []domain.OrderID{"O5", "O4"}
			event(h, "mission M4 1").Time = event(h, "mission M3 1").Time.Add(time.Second)
		}},
		{"I1", "a long mission over two short ones", func(h *History) {
			final(h, "M1").DroneID, final(h, "M2").DroneID, final(h, "M3").DroneID = "D3", "D3", "D1"
			last(h, "mission M1").Time = event(h, "mission M4 1").Time.Add(time.Hour)
		}},

		{"I1", "the later two of three missions overlap in time", func(h *History) {
			event(h, "mission M7 1").Time = last(h, "mission M6").Time.Add(-time.Minute)
		}},
		{"I1", "a mission begins and ends while another is open", func(h *History) { final(h, "M7").DroneID = "D1" }},

		{"I2", "drone begins IDLE", func(h *History) { event(h, "drone D1 1").To = "IDLE" }},
		{"I2", "drone has an unknown status", func(h *History) { event(h, "drone D1 2").To = "FLYING" }},
		{"I2", "bound drone is IDLE", func(h *History) { event(h, "drone D1 4").To = "IDLE" }},
		{"I2", "drone is bound by telemetry", func(h *History) { event(h, "drone D1 3").Cause = domain.CauseTelemetry }},
		{"I2", "drone is bound while charging", func(h *History) { event(h, "drone D1 3").From = "CHARGING" }},
		{"I2", "drone is bound to something but MOVING", func(h *History) { event(h, "drone D1 3").To = "DELIVERING" }},
		{"I2", "drone knows its mission at once", func(h *History) { set(h, "drone D1 3", "missionAcked", true) }},
		{"I2", "decision frees a drone", func(h *History) { event(h, "drone D2 4").Cause = domain.CauseDecision }},
		{"I2", "drone is RESERVED", func(h *History) { event(h, "drone D1 2").To = "RESERVED" }},                         // F-DEC-06
		{"I2", "drone is freed by the sweeper", func(h *History) { event(h, "drone D2 4").Cause = domain.CauseSweeper }}, // F-TEL-06
		{"I2", "emergency is cleared by a report", func(h *History) { // F-TEL-08
			set(h, "drone D3 4", "emergencyLatched", true)
			event(h, "drone D3 4").To = "EMERGENCY"
		}},
		{"I2", "drone whose emergency was not cleared is ready", func(h *History) { set(h, "drone D3 2", "emergencyLatched", true) }},
		{"I2", "order gets another priority by the decision", func(h *History) { set(h, "order O1 2", "priority", "CRITICAL") }}, // F-OPR-03
		{"I2", "order is pinned by the decision", func(h *History) { set(h, "order O1 2", "pinnedDroneId", "D1") }},              // F-OPR-05
		{"I2", "order pinned to another drone is assigned", func(h *History) { set(h, "order O1 1", "pinnedDroneId", "D9") }},
		{"I2", "order is assigned to a forbidden drone", func(h *History) { set(h, "order O1 1", "forbiddenDroneIds", "D9, D1") }},
		{"I2", "order gets another planning depot by the decision", func(h *History) { set(h, "order O1 2", "planningDepotId", "DEPOT") }}, // F-ARE-05
		{"I2", "order is handed over by an operator", func(h *History) { event(h, "order O6 3").Cause = domain.CauseOperator }},
		{"I2", "order is handed over to the depot that has it", func(h *History) { set(h, "order O6 3", "planningDepotId", "DEPOT") }},
		{"F-ARE-04", "two areas read an order", func(h *History) { h.Readings[0].Read["DEPOT-2"] = []domain.OrderID{"O1", "O6"} }},
		{"F-ARE-04", "no area reads an order", func(h *History) { h.Readings[0].Read["DEPOT"] = nil }},
		{"F-ARE-04", "an area reads an order that does not wait", func(h *History) { h.Readings[0].Waiting = h.Readings[0].Waiting[:1] }},
		{"I2", "order is handed over without a trace", func(h *History) { set(h, "order O6 3", "handedOverBy", "") }},
		{"I2", "order is handed over back", func(h *History) {
			set(h, "order O6 2", "handedOverBy", "DEPOT-2")
			set(h, "order O6 3", "handedOverBy", "DEPOT-2, DEPOT")
		}},
		{"I8", "order's document has another planning depot", func(h *History) { parcel(h, "O6").PlanningDepotID = "DEPOT" }},
		{"I2", "drone is grounded by a report", func(h *History) { set(h, "drone D1 2", "grounded", true) }}, // F-OPR-01
		{"I2", "grounded drone is bound", func(h *History) {
			set(h, "drone D1 2", "grounded", true)
			event(h, "drone D1 2").Cause = domain.CauseOperator
		}},
		// F-REG-09 F-REG-12 F-REG-14 F-REG-17
		{"I12", "unregistered drone is bound", func(h *History) { set(h, "drone D1 2", "unregistered", true) }},
		{"I12", "retired drone is bound", func(h *History) { set(h, "drone D1 2", "retired", true) }},
		{"I12", "drone with another serial number is bound", func(h *History) { set(h, "drone D1 2", "otherIdentity", true) }},
		{"I12", "drone that is due is bound", func(h *History) {
			set(h, "drone D1 2", "dueAt", event(h, "drone D1 3").Time)
		}},
		{"I12", "drone is revived by a report", func(h *History) { set(h, "drone D1 1", "retired", true) }},
		{"I12", "drone is retired on its mission", func(h *History) {
			e := last(h, "drone D2") // of its mission
			e.State["retired"], e.Cause = true, domain.CauseOperator
		}},
		{"I12", "drone is registered by its first report", func(h *History) { event(h, "drone D1 1").Cause = domain.CauseTelemetry }},
		{"I2", "order begins DELIVERED", func(h *History) { event(h, "order O6 1").To = "DELIVERED" }},
		{"I2", "order is delivered without pickup", func(h *History) { event(h, "order O1 3").To = "DELIVERED" }},
		{"I2", "order changes after its end", func(h *History) { event(h, "order O1 4").From = "CANCELLED" }},
		{"I2", "order is assigned by an operator", func(h *History) { event(h, "order O1 2").Cause = domain.CauseOperator }},
		{"I2", "order is delivered by the sweeper", func(h *History) { event(h, "order O1 4").Cause = domain.CauseSweeper }},
		{"I2", "order is cancelled by a report", func(h *History) { last(h, "order O7").Cause = domain.CauseTelemetry }},
		{"I2", "held order is released by an order message", func(h *History) { // F-ORD-04
			e := *last(h, "order O10")
			e.Revision, e.From, e.Cause, e.State = e.Revision+1, e.To, domain.CauseOrder, maps.Clone(e.State)
			e.State["held"] = false
			h.Events = append(h.Events, e)
		}},
		{"I2", "held order is assigned", func(h *History) { set(h, "order O1 1", "held", true) }},
		{"I2", "assigned order has no mission", func(h *History) { set(h, "order O1 2", "assignedMissionId", "") }},
		{"I2", "assigned order has no drone", func(h *History) { set(h, "order O1 2", "assignedDroneId", "") }},
		{"I2", "pending order keeps its mission", func(h *History) { set(h, "order O3 3", "assignedMissionId", "M2") }},
		{"I2", "failed attempt is not counted", func(h *History) { set(h, "order O3 3", "attempts", int64(0)) }},
		{"I2", "third failed attempt is not held", func(h *History) {
			set(h, "order O3 2", "attempts", int64(2))
			set(h, "order O3 3", "attempts", int64(3))
		}},
		{"I2", "parcel aboard is not held", func(h *History) { set(h, "order O5 4", "held", false) }},
		{"I2", "assigned order changes content", func(h *History) { set(h, "order O3 5", "contentHash", "other") }},
		{"I2", "order aboard changes content", func(h *History) { set(h, "order O11 4", "contentHash", "other") }},
		{"I2", "mission begins COMPLETED", func(h *History) { event(h, "mission M3 1").To = "COMPLETED" }},
		{"I2", "mission begins by telemetry", func(h *History) { event(h, "mission M3 1").Cause = domain.CauseTelemetry }},
		{"I2", "mission comes back", func(h *History) { last(h, "mission M1").From = "FAILED" }},
		{"I2", "mission fails without a reason", func(h *History) { set(h, "mission M2 2", "failureReason", "") }},
		{"I2", "mission fails for an unknown reason", func(h *History) { set(h, "mission M2 2", "failureReason", "TIRED") }},
		{"I2", "mission is not acked by a timer", func(h *History) { last(h, "mission M2").Cause = domain.CauseSweeper }}, // F-TEL-06
		{"I2", "mission is completed for a reason", func(h *History) { set(h, "mission M1 6", "failureReason", "STALLED") }},
		{"I2", "mission goes back a stop", func(h *History) { set(h, "mission M1 4", "reachedStops", int64(0)) }},
		// F-AMD-06
		{"I2", "mission without orders is completed before its drone has charged", func(h *History) {
			final(h, "M1").Route = slices.Repeat([]domain.Waypoint{{Type: domain.WaypointCharge, ChargeToPercent: 90}}, final(h, "M1").ReachedStops+1)
		}},
		{"I2", "mission without orders is completed before its drone has waited", func(h *History) {
			m := final(h, "M1")
			m.Route = []domain.Waypoint{{Type: domain.WaypointWait, WaitUntil: m.EndTime.Add(DefaultClockTolerance + time.Second)}}
		}},
		{"I2", "event of an unknown kind", func(h *History) { event(h, "mission M1 1").Entity = "depot" }},

		{"I3", "accepted order does not exist", func(h *History) { h.Orders = slices.Delete(h.Orders, 5, 6) }},
		{"I3", "order has a status that nothing handles", func(h *History) { parcel(h, "O6").Status = domain.OrderSolving }},
		{"I3", "assigned order's mission is over", func(h *History) { final(h, "M3").Status = domain.MissionCompleted }},
		{"I3", "assigned order's mission does not list it", func(h *History) { final(h, "M3").OrderIDs = nil }},
		{"I3", "assigned order's mission does not exist", func(h *History) { parcel(h, "O3").AssignedMissionID = "M9" }},
		{"I3", "active mission's drone is free", func(h *History) { h.Drones[0].CurrentMissionID = "" }},
		{"I3", "active mission's drone does not exist", func(h *History) { h.Drones = h.Drones[1:] }},
		{"I3", "mission lists an order that waits", func(h *History) { final(h, "M3").OrderIDs = []domain.OrderID{"O3", "O6"} }},
		{"I3", "active mission lists an order that another delivered", func(h *History) { parcel(h, "O12").AssignedMissionID = "M1" }},

		{"I3", "completed mission's order is pending", func(h *History) {
			parcel(h, "O2").Status = domain.OrderPending
			parcel(h, "O2").AssignedMissionID, parcel(h, "O2").AssignedDroneID = "", ""
		}},
		{"I3", "completed mission's order is cancelled and still listed", func(h *History) { parcel(h, "O2").Status = domain.OrderCancelled }},

		{"I4", "observed lastUpdate goes back", func(h *History) { slices.Reverse(h.Observations) }},
		{"I4", "final lastUpdate is older than one seen", func(h *History) { h.Drones[0].LastUpdate = morning }},

		{"I5", "older fence is applied later", func(h *History) { row(h, "C3-D1").Fence = "001" }},
		{"I5", "fences compare as numbers", func(h *History) { row(h, "C2-D2").Fence, row(h, "C3-D1").Fence = "10", "9" }},
		{"I5", "control document holds a lower fence", func(h *History) { h.Fences = map[domain.DepotID]string{"DEPOT": "001"} }},
		{"I5", "control document has no fence", func(h *History) { h.Fences = map[domain.DepotID]string{} }},

		{"I6", "decision has two outcomes", func(h *History) { h.Ledger = append(h.Ledger, h.Ledger[1]) }},
		{"I6", "decision has an unknown outcome", func(h *History) { h.Ledger[1].Outcome = "MAYBE" }},
		{"I6", "applied decision has no mission", func(h *History) { h.Missions = slices.Delete(h.Missions, 0, 1) }},
		{"I6", "applied decision has a reason", func(h *History) { h.Ledger[0].Reason = "LOW_BATTERY" }},
		{"I6", "rejection has no reason", func(h *History) { h.Ledger[1].Reason = "" }},
		{"I6", "decision made two missions", func(h *History) { final(h, "M2").DecisionID = "C1-D1" }},
		{"I6", "rejected decision made a mission", func(h *History) { final(h, "M1").DecisionID = "C1-D2" }},
		{"I6", "mission of no decision", func(h *History) { h.Ledger = h.Ledger[1:] }},

		{"I7", "order was not assigned", func(h *History) { event(h, "order O2 2").DecisionID = "" }},
		{"I7", "order was assigned to another mission", func(h *History) { set(h, "order O2 2", "assignedMissionId", "M3") }},
		{"I7", "order was given to another drone", func(h *History) { set(h, "order O2 2", "assignedDroneId", "D3") }},
		{"I7", "order names the mission and still waits", func(h *History) { event(h, "order O2 2").To = "PENDING" }},
		{"I7", "drone was not bound", func(h *History) { h.Events = remove(h.Events, "drone D1 3") }},
		{"I7", "drone was bound and did not leave", func(h *History) { event(h, "drone D1 3").To = "UNKNOWN" }},
		{"I7", "mission was not begun", func(h *History) { h.Events = remove(h.Events, "mission M1 1") }},
		{"I7", "decision took effect twice", func(h *History) { h.Events = append(h.Events, *event(h, "order O1 2")) }},
		{"I7", "decision assigned an order too many", func(h *History) {
			e := *event(h, "order O2 2")
			e.ID = "O6"
			h.Events = append(h.Events, e)
		}},
		{"I7", "decision took effect in two commits", func(h *History) {
			e := event(h, "order O2 2")
			e.Time = e.Time.Add(time.Millisecond)
		}},
		{"I7", "rejected decision had an effect", func(h *History) { h.Ledger[0].Outcome, h.Ledger[0].Reason = domain.OutcomeRejected, "LOW_BATTERY" }},
		{"I7", "decision without outcome had an effect", func(h *History) { h.Ledger = h.Ledger[1:] }},
		{"I7", "mission lists an order that is not in the decision", func(h *History) { final(h, "M1").OrderIDs = []domain.OrderID{"O1", "O2", "O6"} }},

		{"I8", "drone's status has no event", func(h *History) { h.Drones[1].Status = domain.DroneCharging }},
		{"I8", "drone's binding has no event", func(h *History) { h.Drones[1].CurrentMissionID = "M9" }},
		{"I8", "order's flag has no event", func(h *History) { parcel(h, "O6").Held = true }},
		{"I8", "mission's progress has no event", func(h *History) { final(h, "M3").ReachedStops = 1 }},
		{"I8", "document is a revision ahead", func(h *History) { h.Drones[0].Revision++ }},
		{"I8", "event leaves a status it was not in", func(h *History) { event(h, "drone D1 5").From = "CHARGING" }},
		{"I8", "first event leaves a status", func(h *History) { event(h, "order O6 1").From = "PENDING" }},
		{"I8", "document has no events", func(h *History) { h.Drones = append(h.Drones, domain.Drone{ID: "D9"}) }},
		{"I8", "events have no document", func(h *History) { h.Drones = h.Drones[:2] }},

		{"I9", "report had no effect", func(h *History) { h.Confirmed[0].Timestamp = morning.Add(24 * time.Hour) }},
		{"I9", "reporting drone does not exist", func(h *History) { h.Confirmed[0].DroneID = "D9" }},
		{"I9", "dead letter has no reason", func(h *History) { h.DeadLetters[0].Reason = "" }},
		{"I9", "order had no effect", func(h *History) { h.Confirmed = append(h.Confirmed, Message{ID: "zz", OrderID: "O9"}) }},
		{"I9", "newer content had no effect", func(h *History) {
			h.Confirmed = append(h.Confirmed, Message{ID: "zz", OrderID: "O6", ContentHash: "other", SentAt: parcel(h, "O6").ContentPublishedAt.Add(time.Microsecond)})
		}},
		{"I9", "newer content is missing that a cancellation had named before", func(h *History) {
			published := parcel(h, "O1").ContentPublishedAt
			h.Confirmed = append(h.Confirmed,
				Message{ID: "zy", OrderID: "O1", Cancel: true, ContentHash: "other", SentAt: published.Add(-time.Second)},
				Message{ID: "zz", OrderID: "O1", ContentHash: "other", SentAt: published.Add(time.Second)})
		}},
		{"I9", "content is refused that an order could take", func(h *History) {
			h.Events = append(h.Events, conflict("O6", domain.OrderPending, map[string]any{"refusedContentHash": "other"}))
		}},
		{"I9", "newer content is missing where a third was refused", func(h *History) {
			h.Events = append(h.Events, conflict("O1", domain.OrderDelivered, map[string]any{"refusedContentHash": "third"}))
			h.Confirmed = append(h.Confirmed, Message{ID: "zz", OrderID: "O1", ContentHash: "other", SentAt: parcel(h, "O1").ContentPublishedAt.Add(time.Second)})
		}},
		{"I9", "cancellation had no effect", func(h *History) { h.Confirmed = append(h.Confirmed, Message{ID: "zz", OrderID: "O6", Cancel: true}) }},
		{"I9", "cancellation of an order that was delivered is not answered", func(h *History) {
			h.Confirmed = append(h.Confirmed, Message{ID: "zz", OrderID: "O1", Cancel: true})
		}},
		{"I9", "cancellation of an order that waits, and was aboard, is not answered", func(h *History) {
			h.Confirmed = append(h.Confirmed, Message{ID: "zz", OrderID: "O5", Cancel: true})
		}},
		{"I9", "only an operator was told that it is too late to cancel", func(h *History) {
			note := refusal("O1", domain.OrderDelivered, "ALREADY_DELIVERED")
			note.Cause = domain.CauseOperator
			h.Events = append(h.Events, note)
			h.Confirmed = append(h.Confirmed, Message{ID: "zz", OrderID: "O1", Cancel: true})
		}},
		{"I9", "decision had no outcome", func(h *History) { h.Confirmed = append(h.Confirmed, Message{ID: "zz", DecisionID: "C9"}) }},
		{"I9", "message about nothing", func(h *History) { h.Confirmed = append(h.Confirmed, Message{ID: "zz"}) }},
	} {
		t.Run(row.invariant+" "+row.name, func(t *testing.T) {
			h := goodHistory()
			row.breaks(&h)
			report := Check(h)
			if !broken(report, row.invariant) {
				t.Errorf("%s is not reported; reported are %v", row.invariant, report.Violations)
			}
			if diff := cmp.Diff(report, Check(h)); diff != "" {
				t.Errorf("the report is not repeatable:\n%s", diff)
			}
		})
	}
}

// Servers' clocks differ: a mission may seem to begin before the one before ended.
func TestCheck_AllowsOverlapUpToTheClockTolerance(t *testing.T) {
	seeming := func(overlap, tolerance time.Duration) Result {
		h := goodHistory()
		h.ClockTolerance = tolerance
		last(&h, "mission M1").Time = event(&h, "mission M3 1").Time.Add(overlap)
		return Check(h)
	}
	if r := seeming(5*time.Second, 0); broken(r, "I1") {
		t.Errorf("5 s of overlap: %v", r.Violations)
	}
	if r := seeming(5*time.Second+1, 0); !broken(r, "I1") {
		t.Error("more than 5 s of overlap is accepted")
	}
	if r := seeming(2*time.Second, time.Second); !broken(r, "I1") {
		t.Error("2 s of overlap is accepted at a tolerance of 1 s")
	}
}

// I1: a mission that fails at once may seem to begin after the next one, if the
// clock of the server that started it is ahead.
func TestCheck_AllowsMissionsThatSeemToBeginInTheWrongOrder(t *testing.T) {
	seeming := func(began, ended time.Duration) Result {
		h := goodHistory()
		next := event(&h, "mission M3 1").Time
		event(&h, "mission M1 1").Time, last(&h, "mission M1").Time = next.Add(began), next.Add(ended)
		return Check(h)
	}
	for _, ended := range []time.Duration{-time.Second, 5 * time.Second} {
		if r := seeming(4*time.Second, ended); broken(r, "I1") {
			t.Errorf("one mission ends %s after the next one begins: %v", ended, r.Violations)
		}
	}
	if r := seeming(4*time.Second, 5*time.Second+1); !broken(r, "I1") {
		t.Error("more than 5 s of overlap is accepted")
	}
}

// I9: a cancellation that came too late is recorded as refused.
func TestCheck_AcceptsTheRecordOfALateCancellation(t *testing.T) {
	h := goodHistory()
	for id, note := range map[domain.OrderID]domain.Event{
		"O1": refusal("O1", domain.OrderDelivered, "ALREADY_DELIVERED"),
		"O5": refusal("O5", domain.OrderInDelivery, "CANCEL_TOO_LATE"),
	} {
		h.Events = append(h.Events, note)
		h.Confirmed = append(h.Confirmed, Message{ID: "late " + string(id), OrderID: id, Cancel: true})
	}
	if report := Check(h); !report.OK() {
		t.Error(report.Violations)
	}
}

// I9: content that lost is accounted for if a copy of it may have been published
// before the content that won, or if a reason is recorded.
func TestCheck_AccountsForContentThatLost(t *testing.T) {
	for name, tell := range map[string]func(h *History, won time.Time) Message{
		"perhaps published before what won": func(_ *History, won time.Time) Message {
			return Message{OrderID: "O6", ContentHash: "other", SentAt: won.Add(999)} // documents keep microseconds
		},
		"published before and again": func(h *History, won time.Time) Message {
			h.Confirmed = append(h.Confirmed, Message{ID: "zy", OrderID: "O6", ContentHash: "other", SentAt: won.Add(-time.Second)})
			return Message{OrderID: "O6", ContentHash: "other", SentAt: won.Add(time.Hour)}
		},
		"sent at an unknown time": func(*History, time.Time) Message {
			return Message{OrderID: "O6", ContentHash: "other"}
		},
		"the same again": func(_ *History, won time.Time) Message {
			return Message{OrderID: "O6", ContentHash: "hash", SentAt: won.Add(time.Hour)}
		},
		"cancelled before it came": func(_ *History, won time.Time) Message {
			return Message{OrderID: "O8", ContentHash: "hash", SentAt: won.Add(time.Hour)}
		},
		"named by a cancellation": func(_ *History, won time.Time) Message {
			return Message{OrderID: "O7", Cancel: true, ContentHash: "other", SentAt: won.Add(time.Hour)}
		},
		"too late": func(h *History, won time.Time) Message {
			h.Events = append(h.Events, conflict("O1", domain.OrderDelivered, map[string]any{"refusedContentHash": "other"}))
			return Message{OrderID: "O1", ContentHash: "other", SentAt: won.Add(time.Hour)}
		},
		"too late, by a note that does not say what": func(h *History, won time.Time) Message {
			h.Events = append(h.Events, conflict("O1", domain.OrderDelivered, nil))
			return Message{OrderID: "O1", ContentHash: "other", SentAt: won.Add(time.Hour)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := goodHistory()
			m := tell(&h, parcel(&h, "O6").ContentPublishedAt)
			m.ID = "zz"
			h.Confirmed = append(h.Confirmed, m)
			if report := Check(h); !report.OK() {
				t.Error(report.Violations)
			}
		})
	}
}

// conflict is the note of an order that refused other content.
func conflict(id domain.OrderID, is domain.OrderStatus, refused map[string]any) domain.Event {
	note := refusal(id, is, "ORDER_CONFLICT")
	note.State = refused
	return note
}

// refusal is the note of an order that refused a message.
func refusal(id domain.OrderID, is domain.OrderStatus, reason string) domain.Event {
	return domain.Event{
		Entity: domain.EntityOrder, ID: string(id), From: string(is), To: string(is),
		Cause: domain.CauseOrder, Reason: reason, OrderID: id, Time: morning,
	}
}

// The helpers below find parts of a history by name and panic if there is none.

func find[T any](in []T, what string, is func(T) bool) *T {
	i := slices.IndexFunc(in, is)
	if i < 0 {
		panic("no " + what)
	}
	return &in[i]
}

func named(e domain.Event) string { return fmt.Sprintf("%s %s %d", e.Entity, e.ID, e.Revision) }

// event finds for example "drone D1 3", its third event.
func event(h *History, name string) *domain.Event {
	return find(h.Events, name, func(e domain.Event) bool { return named(e) == name })
}

// last finds for example the last event of "drone D1".
func last(h *History, name string) *domain.Event {
	var found *domain.Event
	for i := range h.Events {
		if e := &h.Events[i]; fmt.Sprintf("%s %s", e.Entity, e.ID) == name {
			found = e
		}
	}
	return found
}

func set(h *History, name, key string, value any) { event(h, name).State[key] = value }

func remove(events []domain.Event, name string) []domain.Event {
	return slices.DeleteFunc(events, func(e domain.Event) bool { return named(e) == name })
}

func final(h *History, id domain.MissionID) *domain.Mission {
	return find(h.Missions, string(id), func(m domain.Mission) bool { return m.ID == id })
}

func parcel(h *History, id domain.OrderID) *domain.Order {
	return find(h.Orders, string(id), func(o domain.Order) bool { return o.ID == id })
}

func row(h *History, id domain.DecisionID) *domain.LedgerEntry {
	return find(h.Ledger, string(id), func(r domain.LedgerEntry) bool { return r.ID == id })
}

// I2: a note records a refusal: it changes nothing and has a reason.
func TestCheck_ReportsNotesThatChangeState(t *testing.T) {
	h := goodHistory()
	note := conflict("O1", domain.OrderDelivered, map[string]any{"refusedContentHash": "other"})
	h.Events = append(h.Events, note)
	if report := Check(h); !report.OK() {
		t.Errorf("a note broke %v", report.Violations)
	}
	moves, mute := note, note
	moves.To = string(domain.OrderPending)
	mute.Reason = ""
	for _, bad := range []domain.Event{moves, mute} {
		h := goodHistory()
		h.Events = append(h.Events, bad)
		if report := Check(h); len(report.Violations) != 1 || report.Violations[0].Invariant != "I2" {
			t.Errorf("note %+v: %v", bad, report.Violations)
		}
	}
}
