package policy

import (
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// MissionAssignmentPolicy decides whether a decision becomes a mission.
type MissionAssignmentPolicy struct {
	Limits
	// RecordStops applies decisions whose stops are wrong, with a warning in the ledger.
	RecordStops bool
	// AllowUnfenced lets decisions without a fence pass. They compete with those of the cycles,
	// because without a fence nothing shows that a cycle has lost its lock.
	AllowUnfenced bool
	// PlanUnregistered lets decisions about drones that nobody registered pass.
	PlanUnregistered bool
}

// DefaultMissionAssignmentPolicy holds the contract's values.
func DefaultMissionAssignmentPolicy() MissionAssignmentPolicy {
	return MissionAssignmentPolicy{Limits: DefaultLimits()}
}

func (p MissionAssignmentPolicy) drones() DronePolicy {
	return DronePolicy{Limits: p.Limits, PlanUnregistered: p.PlanUnregistered}
}

// DecisionState is the input for judging a decision, read in one transaction.
type DecisionState struct {
	Ledger *domain.LedgerEntry // this decision's entry; nil if it has none
	Fences Fences              // highest applied
	// Issued is the highest fence that each depot's lock has handed out, empty for none. For an
	// absent depot, which was not looked up, the highest applied fence counts as the highest handed
	// out. See NeedsIssued.
	Issued Fences
	// WarehousesChanged is when warehouses were moved or deleted lately. A cycle with an older
	// snapshot may still send drones to where they were.
	WarehousesChanged map[domain.WarehouseID]time.Time

	Drone *domain.Drone // nil if unknown
	// Mission is the one that the decision amends; nil if there is none.
	Mission *domain.Mission
	// Orders are those of the decision and of that mission.
	Orders map[domain.OrderID]domain.Order
	// OrdersWritten is when each order's document was last written.
	OrdersWritten map[domain.OrderID]time.Time
	// Warehouses are those that the decision's pickups name, without malformed ones.
	Warehouses map[domain.WarehouseID]domain.Warehouse
	// Depots are all depots of the fleet. Without any, landings are not judged. See NeedsDepots.
	Depots []domain.Depot
}

// Delivery describes how the decision's message arrived.
type Delivery struct {
	MessageID   string
	PublishedAt time.Time
	ReceivedAt  time.Time
}

// Fences holds a fence per depot, because the lock of each depot has its own fence sequence. The
// key "" is for decisions without a depot about drones without a home.
type Fences map[domain.DepotID]string

// Raise stores a depot's fence if it is higher than the one that is there.
func (f Fences) Raise(depot domain.DepotID, fence string) {
	if FenceLess(f[depot], fence) {
		f[depot] = fence
	}
}

// NeedsIssued reports whether a decision can only be judged with Issued for its FenceDepot. A fence
// equal to the highest applied was compared with the lock's counter before, so each cycle looks it
// up once.
func (s DecisionState) NeedsIssued(d domain.Decision) bool {
	return s.Ledger == nil && d.Fence != "" && !sameFence(d.Fence, s.Fences[s.FenceDepot(d)])
}

// FenceDepot is the depot whose lock issued the decision's fence. It is the one that the decision
// names, because the drone's home may have changed since the snapshot; otherwise it is the drone's
// home.
func (s DecisionState) FenceDepot(d domain.Decision) domain.DepotID {
	if d.DepotID == "" && s.Drone != nil {
		return s.Drone.HomeDepotID
	}
	return d.DepotID
}

// fences are the highest fence that counts as applied at a depot and the highest that its lock has
// handed out. An applied fence above the latter cannot come from the lock, so it counts as equal to
// the latter, which only the newest holder has.
func (s DecisionState) fences(depot domain.DepotID) (applied, issued string) {
	applied = s.Fences[depot]
	issued, known := s.Issued[depot]
	if !known {
		return applied, applied
	}
	if FenceLess(issued, applied) {
		applied = issued
	}
	return applied, issued
}

// Verdict is the outcome of a decision and what to write for it.
type Verdict struct {
	// Entry is the decision's line in the ledger.
	Entry domain.LedgerEntry
	// Replay says that the ledger already holds Entry, so nothing must be written.
	Replay bool
	Change Change
	// Depot and Fence are the highest fence to store; Fence is empty if the stored one stays.
	// Lowers says that Fence is below the stored one, which the lock never handed out.
	Depot  domain.DepotID
	Fence  string
	Lowers bool
}

// AssignMission judges a decision. Every verdict, applied or rejected, goes to the ledger. If the
// ledger already has an entry for the id, the verdict replays it. If that entry is for another
// payload, the error is a DECISION_CONFLICT Rejection and nothing is written.
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
		AmendsMissionID: d.AmendsMissionID, AmendsRevision: d.AmendsRevision,
	}}
	c := decisionCase{MissionAssignmentPolicy: p, DecisionState: s, decision: d, seen: snapshotTime(d, via, now), now: now}
	reason, detail, warning := c.objection()
	if reason != "" {
		v.Entry.Outcome = domain.OutcomeRejected
		v.Entry.Reason, v.Entry.Detail = string(reason), detail
		return v, nil
	}
	fence := s.fenceVerdict(d)
	v.Depot, v.Fence, v.Lowers = fence.Depot, fence.Fence, fence.Lowers
	v.Entry.Outcome, v.Entry.Warning = domain.OutcomeApplied, warning
	if d.Amends() {
		v.Entry.MissionID = d.AmendsMissionID
		v.Change = p.amend(c, &v.Entry)
		return v, nil
	}
	v.Entry.MissionID = domain.MissionIDFor(d.ID)
	v.Change = p.assign(s, d, now)
	return v, nil
}

// fenceVerdict is the part of a verdict that says which fence to store.
func (s DecisionState) fenceVerdict(d domain.Decision) Verdict {
	v := Verdict{Depot: s.FenceDepot(d)}
	if stored := s.Fences[v.Depot]; d.Fence != "" && !sameFence(d.Fence, stored) {
		v.Fence, v.Lowers = d.Fence, FenceLess(d.Fence, stored)
	}
	return v
}

// snapshotTime is when the decision's snapshot was taken, but at most when the decision was
// published. A fast clock must neither keep a decision from expiring nor hide later changes.
func snapshotTime(d domain.Decision, via Delivery, now time.Time) time.Time {
	latest := now
	if !via.PublishedAt.IsZero() {
		latest = earlier(latest, via.PublishedAt)
	}
	return earlier(d.SnapshotTime, latest)
}

// FenceLess compares fences by value. They are decimal digits of any width;
// the empty fence is below all.
func FenceLess(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

func sameFence(a, b string) bool { return !FenceLess(a, b) && !FenceLess(b, a) }
