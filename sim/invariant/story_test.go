package invariant

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// story builds a history as a State Manager would: each change of an entity
// increments its revision and adds one event.
type story struct {
	now      time.Time
	drones   map[domain.DroneID]*domain.Drone
	orders   map[domain.OrderID]*domain.Order
	missions map[domain.MissionID]*domain.Mission
	history  History
	sequence int
}

var morning = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// goodHistory is a history without violations in which everything that may happen
// does.
func goodHistory() History {
	s := &story{
		now:      morning,
		drones:   map[domain.DroneID]*domain.Drone{},
		orders:   map[domain.OrderID]*domain.Order{},
		missions: map[domain.MissionID]*domain.Mission{},
	}
	for _, id := range []domain.DroneID{"D1", "D2", "D3"} {
		s.drone(id, domain.CauseSetup, func(d *domain.Drone) { d.Status, d.HomeDepotID = domain.DroneUnknown, "DEPOT" })
		s.report(id, domain.DroneIdle, nil)
	}
	for _, id := range []domain.OrderID{"O1", "O2", "O3", "O4", "O5", "O6", "O7", "O10", "O11", "O12"} {
		s.ordered(id)
	}
	s.cancelled("O8") // the cancellation overtook the order
	s.cancelled("O7")
	s.refuse("future")
	// There was no depot when O6 came; one that was added hands it over to another.
	s.order("O6", domain.CauseSweeper, func(o *domain.Order) { o.PlanningDepotID = "DEPOT" })
	s.order("O6", domain.CauseCycle, func(o *domain.Order) {
		o.PlanningDepotID, o.HandedOverBy = "DEPOT-2", []domain.DepotID{"DEPOT"}
	})
	s.history.Readings = []Reading{{
		At: s.now, Waiting: []domain.OrderID{"O1", "O6"},
		Read: map[domain.DepotID][]domain.OrderID{"DEPOT": {"O1"}, "DEPOT-2": {"O6"}},
	}}

	// D1 flies two orders and is done.
	s.apply("C1-D1", "001", "M1", "D1", "O1", "O2")
	s.reject("C1-D2", "001", "D2", "DRONE_SILENT")
	s.report("D1", domain.DroneMoving, func(d *domain.Drone) { d.MissionAcked, d.MissionMoved = true, true })
	for i, id := range []domain.OrderID{"O1", "O2"} {
		s.reach("M1", 2*i+1)
		s.order(id, domain.CauseTelemetry, func(o *domain.Order) { o.Status = domain.OrderInDelivery })
		s.report("D1", domain.DroneDelivering, nil)
		s.order(id, domain.CauseTelemetry, func(o *domain.Order) { o.Status = domain.OrderDelivered })
		s.reach("M1", 2*i+2)
	}
	s.end("M1", domain.MissionCompleted, "")
	s.report("D1", domain.DroneMoving, nil)
	s.report("D1", domain.DroneIdle, unbind)

	// D2 never hears of its mission; its order is served by D1 afterwards.
	s.apply("C2-D2", "002", "M2", "D2", "O3")
	s.order("O3", domain.CauseTelemetry, func(o *domain.Order) {
		o.Status, o.AssignedMissionID, o.AssignedDroneID, o.Attempts = domain.OrderPending, "", "", 1
	})
	s.end("M2", domain.MissionFailed, domain.FailureNotAcked)
	s.report("D2", domain.DroneIdle, unbind)
	s.apply("C3-D1", "002", "M3", "D1", "O3", "O4")
	// O4 is cancelled, O3 is under way when the run ends.
	s.cancelled("O4")
	s.mission("M3", domain.CauseOrder, func(m *domain.Mission) { m.OrderIDs = []domain.OrderID{"O3"} })
	s.order("O3", domain.CauseSweeper, func(o *domain.Order) { o.Late = true })

	// D3 breaks with the parcel aboard.
	s.apply("C4-D3", "", "M4", "D3", "O5")
	s.order("O5", domain.CauseTelemetry, func(o *domain.Order) { o.Status = domain.OrderInDelivery })
	s.report("D3", domain.DroneProblem, nil)
	s.order("O5", domain.CauseSweeper, func(o *domain.Order) {
		o.Status, o.AssignedMissionID, o.AssignedDroneID, o.Held = domain.OrderPending, "", "", true
	})
	s.end("M4", domain.MissionFailed, domain.FailureDroneFault)
	s.report("D3", domain.DroneProblem, unbind)

	// Three missions with O9 fail; now it waits for an operator.
	for i, m := range []domain.MissionID{"M5", "M6", "M7"} {
		s.apply(domain.DecisionID("C5-"+m), "002", m, "D2", "O10")
		s.order("O10", domain.CauseTelemetry, func(o *domain.Order) {
			o.Status, o.AssignedMissionID, o.AssignedDroneID = domain.OrderPending, "", ""
			o.Attempts, o.Held = o.Attempts+1, i == 2
		})
		s.end(m, domain.MissionFailed, domain.FailureNotAcked)
		s.report("D2", domain.DroneIdle, unbind)
	}

	// D2 has delivered one of two; the other, late by now, is aboard at the end.
	s.apply("C6-D2", "002", "M8", "D2", "O11", "O12")
	for _, id := range []domain.OrderID{"O11", "O12"} {
		s.order(id, domain.CauseTelemetry, func(o *domain.Order) { o.Status = domain.OrderInDelivery })
	}
	s.order("O11", domain.CauseSweeper, func(o *domain.Order) { o.Late = true })
	s.order("O12", domain.CauseTelemetry, func(o *domain.Order) { o.Status = domain.OrderDelivered })

	// A decision of a cycle that had lost its lock is rejected; a decision is
	// published again.
	s.reject("C0-D2", "001", "D2", "STALE_FENCE")
	s.published("C1-D1")
	return s.finish()
}

func unbind(d *domain.Drone) {
	d.CurrentMissionID, d.MissionAcked, d.MissionMoved = "", false, false
}

// finish returns the history with the final documents.
func (s *story) finish() History {
	for _, id := range []domain.DroneID{"D1", "D2", "D3"} {
		s.history.Drones = append(s.history.Drones, *s.drones[id])
	}
	for _, id := range []domain.OrderID{"O1", "O2", "O3", "O4", "O5", "O6", "O7", "O8", "O10", "O11", "O12"} {
		s.history.Orders = append(s.history.Orders, *s.orders[id])
	}
	for _, id := range []domain.MissionID{"M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8"} {
		s.history.Missions = append(s.history.Missions, *s.missions[id])
	}
	s.history.Fences = map[domain.DepotID]string{"DEPOT": "002"}
	return s.history
}

func (s *story) tick() { s.now = s.now.Add(10 * time.Second) }

func (s *story) messageID() string {
	s.sequence++
	return string(rune('a'+s.sequence/26)) + string(rune('a'+s.sequence%26))
}

func (s *story) event(e domain.Event) {
	e.Time = s.now
	s.history.Events = append(s.history.Events, e)
}

func (s *story) drone(id domain.DroneID, cause domain.Cause, change func(*domain.Drone)) {
	s.droneBy(id, cause, "", change)
}

func (s *story) droneBy(id domain.DroneID, cause domain.Cause, by domain.DecisionID, change func(*domain.Drone)) {
	if s.drones[id] == nil {
		s.drones[id] = &domain.Drone{ID: id}
	}
	d := s.drones[id]
	from := d.Status
	change(d)
	d.Revision++
	s.event(domain.Event{
		Entity: domain.EntityDrone, ID: string(id), Revision: d.Revision, From: string(from), To: string(d.Status),
		Cause: cause, DecisionID: by, State: domain.DroneState(*d),
	})
}

func (s *story) order(id domain.OrderID, cause domain.Cause, change func(*domain.Order)) {
	s.orderBy(id, cause, "", change)
}

func (s *story) orderBy(id domain.OrderID, cause domain.Cause, by domain.DecisionID, change func(*domain.Order)) {
	if s.orders[id] == nil {
		s.orders[id] = &domain.Order{ID: id}
	}
	o := s.orders[id]
	from := o.Status
	change(o)
	o.Revision++
	s.event(domain.Event{
		Entity: domain.EntityOrder, ID: string(id), Revision: o.Revision, From: string(from), To: string(o.Status),
		Cause: cause, DecisionID: by, State: domain.OrderState(*o),
	})
}

func (s *story) mission(id domain.MissionID, cause domain.Cause, change func(*domain.Mission)) {
	s.missionBy(id, cause, "", change)
}

func (s *story) missionBy(id domain.MissionID, cause domain.Cause, by domain.DecisionID, change func(*domain.Mission)) {
	if s.missions[id] == nil {
		s.missions[id] = &domain.Mission{ID: id}
	}
	m := s.missions[id]
	from := m.Status
	change(m)
	m.Revision++
	s.event(domain.Event{
		Entity: domain.EntityMission, ID: string(id), Revision: m.Revision, From: string(from), To: string(m.Status),
		Cause: cause, DecisionID: by, State: domain.MissionState(*m),
	})
}

// report is telemetry that changes the drone.
func (s *story) report(id domain.DroneID, status domain.DroneStatus, change func(*domain.Drone)) {
	s.tick()
	s.drone(id, domain.CauseTelemetry, func(d *domain.Drone) {
		d.Status, d.LastUpdate = status, s.now
		if change != nil {
			change(d)
		}
	})
	s.history.Observations = append(s.history.Observations, Observation{id, s.now})
	s.history.Confirmed = append(s.history.Confirmed, Message{Topic: "telemetry", ID: s.messageID(), DroneID: id, Timestamp: s.now})
}

// refuse is telemetry that was dead-lettered.
func (s *story) refuse(id string) {
	s.history.Confirmed = append(s.history.Confirmed, Message{Topic: "telemetry", ID: id, DroneID: "D1", Timestamp: s.now.Add(time.Hour)})
	s.history.DeadLetters = append(s.history.DeadLetters, DeadLetter{id, "FUTURE_TIMESTAMP"})
}

func (s *story) ordered(id domain.OrderID) {
	s.tick()
	s.order(id, domain.CauseOrder, func(o *domain.Order) {
		o.Status, o.ContentHash, o.ContentPublishedAt = domain.OrderPending, "hash", s.now
	})
	s.history.Confirmed = append(s.history.Confirmed, Message{Topic: "orders", ID: s.messageID(), OrderID: id, Timestamp: s.now, ContentHash: "hash", SentAt: s.now})
}

func (s *story) cancelled(id domain.OrderID) {
	s.tick()
	s.order(id, domain.CauseOrder, func(o *domain.Order) { o.Status = domain.OrderCancelled })
	s.history.Confirmed = append(s.history.Confirmed, Message{Topic: "orders", ID: s.messageID(), OrderID: id, Timestamp: s.now, Cancel: true})
}

func (s *story) apply(id domain.DecisionID, fence string, m domain.MissionID, d domain.DroneID, orders ...domain.OrderID) {
	s.tick()
	s.missionBy(m, domain.CauseDecision, id, func(v *domain.Mission) {
		v.Status, v.DroneID, v.OrderIDs, v.DecisionID = domain.MissionActive, d, orders, id
	})
	s.droneBy(d, domain.CauseDecision, id, func(v *domain.Drone) { v.Status, v.CurrentMissionID = domain.DroneMoving, m })
	for _, o := range orders {
		s.orderBy(o, domain.CauseDecision, id, func(v *domain.Order) {
			v.Status, v.AssignedDroneID, v.AssignedMissionID = domain.OrderAssigned, d, m
		})
	}
	s.decided(domain.LedgerEntry{ID: id, Outcome: domain.OutcomeApplied, MissionID: m, DroneID: d, OrderIDs: orders, Fence: fence})
}

func (s *story) reject(id domain.DecisionID, fence string, d domain.DroneID, reason string) {
	s.tick()
	s.decided(domain.LedgerEntry{ID: id, Outcome: domain.OutcomeRejected, Reason: reason, DroneID: d, OrderIDs: []domain.OrderID{"O6"}, Fence: fence})
}

func (s *story) decided(row domain.LedgerEntry) {
	row.MessageID, row.AppliedAt = s.published(row.ID), s.now
	s.history.Ledger = append(s.history.Ledger, row)
}

// published adds the message of a decision and returns its id.
func (s *story) published(decision domain.DecisionID) (id string) {
	id = s.messageID()
	s.history.Confirmed = append(s.history.Confirmed, Message{Topic: "decisions", ID: id, DecisionID: decision, Timestamp: s.now})
	return id
}

func (s *story) reach(id domain.MissionID, stops int) {
	s.tick()
	s.mission(id, domain.CauseTelemetry, func(m *domain.Mission) { m.ReachedStops = stops })
}

func (s *story) end(id domain.MissionID, status domain.MissionStatus, reason domain.FailureReason) {
	s.mission(id, domain.CauseTelemetry, func(m *domain.Mission) { m.Status, m.FailureReason, m.EndTime = status, reason, s.now })
}
