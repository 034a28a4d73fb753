package firestoretx_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleethistory"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// documents are the fleet's documents at one moment.
type documents struct {
	Drones   map[domain.DroneID]domain.Drone
	Orders   map[domain.OrderID]domain.Order
	Missions map[domain.MissionID]domain.Mission
}

func (x *trial) documents() documents {
	var errs [3]error
	ctx, all := x.t.Context(), firestoretx.Page{}
	drones, err := x.judge.Drones(ctx, "", all)
	errs[0] = err
	orders, err := x.judge.Orders(ctx, "", all)
	errs[1] = err
	missions, err := x.judge.Missions(ctx, "", all)
	errs[2] = err
	for _, err := range errs {
		if err != nil {
			x.t.Fatal(err)
		}
	}
	docs := documents{map[domain.DroneID]domain.Drone{}, map[domain.OrderID]domain.Order{}, map[domain.MissionID]domain.Mission{}}
	for _, d := range drones {
		docs.Drones[d.ID] = d
	}
	for _, o := range orders {
		docs.Orders[o.ID] = o
	}
	for _, m := range missions {
		docs.Missions[m.ID] = m
	}
	return docs
}

// binding returns a drone with its mission and that mission's orders.
func (d documents) binding(id domain.DroneID) policy.Binding {
	b := policy.Binding{Drone: d.Drones[id], Orders: map[domain.OrderID]domain.Order{}}
	if m, ok := d.Missions[b.Drone.CurrentMissionID]; ok {
		b.Mission = &m
		for _, id := range m.OrderIDs {
			b.Orders[id] = d.Orders[id]
		}
	}
	return b
}

// predict applies the policy to the reports one by one, starting from the current
// documents. A manager that caches drones and commits reports in batches must come to
// the same result.
func (x *trial) predict(m *manager, reports []domain.Telemetry) *documents {
	rules, server := policy.DefaultDronePolicy(), x.server.Now()
	now := server.Add(max(0, m.off))
	docs := documents{maps.Clone(x.docs.Drones), maps.Clone(x.docs.Orders), maps.Clone(x.docs.Missions)}
	var past []domain.Telemetry
	for _, t := range slices.SortedStableFunc(slices.Values(reports), func(a, b domain.Telemetry) int { return a.Timestamp.Compare(b.Timestamp) }) {
		t.Timestamp = t.Timestamp.Truncate(time.Microsecond)
		before := docs.binding(t.DroneID)
		_, change, err := rules.ApplyTelemetry(before, t, now)
		if reason, _ := policy.ReasonOf(err); (err == nil || reason == policy.ReasonStaleTelemetry) && rules.CheckTime(t, server) == nil && t.MissionID != before.Drone.CurrentMissionID {
			past = append(past, t)
		}
		if err != nil || rules.CheckTime(t, server) != nil {
			continue
		}
		docs.Drones[t.DroneID] = *change.Drone
		for _, o := range change.Orders {
			docs.Orders[o.ID] = o
		}
		for _, m := range change.Missions {
			docs.Missions[m.ID] = m
		}
		for _, id := range change.Revoke {
			m := docs.Missions[id]
			m.RevokePending = true
			docs.Missions[id] = m
		}
	}
	slices.SortStableFunc(past, func(a, b domain.Telemetry) int { return strings.Compare(string(a.DroneID), string(b.DroneID)) })
	for _, t := range past {
		docs.proveEnded(rules, t, now)
	}
	return &docs
}

// proveEnded applies the policy to a report about a mission that has ended.
func (d documents) proveEnded(rules policy.DronePolicy, t domain.Telemetry, now time.Time) {
	for {
		m, ok := d.Missions[t.MissionID]
		if !ok || m.Status == domain.MissionActive {
			return
		}
		e := policy.Ended{Mission: m, Orders: map[domain.OrderID]domain.Order{}}
		for _, id := range m.EveryOrder() {
			e.Orders[id] = d.Orders[id]
		}
		if drone, taken := e.TakenOver(t); taken {
			b := d.binding(drone)
			e.Other = &b
		}
		change, err := rules.ProveLate(e, t, now)
		if err != nil {
			return
		}
		if change.Drone != nil {
			d.Drones[change.Drone.ID] = *change.Drone
		}
		for _, o := range change.Orders {
			d.Orders[o.ID] = o
		}
		for _, m := range change.Missions {
			d.Missions[m.ID] = m
		}
	}
}

// asPredicted compares documents with the predicted ones. Firestore stores microseconds.
// SeenAt is left out: a manager may date it by the last server time that it has seen.
func asPredicted[ID comparable, T any](x *trial, want, got map[ID]T) {
	for id, is := range got {
		if reflect.DeepEqual(want[id], is) {
			continue // fast path: most are equal
		}
		diff := cmp.Diff(want[id], is, cmpopts.EquateApproxTime(time.Millisecond), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(domain.Drone{}, "SeenAt", "DueAt"), cmpopts.IgnoreFields(domain.Order{}, "DueAt"))
		x.expect(diff == "", "differs from what the policy says: %s", diff)
	}
}

// told records the commands sent to a drone about a mission.
type told struct {
	until   time.Time // latest expiry of a command
	revoked bool      // a revocation was sent since it was last requested
}

func (t told) and(c domain.Command) told {
	if c.ExpiresAt.After(t.until) {
		t.until = c.ExpiresAt.Truncate(time.Microsecond)
	}
	t.revoked = t.revoked || c.Revoke
	return t
}

// judgeDue checks that the sweeper finds every document when it has something to do about it
// (F-SWP-01).
func (x *trial) judgeDue() {
	early := func(stored, due time.Time) bool { return due.IsZero() || !stored.IsZero() && !stored.After(due) }
	for id, d := range x.docs.Drones {
		if due := policy.DefaultDronePolicy().DroneDue(d, x.docs.binding(id).Mission); !early(d.DueAt, due) {
			x.expect(false, "drone %s is due at %s, and found at %s", id, due, d.DueAt)
		}
	}
	for id, o := range x.docs.Orders {
		if due := policy.OrderDue(o); !early(o.DueAt, due) {
			x.expect(false, "order %s is due at %s, and found at %s", id, due, o.DueAt)
		}
	}
}

// judgeDeed checks how one attempt changed the documents.
func (x *trial) judgeDeed() {
	x.judgeFlights()
	before, now := x.docs, x.server.Now().Truncate(time.Microsecond)
	x.docs = x.documents()
	x.judgeDue()
	if x.predicted != nil {
		asPredicted(x, x.predicted.Drones, x.docs.Drones)
		asPredicted(x, x.predicted.Orders, x.docs.Orders)
		asPredicted(x, x.predicted.Missions, x.docs.Missions)
	}
	for id, d := range x.docs.Drones {
		was := before.Drones[id]
		// F-DEC-02: dated by a slow manager's clock, an older plan would still be valid.
		freed := d.Status == domain.DroneIdle && was.Status != domain.DroneIdle
		x.expect(!freed || !d.IdleSince.Before(now), "idle at %s: %+v", now, d)
		if id := d.GhostMissionID; id != "" && !d.GhostRevokedAt.Equal(was.GhostRevokedAt) {
			x.told[id] = told{until: x.told[id].until}
		}
	}
	for id, o := range x.docs.Orders {
		was := before.Orders[id]
		changed := o.ContentHash != was.ContentHash
		opened := o.Status == domain.OrderPending && (was.Status != o.Status || changed || was.Held && !o.Held)
		x.expect(!opened || !o.PendingSince.Before(now), "pending at %s: %+v", now, o)
		// F-ORD-02: the latest request counts until a drone is assigned.
		if changed && was.Status != "" {
			x.expect(was.Status == domain.OrderPending, "changed too late: %+v", o)
			x.expect(o.ContentPublishedAt.After(was.ContentPublishedAt) && o.CreatedAt.Equal(was.CreatedAt), "%+v becomes %+v", was, o)
		}
		published := x.asked[o.ContentHash]
		x.expect(o.ContentHash == "" || slices.ContainsFunc(published, o.ContentPublishedAt.Equal), "asked for at %s: %+v", published, o)
	}
	for id, m := range x.docs.Missions {
		// F-DEC-05: a command that is no longer owed was sent.
		if told := x.told[id]; m.Revoked() {
			x.expect(m.RevokePending || told.revoked, "no revocation was sent or is owed for %+v", m)
		} else {
			x.expect(m.CommandPending || told.until.Equal(m.CommandExpiresAt), "the command sent last expires %s; it is not the one of %+v", told.until, m)
		}
	}
}

// judgeFlights compares the missions in flight that a cycle remembers with those that it would read at
// the same time.
func (x *trial) judgeFlights() {
	for _, d := range trialDepots {
		req := firestoretx.SnapshotRequest{Depot: d.ID, Flights: true, Known: x.flights[d.ID]}
		for range 2 { // the first may get a fault that was meant for the deed
			diff, err := differentFlights(x.t.Context(), x.judge, req)
			if err != nil {
				continue
			}
			x.expect(diff == "", "F-CYC-01: remembered, and read: %s", diff)
			break
		}
	}
}

// differentFlights compares the flights of a snapshot that remembers missions with those of one that
// reads them at the same time. Plans do not depend on what the outbox notes.
func differentFlights(ctx context.Context, store *firestoretx.Store, req firestoretx.SnapshotRequest) (string, error) {
	known, err := store.Snapshot(ctx, req)
	if err != nil {
		return "", err
	}
	req.Known, req.At = nil, known.ReadTime
	read, err := store.Snapshot(ctx, req)
	return cmp.Diff(known.Flights, read.Flights, cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(domain.Mission{}, "CommandPending", "CommandExpiresAt", "CommandPublishedAt", "RevokePublishedAt")), err
}

// judgeAnswer checks the answer to an order request. F-ORD-02: changed content is
// rejected if and only if it comes too late.
func (x *trial) judgeAnswer(req domain.OrderRequest, err error) {
	o, exists := x.docs.Orders[req.ID]
	reason, _ := policy.ReasonOf(err)
	tooLate := exists && o.Status != domain.OrderPending && o.ContentHash != "" && o.ContentHash != req.Hash()
	x.expect(tooLate == (reason == policy.ReasonOrderConflict), "error %v for request %+v and order %+v", err, req, o)
}

// effects returns everything that messages may change.
func effects(h invariant.History) []any {
	changes := slices.DeleteFunc(h.Events, func(e domain.Event) bool { return e.Revision == 0 })
	return []any{h.Drones, h.Orders, h.Missions, h.Ledger, changes, h.Fences}
}

// history returns everything that the invariants are checked on.
func (x *trial) history() invariant.History {
	h, err := fleethistory.Documents(x.t.Context(), x.judge)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, d := range h.Drones {
		x.known.Observations = append(x.known.Observations, invariant.Observation{DroneID: d.ID, LastUpdate: d.LastUpdate})
	}
	h.Confirmed, h.DeadLetters, h.Observations = x.known.Confirmed, x.known.DeadLetters, x.known.Observations
	return h
}

// check checks the invariants, and that the documents are consistent.
func (x *trial) check() {
	h := x.history()
	for _, v := range invariant.Check(h).Violations {
		x.expect(false, "%s", v)
	}
	missions := map[domain.MissionID]domain.Mission{}
	for _, m := range h.Missions {
		missions[m.ID] = m
		failed := m.Status == domain.MissionFailed
		x.expect(m.EndTime.IsZero() == (m.Status == domain.MissionActive), "endTime and status disagree: %+v", m)
		// F-TEL-06: not before the command's lifetime, less the clocks' errors.
		x.expect(m.FailureReason != domain.FailureNotAcked || m.EndTime.Sub(m.StartTime) > 15*time.Second, "failed as not acked too early: %+v", m)
		x.expect(!(m.CommandPending && m.Revoked()) && !(m.RevokePending && !failed && m.RecalledAt.IsZero()), "owes the wrong kind of command: %+v", m)
	}
	for _, o := range h.Orders {
		delivered := o.Status == domain.OrderDelivered
		x.expect(o.Held == (o.HeldReason != "") && (!o.Held || o.Status == domain.OrderPending), "held, heldReason and status disagree: %+v", o)
		x.expect(o.DeliveredAt.IsZero() != delivered && (!delivered || o.Late == o.DeliveredAt.After(o.Deadline)), "deliveredAt, late and status disagree: %+v", o)
	}
	for _, d := range h.Drones {
		m, exists := missions[d.CurrentMissionID]
		if d.Bound() {
			x.expect(exists && m.DroneID == d.ID && m.Status != domain.MissionFailed, "drone %+v is bound to mission %+v", d, m)
			x.expect(d.MissionAcked == d.FreeAfter.IsZero(), "missionAcked and freeAfter disagree: %+v", d)
			waits := !d.MissionAcked && m.Status == domain.MissionActive
			x.expect(!waits || d.FreeAfter.Equal(m.CommandExpiresAt.Add(5*time.Second)), "freeAfter of drone %+v does not match mission %+v", d, m)
		} else {
			x.expect(!d.MissionAcked && !d.MissionMoved && d.FreeAfter.IsZero() && d.FaultSince.IsZero(), "a free drone keeps mission fields: %+v", d)
		}
		x.expect(d.Status != domain.DroneIdle || !d.IdleSince.IsZero() && d.GhostMissionID == "", "IDLE without idleSince or with a ghost mission: %+v", d)
	}
	x.farewells(h.Events, missions)
	highest := map[domain.DepotID]string{}
	for _, entry := range h.Ledger {
		if entry.Outcome == domain.OutcomeApplied {
			highest[entry.DepotID] = max(highest[entry.DepotID], entry.Fence)
		}
		x.expect(entry.Reason != string(policy.ReasonStaleFence) || entry.Fence < highest[entry.DepotID], "rejected as stale although its fence is the highest: %+v", entry)
	}
	x.expect(maps.Equal(h.Fences, highest), "fences are %v, want the highest applied %v", h.Fences, highest)
}

// farewells checks that the event that unbinds a drone names its mission and, if the
// mission failed, the reason.
func (x *trial) farewells(events []domain.Event, missions map[domain.MissionID]domain.Mission) {
	slices.SortFunc(events, func(a, b domain.Event) int { return int(a.Revision - b.Revision) })
	bound := map[domain.DroneID]domain.MissionID{}
	for _, e := range events {
		if e.Entity != domain.EntityDrone {
			continue
		}
		is, _ := e.State["currentMissionId"].(string)
		was := bound[e.DroneID]
		bound[e.DroneID] = domain.MissionID(is)
		if m := missions[was]; was != "" && is == "" {
			wentHome := m.Status == domain.MissionCompleted && strings.HasPrefix(e.Reason, "silent since ")
			x.expect(e.MissionID == was && (e.Reason == string(m.FailureReason) || wentHome), "event %+v does not tell how mission %+v ended", e, m)
		}
	}
}
