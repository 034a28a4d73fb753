package firestoretx

import (
	"context"
	"slices"

	"github.com/dronefleet/dronefleet/domain"
)

// TelemetryApplier commits the reports of many drones together. It caches each drone's binding as
// of its last report. A next one that only moves the drone where readers foretell it is not
// written at all, until the heartbeat is due. One that changes no more than the drone needs no
// read: one commit, guarded by the document's version. A change to a mission or an order, or a
// failed guard, takes a transaction.
//
// An applier is not safe for concurrent use. Give each shard of drones its own, so that
// a process never conflicts with itself.
type TelemetryApplier struct {
	store  *Store
	known  bindingCache
	ended  endedCache
	server serverClock
}

// NewTelemetryApplier returns an applier with empty caches.
func (s *Store) NewTelemetryApplier() *TelemetryApplier {
	return &TelemetryApplier{store: s, known: bindingCache{}, ended: endedCache{}, server: serverClock{now: s.now}}
}

// Apply folds reports into their drones, in the order of their timestamps. It returns one error per
// report, in the order of reports: nil when its effect is committed or not due, a
// *policy.Rejection when it changes nothing, otherwise the failure. A failure of one drone's
// document does not affect the others. Only the server's clock decides whether a report is too far
// ahead.
//
// Each phase takes verdicts and returns new ones; none changes its input.
//
// Cost: nothing for drones that are not due. If only drones changed, 1 RPC and a write per drone and
// event, and up to 2 RPCs more per drone that another process changed; otherwise a transaction of 3
// RPCs, or 5 if a bound drone's mission must be read. A report that may be too far ahead takes such
// a transaction, at most every ten seconds while no other call shows the server's time. Late
// evidence about an ended mission takes a transaction per report, unless the cached mission shows
// that it proves nothing.
func (a *TelemetryApplier) Apply(ctx context.Context, reports []domain.Telemetry) []error {
	drones := gather(reports)
	answered, changes, unread := a.foldCached(drones)
	guarded, outdated := a.commitGuarded(ctx, changes)
	read := a.readAndCommit(ctx, append(unread, outdated...))
	verdicts := slices.Concat(answered, guarded, read)
	proved := a.proveEnded(ctx, verdicts)
	return answers(proved, len(reports))
}

// Urgent reports whether t changes more than its drone's whereabouts (a status, a
// binding, a stop), as far as this applier knows. Such a report should not wait for
// others to share its commit. Urgent also notes that the drone must be read if its commit needs it.
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
	k.mustRead = k.mustRead || !needsNoRead(&k.binding.Drone, &after.Drone, change)
	return true
}

// Forget drops drones and missions that no report has named for a while. Call it now and then.
func (a *TelemetryApplier) Forget() {
	now := a.store.now()
	a.known.evict(now)
	a.ended.evict(now)
}
