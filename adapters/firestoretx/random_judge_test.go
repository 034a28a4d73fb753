package firestoretx_test

import (
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

// documents are what the fleet's documents say at one moment.
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

// binding is a drone with all that it is judged by.
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

// foretell is what the rules make of reports, one after the other, by the documents
// as they are. A manager that remembers drones, and folds and commits reports of
// many together, comes to the same.
func (x *trial) foretell(m *manager, reports []domain.Telemetry) *documents {
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

// proveEnded is what the rules make of a report about a mission that is over.
func (d documents) proveEnded(rules policy.DronePolicy, t domain.Telemetry, now time.Time) {
	for {
		m, ok := d.Missions[t.MissionID]
		if !ok || m.Status == domain.MissionActive {
			return
		}
		e := policy.Ended{Mission: m, Orders: map[domain.OrderID]domain.Order{}}
		for _, id := range m.OrderIDs {
			e.Orders[id] = d.Orders[id]
		}
		if drone, taken := e.TakenOver(); taken {
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

// asForetold holds documents against what was foretold of them. Firestore keeps
// microseconds. A manager that did not ask for the time takes a drone for seen when it
// last heard of the server's.
func asForetold[ID comparable, T any](x *trial, want, got map[ID]T) {
	for id, is := range got {
		if reflect.DeepEqual(want[id], is) {
			continue // most are, and to compare as below takes long
		}
		diff := cmp.Diff(want[id], is, cmpopts.EquateApproxTime(time.Millisecond), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(domain.Drone{}, "SeenAt"))
		x.expect(diff == "", "not as the rules say: %s", diff)
	}
}

// told is what a drone was told of a mission.
type told struct {
	until   time.Time // when the command that expires last does
	revoked bool      // to give it up, since that was last asked for
}

func (t told) and(c domain.Command) told {
	if c.ExpiresAt.After(t.until) {
		t.until = c.ExpiresAt.Truncate(time.Microsecond)
	}
	t.revoked = t.revoked || c.Revoke
	return t
}

// judgeDeed judges what one deed did to the documents.
func (x *trial) judgeDeed() {
	before, now := x.docs, x.server.Now().Truncate(time.Microsecond)
	x.docs = x.documents()
	if x.foretold != nil {
		asForetold(x, x.foretold.Drones, x.docs.Drones)
		asForetold(x, x.foretold.Orders, x.docs.Orders)
		asForetold(x, x.foretold.Missions, x.docs.Missions)
	}
	for id, d := range x.docs.Drones {
		was := before.Drones[id]
		// F-DEC-02: by the time of a manager whose clock is slow, a plan from before would fit.
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
		// F-ORD-02: the latest wish counts, until a drone is on its way.
		if changed && was.Status != "" {
			x.expect(was.Status == domain.OrderPending, "changed too late: %+v", o)
			x.expect(o.ContentPublishedAt.After(was.ContentPublishedAt) && o.CreatedAt.Equal(was.CreatedAt), "%+v becomes %+v", was, o)
		}
		published := x.asked[o.ContentHash]
		x.expect(o.ContentHash == "" || slices.ContainsFunc(published, o.ContentPublishedAt.Equal), "asked for at %s: %+v", published, o)
	}
	for id, m := range x.docs.Missions {
		// F-DEC-05: what is not owed any more was told.
		if told := x.told[id]; m.Status == domain.MissionFailed {
			x.expect(m.RevokePending || told.revoked, "nobody was told to give up %+v", m)
		} else {
			x.expect(m.CommandPending || told.until.Equal(m.CommandExpiresAt), "the command that expires %s was sent, not that of %+v", told.until, m)
		}
	}
}

// judgeAnswer judges the answer to a wish. F-ORD-02: other content is refused, on
// record, when it comes too late, and only then.
func (x *trial) judgeAnswer(req domain.OrderRequest, err error) {
	o, exists := x.docs.Orders[req.ID]
	reason, _ := policy.ReasonOf(err)
	tooLate := exists && o.Status != domain.OrderPending && o.ContentHash != "" && o.ContentHash != req.Hash()
	x.expect(tooLate == (reason == policy.ReasonOrderConflict), "the answer %v to %+v for %+v", err, req, o)
}

// effects are what messages have done.
func effects(h invariant.History) []any {
	changes := slices.DeleteFunc(h.Events, func(e domain.Event) bool { return e.Revision == 0 })
	return []any{h.Drones, h.Orders, h.Missions, h.Ledger, changes, h.Fences}
}

// history is all that there is to judge.
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

// check holds the invariants, and what else documents say of each other.
func (x *trial) check() {
	h := x.history()
	for _, v := range invariant.Check(h).Violations {
		x.expect(false, "%s", v)
	}
	missions := map[domain.MissionID]domain.Mission{}
	for _, m := range h.Missions {
		missions[m.ID] = m
		failed := m.Status == domain.MissionFailed
		x.expect(m.EndTime.IsZero() == (m.Status == domain.MissionActive), "the end of %+v", m)
		// F-TEL-06: a command's lifetime and the clocks' errors after it was assigned, less what clocks may differ by.
		x.expect(m.FailureReason != domain.FailureNotAcked || m.EndTime.Sub(m.StartTime) > 15*time.Second, "the patience with %+v", m)
		x.expect(!(m.CommandPending && failed) && !(m.RevokePending && !failed), "what is owed of %+v", m)
	}
	for _, o := range h.Orders {
		delivered := o.Status == domain.OrderDelivered
		x.expect(o.Held == (o.HeldReason != "") && (!o.Held || o.Status == domain.OrderPending), "why %+v is held", o)
		x.expect(o.DeliveredAt.IsZero() != delivered && (!delivered || o.Late == o.DeliveredAt.After(o.Deadline)), "the delivery of %+v", o)
	}
	for _, d := range h.Drones {
		m, exists := missions[d.CurrentMissionID]
		if d.Bound() {
			x.expect(exists && m.DroneID == d.ID && m.Status != domain.MissionFailed, "the mission of %+v: %+v", d, m)
			x.expect(d.MissionAcked == d.FreeAfter.IsZero(), "when %+v is free", d)
			waits := !d.MissionAcked && m.Status == domain.MissionActive
			x.expect(!waits || d.FreeAfter.Equal(m.CommandExpiresAt.Add(5*time.Second)), "when %+v is free of %+v", d, m)
		} else {
			x.expect(!d.MissionAcked && !d.MissionMoved && d.FreeAfter.IsZero() && d.FaultSince.IsZero(), "what is left of a mission of %+v", d)
		}
		x.expect(d.Status != domain.DroneIdle || !d.IdleSince.IsZero() && d.GhostMissionID == "", "the idleness of %+v", d)
	}
	x.farewells(h.Events, missions)
	highest := map[domain.DepotID]string{}
	for _, entry := range h.Ledger {
		if entry.Outcome == domain.OutcomeApplied {
			highest[entry.DepotID] = max(highest[entry.DepotID], entry.Fence)
		}
		x.expect(entry.Reason != string(policy.ReasonStaleFence) || entry.Fence < highest[entry.DepotID], "the fence of %+v", entry)
	}
	x.expect(maps.Equal(h.Fences, highest), "the fences are %v, those applied %v", h.Fences, highest)
}

// farewells: the event by which a drone loses its mission names it, and why it
// failed if it did.
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
			x.expect(e.MissionID == was && (e.Reason == string(m.FailureReason) || wentHome), "%+v ends %+v", e, m)
		}
	}
}
