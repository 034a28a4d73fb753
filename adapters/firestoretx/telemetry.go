package firestoretx

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// TelemetryApplier commits the reports of many drones together. It caches each
// drone's binding as its last commit left it, so that the next report of a drone
// that only moved or changed its status costs no read: one commit, guarded by
// the document's version. A change to a mission or an order, or a failed guard,
// takes a transaction.
//
// An applier is not safe for concurrent use. Give each shard of drones its own,
// so that a process never conflicts with itself.
type TelemetryApplier struct {
	store  *Store
	known  bindingCache
	ended  endedCache
	server serverClock
}

// NewTelemetryApplier returns an applier that knows nothing yet.
func (s *Store) NewTelemetryApplier() *TelemetryApplier {
	return &TelemetryApplier{store: s, known: bindingCache{}, ended: endedCache{}, server: serverClock{now: s.now}}
}

// Urgent reports whether t changes more than its drone's whereabouts (a status,
// a binding, a stop), as far as this applier knows, and so should not wait for
// others to share its commit.
func (a *TelemetryApplier) Urgent(t domain.Telemetry) bool {
	k, ok := a.known[t.DroneID]
	if !ok {
		return true
	}
	now := a.store.now()
	after, change, err := a.store.drone.ApplyTelemetry(k.binding, t, a.server.later(now))
	if err != nil || change.OnlyWhereabouts() || a.tooFarAhead(t, now) {
		return false
	}
	k.mustRead = k.mustRead || !needsNoRead(k.binding.Drone, after.Drone, change)
	return true
}

// Apply folds reports, in the order of their timestamps, into their drones. It
// answers one error per report, in the order of reports: nil when its effect is
// committed, a *policy.Rejection when it changes nothing, or the failure that
// kept it from committing; a failure of one drone's document does not touch the
// others. Only the server's clock decides whether a report is too far ahead.
//
// Cost: 1 RPC, and a write per drone and event, when nothing but drones changed;
// otherwise a transaction of 3 RPCs, or 5 when a bound drone's mission must be
// read. A report that may be too far ahead asks the server in such a transaction,
// at most every ten seconds while nothing else does. A report that may prove something
// about a mission that is over takes such a transaction of its own, unless the mission
// is cached and says that it does not.
func (a *TelemetryApplier) Apply(ctx context.Context, reports []domain.Telemetry) []error {
	drones := groupByDrone(reports)
	changes, unread := a.foldCached(drones)
	if !a.commitGuarded(ctx, changes) {
		for _, c := range changes {
			unread = append(unread, c.reports)
		}
	}
	a.readAndCommit(ctx, unread)
	a.proveEnded(ctx, drones)
	return outcomes(drones, len(reports))
}

// Forget drops drones that have been silent for long; call it now and then.
func (a *TelemetryApplier) Forget() {
	now := a.store.now()
	a.known.evict(now)
	a.ended.evict(now)
}

// foldCached folds the reports of each drone into its cached binding. It returns
// the changes that need no read, and the drones that need one. Drones whose
// reports are all rejected need nothing: what is cached is never newer than what
// is stored, so stale stays stale, and a report that is too far ahead is so by
// the latest that the server's clock may show.
func (a *TelemetryApplier) foldCached(drones []*droneReports) (changes []guardedChange, unread []*droneReports) {
	now := a.store.now() // one for all that is judged by it
	for _, d := range drones {
		k, ok := a.known[d.id]
		if !ok || k.mustRead || a.anyDoubtful(d, now) {
			unread = append(unread, d)
			if ok {
				k.mustRead = false
			}
			continue
		}
		after, change := d.fold(a.store.drone, k.binding, a.server.atLeast(now), a.server.later(now))
		switch {
		case a.mayBeCurrent(d), d.doubtRefusals():
			unread = append(unread, d)
		case change.Empty():
		case needsNoRead(k.binding.Drone, after.Drone, change):
			changes = append(changes, guardedChange{reports: d, before: k, after: after, events: change.Events})
		default:
			unread = append(unread, d)
		}
	}
	return changes, unread
}

// needsNoRead reports whether the drone's version is guard enough for a change:
// it touches no mission and no order, and does not make the drone idle.
func needsNoRead(before, after domain.Drone, c policy.Change) bool {
	return c.WithinDrone() && !becomesIdle(before, after)
}

// becomesIdle reports whether the moment of the change decides which decisions
// about the drone still hold. That moment must be the server's, which only a
// transaction learns.
func becomesIdle(before, after domain.Drone) bool { return !before.IdleSince.Equal(after.IdleSince) }

// tooFarAhead reports whether the report is certainly too far ahead of the
// server when the local clock shows now.
func (a *TelemetryApplier) tooFarAhead(t domain.Telemetry, now time.Time) bool {
	server, known := a.server.atMost(now)
	return known && a.store.drone.CheckTime(t, server) != nil
}

// anyDoubtful reports whether only the server can tell if one of the reports is
// too far ahead of it. The local clock alone refuses none, since what was refused
// is not sent again, and accepts none, since all that its drone reports until
// then would be stale.
func (a *TelemetryApplier) anyDoubtful(d *droneReports, now time.Time) bool {
	for _, r := range d.reports {
		if a.store.drone.CheckTime(r.Telemetry, a.server.atLeast(now)) != nil && !a.tooFarAhead(r.Telemetry, now) {
			return true
		}
	}
	return false
}
