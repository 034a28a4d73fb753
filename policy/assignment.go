package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// MissionAssignmentPolicy decides whether a decision becomes a mission.
type MissionAssignmentPolicy struct {
	// MaxAge is how old the snapshot behind a decision may be.
	MaxAge time.Duration
	// MaxSilence is how long the drone may have been silent.
	MaxSilence time.Duration
	// MinBattery is the charge, in percent, that a drone must exceed to fly
	// and must land with.
	MinBattery float64
	// CommandLifetime is how long the drone may take to receive its command,
	// and ClockError how far its clock may be off.
	CommandLifetime, ClockError time.Duration
	// CommitDelay is how long after the moment at which a change takes place
	// it may become visible: a transaction is over by then.
	CommitDelay time.Duration
}

// DefaultMissionAssignmentPolicy holds the contract's values.
func DefaultMissionAssignmentPolicy() MissionAssignmentPolicy {
	return MissionAssignmentPolicy{
		MaxAge: 2 * time.Minute, MaxSilence: 15 * time.Second, MinBattery: 20,
		CommandLifetime: 20 * time.Second, ClockError: 5 * time.Second,
		CommitDelay: 270 * time.Second, // Firestore ends a transaction that is older
	}
}

// DecisionState is what a decision is judged by, read in one transaction.
type DecisionState struct {
	Ledger *domain.LedgerEntry // this decision's entry; nil if it has none
	Fences Fences              // highest applied
	Drone  *domain.Drone       // nil if unknown
	Orders map[domain.OrderID]domain.Order
	// OrdersWritten is when each order was last written, by whoever it was.
	OrdersWritten map[domain.OrderID]time.Time
}

// Delivery is how the decision's message came.
type Delivery struct {
	MessageID   string
	PublishedAt time.Time
	ReceivedAt  time.Time
}

// Fences holds the highest fence applied, per depot: each depot's cycles have
// a lock, and so a fence sequence, of their own. The key "" is for decisions that
// name no depot about drones that have none.
type Fences map[domain.DepotID]string

// Verdict is what becomes of a decision.
type Verdict struct {
	// Entry is the decision's line in the ledger.
	Entry domain.LedgerEntry
	// Replay: the ledger already holds Entry; nothing is to be written.
	Replay bool
	Change Change
	// Depot and Fence are the highest fence to store; Fence is empty if the
	// stored one stands.
	Depot domain.DepotID
	Fence string
}

// AssignMission judges a decision. Whatever the outcome it is a result: the
// entry goes to the ledger, unless the ledger already holds one for this id:
// then the verdict replays it, or, if another payload took the id, the error is
// a Rejection with DECISION_CONFLICT and nothing is to be written.
func (p MissionAssignmentPolicy) AssignMission(s DecisionState, d domain.Decision, via Delivery, now time.Time) (Verdict, error) {
	if s.Ledger != nil {
		if s.Ledger.PayloadHash != d.PayloadHash {
			return Verdict{}, reject(ReasonDecisionConflict, string(d.ID),
				"the ledger has another decision of this id, %s at %s", s.Ledger.Outcome, s.Ledger.AppliedAt.UTC().Format(time.RFC3339))
		}
		return Verdict{Entry: *s.Ledger, Replay: true}, nil
	}
	v := Verdict{Entry: domain.LedgerEntry{
		ID: d.ID, DroneID: d.DroneID, OrderIDs: d.OrderIDs, PayloadHash: d.PayloadHash,
		CycleID: d.CycleID, Fence: d.Fence, DepotID: d.DepotID, SnapshotTime: d.SnapshotTime,
		MessageID: via.MessageID, PublishedAt: via.PublishedAt, ReceivedAt: via.ReceivedAt, AppliedAt: now,
	}}
	if err := p.check(s, d, snapshotTime(d, via, now), now); err != nil {
		v.Entry.Outcome = domain.OutcomeRejected
		v.Entry.Reason, v.Entry.Detail = string(err.Reason), err.Detail
		return v, nil
	}
	v.Depot = fenceDepot(s, d)
	if fenceLess(s.Fences[v.Depot], d.Fence) {
		v.Fence = d.Fence
	}
	v.Entry.Outcome, v.Entry.MissionID = domain.OutcomeApplied, domain.MissionIDFor(d.ID)
	v.Change = p.assign(s, d, now)
	return v, nil
}

// fenceDepot is the depot whose lock gave the decision's fence. A drone may have
// been given another home since the snapshot: what its new depot's fences stand
// for, that of the old one does not.
func fenceDepot(s DecisionState, d domain.Decision) domain.DepotID {
	if d.DepotID == "" && s.Drone != nil {
		return s.Drone.HomeDepotID
	}
	return d.DepotID
}

// snapshotTime is when the decision's snapshot was taken: as it says, but not
// after it was published. A clock that is ahead must not make a decision
// everlasting, nor blind to what changed since.
func snapshotTime(d domain.Decision, via Delivery, now time.Time) time.Time {
	latest := now
	if !via.PublishedAt.IsZero() {
		latest = earlier(latest, via.PublishedAt)
	}
	return earlier(d.SnapshotTime, latest)
}

// rounding is how much of a percent or a kilogram a sum of estimates may be
// off: a plan that uses a limit up is not refused for its last binary digit.
const rounding = 1e-9

// check returns the first reason against the decision, whose snapshot was taken
// at seen; nil if there is none.
func (p MissionAssignmentPolicy) check(s DecisionState, d domain.Decision, seen, now time.Time) *Rejection {
	no := func(reason Reason, subject, format string, args ...any) *Rejection {
		return &Rejection{Reason: reason, Subject: subject, Detail: fmt.Sprintf(format, args...)}
	}
	drone := s.Drone
	if highest := s.Fences[fenceDepot(s, d)]; d.Fence != "" && fenceLess(d.Fence, highest) {
		return no(ReasonStaleFence, string(d.ID), "fence %s is below %s, already applied", d.Fence, highest)
	}
	if age := now.Sub(seen); age > p.MaxAge {
		return no(ReasonDecisionExpired, string(d.ID), "its snapshot is %s old, more than %s", age.Round(time.Second), p.MaxAge)
	}
	if drone == nil {
		return no(ReasonDroneUnknown, string(d.DroneID), "no drone %s", d.DroneID)
	}
	if drone.Status != domain.DroneIdle || drone.Bound() {
		detail := fmt.Sprintf("drone %s is %s", drone.ID, drone.Status)
		if drone.Bound() {
			detail += fmt.Sprintf(" on mission %s", drone.CurrentMissionID)
		}
		return no(ReasonDroneNotIdle, string(drone.ID), "%s", detail)
	}
	if silent := now.Sub(drone.SeenAt); silent > p.MaxSilence {
		return no(ReasonDroneSilent, string(drone.ID), "drone %s was last heard of %s ago", drone.ID, silent.Round(time.Second))
	}
	if landing := drone.Battery - d.EstimatedBatteryConsumption; drone.Battery <= p.MinBattery || landing < p.MinBattery-rounding {
		return no(ReasonLowBattery, string(drone.ID), "drone %s has %.1f %% and would land with %.1f %%, under %.0f %%", drone.ID, drone.Battery, landing, p.MinBattery)
	}
	if drone.IdleSince.After(seen) {
		return no(ReasonDroneChanged, string(drone.ID), "drone %s has been away since the snapshot", drone.ID)
	}
	if r := p.checkOrders(s, d, seen, no); r != nil {
		return r
	}
	if problem := routeProblem(d); problem != "" {
		return no(ReasonBadRoute, string(d.ID), "%s", problem)
	}
	if load := peakLoad(d, s.Orders); drone.PayloadCapacityKg > 0 && load > drone.PayloadCapacityKg+rounding {
		return no(ReasonOverCapacity, string(drone.ID), "the route loads %.2f kg, drone %s carries %.2f kg", load, drone.ID, drone.PayloadCapacityKg)
	}
	return nil
}

func (p MissionAssignmentPolicy) checkOrders(s DecisionState, d domain.Decision, seen time.Time, no func(Reason, string, string, ...any) *Rejection) *Rejection {
	checks := []struct {
		reason Reason
		detail func(o domain.Order, known bool) string // empty: passes
	}{
		{ReasonOrderUnknown, func(_ domain.Order, known bool) string {
			if known {
				return ""
			}
			return "no such order"
		}},
		{ReasonOrderNotPending, func(o domain.Order, _ bool) string {
			if o.Status == domain.OrderPending {
				return ""
			}
			return fmt.Sprintf("it is %s", o.Status)
		}},
		{ReasonOrderHeld, func(o domain.Order, _ bool) string {
			if !o.Held {
				return ""
			}
			return "it waits for an operator: " + o.HeldReason
		}},
		{ReasonOrderChanged, func(o domain.Order, _ bool) string {
			// Its content takes the moment at which it was decided on, and is
			// visible only when that transaction commits: a snapshot between
			// the two saw the old one. Only a write after the snapshot can have
			// been such a commit; with other writes, a mark that it is late,
			// an order that has long been pending stays as it was seen.
			switch {
			case o.PendingSince.After(seen):
				return "it changed since the snapshot"
			case s.OrdersWritten[o.ID].After(seen) && o.PendingSince.After(seen.Add(-p.CommitDelay)):
				return "it may have changed since the snapshot"
			}
			return ""
		}},
	}
	for _, c := range checks {
		for _, id := range d.OrderIDs {
			o, known := s.Orders[id]
			if detail := c.detail(o, known); detail != "" {
				return no(c.reason, string(id), "order %s: %s", id, detail)
			}
		}
	}
	return nil
}

// routeProblem says what is wrong with the decision's route, "" if nothing is:
// there must be orders, each listed once, picked up once and then delivered once, and
// nothing else.
func routeProblem(d domain.Decision) string {
	const (
		missing = iota
		pickedUp
		delivered
	)
	if len(d.OrderIDs) == 0 {
		return "it lists no order"
	}
	progress := make(map[domain.OrderID]int, len(d.OrderIDs))
	for _, id := range d.OrderIDs {
		if _, twice := progress[id]; twice {
			return fmt.Sprintf("order %s is listed twice", id)
		}
		progress[id] = missing
	}
	for i, stop := range d.Route {
		if !stop.ForOrder() {
			continue
		}
		at, ours := progress[stop.OrderID]
		pickup := stop.Type == domain.WaypointWarehousePickup
		switch {
		case !ours:
			return fmt.Sprintf("stop %d is for order %q, which is not in the decision", i, stop.OrderID)
		case pickup && at != missing:
			return fmt.Sprintf("stop %d picks up order %s again", i, stop.OrderID)
		case pickup:
			progress[stop.OrderID] = pickedUp
		case at == missing:
			return fmt.Sprintf("stop %d delivers order %s before its pickup", i, stop.OrderID)
		case at == delivered:
			return fmt.Sprintf("stop %d delivers order %s again", i, stop.OrderID)
		default:
			progress[stop.OrderID] = delivered
		}
	}
	for _, id := range d.OrderIDs {
		switch progress[id] {
		case missing:
			return fmt.Sprintf("order %s has no pickup stop", id)
		case pickedUp:
			return fmt.Sprintf("order %s has no delivery stop", id)
		}
	}
	return ""
}

// peakLoad is the greatest weight aboard along the route, in kilograms.
func peakLoad(d domain.Decision, orders map[domain.OrderID]domain.Order) float64 {
	var load, peak float64
	for _, stop := range d.Route {
		switch stop.Type {
		case domain.WaypointWarehousePickup:
			load += orders[stop.OrderID].WeightKg
		case domain.WaypointHospitalDelivery:
			load -= orders[stop.OrderID].WeightKg
		}
		peak = max(peak, load)
	}
	return peak
}

// assign makes the mission: the drone is bound and its orders are assigned. It
// leaves the drone's last update alone, so that a report measured before the
// drone learns of the mission still counts.
func (p MissionAssignmentPolicy) assign(s DecisionState, d domain.Decision, now time.Time) Change {
	r := &recorder{now: now, cause: domain.CauseDecision, decision: d.ID, cycle: d.CycleID}
	m := domain.Mission{
		ID: domain.MissionIDFor(d.ID), DroneID: d.DroneID, OrderIDs: d.OrderIDs, Route: d.Route,
		Status: domain.MissionActive, StartTime: now,
		EstimatedBatteryConsumption: d.EstimatedBatteryConsumption,
		EstimatedDurationMinutes:    d.EstimatedDurationMinutes,
		DecisionID:                  d.ID, CycleID: d.CycleID, Fence: d.Fence,
		CommandPending: true, CommandExpiresAt: now.Add(p.CommandLifetime),
	}
	r.mission(domain.Mission{}, &m, "")

	before := *s.Drone
	drone := before
	drone.Status, drone.CurrentMissionID = domain.DroneMoving, m.ID
	drone.MissionAcked, drone.MissionMoved = false, false
	drone.FreeAfter = m.CommandExpiresAt.Add(p.ClockError)
	drone.FaultSince = time.Time{}
	r.drone(before, &drone, m.ID, "")

	for _, id := range d.OrderIDs {
		before := s.Orders[id]
		o := before
		o.Status, o.AssignedDroneID, o.AssignedMissionID = domain.OrderAssigned, d.DroneID, m.ID
		r.order(before, &o, "")
	}
	return r.change
}

// fenceLess compares fences by value. They are decimal digits of any width;
// the empty fence is below all.
func fenceLess(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}
